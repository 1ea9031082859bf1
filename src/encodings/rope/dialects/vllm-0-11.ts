// vLLM 0.11.0 and 0.11.1, before truncate (0.12), mscale and attention_factor were read: vllm/model_executor/layers/
// rotary_embedding. Version 4's keys are read; --rope-scaling exists up to 0.11.0.

import type { RopeConfig } from "../scaling/parameters.ts";
import type { RopeDialect } from "./dialect.ts";
import { computeLineage, type Release } from "./vllm-lineage.ts";

/** YaRN counts from its original length; every factor but those of llama3 and longrope, and Gemma 3's, is applied. */
function admits({ rope, maxPositionEmbeddings }: RopeConfig, modelType = ""): number {
  if (modelType.includes("gemma3") || rope.ropeType === "llama3" || rope.ropeType === "longrope") {
    return maxPositionEmbeddings;
  }
  if (rope.ropeType === "yarn") return Math.trunc(rope.originalMaxPositionEmbeddings * (rope.factor ?? 1));
  return Math.trunc(maxPositionEmbeddings * ("factor" in rope ? (rope.factor ?? 1) : 1));
}

const release: Release = {
  source: "vllm/model_executor/layers/rotary_embedding",
  readsTruncate: false,
  readsMscale: false,
  knowsNtk: true,
  knowsProportional: false,
  keepsFloat32: false,
  tableGrows: false,
  admits,
  lifted: "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1",
};

export const vllm011: RopeDialect = {
  dialect: "vllm-0.11",
  engine: "vLLM 0.11.0",
  compute: (config, context) => computeLineage(release, config, context),
};
