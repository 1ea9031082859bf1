// longhand advise: which scaling for a length, and why; from the configuration alone, or from a compare on one's own text.

import type { Command } from "commander";
import { advise } from "../advice/advise.ts";
import { adviceText } from "../advice/advise-text.ts";
import { loadLanguageModel } from "../engine/index.ts";
import { type CompareResult, compareIdentity, compareResult, prepareCompare, runCompare } from "../evaluation/index.ts";
import { modelHashes } from "../evaluation/run-folder/model-hashes.ts";
import type { ModelDescription } from "../formats/model-description.ts";
import { openModel } from "../formats/open-model.ts";
import { openTokenizer } from "../formats/tokenizers/index.ts";
import { openEvaluationRun, readTexts, runFolder, softwareIdentity } from "./evaluation-run.ts";
import { interruptible } from "./interrupt.ts";
import { numberAtLeast, tokenCount, tokenCountOrMultiple } from "./options.ts";
import { progressLine } from "./progress.ts";
import { palette, terminalWidth } from "./terminal.ts";

interface Flags {
  readonly target: { multiple: number } | { tokens: number };
  readonly tolerance: number;
  readonly text?: string[];
  readonly windows: number;
  readonly trainedLength?: number;
  readonly out?: string;
  readonly threads?: number;
  readonly json?: true;
}

const help = `
Without --text the advice is from headers alone: hands, angles that training never showed, what the makers say. With it the
strategies are compared on the text (as longhand compare does, into a run folder that resumes), and the advice is what was
measured: the lowest loss beyond the trained length among those that cost short texts at most --tolerance nats.

Examples:
  longhand advise config.json --target 64k
  longhand advise model.gguf --target 2x --text book.txt
  longhand advise model.gguf --target 16384 --text book.txt --tolerance 0.1 --json`;

export function addAdvise(program: Command): void {
  program
    .command("advise")
    .summary("which scaling for a length, and why")
    .description("Advise on a scaling for a target length: from the configuration, or measured on your text.")
    .argument("<model>", "a folder, config.json, .gguf, llama2.c .bin or a built-in model")
    .requiredOption("--target <tokens>", "tokens to read: 131072, 128k, or 4x the trained length", tokenCountOrMultiple)
    .option("--tolerance <nats>", "what short texts may lose", numberAtLeast(0), 0.05)
    .option("--text <files...>", "measure on these texts; - is standard input")
    .option("--windows <n>", "windows at most, with --text", tokenCount, 4)
    .option("--trained-length <tokens>", "the length of training, where the file is silent", tokenCount)
    .option("--out <folder>", "the run folder, with --text")
    .option("--threads <n>", "threads of a run", tokenCount)
    .option("--json", "print one JSON document")
    .addHelpText("after", help)
    .action((path: string, flags: Flags) => interruptible((signal) => run(path, flags, signal)));
}

async function run(path: string, flags: Flags, signal: AbortSignal): Promise<void> {
  const model = await openModel(path);
  const trainedLength = flags.trainedLength ?? model.trainedLength;
  if ("multiple" in flags.target && trainedLength === null) {
    throw new RangeError(
      `--target: expected a number of tokens for a model without a trained length, got ${flags.target.multiple}x`,
    );
  }
  const target = "tokens" in flags.target ? flags.target.tokens : Math.round(flags.target.multiple * trainedLength!);
  const measured = flags.text === undefined ? null : await measure(path, model, target, flags, signal);
  const advice = advise(model, {
    target,
    tolerance: flags.tolerance,
    model: path,
    ...(flags.trainedLength === undefined ? {} : { trainedLength: flags.trainedLength }),
    ...(measured === null ? {} : { measured: measured.result }),
  });
  if (flags.json) {
    process.stdout.write(`${JSON.stringify({ ...advice, run: measured?.folder ?? null })}\n`);
    return;
  }
  process.stdout.write(adviceText(advice, palette, terminalWidth()));
  if (measured !== null) process.stdout.write(palette.dim(`\nRun folder: ${measured.folder}\n`));
}

async function measure(
  path: string,
  model: ModelDescription,
  target: number,
  flags: Flags,
  signal: AbortSignal,
): Promise<{ result: CompareResult; folder: string }> {
  const tokenizer = await openTokenizer(path);
  const texts = await readTexts(flags.text!, tokenizer);
  const request = {
    target,
    windows: flags.windows,
    needles: 0,
    bos: true,
    seed: 0,
    trainedLength: flags.trainedLength,
  };
  const { job } = prepareCompare(model, tokenizer, texts, request);
  const identity = compareIdentity(job, {
    ...softwareIdentity(),
    files: await modelHashes(path, signal),
    precision: "auto",
  });
  const folder = runFolder("compare", model.name, identity, flags.out, null);
  const rows = await openEvaluationRun("compare", identity, folder);
  const line = progressLine();
  try {
    const threads = flags.threads === undefined ? {} : { threads: flags.threads };
    const loaded = await loadLanguageModel(path, { ...threads, signal });
    try {
      await runCompare(loaded, job, rows, {
        signal,
        onProgress: (step, share) => line.show(`${step.strategy.name}, ${step.kind}, %`, Math.round(100 * share), 100),
      });
    } finally {
      line.end();
      await loaded.dispose();
    }
    return { result: compareResult(identity, rows.rows), folder };
  } finally {
    await rows.close();
  }
}
