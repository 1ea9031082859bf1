// longhand drop: removes a model's position encoding, recalibrates it at its own length, and finds the temperature that
// lets it read further (DroPE, Gelberg et al. 2025, 2512.12167).

import { stat } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Command } from "commander";
import { Option } from "commander";
import { type LanguageModel, loadLanguageModel } from "../engine/index.ts";
import { type RunRow, windowTokens } from "../evaluation/index.ts";
import {
  bytesWithBos,
  type ExportDtype,
  initialWeights,
  modelLayout,
  readTrainable,
  recipeFrom,
  type TrainableModel,
  type TrainingRecipe,
  tokenBatches,
  trainingPlan,
  unpackWeights,
  validationBatches,
} from "../training/index.ts";
import { readCorpus } from "./corpora.ts";
import { interruptible } from "./interrupt.ts";
import { numberAtLeast, seedNumber, tokenCount } from "./options.ts";
import { progressLine } from "./progress.ts";
import { palette } from "./terminal.ts";
import { decimalCount, defaultFolder, heldOut, weightsHash } from "./train.ts";
import { saveModel, trainInFolder } from "./training-run.ts";

interface Flags {
  readonly tokens: number;
  readonly learningRate?: number;
  readonly warmup?: number;
  readonly batch?: number;
  readonly qkNorm?: boolean;
  readonly seed?: number;
  readonly text?: string[];
  readonly out?: string;
  readonly dtype: ExportDtype;
  readonly threads?: number;
  readonly json?: boolean;
}

const help = `
The encoding is removed from every layer (cos 1, sin 0), and the model is trained on at its own length until it reads
there as before. Then the temperature 1 + c·ln(length / trained length) is fitted on text that was not trained on, at
2, 4 and 8 times the trained length, and stored in config.json, where this library follows it.
RUN is a run folder of longhand train, a model's folder, or the name of a built-in model; with RoPE, ALiBi or sinusoidal
positions, and a vocabulary of bytes.

Examples:
  longhand drop longhand-rope
  longhand drop runs/rope --tokens 500k --qk-norm --out runs/drope`;

/** Lengths that the temperature is fitted at, in trained lengths. */
const multiples = [2, 4, 8] as const;

export function addDrop(program: Command): void {
  program
    .command("drop")
    .summary("remove a model's position encoding, and recalibrate it")
    .description(
      "Remove a model's position encoding (DroPE): recalibrate it at its own length, then see how far it reads.",
    )
    .argument("<run>", "a run folder, a model's folder, or a built-in model")
    .option("--tokens <n>", "tokens to recalibrate on", decimalCount, 500_000)
    .option("--learning-rate <rate>", "the highest (default: 1e-3)", numberAtLeast(0, { exclusive: true }))
    .option("--warmup <steps>", "steps in which it rises", numberAtLeast(0))
    .option("--batch <n>", "sequences a step", tokenCount)
    .option("--qk-norm", "normalise queries and keys from now on")
    .option("--seed <n>", "of the data's order (default: 0)", seedNumber)
    .option("--text <names...>", "text files, or sotu, moby-dick (default: both of these)")
    .option("--out <folder>", "the run folder (default: one in longhand-runs)")
    .addOption(new Option("--dtype <kind>", "of the model's file").choices(["f32", "f16", "bf16"]).default("f32"))
    .option("--threads <n>", "threads of a step", tokenCount)
    .option("--json", "print one JSON document")
    .addHelpText("after", help)
    .action((run: string, flags: Flags) => interruptible((signal) => drop(run, flags, signal)));
}

