// The trainings behind the figures: every run by name, a folder a run (rows.jsonl, checkpoint.safetensors). Runs that are
// finished are skipped, interrupted ones go on from their last checkpoint, so this can be stopped and started at will.
//
//   node --import ./scripts/ts-hook.mjs experiments/train.ts OUT [names or parts of names…] [--threads 1] [--list]
//
// Names: built-in/ENCODING (1 million parameters, 256 tokens), ladder/ENCODING/SEED (0.2 million, 128 tokens),
// when/SHARE/SEED (RoPE dropped at that share of the run), norm/… (with norms of queries and keys), tune/SCALING/SEED
// (ladder/rope trained on at four times the length, under a scaling), long/… (thrice the steps; RoPE, none, dropped at
// half), no-bos/… (no token in front of a sequence).
// Text: the corpora sotu and moby-dick of the development dependencies.

import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { readCorpus } from "../src/cli/corpora.ts";
import type { RopeParameters } from "../src/encodings/index.ts";
import { onnxRuntimeBackend } from "../src/engine/index.ts";
import {
  bytesWithBos,
  decodeRunCheckpoint,
  encodeRunCheckpoint,
  type RecipeEncoding,
  type RecipeOptions,
  type RunCheckpoint,
  runRecipe,
  type TrainingRecipe,
  type TrainingRow,
  tokenBatches,
  trainingRecipe,
  validationBatches,
} from "../src/training/index.ts";

export interface Run {
  readonly name: string;
  readonly options: RecipeOptions;
  /** A run whose steps up to `at` are the same as this one's: its checkpoint there is where this one begins. */
  readonly sharedWith?: { readonly name: string; readonly at: number };
  /** A run whose weights this one begins with. */
  readonly from?: string;
  /** Steps whose checkpoints others begin at. */
  readonly keep?: readonly number[];
}

const encodings: readonly RecipeEncoding[] = ["rope", "none", "alibi", "t5", "learned", "sinusoidal"];
const seeds = [1, 2, 3];
// Every sequence begins with BOS: without an encoding that is what places are found by (no-bos/… are without).
const builtIn = { ...bytesWithBos, size: "small", length: 256, batchSize: 8, steps: 1500, learningRate: 3e-3 } as const;
const ladder = { ...bytesWithBos, size: "tiny", length: 128, batchSize: 16, steps: 800, learningRate: 4e-3 } as const;
/** Where DroPE drops: the paper's 14,000 of 16,000 steps would leave too few of so few to recalibrate. */
const dropShare = 0.75;
const at = (share: number): number => Math.round(share * ladder.steps);

export function runs(): Run[] {
  const out: Run[] = [];
  for (const encoding of encodings) {
    out.push({ name: `built-in/${encoding}`, options: { ...builtIn, encoding: [encoding], seed: 1 } });
  }
  const shares = [0.25, 0.5, dropShare, 0.9];
  for (const seed of seeds) {
    for (const encoding of encodings) {
      const keep = encoding === "rope" ? { keep: shares.map(at) } : {};
      out.push({ name: `ladder/${encoding}/${seed}`, options: { ...ladder, encoding: [encoding], seed }, ...keep });
    }
    for (const share of shares) {
      out.push({
        name: `when/${share}/${seed}`,
        options: { ...ladder, encoding: ["rope"], seed, dropAt: at(share) },
        sharedWith: { name: `ladder/rope/${seed}`, at: at(share) },
      });
    }
  }
  for (const seed of seeds) {
    const options = { ...ladder, vocabSize: 256, bosTokenId: null, encoding: ["none"] as const, seed };
    out.push({ name: `no-bos/none/${seed}`, options });
  }
  for (const seed of seeds) {
    // Thrice as long: what a drop at half of it makes of the rest, against as many steps with and without RoPE.
    const long = { ...ladder, steps: 3 * ladder.steps, seed };
    const half = long.steps / 2;
    out.push(
      { name: `long/rope/${seed}`, options: { ...long, encoding: ["rope"] }, keep: [half] },
      {
        name: `long/drope/${seed}`,
        options: { ...long, encoding: ["rope"], dropAt: half },
        sharedWith: { name: `long/rope/${seed}`, at: half },
      },
      { name: `long/none/${seed}`, options: { ...long, encoding: ["none"] } },
    );
  }
  for (const seed of seeds) {
    // Four times the length, as many tokens a step, a twentieth of the steps: the papers fine-tune briefly.
    const tune = { ...ladder, length: 512, batchSize: 4, steps: 60, warmup: 10, decay: 30, learningRate: 1e-3 };
    const ropeTheta = 10000;
    const scalings: Record<string, RopeParameters | null> = {
      none: null,
      linear: { ropeType: "linear", ropeTheta, factor: 4 },
      ntk: { ropeType: "ntk", ropeTheta, factor: 4 },
      yarn: { ropeType: "yarn", ropeTheta, factor: 4, originalMaxPositionEmbeddings: ladder.length },
    };
    for (const [name, scaling] of Object.entries(scalings)) {
      out.push({
        name: `tune/${name}/${seed}`,
        options: { ...tune, encoding: ["rope"], scaling, seed: seed + 100 },
        from: `ladder/rope/${seed}`,
      });
    }
  }
  for (const seed of seeds) {
    const options = { ...ladder, encoding: ["rope"] as const, seed, queryKeyNorm: true };
    out.push({ name: `norm/rope/${seed}`, options, keep: [at(dropShare)] });
    out.push({
      name: `norm/drope/${seed}`,
      options: { ...options, dropAt: at(dropShare) },
      sharedWith: { name: `norm/rope/${seed}`, at: at(dropShare) },
    });
  }
  return out;
}

