// vLLM 0.33.0 (commit 4ba787ec9): get_rope in vllm/model_executor/layers/rotary_embedding/__init__.py and one class a
// type beside it. cos and sin are tables made once, in float32, and kept in the model's dtype; nothing depends on the
// length of a sequence. max_position is config.max_position_embeddings in every model that was read.

import { naturalLogarithm, power } from "../../numerics/power.ts";
import type { RopeConfig, YarnRope } from "../scaling/parameters.ts";
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
import {
  type DialectContext,
  type DialectResult,
  frequenciesOf,
  Notes,
  type RopeDialect,
  unsupported,
} from "./dialect.ts";
import { deepseekAttention } from "./vllm-lineage.ts";

const FOLDER = "vllm/model_executor/layers/rotary_embedding";

interface Made {
  readonly inverseFrequencies: Float64Array;
  readonly attentionFactor?: number;
  readonly softmaxFactor?: number;
  /** Rows of the table. */
  readonly tableLength: number;
  /** What the class divides positions by before the product (linear). */
  readonly divisor?: number;
  readonly float32Table?: boolean;
}

/** The longest max_model_len that vLLM takes for a configuration: the claimed length, times the factor of every type that
 *  is not known to have been applied to it already. */
function derivedLength(config: RopeConfig): number {
  const { rope } = config;
  const applied = rope.ropeType === "yarn" || rope.ropeType === "llama3" || rope.ropeType === "longrope";
  const factor = !applied && "factor" in rope ? (rope.factor ?? 1) : 1;
  return Math.trunc(config.maxPositionEmbeddings * factor);
}

/** Rows of torch.arange(n) for a float n. */
const rows = (n: number): number => Math.ceil(n);

function compute(config: RopeConfig, context: DialectContext): DialectResult {
  const notes = new Notes();
  const a = arithmeticOf(context.float32);
  const made = make(a, config, context, notes);
  if (typeof made === "string") return unsupported(made, notes.list);
  const derived = derivedLength(config);
  const admitted = context.maxModelLen ?? (config.rope.ropeType === "longrope" ? made.tableLength : derived);
  if (admitted > derived) {
    notes.add(
      "assumed",
      "maxPositionEmbeddings",
      `max_model_len ${admitted} is above the ${derived} that the configuration allows: refused unless ` +
        "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1",
      "vllm/config/model.py _get_and_verify_max_len",
    );
  }
  if (made.tableLength < Math.max(admitted, context.sequenceLength)) {
    notes.add(
      "table-too-short",
      null,
      `cos and sin exist for ${made.tableLength} positions, ${Math.max(admitted, context.sequenceLength)} are asked for: ` +
        "reads past the end of the table",
      `${FOLDER}/base.py RotaryEmbedding.forward_static`,
    );
  }
  const { divisor = 1 } = made;
  return frequenciesOf({
    inverseFrequencies: made.inverseFrequencies.map((w) => a.round(w / divisor)),
    attentionFactor: made.attentionFactor ?? 1,
    softmaxFactor: made.softmaxFactor ?? 1,
    tableLength: made.tableLength,
    tableDtype: made.float32Table === true ? "float32" : (context.modelDtype ?? "bfloat16"),
    notes: notes.list,
    context,
    angle: (p, i) => a.round(a.round(p / a.round(divisor)) * made.inverseFrequencies[i]!),
  });
}

