// T5's relative position bias (Raffel et al. 2020, 1910.10683, section 2.1): distances fall into buckets, exact when
// near and logarithmic when far, and each bucket has one learned number a head, shared by all layers, added to scores
// that T5 does not divide by √D. Relative position = key − query: a key in the past is negative.

import { expectPositions } from "./bias-by-distance.ts";
import { expectInteger, show } from "./errors.ts";
import { naturalLogarithm } from "./numerics/power.ts";
import type { AttentionBiasEncoding } from "./position-encoding.ts";

export interface T5BucketOptions {
  /** Encoders: true, half of the buckets look ahead. Decoders: false, every key ahead is in bucket 0. */
  readonly bidirectional: boolean;
  /** 32 when absent. */
  readonly numBuckets?: number;
  /** The distance from which all share the last bucket; 128 when absent. */
  readonly maxDistance?: number;
  /** How the logarithm is rounded before it is truncated. float32 when absent: what transformers computes, and so what
   *  its checkpoints are run with. exact: the formula in whole numbers. They are the same table for every shipped
   *  model; where a distance is exactly on a boundary they may not be (48 causal buckets, maxDistance 81: distance 36
   *  is in bucket 31 in float32 and in bucket 32 exactly, and llama.cpp agrees with the latter). */
  readonly arithmetic?: "float32" | "exact";
}

interface Buckets {
  readonly bidirectional: boolean;
  /** Buckets of one direction. */
  readonly size: number;
  /** Distances below this have a bucket each. */
  readonly maxExact: number;
  readonly maxDistance: number;
  /** ln(maxDistance / maxExact). */
  readonly logarithm: number;
  readonly exact: boolean;
}

function readOptions(who: string, options: T5BucketOptions): Buckets {
  if (typeof options.bidirectional !== "boolean") {
    throw new TypeError(`${who}: expected bidirectional to be true or false, got ${show(options.bidirectional)}`);
  }
  const { bidirectional } = options;
  const numBuckets = expectInteger(who, "numBuckets", options.numBuckets ?? 32, bidirectional ? 4 : 2);
  const size = bidirectional ? Math.floor(numBuckets / 2) : numBuckets;
  const maxExact = Math.floor(size / 2);
  const maxDistance = expectInteger(who, "maxDistance", options.maxDistance ?? 128, maxExact + 1);
  const arithmetic = options.arithmetic ?? "float32";
  if (arithmetic !== "float32" && arithmetic !== "exact") {
    throw new RangeError(`${who}: expected arithmetic to be "float32" or "exact", got ${show(arithmetic)}`);
  }
  const logarithm = naturalLogarithm(maxDistance / maxExact);
  return { bidirectional, size, maxExact, maxDistance, logarithm, exact: arithmetic === "exact" };
}

/** maxExact + trunc(ln(n/maxExact) / ln(maxDistance/maxExact) · (size − maxExact)), at most size − 1. */
function logarithmicBucket(distance: number, { size, maxExact, maxDistance, logarithm, exact }: Buckets): number {
  if (distance >= maxDistance) return size - 1;
  const steps = size - maxExact;
  if (exact) {
    // Step k is reached when (n/e)^steps ≥ (m/e)^k, that is n^steps · e^k ≥ m^k · e^steps.
    const e = BigInt(maxExact);
    const m = BigInt(maxDistance);
    const reached = (k: number) =>
      BigInt(distance) ** BigInt(steps) * e ** BigInt(k) >= m ** BigInt(k) * e ** BigInt(steps);
    let k = 0;
    while (k + 1 < steps && reached(k + 1)) k++;
    return maxExact + k;
  }
  // As torch does: every operation is rounded to float32, the scale ln(m/e) once from float64.
  const ratio = Math.fround(Math.fround(distance) / maxExact);
  const share = Math.fround(Math.fround(naturalLogarithm(ratio)) / Math.fround(logarithm));
  return Math.min(maxExact + Math.trunc(Math.fround(share * steps)), size - 1);
}

/** The buckets of distances 0 .. limit into the past. Buckets never fall with distance, so it is enough to find where
 *  each begins, near where the formula in real numbers says. */
function bucketsByDistance(buckets: Buckets, limit: number): Int32Array {
  const { size, maxExact, maxDistance } = buckets;
  const out = Int32Array.from({ length: limit + 1 }, (_, distance) => Math.min(distance, maxExact));
  const steps = size - maxExact;
  let from = maxExact;
  for (let bucket = maxExact + 1; bucket < size && from <= limit; bucket++) {
    let first = Math.round(maxExact * (maxDistance / maxExact) ** ((bucket - maxExact) / steps));
    while (first > from && logarithmicBucket(first - 1, buckets) >= bucket) first--;
    while (logarithmicBucket(first, buckets) < bucket) first++;
    out.fill(bucket - 1, from, first);
    from = first;
  }
  out.fill(size - 1, from);
  return out;
}

function bucketOf(relativePosition: number, buckets: Buckets): number {
  const ahead = buckets.bidirectional && relativePosition > 0 ? buckets.size : 0;
  const distance = buckets.bidirectional ? Math.abs(relativePosition) : Math.max(-relativePosition, 0);
  return ahead + (distance < buckets.maxExact ? distance : logarithmicBucket(distance, buckets));
}

