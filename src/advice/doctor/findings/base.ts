// Small sound configurations that the broken examples start from: shapes of well-known models, nothing else.

import type { JsonObject } from "../../../formats/huggingface/values.ts";

type Keys = Readonly<Record<string, unknown>>;

/** A value of undefined takes the key away. */
function changed(base: Keys, changes: Keys): JsonObject {
  const out: Record<string, unknown> = { ...base, ...changes };
  for (const [key, value] of Object.entries(out)) if (value === undefined) delete out[key];
  return out;
}

const llama31Scaling = {
  rope_type: "llama3",
  factor: 8.0,
  low_freq_factor: 1.0,
  high_freq_factor: 4.0,
  original_max_position_embeddings: 8192,
};

/** Llama 3.1 8B. */
export const llama31 = (changes: Keys = {}): JsonObject =>
  changed(
    {
      model_type: "llama",
      hidden_size: 4096,
      num_hidden_layers: 32,
      num_attention_heads: 32,
      num_key_value_heads: 8,
      head_dim: 128,
      max_position_embeddings: 131072,
      rope_theta: 500000.0,
      rope_scaling: llama31Scaling,
    },
    changes,
  );

export const llama31Dict = (changes: Keys = {}): JsonObject => changed(llama31Scaling, changes);

/** Llama 2 7B. */
export const llama2 = (changes: Keys = {}): JsonObject =>
  changed(
    {
      model_type: "llama",
      hidden_size: 4096,
      num_hidden_layers: 32,
      num_attention_heads: 32,
      num_key_value_heads: 32,
      head_dim: 128,
      max_position_embeddings: 4096,
      rope_theta: 10000.0,
      rope_scaling: null,
    },
    changes,
  );

/** Qwen3 8B. */
export const qwen3 = (changes: Keys = {}): JsonObject =>
  changed(
    {
      model_type: "qwen3",
      hidden_size: 4096,
      num_hidden_layers: 36,
      num_attention_heads: 32,
      num_key_value_heads: 8,
      head_dim: 128,
      max_position_embeddings: 40960,
      max_window_layers: 36,
      sliding_window: null,
      use_sliding_window: false,
      rope_theta: 1000000,
      rope_scaling: null,
    },
    changes,
  );

export const qwenYarn = (changes: Keys = {}): JsonObject =>
  changed({ rope_type: "yarn", factor: 4.0, original_max_position_embeddings: 32768 }, changes);

/** Gemma 3 27B, its text part alone. */
export const gemma3 = (changes: Keys = {}): JsonObject =>
  changed(
    {
      model_type: "gemma3_text",
      hidden_size: 5376,
      num_hidden_layers: 62,
      num_attention_heads: 32,
      num_key_value_heads: 16,
      head_dim: 128,
      max_position_embeddings: 131072,
      rope_theta: 1000000.0,
      rope_local_base_freq: 10000.0,
      rope_scaling: { rope_type: "linear", factor: 8.0 },
      sliding_window: 1024,
      sliding_window_pattern: 6,
    },
    changes,
  );

/** Gemma 3 27B with its settings as transformers 5 writes them, or thinks to. */
export const gemma3With = (ropeParameters: JsonObject): JsonObject =>
  gemma3({
    rope_theta: undefined,
    rope_local_base_freq: undefined,
    rope_scaling: undefined,
    rope_parameters: ropeParameters,
  });

/** OLMo 3 7B. */
export const olmo3 = (changes: Keys = {}): JsonObject =>
  changed(
    {
      model_type: "olmo3",
      hidden_size: 4096,
      num_hidden_layers: 32,
      num_attention_heads: 32,
      num_key_value_heads: 32,
      head_dim: 128,
      max_position_embeddings: 65536,
      rope_theta: 500000,
      sliding_window: 4096,
    },
    changes,
  );

/** Phi 3.5 mini in shape; its lists are shortened to a head of 16 channels. */
export const phi3 = (changes: Keys = {}): JsonObject =>
  changed(
    {
      model_type: "phi3",
      hidden_size: 128,
      num_hidden_layers: 4,
      num_attention_heads: 8,
      num_key_value_heads: 8,
      max_position_embeddings: 131072,
      original_max_position_embeddings: 4096,
      rope_theta: 10000.0,
      sliding_window: 262144,
      rope_scaling: phiLists(),
    },
    changes,
  );

export const phiLists = (changes: Keys = {}): JsonObject =>
  changed(
    {
      type: "longrope",
      short_factor: [1, 1, 1, 1.02, 1.02, 1.02, 1.03, 1.03],
      long_factor: [1.08, 1.14, 1.59, 3.23, 9.09, 24.46, 50.1, 64.8],
    },
    changes,
  );

/** DeepSeek V3. */
export const deepseek = (changes: Keys = {}): JsonObject =>
  changed(
    {
      model_type: "deepseek_v3",
      hidden_size: 7168,
      num_hidden_layers: 61,
      num_attention_heads: 128,
      num_key_value_heads: 128,
      kv_lora_rank: 512,
      q_lora_rank: 1536,
      qk_nope_head_dim: 128,
      qk_rope_head_dim: 64,
      v_head_dim: 128,
      max_position_embeddings: 163840,
      rope_theta: 10000,
      rope_scaling: deepseekYarn(),
    },
    changes,
  );

