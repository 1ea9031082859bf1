// Llama 3.1's scaling (Meta's code, apply_scaling): by wavelength λ = 2π/ω against the original length L. Shorter than
// L/high: unchanged. Longer than L/low: ω/s. Between: (1 − t)·ω/s + t·ω with t = (L/λ − low)/(high − low).
// GGUF files carry the result as divisors in rope_freqs.weight.

import { unscaled } from "./default.ts";
import { commonKeys, expectSequenceLength, length, positive, type RopeScaling } from "./scaling.ts";

export const llama3Scaling: RopeScaling<"llama3"> = {
  ropeType: "llama3",
  keys: {
    ...commonKeys,
    factor: positive,
    originalMaxPositionEmbeddings: length,
    lowFreqFactor: positive,
    highFreqFactor: positive,
  },
  dependsOnLength: () => false,
  compute(config, sequenceLength) {
    expectSequenceLength("llama3", sequenceLength);
    const { factor, originalMaxPositionEmbeddings: original, lowFreqFactor, highFreqFactor } = config.rope;
    const inverseFrequencies = unscaled(config).frequencies.map((w) => {
      const wavelength = (2 * Math.PI) / w;
      if (wavelength > original / lowFreqFactor) return w / factor;
      // Equal factors leave no region between: as transformers, unchanged.
      if (wavelength < original / highFreqFactor || highFreqFactor === lowFreqFactor) return w;
      const kept = (original / wavelength - lowFreqFactor) / (highFreqFactor - lowFreqFactor);
      return ((1 - kept) * w) / factor + kept * w;
    });
    return { inverseFrequencies, attentionFactor: 1 };
  },
};
