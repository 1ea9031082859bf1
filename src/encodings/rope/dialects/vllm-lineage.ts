// What vLLM 0.11 and SGLang share: SGLang's rotary classes were taken from vLLM's, before vLLM changed them. Against
// vLLM 0.33: dynamic is stretched for the whole extended length at the start, longrope chooses its list by the positions
// of a batch, and fewer keys of YaRN are read.

import type { DynamicRope, LongRope, RopeConfig, YarnRope } from "../scaling/parameters.ts";
import { rotaryDimOf } from "../scaling/scaling.ts";
import {
  type Arithmetic,
  arithmeticOf,
  divided,
  geometric,
  llama3,
  longRopeMagnitude,
  magnitude,
  stretchedBase,
  yarn,
  yarnEnds,
} from "./arithmetic.ts";
import { type DialectContext, type DialectResult, frequenciesOf, Notes, unsupported } from "./dialect.ts";

/** model_type whose attention renames any scaled type to deepseek_yarn, in every release and in SGLang. */
export const deepseekAttention: ReadonlySet<string> = new Set([
  "deepseek_v2",
  "deepseek_v3",
  "deepseek_v32",
  "kimi_k2",
  "kimi_k25",
  "axk1",
]);

export interface Release {
  /** The file that holds the classes, for notes. */
  readonly source: string;
  /** Whether YaRN reads truncate, and the ratio of mscale and mscale_all_dim. */
  readonly readsTruncate: boolean;
  readonly readsMscale: boolean;
  readonly knowsNtk: boolean;
  readonly knowsProportional: boolean;
  /** Whether tables stay float32 (those of longrope take the model's dtype all the same). */
  readonly keepsFloat32: boolean;
  /** Whether rows are added to a table that is too short. */
  readonly tableGrows: boolean;
  /** Bound on max_model_len or context_length that a configuration allows, and what lifts it. */
  readonly admits: (config: RopeConfig, modelType: string | undefined) => number;
  readonly lifted: string;
}

interface Made {
  readonly inverseFrequencies: Float64Array;
  readonly attentionFactor?: number;
  readonly softmaxFactor?: number;
  readonly tableLength: number;
  readonly divisor?: number;
}

export function computeLineage(release: Release, config: RopeConfig, context: DialectContext): DialectResult {
  const notes = new Notes();
  const a = arithmeticOf(context.float32);
  const made = make(release, a, config, context, notes);
  if (typeof made === "string") return unsupported(made, notes.list);
  const admitted = release.admits(config, context.modelType);
  const asked = context.maxModelLen ?? 0;
  if (asked > admitted) {
    notes.add(
      "assumed",
      "maxPositionEmbeddings",
      `a length of ${asked} is above the ${admitted} that the configuration allows: refused unless ${release.lifted}`,
      release.source,
    );
  }
  const needed = Math.max(asked, context.sequenceLength);
  if (!release.tableGrows && made.tableLength < needed) {
    notes.add(
      "table-too-short",
      null,
      `cos and sin exist for ${made.tableLength} positions, ${needed} are asked for: reads past the end of the table`,
      release.source,
    );
  }
  const { divisor = 1 } = made;
  return frequenciesOf({
    inverseFrequencies: made.inverseFrequencies.map((w) => a.round(w / divisor)),
    attentionFactor: made.attentionFactor ?? 1,
    softmaxFactor: made.softmaxFactor ?? 1,
    tableLength: release.tableGrows ? null : made.tableLength,
    tableDtype:
      release.keepsFloat32 && config.rope.ropeType !== "longrope" ? "float32" : (context.modelDtype ?? "bfloat16"),
    notes: notes.list,
    context,
    angle: (p, i) => a.round(a.round(p / a.round(divisor)) * made.inverseFrequencies[i]!),
  });
}

