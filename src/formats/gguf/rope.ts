// The rotary settings of one kind of layer, from `{arch}.rope.*` keys and the rotary tensors. Meanings after llama.cpp's
// load_hparams and llama-context.cpp; where it ignores what a converter wrote, the file's evident intent is followed
// and a finding says that llama.cpp reads it otherwise.

import { naturalLogarithm } from "../../encodings/numerics/power.ts";
import { computeRopeFrequencies } from "../../encodings/rope/scaling/index.ts";
import type { RopeParameters } from "../../encodings/rope/scaling/parameters.ts";
import { rotaryDimOf, yarnMagnitude } from "../../encodings/rope/scaling/scaling.ts";
import { deepseekSoftmaxFactor } from "../../encodings/softmax-factor.ts";
import { FormatError } from "../bytes/format-error.ts";
import type { Finding } from "../finding.ts";
import { didYouMean } from "../nearest.ts";
import type { GgufArchitecture } from "./architectures.ts";
import { ropeFromDivisors, stillDivisor } from "./divisors.ts";
import type { GgufKeys } from "./keys.ts";

/** Collects findings, each once. */
export class Findings {
  readonly list: Finding[] = [];

  add(finding: Finding): void {
    if (!this.list.some((one) => one.code === finding.code && one.where === finding.where)) this.list.push(finding);
  }

  /** Something that the file does not say. */
  assume(code: string, where: string, assumed: string, why: string): void {
    this.add({ code: `assumed-${code}`, severity: "note", where, got: null, expected: assumed, why, fix: "" });
  }
}

/** Which layers: those that see everything, or those that slide. */
export type LayerKind = "full" | "sliding";

export interface RopeOfLayers {
  readonly rope: RopeParameters;
  readonly softmaxFactor: number;
  /** The scaling's original length; null when it has none. */
  readonly originalLength: number | null;
}

interface RopeContext {
  readonly keys: GgufKeys;
  readonly facts: GgufArchitecture;
  readonly findings: Findings;
  readonly contextLength: number;
  /** The width that a share is taken of, and the channels that turn. */
  readonly headDim: number;
  readonly rotaryDim: number;
}

/** Ollama's converters have names of their own. */
const localThetaOfOllama = ["rope.local.freq_base", "rope.freq_base_local"] as const;

const knownKeys: readonly string[] = [
  "dimension_count",
  "dimension_count_swa",
  "dimension_sections",
  "freq_base",
  "freq_base_swa",
  "scale_linear",
  "scaling.type",
  "scaling.factor",
  "scaling.original_context_length",
  "scaling.finetuned",
  "scaling.attn_factor",
  "scaling.yarn_log_multiplier",
  "scaling.yarn_ext_factor",
  "scaling.yarn_attn_factor",
  "scaling.yarn_beta_fast",
  "scaling.yarn_beta_slow",
  "scaling.beta_fast",
  "scaling.beta_slow",
  "local.freq_base",
  "freq_base_local",
];

const scalingTypes = ["none", "linear", "yarn", "longrope"] as const;

export function ropeOfLayers(context: RopeContext, kind: LayerKind): RopeOfLayers {
  const { keys, facts } = context;
  const ropeTheta = thetaOf(context, kind);
  const partial =
    context.rotaryDim === context.headDim
      ? {}
      : { partialRotaryFactor: shareOf(context.rotaryDim, context.headDim, keys) };
  const plain: RopeOfLayers = {
    rope: { ropeType: "default", ropeTheta, ...partial },
    softmaxFactor: 1,
    originalLength: null,
  };
  const unscaled = kind === "sliding" && facts.sliding?.scaling === "none";
  const result = unscaled ? plain : scaled(context, kind, plain, partial);
  if (unscaled && (keys.has("rope.scaling.type") || keys.has("rope.scaling.factor") || keys.has("rope.scale_linear"))) {
    context.findings.assume(
      "unscaled-sliding-layers",
      keys.full("rope.scaling"),
      "no scaling on sliding layers",
      `rope.scaling is for the full layers of ${keys.architecture}; GGUF has no key that says so`,
    );
  }
  warnAboutOtherKeys(context, result.rope);
  return result;
}

