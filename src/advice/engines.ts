// What the engines of the field make of a model's rotary settings: one row an engine and rotary group.

import { compareDialects, type Dialect, type DialectComparison } from "../encodings/rope/dialects/index.ts";
import type { ModelDescription } from "../formats/model-description.ts";
import type { InspectedGroup, Inspection } from "./inspect.ts";

/** The engines that people serve with; the papers' own code is left to the library. */
export const engineDialects: readonly Dialect[] = [
  "transformers-5",
  "transformers-4",
  "vllm",
  "sglang",
  "llama.cpp",
  "mlx-lm",
  "exllamav2",
  "exllamav3",
];

export interface EngineComparison {
  /** The group's layers, as in `groups` of the inspection. */
  readonly layers: readonly number[];
  readonly layerType?: string;
  readonly engines: readonly DialectComparison[];
}

/**
 * Compares the engines on every rotary group of an inspection, for a sequence of the target length.
 *
 * @param inspection as `inspectModel` gives; groups without rotation are left out
 * @param model the description that was inspected
 * @example
 * ```ts
 * import { compareEngines, inspectModel } from "longhand/advice";
 * import { describeHuggingFace } from "longhand/formats";
 * const model = describeHuggingFace({
 *   model_type: "qwen2", hidden_size: 4096, num_hidden_layers: 2, num_attention_heads: 32,
 *   max_position_embeddings: 131072, rope_theta: 1000000,
 *   rope_scaling: { type: "yarn", factor: 4, original_max_position_embeddings: 32768 },
 * });
 * const [group] = compareEngines(inspectModel(model), model);
 * group.engines.map((engine) => engine.dialect).length; // => 8
 * ```
 */
export function compareEngines(inspection: Inspection, model: ModelDescription): EngineComparison[] {
  const length = inspection.sequenceLength ?? inspection.trainedLength ?? 1;
  return inspection.groups.flatMap((group) => {
    if (group.rope === null) return [];
    const config = {
      headDim: group.headDim,
      maxPositionEmbeddings: model.maxPositionEmbeddings ?? model.trainedLength ?? length,
      rope: group.rope,
    };
    const options = { dialects: engineDialects, modelType: model.modelType, maxModelLen: length };
    return [{ ...identity(group), engines: compareDialects(config, length, options) }];
  });
}

function identity(group: InspectedGroup): { layers: readonly number[]; layerType?: string } {
  return group.layerType === undefined
    ? { layers: group.layers }
    : { layers: group.layers, layerType: group.layerType };
}
