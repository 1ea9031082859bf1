// Searches the stretches of a model's hands on windows of a text, then holds what it found against the rules on windows
// that it has not seen. Every loss is a row of a run, by candidate: a search that stopped goes on where it was, and one
// with more generations begins with the losses of the one before it.

import type { LongRope } from "../../encodings/rope/scaling/parameters.ts";
import { toHuggingFace } from "../../formats/huggingface/index.ts";
import type { Strategy } from "../../models/index.ts";
import { type CompareText, placeWindows, windowTokens } from "../compare/plan.ts";
import type { ScoringModel } from "../model.ts";
import type { JsonRecord } from "../run-folder/index.ts";
import type { Run } from "../run-folder/run.ts";
import { sumBin } from "../statistics/bins.ts";
import { meanOverWindows, type WindowSum } from "../statistics/bootstrap.ts";
import { type Difference, pairedDifference } from "../statistics/paired.ts";
import { lossByPosition } from "../tasks/loss-by-position.ts";
import { type Candidate, type EvolutionOptions, evolve, type Generation, keyOf } from "./evolution.ts";
import { longRopeOf, type SearchSpace } from "./rules.ts";

export interface SearchJob {
  readonly space: SearchSpace;
  readonly bos: number | null;
  /** Windows of the target length that candidates are tried on, BOS first where there is one. */
  readonly windows: readonly Int32Array[];
  /** Others, for the comparison at the end. */
  readonly checks: readonly Int32Array[];
  readonly evolution: Omit<EvolutionOptions, "starts" | "mostStretch">;
}

/** What a rule, or what was found, loses on the windows for the comparison; nats a token. */
export interface CheckedLoss {
  readonly name: string;
  /** Of positions within the trained length, and beyond it. */
  readonly within: number;
  readonly beyond: number;
}

export interface SearchResult {
  /** What was found, as settings of type longrope: trained hands up to the trained length, stretched ones beyond. */
  readonly rope: LongRope;
  /** Loss on the windows that were searched on, all positions. */
  readonly generations: readonly { readonly generation: number; readonly tried: number; readonly loss: number }[];
  readonly rules: readonly { readonly name: string; readonly loss: number }[];
  /** The rule of the lowest loss on the windows that were searched on. */
  readonly bestRule: string;
  /** On the other windows. */
  readonly check: {
    readonly windows: number;
    readonly losses: readonly CheckedLoss[];
    /** What was found less the best rule, beyond the trained length. */
    readonly beyond: Difference;
    /** What was found less the unscaled model, within it: the price where an engine keeps the stretched hands always. */
    readonly within: Difference;
  };
}

export interface SearchProgress {
  /** Windows read, of those that the search will read at most. */
  readonly done: number;
  readonly total: number;
  /** The last generation that was finished. */
  readonly generation: Generation | null;
}

/**
 * Cuts windows out of texts: those to search on, and as many as asked for the comparison, in turn.
 *
 * @throws RangeError for texts that are too short for one window of each kind
 */
export function searchWindows(
  texts: readonly Pick<CompareText, "tokens">[],
  target: number,
  bos: number | null,
  { search, check }: { readonly search: number; readonly check: number },
): { readonly windows: Int32Array[]; readonly checks: Int32Array[] } {
  const own = bos === null ? target : target - 1;
  const places = placeWindows(
    texts.map(({ tokens }) => tokens.length),
    own,
    search + check,
  );
  if (places.length < 2) {
    throw new RangeError(
      `search: expected text for at least 2 windows of ${target.toLocaleString("en")} tokens, one to search on and one ` +
        `to check on, got ${places.length}; give more text`,
    );
  }
  // Of fewer windows than asked for, the same share is kept for the check, at least one.
  const wanted = Math.round((places.length * search) / (search + check));
  const count = Math.min(places.length - 1, Math.max(1, wanted));
  const out = { windows: [] as Int32Array[], checks: [] as Int32Array[] };
  places.forEach(({ text, start }, i) => {
    const isSearched = Math.ceil(((i + 1) * count) / places.length) > Math.ceil((i * count) / places.length);
    (isSearched ? out.windows : out.checks).push(windowTokens(texts[text]!.tokens, start, target, bos));
  });
  return out;
}

