// Two strategies on the same tokens: the difference of their losses, window by window. What the windows have in common
// (this chapter is hard, that one is not) cancels, so that differences of 0.01 nats show where the losses spread by 0.5.

import { type Estimate, type IntervalOptions, meanOverWindows, type WindowSum } from "./bootstrap.ts";

/** lower and higher: the interval of the difference lies on one side of 0. tie: it contains 0. unknown: one window gives
 *  no interval. */
export type Verdict = "lower" | "higher" | "tie" | "unknown";

export interface Difference extends Estimate {
  /** Of the first against the second. */
  readonly verdict: Verdict;
}

/**
 * The mean difference a − b over the same tokens.
 *
 * @param a by window
 * @param b the same windows, in the same order, with the same counts
 * @throws RangeError when windows or counts differ
 * @example
 * ```ts
 * import { pairedDifference } from "longhand/evaluation";
 * const of = (a, b, c) => [a, b, c].map((sum) => ({ sum, count: 10 }));
 * pairedDifference(of(20, 31, 51), of(30, 40, 60)).verdict; // => "lower"
 * pairedDifference(of(20, 31, 52), of(21, 30, 52)).verdict; // => "tie"
 * ```
 */
export function pairedDifference(
  a: readonly WindowSum[],
  b: readonly WindowSum[],
  options: IntervalOptions = {},
): Difference {
  if (a.length !== b.length) {
    throw new RangeError(`pairedDifference: expected as many windows on both sides, got ${a.length} and ${b.length}`);
  }
  const differences = a.map(({ sum, count }, i) => {
    const other = b[i]!;
    if (other.count !== count) {
      throw new RangeError(
        `pairedDifference: expected the same tokens in window ${i}, got ${count} and ${other.count}`,
      );
    }
    return { sum: sum - other.sum, count };
  });
  const estimate = meanOverWindows(differences, options);
  return { ...estimate, verdict: verdictOf(estimate) };
}

/** What an estimate of a difference lets one say. */
export function verdictOf({ low, high }: Pick<Estimate, "low" | "high">): Verdict {
  if (low === null || high === null) return "unknown";
  if (high < 0) return "lower";
  return low > 0 ? "higher" : "tie";
}
