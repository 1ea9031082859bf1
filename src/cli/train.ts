// longhand train: a small model with any position encoding, on text or a synthetic task.

import type { Command } from "commander";
import { InvalidArgumentError, Option } from "commander";
import { loadLanguageModel } from "../engine/index.ts";
import { type JsonRecord, jsonHash, lossByDoubling, type RunRow, windowTokens } from "../evaluation/index.ts";
import { parseRopeParameters } from "../formats/huggingface/index.ts";
import { parseStrategy, shortForm } from "../models/index.ts";
import {
  bytesWithBos,
  createTask,
  type ExportDtype,
  evaluateTask,
  type RecipeEncoding,
  type RecipeOptions,
  type RunOptions,
  readTrainable,
  recipeEncodings,
  recipeFrom,
  recipeSizes,
  type Task,
  type TrainableModel,
  type Trainer,
  type TrainingRecipe,
  taskBatches,
  taskLength,
  taskNames,
  tokenBatches,
  trainingRecipe,
  type ValidationOptions,
  validationBatches,
} from "../training/index.ts";
import { type Corpus, readCorpus } from "./corpora.ts";
import { runsFolder } from "./evaluation-run.ts";
import { interruptible } from "./interrupt.ts";
import { numberAtLeast, seedNumber, tokenCount } from "./options.ts";
import { palette } from "./terminal.ts";
import { saveModel, type TrainingJob, trainInFolder } from "./training-run.ts";

interface Flags {
  readonly encoding?: RecipeEncoding[];
  readonly size?: keyof typeof recipeSizes;
  readonly layers?: number;
  readonly width?: number;
  readonly heads?: number;
  readonly blocks?: TrainingRecipe["blocks"];
  readonly qkNorm?: boolean;
  readonly theta?: number;
  readonly scaling?: string;
  readonly length?: number;
  readonly batch?: number;
  readonly tokens?: number;
  readonly steps?: number;
  readonly learningRate?: number;
  readonly warmup?: number;
  readonly decay?: number;
  readonly dropAt?: number;
  readonly seed?: number;
  readonly bos: boolean;
  readonly text?: string[];
  readonly task?: string;
  readonly taskSizes?: [number, number];
  readonly from?: string;
  readonly out?: string;
  readonly dtype: ExportDtype;
  readonly threads?: number;
  readonly json?: boolean;
}

const help = `
Encodings: ${recipeEncodings.join(", ")}. Several, with commas, repeat over the layers:
rope,rope,rope,none is SmolLM3's pattern. Sizes: ${Object.entries(recipeSizes)
  .map(([name, { hiddenSize, numLayers }]) => `${name} (${numLayers} layers of ${hiddenSize})`)
  .join(", ")}.
The vocabulary is bytes, and a BOS in front of every sequence of text. A twentieth of the text is kept for validation and never trained on.
The run folder holds manifest.json, rows.jsonl, checkpoint.safetensors and, at the end, model/ in Hugging Face form
(Llama, Qwen 3, SmolLM3, MPT, BLOOM, GPT-2; the own form of docs/longhand-form.md where no class fits). Ctrl-C saves;
the same command goes on.

Examples:
  longhand train --encoding alibi --tokens 200000
  longhand train --encoding rope --size small --length 256 --tokens 5M --text novel.txt --out runs/rope
  longhand train --encoding alibi --blocks mpt --out runs/mpt      (a folder that transformers loads as MPT)
  longhand train --encoding none --task copy --task-sizes 1-20
  longhand train --from runs/rope/model --scaling linear:4 --length 1024 --tokens 500k   (as Position Interpolation)`;

