// The loss of every position of a window under a strategy. Losses are kept token by token: bins, intervals and pairs are
// made of them afterwards.

import type { RunOptions } from "../../engine/index.ts";
import type { ScoringModel } from "../model.ts";
import type { EvaluationStrategy } from "../strategies/strategy.ts";

export interface LossOptions extends RunOptions {
  /** The BOS at the head of the window, put before every piece that the model sees; null: none. */
  readonly bos: number | null;
  /** L: the reading "growing" begins behind it. */
  readonly trainedLength: number | null;
}

/** A run of the model that a strategy asks for: tokens `from` up to `to` of the window are fed, and the losses of
 *  positions from `scored` on are taken. */
export interface Pass {
  readonly from: number;
  readonly to: number;
  readonly scored: number;
}

/**
 * The passes over a window of `length` tokens. Their cost is Σ (to − from).
 *
 * @example
 * ```ts
 * import { lossPasses, parseEvaluationStrategy } from "longhand/evaluation";
 * const lengths = { trainedLength: 4, target: 9 };
 * lossPasses(parseEvaluationStrategy("window", lengths), 9, lengths);
 * // => [{ from: 0, to: 4, scored: 1 }, { from: 2, to: 6, scored: 4 }, { from: 4, to: 8, scored: 6 },
 * //     { from: 5, to: 9, scored: 8 }]
 * ```
 */
export function lossPasses(
  { reading }: EvaluationStrategy,
  length: number,
  { trainedLength }: { readonly trainedLength: number | null },
): Pass[] {
  if (reading.kind === "whole") return [{ from: 0, to: length, scored: 1 }];
  const first = reading.kind === "windowed" ? reading.window : (trainedLength ?? length);
  const step = reading.kind === "windowed" ? reading.stride : reading.block;
  const passes: Pass[] = [{ from: 0, to: Math.min(first, length), scored: 1 }];
  for (let scored = first; scored < length; scored += step) {
    const to = Math.min(scored + step, length);
    passes.push({ from: reading.kind === "windowed" ? to - reading.window : 0, to, scored });
  }
  return passes;
}

/**
 * The losses of a window: index i is that of position i + 1, which has i + 1 tokens before it, BOS included.
 *
 * Under the reading "windowed" a position behind the first window sees from `window − stride` to `window − 1` tokens.
 *
 * @throws whatever the model throws; RangeError for fewer than 2 tokens
 */
export async function lossByPosition(
  model: ScoringModel,
  tokens: Int32Array,
  strategy: EvaluationStrategy,
  options: LossOptions,
): Promise<Float64Array> {
  const { bos, trainedLength, onProgress, ...run } = options;
  const passes = lossPasses(strategy, tokens.length, { trainedLength });
  const total = passes.reduce((sum, { from, to }) => sum + to - from, 0);
  const losses = new Float64Array(tokens.length - 1);
  let done = 0;
  for (const { from, to, scored } of passes) {
    const piece = tokens.slice(from, to);
    // The piece keeps its length: BOS takes the place of the token that is furthest away.
    if (bos !== null) piece[0] = bos;
    const before = done;
    const { negativeLogLikelihood } = await model.score(piece, {
      ...strategy.encoding,
      ...run,
      ...(onProgress === undefined
        ? {}
        : { onProgress: ({ done: inner }: { done: number }) => onProgress({ done: before + inner, total }) }),
    });
    for (let position = scored; position < to; position++) {
      losses[position - 1] = negativeLogLikelihood[position - from - 1]!;
    }
    done += to - from;
    onProgress?.({ done, total });
  }
  return losses;
}
