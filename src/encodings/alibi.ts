// ALiBi, attention with linear biases (Press et al. 2022, 2108.12409): each head's score falls by its slope for every
// token of distance. Nothing is learned and nothing is trained to a length. The bias is added after the softmax scale
// and is not divided by √D (the paper's footnote 10). Falcon-RW is the exception: transformers rounds its slopes to
// bfloat16 and adds the bias before the scale, so that its distances count 1/√D as much.

import { biasByDistance, expectPositions } from "./bias-by-distance.ts";
import { expectInteger, expectPositive } from "./errors.ts";
import { power } from "./numerics/power.ts";
import type { AttentionBiasEncoding } from "./position-encoding.ts";

export interface AlibiOptions {
  /** Heads that the slopes are computed for. */
  readonly numHeads: number;
  /** Encoders: the distance is |i − j|. Decoders (false, when absent): max(i − j, 0), with a causal mask. */
  readonly bidirectional?: boolean;
  /** All heads of a layer that has more than numHeads: the extra ones come last and have slope 0, no bias. Engines pad
   *  heads to a multiple for their kernels or devices, and x-transformers leaves some heads without ALiBi. Slopes must
   *  come from the real count: those of the padded count differ in every head unless both share their power of two. */
  readonly paddedHeads?: number;
  /** alibi_bias_max of MPT: the last slope of a power of two is 2^(−maxBias). 8 when absent. */
  readonly maxBias?: number;
}

/**
 * The slopes of the heads, in the order of the heads.
 *
 * For a power of two n: 2^(−maxBias·(h+1)/n), h = 0 .. n − 1. Otherwise, with c the power of two below n: the c slopes
 * of c heads, then every second of those of 2c heads (the 1st, 3rd, …) until there are n. So the list of 12 heads does
 * not fall from first to last. Press et al. 2022 (2108.12409), section 3, and the authors' code; MPT's gen_slopes is
 * the same list.
 *
 * @returns paddedHeads slopes (numHeads when absent); those past numHeads are 0
 * @throws RangeError for numHeads below 1, paddedHeads below numHeads, or a maxBias that is not positive
 * @example
 * ```ts
 * import { alibiSlopes } from "longhand/encodings";
 * alibiSlopes({ numHeads: 8 }); // => [0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625]
 * alibiSlopes({ numHeads: 3, paddedHeads: 4 }); // => [0.0625, 0.00390625, 0.25, 0]
 * ```
 */
export function alibiSlopes(options: Pick<AlibiOptions, "numHeads" | "paddedHeads" | "maxBias">): Float64Array {
  const who = "alibiSlopes";
  const numHeads = expectInteger(who, "numHeads", options.numHeads, 1);
  const allHeads = expectInteger(who, "paddedHeads", options.paddedHeads ?? numHeads, numHeads);
  const maxBias = expectPositive(who, "maxBias", options.maxBias ?? 8);
  const slopes = new Float64Array(allHeads);
  let c = 1;
  while (2 * c <= numHeads) c *= 2;
  for (let head = 0; head < numHeads; head++) {
    const exponent = head < c ? (head + 1) / c : (2 * (head - c) + 1) / (2 * c);
    slopes[head] = power(2, -maxBias * exponent);
  }
  return slopes;
}

/**
 * The key-only form that BLOOM and the authors' code add: slope·j, one row for all queries. It differs from
 * −slope·(i − j) by the constant slope·i of the row, which the softmax removes; only under a causal mask is it ALiBi.
 *
 * Press et al. 2022 (2108.12409), the authors' code; transformers' build_alibi_tensor.
 *
 * @param slopes H slopes
 * @param keyPositions S positions
 * @returns [H, S]
 * @throws RangeError for positions that are not integers of at least 0
 * @example
 * ```ts
 * import { alibiKeyBias } from "longhand/encodings";
 * alibiKeyBias([0.5, 0.25], [0, 1, 2]); // => [0, 0.5, 1, 0, 0.25, 0.5]
 * ```
 */
export function alibiKeyBias(slopes: ArrayLike<number>, keyPositions: ArrayLike<number>): Float64Array {
  expectPositions("alibiKeyBias", "keyPositions", keyPositions);
  const columns = keyPositions.length;
  return Float64Array.from(
    { length: slopes.length * columns },
    (_, at) => slopes[Math.floor(at / columns)]! * keyPositions[at % columns]!,
  );
}

/**
 * ALiBi as an encoding: bias[h, i, j] = −slope_h · (i − j), and −slope_h · |i − j| when bidirectional. A future key of
 * the causal form, which the mask removes, gets 0.
 *
 * Press et al. 2022 (2108.12409), section 3. Positions are absolute, so a cached decode asks for its own rows.
 *
 * @returns an encoding of paddedHeads heads (numHeads when absent), with its slopes
 * @throws RangeError as `alibiSlopes`
 * @example
 * ```ts
 * import { alibi } from "longhand/encodings";
 * alibi({ numHeads: 2 }).bias([3], [0, 1, 2, 3]);
 * // => [-0.1875, -0.125, -0.0625, 0, -0.01171875, -0.0078125, -0.00390625, 0]
 * ```
 */
export function alibi(options: AlibiOptions): AttentionBiasEncoding & {
  readonly slopes: Float64Array;
  readonly maxBias: number;
  readonly bidirectional: boolean;
} {
  const slopes = alibiSlopes(options);
  const bidirectional = options.bidirectional ?? false;
  return {
    site: "attention-bias",
    name: "alibi",
    numHeads: slopes.length,
    slopes,
    maxBias: options.maxBias ?? 8,
    bidirectional,
    bias: (queryPositions, keyPositions) =>
      biasByDistance(
        "alibi",
        slopes.length,
        queryPositions,
        keyPositions,
        bidirectional,
        (head, distance) => 0 - slopes[head]! * distance,
      ),
  };
}
