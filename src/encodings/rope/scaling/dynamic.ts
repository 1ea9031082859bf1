// Dynamic NTK (emozilla 2023; transformers): past L = maxPositionEmbeddings the base is b · (s·ℓ/L − (s − 1))^(d/(d−2))
// for a sequence of ℓ tokens; up to L nothing changes. Two readings exist, and both are one call of this function:
// one table for the whole sequence (ℓ is its length, a forward pass), or one a prefix (ℓ grows token by token).
// originalMaxPositionEmbeddings plays no part, as in transformers. With `alpha` (HunYuan) the base is fixed instead.

import { geometricFrequencies } from "./default.ts";
import { ntkBase } from "./ntk.ts";
import { commonKeys, expectSequenceLength, optional, positive, type RopeScaling, rotaryDimOf } from "./scaling.ts";

export const dynamicScaling: RopeScaling<"dynamic"> = {
  ropeType: "dynamic",
  keys: { ...commonKeys, factor: positive, alpha: optional("positive") },
  dependsOnLength: (rope) => rope.alpha === undefined,
  compute(config, sequenceLength) {
    expectSequenceLength("dynamic", sequenceLength);
    const { ropeTheta, factor, alpha, partialRotaryFactor } = config.rope;
    const rotaryDim = rotaryDimOf(config.headDim, partialRotaryFactor);
    const trained = config.maxPositionEmbeddings;
    const stretch = alpha ?? (factor * Math.max(sequenceLength, trained)) / trained - (factor - 1);
    // A stretch of exactly 1 must give the very table of `default`.
    const base = stretch === 1 ? ropeTheta : ntkBase(ropeTheta, stretch, rotaryDim);
    return { inverseFrequencies: geometricFrequencies(base, rotaryDim), attentionFactor: 1 };
  },
};
