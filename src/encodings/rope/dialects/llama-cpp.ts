// llama.cpp as vendored in llama-cpp-python 0.3.36 (ggml 0.25.3), and the same code in the tree of 2026-08-22
// (3f545becc): what a Hugging Face configuration becomes on its way through convert_hf_to_gguf.py (conversion/),
// llama_model_base::load_hparams (src/llama-model.cpp), the context (src/llama-context.cpp) and ggml's rope
// (ggml/src/ggml.c, ggml-cpu/ops.cpp). The CPU kernel forms angles by repeated float32 multiplication,
// θ ← θ·b^(−2/d); the CUDA kernel takes one powf instead.

import { naturalLogarithm, power } from "../../numerics/power.ts";
import { gradientBase } from "../scaling/gradient.ts";
import { ntkBase } from "../scaling/ntk.ts";
import { ntkByPartsScaling } from "../scaling/ntk-by-parts.ts";
import type { RopeConfig, RopeParameters } from "../scaling/parameters.ts";
import { rotaryDimOf } from "../scaling/scaling.ts";
import { longRopeMagnitude, stretchedBase } from "./arithmetic.ts";
import {
  admittedLength,
  type DialectContext,
  type DialectResult,
  frequenciesOf,
  Notes,
  type RopeDialect,
  unsupported,
} from "./dialect.ts";

const f = Math.fround;
const CONVERT = "conversion/base.py TextModel.set_gguf_parameters";
const CONTEXT = "src/llama-context.cpp llama_context::llama_context";
const ROPE = "ggml/src/ggml.c ggml_rope_yarn_corr_dims";

const set = (names: string): ReadonlySet<string> => new Set(names.split(" "));

/** Converters that write Llama 3.1's divisors to rope_freqs.weight (generate_extra_tensors). */
const writesLlama3 = set(
  "llama mistral mixtral arcee llama4 llama4_text smollm3 apertus granite afmoe nanbeige nemotron-nas exaone exaone4 " +
    "exaone_moe ministral3 mistral3",
);
/** Converters that write rope_factors_short/long.weight, and those that write their magnitude too. */
const writesLongRope = set("phi3 phimoe phi4_multimodal minicpm minicpm3");
const writesLongRopeMagnitude = set("phi3 phimoe phi4_multimodal");
const gemma4 = set("gemma4 gemma4_text");
/** Architectures whose loader reads the YaRN betas that every converter writes. */
const readsBetas = set("ministral3 mistral3");
/** Architectures with latent attention: log multiplier read, softmax scale times the square. */
const latent = set("deepseek_v2 deepseek_v3 deepseek_v32 kimi_k2 kimi_k25 glm4_moe_lite mistral4");
/** Of those, the ones converted to architecture deepseek2, where mscale is taken to equal mscale_all_dim. */
const deepseek2 = set("deepseek_v2 deepseek_v3 kimi_k2 kimi_k25 glm4_moe_lite");

/** What the GGUF file holds. */
interface Header {
  readonly freqBase: number;
  readonly scalingType: "linear" | "yarn" | "longrope" | "none";
  readonly scalingFactor: number;
  readonly originalLength: number;
  readonly attnFactor: number;
  readonly logMultiplier: number;
  readonly betaFast: number;
  readonly betaSlow: number;
  readonly rotaryDim: number;
  /** rope_freqs.weight, or the short and long lists. */
  readonly divisors: readonly number[] | null;
}

function isIn(names: ReadonlySet<string>, modelType: string | undefined, unknown: boolean): boolean {
  return modelType === undefined ? unknown : names.has(modelType);
}

