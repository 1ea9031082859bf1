// The error function in float64, to about 1e-15 relative in both tails: a series of positive terms up to 2.5, a
// continued fraction beyond (Abramowitz and Stegun 7.1.6 and 7.1.14).

const TWO_OVER_ROOT_PI = 2 / Math.sqrt(Math.PI);

/** erf(x) = 2/√π ∫₀ˣ e^(−t²) dt. */
export function erf(x: number): number {
  if (Math.abs(x) > 2.5) return x > 0 ? 1 - erfc(x) : erfc(-x) - 1;
  // e^(−x²) Σ 2ⁿ x^(2n+1) / (1·3·5···(2n+1))
  let term = x;
  let sum = x;
  for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n++) {
    term *= (2 * x * x) / (2 * n + 1);
    sum += term;
  }
  return TWO_OVER_ROOT_PI * Math.exp(-x * x) * sum;
}

/** erfc(x) = 1 − erf(x), without the cancellation for large x. */
export function erfc(x: number): number {
  if (Number.isNaN(x)) return x;
  if (x <= 2.5) return 1 - erf(x);
  if (x > 28) return 0;
  // e^(−x²)/√π · 1/(x + (1/2)/(x + 1/(x + (3/2)/(x + …)))), from the inside out.
  let fraction = x;
  for (let k = 120; k >= 1; k--) fraction = x + k / 2 / fraction;
  return Math.exp(-x * x) / (Math.sqrt(Math.PI) * fraction);
}
