// cos and sin tables of a rotary encoding. Angles are float64 products p·ω; the attention factor multiplies both.

import { show } from "../errors.ts";
import { sinCosOfProducts } from "../numerics/sincos.ts";
import type { RotaryTables } from "../position-encoding.ts";

/**
 * attentionFactor · cos(p·ω_i) and attentionFactor · sin(p·ω_i).
 *
 * @param frequencies inverseFrequencies [P] in radians a token, and the attention factor
 * @param positions T positions in tokens; fractions are allowed (interpolated positions)
 * @returns cos and sin, each [T, P] in float64; cast once, where an engine needs float32
 * @throws RangeError for a position that is not finite
 * @example
 * ```ts
 * import { rotaryTables } from "longhand/encodings";
 * const { cos } = rotaryTables({ inverseFrequencies: [1, 0.01], attentionFactor: 1 }, [0, 1]);
 * cos; // => [1, 1, 0.5403023058681398, 0.9999500004166653]
 * ```
 * Source: RoFormer (Su et al. 2021, 2104.09864), equation 15; the factor as in YaRN, section 3.4.
 */
export function rotaryTables(
  frequencies: { readonly inverseFrequencies: ArrayLike<number>; readonly attentionFactor: number },
  positions: ArrayLike<number>,
): RotaryTables {
  const { inverseFrequencies, attentionFactor } = frequencies;
  const size = positions.length * inverseFrequencies.length;
  const cos = new Float64Array(size);
  const sin = new Float64Array(size);
  checkPositions(positions);
  sinCosOfProducts(positions, inverseFrequencies, attentionFactor, sin, cos);
  return { cos, sin };
}

/**
 * As `rotaryTables`, rounded once to float32: half the memory, for handing to an engine.
 *
 * @throws RangeError for a position that is not finite
 * @example
 * ```ts
 * import { rotaryTablesFloat32 } from "longhand/encodings";
 * rotaryTablesFloat32({ inverseFrequencies: [1], attentionFactor: 1 }, [1]).cos; // => [0.5403022766113281]
 * ```
 * Source: as `rotaryTables`.
 */
export function rotaryTablesFloat32(
  frequencies: { readonly inverseFrequencies: ArrayLike<number>; readonly attentionFactor: number },
  positions: ArrayLike<number>,
): { readonly cos: Float32Array; readonly sin: Float32Array } {
  const { inverseFrequencies, attentionFactor } = frequencies;
  const size = positions.length * inverseFrequencies.length;
  const cos = new Float32Array(size);
  const sin = new Float32Array(size);
  checkPositions(positions);
  sinCosOfProducts(positions, inverseFrequencies, attentionFactor, sin, cos);
  return { cos, sin };
}

/**
 * Tables of a rotation that does nothing, cos 1 and sin 0: how NoPE and DroPE run on a rotary model's graph.
 *
 * @param numPositions T
 * @param numPairs P
 * @example
 * ```ts
 * import { identityTables } from "longhand/encodings";
 * identityTables(1, 2); // => { cos: [1, 1], sin: [0, 0] }
 * ```
 * Source: DroPE (2512.12167), section 4; the authors' code.
 */
export function identityTables(numPositions: number, numPairs: number): RotaryTables {
  return {
    cos: new Float64Array(numPositions * numPairs).fill(1),
    sin: new Float64Array(numPositions * numPairs),
  };
}

function checkPositions(positions: ArrayLike<number>): void {
  for (let t = 0; t < positions.length; t++) {
    if (!Number.isFinite(positions[t]!)) {
      throw new RangeError(`rotaryTables: expected finite positions, got ${show(positions[t])} at index ${t}`);
    }
  }
}
