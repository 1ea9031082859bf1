// What a GGUF file leaves to its reader, by general.architecture: which channels pair up, which layers slide or have no
// rotation, which constants are hard-coded. Read in llama.cpp's src/llama-model.cpp and src/models/*.cpp (August 2026);
// facts that models' own code states differently are marked. Architectures without attention (mamba, rwkv) and those
// whose rules are not established here are absent, and reading them is an error.

import type { RotaryLayout } from "../../encodings/position-encoding.ts";

/** Layers that see a window only, beside layers that see everything. */
export interface SlidingRules {
  /** Every period-th layer is full; `attention.sliding_window_pattern` overrides. null: the file must list the layers. */
  readonly period: number | null;
  /** The full layer comes first in its period; last when absent. */
  readonly fullFirst?: true;
  /** Window when the file has none; without it such a file has no sliding layers. */
  readonly window?: number;
  /** The window whatever the file says (a window of 0 still turns sliding off). */
  readonly fixedWindow?: number;
  /** Attention stays inside chunks of the window's size. */
  readonly chunked?: true;
  /** Theta of sliding layers without `rope.freq_base_swa`; "same" as the full layers'. */
  readonly theta: "same" | number;
  /** Whether sliding layers take the full layers' scaling. */
  readonly scaling: "same" | "none";
}

export interface GgufArchitecture {
  readonly positions: "rope" | "learned" | "alibi" | "t5" | "none";
  readonly layout?: RotaryLayout;
  /** Multimodal position ids over `rope.dimension_sections`, in blocks or interleaved. */
  readonly mrope?: "sections" | "interleaved";
  readonly sliding?: SlidingRules;
  /** Rotary layers only among the sliding ones, or all but every n-th (the first or the last of each n). */
  readonly nope?: "full-layers" | { readonly every: number; readonly which: "first" | "last" };
  /** ALiBi's constant; "key": `attention.max_alibi_bias`, where 0 or absence means a learned table. */
  readonly maxBias?: number | "key";
  /** Multi-head latent attention: only rope.dimension_count channels of each head are rotated, on their own. */
  readonly latent?: true;
  /** `rope.scaling.yarn_log_multiplier` holds 0.1 · mscale_all_dim (not mscale_all_dim), and softmax takes m². */
  readonly deepseekYarn?: true;
  /** Layers without attention: those with 0 key/value heads, or all but every n-th. */
  readonly recurrent?: "zero-heads" | { readonly interval: number };
  /** `rope.scaling.finetuned` false means no rotation at all. */
  readonly ropeSwitch?: true;
  /** llama.cpp reads yarn_beta_fast, yarn_beta_slow here; elsewhere it ignores them. */
  readonly readsBetas?: true;
  /** The model was trained with an unrounded YaRN ramp, which GGUF cannot say. */
  readonly yarnTruncate?: false;
  /** rope_freqs.weight is for full layers only. */
  readonly freqsOnFullLayersOnly?: true;
  /** Llama 4's temperature on its NoPE layers. */
  readonly llama4Temperature?: { readonly scale: number; readonly floorScale: number };
}

type Extra = Omit<GgufArchitecture, "positions" | "layout">;
const half = (extra: Extra = {}): GgufArchitecture => ({ positions: "rope", layout: "half", ...extra });
const interleaved = (extra: Extra = {}): GgufArchitecture => ({ positions: "rope", layout: "interleaved", ...extra });
const learned: GgufArchitecture = { positions: "learned" };
const alibi = (maxBias: number | "key"): GgufArchitecture => ({ positions: "alibi", maxBias });
const t5: GgufArchitecture = { positions: "t5" };

const same = { theta: "same", scaling: "same" } as const;

const gptOss = half({ sliding: { period: 2, ...same }, yarnTruncate: false });