async function drop(path: string, flags: Flags, signal: AbortSignal): Promise<void> {
  const before = await readTrainable(await modelOf(path));
  const positions = before.model.encoding.filter((name) => name !== "none");
  const fixed = ["rope", "alibi", "sinusoidal"];
  if (positions.length === 0) {
    throw new RangeError(`expected a model with positions to drop, got ${before.name}, which has none`);
  }
  const trained = positions.find((name) => !fixed.includes(name));
  if (trained !== undefined) {
    throw new RangeError(`expected ${fixed.join(", ")} positions to drop, got ${trained}, whose numbers are trained`);
  }
  const { vocabSize, bosTokenId } = before.model;
  if (vocabSize !== 256 && !(vocabSize === bytesWithBos.vocabSize && bosTokenId === bytesWithBos.bosTokenId)) {
    throw new RangeError(`expected a model of bytes (256 ids, or 257 with BOS), got ${vocabSize} ids`);
  }
  const { learningRate = 1e-3, warmup, batch, seed } = flags;
  const recipe = recipeFrom(
    {
      ...before,
      model: {
        ...before.model,
        encoding: ["none"],
        scaling: null,
        queryKeyNorm: before.model.queryKeyNorm || flags.qkNorm === true,
      },
    },
    {
      tokens: flags.tokens,
      learningRate,
      ...(warmup === undefined ? {} : { warmup }),
      ...(batch === undefined ? {} : { batchSize: batch }),
      ...(seed === undefined ? {} : { seed }),
    },
  );
  const { batchSize, length } = recipe;
  const corpus = await readCorpus(flags.text ?? ["sotu", "moby-dick"]);
  const identity = { drop: before.name, weights: await weightsHash(before), text: corpus.hash };
  const folder = flags.out ?? defaultFolder("drop", recipe, identity, before.name);
  const { bold, dim } = palette;
  if (!flags.json) {
    process.stdout.write(
      `${bold(`${before.name}: ${[...new Set(positions)].join(", ")} removed`)}, recalibrated at ${length} tokens\n` +
        `${dim(`${corpus.sources.map(({ name }) => name).join(", ")}; run folder ${folder}`)}\n\n`,
    );
  }
  const { run, checkpoint, seconds } = await trainInFolder(
    {
      folder,
      recipe,
      data: tokenBatches(corpus.train, { batchSize, length, seed: recipe.seed, bosTokenId }),
      validation: validationBatches(corpus.validation, heldOut(corpus, recipe)),
      identity,
      weights: withFreshNorms(before, recipe),
      prints: !flags.json,
      ...(flags.threads === undefined ? {} : { threads: flags.threads }),
    },
    signal,
  );
  try {
    const plain = await saveModel(folder, { recipe, checkpoint, dtype: flags.dtype });
    const fit = await fitTemperature(await modelOf(path), plain, corpus.validation, recipe, signal);
    const model = await saveModel(folder, {
      recipe,
      checkpoint,
      dtype: flags.dtype,
      ...(fit.coefficient > 0
        ? { logitTemperature: { kind: "drope" as const, coefficient: fit.coefficient, trainedLength: length } }
        : {}),
    });
    for (const row of fit.rows) await run.append(row);
    if (flags.json) {
      const lengths = fit.rows.map(({ key: _, kind: __, step: ___, ...row }) => row);
      process.stdout.write(
        `${JSON.stringify({ run: folder, model, recipe, coefficient: fit.coefficient, lengths, seconds })}\n`,
      );
      return;
    }
    process.stdout.write(`\n${report(fit.rows, fit.coefficient).join("\n")}\n${dim("model")} ${model}\n`);
  } finally {
    await run.close();
  }
}

/** A run folder's model, where it has one. */
async function modelOf(path: string): Promise<string> {
  const model = join(path, "model");
  const has = async (file: string): Promise<boolean> => (await stat(file).catch(() => null)) !== null;
  if ((await has(join(path, "manifest.json"))) && !(await has(join(model, "config.json")))) {
    throw new RangeError(`${path}: expected a finished run, with a folder ${basename(model)}, got none; let it finish`);
  }
  return (await has(join(model, "config.json"))) ? model : path;
}

