// Train short, test long, while a run goes on: the loss of a model in training at its own length and at each doubling of
// it, or of a task at its sizes and larger ones. Small and seeded, so that curves of several runs can be laid over each
// other; a verdict wants `longhand compare`.

import {
  type Batch,
  evaluateTask,
  type Scorer,
  type Task,
  type Trainer,
  type TrainingRecipe,
  taskLength,
  validationBatches,
} from "../training/index.ts";
import { lossByDoubling } from "./statistics/doublings.ts";

/** What a model says at a length, in the mean. */
export interface LengthPoint {
  /** Positions from … to, both included, counted from 1; of a task, the size twice. */
  readonly from: number;
  readonly to: number;
  /** Nats a token. */
  readonly loss: number;
  /** Of a task: share of examples whose every token is the likeliest. */
  readonly accuracy?: number;
}

export interface LengthTest {
  /** The longest that the model is trained on, in what points count: positions, or sizes. */
  readonly trained: number;
  /** The first point is within what is trained. */
  run(trainer: Pick<Trainer, "losses" | "scores">): Promise<LengthPoint[]>;
}

/** Longest sequence of a test: attention's memory grows with its square. */
const maxLength = 2048;

/**
 * A test on text that is not trained on.
 *
 * @param options `reach`: times the training length, 8 when absent, up to 2,048 tokens in all; a learned table reaches its
 *   own end. `windows`: 8 when absent, fewer where the text is short
 * @throws RangeError for a text that is shorter than the training length
 * @example
 * ```ts
 * import { textLengthTest } from "longhand/evaluation";
 * import { trainingRecipe } from "longhand/training";
 * textLengthTest(new Uint8Array(1000), trainingRecipe({ encoding: ["alibi"], length: 64 })).trained; // => 64
 * ```
 */
export function textLengthTest(
  text: Uint8Array,
  recipe: Pick<TrainingRecipe, "length" | "encoding" | "bosTokenId">,
  { reach = 8, windows = 8 }: { readonly reach?: number; readonly windows?: number } = {},
): LengthTest {
  const { length: trained, encoding, bosTokenId } = recipe;
  let length = trained;
  // The last target lies behind the window.
  const fits = (tokens: number): boolean => tokens <= maxLength && tokens < text.length;
  while (!encoding.includes("learned") && length < reach * trained && fits(2 * length)) length *= 2;
  const batchSize = Math.max(
    1,
    Math.min(windows, Math.floor(maxLength / length), Math.floor((text.length - 1) / length)),
  );
  const batches: Batch[] = validationBatches(text, {
    length,
    batchSize,
    tokens: windows * length,
    bosTokenId,
  });
  return {
    trained,
    async run(trainer) {
      const losses: Float32Array[] = [];
      for (const batch of batches) {
        const { data } = await trainer.losses(batch);
        for (let at = 0; at < data.length; at += length) losses.push(data.slice(at, at + length));
      }
      return lossByDoubling(losses, trained).map(({ from, to, mean }) => ({ from, to: to - 1, loss: mean }));
    },
  };
}

/**
 * A test on examples of a task that training never draws: its smallest, middle and largest size, and 1.5, 2 and 3 times the
 * largest; 24 of each.
 */
export function taskLengthTest(
  task: Task,
  [smallest, largest]: readonly [number, number],
  recipe: Pick<TrainingRecipe, "length" | "encoding">,
): LengthTest {
  const factors = [1.5, 2, 3].map((factor) => Math.round(factor * largest));
  const wanted = [smallest, Math.round((smallest + largest) / 2), largest, ...factors];
  const isTable = recipe.encoding.includes("learned");
  const sizes = [...new Set(wanted)].filter(
    (size) => size <= task.maxSize && (!isTable || taskLength(task, size) <= recipe.length),
  );
  return {
    trained: largest,
    async run(trainer) {
      const results = await evaluateTask(trainer satisfies Scorer, task, { sizes, count: 24, seed: 1 });
      return results.map(({ size, meanLoss, accuracy }) => ({ from: size, to: size, loss: meanLoss, accuracy }));
    },
  };
}
