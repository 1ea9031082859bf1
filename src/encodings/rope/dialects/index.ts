// Where engines differ: every dialect in one total table, and a comparison of what they make of one configuration.

import { expectInteger, expectPositive, show } from "../../errors.ts";
import { checkRopeParameters, computeRopeFrequencies } from "../scaling/index.ts";
import type { RopeConfig } from "../scaling/parameters.ts";
import {
  type Dialect,
  type DialectContext,
  type DialectNote,
  type DialectResult,
  dialects,
  type RopeDialect,
} from "./dialect.ts";
import { exllamav2 } from "./exllamav2.ts";
import { exllamav3 } from "./exllamav3.ts";
import { llamaCpp } from "./llama-cpp.ts";
import { mlxLm } from "./mlx-lm.ts";
import { papers } from "./papers.ts";
import { sglang } from "./sglang.ts";
import { transformers4 } from "./transformers-4.ts";
import { transformers5 } from "./transformers-5.ts";
import { vllm } from "./vllm.ts";
import { vllm011 } from "./vllm-0-11.ts";
import { yarnRepository } from "./yarn-repository.ts";

export {
  type Dialect,
  type DialectContext,
  type DialectFrequencies,
  type DialectNote,
  type DialectNoteCode,
  type DialectResult,
  type DialectUnsupported,
  dialects,
  type LlamaCppFlags,
  type RopeDialect,
  type TableDtype,
} from "./dialect.ts";
export { dropeFrequencies } from "./papers.ts";
export { vllmMixedNtk } from "./vllm.ts";

export const ropeDialects: { readonly [D in Dialect]: RopeDialect } = {
  "transformers-5": transformers5,
  "transformers-4": transformers4,
  "llama.cpp": llamaCpp,
  vllm,
  "vllm-0.11": vllm011,
  sglang,
  "mlx-lm": mlxLm,
  exllamav2,
  exllamav3,
  papers,
  "yarn-repository": yarnRepository,
};

function dialectOf(dialect: Dialect): RopeDialect {
  if (!Object.hasOwn(ropeDialects, dialect)) {
    throw new RangeError(`rope dialect: expected one of ${dialects.join(", ")}, got ${show(dialect)}`);
  }
  return ropeDialects[dialect];
}

/**
 * What one engine computes for a rotary configuration: its frequencies and magnitudes, or why it computes none, with a
 * note on every setting that it reads otherwise than transformers 5.
 *
 * @param dialect the engine
 * @param config headDim, maxPositionEmbeddings and the rotary settings
 * @param context sequenceLength, and what else the engine's choice depends on: maxModelLen, modelType, previousLength
 * @returns `supported` true with inverseFrequencies [P] in radians a token, attentionFactor, softmaxFactor, tableLength,
 * notes, and the engine's `angles` and `tables`; or `supported` false with the reason
 * @throws RangeError for settings that are missing, unknown or out of range, or an unknown dialect
 * @example
 * ```ts
 * import { computeDialect } from "longhand/encodings";
 * const rope = { ropeType: "dynamic", ropeTheta: 10000, factor: 2 };
 * const config = { headDim: 128, maxPositionEmbeddings: 2048, rope };
 * const inVllm = computeDialect("vllm", config, { sequenceLength: 4096 });
 * inVllm.notes[0].code; // => "fixed-at-start"
 * inVllm.tableLength; // => 2048
 * computeDialect("exllamav3", config, { sequenceLength: 4096 }).supported; // => false
 * ```
 * Source: each engine's own source at the version that `ropeDialects[dialect].engine` names.
 */
export function computeDialect(dialect: Dialect, config: RopeConfig, context: DialectContext): DialectResult {
  const found = dialectOf(dialect);
  checkRopeParameters(config.rope);
  expectPositive("rope dialect", "maxPositionEmbeddings", config.maxPositionEmbeddings);
  expectInteger("rope dialect", "sequenceLength", context.sequenceLength, 1);
  for (const key of ["maxModelLen", "previousLength"] as const) {
    if (context[key] !== undefined) expectInteger("rope dialect", key, context[key], 1);
  }
  if (config.rope.ropeType === "longrope") {
    // Every engine needs lists of the right length; the canonical scaling says so best, for both lists.
    for (const length of [1, config.rope.originalMaxPositionEmbeddings + 1]) computeRopeFrequencies(config, length);
  }
  return found.compute(config, context);
}

