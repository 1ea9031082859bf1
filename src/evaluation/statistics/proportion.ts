// How often something succeeded, with Wilson's interval (Wilson 1927, JASA 22): it keeps its confidence at few trials and
// at 0 and 100 %, where the usual one has width 0.

import { wilsonInterval } from "../../training/tasks/wilson.ts";

export interface Proportion {
  readonly proportion: number;
  readonly low: number;
  readonly high: number;
  readonly successes: number;
  readonly trials: number;
}

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
  const [low, high] = wilsonInterval(successes, trials);
  return { proportion: successes / trials, low, high, successes, trials };
}
