// Examples of a task as batches for the Trainer. One example a row, from position 0, so that what a model has seen of
// positions is what the sizes say; the rest of a row does not count.

import { tensor } from "../../tensor/index.ts";
import type { Batch, BatchSource } from "../data.ts";
import { type Example, exampleStream, exampleText, expectSize, expectWhole, type Task } from "./task.ts";

export interface TaskBatchOptions {
  readonly batchSize: number;
  /** T: tokens that a row feeds; what the largest size needs when absent. */
  readonly length?: number;
  readonly seed: number;
  /** Smallest and largest size, both included; sizes are drawn uniformly. */
  readonly sizes: readonly [number, number];
}

/** Tokens that a row has to feed for any example of a size: all but the last, which is a target only. */
export function taskLength(task: Task, size: number): number {
  return task.length(expectSize("taskLength", task, size)) - 1;
}

/**
 * Examples as rows: tokens are bytes and 0 behind the end, targets the bytes that follow where they belong to an answer
 * and −1 elsewhere.
 *
 * @param examples B examples; an empty one gives a row in which nothing counts
 * @param length T
 * @throws RangeError for an example that does not fit
 */
export function exampleBatch(examples: readonly Example[], length: number): Batch {
  const shape = [examples.length, length];
  const tokens = new BigInt64Array(examples.length * length);
  const targets = new BigInt64Array(examples.length * length).fill(-1n);
  examples.forEach((example, b) => {
    const total = exampleText(example).length;
    if (total > length + 1) {
      throw new RangeError(`exampleBatch: expected examples of at most ${length + 1} tokens, got one of ${total}`);
    }
    let t = 0;
    const put = (text: string, counts: boolean): void => {
      for (let i = 0; i < text.length; i++, t++) {
        const token = BigInt(text.charCodeAt(i));
        // The last is a target only; the first cannot be one.
        if (t < total - 1) tokens[b * length + t] = token;
        if (counts && t > 0) targets[b * length + t - 1] = token;
      }
    };
    for (const { prompt, answer } of example) {
      put(prompt, false);
      put(answer, true);
    }
  });
  return { tokens: tensor("i64", shape, tokens), targets: tensor("i64", shape, targets) } as Batch;
}

/**
 * Batches of a task, a function of the seed and the step alone. Sizes are drawn uniformly from the range, so that none
 * outside is ever trained on; an example that evaluation draws comes from another stream.
 *
 * @throws RangeError for sizes that the task does not have, or a length that is too short for the largest
 * @example
 * ```ts
 * import { copy, taskBatches } from "longhand/training";
 * const source = taskBatches(copy(), { batchSize: 2, seed: 1, sizes: [1, 5] });
 * source.length; // => 16
 * source.batch(0).tokens.shape; // => [2, 16]
 * ```
 */
export function taskBatches(task: Task, options: TaskBatchOptions): BatchSource {
  const who = "taskBatches";
  const { seed, sizes } = options;
  const batchSize = expectWhole(who, "batchSize", options.batchSize, 1, 2 ** 31);
  expectWhole(who, "seed", seed, 0, Number.MAX_SAFE_INTEGER);
  const [smallest, largest] = [expectSize(who, task, sizes[0]), expectSize(who, task, sizes[1])];
  if (smallest > largest)
    throw new RangeError(`${who}: expected sizes in ascending order, got ${smallest}, ${largest}`);
  const needed = taskLength(task, largest);
  const length = expectWhole(who, "length", options.length ?? needed, 1, 2 ** 31);
  if (length < needed) {
    throw new RangeError(
      `${who}: expected a length of at least ${needed} for ${task.name} of ${largest} ${task.unit}, got ${length}`,
    );
  }
  return {
    batchSize,
    length,
    batch(step) {
      const examples = Array.from({ length: batchSize }, (_, b) => {
        const stream = exampleStream("training", seed, 0, step * batchSize + b);
        return task.example(smallest + stream.integer(largest - smallest + 1), stream);
      });
      return exampleBatch(examples, length);
    },
  };
}
