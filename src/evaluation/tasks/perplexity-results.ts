// What the rows of a perplexity run say: a result for every strategy and length. From rows alone, so that a run folder can
// be reported anywhere; also while it is not complete.

import type { RunRow } from "../run-folder/rows.ts";
import { type Perplexity, type PerplexityWindow, perplexityOf } from "./perplexity.ts";

/** A row of a perplexity run: one window of one text under one strategy. */
export interface PerplexityRow {
  readonly strategy: string;
  /** Tokens of a window, BOS included. */
  readonly length: number;
  /** Index of the text. */
  readonly text: number;
  /** Of the text's tokens: begin … end − 1 were fed, the last `tokens` of them scored. */
  readonly begin: number;
  readonly end: number;
  readonly tokens: number;
  /** Of the scored tokens: the sum of their losses in nats, and the UTF-8 bytes that they stand for. */
  readonly sum: number;
  readonly bytes: number;
}

export interface PerplexityResult extends Perplexity {
  readonly strategy: string;
}

/**
 * Perplexities of a run, in the order in which strategies and lengths first come.
 *
 * @param rows of a run folder, each with the fields of a PerplexityRow
 * @param stride null: windows side by side
 */
export function perplexityResults(
  rows: readonly RunRow[],
  { stride, bos }: { readonly stride: number | null; readonly bos: number | null },
): PerplexityResult[] {
  const groups = new Map<string, PerplexityRow[]>();
  for (const one of rows as readonly unknown[] as readonly PerplexityRow[]) {
    const key = JSON.stringify([one.strategy, one.length]);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [one]);
    else group.push(one);
  }
  return [...groups.values()].map((group) => {
    // A run that went on, or was merged, may have its windows in another order.
    const own = [...group].sort((a, b) => a.text - b.text || a.begin - b.begin);
    const { strategy, length } = own[0]!;
    const windows = own.map(({ begin, end, tokens }, index): PerplexityWindow => {
      return { index, begin, end, scored: end - tokens };
    });
    const losses = own.map(({ sum, tokens, bytes }) => ({ sum, count: tokens, bytes }));
    return { strategy, ...perplexityOf(windows, losses, { length, bos, ...(stride === null ? {} : { stride }) }) };
  });
}