export function addTrain(program: Command): void {
  program
    .command("train")
    .summary("train a small model with any position encoding")
    .description("Train a small model: any position encoding, your text or a synthetic task; see how far it reads.")
    .option("--encoding <names>", "of every layer, or a pattern that repeats over them (default: rope)", encodingNames)
    .addOption(new Option("--size <name>", "width and depth (default: small)").choices(Object.keys(recipeSizes)))
    .option("--layers <n>", "layers, in place of the size's", tokenCount)
    .option("--width <n>", "width, in place of the size's", tokenCount)
    .option("--heads <n>", "attention heads, in place of the size's", tokenCount)
    .addOption(
      new Option("--blocks <kind>", "what layers are made of (default: llama)").choices([
        "llama",
        "gpt2",
        "mpt",
        "bloom",
      ]),
    )
    .option("--qk-norm", "normalise queries and keys of each head")
    .option("--theta <base>", "base of RoPE (default: 10000)", numberAtLeast(0, { exclusive: true }))
    .option("--scaling <form>", "a rotary scaling to train under: linear:F, ntk:F, yarn:F, llama3:F, or JSON")
    .option("--length <tokens>", "tokens of a training sequence (default: 256)", tokenCount)
    .option("--batch <n>", "sequences a step (default: 2048 tokens' worth)", tokenCount)
    .option("--tokens <n>", "tokens to train on, as 200000, 500k, 4M (default: 4M)", decimalCount)
    .option("--steps <n>", "steps, in place of --tokens", tokenCount)
    .option("--learning-rate <rate>", "the highest", numberAtLeast(0, { exclusive: true }))
    .option("--warmup <steps>", "steps in which the rate rises", numberAtLeast(0))
    .option("--decay <steps>", "last steps, in which it falls (default: a fifth)", numberAtLeast(0))
    .option("--drop-at <share>", "remove the encoding at this share of the run (DroPE)", numberAtLeast(0, { most: 1 }))
    .option("--seed <n>", "of weights and data (default: 0)", seedNumber)
    .option("--no-bos", "of a text: sequences begin anywhere, without a token in front that marks the beginning")
    .option("--text <names...>", "text files, or sotu, moby-dick (default: both of these)")
    .option("--task <name>", `a synthetic task instead: ${taskNames.join(", ")}`)
    .option("--task-sizes <range>", "sizes of its examples in training (default: 1-20)", sizeRange)
    .option("--from <model>", "train this model on: its sizes and encoding are kept")
    .option("--out <folder>", "the run folder (default: one in longhand-runs, by what is trained)")
    .addOption(new Option("--dtype <kind>", "of the model's file").choices(["f32", "f16", "bf16"]).default("f32"))
    .option("--threads <n>", "threads of a step", tokenCount)
    .option("--json", "print one JSON document")
    .addHelpText("after", help)
    .action((flags: Flags) => interruptible((signal) => train(flags, signal)));
}

