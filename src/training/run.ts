// The loop of a run: batches through a Trainer, a row of numbers now and then, a checkpoint at the caller's pace. It knows
// no files: who calls it writes rows and checkpoints, so the same loop runs in Node and in a page. Every row and weight is
// a function of the recipe and the data alone, interrupted or not; speeds are the exception.

import type { Backend } from "../engine/index.ts";
import type { Tensor } from "../tensor/index.ts";
import { decodeTrainingCheckpoint, encodeTrainingCheckpoint } from "./checkpoint.ts";
import type { Batch, BatchSource } from "./data.ts";
import { modelLayout } from "./program.ts";
import { encodingsAt, type TrainingRecipe, trainingPlan } from "./recipe.ts";
import { Trainer, type TrainingCheckpoint } from "./trainer.ts";
import { widthScaledWeights } from "./width-scaled.ts";

/** What is said of a run while it goes on. */
export type TrainingRow =
  | {
      readonly kind: "train";
      /** Steps done. */
      readonly step: number;
      /** Tokens seen. */
      readonly tokens: number;
      /** Mean loss in nats a token, of the batches since the row before, each before its update. */
      readonly loss: number;
      /** Of the last step, before clipping. */
      readonly gradientNorm: number;
      readonly learningRate: number;
    }
  | {
      readonly kind: "validation";
      readonly step: number;
      readonly tokens: number;
      /** Mean loss in nats a token of what is not trained on, at the training length. */
      readonly loss: number;
      /** Of a task: share of its examples whose every token is the likeliest. */
      readonly accuracy?: number;
    };

export interface Validation {
  readonly loss: number;
  readonly accuracy?: number;
}

/** Where a run goes on: the trainer's state, and the losses that no row has told yet. */
export interface RunCheckpoint extends TrainingCheckpoint {
  readonly pendingLosses: readonly number[];
}

export interface RunOptions {
  readonly recipe: TrainingRecipe;
  readonly backend: Backend;
  readonly data: BatchSource;
  /** Batches whose loss is told beside, or what else is to be told of the model as it stands. */
  readonly validation?: readonly Batch[] | ((trainer: Trainer) => Promise<Validation>);
  /** Steps between rows of training; 20 when absent, or fewer where validation comes more often. */
  readonly rowEvery?: number;
  /** Steps between rows of validation; a twentieth of the run when absent. */
  readonly validateEvery?: number;
  /** Weights to begin with, by our names: a fine-tuning. Those of the model that they lack begin as the recipe's seed has
   *  them. */
  readonly weights?: ReadonlyMap<string, Tensor>;
  readonly checkpoint?: RunCheckpoint;
  readonly threads?: number;
  /** Parts of a batch, one after the other; 1 when absent. */
  readonly microBatches?: number;
  /** Stops before the next step; the run can go on from the checkpoint that is returned. */
  readonly signal?: AbortSignal;
  /** A row, in order. */
  readonly onRow?: (row: TrainingRow) => void | Promise<void>;
  /** Whether a run that goes on from a checkpoint tells a row of validation before its first step, as a fresh one does. */
  readonly validateFirst?: boolean;
  /** Before every step, the first too: the run waits for it. The signal is looked at afterwards. */
  readonly beforeStep?: (step: number, checkpoint: () => Promise<RunCheckpoint>) => void | Promise<void>;
  /** After every step; `checkpoint` takes a copy of everything, for those who want one. */
  readonly onStep?: (
    progress: { readonly step: number; readonly loss: number },
    checkpoint: () => Promise<RunCheckpoint>,
  ) => void | Promise<void>;
}

/** A run's checkpoint as bytes, its recipe inside. */
export function encodeRunCheckpoint(recipe: TrainingRecipe, checkpoint: RunCheckpoint): Uint8Array<ArrayBuffer> {
  const { pendingLosses, ...state } = checkpoint;
  return encodeTrainingCheckpoint(state, { recipe, pendingLosses });
}

/**
 * A run's checkpoint from its bytes.
 *
 * @throws FormatError for a file that is not safetensors; RangeError for one that is no checkpoint of a run
 */
