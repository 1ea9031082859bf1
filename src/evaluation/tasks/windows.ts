// Cutting a text into windows. BOS stands at the head of every window when the model was trained with one at the head of
// every text: a window that begins in the middle without it costs the model more than any scaling does.

export interface Window {
  /** From 0. */
  readonly index: number;
  /** BOS first where there is one. */
  readonly tokens: Int32Array;
  /** Where its text begins among the text's tokens. */
  readonly start: number;
}

export interface WindowOptions {
  /** Tokens of a window, BOS included. */
  readonly length: number;
  /** Put at the head of every window; null: nothing is. */
  readonly bos: number | null;
  /** At most so many, spread evenly over the text; all that fit when absent. */
  readonly windows?: number;
}

/**
 * Windows that share no token. What is left over at the text's end is in none.
 *
 * @param tokens of the text, without special tokens
 * @throws RangeError for a text that is shorter than one window
 * @example
 * ```ts
 * import { cutWindows } from "longhand/evaluation";
 * const windows = cutWindows([10, 11, 12, 13, 14, 15, 16], { length: 3, bos: 1 });
 * windows.map(({ tokens }) => [...tokens]); // => [[1, 10, 11], [1, 12, 13], [1, 14, 15]]
 * ```
 */
export function cutWindows(tokens: ArrayLike<number>, options: WindowOptions): Window[] {
  const { length, bos } = options;
  if (!Number.isInteger(length) || length < 2) {
    throw new RangeError(`cutWindows: expected a length that is an integer of at least 2, got ${length}`);
  }
  const head = bos === null ? 0 : 1;
  const own = length - head;
  const fits = Math.floor(tokens.length / own);
  const wanted = options.windows ?? fits;
  if (!Number.isInteger(wanted) || wanted < 1) {
    if (options.windows !== undefined || fits > 0) {
      throw new RangeError(`cutWindows: expected at least one window, got ${wanted}`);
    }
  }
  if (fits < 1) {
    throw new RangeError(
      `cutWindows: expected a text of at least ${own} tokens, for one window, got ${tokens.length}; give more text or ` +
        "a shorter length",
    );
  }
  const count = Math.min(wanted, fits);
  return Array.from({ length: count }, (_, index) => {
    // Evenly spread over the places for windows: all of a text counts, not its beginning alone.
    const start = Math.floor((index * fits) / count) * own;
    const out = new Int32Array(length);
    if (bos !== null) out[0] = bos;
    for (let i = 0; i < own; i++) out[head + i] = tokens[start + i]!;
    return { index, tokens: out, start };
  });
}
