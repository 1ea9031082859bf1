// longhand search: factors for every hand of a model, found on one's own text, against the rules of the field.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Command } from "commander";
import { loadLanguageModel } from "../engine/index.ts";
import {
  type Difference,
  expectDecoder,
  modelHashes,
  runSearch,
  type SearchJob,
  type SearchResult,
  searchCost,
  searchSpace,
  searchWindows,
  trainedLengthOf,
  windowBos,
} from "../evaluation/index.ts";
import { grouped, signed } from "../evaluation/report/numbers.ts";
import { toHuggingFace } from "../formats/index.ts";
import { openModel } from "../formats/open-model.ts";
import { openTokenizer } from "../formats/tokenizers/index.ts";
import { resumeCommand } from "./command-line.ts";
import { loadOptions } from "./encoding-options.ts";
import { openEvaluationRun, readTexts, runFolder, softwareIdentity } from "./evaluation-run.ts";
import { Interrupted, interruptible } from "./interrupt.ts";
import { WorkLine } from "./live.ts";
import { seedNumber, type Target, targetTokens, tokenCount, tokenCountOrMultiple } from "./options.ts";
import { addLastOptions, type RunFlags } from "./run-options.ts";
import { palette } from "./terminal.ts";

interface Flags extends Pick<RunFlags, "bos" | "out" | "precision" | "threads" | "json"> {
  readonly text: readonly string[];
  readonly target: Target;
  readonly windows: number;
  readonly check: number;
  readonly generations: number;
  readonly children: number;
  readonly seed: number;
  readonly trainedLength?: number;
}

/** Beside the rows in the run folder: what --scaling takes. */
const settingsFile = "rope_parameters.json";

const help = `
As LongRoPE does: a hand is slowed down by a factor of its own, none by less than the one before it. The search begins with
the rules (linear, ntk, dynamic, yarn), changes and mixes what reads best, and tries some ${12 * 16} candidates on windows of
the text. Then it is held against the best of the rules on windows that it has not seen: only that difference counts.

The result is a rope_parameters object of type longrope, in the run folder: the hands as trained up to the trained length,
slowed down beyond it. score, compare and export take it as --scaling, or in --strategies.

Examples:
  longhand search longhand-rope --text book.txt --target 4x --out searched
  longhand export longhand-rope --scaling "$(cat searched/${settingsFile})" --to transformers
  longhand search model.gguf --text book.txt --target 16k --windows 2 --generations 30 --json`;

export function addSearch(program: Command): void {
  const command = program
    .command("search")
    .summary("a factor for every hand, searched on your text")
    .description("Search the factors of a model's rotary hands for a longer context, and hold them against the rules.")
    .argument("<model>", "a folder, .gguf or llama2.c .bin")
    .requiredOption("--text <files...>", "texts to read; - is standard input")
    .option("--target <length>", "tokens of a window, as 16384, 16k, or 4x the trained length", tokenCountOrMultiple, {
      multiple: 4,
    })
    .option("--windows <n>", "windows to search on, at most", tokenCount, 4)
    .option("--check <n>", "others to check on, at most", tokenCount, 8)
    .option("--generations <n>", "generations", tokenCount, 12)
    .option("--children <n>", "candidates of a generation", tokenCount, 16)
    .option("--seed <n>", "of what is changed and mixed", seedNumber, 1)
    .option("--trained-length <n>", "the length of training, where the file is silent", tokenCount)
    .option("--no-bos", "no BOS at the head of the windows")
    .option("--out <folder>", "the run folder");
  addLastOptions(command)
    .addHelpText("after", help)
    .action((path: string, flags: Flags) => interruptible((signal) => search(path, flags, signal)));
}

