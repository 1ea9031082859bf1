// LongRoPE as shipped in Phi-3 and others ("su" in older files; Ding et al. 2024, 2402.13753): pair i's frequency is
// divided by shortFactor[i] for sequences of at most the original length L, by longFactor[i] for longer ones. A whole
// sequence uses one list: a cache of keys rotated with the other list is invalid once the sequence crosses L.
// attention factor: √(1 + ln s / ln L) for s > 1, of both lists alike.

import { naturalLogarithm, power } from "../../numerics/power.ts";
import type { LongRope, RopeConfig } from "./parameters.ts";
import { commonKeys, expectSequenceLength, length, nullable, type RopeScaling, rotaryDimOf } from "./scaling.ts";

/** The attention factor of a sequence that uses the long list (or the short one). */
export function longRopeAttentionFactor(config: RopeConfig<LongRope>, long: boolean): number {
  const { rope } = config;
  const own = long ? rope.longMscale : rope.shortMscale;
  if (own !== undefined && own !== null) return own;
  if (rope.attentionFactor !== undefined && rope.attentionFactor !== null) return rope.attentionFactor;
  const original = rope.originalMaxPositionEmbeddings;
  const factor = rope.factor ?? config.maxPositionEmbeddings / original;
  return factor <= 1 ? 1 : Math.sqrt(1 + naturalLogarithm(factor) / naturalLogarithm(original));
}

export const longRopeScaling: RopeScaling<"longrope"> = {
  ropeType: "longrope",
  keys: {
    ...commonKeys,
    originalMaxPositionEmbeddings: length,
    shortFactor: { kind: "pairs", required: true },
    longFactor: { kind: "pairs", required: true },
    factor: nullable("positive"),
    attentionFactor: nullable("nonNegative"),
    shortMscale: nullable("nonNegative"),
    longMscale: nullable("nonNegative"),
  },
  dependsOnLength: () => true,
  compute(config, sequenceLength) {
    expectSequenceLength("longrope", sequenceLength);
    const { ropeTheta, partialRotaryFactor, shortFactor, longFactor } = config.rope;
    const rotaryDim = rotaryDimOf(config.headDim, partialRotaryFactor);
    const long = sequenceLength > config.rope.originalMaxPositionEmbeddings;
    const divisors = long ? longFactor : shortFactor;
    if (divisors.length !== rotaryDim / 2) {
      throw new RangeError(
        `longrope: expected ${long ? "longFactor" : "shortFactor"} to hold ${rotaryDim / 2} numbers ` +
          `(half of the ${rotaryDim} rotated channels), got ${divisors.length}`,
      );
    }
    return {
      inverseFrequencies: Float64Array.from(divisors, (e, i) => 1 / (e * power(ropeTheta, (2 * i) / rotaryDim))),
      attentionFactor: longRopeAttentionFactor(config, long),
    };
  },
};
