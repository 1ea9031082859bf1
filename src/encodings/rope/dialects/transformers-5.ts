// Hugging Face transformers 5.24.0: modeling_rope_utils.py and the rotary class of each model. The formulas are the
// canonical ones of rope/scaling; what differs is which keys a class reads, and that the dynamic type has a memory.

import type { DynamicRope, LongRope, RopeConfig, RopeParameters, YarnRope } from "../scaling/parameters.ts";
import { rotaryDimOf } from "../scaling/scaling.ts";
import { yarnAttentionFactor, yarnFactor } from "../scaling/yarn.ts";
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

const UTILS = "modeling_rope_utils.py";

/** model_type of the classes whose default type honours partial_rotary_factor; the others rotate whole heads. */
export const honoursPartialRotary: ReadonlySet<string> = new Set(
  (
    "bamba deepseek_v4 diffusion_gemma_text dots3_note_audio_encoder dots3_note_text efficientloftr glm glm4 " +
    "glm4_moe glm4_moe_lite glm4v_moe_text glm4v_text glm_image_text glm_ocr_text glmasr gpt_neox " +
    "gpt_neox_japanese laguna mellum mimo_v2_flash minimax_m2 minimax_m3_vl minimax_m3_vl_text moonshine " +
    "moonshine_streaming musicflamingo nemo_speechlm nemotron nemotron3_diarization neomme persimmon phi phi3 " +
    "phi4_multimodal qwen3_5_moe_text qwen3_5_text qwen3_next qwen4_exp_text recurrent_gemma solar_open " +
    "stablelm step3p5 step3p7 zaya"
  ).split(" "),
);

/** model_type of the latent-attention classes that multiply the softmax scale by m(factor, mscale_all_dim)². */
export const scalesSoftmax: ReadonlySet<string> = new Set(
  (
    "axk1 axk2 bailing_hybrid deepseek_v2 deepseek_v3 deepseek_v32 glm4_moe_lite glm_moe_dsa hy_v4 hy_v4_vl " +
    "hy_v4_vl_text longcat_flash minicpm3 mistral4 mistral_large4_text youtu"
  ).split(" "),
);

const known: ReadonlySet<string> = new Set([
  "default",
  "linear",
  "dynamic",
  "yarn",
  "llama3",
  "longrope",
  "proportional",
]);

/**
 * The table that a transformers module uses for a call of `length` tokens, as the length that it was made for: it grows
 * with the longest call, and is reset only by a call *below* maxPositionEmbeddings, not at it.
 */
export function dynamicTableLength(config: RopeConfig, length: number, previous = 0): number {
  const trained = config.maxPositionEmbeddings;
  const cached = Math.max(previous, trained);
  return length > cached ? length : length < trained ? trained : cached;
}

/** transformers' dynamic base: the length is a float32 tensor there, so the base is too. */
export function dynamicFrequencies(
  a: Arithmetic,
  config: RopeConfig<DynamicRope>,
  rotaryDim: number,
  length: number,
): Float64Array {
  const { ropeTheta, factor } = config.rope;
  const trained = config.maxPositionEmbeddings;
  if (length <= trained) return geometric(a, ropeTheta, rotaryDim);
  const stretch = a.round(a.round(a.round(a.round(factor) * length) / trained) - a.round(factor - 1));
  const base = a.round(ropeTheta * a.pow(stretch, rotaryDim / (rotaryDim - 2)));
  return geometric(a, base, rotaryDim);
}

interface Made {
  readonly inverseFrequencies: Float64Array;
  readonly attentionFactor: number;
}