function make(
  release: Release,
  a: Arithmetic,
  config: RopeConfig,
  context: DialectContext,
  notes: Notes,
): Made | string {
  const { rope, maxPositionEmbeddings: maxPosition } = config;
  const rotaryDim =
    rope.ropeType === "proportional"
      ? rotaryDimOf(config.headDim)
      : rotaryDimOf(config.headDim, rope.partialRotaryFactor);
  const plain = (theta = rope.ropeTheta) => geometric(a, theta, rotaryDim);
  switch (rope.ropeType) {
    case "default":
      return { inverseFrequencies: plain(), tableLength: maxPosition };
    case "linear":
      if (Number.isInteger(rope.factor)) {
        notes.add(
          "assumed",
          "factor",
          `factor is written with a decimal point (${rope.factor}.0): an integer is no list of factors and raises TypeError`,
          `${release.source} LinearScalingRotaryEmbedding`,
        );
      }
      return { inverseFrequencies: plain(), divisor: rope.factor, tableLength: Math.ceil(maxPosition * rope.factor) };
    case "ntk":
      if (!release.knowsNtk) return unknownType(release, rope.ropeType);
      notes.add(
        "formula-differs",
        null,
        "ω_i · s^(−2(i+1)/d): the fastest pair is slowed too",
        `${release.source} NTKScalingRotaryEmbedding`,
      );
      return {
        inverseFrequencies: plain(rope.ropeTheta * rope.factor).map((w) =>
          a.round(w / a.round(a.pow(rope.factor, 2 / rotaryDim))),
        ),
        tableLength: maxPosition,
      };
    case "dynamic":
      return dynamic(release, a, { ...config, rope }, rotaryDim, notes);
    case "yarn":
      return yarnClass(release, a, { ...config, rope }, context, rotaryDim, notes);
    case "llama3":
      return {
        inverseFrequencies: llama3(a, plain(), {
          factor: rope.factor,
          originalLength: rope.originalMaxPositionEmbeddings,
          low: rope.lowFreqFactor,
          high: rope.highFreqFactor,
        }),
        tableLength: maxPosition,
      };
    case "longrope":
      return longrope(release, a, { ...config, rope }, context, rotaryDim, notes);
    case "proportional": {
      if (!release.knowsProportional) return unknownType(release, rope.ropeType);
      if ((rope.factor ?? 1) !== 1) {
        notes.add("key-ignored", "factor", "not read", `${release.source} Gemma4RotaryEmbedding`);
      }
      const turning = Math.floor(Math.trunc(config.headDim * (rope.partialRotaryFactor ?? 1)) / 2);
      const inverseFrequencies = new Float64Array(config.headDim / 2);
      inverseFrequencies.set(geometric(a, rope.ropeTheta, config.headDim, turning));
      return { inverseFrequencies, tableLength: maxPosition };
    }
    default:
      return unknownType(release, rope.ropeType);
  }
}

function unknownType(release: Release, type: string): string {
  return `ValueError: Unknown RoPE scaling type ${type} (${release.source} get_rope)`;
}

/** One table, for factor · L tokens: s · max_len / L − (s − 1) with max_len = s · L. */
function dynamic(
  release: Release,
  a: Arithmetic,
  config: RopeConfig<DynamicRope>,
  rotaryDim: number,
  notes: Notes,
): Made {
  const { rope, maxPositionEmbeddings: maxPosition } = config;
  if (rope.alpha !== undefined) {
    return {
      inverseFrequencies: geometric(a, stretchedBase(rope.ropeTheta, rope.alpha, rotaryDim), rotaryDim),
      tableLength: maxPosition,
    };
  }
  notes.add(
    "fixed-at-start",
    null,
    `one table, made for ${maxPosition * rope.factor} tokens and used at every length: short inputs are stretched too`,
    `${release.source} DynamicNTKScalingRotaryEmbedding`,
  );
  const stretch = rope.factor * rope.factor - (rope.factor - 1);
  return {
    inverseFrequencies: geometric(a, stretchedBase(rope.ropeTheta, stretch, rotaryDim), rotaryDim),
    tableLength: Math.ceil(maxPosition * rope.factor),
  };
}