export async function decodeRunCheckpoint(
  bytes: Uint8Array,
): Promise<{ readonly recipe: TrainingRecipe; readonly checkpoint: RunCheckpoint }> {
  const { record, ...state } = await decodeTrainingCheckpoint(bytes);
  const { recipe, pendingLosses } = record as { recipe?: TrainingRecipe; pendingLosses?: readonly number[] };
  if (recipe === undefined || pendingLosses === undefined) {
    throw new RangeError("checkpoint: expected one of a run, with its recipe and pendingLosses, got neither");
  }
  return { recipe, checkpoint: { ...state, pendingLosses } };
}

export interface RunResult {
  /** False when the signal stopped it. */
  readonly finished: boolean;
  readonly checkpoint: RunCheckpoint;
}

/**
 * Trains a recipe to its end, or until the signal.
 *
 * @throws RangeError when the recipe and the data or the weights do not fit, or the loss is not a number any more
 */
export async function runRecipe(options: RunOptions): Promise<RunResult> {
  const { recipe, data, validation = [], signal, checkpoint: from } = options;
  if (data.batchSize !== recipe.batchSize || data.length !== recipe.length) {
    throw new RangeError(
      `runRecipe: expected batches of ${recipe.batchSize} × ${recipe.length}, got ${data.batchSize} × ${data.length}`,
    );
  }
  const validateEvery = options.validateEvery ?? Math.max(1, Math.round(recipe.steps / 20));
  const rowEvery = options.rowEvery ?? Math.min(20, validateEvery);
  const { rate, ...plan } = trainingPlan(recipe);
  const { batchSize, length, seed, dropAt, steps } = recipe;
  const weights =
    options.weights ??
    (recipe.initialization === "width-scaled" ? widthScaledWeights(modelLayout({ ...plan, length }), seed) : undefined);
  const trainer = await Trainer.create({
    ...plan,
    batchSize,
    length,
    seed,
    backend: options.backend,
    microBatches: options.microBatches ?? 1,
    ...(options.threads === undefined ? {} : { threads: options.threads }),
    ...(from !== undefined ? { checkpoint: from } : weights !== undefined ? { weights } : {}),
  });
  let pending = [...(from?.pendingLosses ?? [])];
  const capture = async (): Promise<RunCheckpoint> => ({ ...(await trainer.checkpoint()), pendingLosses: pending });
  const drop = (): void => {
    if (dropAt !== null && trainer.step >= dropAt) {
      trainer.setEncodings(encodingsAt(recipe, plan.encodings, trainer.step));
    }
  };
  const validate = async (): Promise<void> => {
    const step = trainer.step;
    const found = typeof validation === "function" ? await validation(trainer) : await meanLoss(trainer, validation);
    if (found !== null)
      await options.onRow?.({ kind: "validation", step, tokens: step * batchSize * length, ...found });
  };
  try {
    drop();
    if (trainer.step === 0 || options.validateFirst === true) await validate();
    while (trainer.step < steps) {
      // A run of the session blocks its thread: signals and timers get their turn here.
      await new Promise((resolve) => setTimeout(resolve, 0));
      await options.beforeStep?.(trainer.step, capture);
      if (signal?.aborted) return { finished: false, checkpoint: await capture() };
      const { step, loss, reports } = await trainer.update(data.batch(trainer.step));
      pending.push(loss);
      const done = trainer.step;
      if (done % rowEvery === 0 || done === steps) {
        await options.onRow?.({
          kind: "train",
          step: done,
          tokens: done * batchSize * length,
          loss: mean(pending),
          gradientNorm: reports.gradientNorm ?? Number.NaN,
          learningRate: rate(step),
        });
        pending = [];
      }
      if (done === dropAt) drop();
      if (done % validateEvery === 0 || done === steps) await validate();
      await options.onStep?.({ step: done, loss }, capture);
    }
    return { finished: true, checkpoint: await capture() };
  } finally {
    await trainer.dispose();
  }
}

async function meanLoss(trainer: Trainer, batches: readonly Batch[]): Promise<Validation | null> {
  if (batches.length === 0) return null;
  const means: number[] = [];
  for (const batch of batches) means.push(mean((await trainer.losses(batch)).data));
  return { loss: mean(means) };
}

function mean(values: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i]!;
  return sum / values.length;
}