function dynamic(a: Arithmetic, config: RopeConfig<DynamicRope>, context: DialectContext, notes: Notes): Made {
  const { rope } = config;
  const rotaryDim = rotaryDimOf(config.headDim, rope.partialRotaryFactor);
  if (rope.alpha !== undefined) {
    const source = "hunyuan_v1_dense/modeling_hunyuan_v1_dense.py compute_ntk_alpha_rope_parameters";
    if (context.modelType === undefined || context.modelType.startsWith("hunyuan")) {
      notes.add("formula-differs", "alpha", "with alpha the base is fixed and factor is unused", source);
      return {
        inverseFrequencies: geometric(a, stretchedBase(rope.ropeTheta, rope.alpha, rotaryDim), rotaryDim),
        attentionFactor: 1,
      };
    }
    notes.add("key-ignored", "alpha", "alpha is read by the HunYuan classes alone; here factor counts", source);
  }
  const length = dynamicTableLength(config, context.sequenceLength, context.previousLength);
  if (length > Math.max(context.sequenceLength, config.maxPositionEmbeddings)) {
    notes.add(
      "history",
      null,
      `the table of an earlier call of ${length} tokens is still in use: only a call below ` +
        `${config.maxPositionEmbeddings} tokens resets it`,
      `${UTILS} dynamic_frequency_update`,
    );
  }
  return { inverseFrequencies: dynamicFrequencies(a, config, rotaryDim, length), attentionFactor: 1 };
}

function yarnOf(a: Arithmetic, config: RopeConfig<YarnRope>, context: DialectContext, notes: Notes): Made {
  const { rope } = config;
  const rotaryDim = rotaryDimOf(config.headDim, rope.partialRotaryFactor);
  const factor = yarnFactor(config);
  const nested = context.nested === true && rope.truncate === false;
  if (nested) {
    notes.add(
      "key-ignored",
      "truncate",
      "truncate is looked up beside the layer types, not under one: the ramp's ends are rounded",
      `${UTILS} _compute_yarn_parameters`,
    );
  }
  const ends = yarnEnds(rope.ropeTheta, rotaryDim, {
    originalLength: rope.originalMaxPositionEmbeddings,
    betaFast: rope.betaFast || 32,
    betaSlow: rope.betaSlow || 1,
    truncate: nested || (rope.truncate ?? true),
  });
  return {
    inverseFrequencies: yarn(a, rope.ropeTheta, rotaryDim, factor, ends),
    attentionFactor: yarnAttentionFactor(rope, factor),
  };
}

function longrope(a: Arithmetic, config: RopeConfig<LongRope>, context: DialectContext, notes: Notes): Made {
  const { rope } = config;
  const rotaryDim = rotaryDimOf(config.headDim, rope.partialRotaryFactor);
  let original = rope.originalMaxPositionEmbeddings;
  if (context.modelType === "phi3" && context.originalLengthAtTopLevel === false && original !== 4096) {
    notes.add(
      "key-ignored",
      "originalMaxPositionEmbeddings",
      "Phi3Config has this key at the top level, 4096 by default, and it overwrites the one inside",
      `${UTILS} RotaryEmbeddingConfigMixin`,
    );
    original = 4096;
  }
  const long = context.sequenceLength > original;
  const phimoe = context.modelType === "phimoe";
  const magnitudes = [rope.shortMscale, rope.longMscale];
  let attentionFactor =
    rope.attentionFactor ?? longRopeMagnitude(rope.factor ?? config.maxPositionEmbeddings / original, original);
  if (phimoe) {
    const source = "phimoe/modeling_phimoe.py PhimoeRotaryEmbedding.forward";
    attentionFactor = magnitudes[long ? 1 : 0] ?? attentionFactor;
    if (long) {
      notes.add("formula-differs", "longFactor", "the class computes with the short list at every length", source);
    }
  } else {
    notes.ignored(rope, ["shortMscale", "longMscale"], "only PhiMoE reads it", `${UTILS} _compute_longrope_parameters`);
  }
  return {
    inverseFrequencies: divided(a, rope.ropeTheta, rotaryDim, long && !phimoe ? rope.longFactor : rope.shortFactor),
    attentionFactor,
  };
}