/**
 * The bucket of a relative position (key − query).
 *
 * Causal: n = max(−r, 0), all buckets. Bidirectional: half of the buckets each way, the upper half for r > 0, n = |r|.
 * With e half of a direction's buckets: n when n < e, else e + trunc(ln(n/e) / ln(maxDistance/e) · (buckets − e)), at
 * most the last. Raffel et al. 2020 (1910.10683), section 2.1; the authors' Mesh TensorFlow code; transformers' T5.
 *
 * @param relativePosition key position − query position, in tokens
 * @throws RangeError for a relative position that is not an integer, too few buckets, or maxDistance within the exact
 * part
 * @example
 * ```ts
 * import { t5Bucket } from "longhand/encodings";
 * t5Bucket(-20, { bidirectional: false }); // => 17
 * t5Bucket(-127, { bidirectional: false }); // => 31
 * t5Bucket(8, { bidirectional: true }); // => 24
 * ```
 */
export function t5Bucket(relativePosition: number, options: T5BucketOptions): number {
  const who = "t5Bucket";
  expectInteger(who, "relativePosition", relativePosition, Number.MIN_SAFE_INTEGER);
  return bucketOf(relativePosition, readOptions(who, options));
}

/**
 * The buckets of query positions against key positions. Positions are absolute: while decoding with a cache, the row of
 * the new token is that of its own position, not row 0.
 *
 * Raffel et al. 2020 (1910.10683), section 2.1.
 *
 * @returns [T, S]
 * @throws RangeError for positions that are not integers of at least 0, or as `t5Bucket`
 * @example
 * ```ts
 * import { t5BucketTable } from "longhand/encodings";
 * t5BucketTable([2, 3], [0, 1, 2, 3], { bidirectional: true }); // => [2, 1, 0, 17, 3, 2, 1, 0]
 * ```
 */
export function t5BucketTable(
  queryPositions: ArrayLike<number>,
  keyPositions: ArrayLike<number>,
  options: T5BucketOptions,
): Int32Array {
  const who = "t5BucketTable";
  const buckets = readOptions(who, options);
  expectPositions(who, "queryPositions", queryPositions);
  expectPositions(who, "keyPositions", keyPositions);
  const { bidirectional, size, maxDistance } = buckets;
  const pasts = new Float64Array(queryPositions.length * keyPositions.length); // query − key, [T, S]
  let largest = 0;
  for (let t = 0, at = 0; t < queryPositions.length; t++) {
    for (let s = 0; s < keyPositions.length; s++, at++) {
      pasts[at] = queryPositions[t]! - keyPositions[s]!;
      largest = Math.max(largest, Math.abs(pasts[at]!));
    }
  }
  // From maxDistance on nothing changes.
  const limit = Math.min(largest, maxDistance);
  const ofDistance = bucketsByDistance(buckets, limit);
  const out = Int32Array.from(pasts, (past) => {
    const distance = Math.min(bidirectional ? Math.abs(past) : Math.max(past, 0), limit);
    return ofDistance[distance]! + (bidirectional && past < 0 ? size : 0);
  });
  return out;
}

export interface T5RelativeBiasOptions extends T5BucketOptions {
  /** H. */
  readonly numHeads: number;
  /** [numBuckets, H], row-major, as in `relative_attention_bias.weight`. */
  readonly weights: ArrayLike<number>;
}

/**
 * T5's learned bias as an encoding: bias[h, t, s] = weights[bucket(key s − query t), h].
 *
 * Raffel et al. 2020 (1910.10683), section 2.1. Scores stay unscaled in T5; cross-attention has no bias.
 *
 * @throws RangeError when weights are not numBuckets · numHeads numbers, or as `t5Bucket`
 * @example
 * ```ts
 * import { t5RelativeBias } from "longhand/encodings";
 * const weights = Float64Array.from({ length: 32 }, (_, bucket) => bucket / 10);
 * const encoding = t5RelativeBias({ numHeads: 1, weights, bidirectional: false });
 * encoding.bias([20], [0, 19, 20]); // => [1.7, 0.1, 0]
 * ```
 */
export function t5RelativeBias(options: T5RelativeBiasOptions): AttentionBiasEncoding & {
  readonly numBuckets: number;
  readonly maxDistance: number;
  readonly bidirectional: boolean;
} {
  const who = "t5RelativeBias";
  const { maxDistance, bidirectional } = readOptions(who, options);
  const numBuckets = options.numBuckets ?? 32;
  const numHeads = expectInteger(who, "numHeads", options.numHeads, 1);
  if (options.weights.length !== numBuckets * numHeads) {
    throw new RangeError(
      `${who}: expected weights [numBuckets, numHeads] = ${numBuckets} · ${numHeads} numbers, got ${options.weights.length}`,
    );
  }
  const weights = Float64Array.from(options.weights);
  return {
    site: "attention-bias",
    name: "t5-relative-bias",
    numHeads,
    numBuckets,
    maxDistance,
    bidirectional,
    bias(queryPositions, keyPositions) {
      const table = t5BucketTable(queryPositions, keyPositions, options);
      const out = new Float64Array(numHeads * table.length);
      for (let head = 0; head < numHeads; head++) {
        for (let at = 0; at < table.length; at++)
          out[head * table.length + at] = weights[table[at]! * numHeads + head]!;
      }
      return out;
    },
  };
}
