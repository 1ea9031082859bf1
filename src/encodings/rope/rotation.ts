// The rotation itself, on rows of one head: what an engine does to every query and key. Pair p of a row holds channels
// (p, p + P) in layout "half" and (2p, 2p + 1) in "interleaved", P = rotaryDim / 2; channels from rotaryDim on pass
// through. Rotated: first' = first·cos − second·sin, second' = first·sin + second·cos (anticlockwise for p > 0).

import type { RotaryLayout, RotaryTables } from "../position-encoding.ts";

/**
 * Rotates rows by their positions' tables.
 *
 * @param rows [T, D], float64
 * @param tables cos and sin [T, P] of the same T positions
 * @param options headDim D and the layout of the pairs
 * @returns new rows [T, D]; the input is unchanged
 * @throws RangeError when the sizes do not fit
 * @example
 * ```ts
 * import { applyRotary, rotaryTables } from "longhand/encodings";
 * const tables = rotaryTables({ inverseFrequencies: [Math.PI / 2], attentionFactor: 1 }, [0, 1]);
 * const rows = applyRotary([3, 4, 3, 4], tables, { headDim: 2, layout: "half" });
 * Array.from(rows, (x) => Math.round(x)); // => [3, 4, -4, 3]
 * ```
 * Source: RoFormer (Su et al. 2021, 2104.09864), equation 34; layouts of GPT-NeoX ("half") and GPT-J ("interleaved").
 */
export function applyRotary(
  rows: ArrayLike<number>,
  tables: RotaryTables,
  { headDim, layout }: { readonly headDim: number; readonly layout: RotaryLayout },
): Float64Array {
  const numRows = rows.length / headDim;
  if (!Number.isInteger(numRows)) {
    throw new RangeError(`applyRotary: expected rows of headDim ${headDim} numbers, got ${rows.length} numbers`);
  }
  const pairs = numRows === 0 ? 0 : tables.cos.length / numRows;
  if (!Number.isInteger(pairs) || tables.sin.length !== tables.cos.length || 2 * pairs > headDim) {
    throw new RangeError(
      `applyRotary: expected cos and sin of ${numRows} rows × at most ${headDim / 2} pairs, ` +
        `got ${tables.cos.length} and ${tables.sin.length} numbers`,
    );
  }
  const out = Float64Array.from(rows);
  const stride = layout === "half" ? 1 : 2;
  const gap = layout === "half" ? pairs : 1;
  for (let t = 0; t < numRows; t++) {
    for (let p = 0; p < pairs; p++) {
      const first = t * headDim + p * stride;
      const second = first + gap;
      const cos = tables.cos[t * pairs + p]!;
      const sin = tables.sin[t * pairs + p]!;
      out[first] = rows[first]! * cos - rows[second]! * sin;
      out[second] = rows[first]! * sin + rows[second]! * cos;
    }
  }
  return out;
}

/**
 * (−second half, first half) of each row: rows·cos + rotateHalf(rows)·sin is the rotation in layout "half" when cos
 * and sin are repeated over both halves. The form in which Hugging Face's models write it.
 *
 * @param rows [T, D] with D even
 * @throws RangeError unless rows hold whole rows of an even headDim
 * @example
 * ```ts
 * import { rotateHalf } from "longhand/encodings";
 * rotateHalf([1, 2, 3, 4], 4); // => [-3, -4, 1, 2]
 * ```
 * Source: GPT-NeoX and transformers, rotate_half.
 */
export function rotateHalf(rows: ArrayLike<number>, headDim: number): Float64Array {
  if (headDim % 2 !== 0 || rows.length % headDim !== 0) {
    throw new RangeError(
      `rotateHalf: expected whole rows of an even headDim, got ${rows.length} numbers of headDim ${headDim}`,
    );
  }
  const half = headDim / 2;
  return Float64Array.from(rows, (_, at) => {
    const channel = at % headDim;
    return channel < half ? -rows[at + half]! : rows[at - half]!;
  });
}
