// Multimodal rotary encoding (Qwen2-VL, Wang et al. 2024, section 2.1): a token has three position ids (time, height,
// width), and each pair follows one of them. Sections count pairs an axis and sum to P. "Sectioned" gives each axis a
// run of pairs, "interleaved" (Qwen3-VL) deals pairs out in turn: i mod 3 = 1 to height while i < 3·h, = 2 to width
// while i < 3·w, else time. Text has three equal ids, so a wrong layout cannot be seen on text.

import { show } from "../errors.ts";
import { sinCosOfProducts } from "../numerics/sincos.ts";
import type { RotaryTables } from "../position-encoding.ts";
import type { RopeFrequencies } from "./scaling/parameters.ts";

/**
 * The axis (0 time, 1 height, 2 width) that each pair follows.
 *
 * @param sections pairs an axis: [time, height, width]
 * @param interleaved Qwen3-VL's order instead of Qwen2-VL's
 * @throws RangeError for negative or fractional sections
 * @example
 * ```ts
 * import { mropeAxes } from "longhand/encodings";
 * mropeAxes([2, 1, 1], false); // => [0, 0, 1, 2]
 * mropeAxes([2, 1, 1], true); // => [0, 1, 2, 0]
 * ```
 * Source: Qwen2-VL (2409.12191), section 2.1; Qwen3-VL's interleaved form as in transformers 5.24.
 */
export function mropeAxes(sections: readonly number[], interleaved: boolean): number[] {
  if (sections.length !== 3 || !sections.every((n) => Number.isInteger(n) && n >= 0)) {
    throw new RangeError(
      `mrope: expected three sections (pairs of time, height and width), integers of at least 0, got ${show(sections)}`,
    );
  }
  const [time, height, width] = sections as readonly [number, number, number];
  return Array.from({ length: time + height + width }, (_, i) => {
    if (!interleaved) return i < time ? 0 : i < time + height ? 1 : 2;
    if (i % 3 === 1 && i < 3 * height) return 1;
    if (i % 3 === 2 && i < 3 * width) return 2;
    return 0;
  });
}

/**
 * Rotary tables for tokens with three position ids.
 *
 * @param frequencies inverseFrequencies [P] and the attention factor
 * @param positions three lists of T ids: time, height, width
 * @param axes P axes, as from `mropeAxes`
 * @returns cos and sin [T, P]
 * @throws RangeError when the lists differ in length or the axes do not count P
 * @example
 * ```ts
 * import { mropeAxes, mropeTables, rotaryTables } from "longhand/encodings";
 * const frequencies = { inverseFrequencies: [1, 0.1, 0.01], attentionFactor: 1 };
 * const text = mropeTables(frequencies, [[5], [5], [5]], mropeAxes([1, 1, 1], true));
 * text.cos.join() === rotaryTables(frequencies, [5]).cos.join(); // => true
 * ```
 * Source: as `mropeAxes`.
 */
export function mropeTables(
  frequencies: RopeFrequencies | { inverseFrequencies: ArrayLike<number>; attentionFactor: number },
  positions: readonly ArrayLike<number>[],
  axes: readonly number[],
): RotaryTables {
  const { inverseFrequencies, attentionFactor } = frequencies;
  const pairs = inverseFrequencies.length;
  if (axes.length !== pairs) {
    throw new RangeError(
      `mrope: expected the sections to sum to ${pairs} pairs, got ${axes.length}; they must sum to rotaryDim / 2`,
    );
  }
  const length = positions[0]?.length ?? 0;
  if (positions.length !== 3 || positions.some((list) => list.length !== length)) {
    throw new RangeError(
      `mrope: expected three lists of position ids of equal length, got lengths ${positions.map((p) => p.length).join(", ")}`,
    );
  }
  const cos = new Float64Array(length * pairs);
  const sin = new Float64Array(length * pairs);
  const rowCos = new Float64Array(pairs);
  const rowSin = new Float64Array(pairs);
  const scaled = new Float64Array(pairs);
  for (let t = 0; t < length; t++) {
    for (let p = 0; p < pairs; p++) scaled[p] = positions[axes[p]!]![t]! * inverseFrequencies[p]!;
    sinCosOfProducts([1], scaled, attentionFactor, rowSin, rowCos);
    cos.set(rowCos, t * pairs);
    sin.set(rowSin, t * pairs);
  }
  return { cos, sin };
}