/** Keys of this family that nothing here reads, and factors that the chosen type has no place for. */
function warnAboutOtherKeys({ keys, findings }: RopeContext, rope: RopeParameters): void {
  const prefix = keys.full("rope.");
  for (const [key, { value }] of keys.header.metadata) {
    if (!key.startsWith(prefix) || knownKeys.includes(key.slice(prefix.length))) continue;
    findings.add({
      code: "unknown-rope-key",
      severity: "warning",
      where: key,
      got: typeof value === "object" ? `${value.count} values` : typeof value === "bigint" ? String(value) : value,
      expected: `a key that is known${didYouMean(key.slice(prefix.length), knownKeys)}`,
      why: "a setting of the rotation that is not read here may change it",
      fix: "",
    });
  }
  const unused = (key: string, neutral: number, why: string): void => {
    const got = keys.number(key);
    if (got === undefined || got === neutral) return;
    findings.add({
      code: "rope-key-unused",
      severity: "warning",
      where: keys.full(key),
      got,
      expected: String(neutral),
      why,
      fix: "",
    });
  };
  if (rope.ropeType !== "yarn" && rope.ropeType !== "longrope" && rope.ropeType !== "table") {
    unused(
      "rope.scaling.attn_factor",
      1,
      `${rope.ropeType} rotation has no attention factor; llama.cpp multiplies by it`,
    );
  }
  if (rope.ropeType === "yarn") {
    unused(
      "rope.scaling.yarn_ext_factor",
      1,
      "transformers' YaRN has no extrapolation factor, and llama.cpp ignores the key",
    );
  }
}

function thetaOf(context: RopeContext, kind: LayerKind): number {
  const { keys, facts, findings } = context;
  if (kind === "sliding") {
    const own = keys.positive("rope.freq_base_swa");
    if (own !== undefined) return own;
    for (const key of localThetaOfOllama) {
      const theirs = keys.positive(key);
      if (theirs === undefined) continue;
      if (theirs !== facts.sliding?.theta) ignoredByLlamaCpp(context, key, theirs, "the key rope.freq_base_swa");
      return theirs;
    }
  }
  if (kind === "sliding" && typeof facts.sliding?.theta === "number") {
    findings.assume(
      "local-rope-theta",
      keys.full("rope.freq_base_swa"),
      String(facts.sliding.theta),
      `llama.cpp hard-codes the theta of ${keys.architecture}'s sliding layers when the key is absent`,
    );
    return facts.sliding.theta;
  }
  const theta = keys.positive("rope.freq_base");
  if (theta === undefined) {
    findings.assume(
      "rope-theta",
      keys.full("rope.freq_base"),
      "10000",
      "llama.cpp takes 10000 when the key is absent; a model trained with another theta would be misread",
    );
  }
  return theta ?? 10_000;
}

function scaled(
  context: RopeContext,
  kind: LayerKind,
  plain: RopeOfLayers,
  partial: { readonly partialRotaryFactor?: number },
): RopeOfLayers {
  const { keys, facts, findings } = context;
  const { ropeTheta } = plain.rope;
  const { freqs, long, short } = keys.header.rotary;
  const { type, factor } = scalingOf(context);

  if ((long === null) !== (short === null)) {
    const [there, missing] = long === null ? ["short", "long"] : ["long", "short"];
    throw new FormatError(
      keys.header.file,
      `expected the tensors rope_factors_long.weight and rope_factors_short.weight together, got ${there} without ${missing}`,
    );
  }
  if (long !== null && short !== null) {
    const original = originalLength(context, "longrope");
    return {
      rope: {
        ropeType: "longrope",
        ropeTheta,
        ...partial,
        originalMaxPositionEmbeddings: original,
        shortFactor: short,
        longFactor: long,
        attentionFactor: longropeAttentionFactor(context, original),
      },
      softmaxFactor: 1,
      originalLength: original,
    };
  }
  if (type === "longrope") {
    throw new FormatError(
      keys.header.file,
      "expected the tensors rope_factors_long.weight and rope_factors_short.weight, as rope.scaling.type is longrope, " +
        "got none",
    );
  }

  // Divisors of 1 change nothing: converters of some models write them all the same.
  if (freqs?.some((divisor) => divisor !== 1) && !(kind === "sliding" && facts.freqsOnFullLayersOnly)) {
    return fromDivisors(context, freqs, plain, partial, type === "none" ? 1 : factor, type);
  }
  if (type === "yarn") return yarn(context, ropeTheta, partial, factor);
  if (type === "linear" && factor !== 1) {
    return { ...plain, rope: { ropeType: "linear", ropeTheta, ...partial, factor } };
  }
  if (factor !== 1) {
    findings.add({
      code: "scaling-factor-unused",
      severity: "warning",
      where: keys.full("rope.scaling.factor"),
      got: factor,
      expected: "no factor beside rope.scaling.type none",
      why: "the type switches scaling off, so the factor has no effect",
      fix: "set rope.scaling.type to linear or yarn, or remove the factor",
    });
  }
  return plain;
}

