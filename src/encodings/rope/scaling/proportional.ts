// p-RoPE (Barbero et al. 2024, 2410.06205, appendix D; Gemma 4's full layers): the first int(p·D/2) of the D/2 pairs turn,
// with exponents over the whole head, 2i/D; the slower rest stands still (ω = 0) but stays in the rotation. p = 0 would
// be NoPE, p = 1 is RoPE. Partial rotary with the same share is another model: it squeezes the whole spectrum into fewer
// channels.

import { power } from "../../numerics/power.ts";
import { commonKeys, expectSequenceLength, nullable, type RopeScaling, rotaryDimOf } from "./scaling.ts";

export const proportionalScaling: RopeScaling<"proportional"> = {
  ropeType: "proportional",
  keys: { ...commonKeys, factor: nullable("positive") },
  dependsOnLength: () => false,
  compute(config, sequenceLength) {
    expectSequenceLength("proportional", sequenceLength);
    const { ropeTheta, partialRotaryFactor: share = 1, factor } = config.rope;
    const headDim = rotaryDimOf(config.headDim);
    const turning = Math.floor((share * headDim) / 2);
    return {
      inverseFrequencies: Float64Array.from({ length: headDim / 2 }, (_, i) =>
        i < turning ? 1 / power(ropeTheta, (2 * i) / headDim) / (factor ?? 1) : 0,
      ),
      attentionFactor: 1,
    };
  },
};