function make(a: Arithmetic, config: RopeConfig, context: DialectContext, notes: Notes): Made | string {
  const { rope } = config;
  const maxPosition = config.maxPositionEmbeddings;
  const { ropeTheta: base } = rope;
  const rotaryDim =
    rope.ropeType === "proportional"
      ? rotaryDimOf(config.headDim)
      : rotaryDimOf(config.headDim, rope.partialRotaryFactor);
  const plain = (theta = base) => geometric(a, theta, rotaryDim);
  switch (rope.ropeType) {
    case "default":
      return { inverseFrequencies: plain(), tableLength: maxPosition };
    case "linear": {
      const source = `${FOLDER}/linear_scaling_rope.py LinearScalingRotaryEmbedding`;
      if (Number.isInteger(rope.factor)) {
        notes.add(
          "assumed",
          "factor",
          `factor is written with a decimal point (${rope.factor}.0): an integer is no list of factors and raises TypeError`,
          source,
        );
      }
      return { inverseFrequencies: plain(), divisor: rope.factor, tableLength: rows(maxPosition * rope.factor) };
    }
    case "ntk": {
      // base·s, then ÷ s^(2/d): s^(−2(i+1)/d), where bloc97's rule gives s^(−2i/(d−2)).
      const source = `${FOLDER}/ntk_scaling_rope.py NTKScalingRotaryEmbedding`;
      notes.add("formula-differs", null, "ω_i · s^(−2(i+1)/d): the fastest pair is slowed too", source);
      const divisor = a.round(power(rope.factor, 2 / rotaryDim));
      return {
        inverseFrequencies: plain(base * rope.factor).map((w) => a.round(w / divisor)),
        tableLength: maxPosition,
      };
    }
    case "dynamic": {
      if (rope.alpha !== undefined) {
        return { inverseFrequencies: plain(stretchedBase(base, rope.alpha, rotaryDim)), tableLength: maxPosition };
      }
      const source = `${FOLDER}/dynamic_ntk_scaling_rope.py DynamicNTKScalingRotaryEmbedding`;
      notes.add(
        "fixed-at-start",
        null,
        "one table, made for max_position_embeddings tokens, at which dynamic NTK changes nothing: unscaled",
        source,
      );
      return { inverseFrequencies: plain(), tableLength: maxPosition };
    }
    case "yarn":
      return yarnClass(a, { ...config, rope }, context, rotaryDim, notes);
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
    case "longrope": {
      const source = `${FOLDER}/phi3_long_rope_scaled_rope.py Phi3LongRoPEScaledRotaryEmbedding`;
      const original = rope.originalMaxPositionEmbeddings;
      const admitted = context.maxModelLen ?? original;
      if (context.maxModelLen === undefined) {
        notes.add(
          "assumed",
          null,
          `without --max-model-len a longrope model is started for its original ${original} tokens`,
          "vllm/config/model.py _get_and_verify_max_len",
        );
      }
      const long = admitted > original;
      notes.add(
        "fixed-at-start",
        null,
        `the ${long ? "long" : "short"} list is used at every length, because max_model_len ${admitted} is ` +
          `${long ? "above" : "at most"} ${original}`,
        source,
      );
      notes.ignored(rope, ["attentionFactor", "factor"], "computed from the ratio of the two lengths instead", source);
      const derived = longRopeMagnitude(maxPosition / original, original);
      return {
        inverseFrequencies: divided(a, base, rotaryDim, long ? rope.longFactor : rope.shortFactor),
        attentionFactor: (long ? rope.longMscale : rope.shortMscale) ?? derived,
        tableLength: long ? maxPosition : original,
      };
    }
    case "proportional": {
      if ((rope.factor ?? 1) !== 1) {
        notes.add("key-ignored", "factor", "not read", `${FOLDER}/gemma4_rope.py Gemma4RotaryEmbedding`);
      }
      const turning = Math.floor(Math.trunc(config.headDim * (rope.partialRotaryFactor ?? 1)) / 2);
      const inverseFrequencies = new Float64Array(config.headDim / 2);
      inverseFrequencies.set(geometric(a, base, config.headDim, turning));
      return { inverseFrequencies, tableLength: maxPosition };
    }
    default:
      return `ValueError: Unknown RoPE scaling type ${rope.ropeType} (${FOLDER}/__init__.py get_rope)`;
  }
}

