// NTK-by-parts as the YaRN paper defines it (2309.00071, section 3.2, definition 2): with r_i = L·ω_i / 2π turns in the
// original length, γ = clamp((r − α)/(β − α), 0, 1) and ω' = (1 − γ)·ω/s + γ·ω. The code of every engine ramps on the
// pair's index instead (yarn.ts), which is another curve.

import { unscaled } from "./default.ts";
import { commonKeys, expectSequenceLength, length, optional, positive, type RopeScaling } from "./scaling.ts";

export const ntkByPartsScaling: RopeScaling<"ntk-by-parts"> = {
  ropeType: "ntk-by-parts",
  keys: {
    ...commonKeys,
    factor: positive,
    originalMaxPositionEmbeddings: length,
    alpha: optional("nonNegative"),
    beta: optional("positive"),
  },
  dependsOnLength: () => false,
  compute(config, sequenceLength) {
    expectSequenceLength("ntk-by-parts", sequenceLength);
    const { factor, originalMaxPositionEmbeddings, alpha = 1, beta = 32 } = config.rope;
    if (!(beta > alpha)) {
      throw new RangeError(`ntk-by-parts: expected beta above alpha, got alpha ${alpha} and beta ${beta}`);
    }
    const inverseFrequencies = unscaled(config).frequencies.map((w) => {
      const turns = (originalMaxPositionEmbeddings * w) / (2 * Math.PI);
      const kept = Math.min(Math.max((turns - alpha) / (beta - alpha), 0), 1);
      return (1 - kept) * (w / factor) + kept * w;
    });
    return { inverseFrequencies, attentionFactor: 1 };
  },
};
