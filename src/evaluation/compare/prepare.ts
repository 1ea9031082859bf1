// A compare from what a person asks for: a model, texts, a target, a list of strategies. The same for the command line, the
// lab's server and a page, so that the same question is the same run.

import type { ModelDescription } from "../../formats/model-description.ts";
import type { Tokenizer } from "../../formats/tokenizers/index.ts";
import { sha256 } from "../run-folder/sha256.ts";
import { chosenStrategies } from "../strategies/chosen.ts";
import type { LeftOut } from "../strategies/defaults.ts";
import { generatedHaystack, textHaystack } from "../tasks/retrieval/index.ts";
import {
  type CompareSettings,
  type CompareStep,
  type CompareText,
  compareSteps,
  needleLengths,
  passOperations,
  placeWindows,
  stepPasses,
} from "./plan.ts";
import type { CompareJob } from "./run.ts";

export interface CompareRequest {
  /** Tokens of a window. */
  readonly target: number;
  /** As typed; what makes sense for the model when absent; "all". */
  readonly strategies?: string | undefined;
  /** For names without one. */
  readonly factors?: readonly number[] | undefined;
  /** At most. */
  readonly windows: number;
  /** Passkeys for each strategy and length; 0: none. */
  readonly needles: number;
  /** Where the file is silent. */
  readonly trainedLength?: number | undefined;
  /** Whether a model that was trained with one gets a BOS at the head of every window. */
  readonly bos: boolean;
  /** Of the passkeys. */
  readonly seed: number;
}

export interface PreparedCompare {
  readonly job: CompareJob;
  /** What is not run, with the reason. */
  readonly leftOut: readonly LeftOut[];
}

/**
 * The job that a request means.
 *
 * @throws RangeError for a text that is too short, a strategy that is none, a model with an encoder
 */
export function prepareCompare(
  model: ModelDescription,
  tokenizer: Tokenizer,
  texts: readonly CompareText[],
  request: CompareRequest,
): PreparedCompare {
  const { target, windows, seed } = request;
  const trainedLength = trainedLengthOf(model, request.trainedLength);
  const chosen = chosenStrategies(model, { trainedLength, target }, request.strategies, request.factors);
  const bos = windowBos(tokenizer, request.bos);
  const places = placeWindows(
    texts.map(({ tokens }) => tokens.length),
    target - (bos === null ? 0 : 1),
    windows,
  );
  const haystack =
    texts[0]!.tokens.length >= target ? textHaystack(tokenizer, texts[0]!.tokens) : generatedHaystack(tokenizer);
  const needles =
    request.needles === 0
      ? { lengths: [], leftOut: [] }
      : needleLengths({ tokenizer, bos }, haystack, { trainedLength, target });
  const settings: CompareSettings = {
    target,
    trainedLength,
    bos,
    strategies: chosen.strategies,
    places,
    needles: request.needles,
    needleLengths: needles.lengths,
  };
  return {
    job: { model, settings, texts, tokenizer, haystack, seed },
    leftOut: [...chosen.leftOut, ...needles.leftOut],
  };
}

/** The trained length that counts: the file's, or the one given where the file is silent. */
export function trainedLengthOf(model: ModelDescription, given: number | undefined): number | null {
  if (given === undefined || model.trainedLength === null) return given ?? model.trainedLength;
  if (given === model.trainedLength) return given;
  throw new RangeError(
    `--trained-length: expected none, since the file says ${model.trainedLength}, got ${given}; strategies scale from the ` +
      "file's length",
  );
}

/**
 * A target as a person writes it: 131072, 131,072, 128k, 1M, or 4x the trained length.
 *
 * @throws RangeError for what is no length of at least 2 tokens, and for a multiple without a trained length
 * @example
 * ```ts
 * import { targetLength } from "longhand/evaluation";
 * targetLength("4x", 512); // => 2048
 * targetLength("128k", null); // => 131072
 * ```
 */
export function targetLength(text: string, trainedLength: number | null): number {
  const match = /^(\d[\d_,]*(?:\.\d+)?)([kmx]?)$/i.exec(text.trim());
  const unit = (match?.[2] ?? "").toLowerCase();
  if (unit === "x" && trainedLength === null) {
    throw new RangeError(
      `--target: expected a number of tokens for a model without a trained length, got ${text.trim()}`,
    );
  }
  const scale = unit === "x" ? trainedLength! : { "": 1, k: 1024, m: 1024 ** 2 }[unit]!;
  const length = match === null ? Number.NaN : Math.round(Number(match[1]!.replace(/[_,]/g, "")) * scale);
  if (!Number.isSafeInteger(length) || length < 2) {
    throw new RangeError(
      `--target: expected at least 2 tokens, as 32768, 32k, or 4x the trained length, got ${JSON.stringify(text)}`,
    );
  }
  return length;
}

/** A text as tokens, with its hash. A stranger's text holds no special tokens. */
export function tokenizedText(name: string, text: string, tokenizer: Tokenizer): CompareText {
  const tokens = Int32Array.from(tokenizer.encode(text, { addSpecial: false, parseSpecial: false }));
  return { name, sha256: sha256(text), tokens };
}

/** The BOS for the head of every window, where the model was trained with one; null: none. */
export function windowBos(tokenizer: Tokenizer, wanted: boolean): number | null {
  return wanted && tokenizer.addsBos ? tokenizer.bosToken : null;
}

export interface CompareCost {
  readonly rows: number;
  /** Fed to the model. */
  readonly tokens: number;
  /** Before anything was measured: by operations, at 20 GFLOP/s a thread. */
  readonly seconds: number;
}

/** What a job asks of a machine, before it does anything. */
export function compareCost(job: Pick<CompareJob, "settings" | "model">, threads: number): CompareCost {
  const { settings, model } = job;
  const steps = compareSteps(settings, model);
  return {
    rows: steps.length,
    tokens: steps.flatMap((step) => stepPasses(step, settings)).reduce((sum, tokens) => sum + tokens, 0),
    seconds: steps.reduce((sum, step) => sum + stepSeconds(step, job, threads), 0),
  };
}

/** A guess at a step: operations of its passes at 20 GFLOP/s a thread, and what a chunk costs whatever the model. */
export function stepSeconds(
  step: CompareStep,
  { settings, model }: Pick<CompareJob, "settings" | "model">,
  threads: number,
): number {
  return stepPasses(step, settings).reduce(
    (sum, tokens) => sum + passOperations(model, tokens, step.strategy) / (20e9 * threads) + (tokens / 512) * 0.003,
    0,
  );
}