async function train(flags: Flags, signal: AbortSignal): Promise<void> {
  if (flags.task !== undefined && flags.text !== undefined) {
    throw new RangeError("expected one of --text and --task, got both");
  }
  if (flags.task === undefined && flags.taskSizes !== undefined) {
    throw new RangeError("--task-sizes: expected --task beside it, got none");
  }
  const from = flags.from === undefined ? null : await readTrainable(flags.from);
  const task = flags.task === undefined ? null : createTask(flags.task);
  const sizes = flags.taskSizes ?? [1, 20];
  const recipe = recipeOf(flags, from, task === null ? undefined : taskLength(task, sizes[1]));
  const { batchSize, length, seed, bosTokenId } = recipe;
  const beginning = from === null ? {} : { from: from.name, weights: await weightsHash(from) };
  let corpus: Corpus | null = null;
  let job: Pick<TrainingJob, "data" | "identity" | "validation">;
  const taskRows: RunRow[] = [];
  if (task === null) {
    corpus = await readCorpus(flags.text ?? ["sotu", "moby-dick"]);
    job = {
      data: tokenBatches(corpus.train, { batchSize, length, seed, bosTokenId }),
      validation: validationBatches(corpus.validation, heldOut(corpus, recipe)),
      identity: { text: corpus.hash, sources: corpus.sources.map((one) => ({ ...one })), ...beginning },
    };
  } else {
    job = {
      data: taskBatches(task, { batchSize, length, seed, sizes }),
      validation: taskValidation(task, sizes, recipe, taskRows),
      identity: { task: task.name, format: task.format, sizes, ...beginning },
    };
  }
  const folder = flags.out ?? defaultFolder("train", recipe, { ...job.identity }, flags.task);
  const { bold, dim } = palette;
  if (!flags.json) {
    const what =
      task === null ? `${corpus!.sources.map(({ name }) => name).join(", ")}` : `${task.name} ${task.format}`;
    process.stdout.write(`${bold(describe(recipe))}\n${dim(`${what}; run folder ${folder}`)}\n\n`);
  }
  const { run, checkpoint, seconds, tokens } = await trainInFolder(
    {
      folder,
      recipe,
      ...job,
      prints: !flags.json,
      ...(from === null ? {} : { weights: from.weights }),
      ...(flags.threads === undefined ? {} : { threads: flags.threads }),
    },
    signal,
  );
  try {
    const model = await saveModel(folder, { recipe, checkpoint, dtype: flags.dtype });
    for (const row of taskRows) await run.append(row);
    if (corpus !== null) {
      for (const row of await lossByLength(model, corpus.validation, recipe, signal)) await run.append(row);
    }
    const rows = run.rows;
    const last = rows.findLast(({ kind }) => kind === "validation");
    const lengths = rows.filter(({ kind }) => kind === "position");
    const taskResults = rows.filter(({ kind }) => kind === "task");
    if (flags.json) {
      const document = {
        run: folder,
        model,
        recipe,
        tokens: recipe.steps * batchSize * length,
        trainingLoss: rows.findLast(({ kind }) => kind === "train")?.loss ?? null,
        validationLoss: last?.loss ?? null,
        positions: lengths.map(({ key: _, kind: __, ...row }) => row),
        task: taskResults.map(({ key: _, kind: __, ...row }) => row),
        seconds,
        tokensPerSecond: tokens === 0 ? null : tokens / seconds,
      };
      process.stdout.write(`${JSON.stringify(document)}\n`);
      return;
    }
    process.stdout.write(`${summary(lengths, taskResults, length).join("\n")}\n`);
    process.stdout.write(`${dim("model")} ${model}\n${dim(`try: longhand inspect ${model} --target 4x`)}\n`);
  } finally {
    await run.close();
  }
}

/** What validation reads: so much that its 20 times cost about a tenth of the run, within what the text has. */
export function heldOut({ validation }: Corpus, recipe: TrainingRecipe): ValidationOptions {
  const { length, steps, batchSize, bosTokenId } = recipe;
  const affordable = (steps * batchSize * length) / 64;
  return {
    length,
    bosTokenId,
    batchSize: Math.max(1, Math.min(8, Math.floor((validation.length - 1) / length))),
    tokens: Math.min(65536, Math.max(8 * length, affordable)),
  };
}

function recipeOf(flags: Flags, from: TrainableModel | null, taskTokens: number | undefined): TrainingRecipe {
  const { blocks, qkNorm, theta, length = taskTokens, batch, tokens, steps, learningRate, warmup, decay, seed } = flags;
  const model: Partial<RecipeOptions> = {
    ...(flags.encoding === undefined ? {} : { encoding: flags.encoding }),
    ...(flags.size === undefined ? {} : { size: flags.size }),
    ...(flags.layers === undefined ? {} : { numLayers: flags.layers }),
    ...(flags.width === undefined ? {} : { hiddenSize: flags.width, intermediateSize: mlpWidth(flags.width, blocks) }),
    ...(flags.heads === undefined ? {} : { numHeads: flags.heads }),
    ...(blocks === undefined ? {} : { blocks }),
    ...(qkNorm === undefined ? {} : { queryKeyNorm: qkNorm }),
    ...(theta === undefined ? {} : { ropeTheta: theta }),
  };
  const given = [...Object.keys(model), ...(flags.bos ? [] : ["bosTokenId"])];
  if (from !== null && given.length > 0) {
    throw new RangeError(`--from: expected the model's own ${given.join(" and ")}, got another; leave it out`);
  }
  const run: Partial<RecipeOptions> = {
    ...(length === undefined ? {} : { length }),
    ...(batch === undefined ? {} : { batchSize: batch }),
    ...(tokens === undefined ? {} : { tokens }),
    ...(steps === undefined ? {} : { steps }),
    ...(learningRate === undefined ? {} : { learningRate }),
    ...(warmup === undefined ? {} : { warmup }),
    ...(decay === undefined ? {} : { decay }),
    ...(seed === undefined ? {} : { seed }),
  };
  const trainedLength = from?.trainedLength ?? length ?? 256;
  const ropeTheta = from?.model.ropeTheta ?? theta ?? 10000;
  const scaling = flags.scaling === undefined ? {} : { scaling: parseScaling(flags.scaling, ropeTheta, trainedLength) };
  const options = { ...model, ...run, ...scaling };
  const make = (more: Partial<RecipeOptions>): TrainingRecipe =>
    from === null
      ? trainingRecipe({
          encoding: ["rope"],
          // A task's examples begin with its name.
          ...(flags.bos && flags.task === undefined ? bytesWithBos : {}),
          ...options,
          ...more,
        })
      : recipeFrom(from, { ...options, ...more });
  const recipe = make({});
  return flags.dropAt === undefined ? recipe : make({ dropAt: Math.round(flags.dropAt * recipe.steps) });
}

