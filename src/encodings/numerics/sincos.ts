// Sine and cosine of one angle together, from IEEE additions and multiplications alone: the same bits in every
// JavaScript engine (Math.sin may differ by an ulp between engines), and faster than two calls of Math.
// Reduction by π/2 in three parts (Cody and Waite 1980), then polynomials on |r| ≤ π/4 (Chebyshev fits computed with
// mpmath: errors 1e-17 and 5e-19). Absolute error under 3e-16 for every angle up to 2^53.

import { show } from "../errors.ts";

const TWO_OVER_PI = 0.6366197723675814;
// π/2 = A + B + C: A and B have at most 30 bits each, so that k·A and k·B are exact for |k| < 2^23.
const A = 1.570796325802803;
const B = 9.920935791635221e-10;
const C = 5.170182981794105e-19;
const REDUCIBLE = 2 ** 23;
/** Adding and subtracting this rounds to the nearest integer. */
const ROUND = 6755399441055744;
/** π/2 · 2^200, for larger angles. */
const HALF_PI_200 = 0x1921fb54442d18469898cc51701b839a252049c1114cf98e804n;

// sin r = r + r³·S(r²), cos r = 1 − r²/2 + r⁴·K(r²).
const S0 = -0.16666666666666666;
const S1 = 0.008333333333330936;
const S2 = -0.00019841269836740532;
const S3 = 2.7557316093198404e-6;
const S4 = -2.5051129896450185e-8;
const S5 = 1.5917988979397435e-10;
const K0 = 0.041666666666666664;
const K1 = -0.0013888888888887389;
const K2 = 2.48015872987544e-5;
const K3 = -2.755731726587808e-7;
const K4 = 2.087614504941318e-9;
const K5 = -1.138254464534925e-11;

// By quadrant q = k mod 4: sin = s·SAME[q] + c·SWAP[q], cos = c·SAME[q] − s·SWAP[q]. Exact, and without a branch.
const SAME = new Float64Array([1, 0, -1, 0]);
const SWAP = new Float64Array([0, 1, 0, -1]);

/** angle = k·π/2 + r for |angle| from REDUCIBLE up, by integers: [r, k mod 4]. */
function reduceLarge(angle: number): [number, number] {
  const magnitude = Math.abs(angle);
  if (!(magnitude <= 2 ** 53)) {
    throw new RangeError(`sinCos: expected an angle of at most 2^53 in magnitude, got ${show(angle)}`);
  }
  const whole = Math.floor(magnitude);
  // Both parts are exact: a double from 2^20 up has at most 32 fractional bits.
  const scaled = (BigInt(whole) << 200n) + (BigInt((magnitude - whole) * 2 ** 32) << 168n);
  let k = scaled / HALF_PI_200;
  let rest = scaled - k * HALF_PI_200;
  if (rest * 2n > HALF_PI_200) {
    rest -= HALF_PI_200;
    k += 1n;
  }
  const r = Number(rest) * 2 ** -200;
  const q = Number(k & 3n);
  return angle < 0 ? [-r, (4 - q) & 3] : [r, q];
}

/**
 * Sine and cosine of an angle in radians.
 *
 * @throws RangeError for an angle that is not finite or above 2^53 in magnitude
 * @example
 * ```ts
 * import { sinCos } from "longhand/encodings";
 * sinCos(0); // => { sin: 0, cos: 1 }
 * sinCos(1048576).cos; // => 0.943808393901312
 * ```
 * Source: three-part reduction, Cody and Waite 1980, "Software Manual for the Elementary Functions".
 */
export function sinCos(angle: number): { sin: number; cos: number } {
  const sin = new Float64Array(1);
  const cos = new Float64Array(1);
  sinCosOfProducts([1], [angle], 1, sin, cos);
  return { sin: sin[0]!, cos: cos[0]! };
}

/**
 * Tables of scale·sin(p·ω) and scale·cos(p·ω), row-major [positions, frequencies]; the angle is the float64 product.
 * The outputs may be Float64Array or Float32Array (then each value is rounded once).
 *
 * @throws RangeError for an angle that is not finite or above 2^53 in magnitude
 * @example
 * ```ts
 * import { sinCosOfProducts } from "longhand/encodings";
 * const sin = new Float64Array(4), cos = new Float64Array(4);
 * sinCosOfProducts([0, 1], [1, 0.5], 1, sin, cos);
 * cos; // => [1, 1, 0.5403023058681398, 0.8775825618903728]
 * ```
 * Source: as `sinCos`.
 */
export function sinCosOfProducts(
  positions: ArrayLike<number>,
  frequencies: ArrayLike<number>,
  scale: number,
  sin: Float64Array | Float32Array,
  cos: Float64Array | Float32Array,
): void {
  const columns = frequencies.length;
  for (let row = 0, at = 0; row < positions.length; row++) {
    const position = positions[row]!;
    for (let column = 0; column < columns; column++, at++) {
      const angle = position * frequencies[column]!;
      const k = angle * TWO_OVER_PI + ROUND - ROUND;
      let r: number;
      let q: number;
      if (k < REDUCIBLE && k > -REDUCIBLE) {
        const coarse = angle - k * A;
        const middle = k * B;
        r = coarse - middle;
        r += coarse - r - middle - k * C;
        q = k & 3;
      } else {
        [r, q] = reduceLarge(angle);
      }
      const z = r * r;
      const s = r + r * z * (S0 + z * (S1 + z * (S2 + z * (S3 + z * (S4 + z * S5)))));
      const c = 1 - z * 0.5 + z * z * (K0 + z * (K1 + z * (K2 + z * (K3 + z * (K4 + z * K5)))));
      const same = SAME[q]! * scale;
      const swap = SWAP[q]! * scale;
      sin[at] = s * same + c * swap;
      cos[at] = c * same - s * swap;
    }
  }
}