/** Conversion: what survives of a configuration. */
function convert(config: RopeConfig, context: DialectContext, notes: Notes): Header | string {
  const { modelType } = context;
  let { rope } = config;
  if ((rope.partialRotaryFactor ?? 1) < 1 && rope.ropeType !== "proportional" && isIn(writesLlama3, modelType, false)) {
    const source = "conversion/llama.py LlamaModel.set_gguf_parameters";
    notes.add("key-ignored", "partialRotaryFactor", `the converter of ${modelType} writes the whole head`, source);
    rope = { ...rope, partialRotaryFactor: 1 };
  }
  const turned = rope.ropeType === "proportional" ? rotaryDimOf(config.headDim) : 0;
  const rotaryDim = turned || rotaryDimOf(config.headDim, rope.partialRotaryFactor);
  const header: Header = {
    freqBase: rope.ropeTheta,
    scalingType: "linear", // the loader's default; with factor 1 it does nothing
    scalingFactor: 1,
    originalLength: config.maxPositionEmbeddings,
    attnFactor: 1,
    logMultiplier: 0,
    betaFast: 32,
    betaSlow: 1,
    rotaryDim,
    divisors: null,
  };
  switch (rope.ropeType) {
    case "default":
      return header;
    case "linear":
      return { ...header, scalingFactor: rope.factor };
    case "yarn": {
      if (rope.factor === null) {
        notes.add("type-ignored", "factor", "with factor null nothing is written: the model runs unscaled", CONVERT);
        return header;
      }
      const betas = modelType !== undefined && readsBetas.has(modelType);
      const loader = "src/models/*.cpp load_arch_hparams (read for grok and mistral3 alone)";
      if (!betas) {
        const message = "written to the file, but not read back: only --yarn-beta-fast and --yarn-beta-slow count";
        if ((rope.betaFast ?? 32) !== 32) notes.add("key-ignored", "betaFast", message, loader);
        if ((rope.betaSlow ?? 1) !== 1) notes.add("key-ignored", "betaSlow", message, loader);
      }
      notes.ignored(
        rope,
        ["attentionFactor"],
        "written as yarn_attn_factor and not read back; computed instead",
        CONTEXT,
      );
      if (rope.truncate === false) {
        notes.add("key-ignored", "truncate", "the ramp's ends are always rounded", ROPE);
      }
      const reads = modelType !== undefined && (latent.has(modelType) || betas);
      const logMultiplier = reads ? (rope.mscaleAllDim ?? 0) : 0;
      if (!reads) {
        const message = `the architecture of ${modelType ?? "most models"} has no log multiplier: m(factor) is used`;
        notes.ignored(rope, ["mscale", "mscaleAllDim"], message, CONTEXT);
      } else if (logMultiplier !== 0) {
        const assumed = modelType !== undefined && deepseek2.has(modelType) ? logMultiplier : 1;
        if ((rope.mscale ?? 1) !== assumed) {
          notes.add("key-ignored", "mscale", `taken to be ${assumed}`, CONTEXT);
        }
      }
      return {
        ...header,
        scalingType: "yarn",
        scalingFactor: rope.factor,
        originalLength: rope.originalMaxPositionEmbeddings,
        betaFast: betas ? (rope.betaFast ?? 32) : 32,
        betaSlow: betas ? (rope.betaSlow ?? 1) : 1,
        logMultiplier,
      };
    }
    case "llama3": {
      if (!isIn(writesLlama3, modelType, true)) {
        notes.add(
          "type-ignored",
          null,
          `the converter of ${modelType} writes no rope_freqs.weight: the model runs unscaled`,
          "conversion/*.py generate_extra_tensors",
        );
        return header;
      }
      notes.add(
        "reached-by",
        null,
        "as divisors in the tensor rope_freqs.weight",
        "conversion/llama.py generate_extra_tensors",
      );
      const { factor, lowFreqFactor: low, highFreqFactor: high, originalMaxPositionEmbeddings: original } = rope;
      const divisors = Array.from({ length: rotaryDim / 2 }, (_, i) => {
        const frequency = f(1 / f(power(f(rope.ropeTheta), f((2 * i) / rotaryDim))));
        const wavelength = f(f(1 / frequency) * f(2 * Math.PI));
        if (wavelength < original / high) return 1;
        if (wavelength > original / low) return f(factor);
        const kept = f(f(f(f(1 / wavelength) * original) - low) / (high - low));
        return f(1 / f(f(f(1 - kept) / f(factor)) + kept));
      });
      return { ...header, divisors };
    }
    case "longrope": {
      if (!isIn(writesLongRope, modelType, true)) {
        notes.add(
          "type-ignored",
          null,
          `the converter of ${modelType} writes the type longrope but not its lists: the model runs unscaled`,
          "conversion/phi.py and conversion/minicpm.py write rope_factors_*.weight",
        );
        return { ...header, scalingType: "longrope" };
      }
      const original = rope.originalMaxPositionEmbeddings;
      const long = admittedLength(config, context) > original;
      notes.add(
        "fixed-at-start",
        null,
        `the ${long ? "long" : "short"} list is used at every length, because the context of a sequence (-c) is ` +
          `${long ? "above" : "at most"} ${original} tokens`,
        "src/llama-model.cpp llama_model::get_rope_factors",
      );
      const magnitudes = isIn(writesLongRopeMagnitude, modelType, true);
      const converter = "conversion/phi.py Phi3MiniModel.generate_extra_tensors";
      const message = magnitudes
        ? "the magnitude is computed from the ratio of the two lengths, one for both lists"
        : `the converter of ${modelType} writes no magnitude: 1 is used`;
      notes.ignored(rope, ["attentionFactor", "factor", "shortMscale", "longMscale"], message, converter);
      return {
        ...header,
        scalingType: "longrope",
        originalLength: original,
        attnFactor: magnitudes ? f(longRopeMagnitude(config.maxPositionEmbeddings / original, original)) : 1,
        divisors: (long ? rope.longFactor : rope.shortFactor).map(f),
      };
    }
    case "proportional": {
      if (!isIn(gemma4, modelType, true))
        return `the converter of ${modelType} does not know proportional (conversion/gemma.py)`;
      const source = "conversion/gemma.py Gemma4Model.generate_extra_tensors";
      notes.add("reached-by", null, "as divisors 1 and 1e30 in the tensor rope_freqs.weight", source);
      if ((rope.factor ?? 1) !== 1) notes.add("key-ignored", "factor", "the turning pairs get the divisor 1", source);
      const turning = Math.trunc((config.headDim * (rope.partialRotaryFactor ?? 1)) / 2);
      return {
        ...header,
        divisors: Array.from({ length: config.headDim / 2 }, (_, i) => (i < turning ? 1 : f(1e30))),
      };
    }
    case "dynamic":
      if (rope.alpha !== undefined && (modelType === undefined || modelType.startsWith("hunyuan"))) {
        const source = "conversion/hunyuan.py set_gguf_parameters";
        notes.add("reached-by", "alpha", "as a larger rope.freq_base; the converter takes alpha 1000 alone", source);
        return { ...header, freqBase: stretchedBase(rope.ropeTheta, rope.alpha, rotaryDim), scalingType: "none" };
      }
      notes.add(
        "type-ignored",
        null,
        "dynamic is skipped in the conversion: the model runs unscaled at every length",
        CONVERT,
      );
      return header;
    case "ntk": {
      const base = ntkBase(rope.ropeTheta, rope.factor, rotaryDim);
      notes.add("reached-by", null, `--rope-freq-base ${base}`, "common/arg.cpp");
      return { ...header, freqBase: base };
    }
    case "gradient": {
      const original = rope.originalMaxPositionEmbeddings;
      const base = gradientBase(rope.ropeTheta, original, rope.factor * original);
      notes.add("reached-by", null, `--rope-freq-base ${base}`, "common/arg.cpp");
      return { ...header, freqBase: base };
    }
    case "table":
      return {
        ...header,
        ...tableAsDivisors(rope, rotaryDim, rope.inverseFrequencies, rope.attentionFactor ?? 1, notes),
      };
    case "ntk-by-parts": {
      const wanted = ntkByPartsScaling.compute({ ...config, rope }, context.sequenceLength).inverseFrequencies;
      return { ...header, ...tableAsDivisors(rope, rotaryDim, wanted, 1, notes) };
    }
    default:
      return `nothing in llama.cpp changes frequencies with the length of a sequence; ${rope.ropeType} cannot be reached`;
  }
}