/** The weights, with norms of queries and keys as they begin where the model had none. */
function withFreshNorms(before: TrainableModel, recipe: ReturnType<typeof recipeFrom>): TrainableModel["weights"] {
  const { spec, encodings } = trainingPlan(recipe);
  const layout = modelLayout({ spec, encodings, length: recipe.length });
  const fresh = unpackWeights(layout, initialWeights(layout, recipe.seed));
  return new Map([...fresh].map(([name, value]) => [name, before.weights.get(name) ?? value]));
}

interface Fit {
  /** c, 0 where no temperature helps. */
  readonly coefficient: number;
  readonly rows: readonly RunRow[];
}

/** Tokens at each length: means of a few thousand tokens differ by less than the grid's steps. */
const fitTokens = 8192;

/** The c with the least loss, summed over the lengths, of 0 to 0.6 in steps of 0.02. */
async function fitTemperature(
  before: string,
  after: string,
  text: Uint8Array,
  { length: trained, bosTokenId }: TrainingRecipe,
  signal: AbortSignal,
): Promise<Fit> {
  const lengths = multiples.map((factor) => factor * trained).filter((length) => length < text.length);
  const line = progressLine();
  const [old, model] = [await loadLanguageModel(before, { signal }), await loadLanguageModel(after, { signal })];
  try {
    const losses = async (of: LanguageModel, length: number, coefficient: number | null): Promise<number> => {
      const windows = Math.max(1, Math.min(Math.floor(fitTokens / length), Math.floor(text.length / (length + 1))));
      let [sum, count] = [0, 0];
      for (let i = 0; i < windows; i++) {
        const start = Math.floor((i * (text.length - length - 1)) / Math.max(1, windows - 1));
        const { negativeLogLikelihood } = await of.score(windowTokens(text, start, length + 1, bosTokenId), {
          signal,
          ...(coefficient === null || coefficient === 0
            ? {}
            : { logitTemperature: { kind: "drope" as const, coefficient, trainedLength: trained } }),
        });
        for (const loss of negativeLogLikelihood) sum += loss;
        count += negativeLogLikelihood.length;
      }
      return sum / count;
    };
    const grid = Array.from({ length: 31 }, (_, i) => i / 50);
    let best = { coefficient: 0, total: Number.POSITIVE_INFINITY, at: [] as number[] };
    let plain: number[] = [];
    let worse = 0;
    for (const [i, coefficient] of grid.entries()) {
      line.show("fitting the temperature", i, grid.length);
      const at: number[] = [];
      for (const length of lengths) at.push(await losses(model, length, coefficient));
      if (coefficient === 0) plain = at;
      const total = at.reduce((sum, x) => sum + x, 0);
      if (total < best.total) {
        best = { coefficient, total, at };
        worse = 0;
      } else if (++worse >= 4) {
        break;
      }
    }
    const rows: RunRow[] = [];
    const step = 0;
    const row = async (length: number, dropped: number, tempered: number): Promise<void> => {
      const before = await losses(old, length, null);
      rows.push({ key: `drop:${length}`, kind: "drop", step, length, before, dropped, tempered });
    };
    const short = await losses(model, trained, null);
    await row(trained, short, short);
    for (const [i, length] of lengths.entries()) await row(length, plain[i]!, best.at[i]!);
    return { coefficient: best.coefficient, rows };
  } finally {
    line.end();
    await old.dispose();
    await model.dispose();
  }
}

function report(rows: readonly RunRow[], coefficient: number): string[] {
  const { bold, dim } = palette;
  const cell = (value: unknown): string => (value as number).toFixed(4).padStart(12);
  return [
    dim(`${"length".padStart(9)}${"before".padStart(12)}${"dropped".padStart(12)}${"tempered".padStart(12)}`),
    ...rows.map(
      ({ length, before, dropped, tempered }) =>
        `${(length as number).toLocaleString("en").padStart(9)}${cell(before)}${cell(dropped)}${cell(tempered)}`,
    ),
    "",
    coefficient > 0
      ? `temperature ${bold(`1 + ${coefficient}·ln(length / trained)`)}`
      : "no temperature lowers the loss at these lengths",
  ];
}
