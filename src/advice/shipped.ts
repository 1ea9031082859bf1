// What the makers of a model say of longer contexts, where it is not in the file: facts with their public source.

import type { ModelDescription } from "../formats/model-description.ts";

export interface Shipped {
  readonly modelTypes: readonly string[];
  /** rope_theta of the models that it is about. */
  readonly theta: number;
  readonly trained: number;
  readonly says: string;
  readonly reach: number;
  readonly source: string;
}

const records: readonly Shipped[] = [
  {
    modelTypes: ["qwen2", "qwen3", "qwen2_moe", "qwen3_moe", "qwen2moe", "qwen3moe"],
    theta: 1_000_000,
    trained: 32_768,
    says: "yarn with factor 4 from 32,768 to 131,072 tokens, only where long texts are read",
    reach: 131_072,
    source: "model cards of Qwen2.5 and Qwen3",
  },
  {
    modelTypes: ["smollm3"],
    theta: 5_000_000,
    trained: 65_536,
    says: "yarn with factor 2 from 65,536 to 131,072 tokens",
    reach: 131_072,
    source: "model card of SmolLM3",
  },
  {
    modelTypes: ["qwen3_5_text", "qwen3_5_moe_text", "qwen3_next", "qwen35", "qwen35moe", "qwen3next"],
    theta: 10_000_000,
    trained: 262_144,
    says: "yarn with factor 4 from 262,144 to about a million tokens",
    reach: 1_010_000,
    source: "model cards of Qwen3-Next and Qwen3.5",
  },
];

/** What is known of a model's makers; null when nothing is. */
export function shippedFor(model: ModelDescription): Shipped | null {
  for (const { position } of model.groups) {
    if (position.kind !== "rope") continue;
    const found = records.find(
      ({ modelTypes, theta, trained }) =>
        modelTypes.includes(model.modelType) &&
        theta === position.rope.ropeTheta &&
        // Qwen3's files claim 40,960, the rest being room for the answer.
        (model.trainedLength === trained || model.trainedLength === 40_960),
    );
    if (found !== undefined) return found;
  }
  return null;
}
