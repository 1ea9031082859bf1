// Windows of tokens in a seeded order. A batch is a function of the seed and the step alone, so a resumed run sees what
// an uninterrupted one does, and models that differ elsewhere see the same data.

import { random, type Tensor, tensor } from "../tensor/index.ts";

/** Inputs and what follows each of them, [B, T] i64. A target below 0 does not count. */
export interface Batch {
  readonly tokens: Tensor<"i64">;
  readonly targets: Tensor<"i64">;
}

/** Batches by step, from 0. */
export interface BatchSource {
  readonly batchSize: number;
  readonly length: number;
  batch(step: number): Batch;
}

export interface TokenBatchOptions {
  readonly batchSize: number;
  /** T: tokens that a window feeds; the window has one more, the last target. */
  readonly length: number;
  readonly seed: number;
  /** Fed in front of every window, whose last token is then the last target; null or absent: the window's first token is
   *  fed first and no target. */
  readonly bosTokenId?: number | null;
}

/**
 * Batches of a text. Each epoch cuts the text into windows of T + 1 tokens that share their ends, from an offset drawn
 * anew, and takes them in a shuffled order; what is left over at its end goes into no batch.
 *
 * @param tokens ids, one after the other
 * @throws RangeError when the text is too short for one batch
 * @example
 * ```ts
 * import { tokenBatches } from "longhand/training";
 * const source = tokenBatches(Uint8Array.from({ length: 100 }, (_, i) => i), { batchSize: 2, length: 4, seed: 1 });
 * const { tokens, targets } = source.batch(3);
 * Number(targets.data[0]) - Number(tokens.data[0]); // => 1
 * ```
 */
export function tokenBatches(tokens: ArrayLike<number>, options: TokenBatchOptions): BatchSource {
  const { batchSize, length, seed, bosTokenId = null } = options;
  const who = "tokenBatches";
  for (const [name, value] of [
    ["batchSize", batchSize],
    ["length", length],
  ] as const) {
    if (!Number.isInteger(value) || value < 1)
      throw new RangeError(`${who}: expected ${name} of at least 1, got ${value}`);
  }
  // Every offset leaves as many windows, so that an epoch has as many batches whatever it drew.
  const offsets = Math.min(length, tokens.length - 1 - batchSize * length);
  if (offsets < 1) {
    throw new RangeError(
      `${who}: expected more than ${batchSize * length + 1} tokens for a batch of ${batchSize} × ${length}, got ${tokens.length}`,
    );
  }
  const windows = Math.floor((tokens.length - offsets) / length);
  const perEpoch = Math.floor(windows / batchSize);
  let cached: { epoch: number; offset: number; order: Uint32Array } | undefined;
  const epochOf = (epoch: number): { offset: number; order: Uint32Array } => {
    if (cached?.epoch === epoch) return cached;
    const stream = random(BigInt.asUintN(64, BigInt(seed) * 0x9e3779b97f4a7c15n + BigInt(epoch)));
    const offset = stream.integer(offsets);
    const order = stream.shuffle(Uint32Array.from({ length: windows }, (_, i) => i));
    cached = { epoch, offset, order };
    return cached;
  };
  return {
    batchSize,
    length,
    batch(step) {
      const { offset, order } = epochOf(Math.floor(step / perEpoch));
      const first = (step % perEpoch) * batchSize;
      const starts = Array.from({ length: batchSize }, (_, b) => offset + order[first + b]! * length);
      return windowBatch(tokens, starts, length, bosTokenId);
    },
  };
}

/** Windows of a text that begin at `starts`, as rows. */
function windowBatch(
  tokens: ArrayLike<number>,
  starts: readonly number[],
  length: number,
  bosTokenId: number | null,
): Batch {
  const shape = [starts.length, length];
  const inputs = new BigInt64Array(starts.length * length);
  const targets = new BigInt64Array(starts.length * length);
  const ahead = bosTokenId === null ? 1 : 0;
  starts.forEach((start, b) => {
    for (let t = 0; t < length; t++) {
      targets[b * length + t] = BigInt(tokens[start + t + ahead]!);
      inputs[b * length + t] = BigInt(t === 0 && bosTokenId !== null ? bosTokenId : tokens[start + t + ahead - 1]!);
    }
  });
  return {
    tokens: tensor("i64", shape, inputs) as Tensor<"i64">,
    targets: tensor("i64", shape, targets) as Tensor<"i64">,
  };
}

export interface ValidationOptions {
  /** T */
  readonly length: number;
  /** 8 when absent. */
  readonly batchSize?: number;
  /** How many to take, spread evenly over the text; all that fill whole batches when absent. */
  readonly tokens?: number;
  /** As in training. */
  readonly bosTokenId?: number | null;
}

/**
 * Windows of a text in order, for losses that are compared between runs.
 *
 * @throws RangeError when the text is too short for one batch
 */
export function validationBatches(tokens: ArrayLike<number>, options: ValidationOptions): Batch[] {
  const { length, batchSize = 8, bosTokenId = null } = options;
  const windows = Math.floor((tokens.length - 1) / length);
  const wanted = Math.min(windows, Math.ceil((options.tokens ?? tokens.length) / length));
  const count = Math.floor(wanted / batchSize);
  if (count < 1) {
    throw new RangeError(
      `validationBatches: expected more than ${batchSize * length} tokens, got ${Math.min(tokens.length, options.tokens ?? tokens.length)}`,
    );
  }
  const start = (window: number): number => Math.floor((window * windows) / (count * batchSize)) * length;
  return Array.from({ length: count }, (_, batch) => {
    const starts = Array.from({ length: batchSize }, (_, b) => start(batch * batchSize + b));
    return windowBatch(tokens, starts, length, bosTokenId);
  });
}
