// exllamav3 1.6.5: exllamav3/util/rope.py and exllamav3/model/config.py. The class is given the rotary
// settings of either version; cos and sin are float32 and made as positions come. YaRN takes its factor from the two
// lengths, not from `factor`.

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

const ROPE = "exllamav3/util/rope.py";

/** Architectures that take the ratio m(mscale)/m(mscale_all_dim) and fold m(mscale_all_dim)² into the softmax scale. */
const deepseek: ReadonlySet<string> = new Set(["deepseek_v3"]);
/** Configurations with llama_4_scaling_beta, which takes the attention factor's place. */
const scalesByPosition: ReadonlySet<string> = new Set(["ministral3", "mistral4"]);

interface Made {
  readonly inverseFrequencies: Float64Array;
  readonly attentionFactor: number;
  readonly softmaxFactor?: number;
}

function yarnOf(a: Arithmetic, config: RopeConfig<YarnRope>, context: DialectContext, notes: Notes): Made | string {
  const { rope } = config;
  const { modelType } = context;
  const source = `${ROPE} RoPE._rope_params_yarn`;
  for (const key of ["betaFast", "betaSlow"] as const) {
    if (rope[key] === null) return `TypeError: ${key} is null (${ROPE} yarn_inv_freq)`;
    if (rope[key] === 0) return `ZeroDivisionError: ${key} is 0 (${ROPE} yarn_inv_freq)`;
  }
  const rotaryDim = rotaryDimOf(config.headDim, rope.partialRotaryFactor);
  const factor = config.maxPositionEmbeddings / rope.originalMaxPositionEmbeddings;
  if (rope.factor !== null && rope.factor !== factor) {
    notes.add(
      "key-ignored",
      "factor",
      `the ratio of the lengths, ${config.maxPositionEmbeddings} / ${rope.originalMaxPositionEmbeddings} = ${factor}, is ` +
        `used instead of ${rope.factor}`,
      source,
    );
  }
  const isDeepseek = modelType !== undefined && deepseek.has(modelType);
  let attentionFactor = rope.attentionFactor ?? magnitude(factor);
  if ((rope.attentionFactor ?? null) === null) {
    if (isDeepseek && rope.mscale && rope.mscaleAllDim) {
      attentionFactor = magnitude(factor, rope.mscale) / magnitude(factor, rope.mscaleAllDim);
    } else {
      const byPosition = modelType !== undefined && scalesByPosition.has(modelType);
      const instead = byPosition ? "llama_4_scaling_beta replaces it: 1" : "m(factor) is used, except for DeepSeek";
      notes.ignored(rope, ["mscale", "mscaleAllDim"], instead, source);
      if (byPosition) attentionFactor = 1;
    }
  }
  let softmaxFactor = 1;
  if (isDeepseek && rope.mscaleAllDim) {
    if (rope.factor === null) return "TypeError: factor is null (exllamav3/architecture/deepseek_v3.py)";
    softmaxFactor = magnitude(rope.factor, rope.mscaleAllDim) ** 2;
  }
  const ends = yarnEnds(rope.ropeTheta, rotaryDim, {
    originalLength: rope.originalMaxPositionEmbeddings,
    betaFast: rope.betaFast ?? 32,
    betaSlow: rope.betaSlow ?? 1,
    truncate: rope.truncate ?? true,
  });
  return { inverseFrequencies: yarn(a, rope.ropeTheta, rotaryDim, factor, ends), attentionFactor, softmaxFactor };
}

function compute(config: RopeConfig, context: DialectContext): DialectResult {
  const { rope } = config;
  const notes = new Notes();
  const a = arithmeticOf(context.float32);
  const unscaled = () => geometric(a, rope.ropeTheta, rotaryDimOf(config.headDim, rope.partialRotaryFactor));
  const done = (made: Made) => frequenciesOf({ ...made, notes: notes.list, context });
  switch (rope.ropeType) {
    case "default":
      return done({ inverseFrequencies: unscaled(), attentionFactor: 1 });
    case "linear": {
      const factor = a.round(rope.factor);
      return done({ inverseFrequencies: unscaled().map((w) => a.round(w / factor)), attentionFactor: 1 });
    }
    case "llama3": {
      const { factor, originalMaxPositionEmbeddings: originalLength, lowFreqFactor: low, highFreqFactor: high } = rope;
      return done({
        inverseFrequencies: llama3(a, unscaled(), { factor, originalLength, low, high }),
        attentionFactor: 1,
      });
    }
    case "proportional": {
      const turning = Math.floor(((rope.partialRotaryFactor ?? 1) * config.headDim) / 2);
      const factor = a.round(rope.factor ?? 1);
      const inverseFrequencies = new Float64Array(config.headDim / 2);
      const turned = geometric(a, rope.ropeTheta, config.headDim, turning);
      inverseFrequencies.set(turned.map((w) => a.round(w / factor)));
      return done({ inverseFrequencies, attentionFactor: 1 });
    }
    case "yarn": {
      const made = yarnOf(a, { ...config, rope }, context, notes);
      return typeof made === "string" ? unsupported(made, notes.list) : done(made);
    }
    case "longrope": {
      const source = `${ROPE} RoPE._rope_params_longrope`;
      const original = rope.originalMaxPositionEmbeddings;
      // Only Phi-3 lets the caller name another length (override_dynamic_seq_len).
      const overridable = context.modelType === undefined || context.modelType === "phi3";
      const admitted = overridable
        ? (context.maxModelLen ?? config.maxPositionEmbeddings)
        : config.maxPositionEmbeddings;
      const long = admitted > original;
      notes.add(
        "fixed-at-start",
        null,
        `the ${long ? "long" : "short"} list is used at every length, because the model was loaded for ${admitted} tokens`,
        source,
      );
      const message = "computed from the ratio of the two lengths, one for both lists";
      notes.ignored(rope, ["attentionFactor", "factor", "shortMscale", "longMscale"], message, source);
      const rotaryDim = rotaryDimOf(config.headDim, rope.partialRotaryFactor);
      return done({
        inverseFrequencies: divided(a, rope.ropeTheta, rotaryDim, long ? rope.longFactor : rope.shortFactor),
        attentionFactor: longRopeMagnitude(config.maxPositionEmbeddings / original, original),
      });
    }
    default:
      return unsupported(`ValueError: Unknown rope_type: ${rope.ropeType} (${ROPE} RoPE.__init__)`, notes.list);
  }
}

export const exllamav3: RopeDialect = { dialect: "exllamav3", engine: "exllamav3 1.6.5", compute };
