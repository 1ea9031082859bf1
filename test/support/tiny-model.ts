// A tiny Llama with random weights, written as Hugging Face would: for tests that need a model of their own, with a
// tokenizer of bytes, or broken on purpose.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { byteTokenizerConfig } from "../../src/formats/tokenizers/byte.ts";
import { random } from "../../src/tensor/index.ts";
import { utf8 } from "./byte-writer.ts";
import { safetensorsJson } from "./safetensors-writer.ts";

export interface TinyTensor {
  shape: number[];
  data: Float32Array;
}

export const tinyConfig = {
  model_type: "llama",
  hidden_size: 32,
  intermediate_size: 48,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 16,
  vocab_size: 259,
  max_position_embeddings: 64,
  rms_norm_eps: 1e-5,
  rope_theta: 10000,
  hidden_act: "silu",
  tie_word_embeddings: true,
} as const;

/** Its weights, by name. */
export function tinyWeights(seed = 1): Map<string, TinyTensor> {
  const { hidden_size: e, intermediate_size: f, vocab_size: v, num_hidden_layers: layers } = tinyConfig;
  const stream = random(seed);
  const out = new Map<string, TinyTensor>();
  const matrix = (name: string, rows: number, columns: number): void => {
    out.set(name, { shape: [rows, columns], data: stream.normals(rows * columns, 0.4) });
  };
  const ones = (name: string): void => void out.set(name, { shape: [e], data: new Float32Array(e).fill(1) });
  matrix("model.embed_tokens.weight", v, e);
  for (let i = 0; i < layers; i++) {
    const layer = `model.layers.${i}`;
    ones(`${layer}.input_layernorm.weight`);
    matrix(`${layer}.self_attn.q_proj.weight`, 64, e);
    matrix(`${layer}.self_attn.k_proj.weight`, 32, e);
    matrix(`${layer}.self_attn.v_proj.weight`, 32, e);
    matrix(`${layer}.self_attn.o_proj.weight`, e, 64);
    ones(`${layer}.post_attention_layernorm.weight`);
    matrix(`${layer}.mlp.gate_proj.weight`, f, e);
    matrix(`${layer}.mlp.up_proj.weight`, f, e);
    matrix(`${layer}.mlp.down_proj.weight`, e, f);
  }
  ones("model.norm.weight");
  return out;
}

/** Writes config.json, model.safetensors and a tokenizer of bytes. */
export function writeTinyModel(
  folder: string,
  weights: ReadonlyMap<string, TinyTensor> = tinyWeights(),
  config: Readonly<Record<string, unknown>> = {},
): string {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "config.json"), JSON.stringify({ ...tinyConfig, ...config }));
  writeFileSync(join(folder, "tokenizer_config.json"), JSON.stringify(byteTokenizerConfig()));
  const entries = [...weights];
  const json = utf8(
    safetensorsJson(entries.map(([name, { shape, data }]) => ({ name, dtype: "F32", shape, bytes: data.byteLength }))),
  );
  const length = new Uint8Array(8);
  new DataView(length.buffer).setBigUint64(0, BigInt(json.length), true);
  const parts = [
    length,
    json,
    ...entries.map(([, { data }]) => new Uint8Array(data.buffer, data.byteOffset, data.byteLength)),
  ];
  writeFileSync(join(folder, "model.safetensors"), Buffer.concat(parts));
  return folder;
}
