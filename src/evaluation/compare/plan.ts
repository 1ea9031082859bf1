// What a compare does, before it does anything: which windows of which texts, under which strategies, in which order, and
// what that costs. A step gives one row of the run folder; its key says which, so that a run that stopped goes on.

import { ropeDependsOnLength } from "../../encodings/index.ts";
import type { ModelDescription } from "../../formats/model-description.ts";
import { applyStrategy, type Strategy, strategyApplies, viewedGroups } from "../../models/index.ts";
import type { LeftOut } from "../strategies/defaults.ts";
import type { EvaluationStrategy } from "../strategies/strategy.ts";
import { lossPasses } from "../tasks/loss-by-position.ts";
import { type Haystack, passkey, type SampleContext } from "../tasks/retrieval/index.ts";

export interface CompareText {
  readonly name: string;
  /** Of the file's bytes. */
  readonly sha256: string;
  /** Without special tokens. */
  readonly tokens: ArrayLike<number>;
}

/** Where a window's own tokens begin. */
export interface WindowPlace {
  /** Index of the text. */
  readonly text: number;
  readonly start: number;
}

export interface CompareSettings {
  readonly target: number;
  readonly trainedLength: number | null;
  readonly bos: number | null;
  readonly strategies: readonly EvaluationStrategy[];
  readonly places: readonly WindowPlace[];
  /** Passkeys for every strategy, at each of these lengths. */
  readonly needles: number;
  readonly needleLengths: readonly number[];
}

export type CompareStep =
  /** The losses of a window. */
  | { readonly kind: "loss"; readonly key: string; readonly strategy: EvaluationStrategy; readonly window: number }
  /** The losses of its first tokens as a sequence of their own, where the table depends on the sequence's length. */
  | { readonly kind: "short"; readonly key: string; readonly strategy: EvaluationStrategy; readonly window: number }
  | {
      readonly kind: "passkey";
      readonly key: string;
      readonly strategy: EvaluationStrategy;
      readonly length: number;
      readonly needle: number;
    };

/**
 * Windows spread over several texts: each text gives its share, a short one what it has.
 *
 * @param lengths tokens of each text
 * @param own tokens that a window takes of a text
 * @throws RangeError when no text is long enough for one
 * @example
 * ```ts
 * import { placeWindows } from "longhand/evaluation";
 * placeWindows([100, 25], 10, 4); // => [{ text: 0, start: 0 }, { text: 1, start: 0 }, { text: 0, start: 50 },
 * //   { text: 1, start: 10 }]
 * ```
 */
export function placeWindows(lengths: readonly number[], own: number, windows: number): WindowPlace[] {
  const fits = lengths.map((length) => Math.floor(length / own));
  const most = fits.reduce((sum, n) => sum + n, 0);
  if (most === 0) {
    throw new RangeError(
      `--text: expected a text of at least ${own.toLocaleString("en")} tokens, for one window of the target length, ` +
        `got ${Math.max(0, ...lengths).toLocaleString("en")}; give more text, or a shorter --target`,
    );
  }
  const counts = fits.map(() => 0);
  for (let left = Math.min(windows, most); left > 0; ) {
    for (let i = 0; i < counts.length && left > 0; i++) {
      if (counts[i]! < fits[i]!) {
        counts[i]!++;
        left--;
      }
    }
  }
  // Evenly spread within each text; one window of every text, then the next, so that the first few are of all texts.
  const out: WindowPlace[] = [];
  for (let k = 0; k < Math.max(...counts); k++) {
    for (const [text, count] of counts.entries()) {
      if (k < count) out.push({ text, start: Math.floor((k * fits[text]!) / count) * own });
    }
  }
  return out;
}

/** The tokens of a window, BOS first where there is one. */
export function windowTokens(text: ArrayLike<number>, start: number, length: number, bos: number | null): Int32Array {
  const head = bos === null ? 0 : 1;
  const out = new Int32Array(length);
  if (bos !== null) out[0] = bos;
  for (let i = head; i < length; i++) out[i] = text[start + i - head]!;
  return out;
}

/** Every step, in the order in which one process does them: window by window, so that a run that stops early has compared
 *  all strategies on the windows it has. */
export function compareSteps(settings: CompareSettings, model: ModelDescription): CompareStep[] {
  const { strategies, places, needles, needleLengths } = settings;
  const steps: CompareStep[] = [];
  for (let window = 0; window < places.length; window++) {
    for (const strategy of strategies) {
      steps.push({ kind: "loss", key: `loss/${strategy.name}/${window}`, strategy, window });
    }
    for (const strategy of strategies) {
      if (!needsShort(strategy, settings, model)) continue;
      steps.push({ kind: "short", key: `short/${strategy.name}/${window}`, strategy, window });
    }
  }
  for (let needle = 0; needle < needles; needle++) {
    for (const length of needleLengths) {
      for (const strategy of strategies) {
        // Within an answer's few tokens a growing table is that of the whole.
        if (strategy.reading.kind === "growing") continue;
        steps.push({ kind: "passkey", key: `passkey/${strategy.name}/${length}/${needle}`, strategy, length, needle });
      }
    }
  }
  return steps;
}