async function search(path: string, flags: Flags, signal: AbortSignal): Promise<void> {
  const model = await openModel(path);
  expectDecoder(model);
  const trainedLength = trainedLengthOf(model, flags.trainedLength);
  if (trainedLength === null) {
    throw new RangeError("search: expected a model with a trained length, got none in the file; give --trained-length");
  }
  const target = targetTokens(flags.target, trainedLength);
  const space = searchSpace(model, { trainedLength, target });
  const tokenizer = await openTokenizer(path);
  const bos = windowBos(tokenizer, flags.bos);
  const texts = await readTexts(flags.text, tokenizer);
  const { windows, checks } = searchWindows(texts, target, bos, { search: flags.windows, check: flags.check });
  const { generations, children, seed } = flags;
  const job: SearchJob = { space, bos, windows, checks, evolution: { generations, children, seed } };
  // A candidate's losses are the same whatever the search does next.
  const identity = {
    ...softwareIdentity(),
    model: model.name,
    files: await modelHashes(path, signal),
    precision: flags.precision ?? "auto",
    texts: texts.map(({ name, sha256, tokens }) => ({ name, sha256, tokens: tokens.length })),
    trainedLength,
    target,
    bos,
    windows: { search: windows.length, check: checks.length },
  };
  const folder = runFolder("search", model.name, identity, flags.out, null);
  const run = await openEvaluationRun("search", identity, folder);
  if (!flags.json) {
    process.stdout.write(
      `${model.name}, trained at ${grouped(trainedLength)} tokens, to ${grouped(target)}: ${windows.length} windows to search ` +
        `on, ${checks.length} to check on, ${grouped(searchCost(job) * target)} tokens at most\n`,
    );
  }
  let result: SearchResult;
  try {
    await using loaded = await loadLanguageModel(path, { ...loadOptions(flags), signal });
    const line = new WorkLine(searchCost(job));
    try {
      result = await runSearch(loaded, job, run, {
        signal,
        onProgress: ({ done, generation }) => {
          const best = generation === null ? "the rules" : `generation ${generation.generation + 1}`;
          const loss = generation === null ? "" : `, best ${generation.best.loss.toFixed(4)}`;
          line.show(done, `${best}${loss}`);
        },
      });
    } finally {
      line.clear();
    }
  } catch (error) {
    if (error instanceof Interrupted) {
      process.stderr.write(`${run.rows.length} losses are in ${folder}; to go on: ${resumeCommand(folder)}\n`);
    }
    throw error;
  } finally {
    await run.close();
  }
  const parameters = toHuggingFace(result.rope);
  await writeFile(join(folder, settingsFile), `${JSON.stringify(parameters)}\n`);
  if (flags.json) {
    const { generations: steps, rules, bestRule, check } = result;
    const document = { model: model.name, trainedLength, target, run: folder, ropeParameters: parameters };
    process.stdout.write(`${JSON.stringify({ ...document, generations: steps, rules, bestRule, check })}\n`);
    return;
  }
  process.stdout.write(resultText(result, folder, path));
}

function resultText({ generations, rules, bestRule, check, rope }: SearchResult, folder: string, path: string): string {
  const { dim } = palette;
  const last = generations.at(-1)!;
  const losses = new Map(rules.map(({ name, loss }) => [name, loss]));
  losses.set("searched", last.loss);
  const head = ["nats a token", "searched on", "within", "beyond"];
  const rows = check.losses.map(({ name, within, beyond }) => [
    name,
    losses.get(name)!.toFixed(4),
    within.toFixed(4),
    beyond.toFixed(4),
  ]);
  const widths = head.map((text, i) => Math.max(text.length, ...rows.map((row) => row[i]!.length)));
  const line = (cells: readonly string[]): string =>
    cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))).join("  ");
  return [
    `${last.tried} candidates in ${last.generation} generations; within and beyond the trained length: on the other windows`,
    dim(line(head)),
    ...rows.map(line),
    "",
    verdict(check.beyond, bestRule),
    price(check.within),
    `Factors ${rope.longFactor[0]} to ${rope.longFactor.at(-1)}, attention factor ${rope.attentionFactor}: ` +
      `${join(folder, settingsFile)}`,
    dim(`longhand export ${path} --scaling "$(cat ${join(folder, settingsFile)})" --to vllm`),
    "",
  ].join("\n");
}

function verdict(difference: Difference, rule: string): string {
  const { mean, verdict: which, windows } = difference;
  const on = `on ${windows} windows that the search did not see, beyond the trained length`;
  switch (which) {
    case "lower":
      return `The search beats ${rule}, the best of the rules, by ${interval(-mean, difference, -1)} nats ${on}.`;
    case "higher":
      return `The search loses to ${rule} by ${interval(mean, difference, 1)} nats ${on}: it fitted what it was searched on.`;
    case "tie":
      return `A tie with ${rule}, the best of the rules: ${interval(mean, difference, 1)} nats ${on}.`;
    case "unknown":
      return `${signed(mean, 4)} nats against ${rule} ${on}; one window gives no interval.`;
  }
}

function price(difference: Difference): string {
  const { mean, verdict: which } = difference;
  const where = "within the trained length, where an engine keeps the stretched hands at every length";
  if (which === "tie") return `A tie with the unscaled model ${where}.`;
  if (which === "unknown") return `${signed(mean, 4)} nats against the unscaled model ${where}.`;
  return `It ${mean > 0 ? "costs" : "gains"} ${interval(Math.abs(mean), difference, Math.sign(mean))} nats ${where}.`;
}

function interval(mean: number, { low, high }: Difference, sign: number): string {
  const [a, b] = [sign * low!, sign * high!].sort((x, y) => x - y);
  return `${mean.toFixed(4)} (${a!.toFixed(4)} to ${b!.toFixed(4)})`;
}
