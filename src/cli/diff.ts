// longhand diff: which engines disagree on a configuration, in which pairs, from which position on.

import { type Command, InvalidArgumentError } from "commander";
import { diffText } from "../advice/chart/diff-text.ts";
import { diffDialects, diffEngines } from "../advice/diff.ts";
import { type Dialect, dialects } from "../encodings/rope/dialects/index.ts";
import { nearest } from "../formats/nearest.ts";
import { openModel } from "../formats/open-model.ts";
import { tokenCountOrMultiple } from "./options.ts";
import { palette, terminalWidth } from "./terminal.ts";

interface Options {
  readonly between?: readonly Dialect[];
  readonly target?: { multiple: number } | { tokens: number };
  readonly float32?: boolean;
  readonly json?: boolean;
}

const help = `
Engines: ${dialects.join(", ")}.
Without --between all but the papers and their authors' code are compared. Two engines differ where an angle is off by
more than 0.1 radians somewhere, or a score has another factor.

Examples:
  longhand diff ./gpt-oss-20b
  longhand diff config.json --between transformers-5,llama.cpp --target 128k
  longhand diff config.json --float32 --json`;

export function addDiff(program: Command): void {
  program
    .command("diff")
    .summary("show which engines disagree on a configuration")
    .description("Show which engines compute other positions from the same configuration, and from where on.")
    .argument("<model>", "a folder, config.json, .gguf or llama2.c .bin")
    .option("--between <a,b>", "the engines to compare, two or more", engines)
    .option(
      "--target <tokens>",
      "length of the sequence, for which servers are started: 131072, 128k, or 4x",
      tokenCountOrMultiple,
    )
    .option("--float32", "with each engine's own roundings")
    .option("--json", "print one JSON document")
    .addHelpText("after", help)
    .action(async (path: string, options: Options) => {
      const model = await openModel(path);
      const target = targetOf(options.target, model.trainedLength);
      const diffs = diffEngines(model, {
        between: options.between ?? diffDialects,
        ...(target === undefined ? {} : { target }),
        ...(options.float32 ? { float32: true } : {}),
      });
      if (options.json) {
        // JSON has no infinity: a pair that only one of the two turns.
        const finite = (_: string, value: unknown) => (value === Number.POSITIVE_INFINITY ? null : value);
        process.stdout.write(
          `${JSON.stringify({ model: model.name, modelType: model.modelType, groups: diffs }, finite)}\n`,
        );
        return;
      }
      process.stdout.write(diffText(model, diffs, palette, terminalWidth()));
    });
}

function engines(text: string): Dialect[] {
  const names = text.split(",").map((name) => name.trim());
  for (const name of names) {
    if ((dialects as readonly string[]).includes(name)) continue;
    const near = nearest(name, dialects);
    throw new InvalidArgumentError(
      `expected engines out of ${dialects.join(", ")}, got ${JSON.stringify(name)}${near.length === 0 ? "" : `; nearest: ${near.join(", ")}`}.`,
    );
  }
  if (new Set(names).size < 2) throw new InvalidArgumentError("expected two engines or more, as transformers-5,vllm.");
  return [...new Set(names)] as Dialect[];
}

function targetOf(target: Options["target"], trainedLength: number | null): number | undefined {
  if (target === undefined) return undefined;
  if ("tokens" in target) return target.tokens;
  if (trainedLength === null) {
    throw new RangeError(
      `--target: expected a number of tokens for a model without a trained length, got ${target.multiple}x`,
    );
  }
  return Math.round(target.multiple * trainedLength);
}
