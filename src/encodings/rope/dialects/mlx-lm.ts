// mlx-lm 0.32.2: initialize_rope and its classes in mlx_lm/models/rope_utils.py, over mx.fast.rope of mlx 0.32.4. The
// classes keep periods (1/ω) in float32; default and linear leave ω to mx.fast.rope, which takes exp(−i · ln b / (d/2)).
// Keys come from the model's own argument class: several read version 4's rope_theta and rope_scaling alone.

import { naturalLogarithm, power } from "../../numerics/power.ts";
import type { LongRope, RopeConfig, YarnRope } from "../scaling/parameters.ts";
import { rotaryDimOf } from "../scaling/scaling.ts";
import {
  type Arithmetic,
  arithmeticOf,
  longRopeMagnitude,
  magnitude,
  periods,
  stretchedBase,
  yarnEnds,
  yarnRamp,
} from "./arithmetic.ts";
import {
  type DialectContext,
  type DialectResult,
  frequenciesOf,
  Notes,
  type RopeDialect,
  unsupported,
} from "./dialect.ts";

const UTILS = "mlx_lm/models/rope_utils.py";

const set = (names: string): ReadonlySet<string> => new Set(names.split(" "));

/** Models whose argument class reads version 5's rope_parameters. */
const readsRopeParameters = set(
  "exaone_moe gemma4_text glm_moe_dsa granitemoehybrid laguna lfm2 lfm2_moe mellum minimax_m3_vl ministral3 mistral4 " +
    "muse_glimmer muse_spark olmo_hybrid qwen3 qwen3_5 spark2_5",
);
/** Models that rotate a part of a head; the others ignore partial_rotary_factor. */
const readsPartial = set(
  "bailing_hybrid bailing_moe bailing_moe_linear gemma4_text glm4 glm4_moe glm4_moe_lite gpt_neox laguna mimo_v2_flash " +
    "minimax_m3_vl nemotron phi phi3 qwen3_5 qwen3_next solar_open spark2_5 stablelm step3p5",
);
/** Models that multiply the softmax scale by m(factor, mscale_all_dim)². Kimi's are DeepSeek V3's model there. */
const scalesSoftmax = set(
  "bailing_hybrid bailing_moe_v3 deepseek_v2 deepseek_v3 deepseek_v32 glm4_moe_lite kimi_k2 kimi_k25 longcat_flash mistral4",
);
/** Models with DynamicNTKAlphaRoPE of their own (models/hunyuan_v1_dense.py, models/hunyuan.py). */
const readsAlpha = set("hunyuan hunyuan_v1_dense hunyuan_v1_moe");

/** 1/ω of float32 periods. */
const inverted = (a: Arithmetic, period: Float64Array): Float64Array =>
  period.map((x) => (x === Infinity ? 0 : a.round(1 / x)));

/** What mx.fast.rope makes of a base: exp(−i · ln b / (d/2)). */
function fromBase(a: Arithmetic, base: number, rotaryDim: number): Float64Array {
  const half = rotaryDim / 2;
  const step = a.round(a.round(naturalLogarithm(a.round(base))) / half);
  return Float64Array.from({ length: half }, (_, i) => a.round(power(Math.E, -a.round(i * step))));
}

function yarn(a: Arithmetic, { rope }: RopeConfig<YarnRope>, rotaryDim: number): Float64Array {
  const ends = yarnEnds(rope.ropeTheta, rotaryDim, {
    originalLength: rope.originalMaxPositionEmbeddings,
    betaFast: rope.betaFast ?? 32,
    betaSlow: rope.betaSlow ?? 1,
    truncate: true,
  });
  const slow = periods(a, rope.ropeTheta, rotaryDim).map((extra, i) => {
    const inter = a.round(a.round(rope.factor!) * extra);
    const kept = a.round(1 - yarnRamp(a, ends, i));
    return a.round(a.round(inter * extra) / a.round(a.round(inter * kept) + a.round(extra * a.round(1 - kept))));
  });
  return inverted(a, slow);
}

function longrope(
  a: Arithmetic,
  config: RopeConfig<LongRope>,
  context: DialectContext,
  rotaryDim: number,
  notes: Notes,
): { inverseFrequencies: Float64Array; attentionFactor: number } {
  const { rope } = config;
  const source = `${UTILS} SuScaledRoPE`;
  const original = rope.originalMaxPositionEmbeddings;
  if (context.sequenceLength <= original) {
    notes.add("key-ignored", "shortFactor", "the long list is used at every length", source);
  }
  notes.ignored(rope, ["attentionFactor", "factor"], "computed from the ratio of the two lengths instead", source);
  let attentionFactor = longRopeMagnitude(config.maxPositionEmbeddings / original, original);
  if (context.modelType === "phimoe") {
    attentionFactor = rope.longMscale || attentionFactor;
    notes.ignored(rope, ["shortMscale"], "the long magnitude is used at every length", source);
  } else {
    notes.ignored(rope, ["shortMscale", "longMscale"], "only phimoe passes it on", source);
  }
  const long = periods(a, rope.ropeTheta, rotaryDim).map((x, i) => a.round(a.round(rope.longFactor[i]!) * x));
  return { inverseFrequencies: inverted(a, long), attentionFactor };
}