/** Type and factor; a factor without a type is linear, as llama.cpp reads it. */
function scalingOf({ keys, findings }: RopeContext): { type: (typeof scalingTypes)[number]; factor: number } {
  const text = keys.string("rope.scaling.type");
  const type = scalingTypes.find((one) => one === text);
  if (text !== undefined && type === undefined) {
    throw new FormatError(
      keys.header.file,
      `expected ${keys.full("rope.scaling.type")} to be one of ${scalingTypes.join(", ")}, got ${JSON.stringify(text)}` +
        didYouMean(text, scalingTypes),
    );
  }
  const written = keys.number("rope.scaling.factor") ?? keys.number("rope.scale_linear");
  if (written !== undefined && written < 0) throw keys.error("rope.scaling.factor", "a number of at least 0", written);
  // llama.cpp: 0 means that nothing was set.
  const factor = written === undefined || written === 0 ? 1 : written;
  if (type === undefined && factor !== 1) {
    findings.assume(
      "scaling-type",
      keys.full("rope.scaling.type"),
      "linear",
      "the file has a scaling factor without a type, which llama.cpp reads as linear",
    );
  }
  return { type: type ?? "linear", factor };
}

function originalLength({ keys, findings, contextLength }: RopeContext, type: string): number {
  const original = keys.integer("rope.scaling.original_context_length", 1);
  if (original === undefined) {
    findings.assume(
      "original-length",
      keys.full("rope.scaling.original_context_length"),
      String(contextLength),
      `${type} needs the length before scaling; llama.cpp takes context_length when the key is absent`,
    );
  }
  return original ?? contextLength;
}

/** null where the file's 32-bit value is the formula's, so that it is computed exactly. */
function longropeAttentionFactor({ keys, findings, contextLength }: RopeContext, original: number): number | null {
  const written = keys.number("rope.scaling.attn_factor");
  const scale = contextLength / original;
  const formula = scale <= 1 ? 1 : Math.sqrt(1 + naturalLogarithm(scale) / naturalLogarithm(original));
  if (written === undefined) {
    findings.add({
      code: "assumed-attention-factor",
      severity: scale > 1 ? "warning" : "note",
      where: keys.full("rope.scaling.attn_factor"),
      got: null,
      expected: `${formula}, from context_length and original_context_length`,
      why: "the file has none; llama.cpp then multiplies by 1, while the model's own code uses the formula",
      fix: scale > 1 ? "write rope.scaling.attn_factor" : "",
    });
    return null;
  }
  return Math.fround(formula) === Math.fround(written) ? null : written;
}

