// Losses of trained models at lengths up to 16 times their own, under both protocols of evaluation, kept in a run folder
// so that what is measured once is not measured again.

import {
  type EvaluationStrategy,
  openRun,
  perplexityOf,
  perplexityWindows,
  type Run,
  scorePerplexityWindow,
} from "../../src/evaluation/index.ts";
import { heldOutPieces, type TrainedModel } from "./trained.ts";

export const multiples = [1, 2, 4, 8, 16] as const;
export const protocols = ["non-overlapping", "sliding-window"] as const;
export type Protocol = (typeof protocols)[number];

/** Bytes of each piece of text, and pieces. */
const pieceBytes = 8192;
const pieces = 4;

export interface Measured {
  readonly mean: number;
  readonly low: number | null;
  readonly high: number | null;
}

export async function openResults(folder: string): Promise<Run> {
  return openRun(folder, { kind: "experiment", identity: { text: "sotu: held out", pieces, pieceBytes } });
}

/**
 * The loss at a multiple of the trained length: windows of that length, and either all tokens of windows that do not
 * overlap, or the last quarter of windows that slide by a quarter (all of the first one). Null where a model cannot be
 * run at the length.
 */
export async function measure(
  run: Run,
  name: string,
  { model, recipe }: TrainedModel,
  strategy: Pick<EvaluationStrategy, "name" | "encoding">,
  length: number,
  protocol: Protocol,
): Promise<Measured> {
  const key = `${name}|${strategy.name}|${length}|${protocol}`;
  const known = run.get(key);
  if (known !== undefined) return known as unknown as Measured;
  const options = {
    length,
    bos: recipe.bosTokenId,
    ...(protocol === "sliding-window" ? { stride: Math.floor(length / 4) } : {}),
  };
  const all = [];
  const losses = [];
  for (const piece of await heldOutPieces(pieces, pieceBytes)) {
    for (const window of perplexityWindows(piece.length, options)) {
      all.push(window);
      losses.push(await scorePerplexityWindow(model, piece, window, strategy, options));
    }
  }
  const { mean, low, high } = perplexityOf(all, losses, options);
  await run.append({ key, name, strategy: strategy.name, length, protocol, mean, low, high });
  return { mean, low, high };
}
