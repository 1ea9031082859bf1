// Dynamic Position Interpolation (YaRN paper, section 3.3): factor max(1, ℓ / L) for a sequence of ℓ tokens, so that
// short sequences are untouched. As with `dynamic`, ℓ may be the whole length or that of a growing prefix.

import { unscaled } from "./default.ts";
import { commonKeys, expectSequenceLength, length, type RopeScaling } from "./scaling.ts";

export const dynamicLinearScaling: RopeScaling<"dynamic-linear"> = {
  ropeType: "dynamic-linear",
  keys: { ...commonKeys, originalMaxPositionEmbeddings: length },
  dependsOnLength: () => true,
  compute(config, sequenceLength) {
    expectSequenceLength("dynamic-linear", sequenceLength);
    const factor = Math.max(1, sequenceLength / config.rope.originalMaxPositionEmbeddings);
    return { inverseFrequencies: unscaled(config).frequencies.map((w) => w / factor), attentionFactor: 1 };
  },
};