export const ggufArchitectures: { readonly [name: string]: GgufArchitecture } = {
  // Llama and its kin: weights of q and k are permuted by the converter, so pairs are neighbours.
  llama: interleaved(),
  "llama-embed": interleaved(),
  deci: interleaved(),
  arcee: interleaved(),
  internlm2: interleaved(),
  xverse: interleaved(),
  minicpm: interleaved(),
  nanbeige: interleaved(),
  maincoder: interleaved(),
  llada: interleaved(),
  chameleon: interleaved(),
  arctic: interleaved(),
  olmo: interleaved(),
  "neo-bert": interleaved(),
  ernie4_5: interleaved(),
  "ernie4_5-moe": interleaved(),
  bailingmoe: interleaved(),
  deepseek: interleaved(),
  chatglm: interleaved(),
  glm4: interleaved({ mrope: "sections" }),
  smollm3: interleaved({ nope: { every: 4, which: "last" } }),
  mistral3: interleaved({ readsBetas: true }),
  granite: interleaved({ ropeSwitch: true }),
  granitemoe: interleaved({ ropeSwitch: true }),
  granitehybrid: interleaved({ ropeSwitch: true, recurrent: "zero-heads" }),
  "command-r": interleaved(),
  cohere2: interleaved({ sliding: { period: 4, ...same }, nope: "full-layers" }),
  llama4: interleaved({
    sliding: { period: 4, window: 8192, fixedWindow: 8192, chunked: true, ...same },
    nope: { every: 4, which: "last" },
    llama4Temperature: { scale: 0.1, floorScale: 8192 },
  }),
  deepseek2: interleaved({ latent: true, deepseekYarn: true }),
  deepseek32: interleaved({ latent: true, deepseekYarn: true }),
  mistral4: interleaved({ latent: true, deepseekYarn: true }),
  "glm-dsa": interleaved({ latent: true }),
  plm: interleaved({ latent: true }),

  // GPT-NeoX's pairing: channel i with channel i + rotaryDim / 2.
  gptneox: half(),
  falcon: half(),
  "falcon-h1": half(),
  stablelm: half(),
  qwen: half(),
  qwen2: half(),
  qwen2moe: half(),
  qwen3: half(),
  qwen3moe: half(),
  qwen3next: half({ recurrent: { interval: 4 } }),
  qwen2vl: half({ mrope: "sections" }),
  qwen3vl: half({ mrope: "interleaved" }),
  qwen3vlmoe: half({ mrope: "interleaved" }),
  qwen35: half({ mrope: "interleaved", recurrent: { interval: 4 } }),
  qwen35moe: half({ mrope: "interleaved", recurrent: { interval: 4 } }),
  dream: half(),
  rnd1: half(),
  "llada-moe": half(),
  grovemoe: half(),
  phi2: half(),
  phi3: half(),
  phimoe: half(),
  plamo: half(),
  codeshell: half(),
  orion: half(),
  nemotron: half(),
  jais2: half(),
  bitnet: half(),
  dbrx: half(),
  openelm: half(),
  olmoe: half(),
  starcoder2: half(),
  exaone: half(),
  minicpm3: half({ latent: true }),
  bailingmoe2: half(),
  dots1: half(),
  "hunyuan-moe": half(),
  "hunyuan-dense": half(),
  seed_oss: half(),
  apertus: half(),
  "minimax-m2": half(),
  "pangu-embedded": half(),
  eurobert: half(),
  "nomic-bert": half(),
  "nomic-bert-moe": half(),
  "jina-bert-v3": half(),
  // Hard-coded to this pairing although the rest of its family is interleaved.
  "deepseek2-ocr": half(),
  glm4moe: half({ mrope: "sections" }),
  lfm2: half({ recurrent: "zero-heads" }),
  lfm2moe: half({ recurrent: "zero-heads" }),
  plamo2: half({ recurrent: "zero-heads" }),
  "minimax-01": half({ recurrent: { interval: 8 } }),

  // Window layers.
  gemma: half(),
  gemma2: half({ sliding: { period: 2, window: 4096, ...same } }),
  gemma3: half({ sliding: { period: 6, theta: 10_000, scaling: "none" } }),
  gemma3n: half({ sliding: { period: 5, theta: 10_000, scaling: "none" } }),
  "gemma-embedding": half({ sliding: { period: 6, theta: 10_000, scaling: "none" } }),
  gemma4: half({ sliding: { period: null, theta: 10_000, scaling: "none" }, freqsOnFullLayersOnly: true }),
  "gpt-oss": gptOss,
  // Ollama's first conversions.
  gptoss: gptOss,
  olmo2: half({ sliding: { period: 4, theta: "same", scaling: "none" } }),
  mellum: half({ sliding: { period: 4, theta: "same", scaling: "none" } }),
  exaone4: half({ sliding: { period: 4, ...same }, nope: "full-layers" }),
  "exaone-moe": half({ sliding: { period: 4, window: 128, ...same }, nope: "full-layers" }),
  afmoe: half({ sliding: { period: 4, ...same }, nope: { every: 4, which: "last" } }),
  smallthinker: half({
    sliding: { period: 4, fullFirst: true, fixedWindow: 4096, ...same },
    nope: { every: 4, which: "first" },
  }),
  plamo3: half({ sliding: { period: 8, theta: 10_000, scaling: "none" } }),
  mimo2: half({ sliding: { period: null, theta: 10_000, scaling: "none" } }),
  "modern-bert": half({ sliding: { period: 3, fullFirst: true, theta: 10_000, scaling: "none" } }),

  // Tables, biases, nothing.
  gpt2: learned,
  starcoder: learned,
  bert: learned,
  bloom: alibi(8),
  refact: alibi(8),
  "jina-bert-v2": alibi(8),
  mpt: alibi("key"),
  jais: alibi("key"),
  // The 7B rotates, the 13B (40 layers) has ALiBi: the description decides.
  baichuan: interleaved(),
  t5,
  t5encoder: t5,
  jamba: { positions: "none", recurrent: "zero-heads" },
  nemotron_h: { positions: "none", recurrent: "zero-heads" },
  nemotron_h_moe: { positions: "none", recurrent: "zero-heads" },
  "kimi-linear": { positions: "none", recurrent: "zero-heads", latent: true },
};
