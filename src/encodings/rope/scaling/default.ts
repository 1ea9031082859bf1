// No scaling: ω_i = b^(−2i/d), the geometric series of RoFormer (Su et al. 2021, section 3.2.2).

import { powers } from "../../numerics/power.ts";
import type { RopeConfig } from "./parameters.ts";
import { commonKeys, expectSequenceLength, type RopeScaling, rotaryDimOf } from "./scaling.ts";

/** 1 / b^(2i/d) for i < d/2, in transformers' order of operations, so that no ulp differs from a float64 reference. */
export function geometricFrequencies(base: number, rotaryDim: number): Float64Array {
  return powers(
    base,
    Float64Array.from({ length: rotaryDim / 2 }, (_, i) => (2 * i) / rotaryDim),
  ).map((x) => 1 / x);
}

/** d and the unscaled frequencies of a configuration. */
export function unscaled(config: RopeConfig): { rotaryDim: number; frequencies: Float64Array } {
  const rotaryDim = rotaryDimOf(config.headDim, config.rope.partialRotaryFactor);
  return { rotaryDim, frequencies: geometricFrequencies(config.rope.ropeTheta, rotaryDim) };
}

export const defaultScaling: RopeScaling<"default"> = {
  ropeType: "default",
  keys: commonKeys,
  dependsOnLength: () => false,
  compute(config, sequenceLength) {
    expectSequenceLength("default", sequenceLength);
    return { inverseFrequencies: unscaled(config).frequencies, attentionFactor: 1 };
  },
};