function yarn(
  context: RopeContext,
  ropeTheta: number,
  partial: { readonly partialRotaryFactor?: number },
  written: number,
): RopeOfLayers {
  const { keys, facts, findings, contextLength } = context;
  const original = originalLength(context, "yarn");
  let factor = written;
  if (!keys.has("rope.scaling.factor") && !keys.has("rope.scale_linear")) {
    factor = Math.max(1, contextLength / original);
    findings.add({
      code: "assumed-yarn-factor",
      severity: factor === 1 ? "note" : "warning",
      where: keys.full("rope.scaling.factor"),
      got: null,
      expected: `${factor}, context_length over original_context_length`,
      why: "the file says yarn without a factor; llama.cpp then scales by 1",
      fix: factor === 1 ? "" : "write rope.scaling.factor",
    });
  }
  const betaFast = keys.positive("rope.scaling.yarn_beta_fast") ?? keys.positive("rope.scaling.beta_fast");
  const betaSlow = keys.positive("rope.scaling.yarn_beta_slow") ?? keys.positive("rope.scaling.beta_slow");
  if (!facts.readsBetas) {
    for (const [key, value, standard] of [
      ["rope.scaling.yarn_beta_fast", betaFast, 32],
      ["rope.scaling.yarn_beta_slow", betaSlow, 1],
    ] as const) {
      if (value !== undefined && value !== standard) ignoredByLlamaCpp(context, key, value, `${standard}`);
    }
  }
  // Multi-head latent attention keeps 0.1 · mscale_all_dim here for legacy's sake; others mscale_all_dim itself.
  const logMultiplier = keys.number("rope.scaling.yarn_log_multiplier") ?? 0;
  const mscaleAllDim = facts.deepseekYarn ? Number((logMultiplier / 0.1).toPrecision(12)) : logMultiplier;
  if (mscaleAllDim < 0) throw keys.error("rope.scaling.yarn_log_multiplier", "a number of at least 0", logMultiplier);
  let mscale = 1;
  if (mscaleAllDim !== 0) {
    // DeepSeek's files hold one of the two numbers; its shipped models have both equal.
    if (facts.deepseekYarn) mscale = mscaleAllDim;
    findings.assume(
      "mscale",
      keys.full("rope.scaling.yarn_log_multiplier"),
      `mscale ${mscale}`,
      "GGUF keeps mscale_all_dim only; llama.cpp assumes the other one the same way",
    );
  }
  const explicit = keys.positive("rope.scaling.yarn_attn_factor");
  if (explicit !== undefined)
    ignoredByLlamaCpp(context, "rope.scaling.yarn_attn_factor", explicit, "the computed factor");
  const multiplier = keys.positive("rope.scaling.attn_factor") ?? 1;
  const computed =
    mscaleAllDim === 0 ? yarnMagnitude(factor) : yarnMagnitude(factor, mscale) / yarnMagnitude(factor, mscaleAllDim);
  const attentionFactor = explicit ?? (multiplier === 1 ? null : computed * multiplier);
  if (facts.yarnTruncate === false) {
    findings.assume(
      "yarn-truncate",
      keys.full("rope.scaling"),
      "truncate false",
      `${keys.architecture} was trained with an unrounded ramp, which GGUF cannot say; llama.cpp rounds it, ` +
        "which changes middle frequencies by up to a third",
    );
  }
  return {
    rope: {
      ropeType: "yarn",
      ropeTheta,
      ...partial,
      factor,
      originalMaxPositionEmbeddings: original,
      ...(betaFast === undefined ? {} : { betaFast }),
      ...(betaSlow === undefined ? {} : { betaSlow }),
      ...(facts.yarnTruncate === false ? { truncate: false } : {}),
      ...(mscaleAllDim === 0 ? {} : { mscale, mscaleAllDim }),
      ...(attentionFactor === null ? {} : { attentionFactor }),
    },
    softmaxFactor: facts.deepseekYarn ? deepseekSoftmaxFactor(factor, mscaleAllDim) : 1,
    originalLength: original,
  };
}

function ignoredByLlamaCpp({ keys, findings }: RopeContext, key: string, got: number, instead: string): void {
  findings.add({
    code: "ignored-by-llama.cpp",
    severity: "warning",
    where: keys.full(key),
    got,
    expected: `a value that llama.cpp reads for ${keys.architecture}`,
    why: `the converter wrote the model's own value, but llama.cpp uses ${instead}`,
    fix: "",
  });
}

