// NTK-aware scaling (bloc97 2023; YaRN paper, definition 1): the base becomes b · s^(d/(d−2)). The fastest pair is
// unchanged and the slowest is divided by s. vLLM's "ntk" is another rule (see dialects/vllm.ts).

import { power } from "../../numerics/power.ts";
import { geometricFrequencies } from "./default.ts";
import { commonKeys, expectSequenceLength, positive, type RopeScaling, rotaryDimOf } from "./scaling.ts";

/**
 * The NTK-aware base b · s^(d/(d−2)).
 *
 * @param rotaryDim d, above 2
 * @throws RangeError for d of 2 (the exponent is infinite), or a base or factor that is not above 0
 * @example
 * ```ts
 * import { ntkBase } from "longhand/encodings";
 * ntkBase(10000, 2, 128); // => 20221.261689737912
 * ```
 * Source: bloc97 2023, "NTK-Aware Scaled RoPE"; YaRN paper (2309.00071), definition 1.
 */
export function ntkBase(ropeTheta: number, factor: number, rotaryDim: number): number {
  if (!(rotaryDim > 2)) throw new RangeError(`ntk: expected more than 2 rotated channels, got ${rotaryDim}`);
  return ropeTheta * power(factor, rotaryDim / (rotaryDim - 2));
}

export const ntkScaling: RopeScaling<"ntk"> = {
  ropeType: "ntk",
  keys: { ...commonKeys, factor: positive },
  dependsOnLength: () => false,
  compute(config, sequenceLength) {
    expectSequenceLength("ntk", sequenceLength);
    const { ropeTheta, factor, partialRotaryFactor } = config.rope;
    const rotaryDim = rotaryDimOf(config.headDim, partialRotaryFactor);
    const base = ntkBase(ropeTheta, factor, rotaryDim);
    return { inverseFrequencies: geometricFrequencies(base, rotaryDim), attentionFactor: 1 };
  },
};
