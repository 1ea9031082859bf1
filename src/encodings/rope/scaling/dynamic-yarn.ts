// Dynamic YaRN (YaRN paper, section 3.3): YaRN with factor max(1, ℓ / L) for a sequence of ℓ tokens. The authors' module
// never shrinks its table again after a long input; here each call is a function of its own length alone.

import type { RopeConfig } from "./parameters.ts";
import {
  commonKeys,
  expectSequenceLength,
  length,
  nullable,
  optional,
  type RopeScaling,
  yarnMagnitude,
} from "./scaling.ts";
import { yarnFrequencies } from "./yarn.ts";

export const dynamicYarnScaling: RopeScaling<"dynamic-yarn"> = {
  ropeType: "dynamic-yarn",
  keys: {
    ...commonKeys,
    originalMaxPositionEmbeddings: length,
    betaFast: nullable("nonNegative"),
    betaSlow: nullable("nonNegative"),
    truncate: optional("boolean"),
  },
  dependsOnLength: () => true,
  compute(config, sequenceLength) {
    expectSequenceLength("dynamic-yarn", sequenceLength);
    const factor = Math.max(1, sequenceLength / config.rope.originalMaxPositionEmbeddings);
    return {
      inverseFrequencies: yarnFrequencies(config as RopeConfig, config.rope, factor),
      attentionFactor: yarnMagnitude(factor),
    };
  },
};
