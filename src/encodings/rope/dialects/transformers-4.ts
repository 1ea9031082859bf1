// Hugging Face transformers 4.57.6, the last of version 4: modeling_rope_utils.py and the rotary class of each model.
// Against version 5: proportional is unknown, yarn cannot do without factor, and longrope looks for the original length
// at the top level of config.json only.

import type { LongRope, RopeConfig } from "../scaling/parameters.ts";
import { rotaryDimOf } from "../scaling/scaling.ts";
import { yarnAttentionFactor } from "../scaling/yarn.ts";
import {
  arithmeticOf,
  divided,
  geometric,
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
import { dynamicFrequencies, dynamicTableLength, plain } from "./transformers-5.ts";

const UTILS = "modeling_rope_utils.py";

/** model_type of the classes that rotate a part of a head; in the others a smaller table fails in the forward pass. */
export const rotatesPartOfHead: ReadonlySet<string> = new Set(
  (
    "bamba glm glm4 glm4_moe glm4v_text glm4v_moe_text gpt_neox gpt_neox_japanese moonshine persimmon phi phi3 " +
    "phi4_multimodal qwen3_next stablelm nemotron recurrent_gemma"
  ).split(" "),
);

/** model_type of the classes with DeepSeek's softmax factor: DeepSeek V2 lacks it here. */
const scalesSoftmax: ReadonlySet<string> = new Set(["deepseek_v3", "longcat_flash"]);

function longrope(config: RopeConfig<LongRope>, context: DialectContext, notes: Notes): DialectResult {
  const { rope } = config;
  const a = arithmeticOf(context.float32);
  const rotaryDim = rotaryDimOf(config.headDim, rope.partialRotaryFactor);
  const source = `${UTILS} _compute_longrope_parameters`;
  const atTop = context.originalLengthAtTopLevel ?? true;
  const original = atTop ? rope.originalMaxPositionEmbeddings : config.maxPositionEmbeddings;
  let factor = rope.factor ?? null;
  if (atTop) {
    if (factor !== null) {
      notes.add("key-ignored", "factor", "the ratio of the two lengths at the top level is used instead", source);
    }
    factor = config.maxPositionEmbeddings / original;
  } else {
    notes.add(
      "key-ignored",
      "originalMaxPositionEmbeddings",
      "only the top level of config.json is read: the lists change at maxPositionEmbeddings instead",
      source,
    );
  }
  if (factor === null && (rope.attentionFactor ?? null) === null) {
    return unsupported(
      "TypeError: neither factor nor attention_factor nor a top-level original length is given",
      notes.list,
    );
  }
  const long = context.sequenceLength > original;
  const phimoe = context.modelType === "phimoe";
  let attentionFactor = rope.attentionFactor ?? longRopeMagnitude(factor!, original);
  if (phimoe) {
    // Its own threshold is the length inside rope_scaling, wherever the lists change.
    const magnitudeOf =
      context.sequenceLength > rope.originalMaxPositionEmbeddings ? rope.longMscale : rope.shortMscale;
    attentionFactor = magnitudeOf ?? attentionFactor;
  }
  if (!phimoe) notes.ignored(rope, ["shortMscale", "longMscale"], "only PhiMoE reads it", source);
  const inverseFrequencies = divided(a, rope.ropeTheta, rotaryDim, long ? rope.longFactor : rope.shortFactor);
  return frequenciesOf({ inverseFrequencies, attentionFactor, notes: notes.list, context });
}

function compute(config: RopeConfig, context: DialectContext): DialectResult {
  const { rope } = config;
  const { modelType } = context;
  const notes = new Notes();
  const a = arithmeticOf(context.float32);
  const partial = rope.partialRotaryFactor ?? 1;
  if (partial < 1 && modelType !== undefined && !rotatesPartOfHead.has(modelType)) {
    return unsupported(`RuntimeError in the first forward pass: the class of ${modelType} rotates whole heads`);
  }
  const done = (inverseFrequencies: Float64Array, attentionFactor = 1, softmaxFactor = 1) =>
    frequenciesOf({ inverseFrequencies, attentionFactor, softmaxFactor, notes: notes.list, context });
  switch (rope.ropeType) {
    case "default":
    case "linear":
    case "llama3":
      return done(plain(a, config.headDim, rope)!);
    case "dynamic": {
      const rotaryDim = rotaryDimOf(config.headDim, rope.partialRotaryFactor);
      if (rope.alpha !== undefined) {
        const source = "hunyuan_v1_dense/modeling_hunyuan_v1_dense.py HunYuanDenseV1RotaryEmbedding";
        if (modelType === undefined || modelType.startsWith("hunyuan")) {
          return done(geometric(a, stretchedBase(rope.ropeTheta, rope.alpha, rotaryDim), rotaryDim));
        }
        notes.add("key-ignored", "alpha", "alpha is read by the HunYuan classes alone; here factor counts", source);
      }
      const length = dynamicTableLength(config, context.sequenceLength, context.previousLength);
      if (length > Math.max(context.sequenceLength, config.maxPositionEmbeddings)) {
        notes.add(
          "history",
          null,
          `the table of an earlier call of ${length} tokens is still in use`,
          `${UTILS} dynamic_frequency_update`,
        );
      }
      return done(dynamicFrequencies(a, { ...config, rope }, rotaryDim, length));
    }
    case "yarn": {
      if (rope.factor === null) return unsupported(`TypeError: factor is null (${UTILS} _compute_yarn_parameters)`);
      const rotaryDim = rotaryDimOf(config.headDim, rope.partialRotaryFactor);
      const ends = yarnEnds(rope.ropeTheta, rotaryDim, {
        originalLength: rope.originalMaxPositionEmbeddings,
        betaFast: rope.betaFast || 32,
        betaSlow: rope.betaSlow || 1,
        truncate: rope.truncate ?? true,
      });
      const softmax = rope.mscaleAllDim && modelType !== undefined && scalesSoftmax.has(modelType);
      if (modelType === "deepseek_v2" && rope.mscaleAllDim) {
        notes.add(
          "key-ignored",
          "mscaleAllDim",
          "the softmax scale lacks m(factor, mscale_all_dim)², with which the model was trained",
          "deepseek_v2/modeling_deepseek_v2.py DeepseekV2Attention",
        );
      }
      return done(
        yarn(a, rope.ropeTheta, rotaryDim, rope.factor, ends),
        yarnAttentionFactor(rope, rope.factor),
        softmax ? magnitude(rope.factor, rope.mscaleAllDim ?? 0) ** 2 : 1,
      );
    }
    case "longrope":
      return longrope({ ...config, rope }, context, notes);
    default:
      return unsupported(
        `KeyError ${JSON.stringify(rope.ropeType)} when the model is built (${UTILS} ROPE_INIT_FUNCTIONS)`,
      );
  }
}

export const transformers4: RopeDialect = { dialect: "transformers-4", engine: "transformers 4.57.6", compute };
