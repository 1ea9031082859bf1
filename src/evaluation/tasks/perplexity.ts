// Perplexity of a text under one of two protocols, which are always named, since they rank encodings differently:
//   non-overlapping: windows side by side; the first tokens of each see little (the early-token curse)
//   sliding-window:  windows every `stride` tokens, of each only what the one before did not score; each token sees at
//                    least length − stride tokens, at length / stride times the cost
// Cutting and averaging follow Hugging Face's guide "Perplexity of fixed-length models".

import type { RunOptions } from "../../engine/index.ts";
import type { ScoringModel } from "../model.ts";
import { bitsPerByte } from "../statistics/bits-per-byte.ts";
import { type Estimate, type IntervalOptions, meanOverWindows } from "../statistics/bootstrap.ts";
import type { EvaluationStrategy } from "../strategies/strategy.ts";

export interface PerplexityOptions {
  /** Tokens of a window, BOS included; `max_length` of the guide. */
  readonly length: number;
  /** Tokens from one window's begin to the next one's; as many as a window has when absent: non-overlapping. */
  readonly stride?: number;
  /** Put at the head of every window; null: nothing is, and the first token of a text is not scored. */
  readonly bos: number | null;
}

/** A window over a text's tokens. */
export interface PerplexityWindow {
  readonly index: number;
  /** Tokens begin … end − 1 are fed. */
  readonly begin: number;
  readonly end: number;
  /** Tokens from this one on are scored. */
  readonly scored: number;
}

export interface WindowLoss {
  /** Sum of the losses, nats. */
  readonly sum: number;
  /** Tokens scored. */
  readonly count: number;
  /** UTF-8 bytes that they stand for, where a tokenizer says so. */
  readonly bytes?: number;
}

export interface Perplexity extends Estimate {
  readonly protocol: "non-overlapping" | "sliding-window";
  readonly length: number;
  readonly stride: number;
  readonly bos: "every-window" | "none";
  /** exp of the mean loss of all scored tokens. */
  readonly perplexity: number;
  /** The guide's own number. It weighs a window by its new tokens less one, also behind the first window, where all of
   *  them are scored; so it differs a little when windows slide. */
  readonly guidePerplexity: number;
  /** UTF-8 bytes of the scored tokens, and bits per byte; null where the losses do not say. */
  readonly bytes: number | null;
  readonly bitsPerByte: number | null;
}

/**
 * The windows over a text of `numTokens` tokens.
 *
 * @throws RangeError for a length below 2, a stride outside 1 to the window's own tokens, or fewer than 2 tokens
 * @example
 * ```ts
 * import { perplexityWindows } from "longhand/evaluation";
 * perplexityWindows(10, { length: 6, stride: 3, bos: null });
 * // => [{ index: 0, begin: 0, end: 6, scored: 1 }, { index: 1, begin: 3, end: 9, scored: 6 },
 * //     { index: 2, begin: 6, end: 10, scored: 9 }]
 * ```
 */
export function perplexityWindows(numTokens: number, { length, stride, bos }: PerplexityOptions): PerplexityWindow[] {
  const own = bos === null ? length : length - 1;
  const step = stride ?? own;
  if (!Number.isInteger(length) || length < 2) {
    throw new RangeError(`perplexity: expected a length that is an integer of at least 2, got ${length}`);
  }
  if (!Number.isInteger(step) || step < 1 || step > own) {
    throw new RangeError(`perplexity: expected a stride from 1 to ${own}, a window's own tokens, got ${step}`);
  }
  if (numTokens < 2) throw new RangeError(`perplexity: expected at least 2 tokens, got ${numTokens}`);
  const windows: PerplexityWindow[] = [];
  let previous = 0;
  for (let begin = 0; begin < numTokens; begin += step) {
    const end = Math.min(begin + own, numTokens);
    // Without BOS the first token of what is fed has nothing before it.
    const scored = bos === null ? Math.max(previous, begin + 1) : previous;
    if (scored < end) windows.push({ index: windows.length, begin, end, scored });
    previous = end;
    if (end === numTokens) break;
  }
  return windows;
}

/** The loss of one window. */
export async function scorePerplexityWindow(
  model: ScoringModel,
  tokens: ArrayLike<number>,
  window: PerplexityWindow,
  strategy: Pick<EvaluationStrategy, "encoding">,
  { bos }: Pick<PerplexityOptions, "bos">,
  run: RunOptions = {},
): Promise<WindowLoss> {
  const { begin, end, scored } = window;
  const head = bos === null ? 0 : 1;
  const fed = new Int32Array(head + end - begin);
  if (bos !== null) fed[0] = bos;
  for (let i = begin; i < end; i++) fed[head + i - begin] = tokens[i]!;
  const { negativeLogLikelihood } = await model.score(fed, { ...strategy.encoding, ...run });
  let sum = 0;
  for (let i = scored; i < end; i++) sum += negativeLogLikelihood[head + i - begin - 1]!;
  return { sum, count: end - scored };
}

/**
 * The perplexity of a text, or of several one after the other, from their windows' losses.
 *
 * @param windows as `perplexityWindows` gave them
 * @param losses of the same windows
 */
export function perplexityOf(
  windows: readonly PerplexityWindow[],
  losses: readonly WindowLoss[],
  options: PerplexityOptions & IntervalOptions,
): Perplexity {
  const { length, stride, bos } = options;
  const own = bos === null ? length : length - 1;
  const estimate = meanOverWindows(losses, options);
  let weighted = 0;
  let weights = 0;
  let previous = 0;
  for (const [i, { begin, end, scored }] of windows.entries()) {
    // Another text.
    if (begin === 0) previous = 0;
    const { sum, count } = losses[i]!;
    // The guide counts the labels that are not masked (BOS's place among them) and takes one off for the shift.
    const labels = bos !== null && begin === scored ? end - begin + 1 : end - previous;
    const weight = labels - 1;
    weighted += (sum / count) * weight;
    weights += weight;
    previous = end;
  }
  const bytes = losses.every((loss) => loss.bytes !== undefined)
    ? losses.reduce((sum, loss) => sum + loss.bytes!, 0)
    : null;
  const isSliding = stride !== undefined && stride < own;
  return {
    ...estimate,
    protocol: isSliding ? "sliding-window" : "non-overlapping",
    length,
    stride: stride ?? own,
    bos: bos === null ? "none" : "every-window",
    perplexity: Math.exp(estimate.mean),
    guidePerplexity: Math.exp(weighted / weights),
    bytes,
    bitsPerByte: bytes === null || bytes === 0 ? null : bitsPerByte(estimate.mean * estimate.tokens, bytes),
  };
}
