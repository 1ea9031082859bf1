// Runs the steps of a compare and keeps their rows. Everything that a row depends on is in the run's identity; what it
// took stands in `measured`.

import type { ModelDescription } from "../../formats/model-description.ts";
import { inOrder } from "../in-order.ts";
import type { ScoringModel } from "../model.ts";
import type { JsonRecord } from "../run-folder/json.ts";
import type { RunRow } from "../run-folder/rows.ts";
import type { Run } from "../run-folder/run.ts";
import type { EvaluationStrategy } from "../strategies/strategy.ts";
import { lossByPosition } from "../tasks/loss-by-position.ts";
import { type Haystack, passkey, type SampleContext, scoreRetrieval } from "../tasks/retrieval/index.ts";
import { type CompareSettings, type CompareStep, type CompareText, compareSteps, windowTokens } from "./plan.ts";

/** What the identity of a compare's run holds; `more` of it is the caller's (hashes of weights, versions, precision). */
export interface CompareIdentity extends JsonRecord {
  readonly protocol: 1;
  readonly model: string;
  readonly trainedLength: number | null;
  readonly target: number;
  readonly bos: number | null;
  readonly texts: readonly { readonly name: string; readonly sha256: string; readonly tokens: number }[];
  readonly windows: readonly { readonly text: number; readonly start: number }[];
  readonly strategies: readonly StrategyRecord[];
  readonly needles: number;
  readonly needleLengths: readonly number[];
  readonly haystack: string;
  readonly seed: number;
}

interface StrategyRecord extends JsonRecord {
  readonly name: string;
  readonly encoding: JsonRecord;
  readonly reading: JsonRecord;
  /** Whether its short rows are those of the long windows. */
  readonly short: "same-passes" | "own-passes";
}

export interface CompareJob {
  readonly model: ModelDescription;
  readonly settings: CompareSettings;
  readonly texts: readonly CompareText[];
  readonly tokenizer: SampleContext["tokenizer"];
  readonly haystack: Haystack;
  readonly seed: number;
}

export function compareIdentity(job: CompareJob, more: JsonRecord = {}): CompareIdentity {
  const { settings, texts, model, haystack, seed } = job;
  const steps = compareSteps(settings, model);
  const own = new Set(steps.flatMap((step) => (step.kind === "short" ? [step.strategy.name] : [])));
  return {
    ...more,
    protocol: 1,
    model: model.name,
    trainedLength: settings.trainedLength,
    target: settings.target,
    bos: settings.bos,
    texts: texts.map(({ name, sha256, tokens }) => ({ name, sha256, tokens: tokens.length })),
    windows: settings.places.map(({ text, start }) => ({ text, start })),
    strategies: settings.strategies.map((strategy) => strategyRecord(strategy, own.has(strategy.name))),
    needles: settings.needles,
    needleLengths: [...settings.needleLengths],
    haystack: haystack.kind,
    seed,
  };
}

function strategyRecord({ name, encoding, reading }: EvaluationStrategy, own: boolean): StrategyRecord {
  // Through JSON: what is undefined is absent.
  return JSON.parse(JSON.stringify({ name, encoding, reading, short: own ? "own-passes" : "same-passes" }));
}

export interface RunCompareOptions {
  readonly signal?: AbortSignal;
  /** Before a step, and as its passes go on: the step and the share of it that is done, 0 … 1. */
  readonly onProgress?: (step: CompareStep, share: number) => void;
  readonly onRow?: (step: CompareStep, row: RunRow) => void;
  /** Steps under way at once: 1 when absent. More is of use to a model behind HTTP alone; rows keep their order. */
  readonly concurrency?: number;
}

/** Losses are kept to a millionth of a nat: float32 holds no more of them. */
const digits = 1e6;

/**
 * Runs the steps that the run wants.
 *
 * A strategy under which the model gives a loss that is no number keeps its row, with the error in place of the losses.
 *
 * @throws the signal's reason when it is aborted: what is done is kept
 */
export async function runCompare(
  model: ScoringModel,
  job: CompareJob,
  run: Run,
  options: RunCompareOptions = {},
): Promise<void> {
  const { settings, texts } = job;
  const { signal, onProgress, onRow, concurrency = 1 } = options;
  const wanted = compareSteps(settings, job.model).filter(({ key }) => run.wants(key));
  await inOrder(
    wanted,
    concurrency,
    async (step, stopped) => {
      signal?.throwIfAborted();
      onProgress?.(step, 0);
      const began = performance.now();
      const either = signal === undefined ? stopped : AbortSignal.any([signal, stopped]);
      const result = await runStep(step, either).catch((error: unknown) => {
        signal?.throwIfAborted();
        if (error instanceof RangeError && /finite/.test(error.message)) return { error: error.message };
        throw error;
      });
      const seconds = Math.round(performance.now() - began) / 1000;
      const { key, kind, strategy } = step;
      return { key, kind, strategy: strategy.name, ...result, measured: { seconds } } satisfies RunRow;
    },
    async (step, row) => {
      await run.append(row);
      onRow?.(step, row);
    },
  );

  async function runStep(step: CompareStep, either: AbortSignal): Promise<JsonRecord> {
    const { bos, trainedLength, target } = settings;
    const passing = {
      signal: either,
      onProgress: ({ done, total }: { done: number; total: number }) => onProgress?.(step, done / total),
    };
    if (step.kind !== "passkey") {
      const { text, start } = settings.places[step.window]!;
      const whole = windowTokens(texts[text]!.tokens, start, target, bos);
      const tokens = step.kind === "short" ? whole.slice(0, trainedLength!) : whole;
      const losses = await lossByPosition(model, tokens, step.strategy, { bos, trainedLength, ...passing });
      return {
        window: step.window,
        length: tokens.length,
        losses: Array.from(losses, (x) => Math.round(x * digits) / digits),
      };
    }
    const { needle, length } = step;
    const depth = (needle + 0.5) / settings.needles;
    const sample = passkey({ tokenizer: job.tokenizer, bos }, job.haystack, {
      length,
      seed: job.seed + needle,
      depth,
    });
    // Candidates share the prompt: the first one's passes are nearly all of the work.
    const score = await scoreRetrieval(model, sample, step.strategy, { bos, ...passing });
    const { exact, logLikelihood, rank, candidates } = score;
    const rounded = Math.round(logLikelihood * digits) / digits;
    return { needle, length, depth: sample.depths[0]!, exact, logLikelihood: rounded, rank, candidates };
  }
}

/** Rows in the order in which one process writes them: for `mergeRuns`. */
export function compareRowOrder(identity: CompareIdentity): (a: RunRow, b: RunRow) => number {
  const strategies = new Map(identity.strategies.map(({ name }, i) => [name, i]));
  const rank = (row: RunRow): number[] => {
    const strategy = strategies.get(row.strategy as string) ?? 0;
    return row.kind === "passkey"
      ? [1, row.needle as number, row.length as number, strategy]
      : [0, row.window as number, row.kind === "loss" ? 0 : 1, strategy];
  };
  return (a, b) => {
    const [x, y] = [rank(a), rank(b)];
    for (const [i, value] of x.entries()) if (value !== y[i]) return value - y[i]!;
    return 0;
  };
}