function compute(config: RopeConfig, context: DialectContext): DialectResult {
  const notes = new Notes();
  const a = arithmeticOf(context.float32);
  const { modelType } = context;
  let { rope } = config;
  if (modelType !== undefined && !readsRopeParameters.has(modelType)) {
    notes.add(
      "reached-by",
      "ropeTheta",
      `models/${modelType}.py reads version 4's rope_theta and rope_scaling: written as rope_parameters, the settings are ` +
        "lost without an error where the class has a default",
      `mlx_lm/models/${modelType}.py ModelArgs`,
    );
  }
  const partial = rope.partialRotaryFactor ?? 1;
  if (partial < 1 && modelType !== undefined && !readsPartial.has(modelType) && rope.ropeType !== "proportional") {
    notes.add("key-ignored", "partialRotaryFactor", `models/${modelType}.py rotates whole heads`, "ModelArgs");
    rope = { ...rope, partialRotaryFactor: 1 };
  }
  const rotaryDim =
    rope.ropeType === "proportional"
      ? rotaryDimOf(config.headDim)
      : rotaryDimOf(config.headDim, rope.partialRotaryFactor);
  const done = (inverseFrequencies: Float64Array, attentionFactor = 1, softmaxFactor = 1) =>
    frequenciesOf({ inverseFrequencies, attentionFactor, softmaxFactor, notes: notes.list, context });
  switch (rope.ropeType) {
    case "default":
      return done(fromBase(a, rope.ropeTheta, rotaryDim));
    case "linear": {
      // Positions are multiplied by the scale.
      const scale = a.round(1 / rope.factor);
      const unscaled = fromBase(a, rope.ropeTheta, rotaryDim);
      return frequenciesOf({
        inverseFrequencies: unscaled.map((w) => a.round(scale * w)),
        attentionFactor: 1,
        notes: notes.list,
        context,
        angle: (p, i) => a.round(a.round(p * scale) * unscaled[i]!),
      });
    }
    case "dynamic": {
      if (rope.alpha !== undefined && modelType !== undefined && readsAlpha.has(modelType)) {
        const base = a.round(stretchedBase(rope.ropeTheta, rope.alpha, rotaryDim));
        return done(inverted(a, periods(a, base, rotaryDim)));
      }
      if (rope.alpha !== undefined) {
        notes.add("key-ignored", "alpha", "not read: factor counts", `${UTILS} DynamicNTKScalingRoPE`);
      }
      const trained = config.maxPositionEmbeddings;
      const length = Math.max(context.sequenceLength, trained);
      const stretch = (rope.factor * length) / trained - (rope.factor - 1);
      const base = stretch === 1 ? rope.ropeTheta : rope.ropeTheta * power(stretch, rotaryDim / (rotaryDim - 2));
      if (length > trained) {
        notes.add(
          "history",
          null,
          "the base is that of the tokens so far: keys decoded into the cache keep the base of their own step",
          `${UTILS} DynamicNTKScalingRoPE.__call__`,
        );
      }
      return done(fromBase(a, base, rotaryDim));
    }
    case "llama3": {
      const { factor, lowFreqFactor: low, highFreqFactor: high, originalMaxPositionEmbeddings: original } = rope;
      const r = a.round;
      const slow = periods(a, rope.ropeTheta, rotaryDim).map((x) => {
        const wavelength = r(r(2 * Math.PI) * x);
        if (wavelength > r(original / low)) return r(x * factor);
        if (!(wavelength > r(original / high)) || wavelength === r(original / low)) return x;
        const kept = r(r(r(original / wavelength) - low) / r(high - low));
        return r(x / r(r(r(1 - kept) / r(factor)) + kept));
      });
      return done(inverted(a, slow));
    }
    case "yarn": {
      const source = `${UTILS} YarnRoPE`;
      if (rope.factor === null) return unsupported(`TypeError: factor is null (${source})`, notes.list);
      for (const key of ["betaFast", "betaSlow", "mscale", "mscaleAllDim"] as const) {
        if (rope[key] === null) return unsupported(`TypeError: ${key} is null (${source})`, notes.list);
      }
      for (const key of ["betaFast", "betaSlow"] as const) {
        if (rope[key] === 0) return unsupported(`ZeroDivisionError: ${key} is 0 (${source})`, notes.list);
      }
      notes.ignored(rope, ["attentionFactor"], "computed from mscale and mscale_all_dim (defaults 1 and 0)", source);
      if (rope.truncate === false) notes.add("key-ignored", "truncate", "the ramp's ends are always rounded", source);
      if (rope.mscaleAllDim && rope.mscale === undefined) {
        notes.add("formula-differs", "mscaleAllDim", "mscale is 1 when absent; others use m(factor) then", source);
      }
      const softmax = rope.mscaleAllDim && modelType !== undefined && scalesSoftmax.has(modelType);
      return done(
        yarn(a, { ...config, rope }, rotaryDim),
        magnitude(rope.factor, rope.mscale ?? 1) / magnitude(rope.factor, rope.mscaleAllDim ?? 0),
        softmax ? magnitude(rope.factor, rope.mscaleAllDim ?? 0) ** 2 : 1,
      );
    }
    case "longrope": {
      const made = longrope(a, { ...config, rope }, context, rotaryDim, notes);
      return done(made.inverseFrequencies, made.attentionFactor);
    }
    case "proportional": {
      const rotated = Math.trunc(config.headDim * partial);
      const turning = Math.ceil(rotated / 2);
      if (rotated % 2 !== 0) {
        notes.add(
          "formula-differs",
          "partialRotaryFactor",
          `${rotated} channels are an odd number: ${turning} pairs turn, ${turning - 1} in transformers`,
          `${UTILS} ProportionalRoPE`,
        );
      }
      const slow = new Float64Array(config.headDim / 2).fill(Infinity);
      slow.set(periods(a, rope.ropeTheta, config.headDim, turning).map((x) => a.round(a.round(rope.factor ?? 1) * x)));
      return done(inverted(a, slow));
    }
    default:
      return unsupported(`ValueError: Unsupported RoPE type ${rope.ropeType} (${UTILS} initialize_rope)`, notes.list);
  }
}

export const mlxLm: RopeDialect = { dialect: "mlx-lm", engine: "mlx-lm 0.32.2", compute };
