// Keys of a config.json that look like rotary settings and that nothing reads: a misspelt key is a setting lost.

import type { Finding } from "../finding.ts";
import { editDistance } from "../nearest.ts";
import { type JsonObject, join } from "./values.ts";

/** What this reader understands. */
const rotary = [
  "rope_theta",
  "rope_scaling",
  "rope_parameters",
  "rope_local_base_freq",
  "rope_interleave",
  "global_rope_theta",
  "local_rope_theta",
  "partial_rotary_factor",
  "rotary_pct",
  "rope_pct",
  "rotary_percentage",
  "rotary_emb_base",
  "rotary_dim",
  "max_position_embeddings",
  "original_max_position_embeddings",
  "head_dim",
  "global_head_dim",
  "qk_rope_head_dim",
  "qk_nope_head_dim",
  "layer_types",
  "no_rope_layers",
  "no_rope_layer_interval",
  "sliding_window",
  "sliding_window_pattern",
  "_sliding_window_pattern",
  "use_sliding_window",
  "max_window_layers",
  "attention_chunk_size",
  "attn_temperature_tuning",
  "floor_scale",
  "attn_scale",
  "dual_chunk_attention_config",
  "relative_attention_num_buckets",
  "relative_attention_max_distance",
  "position_embedding_type",
];

/** Keys of real configurations that a near miss must not be read into. */
const others = [
  "v_head_dim",
  "qk_head_dim",
  "index_head_dim",
  "kv_head_dim",
  "mtp_layer_types",
  "mlp_layer_types",
  "rope_interleaved",
  "max_target_positions",
  "rotary_emb_fraction",
];

const mostEdits = (known: string): number => (known.length >= 16 ? 3 : known.length >= 8 ? 2 : 1);

/** The keys near to one that is read, and those that begin as a rotary one does. */
export function findMisspellings(record: JsonObject, path: string): Finding[] {
  const findings: Finding[] = [];
  for (const key of Object.keys(record)) {
    // A key of hundreds of characters resembles nothing.
    if (key.length > 100 || rotary.includes(key) || others.includes(key)) continue;
    const near = rotary
      // Every character too many or too few is an edit.
      .filter((known) => Math.abs(known.length - key.length) <= mostEdits(known))
      .map((known) => ({ known, distance: editDistance(key.toLowerCase(), known, mostEdits(known)) }))
      .filter(({ known, distance }) => distance <= mostEdits(known))
      .sort((a, b) => a.distance - b.distance)[0];
    if (near !== undefined) {
      findings.push({
        code: "misspelt-key",
        severity: "error",
        where: join(path, key),
        got: record[key],
        expected: near.known,
        why: `Nothing reads "${key}", so the setting is lost.`,
        fix: `write "${near.known}"`,
      });
    } else if (/^(rope|rotary|yarn)_/.test(key)) {
      findings.push({
        code: "unread-key",
        severity: "warning",
        where: join(path, key),
        got: record[key],
        expected: "a key that is known here",
        why: `"${key}" looks like a rotary setting, and neither this reader nor transformers' own classes read it; custom code may.`,
        fix: "",
      });
    }
  }
  return findings;
}
