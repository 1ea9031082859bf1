// The two layouts of rotary pairs, and the row permutation of q and k projections that turns one into the other.
// Checkpoints of Hugging Face hold "half" for Llama; Meta's own, llama2.c and GGUF's llama architectures hold
// "interleaved". Converting permutes the rows of q and k (never of v); a wrong layout is silent: text stays fluent.

import { expectEven, expectInteger } from "../errors.ts";

/**
 * For each channel of an interleaved head, the channel of the half-layout head that holds the same number:
 * interleaved[j] = half[permutation[j]]. Channels from rotaryDim on stay where they are.
 *
 * @param headDim D
 * @param rotaryDim rotated channels, even; D when absent
 * @throws RangeError for an odd rotaryDim or one above headDim
 * @example
 * ```ts
 * import { interleavedFromHalf } from "longhand/encodings";
 * interleavedFromHalf(6, 4); // => [0, 2, 1, 3, 4, 5]
 * ```
 * Source: transformers' Llama conversion (its permute is `halfFromInterleaved`) and llama.cpp's (the reverse).
 */
export function interleavedFromHalf(headDim: number, rotaryDim: number = headDim): number[] {
  const pairs = checkWidths(headDim, rotaryDim);
  return Array.from({ length: headDim }, (_, j) => (j >= rotaryDim ? j : j % 2 === 0 ? j / 2 : pairs + (j - 1) / 2));
}

/**
 * The inverse of `interleavedFromHalf`: half[j] = interleaved[permutation[j]].
 *
 * @throws RangeError for an odd rotaryDim or one above headDim
 * @example
 * ```ts
 * import { halfFromInterleaved } from "longhand/encodings";
 * halfFromInterleaved(6, 4); // => [0, 2, 1, 3, 4, 5]
 * halfFromInterleaved(8); // => [0, 2, 4, 6, 1, 3, 5, 7]
 * ```
 * Source: as `interleavedFromHalf`.
 */
export function halfFromInterleaved(headDim: number, rotaryDim: number = headDim): number[] {
  const pairs = checkWidths(headDim, rotaryDim);
  return Array.from({ length: headDim }, (_, j) => (j >= rotaryDim ? j : j < pairs ? 2 * j : 2 * (j - pairs) + 1));
}

/**
 * Permutes the rows of a q or k projection (or its bias, with columns 1) within each head: row j of a head becomes the
 * head's former row permutation[j].
 *
 * @param matrix [numHeads · D, columns], any typed array; the result has the same type
 * @param permutation D indices, as from `interleavedFromHalf` or `halfFromInterleaved`
 * @throws RangeError when the matrix does not hold numHeads · D rows
 * @example
 * ```ts
 * import { interleavedFromHalf, permuteRows } from "longhand/encodings";
 * const bias = new Float32Array([0, 1, 2, 3]);
 * permuteRows(bias, { numHeads: 1, columns: 1 }, interleavedFromHalf(4)); // => [0, 2, 1, 3]
 * ```
 * Source: as `interleavedFromHalf`.
 */
export function permuteRows<A extends Float32Array | Float64Array | Uint16Array>(
  matrix: A,
  { numHeads, columns }: { readonly numHeads: number; readonly columns: number },
  permutation: readonly number[],
): A {
  const headDim = permutation.length;
  if (matrix.length !== numHeads * headDim * columns) {
    throw new RangeError(
      `permuteRows: expected ${numHeads} heads × ${headDim} rows × ${columns} columns = ` +
        `${numHeads * headDim * columns} numbers, got ${matrix.length}`,
    );
  }
  const out = matrix.slice() as A;
  for (let head = 0; head < numHeads; head++) {
    for (let j = 0; j < headDim; j++) {
      const from = (head * headDim + permutation[j]!) * columns;
      out.set(matrix.subarray(from, from + columns), (head * headDim + j) * columns);
    }
  }
  return out;
}

function checkWidths(headDim: number, rotaryDim: number): number {
  expectInteger("rotary layout", "headDim", headDim, 1);
  expectEven("rotary layout", "rotaryDim", rotaryDim);
  if (rotaryDim > headDim) {
    throw new RangeError(`rotary layout: expected rotaryDim of at most headDim ${headDim}, got ${rotaryDim}`);
  }
  return rotaryDim / 2;
}