/** The formulas of modeling_rope_utils.py, common to versions 4 and 5, for types without a memory. */
export function plain(a: Arithmetic, headDim: number, rope: RopeParameters): Float64Array | null {
  switch (rope.ropeType) {
    case "default":
      return geometric(a, rope.ropeTheta, rotaryDimOf(headDim, rope.partialRotaryFactor));
    case "linear": {
      const factor = a.round(rope.factor);
      const unscaled = geometric(a, rope.ropeTheta, rotaryDimOf(headDim, rope.partialRotaryFactor));
      return unscaled.map((w) => a.round(w / factor));
    }
    case "llama3":
      return llama3(a, geometric(a, rope.ropeTheta, rotaryDimOf(headDim, rope.partialRotaryFactor)), {
        factor: rope.factor,
        originalLength: rope.originalMaxPositionEmbeddings,
        low: rope.lowFreqFactor,
        high: rope.highFreqFactor,
      });
    case "proportional": {
      const turning = Math.floor(((rope.partialRotaryFactor ?? 1) * rotaryDimOf(headDim)) / 2);
      const factor = a.round(rope.factor ?? 1);
      const out = new Float64Array(headDim / 2);
      out.set(geometric(a, rope.ropeTheta, headDim, turning).map((w) => a.round(w / factor)));
      return out;
    }
    default:
      return null;
  }
}

function compute(config: RopeConfig, context: DialectContext): DialectResult {
  const { modelType } = context;
  const notes = new Notes();
  const a = arithmeticOf(context.float32);
  if (!known.has(config.rope.ropeType)) {
    return unsupported(
      `KeyError ${JSON.stringify(config.rope.ropeType)} when the model is built (${UTILS} ROPE_INIT_FUNCTIONS)`,
    );
  }
  if (modelType === "phi3" && config.rope.ropeType !== "default" && config.rope.ropeType !== "longrope") {
    return unsupported(
      config.rope.ropeType === "yarn"
        ? "Phi3Config renames yarn to longrope, and then misses short_factor and long_factor (KeyError)"
        : "ValueError: Phi3Config takes the types default and longrope alone (configuration_phi3.py)",
    );
  }
  let { rope } = config;
  const partial = rope.partialRotaryFactor ?? 1;
  if (
    partial < 1 &&
    rope.ropeType !== "proportional" &&
    modelType !== undefined &&
    !honoursPartialRotary.has(modelType)
  ) {
    if (rope.ropeType !== "default") {
      return unsupported(
        `RuntimeError in the first forward pass: the class of ${modelType} rotates whole heads, the scaled table covers ` +
          `${partial} of one`,
      );
    }
    notes.add(
      "key-ignored",
      "partialRotaryFactor",
      `the class of ${modelType} rotates whole heads`,
      "modeling_*.py compute_default_rope_parameters",
    );
    rope = { ...rope, partialRotaryFactor: 1 };
  }
  const made = ((): Made => {
    switch (rope.ropeType) {
      case "dynamic":
        return dynamic(a, { ...config, rope }, context, notes);
      case "yarn":
        return yarnOf(a, { ...config, rope }, context, notes);
      case "longrope":
        return longrope(a, { ...config, rope }, context, notes);
      default:
        return { inverseFrequencies: plain(a, config.headDim, rope)!, attentionFactor: 1 };
    }
  })();
  let softmaxFactor = 1;
  // Kimi's files are read as DeepSeek V3.
  const read = modelType === "kimi_k2" || modelType === "kimi_k25" ? "deepseek_v3" : modelType;
  if (rope.ropeType === "yarn" && rope.mscaleAllDim && read !== undefined && scalesSoftmax.has(read)) {
    if (rope.factor === null) {
      return unsupported("TypeError while the attention is built: factor is null (yarn_apply_mscale)");
    }
    softmaxFactor = magnitude(rope.factor, rope.mscaleAllDim) ** 2;
  }
  return frequenciesOf({ ...made, softmaxFactor, notes: notes.list, context });
}

export const transformers5: RopeDialect = { dialect: "transformers-5", engine: "transformers 5.24.0", compute };