export const deepseekYarn = (changes: Keys = {}): JsonObject =>
  changed(
    {
      type: "yarn",
      factor: 40,
      beta_fast: 32,
      beta_slow: 1,
      mscale: 1.0,
      mscale_all_dim: 1.0,
      original_max_position_embeddings: 4096,
    },
    changes,
  );

/** SmolLM3 3B. */
export const smollm3 = (changes: Keys = {}): JsonObject =>
  changed(
    {
      model_type: "smollm3",
      hidden_size: 2048,
      num_hidden_layers: 36,
      num_attention_heads: 16,
      num_key_value_heads: 4,
      head_dim: 128,
      max_position_embeddings: 65536,
      rope_theta: 5000000.0,
      no_rope_layer_interval: 4,
      no_rope_layers: Array.from({ length: 36 }, (_, i) => ((i + 1) % 4 === 0 ? 0 : 1)),
    },
    changes,
  );

/** Qwen2.5-VL 7B: a text model inside a wrapper. */
export const qwenVl = (text: Keys = {}, changes: Keys = {}): JsonObject =>
  changed(
    {
      model_type: "qwen2_5_vl",
      text_config: changed(
        {
          model_type: "qwen2_5_vl_text",
          hidden_size: 3584,
          num_hidden_layers: 28,
          num_attention_heads: 28,
          num_key_value_heads: 4,
          head_dim: 128,
          max_position_embeddings: 128000,
          rope_theta: 1000000.0,
          rope_scaling: { type: "mrope", mrope_section: [16, 24, 24] },
          sliding_window: null,
          use_sliding_window: false,
        },
        text,
      ),
    },
    changes,
  );

/** GPT-2. */
export const gpt2 = (changes: Keys = {}): JsonObject =>
  changed({ model_type: "gpt2", n_embd: 768, n_layer: 12, n_head: 12, n_positions: 1024, n_ctx: 1024 }, changes);

/** GPT-NeoX 20B. */
export const neox = (changes: Keys = {}): JsonObject =>
  changed(
    {
      model_type: "gpt_neox",
      hidden_size: 6144,
      num_hidden_layers: 44,
      num_attention_heads: 64,
      max_position_embeddings: 2048,
      rotary_emb_base: 10000,
      rotary_pct: 0.25,
    },
    changes,
  );

/** Ministral 3 8B. */
export const ministral3 = (changes: Keys = {}): JsonObject =>
  changed(
    {
      model_type: "ministral3",
      hidden_size: 4096,
      num_hidden_layers: 34,
      num_attention_heads: 32,
      num_key_value_heads: 8,
      head_dim: 128,
      max_position_embeddings: 262144,
      sliding_window: null,
      rope_parameters: {
        rope_type: "yarn",
        rope_theta: 1000000.0,
        factor: 16.0,
        original_max_position_embeddings: 16384,
        beta_fast: 32.0,
        beta_slow: 1.0,
        mscale: 1.0,
        mscale_all_dim: 1.0,
        llama_4_scaling_beta: 0.1,
      },
    },
    changes,
  );

/** gpt-oss 20B. */
export const gptOss = (changes: Keys = {}): JsonObject =>
  changed(
    {
      model_type: "gpt_oss",
      hidden_size: 2880,
      num_hidden_layers: 24,
      num_attention_heads: 64,
      num_key_value_heads: 8,
      head_dim: 64,
      max_position_embeddings: 131072,
      initial_context_length: 4096,
      rope_theta: 150000,
      rope_scaling: {
        rope_type: "yarn",
        factor: 32.0,
        beta_fast: 32.0,
        beta_slow: 1.0,
        truncate: false,
        original_max_position_embeddings: 4096,
      },
      sliding_window: 128,
      layer_types: Array.from({ length: 24 }, (_, i) => (i % 2 === 0 ? "sliding_attention" : "full_attention")),
    },
    changes,
  );

/** Llama 3.1 8B as GGUF keys; divisors of the rotary tensor are left out. */
export const ggufLlama = (
  ...more: readonly (readonly [string, string, unknown])[]
): readonly (readonly [string, string, unknown])[] => {
  const own: (readonly [string, string, unknown])[] = [
    ["general.architecture", "string", "llama"],
    ["general.name", "string", "model"],
    ["llama.block_count", "u32", 32],
    ["llama.context_length", "u32", 8192],
    ["llama.embedding_length", "u32", 4096],
    ["llama.attention.head_count", "u32", 32],
    ["llama.attention.head_count_kv", "u32", 8],
    ["llama.rope.dimension_count", "u32", 128],
    ["llama.rope.freq_base", "f32", 500000],
  ];
  const names = more.map(([key]) => key);
  return [...own.filter(([key]) => !names.includes(key)), ...more.filter(([, type]) => type !== "none")];
};