export interface DialectComparison {
  readonly dialect: Dialect;
  readonly engine: string;
  readonly supported: boolean;
  /** Why nothing is computed; null when supported. */
  readonly reason: string | null;
  /** P; null when not supported, as all the numbers below. */
  readonly pairs: number | null;
  readonly attentionFactor: number | null;
  readonly softmaxFactor: number | null;
  /** attentionFactor² · softmaxFactor: what a score of the rotated channels is multiplied by. */
  readonly scoreFactor: number | null;
  /** The largest |ω − ω₅| / max(ω, ω₅) against transformers 5: 0 equal, 0.5 a factor of two either way, 1 one stands still. */
  readonly frequencyDifference: number | null;
  /** The pair where that is. */
  readonly frequencyPair: number | null;
  /** ω / ω₅ there; null when ω₅ is 0. */
  readonly frequencyRatio: number | null;
  /** The largest difference of angles at position length − 1, in radians and not reduced: above π it says nothing more. */
  readonly angleDifference: number | null;
  readonly anglePair: number | null;
  readonly tableLength: number | null;
  readonly notes: readonly DialectNote[];
}

/**
 * What every engine makes of one rotary configuration, against transformers 5 (against the formula of
 * `computeRopeFrequencies` where transformers 5 does not know the type or the settings).
 *
 * @param config headDim, maxPositionEmbeddings and the rotary settings
 * @param length ℓ: tokens in the sequence; angles are compared at position ℓ − 1
 * @param options dialects (all when absent), and the rest of a DialectContext: maxModelLen, modelType, float32, …
 * @returns one row a dialect, in the order asked for
 * @throws RangeError as `computeDialect`
 * @example
 * ```ts
 * import { compareDialects } from "longhand/encodings";
 * const rope = { ropeType: "yarn", ropeTheta: 1000000, factor: 4, originalMaxPositionEmbeddings: 32768 };
 * const config = { headDim: 128, maxPositionEmbeddings: 131072, rope };
 * const [vllm, exllamav2] = compareDialects(config, 131072, { dialects: ["vllm", "exllamav2"] });
 * vllm.frequencyDifference < 1e-12; // => true
 * Math.round(100 * exllamav2.frequencyRatio) / 100; // => 2.24
 * exllamav2.notes[1].key; // => "originalMaxPositionEmbeddings"
 * ```
 * Source: as `computeDialect`.
 */
export function compareDialects(
  config: RopeConfig,
  length: number,
  options: Omit<DialectContext, "sequenceLength"> & { readonly dialects?: readonly Dialect[] } = {},
): DialectComparison[] {
  const { dialects: asked = dialects, ...rest } = options;
  const context: DialectContext = { ...rest, sequenceLength: length };
  const reference = computeDialect("transformers-5", config, context);
  const expected = reference.supported
    ? { inverseFrequencies: reference.inverseFrequencies, angles: reference.angles([length - 1]) }
    : canonical(config, length);
  return asked.map((dialect) => {
    const result = computeDialect(dialect, config, context);
    const { engine } = dialectOf(dialect);
    if (!result.supported) {
      return {
        dialect,
        engine,
        supported: false,
        reason: result.reason,
        pairs: null,
        attentionFactor: null,
        softmaxFactor: null,
        scoreFactor: null,
        frequencyDifference: null,
        frequencyPair: null,
        frequencyRatio: null,
        angleDifference: null,
        anglePair: null,
        tableLength: null,
        notes: result.notes,
      };
    }
    const { inverseFrequencies, attentionFactor, softmaxFactor, tableLength, notes } = result;
    const frequency = largest(inverseFrequencies, expected.inverseFrequencies, (x, y) =>
      x === y ? 0 : Math.abs(x - y) / Math.max(x, y),
    );
    const angle = largest(result.angles([length - 1]), expected.angles, (x, y) => Math.abs(x - y));
    const there = expected.inverseFrequencies[frequency.at]!;
    return {
      dialect,
      engine,
      supported: true,
      reason: null,
      pairs: inverseFrequencies.length,
      attentionFactor,
      softmaxFactor,
      scoreFactor: attentionFactor * attentionFactor * softmaxFactor,
      frequencyDifference: frequency.value,
      frequencyPair: frequency.at,
      frequencyRatio: there === 0 ? null : inverseFrequencies[frequency.at]! / there,
      angleDifference: angle.value,
      anglePair: angle.at,
      tableLength,
      notes,
    };
  });
}

function canonical(config: RopeConfig, length: number): { inverseFrequencies: Float64Array; angles: Float64Array } {
  const { inverseFrequencies } = computeRopeFrequencies(config, length);
  return { inverseFrequencies, angles: inverseFrequencies.map((w) => w * (length - 1)) };
}

/** The largest value over the pairs that both have, and its index. */
function largest(
  left: Float64Array,
  right: Float64Array,
  measure: (x: number, y: number) => number,
): { value: number; at: number } {
  let value = 0;
  let at = 0;
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    const here = measure(left[i]!, right[i]!);
    if (here > value) [value, at] = [here, i];
  }
  return { value, at };
}