export async function readRun(
  out: string,
  name: string,
): Promise<{ readonly recipe: TrainingRecipe; readonly checkpoint: RunCheckpoint } | null> {
  return readCheckpoint(join(out, name, "checkpoint.safetensors"));
}

async function readCheckpoint(
  path: string,
): Promise<{ readonly recipe: TrainingRecipe; readonly checkpoint: RunCheckpoint } | null> {
  if (!existsSync(path)) return null;
  return decodeRunCheckpoint(readFileSync(path));
}

function save(path: string, recipe: TrainingRecipe, checkpoint: RunCheckpoint): void {
  writeFileSync(`${path}.part`, encodeRunCheckpoint(recipe, checkpoint));
  renameSync(`${path}.part`, path);
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { threads: { type: "string", default: "1" }, list: { type: "boolean", default: false } },
  });
  const [out, ...wanted] = positionals;
  if (out === undefined) throw new RangeError("experiments/train: expected a folder for the runs, got none");
  const chosen = runs().filter(({ name }) => wanted.length === 0 || wanted.some((part) => name.startsWith(part)));
  if (values.list) {
    for (const { name } of chosen) console.log(name);
    return;
  }
  const corpus = await readCorpus(["sotu", "moby-dick"]);
  const backend = onnxRuntimeBackend({ provider: "node", flushDenormals: true });
  const controller = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) process.on(name, () => controller.abort());
  for (const run of chosen) {
    const folder = join(out, run.name);
    const file = join(folder, "checkpoint.safetensors");
    mkdirSync(folder, { recursive: true });
    const recipe = trainingRecipe(run.options);
    const own = await readCheckpoint(file);
    if (own !== null && JSON.stringify(own.recipe) !== JSON.stringify(recipe)) {
      throw new RangeError(`${folder}: expected a run of the same recipe, got another; remove it to train anew`);
    }
    if (own?.checkpoint.step === recipe.steps) continue;
    const begin = run.from === undefined ? null : await readRun(out, run.from);
    const kept = (step: number) => join(folder, `checkpoint-${step}.safetensors`);
    const { sharedWith } = run;
    const shared =
      sharedWith === undefined
        ? null
        : await readCheckpoint(join(out, sharedWith.name, `checkpoint-${sharedWith.at}.safetensors`));
    if ((run.from !== undefined && begin === null) || (sharedWith !== undefined && shared === null)) {
      console.log(`${run.name}: waits for ${run.from ?? sharedWith?.name}`);
      continue;
    }
    const checkpoint = own?.checkpoint ?? shared?.checkpoint;
    const { batchSize, length, seed, bosTokenId } = recipe;
    const started = performance.now();
    let saved = started;
    console.log(
      `${new Date().toISOString().slice(11, 19)} ${run.name} from step ${checkpoint?.step ?? 0} of ${recipe.steps}`,
    );
    const rows: TrainingRow[] = readRows(join(folder, "rows.jsonl")).filter(
      ({ step }) => checkpoint !== undefined && step <= checkpoint.step,
    );
    const result = await runRecipe({
      recipe,
      backend,
      threads: Number(values.threads),
      data: tokenBatches(corpus.train, { batchSize, length, seed, bosTokenId }),
      validation: validationBatches(corpus.validation, { length, tokens: 16384, bosTokenId }),
      validateEvery: Math.round(recipe.steps / 10),
      signal: controller.signal,
      ...(checkpoint === undefined ? {} : { checkpoint }),
      ...(begin === null ? {} : { weights: begin.checkpoint.weights }),
      onRow: (row) => {
        rows.push(row);
        writeFileSync(join(folder, "rows.jsonl"), rows.map((one) => `${JSON.stringify(one)}\n`).join(""));
        if (row.kind === "validation") console.log(`  step ${row.step} validation ${row.loss.toFixed(4)}`);
      },
      onStep: async ({ step }, capture) => {
        if (run.keep?.includes(step)) save(kept(step), recipe, await capture());
        if (performance.now() - saved < 60_000) return;
        saved = performance.now();
        save(file, recipe, await capture());
      },
    });
    save(file, recipe, result.checkpoint);
    const steps = result.checkpoint.step - (checkpoint?.step ?? 0);
    const seconds = (performance.now() - started) / 1000;
    console.log(`  ${Math.round((steps * batchSize * length) / seconds)} tokens a second`);
    if (!result.finished) return;
  }
}

function readRows(path: string): TrainingRow[] {
  if (!existsSync(path)) return [];
  return readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as TrainingRow);
}

if (process.argv[1]?.endsWith("experiments/train.ts")) await main();
