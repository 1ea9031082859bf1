// How well a model does a task, by size: whole answers that it would give, under teacher forcing, and their loss.

import type { Batch } from "../data.ts";
import type { Scores } from "../trainer.ts";
import { exampleBatch, taskLength } from "./batches.ts";
import { type Example, exampleStream, expectWhole, type Task } from "./task.ts";
import { wilsonInterval } from "./wilson.ts";

/** A Trainer, or whatever else scores targets. */
export interface Scorer {
  scores(batch: Batch): Promise<Scores>;
}

export interface TaskEvaluationOptions {
  readonly sizes: readonly number[];
  /** Examples of each size. */
  readonly count: number;
  /** Of the examples: models that are given the same seed answer the same questions. */
  readonly seed: number;
  /** Examples a run; 16 when absent. It changes no number. */
  readonly batchSize?: number;
}

/** What came out at one size. */
export interface TaskResult {
  readonly size: number;
  /** Examples. */
  readonly count: number;
  /** Share of examples whose every answer token is the model's first choice, given the tokens before: if that is so,
   *  greedy decoding gives the whole answer. */
  readonly accuracy: number;
  /** Wilson's 95 % interval of the accuracy. */
  readonly low: number;
  readonly high: number;
  /** Share of answer tokens that are the model's first choice. */
  readonly tokenAccuracy: number;
  /** Of answer tokens, in nats, a mean over all of them. */
  readonly meanLoss: number;
}

/**
 * Accuracy by size on examples that training never draws (Kazemnejad et al. 2023, 2305.19466, report exact match by
 * length).
 *
 * @throws RangeError for a size that the task does not have, or a loss that is not a number
 * @example
 * ```ts
 * import { copy, evaluateTask } from "longhand/training";
 * // A model that always answers right, and is sure of it.
 * const scores = async ({ targets }) => ({
 *   losses: { ...targets, dtype: "f32", data: new Float32Array(targets.data.length) },
 *   correct: { ...targets, dtype: "bool", data: Uint8Array.from(targets.data, (t) => (t < 0n ? 0 : 1)) },
 * });
 * const [{ accuracy, meanLoss }] = await evaluateTask({ scores }, copy(), { sizes: [8], count: 20, seed: 1 });
 * [accuracy, meanLoss]; // => [1, 0]
 * ```
 */
export async function evaluateTask(scorer: Scorer, task: Task, options: TaskEvaluationOptions): Promise<TaskResult[]> {
  const who = "evaluateTask";
  const count = expectWhole(who, "count", options.count, 1, 2 ** 31);
  const seed = expectWhole(who, "seed", options.seed, 0, Number.MAX_SAFE_INTEGER);
  const batchSize = Math.min(count, expectWhole(who, "batchSize", options.batchSize ?? 16, 1, 2 ** 31));
  const results: TaskResult[] = [];
  for (const size of options.sizes) {
    const length = taskLength(task, size);
    let [whole, right, tokens, loss] = [0, 0, 0, 0];
    for (let first = 0; first < count; first += batchSize) {
      // Rows behind the last example are empty, so that every run has the same shape.
      const examples = Array.from({ length: batchSize }, (_, b): Example => {
        const index = first + b;
        return index < count ? task.example(size, exampleStream("evaluation", seed, size, index)) : [];
      });
      const batch = exampleBatch(examples, length);
      const { losses, correct } = await scorer.scores(batch);
      for (let b = 0; b < batchSize && first + b < count; b++) {
        let all = true;
        for (let at = b * length; at < (b + 1) * length; at++) {
          if (batch.targets.data[at]! < 0n) continue;
          const hit = correct.data[at]! !== 0;
          all &&= hit;
          if (hit) right++;
          tokens++;
          loss += losses.data[at]!;
        }
        if (all) whole++;
      }
    }
    if (!Number.isFinite(loss)) throw new RangeError(`${who}: expected finite losses, got ${loss} at size ${size}`);
    const [low, high] = wilsonInterval(whole, count);
    results.push({
      size,
      count,
      accuracy: whole / count,
      low,
      high,
      tokenAccuracy: right / tokens,
      meanLoss: loss / tokens,
    });
  }
  return results;
}
