// What the rows of a compare say: losses by position with intervals, paired with the unscaled model and with forgetting,
// the price at short length, the length that is read, retrieval. From a manifest and rows alone, so that a run folder can
// be reported anywhere and any time; also while it is not complete.

import type { RunRow } from "../run-folder/rows.ts";
import { type Bin, logBins, sumBin } from "../statistics/bins.ts";
import { type Estimate, meanOverWindows, type WindowSum } from "../statistics/bootstrap.ts";
import { type Difference, pairedDifference } from "../statistics/paired.ts";
import { type Proportion, proportion } from "../statistics/proportion.ts";
import { type EffectiveLength, effectiveLengthByLoss } from "../tasks/effective-length.ts";
import type { CompareIdentity } from "./run.ts";
import { scalingOf } from "./scaling.ts";

/** One strategy at one bin of positions: a row of --json. */
export interface CompareRow {
  readonly strategy: string;
  /** As a strategy of `--scaling`, in plain data; null for the windowed baseline. */
  readonly scaling: unknown;
  /** From, and up to but not including: tokens before the predicted one, BOS included. */
  readonly position: readonly [from: number, to: number];
  readonly meanNegativeLogLikelihood: number;
  readonly low: number | null;
  readonly high: number | null;
  readonly tokens: number;
  readonly windows: number;
  /** Paired, on the same tokens; null for the baseline itself, and where it was not run. */
  readonly againstUnscaled: Difference | null;
  readonly againstForgetting: Difference | null;
}

export interface StrategySummary {
  readonly strategy: string;
  readonly windows: number;
  /** Mean loss at positions within the trained length, in short sequences; null when there is none. */
  readonly short: Estimate | null;
  /** Its difference from the unscaled model on the same tokens: the price. */
  readonly shortCost: Difference | null;
  /** Mean loss at positions beyond the trained length (at all positions, when nothing is beyond it). */
  readonly beyond: Estimate | null;
  readonly againstUnscaled: Difference | null;
  readonly againstForgetting: Difference | null;
  /** Against the strategy with the lowest loss beyond the trained length; null for that one. */
  readonly againstBest: Difference | null;
  /** Loss no higher than the strategy's own in the last bin within the trained length: what it costs there is shortCost. */
  readonly effectiveLength: EffectiveLength | null;
  /** Loss no higher than forgetting's on the same tokens. */
  readonly beatsForgettingTo: EffectiveLength | null;
  /** Passkeys found by teacher-forced exact match, by length. */
  readonly passkey: readonly { readonly length: number; readonly found: Proportion; readonly meanRank: number }[];
  /** Why it has no losses in some windows; null when it has. */
  readonly error: string | null;
}

export interface CompareResult {
  readonly model: string;
  readonly trainedLength: number | null;
  readonly target: number;
  readonly bos: "every-window" | "none";
  /** Windows that every strategy has, and planned. */
  readonly windows: number;
  readonly plannedWindows: number;
  readonly complete: boolean;
  /** The strategy that stands for the unscaled model, and the one that stands for forgetting; null where it was not
   *  among them. */
  readonly unscaled: string | null;
  readonly forgetting: string | null;
  /** The lowest mean loss beyond the trained length, forgetting aside. */
  readonly best: string | null;
  readonly rows: readonly CompareRow[];
  readonly strategies: readonly StrategySummary[];
}

/** Losses by window. */
type Losses = ReadonlyMap<number, readonly number[]>;

/**
 * The result of a compare's rows.
 *
 * @param identity of the run's manifest
 */