function yarnClass(
  a: Arithmetic,
  config: RopeConfig<YarnRope>,
  context: DialectContext,
  rotaryDim: number,
  notes: Notes,
): Made | string {
  const { rope } = config;
  const { modelType } = context;
  if (rope.factor === null) return "TypeError: factor is null (yarn_get_mscale)";
  for (const key of ["betaFast", "betaSlow"] as const) {
    if (rope[key] === null) return `TypeError: ${key} is null; leave it out for its default (yarn_find_correction_dim)`;
    if (rope[key] === 0)
      return `ZeroDivisionError: ${key} is 0; leave it out for its default (yarn_find_correction_dim)`;
  }
  const isDeepseek = modelType !== undefined && deepseekAttention.has(modelType);
  const isGptOss = modelType === "gpt_oss";
  let attentionFactor: number;
  let softmaxFactor = 1;
  if (isDeepseek) {
    const source = `${FOLDER}/deepseek_scaling_rope.py DeepseekScalingRotaryEmbedding`;
    if (rope.mscale === null || rope.mscaleAllDim === null) return "TypeError: mscale or mscale_all_dim is null";
    if (rope.truncate === false) notes.add("key-ignored", "truncate", "the ramp's ends are always rounded", source);
    notes.ignored(rope, ["attentionFactor"], "computed from mscale and mscale_all_dim (defaults 1 and 0)", source);
    attentionFactor = magnitude(rope.factor, rope.mscale ?? 1) / magnitude(rope.factor, rope.mscaleAllDim ?? 0);
    // attention_factor 1.0 in the file is the sign of Mistral's deepseek_llama_scaling, which leaves the softmax alone.
    if (rope.attentionFactor !== 1) softmaxFactor = magnitude(rope.factor, rope.mscaleAllDim ?? 0) ** 2;
  } else if (isGptOss) {
    const source = "vllm/model_executor/models/gpt_oss.py OAIAttention";
    notes.ignored(rope, ["attentionFactor", "mscale", "mscaleAllDim"], "not passed on: m(factor) is used", source);
    attentionFactor = magnitude(rope.factor);
  } else if ((rope.attentionFactor ?? null) !== null) {
    attentionFactor = rope.attentionFactor!;
  } else if (rope.mscale && rope.mscaleAllDim) {
    attentionFactor = magnitude(rope.factor, rope.mscale) / magnitude(rope.factor, rope.mscaleAllDim);
  } else {
    attentionFactor = magnitude(rope.factor);
  }
  const ends = yarnEnds(rope.ropeTheta, rotaryDim, {
    originalLength: rope.originalMaxPositionEmbeddings,
    betaFast: rope.betaFast ?? 32,
    betaSlow: rope.betaSlow ?? 1,
    truncate: isDeepseek || (rope.truncate ?? true),
  });
  return {
    inverseFrequencies: yarn(a, rope.ropeTheta, rotaryDim, rope.factor, ends),
    attentionFactor,
    softmaxFactor,
    tableLength: rows(rope.originalMaxPositionEmbeddings * rope.factor),
    float32Table: isGptOss,
  };
}

/**
 * The frequencies of vLLM's own key `mixed_b` under its type ntk: ω_i / exp(a·(i+1)^b), with a = ln s / (d/2)^b. No
 * other engine reads it.
 *
 * @param ropeTheta b of ω_i = b^(−2i/d), above 0
 * @param rotaryDim d, even
 * @param factor s, above 0
 * @param mixedB b of the exponent
 * @returns d/2 inverse frequencies in radians a token; the last is divided by the whole factor
 * @throws RangeError for a base or factor that is not above 0
 * @example
 * ```ts
 * import { vllmMixedNtk } from "longhand/encodings";
 * const [fast, slow] = vllmMixedNtk(10000, 4, 4, 0.625);
 * Math.round(1e4 * fast) / 1e4; // => 0.407
 * Math.round(1e6 * slow) / 1e6; // => 0.0025
 * ```
 * Source: Su 2023 (kexue.fm/archives/9706), as in vLLM's NTKScalingRotaryEmbedding.
 */
export function vllmMixedNtk(ropeTheta: number, rotaryDim: number, factor: number, mixedB: number): Float64Array {
  const a = arithmeticOf(false);
  const slope = naturalLogarithm(factor) / power(rotaryDim / 2, mixedB);
  return geometric(a, ropeTheta, rotaryDim).map((w, i) => w / power(Math.E, slope * power(i + 1, mixedB)));
}

export const vllm: RopeDialect = { dialect: "vllm", engine: "vLLM 0.33.0 (4ba787ec9)", compute };
