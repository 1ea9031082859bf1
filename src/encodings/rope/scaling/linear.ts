// Position Interpolation (Chen et al. 2023, 2306.15595, section 3.2): ω_i / factor, the same as positions p / factor.

import { unscaled } from "./default.ts";
import { commonKeys, expectSequenceLength, positive, type RopeScaling } from "./scaling.ts";

export const linearScaling: RopeScaling<"linear"> = {
  ropeType: "linear",
  keys: { ...commonKeys, factor: positive },
  dependsOnLength: () => false,
  compute(config, sequenceLength) {
    expectSequenceLength("linear", sequenceLength);
    const { factor } = config.rope;
    return { inverseFrequencies: unscaled(config).frequencies.map((w) => w / factor), attentionFactor: 1 };
  },
};
