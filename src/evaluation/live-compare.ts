// A compare that somebody watches: one question in, events out. The lab's server and the worker of its page both run this,
// so that what a page shows is the same wherever it was computed.

import { type LoadModelOptions, loadLanguageModel } from "../engine/index.ts";
import type { ModelSource } from "../formats/model-files.ts";
import { openModel } from "../formats/open-model.ts";
import { openTokenizer } from "../formats/tokenizers/index.ts";
import {
  type CompareCost,
  type CompareIdentity,
  type CompareJob,
  type CompareStep,
  compareCost,
  compareIdentity,
  compareMemory,
  compareSteps,
  type PreparedCompare,
  prepareCompare,
  runCompare,
  stepSeconds,
  targetLength,
  tokenizedText,
} from "./compare/index.ts";
import type { ScoringModel } from "./model.ts";
import { type RunView, runView } from "./report/view.ts";
import {
  type JsonRecord,
  modelHashes,
  modelWeightBytes,
  openRun,
  type Run,
  type RunFiles,
  type RunSession,
} from "./run-folder/index.ts";
import type { LeftOut } from "./strategies/index.ts";

/** What is asked, in plain data. */
export interface CompareQuestion {
  readonly text: { readonly name: string; readonly text: string };
  /** 131072, 128k, 4x. */
  readonly target: string;
  /** A list; what makes sense for the model when absent. */
  readonly strategies?: string | undefined;
  readonly windows: number;
  readonly needles: number;
  readonly seed: number;
}

export interface ComparePlan extends CompareCost {
  readonly model: string;
  readonly trainedLength: number | null;
  readonly target: number;
  readonly textTokens: number;
  readonly windows: number;
  readonly strategies: readonly string[];
  readonly leftOut: readonly LeftOut[];
  readonly memoryBytes: number;
}

export type CompareEvent =
  | { readonly event: "plan"; readonly plan: ComparePlan }
  /** Rows that the run had before. */
  | { readonly event: "started"; readonly rows: number }
  /** Weights read, of all. */
  | { readonly event: "loading"; readonly share: number }
  | {
      readonly event: "progress";
      readonly share: number;
      /** null until it can be told. */
      readonly secondsLeft: number | null;
      readonly step: Pick<CompareStep, "kind" | "key"> & { readonly strategy: string };
    }
  | { readonly event: "result"; readonly view: RunView };

export interface LiveCompareOptions {
  /** Longhand's version, for the run's identity. */
  readonly version: string;
  /** Where the run goes, by its model's name and identity. */
  readonly place: (model: string, identity: JsonRecord) => string | RunFiles;
  /** What is recorded of this writer; asked once the place is known. */
  readonly session?: () => Partial<RunSession>;
  readonly load?: LoadModelOptions;
  readonly threads?: number;
  readonly signal?: AbortSignal;
  readonly onEvent: (event: CompareEvent) => void;
  /** Waited for before each pass: in a worker, whose own runs keep it from hearing that it shall stop. */
  readonly pause?: () => Promise<void>;
  /** Once the run's folder is there. */
  readonly onRun?: (files: string | RunFiles) => Promise<void>;
}

interface Prepared extends PreparedCompare {
  readonly plan: ComparePlan;
}

/**
 * What a question asks of a machine: nothing but headers and the tokenizer is read.
 *
 * @throws RangeError and FormatError for a model, a text, a target or strategies that cannot be
 */
export async function planCompare(model: ModelSource, question: CompareQuestion, threads = 1): Promise<ComparePlan> {
  return (await prepare(model, question, threads)).plan;
}

async function prepare(source: ModelSource, question: CompareQuestion, threads: number): Promise<Prepared> {
  const model = await openModel(source);
  const tokenizer = await openTokenizer(source);
  const target = targetLength(question.target, model.trainedLength);
  const text = tokenizedText(textFileName(question.text.name), question.text.text, tokenizer);
  const { windows, needles, seed, strategies } = question;
  const { job, leftOut } = prepareCompare(model, tokenizer, [text], {
    target,
    strategies,
    windows,
    needles,
    seed,
    bos: true,
  });
  const plan: ComparePlan = {
    ...compareCost(job, threads),
    model: model.name,
    trainedLength: model.trainedLength,
    target,
    textTokens: text.tokens.length,
    windows: job.settings.places.length,
    strategies: job.settings.strategies.map(({ name }) => name),
    leftOut,
    memoryBytes: compareMemory(model, await modelWeightBytes(source), job.settings),
  };
  return { job, leftOut, plan };
}

