// Small model descriptions for tests of what is computed from one.

import type { RopeParameters } from "../../src/encodings/rope/scaling/parameters.ts";
import type { ModelDescription, PositionGroup, PositionSettings } from "../../src/formats/model-description.ts";

type Rope = Extract<PositionSettings, { site: "query-key" }>;

export function describedModel(rope: RopeParameters, overrides: Partial<ModelDescription> = {}): ModelDescription {
  return {
    name: "a model",
    format: "huggingface",
    modelType: "llama",
    numLayers: 2,
    hiddenSize: 256,
    numHeads: 4,
    numKeyValueHeads: 4,
    headDim: 64,
    vocabSize: 100,
    numParameters: null,
    maxPositionEmbeddings: 4096,
    trainedLength: 4096,
    groups: [ropeGroup(rope)],
    findings: [],
    ...overrides,
  };
}

export function ropeGroup(
  rope: RopeParameters,
  overrides: Partial<PositionGroup> = {},
): PositionGroup & { readonly position: Rope } {
  return {
    layers: [0, 1],
    position: { site: "query-key", kind: "rope", headDim: 64, layout: "half", rope },
    slidingWindow: null,
    attentionChunkSize: null,
    logitTemperature: null,
    softmaxFactor: 1,
    ...overrides,
  } as PositionGroup & { readonly position: Rope };
}
