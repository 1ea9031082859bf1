// Several things under way at once, taken up in the order in which they were begun: so rows lie in a run folder as one
// process writes them, however many requests a server answers at a time.

/**
 * Works on items, up to `concurrency` at once, and hands each result on in the items' order.
 *
 * An error is thrown when its turn comes: what lies before it has been handed on. The signal that work gets is aborted
 * then, and what is still under way is waited for.
 *
 * @param done is not called again before it has ended
 * @example
 * ```ts
 * import { inOrder } from "longhand/evaluation";
 * const seen = [];
 * const slowFirst = (ms) => new Promise((resolve) => setTimeout(() => resolve(ms), ms));
 * await inOrder([20, 1], 2, slowFirst, async (_, ms) => void seen.push(ms));
 * seen; // => [20, 1]
 * ```
 */
export async function inOrder<Item, Result>(
  items: Iterable<Item>,
  concurrency: number,
  work: (item: Item, signal: AbortSignal) => Promise<Result>,
  done: (item: Item, result: Result) => Promise<void>,
): Promise<void> {
  if (!Number.isInteger(concurrency) || concurrency < 1) {
    throw new RangeError(`inOrder: expected a concurrency that is an integer of at least 1, got ${concurrency}`);
  }
  const stop = new AbortController();
  const begun: { readonly item: Item; readonly result: Promise<Result> }[] = [];
  const left = items[Symbol.iterator]();
  const begin = (): void => {
    while (begun.length < concurrency) {
      const { done: ended, value } = left.next();
      if (ended) return;
      const result = work(value, stop.signal);
      // Whose turn has not come yet is nobody's unhandled error.
      result.catch(() => undefined);
      begun.push({ item: value, result });
    }
  };
  try {
    for (begin(); begun.length > 0; begin()) {
      const { item, result } = begun[0]!;
      const value = await result;
      begun.shift();
      await done(item, value);
    }
  } finally {
    stop.abort(new Error("internal: stopped with its neighbours"));
    await Promise.allSettled(begun.map(({ result }) => result));
  }
}
