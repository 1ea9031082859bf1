// Losses within the trained length, and at each doubling of it: the short table of a small model.

import { type Bin, sumBin } from "./bins.ts";
import { type Estimate, meanOverWindows } from "./bootstrap.ts";

/**
 * Mean losses of the first `trained` predicted tokens, of as many behind them, of twice as many behind those, and so on.
 *
 * @param windows losses of each; index i: the loss of position i + 1; all of one length
 * @example
 * ```ts
 * import { lossByDoubling } from "longhand/evaluation";
 * const bins = lossByDoubling([[1, 1, 2, 2, 5], [3, 3, 2, 2, 5]], 2);
 * bins.map(({ from, to, mean }) => [from, to, mean]); // => [[1, 3, 2], [3, 5, 2], [5, 6, 5]]
 * ```
 */
export function lossByDoubling(windows: readonly ArrayLike<number>[], trained: number): (Bin & Estimate)[] {
  const length = windows[0]?.length ?? 0;
  const out: (Bin & Estimate)[] = [];
  for (let from = 0, to = trained; from < length; from = to, to *= 2) {
    const bin = { from: from + 1, to: Math.min(to, length) + 1 };
    const sums = windows.map((losses) => sumBin(losses, bin));
    out.push({ ...bin, ...meanOverWindows(sums, { seed: 1 }) });
  }
  return out;
}