/** Any table is rope_freqs.weight: the divisor of pair i is b^(−2i/d) / ω_i, and 1e30 for a pair that stands still. */
function tableAsDivisors(
  rope: RopeParameters,
  rotaryDim: number,
  wanted: ArrayLike<number>,
  attnFactor: number,
  notes: Notes,
): Pick<Header, "divisors" | "attnFactor"> {
  notes.add(
    "reached-by",
    null,
    "as divisors in the tensor rope_freqs.weight, and the KV rope.scaling.attn_factor",
    "src/llama-model.cpp llama_model::get_rope_factors",
  );
  const divisors = Array.from(wanted, (w, i) =>
    w === 0 ? f(1e30) : f(power(rope.ropeTheta, (-2 * i) / rotaryDim) / w),
  );
  return { divisors, attnFactor: f(attnFactor) };
}

/** ggml_rope_yarn_corr_dims, in its float32. */
function corrDims(
  rotaryDim: number,
  originalLength: number,
  base: number,
  fast: number,
  slow: number,
): [number, number] {
  const at = (turns: number) => {
    if (turns === 0) return Infinity; // as C's logf of a division by zero
    const inside = f(originalLength / f(f(turns * 2) * f(Math.PI)));
    return f(f(rotaryDim * f(naturalLogarithm(inside))) / f(2 * f(naturalLogarithm(f(base)))));
  };
  return [Math.max(0, Math.floor(at(fast))), Math.min(rotaryDim - 1, Math.ceil(at(slow)))];
}

