// The normal and Student's t distributions, as far as intervals need them.

import { erfc } from "../../engine/reference/erf.ts";

/** P(Z ≤ z) of the standard normal, to about 1e-15 relative in the lower tail. */
export function normalCdf(z: number): number {
  return erfc(-z / Math.SQRT2) / 2;
}

/**
 * The quantile of Student's t: the x with P(T ≤ x) = p.
 *
 * @param degrees of freedom, an integer of at least 1; the probability is then a finite sum (Abramowitz and Stegun
 *   26.7.3, 26.7.4), which bisection turns round
 * @example
 * ```ts
 * import { studentQuantile } from "longhand/evaluation";
 * studentQuantile(0.975, 1); // => 12.706204736174698
 * ```
 */
export function studentQuantile(p: number, degrees: number): number {
  if (!(p > 0 && p < 1) || !Number.isInteger(degrees) || degrees < 1) {
    throw new RangeError(
      `studentQuantile: expected 0 < p < 1 and degrees of freedom that are an integer of at least 1, got ${p}, ${degrees}`,
    );
  }
  if (p < 0.5) return -studentQuantile(1 - p, degrees);
  // In the angle θ = atan(x/√ν) the probability is smooth up to x = ∞.
  let low = 0;
  let high = Math.PI / 2;
  for (let i = 0; i < 80; i++) {
    const middle = (low + high) / 2;
    if (0.5 + central(middle, degrees) / 2 < p) low = middle;
    else high = middle;
  }
  return Math.sqrt(degrees) * Math.tan((low + high) / 2);
}

/** P(|T| ≤ √ν tan θ). */
function central(theta: number, degrees: number): number {
  const [sin, cos] = [Math.sin(theta), Math.cos(theta)];
  const odd = degrees % 2 === 1;
  let term = odd ? cos : 1;
  let sum = 0;
  for (let k = odd ? 1 : 0; k <= degrees - 2; k += 2) {
    sum += term;
    term *= (cos * cos * (k + 1)) / (k + 2);
  }
  return odd ? (2 / Math.PI) * (theta + sin * sum) : sin * sum;
}
