// Memory of keys and values for one sequence: 2 · key/value heads · head width · tokens · bytes a layer. A layer with a
// window keeps its window alone; multi-head latent attention keeps one compressed row and the rotated part.

import { recurrentTypes } from "../../formats/huggingface/layers.ts";
import type { ModelDescription, PositionGroup } from "../../formats/model-description.ts";
import type { CacheMemory } from "./types.ts";

export interface LatentCache {
  /** kv_lora_rank */
  readonly rank: number;
  /** qk_rope_head_dim */
  readonly rotated: number;
}

/**
 * Bytes that the key/value cache takes for one sequence of `length` tokens.
 *
 * @param latent of multi-head latent attention, which an engine that compresses keeps in place of keys and values
 */
export function cacheMemory(
  model: ModelDescription,
  length: number,
  bytesPerNumber = 2,
  latent: LatentCache | null = null,
): CacheMemory {
  const groups = model.groups.map((group) => {
    const recurrent = group.layerType !== undefined && recurrentTypes.includes(group.layerType);
    const window = group.slidingWindow ?? group.attentionChunkSize;
    const tokens = recurrent ? 0 : Math.min(length, window ?? length);
    const numbers =
      latent === null ? 2 * model.numKeyValueHeads * headDimOf(group, model) : latent.rank + latent.rotated;
    const bytes = group.layers.length * tokens * numbers * bytesPerNumber;
    const layerType = group.layerType === undefined ? {} : { layerType: group.layerType };
    return { layers: group.layers, ...layerType, tokens, bytes };
  });
  return { bytesPerNumber, groups, bytes: groups.reduce((sum, { bytes }) => sum + bytes, 0) };
}

function headDimOf({ position }: PositionGroup, model: ModelDescription): number {
  // Gemma 4's full layers have wider heads than its sliding ones.
  return position.site === "query-key" ? Math.max(position.headDim, model.headDim) : model.headDim;
}

/** kv_lora_rank and qk_rope_head_dim of a config.json, where both stand. */
export function latentCacheOf(config: Readonly<Record<string, unknown>> | undefined): LatentCache | null {
  const { kv_lora_rank: rank, qk_rope_head_dim: rotated } = config ?? {};
  return typeof rank === "number" && typeof rotated === "number" ? { rank, rotated } : null;
}
