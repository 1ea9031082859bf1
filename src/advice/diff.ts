// Which engines disagree on one configuration: in which pairs of channels, from which position on, and by which factor on
// every score. Built on what each engine computes (encodings/rope/dialects).

import { expectInteger } from "../encodings/errors.ts";
import {
  computeDialect,
  type Dialect,
  type DialectNote,
  type DialectResult,
  dialects,
  ropeDialects,
} from "../encodings/rope/dialects/index.ts";
import { computeRopeFrequencies } from "../encodings/rope/scaling/index.ts";
import type { RopeConfig } from "../encodings/rope/scaling/parameters.ts";
import type { ModelDescription } from "../formats/model-description.ts";

/** Radians by which an angle must be off before two engines are said to differ: a cosine is then off by up to a tenth. */
export const angleTolerance = 0.1;

/** Below this, relative, a difference is a rounding of float32 settings. */
const rounding = 1e-6;

export interface Divergence {
  /** The pair of channels whose angle runs away first. */
  readonly pair: number;
  /** ω / ω of the other there; Infinity where the other stands still. */
  readonly ratio: number;
  /** The first position whose angle is off by more than 0.1 rad. */
  readonly position: number;
  /** How many pairs differ at all. */
  readonly pairs: number;
}

/** Where two lists of frequencies (radians a token) part; null where they are the same but for rounding. */
function partOf(left: ArrayLike<number>, right: ArrayLike<number>): Divergence | null {
  let worst = 0;
  let pair = -1;
  let pairs = 0;
  // A pair that one of the two does not rotate stands still there.
  for (let i = 0; i < Math.max(left.length, right.length); i++) {
    const [a, b] = [left[i] ?? 0, right[i] ?? 0];
    const difference = Math.abs(a - b);
    if (difference <= rounding * Math.max(a, b)) continue;
    pairs++;
    if (difference > worst) [worst, pair] = [difference, i];
  }
  if (pair < 0) return null;
  const [a, b] = [left[pair] ?? 0, right[pair] ?? 0];
  return {
    pair,
    ratio: b === 0 ? Number.POSITIVE_INFINITY : a / b,
    position: Math.floor(angleTolerance / worst) + 1,
    pairs,
  };
}

/** Where frequencies part from what the settings mean at this length (`computeRopeFrequencies`). */
export function divergeFrom(
  inverseFrequencies: ArrayLike<number>,
  config: RopeConfig,
  length: number,
): Divergence | null {
  return partOf(inverseFrequencies, computeRopeFrequencies(config, length).inverseFrequencies);
}

export interface EngineRow {
  readonly dialect: Dialect;
  readonly engine: string;
  /** Why nothing is computed; null when something is. */
  readonly reason: string | null;
  /** On cos and sin; null without a result. */
  readonly attentionFactor: number | null;
  readonly softmaxFactor: number | null;
  /** attentionFactor² · softmaxFactor. */
  readonly scoreFactor: number | null;
  readonly notes: readonly DialectNote[];
}

/** Two engines that do not compute the same. */
export interface Disagreement {
  readonly between: readonly [Dialect, Dialect];
  /** null where the frequencies agree. */
  readonly frequencies: Divergence | null;
  /** The first's factor on scores over the second's; null where they agree. */
  readonly scoreRatio: number | null;
}

export interface EngineDiff {
  readonly layers: readonly number[];
  readonly layerType?: string;
  /** Tokens in the sequence. */
  readonly length: number;
  readonly engines: readonly EngineRow[];
  /** Engines that compute alike, the reference's set first; those that compute nothing are in none. */
  readonly alike: readonly (readonly Dialect[])[];
  /** One for each two sets of engines alike, by their first members. */
  readonly disagreements: readonly Disagreement[];
}

export interface DiffOptions {
  /** The engines to compare, two or more; every engine that people serve with when absent. */
  readonly between?: readonly Dialect[];
  /** Tokens in the sequence, for which servers are started too; the length that the file claims when absent. */
  readonly target?: number;
  /** As the engines round, in float32; their formulas in float64 when absent. */
  readonly float32?: boolean;
}

/** The engines that are compared unless others are asked for; the papers and their authors' code are asked for by name. */
export const diffDialects: readonly Dialect[] = dialects.filter(
  (dialect) => dialect !== "papers" && dialect !== "yarn-repository",
);

