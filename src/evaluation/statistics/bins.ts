// Bins of positions. The position of a predicted token is the number of tokens before it in its window, BOS included:
// from 1 to the window's length less one.

import type { WindowSum } from "./bootstrap.ts";

/** Positions from `from` up to, not including, `to`. */
export interface Bin {
  readonly from: number;
  readonly to: number;
}

export interface LogBinOptions {
  /** Tokens of a window: positions end before it. */
  readonly length: number;
  /** An edge, so that no bin mixes trained positions with untrained ones; the length when absent. */
  readonly trainedLength?: number | null;
  /** Bins by which a position doubles; 2 when absent. */
  readonly perOctave?: number;
  /** Positions below this share one bin; 16 when absent. */
  readonly first?: number;
  /** Bins beyond the trained length at least: where it is not doubled often enough, those beyond it are finer, in halves,
   *  quarters, … , but of no fewer positions than `first`. As fine as the others when absent. */
  readonly leastBeyond?: number;
}

/**
 * Bins whose edges are trained · 2^(k/perOctave). A bin at the end that is less than half its width joins the one before,
 * unless that lies within the trained length.
 *
 * @throws RangeError for a length below 2
 * @example
 * ```ts
 * import { logBins } from "longhand/evaluation";
 * const bins = logBins({ length: 256, trainedLength: 64, perOctave: 1 });
 * bins.map(({ from, to }) => [from, to]); // => [[1, 16], [16, 32], [32, 64], [64, 128], [128, 256]]
 * ```
 */
export function logBins(options: LogBinOptions): Bin[] {
  const { length, perOctave = 2, first = 16, leastBeyond } = options;
  if (!Number.isInteger(length) || length < 2) {
    throw new RangeError(`logBins: expected a length that is an integer of at least 2, got ${length}`);
  }
  if (!(perOctave > 0)) throw new RangeError(`logBins: expected perOctave above 0, got ${perOctave}`);
  const anchor = options.trainedLength ?? length;
  if (leastBeyond !== undefined && length > anchor) {
    let finer = perOctave;
    const narrowest = (n: number): number => anchor * (2 ** (1 / n) - 1);
    while (finer * Math.log2(length / anchor) < leastBeyond && narrowest(2 * finer) >= first) finer *= 2;
    if (finer > perOctave) {
      const within = logBins({ length: anchor, trainedLength: anchor, perOctave, first });
      const beyond = logBins({ length, trainedLength: anchor, perOctave: finer, first });
      return [...within, ...beyond.filter(({ from }) => from >= anchor)];
    }
  }
  const edgeAt = (k: number): number => Math.round(anchor * 2 ** (k / perOctave));
  const edges: number[] = [];
  const lowest = Math.min(first, length);
  for (let k = Math.ceil(perOctave * Math.log2(lowest / anchor)); edgeAt(k) < length; k++) {
    const edge = edgeAt(k);
    if (edge >= lowest && edge > (edges.at(-1) ?? 1)) edges.push(edge);
  }
  const last = edges.at(-1);
  const width = last === undefined ? 0 : last * (2 ** (1 / perOctave) - 1);
  if (last !== undefined && last !== anchor && length - last < width / 2) edges.pop();
  return between([1, ...edges, length]);
}

/**
 * Bins of equal width from position 1: [1, width), [width, 2·width), …
 *
 * @example
 * ```ts
 * import { linearBins } from "longhand/evaluation";
 * linearBins({ length: 10, width: 4 }); // => [{ from: 1, to: 4 }, { from: 4, to: 8 }, { from: 8, to: 10 }]
 * ```
 */
export function linearBins({ length, width }: { readonly length: number; readonly width: number }): Bin[] {
  if (!Number.isInteger(width) || width < 2 || !Number.isInteger(length) || length < 2) {
    throw new RangeError(`linearBins: expected integers of at least 2, got length ${length} and width ${width}`);
  }
  const edges = Array.from({ length: Math.ceil(length / width) - 1 }, (_, i) => (i + 1) * width);
  return between([1, ...edges, length]);
}

function between(edges: readonly number[]): Bin[] {
  return edges.slice(1).map((to, i) => ({ from: edges[i]!, to }));
}

/**
 * The losses of a window within a bin.
 *
 * @param losses index i: the loss of position i + 1
 * @throws RangeError for a bin that reaches past the losses
 */
export function sumBin(losses: ArrayLike<number>, { from, to }: Bin): WindowSum {
  if (from < 1 || to > losses.length + 1 || from >= to) {
    throw new RangeError(`sumBin: expected positions from 1 to ${losses.length}, got ${from} to ${to - 1}`);
  }
  let sum = 0;
  for (let position = from; position < to; position++) sum += losses[position - 1]!;
  return { sum, count: to - from };
}
