// How often something succeeded, with Wilson's interval (Wilson 1927, JASA 22): it keeps its confidence at few trials and
// at 0 and 100 %, where the usual one has width 0.

export interface Proportion {
  readonly proportion: number;
  readonly low: number;
  readonly high: number;
  readonly successes: number;
  readonly trials: number;
}

/** The 97.5 % point of the standard normal. */
const z95 = 1.959963984540054;

/**
 * A proportion and its 95 % interval.
 *
 * @param successes of trials; a sum of partial scores between 0 and 1 is taken as it is
 * @throws RangeError unless 0 ≤ successes ≤ trials and trials is an integer of at least 1
 * @example
 * ```ts
 * import { proportion } from "longhand/evaluation";
 * const { low, high } = proportion(10, 10);
 * [low.toFixed(3), high]; // => ["0.722", 1]
 * ```
 */
export function proportion(successes: number, trials: number): Proportion {
  if (!Number.isInteger(trials) || trials < 1 || !(successes >= 0 && successes <= trials)) {
    throw new RangeError(
      `proportion: expected 0 ≤ successes ≤ trials, trials at least 1, got ${successes} of ${trials}`,
    );
  }
  const p = successes / trials;
  const square = (z95 * z95) / trials;
  const center = (p + square / 2) / (1 + square);
  const half = (z95 / (1 + square)) * Math.sqrt((p * (1 - p)) / trials + square / (4 * trials));
  return {
    proportion: p,
    // At the ends the bound is exact; rounding must not leave 1e-17 of it.
    low: successes === 0 ? 0 : center - half,
    high: successes === trials ? 1 : center + half,
    successes,
    trials,
  };
}