/**
 * Compares engines on every rotary group of a model.
 *
 * @param model a description, as `openModel` gives
 * @param options engines, length in tokens, arithmetic
 * @returns one entry a rotary group; none for models without rotation
 * @throws RangeError for an unknown engine, fewer than two, or a length that is no integer of at least 1
 * @example
 * ```ts
 * import { diffEngines } from "longhand/advice";
 * import { describeHuggingFace } from "longhand/formats";
 * const model = describeHuggingFace({
 *   model_type: "qwen3", hidden_size: 4096, num_hidden_layers: 2, num_attention_heads: 32, head_dim: 128,
 *   max_position_embeddings: 131072, rope_theta: 1000000,
 *   rope_scaling: { rope_type: "yarn", factor: 4, original_max_position_embeddings: 32768 },
 * });
 * const [group] = diffEngines(model, { between: ["transformers-5", "exllamav2"] });
 * const [{ frequencies }] = group.disagreements;
 * [frequencies.pair, frequencies.position]; // => [28, 192]
 * ```
 */
export function diffEngines(model: ModelDescription, options: DiffOptions = {}): EngineDiff[] {
  const between = options.between ?? diffDialects;
  for (const dialect of between) {
    if (!dialects.includes(dialect)) {
      throw new RangeError(`diff: expected engines out of ${dialects.join(", ")}, got ${JSON.stringify(dialect)}`);
    }
  }
  if (new Set(between).size < 2) throw new RangeError(`diff: expected two engines or more, got ${between.join(", ")}`);
  if (options.target !== undefined) expectInteger("diff", "target", options.target, 1);
  return model.groups.flatMap((group) => {
    const { position } = group;
    if (position.kind !== "rope") return [];
    const max = model.maxPositionEmbeddings ?? model.trainedLength ?? 1;
    const length = options.target ?? max;
    const config: RopeConfig = { headDim: position.headDim, maxPositionEmbeddings: max, rope: position.rope };
    const results = new Map<Dialect, DialectResult>(
      between.map((dialect) => [
        dialect,
        computeDialect(dialect, config, {
          sequenceLength: length,
          maxModelLen: length,
          modelType: model.modelType,
          float32: options.float32 === true,
        }),
      ]),
    );
    const { alike, disagreements } = compare(results);
    return [
      {
        layers: group.layers,
        ...(group.layerType === undefined ? {} : { layerType: group.layerType }),
        length,
        engines: between.map((dialect) => rowOf(dialect, results.get(dialect)!)),
        alike,
        disagreements,
      },
    ];
  });
}

function rowOf(dialect: Dialect, result: DialectResult): EngineRow {
  const { engine } = ropeDialects[dialect];
  if (!result.supported) {
    const none = { attentionFactor: null, softmaxFactor: null, scoreFactor: null };
    return { dialect, engine, reason: result.reason, ...none, notes: result.notes };
  }
  const { attentionFactor, softmaxFactor, notes } = result;
  const scoreFactor = attentionFactor ** 2 * softmaxFactor;
  return { dialect, engine, reason: null, attentionFactor, softmaxFactor, scoreFactor, notes };
}

function compare(results: ReadonlyMap<Dialect, DialectResult>): Pick<EngineDiff, "alike" | "disagreements"> {
  const sets: Dialect[][] = [];
  const between = (a: Dialect, b: Dialect): Disagreement => {
    const [left, right] = [results.get(a)!, results.get(b)!];
    if (!left.supported || !right.supported) throw new Error("internal: engines that compute nothing are compared");
    const score = (one: typeof left) => one.attentionFactor ** 2 * one.softmaxFactor;
    const ratio = score(left) / score(right);
    return {
      between: [a, b],
      frequencies: partOf(left.inverseFrequencies, right.inverseFrequencies),
      scoreRatio: Math.abs(ratio - 1) <= rounding ? null : ratio,
    };
  };
  for (const [dialect, result] of results) {
    if (!result.supported) continue;
    const found = sets.find(([first]) => {
      const { frequencies, scoreRatio } = between(first!, dialect);
      return frequencies === null && scoreRatio === null;
    });
    if (found === undefined) sets.push([dialect]);
    else found.push(dialect);
  }
  const disagreements = sets.flatMap((left, i) => sets.slice(i + 1).map((right) => between(left[0]!, right[0]!)));
  return { alike: sets, disagreements };
}