/** A result is drawn anew at most so often, in milliseconds, and takes at most a fifth of the time. */
const drawInterval = 250;
const drawShare = 5;

/**
 * Runs a compare and tells what happens. The run is the one that `longhand compare` would make of the same question, and
 * goes on where it stopped.
 *
 * @throws what stops it; the signal's reason when it is aborted: what is done is kept
 */
export async function liveCompare(
  source: ModelSource,
  question: CompareQuestion,
  options: LiveCompareOptions,
): Promise<void> {
  const { onEvent, signal, threads = 1 } = options;
  const { job, leftOut, plan } = await prepare(source, question, threads);
  onEvent({ event: "plan", plan });
  const files = await modelHashes(source, signal);
  const identity: CompareIdentity = compareIdentity(job, {
    longhand: options.version,
    files,
    precision: "auto",
    leftOut: leftOut.map((one) => ({ ...one })),
  });
  const place = options.place(plan.model, identity);
  const run = await openRun(place, {
    kind: "compare",
    identity,
    ...(options.session === undefined ? {} : { session: options.session() }),
  });
  try {
    await options.onRun?.(place);
    await compareInto(run, source, job, options);
  } finally {
    await run.close();
  }
}

async function compareInto(
  run: Run,
  source: ModelSource,
  job: CompareJob,
  { onEvent, signal, load, pause }: LiveCompareOptions,
): Promise<void> {
  onEvent({ event: "started", rows: run.rows.length });
  const view = (): void => onEvent({ event: "result", view: runView(run) });
  const steps = compareSteps(job.settings, job.model).filter(({ key }) => run.wants(key));
  if (run.rows.length > 0) view();
  if (steps.length === 0) return;
  const model = await loadLanguageModel(source, {
    ...load,
    ...(signal === undefined ? {} : { signal }),
    onProgress: ({ done, total }) => onEvent({ event: "loading", share: total === 0 ? 1 : done / total }),
  });
  const work = (step: CompareStep): number => stepSeconds(step, job, 1);
  const total = steps.reduce((sum, step) => sum + work(step), 0);
  const began = performance.now();
  let done = 0;
  let told = Number.NEGATIVE_INFINITY;
  let drawn = Number.NEGATIVE_INFINITY;
  let drawing = 0;
  try {
    await runCompare(pause === undefined ? model : pausing(model, pause), job, run, {
      ...(signal === undefined ? {} : { signal }),
      onProgress(step, stepShare) {
        const now = performance.now();
        if (now - told < drawInterval / 2) return;
        told = now;
        const share = total === 0 ? 1 : (done + stepShare * work(step)) / total;
        const seconds = (now - began) / 1000;
        onEvent({
          event: "progress",
          share,
          secondsLeft: share > 0.01 && seconds > 1 ? (seconds / share) * (1 - share) : null,
          step: { kind: step.kind, key: step.key, strategy: step.strategy.name },
        });
      },
      onRow(step) {
        done += work(step);
        const now = performance.now();
        if (step === steps.at(-1) || now - drawn < Math.max(drawInterval, drawShare * drawing)) return;
        view();
        drawn = performance.now();
        drawing = drawn - now;
      },
    });
    view();
  } finally {
    await model.dispose();
  }
}

function pausing(model: ScoringModel, pause: () => Promise<void>): ScoringModel {
  return {
    async score(tokens, options) {
      await pause();
      return model.score(tokens, options);
    },
    async loglikelihood(context, continuation, options) {
      await pause();
      return model.loglikelihood(context, continuation, options);
    },
  };
}

const taken = /^(manifest\.json|rows\.jsonl|lock.*|lab\.json|report\..*|shard-.*)(\.new)?$/i;

/**
 * What a text's file is called in a run folder, whatever it is called elsewhere.
 *
 * @example
 * ```ts
 * import { textFileName } from "longhand/evaluation";
 * textFileName("../../My novel (draft).txt"); // => "My-novel-draft-.txt"
 * textFileName("manifest.json"); // => "text-manifest.json"
 * ```
 */
export function textFileName(name: string): string {
  const last = name.split(/[\\/]/).at(-1)!;
  const plain = last.replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[.-]+/, "");
  const short = Array.from(plain).slice(-60).join("");
  if (short === "") return "text.txt";
  return taken.test(short) ? `text-${short}` : short;
}