/** The lengths at which passkeys are asked: the trained one and the target, where they have room for one. */
export function needleLengths(
  context: SampleContext,
  haystack: Haystack,
  { trainedLength, target }: Pick<CompareSettings, "trainedLength" | "target">,
): { readonly lengths: readonly number[]; readonly leftOut: readonly LeftOut[] } {
  const lengths: number[] = [];
  const leftOut: LeftOut[] = [];
  for (const length of new Set([Math.min(trainedLength ?? target, target), target])) {
    try {
      passkey(context, haystack, { length, seed: 0, depth: 0.5 });
      lengths.push(length);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      leftOut.push({ name: `passkeys at ${length}`, why: error.message });
    }
  }
  return { lengths, leftOut };
}

/** Whether short sequences see other tables than the begin of a long one, so that they have to be run. */
export function needsShort(
  { encoding, reading }: EvaluationStrategy,
  { trainedLength, target }: Pick<CompareSettings, "trainedLength" | "target">,
  model: ModelDescription,
): boolean {
  if (reading.kind !== "whole" || trainedLength === null || trainedLength < 2 || target <= trainedLength) return false;
  if (encoding.drop !== undefined && encoding.drop !== false) return true;
  const asked = encoding.scaling as Strategy;
  // Self-Extend moves positions alike in sequences of any length, and keeps the frequencies.
  const strategy = asked.kind === "self-extend" ? ({ kind: "none" } as const) : asked;
  return model.groups.some((group) => {
    if (group.logitTemperature?.kind === "drope") return true;
    const { position } = group;
    if (position.site !== "query-key") return false;
    const config = strategyApplies(group, model, strategy)
      ? applyStrategy(strategy, { ...group, position }, model)
      : { rope: position.rope };
    return config !== "drop" && ropeDependsOnLength(config.rope);
  });
}

/** Tokens that are fed to the model in each pass of a step. */
export function stepPasses(step: CompareStep, { trainedLength, target }: CompareSettings): number[] {
  if (step.kind === "loss") {
    return lossPasses(step.strategy, target, { trainedLength }).map(({ from, to }) => to - from);
  }
  if (step.kind === "short") return [trainedLength!];
  const { reading } = step.strategy;
  return [reading.kind === "windowed" ? Math.min(reading.window, step.length) : step.length];
}

/** Operations in whose time a score is written and read again, where it is kept: fitted to passes of 1,024 to 4,096
 *  tokens under Self-Extend, of a model of 5 layers with heads of 32 channels and of one of 30 with 64. */
const keptScore = 80;

/**
 * Floating-point operations of a pass over `tokens` tokens, to about a tenth: two a weight and token, and four a channel
 * of every head for each pair of positions that a query sees. Self-Extend computes and keeps the scores of keys that a
 * query does not see, too: what that takes is known to about a fifth.
 *
 * @param strategy what it runs under; one whose attention costs as the model's own does when absent
 */
export function passOperations(model: ModelDescription, tokens: number, strategy?: CompareStrategy): number {
  const { numHeads, headDim, groups } = model;
  const weights = (model.numParameters ?? 12 * model.numLayers * model.hiddenSize ** 2) * 2 * tokens;
  const moved = strategy !== undefined && movesPositions(strategy) ? viewedGroups(model) : [];
  let attention = 0;
  for (const [index, { layers, slidingWindow }] of groups.entries()) {
    const window = Math.min(slidingWindow ?? tokens, tokens);
    attention +=
      layers.length *
      (moved.includes(index)
        ? (4 * headDim + keptScore) * tokens ** 2
        : 4 * headDim * (tokens * window - window ** 2 / 2));
  }
  return weights + numHeads * attention;
}

type CompareStrategy = Pick<EvaluationStrategy, "encoding">;

/** Whether it runs in the second program. */
function movesPositions({ encoding }: CompareStrategy): boolean {
  return (encoding.scaling as Strategy | undefined)?.kind === "self-extend";
}

/** Bytes that a compare needs: the weights and the cache of a sequence of the target length in float32, both twice with
 *  Self-Extend, whose program is another and keeps scores; and work space. */
export function compareMemory(
  model: ModelDescription,
  weightBytes: number,
  { target, strategies }: Pick<CompareSettings, "target" | "strategies">,
): number {
  const cache = 2 * model.numLayers * model.numKeyValueHeads * model.headDim * 4 * target;
  const moved = strategies.some(movesPositions);
  return (moved ? 2 : 1) * (weightBytes + cache) + (moved ? 64 * 2 ** 20 : 0) + 250e6;
}