export function compareResult(identity: CompareIdentity, rows: readonly RunRow[]): CompareResult {
  const { target, trainedLength, strategies } = identity;
  const bins = logBins({ length: target, trainedLength, leastBeyond: 3 });
  const names = strategies.map(({ name }) => name);
  const unscaled = names.find((name) => name === "none") ?? null;
  const forgetting = names.find((name) => /^window\b/.test(name)) ?? null;
  const long = new Map(names.map((name) => [name, lossesOf(rows, "loss", name)]));
  const short = new Map(
    strategies.map(({ name, short: how }) => [
      name,
      how === "own-passes" ? lossesOf(rows, "short", name) : long.get(name)!,
    ]),
  );
  const seen = long.size === 0 ? [] : [...long.values()];
  const common = [...(seen[0]?.keys() ?? [])].filter((window) => seen.every((one) => one.has(window)));

  const rowsOut: CompareRow[] = [];
  for (const { name, encoding, reading } of strategies) {
    const own = long.get(name)!;
    if (own.size === 0) continue;
    for (const bin of bins) {
      const estimate = meanOverWindows(sums(own, [...own.keys()], bin));
      rowsOut.push({
        strategy: name,
        scaling: reading.kind === "windowed" ? null : scalingOf(encoding),
        position: [bin.from, bin.to],
        meanNegativeLogLikelihood: estimate.mean,
        low: estimate.low,
        high: estimate.high,
        tokens: estimate.tokens,
        windows: estimate.windows,
        againstUnscaled: against(own, unscaled, name, bin),
        againstForgetting: against(own, forgetting, name, bin),
      });
    }
  }
  function against(own: Losses, other: string | null, name: string, bin: Bin): Difference | null {
    if (other === null || other === name) return null;
    return paired(own, long.get(other)!, bin);
  }

  const beyondBin = beyond(trainedLength, target);
  const shortBin = trainedLength === null ? null : { from: 1, to: Math.min(trainedLength, target) };
  // Where the model has no unscaled positions at the target, forgetting's first window is the model as it was trained.
  const reference = unscaled ?? forgetting;
  const means = names
    .filter((name) => name !== forgetting && long.get(name)!.size > 0)
    .map((name) => ({ name, mean: ofBin(beyondBin, long.get(name)!)?.mean ?? Number.POSITIVE_INFINITY }));
  const best = means.sort((a, b) => a.mean - b.mean)[0]?.name ?? null;
  const summaries = names.map((name): StrategySummary => {
    const own = long.get(name)!;
    const ownShort = short.get(name)!;
    const failed = rows.find((row) => row.strategy === name && typeof row.error === "string");
    return {
      strategy: name,
      windows: own.size,
      short: ofBin(shortBin, ownShort),
      shortCost:
        reference === null || reference === name || shortBin === null
          ? null
          : paired(ownShort, short.get(reference)!, shortBin),
      beyond: ofBin(beyondBin, own),
      againstUnscaled: against(own, unscaled, name, beyondBin),
      againstForgetting: against(own, forgetting, name, beyondBin),
      againstBest: against(own, best, name, beyondBin),
      effectiveLength: trainedLength === null ? null : readsByLoss(own, bins, trainedLength),
      beatsForgettingTo:
        forgetting === null || forgetting === name || trainedLength === null
          ? null
          : effectiveLengthByLoss(
              bins
                .filter(({ to }) => to > trainedLength)
                .map((bin) => ({
                  length: bin.to,
                  verdict: paired(own, long.get(forgetting)!, bin)?.verdict ?? "unknown",
                })),
            ),
      passkey: passkeysOf(rows, name),
      error: failed === undefined ? null : (failed.error as string),
    };
  });
  const wanted = compareRowCount(identity);
  return {
    model: identity.model,
    trainedLength,
    target,
    bos: identity.bos === null ? "none" : "every-window",
    windows: common.length,
    plannedWindows: identity.windows.length,
    complete: rows.length >= wanted,
    unscaled,
    forgetting,
    best,
    rows: rowsOut,
    strategies: summaries,
  };
}

/** Rows that a complete run has. */
export function compareRowCount({ strategies, windows, needles, needleLengths }: CompareIdentity): number {
  const own = strategies.filter(({ short }) => short === "own-passes").length;
  const asked = strategies.filter(({ reading }) => reading.kind !== "growing").length;
  return windows.length * (strategies.length + own) + needles * needleLengths.length * asked;
}

function beyond(trainedLength: number | null, target: number): Bin {
  return trainedLength === null || trainedLength >= target
    ? { from: 1, to: target }
    : { from: trainedLength, to: target };
}

function lossesOf(rows: readonly RunRow[], kind: string, strategy: string): Losses {
  return new Map(
    rows
      .filter((row) => row.kind === kind && row.strategy === strategy && Array.isArray(row.losses))
      .map((row) => [row.window as number, row.losses as readonly number[]]),
  );
}

function sums(losses: Losses, windows: readonly number[], bin: Bin): WindowSum[] {
  return windows.map((window) => sumBin(losses.get(window)!, bin));
}

function ofBin(bin: Bin | null, losses: Losses): Estimate | null {
  if (bin === null || bin.to <= bin.from || losses.size === 0) return null;
  return meanOverWindows(sums(losses, [...losses.keys()], bin));
}

/** On the windows that both have. */
function paired(a: Losses, b: Losses, bin: Bin): Difference | null {
  const windows = [...a.keys()].filter((window) => b.has(window)).sort((x, y) => x - y);
  if (windows.length === 0 || bin.to <= bin.from) return null;
  return pairedDifference(sums(a, windows, bin), sums(b, windows, bin));
}

/** Each bin's mean loss against that of the last bin within the trained length, window by window: other tokens of the same
 *  text. */
function readsByLoss(own: Losses, bins: readonly Bin[], trainedLength: number): EffectiveLength | null {
  const last = bins.findLast(({ to }) => to <= trainedLength);
  if (last === undefined || own.size === 0) return null;
  const means = (bin: Bin): WindowSum[] =>
    sums(own, [...own.keys()], bin).map(({ sum, count }) => ({ sum: sum / count, count: 1 }));
  return effectiveLengthByLoss(
    bins
      .filter(({ to }) => to >= last.to)
      .map((bin) => ({ length: bin.to, verdict: pairedDifference(means(bin), means(last)).verdict })),
  );
}

function passkeysOf(rows: readonly RunRow[], strategy: string): StrategySummary["passkey"] {
  const own = rows.filter(
    (row) => row.kind === "passkey" && row.strategy === strategy && typeof row.exact === "number",
  );
  return [...new Set(own.map((row) => row.length as number))]
    .sort((a, b) => a - b)
    .map((length) => {
      const asked = own.filter((row) => row.length === length);
      return {
        length,
        found: proportion(
          asked.reduce((sum, row) => sum + (row.exact as number), 0),
          asked.length,
        ),
        meanRank: asked.reduce((sum, row) => sum + (row.rank as number), 0) / asked.length,
      };
    });
}