function mlpWidth(width: number, blocks: Flags["blocks"]): number {
  return blocks === undefined || blocks === "llama" ? 32 * Math.ceil((8 * width) / 3 / 32) : 4 * width;
}

/** `linear:4` and the like for a model of this length, or a rope_parameters object; null for none. */
function parseScaling(text: string, ropeTheta: number, trainedLength: number): TrainingRecipe["scaling"] {
  const strategy = parseStrategy(text);
  const trained = { ropeTheta, originalMaxPositionEmbeddings: trainedLength };
  switch (strategy.kind) {
    case "none":
      return null;
    case "short":
      return shortForm(strategy, trained);
    case "parameters":
      return parseRopeParameters(strategy.value, {
        where: "--scaling",
        ...trained,
        maxPositionEmbeddings: trainedLength,
      }).rope;
    case "as-is":
    case "drop":
    case "self-extend":
      throw new RangeError(
        `--scaling: expected a scaling to train under, got ${strategy.kind}; --drop-at removes the encoding`,
      );
  }
}

function taskValidation(
  task: Task,
  [smallest, largest]: readonly [number, number],
  recipe: TrainingRecipe,
  rows: RunRow[],
): NonNullable<RunOptions["validation"]> {
  const inside = [...new Set([smallest, Math.round((smallest + largest) / 2), largest])];
  const evaluate = (trainer: Trainer, sizes: number[], count: number) =>
    evaluateTask(trainer, task, { sizes, count, seed: 1 });
  return async (trainer: Trainer) => {
    const results = await evaluate(trainer, inside, 32);
    if (trainer.step === recipe.steps) {
      const wanted = [largest, ...[1.25, 1.5, 2, 3].map((factor) => Math.round(factor * largest))];
      const fits = wanted.filter(
        (size) =>
          size <= task.maxSize && (!recipe.encoding.includes("learned") || taskLength(task, size) <= recipe.length),
      );
      for (const { size, ...result } of await evaluate(trainer, [...new Set(fits)], 100)) {
        rows.push({ key: `task:${size}`, kind: "task", step: recipe.steps, size, ...result });
      }
    }
    const mean = (get: (one: (typeof results)[number]) => number): number =>
      results.reduce((sum, one) => sum + get(one), 0) / results.length;
    return { loss: mean(({ meanLoss }) => meanLoss), accuracy: mean(({ accuracy }) => accuracy) };
  };
}

/** The loss by position on text that was not trained on, to four times the training length. */
async function lossByLength(
  path: string,
  text: Uint8Array,
  { length: trained, steps: step, bosTokenId }: TrainingRecipe,
  signal: AbortSignal,
): Promise<RunRow[]> {
  const model = await loadLanguageModel(path, { signal });
  try {
    // A learned table has a row for every token that is fed, and no more.
    const isTable = model.description.groups.some(({ position }) => position.kind === "learned");
    const length = isTable ? trained : 4 * trained + 1;
    const count = Math.min(16, Math.floor(text.length / length));
    const windows: Float64Array[] = [];
    for (let i = 0; i < count; i++) {
      const start = Math.floor((i * (text.length - length)) / Math.max(1, count - 1));
      const { negativeLogLikelihood } = await model.score(windowTokens(text, start, length, bosTokenId), { signal });
      windows.push(negativeLogLikelihood);
    }
    if (windows.length === 0) return [];
    // A row's position counts predicted tokens from 0.
    return lossByDoubling(windows, trained).map(({ from, to, mean, low, high }) => ({
      key: `position:${from - 1}`,
      kind: "position",
      step,
      position: [from - 1, to - 1],
      loss: mean,
      low,
      high,
      windows: count,
    }));
  } finally {
    await model.dispose();
  }
}