function compute(config: RopeConfig, context: DialectContext): DialectResult {
  const notes = new Notes();
  const flags = context.llamaCpp ?? {};
  const header = convert(config, context, notes);
  if (typeof header === "string") return unsupported(header, notes.list);
  const exact = context.float32 !== true;
  const r = exact ? (x: number) => x : f;

  // The context: flags over the file.
  const type = flags.ropeScaling ?? header.scalingType;
  const base = f(flags.ropeFreqBase ?? header.freqBase);
  let scale = r(1 / (flags.ropeScale ?? header.scalingFactor));
  if (type === "none") scale = 1;
  const originalLength = flags.yarnOrigCtx || header.originalLength;
  const extFactor = flags.yarnExtFactor ?? (type === "yarn" ? 1 : 0);
  const betaFast = flags.yarnBetaFast ?? header.betaFast;
  const betaSlow = flags.yarnBetaSlow ?? header.betaSlow;
  const ln = (x: number) => r(naturalLogarithm(x));
  const m = (s: number, k: number) => (s <= 1 ? 1 : r(r(r(r(0.1) * k) * ln(s)) + 1));
  const factor = r(1 / scale);
  let attnFactor = flags.yarnAttnFactor ?? 1;
  if (extFactor !== 0) {
    if (flags.yarnAttnFactor !== undefined) {
      notes.add("key-ignored", "attentionFactor", "--yarn-attn-factor is overwritten whenever YaRN is on", CONTEXT);
    }
    const all = header.logMultiplier;
    const mscale = all !== 0 && context.modelType !== undefined && deepseek2.has(context.modelType) ? all : 1;
    attnFactor = all !== 0 ? r(m(factor, mscale) / m(factor, all)) : m(factor, 1);
    // ggml multiplies by 1 + 0.1 ln(1/scale) itself, which is taken back here.
    attnFactor = r(attnFactor / r(1 + r(r(0.1) * ln(factor))));
  }
  attnFactor = r(attnFactor * header.attnFactor);
  const ownMagnitude = extFactor === 0 ? 1 : r(1 + r(r(0.1) * ln(r(1 / scale))));
  const attentionFactor = r(attnFactor * ownMagnitude);

  const isLatent = context.modelType !== undefined && latent.has(context.modelType);
  // deepseek2.cpp takes ggml's magnitude into account whether or not YaRN is on.
  const original = attnFactor * (1 + 0.1 * ln(r(1 / scale)));
  const softmaxFactor = isLatent ? (original * (1 + 0.1 * header.logMultiplier * ln(r(1 / scale)))) ** 2 : 1;
  if (isLatent && header.logMultiplier === 0 && softmaxFactor !== 1) {
    notes.add(
      "formula-differs",
      "mscaleAllDim",
      "without mscale_all_dim the softmax scale is multiplied by (1 + 0.1 ln s)² all the same",
      "src/models/deepseek2.cpp",
    );
  }

  const [low, high] = corrDims(header.rotaryDim, originalLength, base, betaFast, betaSlow);
  const width = Math.max(f(0.001), high - low);
  if (extFactor !== 0 && high < low) {
    notes.add(
      "formula-differs",
      null,
      `the ramp from ${low} to ${high} has no width: a step at pair ${low}, where others ramp backwards`,
      "ggml/src/ggml-cpu/ops.cpp rope_yarn_ramp",
    );
  }
  const mixes = Array.from({ length: header.rotaryDim / 2 }, (_, i) => {
    const ramp = r(1 - Math.min(1, Math.max(0, r(r(i - low) / width))));
    return r(ramp * r(extFactor));
  });
  // How far a pair turns against θ·b^(−2i/d).
  const bend = (theta: number, pair: number): number => {
    const extrapolated = header.divisors === null ? theta : r(theta / header.divisors[pair]!);
    const interpolated = r(scale * extrapolated);
    if (extFactor === 0) return interpolated;
    const mix = mixes[pair]!;
    return r(r(interpolated * r(1 - mix)) + r(extrapolated * mix));
  };
  const inverseFrequencies = exact
    ? Float64Array.from(mixes, (_, i) => bend(1 / power(base, (2 * i) / header.rotaryDim), i))
    : new Float64Array(mixes.length);
  const step = f(power(base, f(-2 / header.rotaryDim)));
  if (!exact) {
    for (let i = 0, theta = 1; i < mixes.length; i++, theta = f(theta * step)) inverseFrequencies[i] = bend(theta, i);
  }
  return frequenciesOf({
    inverseFrequencies,
    attentionFactor,
    softmaxFactor,
    notes: notes.list,
    context,
    anglesAt(position) {
      let theta = f(position);
      return mixes.map((_, pair) => {
        const angle = bend(theta, pair);
        theta = f(theta * step);
        return angle;
      });
    },
  });
}

export const llamaCpp: RopeDialect = {
  dialect: "llama.cpp",
  engine: "llama.cpp in llama-cpp-python 0.3.36 (ggml 0.25.3), CPU",
  compute,
};
