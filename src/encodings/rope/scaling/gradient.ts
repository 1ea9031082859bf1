// The "gradient" base rule: the base b' for which length L' = factor·L plays the part that L played for b,
// b' = b^(ln(L'/2π) / ln(L/2π)) (KoboldCpp's automatic rope, after Gradient AI's Llama 3 at a million tokens).

import { expectPositive } from "../../errors.ts";
import { naturalLogarithm, power } from "../../numerics/power.ts";
import { geometricFrequencies } from "./default.ts";
import { commonKeys, expectSequenceLength, length, positive, type RopeScaling, rotaryDimOf } from "./scaling.ts";

/**
 * The base for a longer context under the "gradient" rule.
 *
 * @param ropeTheta b
 * @param originalLength L in tokens, above 2π
 * @param targetLength L' in tokens, above 2π
 * @throws RangeError for lengths of 2π or less
 * @example
 * ```ts
 * import { gradientBase } from "longhand/encodings";
 * Math.round(gradientBase(500000, 8192, 16384)); // => 1776948
 * ```
 * Source: KoboldCpp's automatic rope scaling (its pull request 910), after Gradient AI's Llama 3 models.
 */
export function gradientBase(ropeTheta: number, originalLength: number, targetLength: number): number {
  for (const [what, value] of [
    ["originalLength", originalLength],
    ["targetLength", targetLength],
  ] as const) {
    expectPositive("gradient", what, value);
    if (value <= 2 * Math.PI) throw new RangeError(`gradient: expected ${what} above 2π tokens, got ${value}`);
  }
  const exponent = naturalLogarithm(targetLength / (2 * Math.PI)) / naturalLogarithm(originalLength / (2 * Math.PI));
  return power(ropeTheta, exponent);
}

export const gradientScaling: RopeScaling<"gradient"> = {
  ropeType: "gradient",
  keys: { ...commonKeys, factor: positive, originalMaxPositionEmbeddings: length },
  dependsOnLength: () => false,
  compute(config, sequenceLength) {
    expectSequenceLength("gradient", sequenceLength);
    const { ropeTheta, factor, originalMaxPositionEmbeddings: original, partialRotaryFactor } = config.rope;
    const base = gradientBase(ropeTheta, original, factor * original);
    const rotaryDim = rotaryDimOf(config.headDim, partialRotaryFactor);
    return { inverseFrequencies: geometricFrequencies(base, rotaryDim), attentionFactor: 1 };
  },
};
