// xPos (Sun et al. 2022, 2212.10554): RoPE whose pair i also grows on the query and shrinks on the key with position,
// so that a score fades with distance, fast pairs first. Queries and keys therefore have different tables.

import { expectEven, expectFinite, expectInteger, expectPositive, show } from "./errors.ts";
import { powers } from "./numerics/power.ts";
import { sinCosOfProducts } from "./numerics/sincos.ts";
import type { QueryKeyEncoding, RotaryLayout, RotaryTables } from "./position-encoding.ts";

export interface XposOptions {
  /** D, even: the whole head is rotated. */
  readonly headDim: number;
  /** 10000 when absent. */
  readonly ropeTheta?: number;
  /** "interleaved", the authors', when absent. */
  readonly layout?: RotaryLayout;
  /** Tokens over which the scale acts once; 512 when absent. */
  readonly scaleBase?: number;
  /** Where the scale is 1. Absent: the middle of the sequence, ceil(length / 2), as in the authors' TorchScale, which
   *  keeps both scales near 1 but moves with the length. A number fixes it, and makes rotated keys cacheable. */
  readonly centre?: number;
}

/**
 * ζ_i = (2i + 0.4·D) / (1.4·D) for each pair i: what a score of that pair keeps over scaleBase tokens.
 *
 * Sun et al. 2022 (2212.10554), section 3 (γ = 0.4), and the authors' TorchScale.
 *
 * @returns D/2 values, from 0.2857 to just below 1
 * @throws RangeError for an odd headDim
 * @example
 * ```ts
 * import { xposScales } from "longhand/encodings";
 * xposScales(4); // => [0.2857142857142857, 0.6428571428571429]
 * ```
 */
export function xposScales(headDim: number): Float64Array {
  expectEven("xposScales", "headDim", headDim);
  return Float64Array.from({ length: headDim / 2 }, (_, i) => (2 * i + 0.4 * headDim) / (1.4 * headDim));
}

/**
 * xPos as an encoding: query tables are (cos, sin) · ζ_i^((p − c)/scaleBase), key tables are divided by it, so that a
 * score of pair i holds ζ_i^((p_q − p_k)/scaleBase) whatever the centre c.
 *
 * Sun et al. 2022 (2212.10554), section 3. The cache trap: without a fixed `centre`, c is half of the current length,
 * so keys cached at one length and queries scaled at another no longer cancel, and every score is off by
 * ζ_i^((c' − c)/scaleBase). `dependsOnLength` says so. With a fixed centre the scales leave float32 about 30,000 tokens
 * away from it (ζ_0^(30000/512) is 1e-32).
 *
 * @returns an encoding whose dependsOnLength is false only with a fixed centre
 * @throws RangeError for an odd headDim, constants that are not positive, or positions that are not finite
 * @example
 * ```ts
 * import { xpos } from "longhand/encodings";
 * const encoding = xpos({ headDim: 2, centre: 0 });
 * const [q, k] = [encoding.queryTables([512], 1024), encoding.keyTables([512], 1024)];
 * const magnitude = (tables) => Math.hypot(tables.cos[0], tables.sin[0]);
 * magnitude(q); // => 0.2857142857142857
 * magnitude(k); // => 3.5
 * ```
 */
export function xpos(options: XposOptions): QueryKeyEncoding & { readonly scales: Float64Array } {
  const who = "xpos";
  const headDim = expectEven(who, "headDim", options.headDim);
  const theta = expectPositive(who, "ropeTheta", options.ropeTheta ?? 10000);
  const scaleBase = expectPositive(who, "scaleBase", options.scaleBase ?? 512);
  const layout = options.layout ?? "interleaved";
  if (layout !== "half" && layout !== "interleaved") {
    throw new RangeError(`${who}: expected layout to be "half" or "interleaved", got ${show(layout)}`);
  }
  if (options.centre !== undefined) expectFinite(who, "centre", options.centre);
  const pairs = headDim / 2;
  const scales = xposScales(headDim);
  const exponents = Float64Array.from({ length: pairs }, (_, i) => (2 * i) / headDim);
  const omegas = powers(theta, exponents).map((wave) => 1 / wave);

  function tables(positions: ArrayLike<number>, sequenceLength: number, sign: 1 | -1): RotaryTables {
    const centre = options.centre ?? Math.ceil(expectInteger(who, "sequenceLength", sequenceLength, 1) / 2);
    for (let t = 0; t < positions.length; t++) expectFinite(who, "positions", positions[t]!);
    const cos = new Float64Array(positions.length * pairs);
    const sin = new Float64Array(positions.length * pairs);
    sinCosOfProducts(positions, omegas, 1, sin, cos);
    for (let t = 0, at = 0; t < positions.length; t++) {
      const exponent = (sign * (positions[t]! - centre)) / scaleBase;
      for (let i = 0; i < pairs; i++, at++) {
        const scale = scales[i]! ** exponent;
        cos[at] = cos[at]! * scale;
        sin[at] = sin[at]! * scale;
      }
    }
    return { cos, sin };
  }

  return {
    site: "query-key",
    name: "xpos",
    headDim,
    rotaryDim: headDim,
    layout,
    scales,
    dependsOnLength: options.centre === undefined,
    queryTables: (positions, sequenceLength) => tables(positions, sequenceLength, 1),
    keyTables: (positions, sequenceLength) => tables(positions, sequenceLength, -1),
  };
}