function fromDivisors(
  context: RopeContext,
  freqs: readonly number[],
  plain: RopeOfLayers,
  partial: { readonly partialRotaryFactor?: number },
  factor: number,
  type: string,
): RopeOfLayers {
  const { keys, findings, rotaryDim, contextLength } = context;
  const { file } = keys.header;
  if (freqs.length !== rotaryDim / 2) {
    throw new FormatError(
      file,
      `expected rope_freqs.weight to hold ${rotaryDim / 2} divisors, one a rotary pair, got ${freqs.length}`,
    );
  }
  const bad = freqs.findIndex((one) => !(Number.isFinite(one) && one > 0));
  if (bad >= 0) {
    throw new FormatError(file, `expected rope_freqs.weight[${bad}] to be a finite number above 0, got ${freqs[bad]}`);
  }
  if (factor !== 1 && type !== "linear") {
    throw new FormatError(file, `expected rope_freqs.weight without ${type} scaling beside it, got both`);
  }
  const { ropeTheta } = plain.rope;
  const original = keys.integer("rope.scaling.original_context_length", 1);
  const lengths = [...(original === undefined ? [] : [original]), 8192, contextLength];
  // Linear scaling on top of divisors has no name of its own.
  const found = factor === 1 ? ropeFromDivisors(freqs, ropeTheta, rotaryDim, lengths) : null;
  const where = "tensor rope_freqs.weight";
  switch (found?.ropeType) {
    case "default":
      return plain;
    case "llama3":
      findings.add({
        code: "inferred-llama3-scaling",
        severity: "note",
        where,
        got: `${freqs.length} divisors`,
        expected: `llama3: factor ${found.factor}, original length ${found.originalMaxPositionEmbeddings}, low 1, high ${found.highFreqFactor}`,
        why: "GGUF keeps only the divisors; these settings reproduce every one of them",
        fix: "",
      });
      return {
        ...plain,
        rope: { ...found, ...partial },
        originalLength: found.originalMaxPositionEmbeddings,
      };
    case "proportional":
      if (partial.partialRotaryFactor === undefined) {
        findings.add({
          code: "inferred-proportional-rope",
          severity: "note",
          where,
          got: `${freqs.length} divisors`,
          expected: `proportional, partialRotaryFactor ${found.partialRotaryFactor}`,
          why: "GGUF says with huge divisors which channels must not turn",
          fix: "",
        });
        return { ...plain, rope: found };
      }
      break;
    case "table":
    case undefined:
      break;
  }
  findings.add({
    code: "rope-divisors-as-table",
    severity: "note",
    where,
    got: `${freqs.length} divisors from ${Math.min(...freqs)} to ${Math.max(...freqs)}`,
    expected: "divisors that a known scaling gives",
    why: "no known scaling reproduces them; the frequencies are used as they are, the original length stays unknown",
    fix: "",
  });
  const magnitude = keys.positive("rope.scaling.attn_factor") ?? 1;
  const base = computeRopeFrequencies(
    { headDim: rotaryDim, maxPositionEmbeddings: 1, rope: { ropeType: "default", ropeTheta } },
    1,
  ).inverseFrequencies;
  return {
    ...plain,
    rope: {
      ropeType: "table",
      ropeTheta,
      ...partial,
      inverseFrequencies: freqs.map((divisor, i) => (divisor >= stillDivisor ? 0 : base[i]! / (divisor * factor))),
      ...(magnitude === 1 ? {} : { attentionFactor: magnitude }),
    },
  };
}

/** rotaryDim / headDim, such that int(headDim · share) is rotaryDim again. */
export function shareOf(rotaryDim: number, headDim: number, keys: GgufKeys): number {
  let share = rotaryDim / headDim;
  if (Math.trunc(headDim * share) < rotaryDim) share *= 1 + Number.EPSILON;
  try {
    if (rotaryDimOf(headDim, share) === rotaryDim) return share;
  } catch {
    // The message below names the key.
  }
  throw keys.error("rope.dimension_count", `an even number of 2 to ${headDim}, the head's width`, rotaryDim);
}
