// An arbitrary table: the P inverse frequencies themselves, searched, measured or read from a file.

import { commonKeys, expectSequenceLength, nullable, type RopeScaling, rotaryDimOf } from "./scaling.ts";

export const tableScaling: RopeScaling<"table"> = {
  ropeType: "table",
  keys: {
    ...commonKeys,
    inverseFrequencies: { kind: "frequencies", required: true },
    attentionFactor: nullable("nonNegative"),
  },
  dependsOnLength: () => false,
  compute(config, sequenceLength) {
    expectSequenceLength("table", sequenceLength);
    const { inverseFrequencies, attentionFactor, partialRotaryFactor } = config.rope;
    const pairs = rotaryDimOf(config.headDim, partialRotaryFactor) / 2;
    if (inverseFrequencies.length !== pairs) {
      throw new RangeError(
        `table: expected inverseFrequencies to hold ${pairs} numbers (half of the ${2 * pairs} rotated channels), ` +
          `got ${inverseFrequencies.length}`,
      );
    }
    return { inverseFrequencies: Float64Array.from(inverseFrequencies), attentionFactor: attentionFactor ?? 1 };
  },
};
