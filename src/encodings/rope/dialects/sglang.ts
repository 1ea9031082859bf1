// SGLang 0.5.23: get_rope in sglang/srt/layers/rotary_embedding/factory.py. Its classes come from vLLM's of 0.11; YaRN
// reads truncate and the pair of mscale, never attention_factor. Tables grow where positions ask for it.

import type { RopeConfig } from "../scaling/parameters.ts";
import type { RopeDialect } from "./dialect.ts";
import { computeLineage, type Release } from "./vllm-lineage.ts";

/** get_context_length: the factor counts only where the dict names no original length, and never for llama3. */
function admits({ rope, maxPositionEmbeddings }: RopeConfig): number {
  const applied = rope.ropeType === "llama3" || "originalMaxPositionEmbeddings" in rope;
  const factor = !applied && "factor" in rope ? (rope.factor ?? 1) : 1;
  return Math.trunc(maxPositionEmbeddings * factor);
}

const release: Release = {
  source: "sglang/srt/layers/rotary_embedding",
  readsTruncate: true,
  readsMscale: true,
  knowsNtk: false,
  knowsProportional: true,
  keepsFloat32: true,
  tableGrows: true,
  admits,
  lifted: "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1",
};

export const sglang: RopeDialect = {
  dialect: "sglang",
  engine: "SGLang 0.5.23",
  compute: (config, context) => computeLineage(release, config, context),
};