/** Windows that a search reads at most. */
export function searchCost({ windows, checks, evolution, space }: SearchJob): number {
  const { generations = 12, children = 16 } = evolution;
  const tries = space.rules.length + generations * children;
  return tries * windows.length + (space.rules.length + 1) * checks.length;
}

/**
 * Runs a search into a run folder.
 *
 * @param run rows that are there already are not measured again
 * @throws whatever the model throws; the signal's reason when it is aborted
 */
export async function runSearch(
  model: ScoringModel,
  job: SearchJob,
  run: Run,
  {
    signal,
    onProgress,
  }: { readonly signal?: AbortSignal; readonly onProgress?: (progress: SearchProgress) => void } = {},
): Promise<SearchResult> {
  const { space, bos, windows, checks, evolution } = job;
  const total = searchCost(job);
  const generations: Generation[] = [];
  let done = 0;
  const report = (read: number): void => {
    done += read;
    onProgress?.({ done, total, generation: generations.at(-1) ?? null });
  };
  const read = async (window: Int32Array, candidate: Candidate): Promise<Float64Array> => {
    const value = toHuggingFace(longRopeOf(candidate, space));
    const scaling: Strategy = { kind: "parameters", value };
    const strategy = { name: "searched", encoding: { scaling }, reading: { kind: "whole" } } as const;
    const { trainedLength } = space;
    return lossByPosition(model, window, strategy, { bos, trainedLength, ...(signal === undefined ? {} : { signal }) });
  };
  const tryKey = (candidate: Candidate): string => `try/${keyOf(candidate)}`;
  const evaluate = async (candidate: Candidate): Promise<number> => {
    signal?.throwIfAborted();
    const key = tryKey(candidate);
    const known = run.get(key);
    if (known !== undefined) {
      report(windows.length);
      return known.loss as number;
    }
    let [sum, count] = [0, 0];
    for (const window of windows) {
      const losses = await read(window, candidate);
      for (const loss of losses) sum += loss;
      count += losses.length;
      report(1);
    }
    const loss = sum / count;
    await run.append({ key, loss, tokens: count });
    return loss;
  };
  const starts = space.rules.map(({ candidate }) => candidate);
  const found = await evolve({ ...evolution, starts, mostStretch: space.mostStretch }, evaluate, (generation) => {
    generations.push(generation);
    report(0);
  });
  const rules = space.rules.map(({ name, candidate }) => ({ name, loss: run.get(tryKey(candidate))!.loss as number }));
  const bestRule = rules.reduce((best, rule) => (rule.loss < best.loss ? rule : best)).name;

  type Checked = { readonly within: WindowSum; readonly beyond: WindowSum };
  const checkOf = async (candidate: Candidate): Promise<Checked[]> => {
    const out: Checked[] = [];
    for (const [i, window] of checks.entries()) {
      signal?.throwIfAborted();
      const key = `check/${keyOf(candidate)}/${i}`;
      let row = run.get(key) as (JsonRecord & Checked) | undefined;
      if (row === undefined) {
        const losses = await read(window, candidate);
        const within = sumBin(losses, { from: 1, to: space.trainedLength });
        const beyond = sumBin(losses, { from: space.trainedLength, to: losses.length + 1 });
        row = { key, within: { ...within }, beyond: { ...beyond } };
        await run.append(row as JsonRecord & Checked & { key: string });
      }
      out.push(row);
      report(1);
    }
    return out;
  };
  const checked = new Map<string, Checked[]>();
  for (const { name, candidate } of space.rules) checked.set(name, await checkOf(candidate));
  const best = found.best.candidate;
  checked.set("searched", await checkOf(best));
  const sums = (name: string, part: keyof Checked): WindowSum[] => checked.get(name)!.map((one) => one[part]);
  const paired = (name: string, part: keyof Checked): Difference =>
    pairedDifference(sums("searched", part), sums(name, part), { seed: 1 });
  return {
    rope: longRopeOf(best, space),
    generations: generations.map(({ generation, tried, best: { loss } }) => ({ generation, tried, loss })),
    rules,
    bestRule,
    check: {
      windows: checks.length,
      losses: [...checked.keys()].map((name) => ({
        name,
        within: meanOverWindows(sums(name, "within")).mean,
        beyond: meanOverWindows(sums(name, "beyond")).mean,
      })),
      beyond: paired(bestRule, "beyond"),
      within: paired("none", "within"),
    },
  };
}
