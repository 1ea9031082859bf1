// YaRN as the authors' code, transformers, vLLM and llama.cpp compute it (Peng et al. 2023, 2309.00071): fast pairs are
// left alone, slow ones divided by the factor, with a linear ramp on the pair's *index* between them. The paper's
// definition 2 ramps on the number of turns instead: ntk-by-parts.ts. cos and sin are multiplied by the attention
// factor, so a score gets its square (equations 21 and 22).

import { naturalLogarithm } from "../../numerics/power.ts";
import { unscaled } from "./default.ts";
import type { RopeConfig, RopeFrequencies, YarnRope } from "./parameters.ts";
import {
  commonKeys,
  expectSequenceLength,
  length,
  nullable,
  optional,
  type RopeScaling,
  yarnMagnitude,
} from "./scaling.ts";

/** The keys that shape the ramp, common to `yarn` and `dynamic-yarn`. */
export type YarnRamp = Pick<
  YarnRope,
  "ropeTheta" | "originalMaxPositionEmbeddings" | "betaFast" | "betaSlow" | "truncate"
>;

/**
 * The ends of YaRN's ramp, as (possibly fractional) pair indices: pairs up to `low` are left alone, pairs from `high`
 * on are divided by the factor. A pair turns β times in the original length L at index d·ln(L/(2πβ)) / (2 ln b).
 * `high` is clamped to d − 1, not d/2 − 1: so every engine does it.
 *
 * @param rotaryDim d
 * @example
 * ```ts
 * import { yarnRange } from "longhand/encodings";
 * yarnRange({ ropeTheta: 10000, originalMaxPositionEmbeddings: 4096 }, 128); // => { low: 20, high: 46 }
 * ```
 * Source: YaRN paper, section 3.2, and its repository's find_correction_range.
 */
export function yarnRange(ramp: YarnRamp, rotaryDim: number): { low: number; high: number } {
  // 0 and null mean the default, as in every engine.
  const fast = ramp.betaFast || 32;
  const slow = ramp.betaSlow || 1;
  const indexOf = (turns: number) => {
    const ratio = ramp.originalMaxPositionEmbeddings / (turns * 2 * Math.PI);
    // Betas beyond float64's range are just the ends of the ramp.
    if (ratio === 0) return -Infinity;
    if (ratio === Infinity) return Infinity;
    return (rotaryDim * naturalLogarithm(ratio)) / (2 * naturalLogarithm(ramp.ropeTheta));
  };
  let low = indexOf(fast);
  let high = indexOf(slow);
  if (ramp.truncate ?? true) {
    low = Math.floor(low);
    high = Math.ceil(high);
  }
  low = Math.max(low, 0);
  high = Math.min(high, rotaryDim - 1);
  if (low === high) high += 0.001;
  return { low, high };
}

/** The blended frequencies ω(1 − ramp) + (ω / factor)·ramp. */
export function yarnFrequencies(config: RopeConfig, ramp: YarnRamp, factor: number): Float64Array {
  const { rotaryDim, frequencies } = unscaled(config);
  const { low, high } = yarnRange(ramp, rotaryDim);
  return frequencies.map((w, i) => {
    const share = Math.min(Math.max((i - low) / (high - low), 0), 1);
    return (w / factor) * share + w * (1 - share);
  });
}

/** factor, or maxPositionEmbeddings / originalMaxPositionEmbeddings where it is null. */
export function yarnFactor(config: RopeConfig<YarnRope>): number {
  return config.rope.factor ?? config.maxPositionEmbeddings / config.rope.originalMaxPositionEmbeddings;
}

/** attentionFactor when given (0 counts); m(s, mscale) / m(s, mscaleAllDim) when both are given and not 0; m(s). */
export function yarnAttentionFactor(rope: Omit<YarnRope, "ropeType">, factor: number): number {
  if (rope.attentionFactor !== undefined && rope.attentionFactor !== null) return rope.attentionFactor;
  if (rope.mscale && rope.mscaleAllDim) {
    return yarnMagnitude(factor, rope.mscale) / yarnMagnitude(factor, rope.mscaleAllDim);
  }
  return yarnMagnitude(factor);
}

export const yarnScaling: RopeScaling<"yarn"> = {
  ropeType: "yarn",
  keys: {
    ...commonKeys,
    factor: nullable("positive", true),
    originalMaxPositionEmbeddings: length,
    betaFast: nullable("nonNegative"),
    betaSlow: nullable("nonNegative"),
    truncate: optional("boolean"),
    attentionFactor: nullable("nonNegative"),
    mscale: nullable("nonNegative"),
    mscaleAllDim: nullable("nonNegative"),
  },
  dependsOnLength: () => false,
  compute(config, sequenceLength): RopeFrequencies {
    expectSequenceLength("yarn", sequenceLength);
    const factor = yarnFactor(config);
    return {
      inverseFrequencies: yarnFrequencies(config, config.rope, factor),
      attentionFactor: yarnAttentionFactor(config.rope, factor),
    };
  },
};