export async function weightsHash({ weights }: TrainableModel): Promise<string> {
  const { createHash } = await import("node:crypto");
  const hash = createHash("sha256");
  for (const [name, { data }] of weights) hash.update(name).update(data);
  return hash.digest("hex");
}

function describe(recipe: TrainingRecipe): string {
  const { encoding, numLayers, hiddenSize, length, steps, batchSize, dropAt } = recipe;
  const tokens = (steps * batchSize * length).toLocaleString("en");
  const dropped = dropAt === null ? "" : `, dropped at step ${dropAt.toLocaleString("en")}`;
  const scaled = recipe.scaling === null ? "" : ` under ${recipe.scaling.ropeType}`;
  return `${encoding.join(",")}${scaled}: ${numLayers} layers of ${hiddenSize}, ${length} tokens a sequence, ${tokens} in all${dropped}`;
}

/** Another recipe or text has another folder; the same command finds its own again. */
export function defaultFolder(command: string, recipe: TrainingRecipe, data: JsonRecord, what?: string): string {
  const hash = jsonHash({ recipe: recipe as unknown as JsonRecord, ...data }).slice(0, 6);
  return `${runsFolder}/${[command, what ?? recipe.encoding.join("-"), hash].join("-")}`;
}

function summary(positions: readonly RunRow[], task: readonly RunRow[], trained: number): string[] {
  const { bold, warn } = palette;
  const lines = [""];
  for (const row of positions) {
    const [from, to] = row.position as [number, number];
    const [loss, low, high] = [row.loss as number, row.low as number, row.high as number];
    const inside = to <= trained;
    const range = `${(from + 1).toLocaleString("en")} to ${to.toLocaleString("en")}`;
    const text = `loss at positions ${range.padEnd(16)} ${loss.toFixed(3)}  (${low.toFixed(3)} to ${high.toFixed(3)})`;
    lines.push(
      inside
        ? bold(text)
        : loss > (positions[0]!.high as number)
          ? warn(`${text}, worse than within the trained length`)
          : text,
    );
  }
  for (const row of task) {
    const [accuracy, low, high] = [row.accuracy as number, row.low as number, row.high as number];
    const percent = (share: number): string => `${(100 * share).toFixed(0)} %`;
    lines.push(
      `size ${String(row.size).padStart(4)}: ${percent(accuracy).padStart(5)} right (${percent(low)} to ${percent(high)})`,
    );
  }
  return lines;
}

function encodingNames(text: string): RecipeEncoding[] {
  const names = text.split(",").map((name) => name.trim());
  for (const name of names) {
    if ((recipeEncodings as readonly string[]).includes(name)) continue;
    throw new InvalidArgumentError(`expected names of ${recipeEncodings.join(", ")}, got ${JSON.stringify(name)}.`);
  }
  return names as RecipeEncoding[];
}

/** 200000, 500k (× 1000), 4M: tokens of a budget, counted in tens. */
export function decimalCount(text: string): number {
  const match = /^(\d[\d_,]*(?:\.\d+)?)([kKmM]?)$/.exec(text.trim());
  const scale = { "": 1, k: 1e3, m: 1e6 }[(match?.[2] ?? "").toLowerCase()] ?? 1;
  const count = match === null ? Number.NaN : Number(match[1]!.replace(/[_,]/g, "")) * scale;
  if (!Number.isSafeInteger(count) || count < 1) {
    throw new InvalidArgumentError("expected a number of tokens of at least 1, as 200000, 500k or 4M.");
  }
  return count;
}

function sizeRange(text: string): [number, number] {
  const match = /^(\d+)-(\d+)$/.exec(text.trim());
  if (match === null || Number(match[1]) > Number(match[2])) {
    throw new InvalidArgumentError("expected a range of sizes, as 1-20.");
  }
  return [Number(match[1]), Number(match[2])];
}