function longrope(
  release: Release,
  a: Arithmetic,
  config: RopeConfig<LongRope>,
  context: DialectContext,
  rotaryDim: number,
  notes: Notes,
): Made {
  const { rope, maxPositionEmbeddings: maxPosition } = config;
  const source = `${release.source} Phi3LongRoPEScaledRotaryEmbedding`;
  const original = rope.originalMaxPositionEmbeddings;
  notes.add(
    "history",
    null,
    `the list is chosen for a whole batch, by whether any position in it is above ${original}: one long request moves ` +
      "short ones, and cached keys keep the list of their own step",
    source,
  );
  notes.ignored(rope, ["attentionFactor", "factor"], "computed from the ratio of the two lengths instead", source);
  const long = context.sequenceLength - 1 > original;
  const derived = longRopeMagnitude(maxPosition / original, original);
  return {
    inverseFrequencies: divided(a, rope.ropeTheta, rotaryDim, long ? rope.longFactor : rope.shortFactor),
    attentionFactor: (long ? rope.longMscale : rope.shortMscale) ?? derived,
    tableLength: long ? maxPosition : original,
  };
}

function yarnClass(
  release: Release,
  a: Arithmetic,
  { rope }: RopeConfig<YarnRope>,
  context: DialectContext,
  rotaryDim: number,
  notes: Notes,
): Made | string {
  const source = `${release.source} YaRNScalingRotaryEmbedding`;
  if (rope.factor === null) return `TypeError: factor is null (${release.source})`;
  for (const key of ["betaFast", "betaSlow"] as const) {
    if (rope[key] === null) return `TypeError: ${key} is null; leave it out for its default (${release.source})`;
    if (rope[key] === 0) return `ZeroDivisionError: ${key} is 0; leave it out for its default (${release.source})`;
  }
  const isDeepseek = context.modelType !== undefined && deepseekAttention.has(context.modelType);
  notes.ignored(rope, ["attentionFactor"], "not read: m(factor), or the ratio of mscale, is used", source);
  let truncates = true;
  if (rope.truncate === false) {
    truncates = isDeepseek || !release.readsTruncate;
    if (truncates) notes.add("key-ignored", "truncate", "the ramp's ends are always rounded", source);
  }
  let attentionFactor = magnitude(rope.factor);
  let softmaxFactor = 1;
  if (isDeepseek) {
    if (rope.mscale === null || rope.mscaleAllDim === null) return "TypeError: mscale or mscale_all_dim is null";
    attentionFactor = magnitude(rope.factor, rope.mscale ?? 1) / magnitude(rope.factor, rope.mscaleAllDim ?? 0);
    softmaxFactor = magnitude(rope.factor, rope.mscaleAllDim ?? 0) ** 2;
  } else if (release.readsMscale && (rope.mscale ?? null) !== null && (rope.mscaleAllDim ?? null) !== null) {
    attentionFactor = magnitude(rope.factor, rope.mscale!) / magnitude(rope.factor, rope.mscaleAllDim!);
  } else {
    notes.ignored(rope, ["mscale", "mscaleAllDim"], "m(factor) is used", source);
  }
  const ends = yarnEnds(rope.ropeTheta, rotaryDim, {
    originalLength: rope.originalMaxPositionEmbeddings,
    betaFast: rope.betaFast ?? 32,
    betaSlow: rope.betaSlow ?? 1,
    truncate: truncates,
  });
  return {
    inverseFrequencies: yarn(a, rope.ropeTheta, rotaryDim, rope.factor, ends),
    attentionFactor,
    softmaxFactor,
    tableLength: Math.ceil(rope.originalMaxPositionEmbeddings * rope.factor),
  };
}
