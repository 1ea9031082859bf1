// What each configuration class of transformers 5.24.0 does with its config.json: one record a model_type, read off the
// class and run against it (reference/hf_configs.py). Plain data but for the layer rules; no family knows another.
// A family of custom code that repeats a known class is an alias. Class defaults of plain numbers: class-defaults.ts.

import type { RotaryLayout } from "../../encodings/position-encoding.ts";
import type { RopeType } from "../../encodings/rope/scaling/parameters.ts";
import {
  allFull,
  alternateBelowMaxWindowLayers,
  bothSides,
  everyNth,
  everyNthWhenWindowed,
  everyPeriod,
  fromMaxWindowLayers,
  fullOnListed,
  gemmaWindow,
  halfOfLocalAttention,
  type LayerRule,
  layersBlockType,
  noRopeLayers,
  slidingWhenWindowed,
  typed,
  uniform,
  windowed,
  withCrossAttention,
} from "./layers.ts";
import type { JsonObject } from "./values.ts";

export interface RotaryFamily {
  readonly kind: "rotary";
  /** The base when the file gives none. */
  readonly theta: number;
  /** Keys outside the dict that give the base. */
  readonly thetaKeys: readonly string[];
  /** Present when the class keeps one dict a layer type: what it assumes for sliding_attention. */
  readonly sliding?: {
    readonly theta: number;
    readonly thetaKeys: readonly string[];
    /** A flat dict, or rope_scaling, is meant for these layers too. */
    readonly scaled: boolean;
    /** OLMo 3: full_attention takes rope_theta away before sliding_attention asks for it. */
    readonly thetaIsLost?: boolean;
    /** A flat rope_parameters, or rope_scaling, is what? */
    readonly flat: "ignored" | "KeyError";
  };
  /** The share of the head that is rotated. */
  readonly partial: {
    /** False: the class rotates whole heads whatever the file says. */
    readonly honoured: boolean;
    readonly default: number;
    readonly keys: readonly string[];
  };
  /** `latent`: qk_rope_head_dim of multi-head latent attention. `computed`: always hidden_size / heads. */
  readonly headDim: "head_dim" | "computed" | "latent";
  readonly layout: RotaryLayout;
  readonly layers: LayerRule;
  /** Whether the class itself knows layer_types (else a dict per layer type is unknown keys to it). */
  readonly knowsLayerTypes: boolean;
  /** The dict when the file has none. */
  readonly preset?: JsonObject;
  readonly aliases?: Readonly<Record<string, RopeType>>;
  readonly mrope?: { readonly section: readonly number[]; readonly interleaved: boolean };
  readonly temperature?: "llama4" | "ministral3";
  /** DeepSeek's m(s, mscale_all_dim)² on the softmax scale. */
  readonly softmaxFactor?: boolean;
  /** HunYuan: alpha of a dynamic dict is read. */
  readonly readsAlpha?: boolean;
  /** Phi-3: original_max_position_embeddings is a field of the class, and overwrites the dict's. */
  readonly originalIsField?: boolean;
}

export interface LearnedFamily {
  readonly kind: "learned";
  /** Rows before position 0's. */
  readonly offset: number | "pad_token_id + 1";
  /** Whether max_position_embeddings counts those rows. */
  readonly offsetIsCounted: boolean;
  readonly stacks: "one" | "encoder-decoder";
  readonly localAttention?: boolean;
}

export interface SinusoidalFamily {
  readonly kind: "sinusoidal";
  readonly layout: "interleaved" | "concatenated";
  readonly stacks: "one" | "encoder-decoder";
}

export interface AlibiFamily {
  readonly kind: "alibi";
  /** Falcon adds its bias before the scores are scaled, so it is divided by √headDim too. */
  readonly scaledWithScores: boolean;
}

export interface T5Family {
  readonly kind: "t5";
  /** UMT5 learns a table in every layer; T5 shares its first layer's. */
  readonly everyLayer: boolean;
}

/** Attention without positions; other layers carry the order. */
export interface NopeFamily {
  readonly kind: "nope";
  readonly layers: LayerRule;
}

/** The project's own form: positions are listed by layers (longhand.ts). */
export interface LonghandFamily {
  readonly kind: "longhand";
}

/** One class, two encodings: the file chooses. */
export interface ChoiceFamily {
  readonly kind: "choice";
  readonly choose: (record: JsonObject) => Exclude<Family, ChoiceFamily>;
}

export type Family =
  | RotaryFamily
  | LearnedFamily
  | SinusoidalFamily
  | AlibiFamily
  | T5Family
  | NopeFamily
  | LonghandFamily
  | ChoiceFamily;

const llama: RotaryFamily = {
  kind: "rotary",
  theta: 10000,
  thetaKeys: ["rope_theta"],
  partial: { honoured: false, default: 1, keys: ["partial_rotary_factor"] },
  headDim: "head_dim",
  layout: "half",
  layers: uniform,
  knowsLayerTypes: false,
};

function rotary(differences: Partial<Omit<RotaryFamily, "kind">>): RotaryFamily {
  return { ...llama, ...differences };
}

/** Layers by type. */
function byType(layers: LayerRule, differences: Partial<Omit<RotaryFamily, "kind">> = {}): RotaryFamily {
  return rotary({ layers, knowsLayerTypes: true, ...differences });
}

function partly(share: number, differences: Partial<Omit<RotaryFamily, "kind">> = {}): RotaryFamily {
  return rotary({ partial: { honoured: true, default: share, keys: ["partial_rotary_factor"] }, ...differences });
}

/** Multi-head latent attention: only qk_rope_head_dim channels of a head are rotated. */
function latent(differences: Partial<Omit<RotaryFamily, "kind">> = {}): RotaryFamily {
  return rotary({ headDim: "latent", layout: "interleaved", softmaxFactor: true, ...differences });
}

const learned: LearnedFamily = { kind: "learned", offset: 0, offsetIsCounted: false, stacks: "one" };
const roberta: LearnedFamily = { ...learned, offset: "pad_token_id + 1", offsetIsCounted: true };
const bart: LearnedFamily = { ...learned, offset: 2, stacks: "encoder-decoder" };

const qwenLayers = typed({ pattern: fromMaxWindowLayers, gate: true });
const everyFourthFull = everyNth(4, { key: "full_attention_interval", other: "linear_attention" });

/** GPT-J: rotary_dim channels, base 10000, nothing of it in the schema. */
const gptj = rotary({
  headDim: "computed",
  layout: "interleaved",
  partial: { honoured: true, default: 1, keys: ["rotary_dim"] },
});

const gemma3 = byType(typed({ pattern: everyNth(6, { key: "sliding_window_pattern" }), window: gemmaWindow }), {
  theta: 1e6,
  sliding: { theta: 10000, thetaKeys: ["rope_local_base_freq"], scaled: false, flat: "ignored" },
});

const modernbert = byType(
  typed({ pattern: everyNth(3, { key: "global_attn_every_n_layers", from: 0 }), window: bothSides }),
  {
    theta: 160000,
    thetaKeys: ["global_rope_theta"],
    sliding: { theta: 10000, thetaKeys: ["local_rope_theta"], scaled: true, flat: "ignored" },
  },
);

const ministral3Preset: JsonObject = {
  rope_type: "yarn",
  rope_theta: 1000000,
  factor: 16,
  original_max_position_embeddings: 16384,
  beta_fast: 32,
  beta_slow: 1,
  mscale_all_dim: 1,
  mscale: 1,
  llama_4_scaling_beta: 0.1,
};

const hunyuan = rotary({ readsAlpha: true });

export const families: Readonly<Record<string, Family>> = {
  // Llama and what repeats it
  llama,
  arcee: llama,
  bitnet: rotary({ theta: 500000 }),
  nanochat: llama,
  seed_oss: llama,
  internlm3: llama,
  apertus: rotary({
    theta: 12000000,
    preset: {
      rope_type: "llama3",
      rope_theta: 12000000,
      factor: 8,
      original_max_position_embeddings: 8192,
      low_freq_factor: 1,
      high_freq_factor: 4,
    },
  }),
  cwm: byType(typed({ pattern: everyNth(4, { from: 0 }) }), {
    theta: 1000000,
    preset: {
      rope_type: "llama3",
      rope_theta: 1000000,
      factor: 16,
      original_max_position_embeddings: 8192,
      low_freq_factor: 1,
      high_freq_factor: 4,
    },
  }),
  mllama_text_model: rotary({ theta: 500000, layers: withCrossAttention }),
  llama4_text: byType(noRopeLayers({ emptyMeansDefault: true, chunked: true }), {
    theta: 500000,
    layout: "interleaved",
    temperature: "llama4",
  }),
  smollm3: byType(noRopeLayers({ emptyMeansDefault: false, chunked: false }), { theta: 2000000 }),

  // Mistral
  mistral: rotary({ layers: windowed() }),
  mixtral: rotary({ theta: 1000000, layers: windowed() }),
  ministral: byType(typed({ pattern: slidingWhenWindowed })),
  ministral3: rotary({ layers: windowed(), preset: ministral3Preset, temperature: "ministral3" }),
  mistral4: latent({
    preset: { ...ministral3Preset, rope_theta: 10000, factor: 128, original_max_position_embeddings: 8192 },
    temperature: "ministral3",
  }),

  // Qwen
  qwen2: byType(qwenLayers),
  qwen2_moe: byType(typed({ pattern: alternateBelowMaxWindowLayers, gate: true })),
  qwen2_vl_text: byType(qwenLayers, { theta: 1000000, mrope: { section: [16, 24, 24], interleaved: false } }),
  qwen2_5_vl_text: byType(qwenLayers, { theta: 1000000, mrope: { section: [16, 24, 24], interleaved: false } }),
  qwen3: byType(qwenLayers),
  qwen3_moe: rotary({ layers: windowed({ gate: true }) }),
  qwen3_vl_text: rotary({ theta: 500000, mrope: { section: [24, 20, 20], interleaved: true } }),
  qwen3_vl_moe_text: rotary({ theta: 500000, mrope: { section: [24, 20, 20], interleaved: true } }),
  qwen3_next: partly(0.25, { layers: typed({ pattern: everyFourthFull }), knowsLayerTypes: true }),
  qwen3_5_text: partly(0.25, {
    layers: typed({ pattern: everyFourthFull }),
    knowsLayerTypes: true,
    mrope: { section: [11, 11, 10], interleaved: true },
  }),
  qwen3_5_moe_text: partly(0.25, {
    layers: typed({ pattern: everyFourthFull }),
    knowsLayerTypes: true,
    mrope: { section: [11, 11, 10], interleaved: true },
  }),

  // Gemma
  gemma: llama,
  gemma2: byType(typed({ pattern: everyNth(2) })),
  vaultgemma: byType(typed({ pattern: everyNth(2) })),
  gemma3_text: gemma3,
  gemma3n_text: { ...gemma3, layers: typed({ pattern: everyNth(5) }) },
  gemma4_text: byType(typed({ pattern: everyNth(6), window: gemmaWindow, lastIsFull: true }), {
    theta: 1000000,
    thetaKeys: [],
    sliding: { theta: 10000, thetaKeys: [], scaled: false, flat: "KeyError" },
    preset: {
      sliding_attention: { rope_type: "default", rope_theta: 10000 },
      full_attention: { rope_type: "proportional", partial_rotary_factor: 0.25, rope_theta: 1000000 },
    },
  }),

  // Phi
  phi: partly(0.5),
  phi3: partly(1, { layers: windowed(), aliases: { yarn: "longrope" }, originalIsField: true }),
  phimoe: rotary({ theta: 1000000, layers: windowed() }),

  // DeepSeek's latent attention
  deepseek_v2: latent(),
  deepseek_v3: latent(),
  deepseek_v32: latent(),
  youtu: latent(),
  glm_moe_dsa: latent({ layers: typed({ pattern: (_, n) => Array.from({ length: n }, () => "indexed_attention") }) }),
  minicpm3: latent({ layout: "half" }),

  // One family each
  gpt_oss: byType(typed({ pattern: everyNth(2) }), {
    theta: 150000,
    preset: {
      rope_type: "yarn",
      factor: 32,
      beta_fast: 32,
      beta_slow: 1,
      truncate: false,
      original_max_position_embeddings: 4096,
    },
  }),
  cohere: rotary({ theta: 500000, layout: "interleaved" }),
  cohere2: byType(
    typed({
      pattern: everyNth(4, { key: "sliding_window_pattern" }),
      rotates: (_, layerType) => layerType === "sliding_attention",
    }),
    { headDim: "computed", layout: "interleaved" },
  ),
  afmoe: byType(
    typed({
      pattern: everyNth(4, { key: "global_attn_every_n_layers" }),
      rotates: (_, layerType) => layerType === "sliding_attention",
    }),
  ),
  exaone4: byType(typed({ pattern: everyNthWhenWindowed, rotates: rotatesOnSliding })),
  exaone_moe: byType(typed({ pattern: everyNthWhenWindowed, rotates: rotatesOnSliding })),
  olmo: llama,
  olmo2: llama,
  olmoe: llama,
  flex_olmo: rotary({ theta: 500000 }),
  olmo3: byType(typed({ pattern: everyNth(4) }), {
    theta: 500000,
    sliding: { theta: 500000, thetaKeys: ["rope_theta"], scaled: false, thetaIsLost: true, flat: "ignored" },
  }),
  glm: partly(0.5, { layout: "interleaved" }),
  glm4: partly(0.5, { layout: "interleaved" }),
  glm4_moe: partly(0.5),
  glm4v_text: partly(1, { layout: "interleaved", mrope: { section: [8, 12, 12], interleaved: false } }),
  glm4v_moe_text: partly(0.5, { mrope: { section: [8, 12, 12], interleaved: false } }),
  stablelm: partly(0.25),
  persimmon: partly(0.5),
  nemotron: partly(0.5),
  solar_open: partly(1, { theta: 1000000 }),
  minimax_m2: partly(1, {
    theta: 5000000,
    partial: { honoured: true, default: 1, keys: ["partial_rotary_factor", "rotary_dim"] },
  }),
  gpt_neox: partly(0.25, {
    thetaKeys: ["rotary_emb_base"],
    headDim: "computed",
    partial: { honoured: true, default: 0.25, keys: ["rotary_pct"] },
  }),
  gpt_neox_japanese: partly(1, {
    thetaKeys: ["rotary_emb_base"],
    headDim: "computed",
    partial: { honoured: true, default: 1, keys: ["rotary_pct"] },
  }),
  gptj,
  codegen: gptj,
  starcoder2: rotary({ layers: windowed() }),
  granite: llama,
  granitemoe: llama,
  granitemoeshared: llama,
  granitemoehybrid: {
    kind: "choice",
    choose: (record) =>
      record.position_embedding_type === "rope"
        ? byType(typed({ pattern: layersBlockType }))
        : { kind: "nope", layers: typed({ pattern: layersBlockType }) },
  },
  ernie4_5: rotary({ theta: 500000, layout: "interleaved" }),
  ernie4_5_moe: rotary({ theta: 500000, layout: "interleaved" }),
  helium: rotary({ theta: 100000, layout: "interleaved" }),
  dots1: byType(typed({ pattern: fromMaxWindowLayers })),
  hunyuan_v1_dense: hunyuan,
  hunyuan_v1_moe: hunyuan,
  hunyuan_vl_text: hunyuan,
  lfm2: byType(typed({ pattern: fullOnListed }), { theta: 1000000 }),
  lfm2_moe: byType(typed({ pattern: fullOnListed }), { theta: 1000000 }),
  falcon_h1: llama,
  jamba: { kind: "nope", layers: typed({ pattern: everyPeriod }) },
  modernbert,
  "modernbert-decoder": {
    ...modernbert,
    layers: typed({
      pattern: everyNth(3, { key: "global_attn_every_n_layers", from: 0 }),
      window: halfOfLocalAttention,
    }),
  },

  // A table of rows, or sines
  gpt2: learned,
  gpt_bigcode: learned,
  "openai-gpt": learned,
  gpt_neo: { ...learned, localAttention: true },
  bert: learned,
  electra: learned,
  albert: learned,
  distilbert: learned,
  opt: { ...learned, offset: 2 },
  biogpt: { ...learned, offset: 2 },
  roberta,
  "xlm-roberta": roberta,
  camembert: roberta,
  bart,
  mbart: bart,
  pegasus: { kind: "sinusoidal", layout: "concatenated", stacks: "encoder-decoder" },
  marian: { kind: "sinusoidal", layout: "concatenated", stacks: "encoder-decoder" },

  // A bias on the scores
  bloom: { kind: "alibi", scaledWithScores: false },
  mpt: { kind: "choice", choose: choosesMpt },
  falcon: {
    kind: "choice",
    choose: (record) =>
      record.alibi === true ? { kind: "alibi", scaledWithScores: true } : rotary({ headDim: "computed" }),
  },
  t5: { kind: "t5", everyLayer: false },
  mt5: { kind: "t5", everyLayer: false },
  umt5: { kind: "t5", everyLayer: true },
  longt5: { kind: "t5", everyLayer: false },
  switch_transformers: { kind: "t5", everyLayer: false },

  // Every encoding, layer by layer
  longhand: { kind: "longhand" },
};

/** Models whose configuration repeats another's: multimodal wrappers (their text model), custom code. */
export const familyAliases: Readonly<Record<string, string>> = {
  gemma3: "gemma3_text",
  gemma3n: "gemma3n_text",
  gemma4: "gemma4_text",
  gemma4_unified: "gemma4_text",
  gemma4_unified_text: "gemma4_text",
  llama4: "llama4_text",
  mllama: "mllama_text_model",
  qwen2_vl: "qwen2_vl_text",
  qwen2_5_vl: "qwen2_5_vl_text",
  qwen2_5_omni_text: "qwen2_5_vl_text",
  qwen3_vl: "qwen3_vl_text",
  qwen3_vl_moe: "qwen3_vl_moe_text",
  qwen3_5: "qwen3_5_text",
  qwen3_5_moe: "qwen3_5_moe_text",
  glm4v: "glm4v_text",
  glm4v_moe: "glm4v_moe_text",
  hunyuan_vl: "hunyuan_vl_text",
  paligemma: "gemma",
  llava: "llama",
  mistral3: "mistral",
  kimi_k2: "deepseek_v3",
  kimi_k25: "deepseek_v3",
};

/** EXAONE 4: global layers do not rotate, unless there is no window and every layer is global. */
function rotatesOnSliding(source: { readonly record: JsonObject }, layerType: string): boolean {
  return layerType === "sliding_attention" || source.record.sliding_window === null;
}

/** MPT's own code: ALiBi, or rotary, or a learned table; transformers knows only the first. */
function choosesMpt(record: JsonObject): Exclude<Family, ChoiceFamily> {
  const attention = record.attn_config as JsonObject | null | undefined;
  if (attention?.rope === true) return rotary({ headDim: "computed" });
  if (attention?.alibi === false) return record.learned_pos_emb === false ? { kind: "nope", layers: uniform } : learned;
  return { kind: "alibi", scaledWithScores: false };
}

/** Custom code with the ordinary keys of a rotary model: a Llama, whose share of the head the file may set. */
export const genericRotary: RotaryFamily = partly(1, {
  layers: (source, numLayers) =>
    Array.isArray(source.record.layer_types)
      ? typed({ pattern: allFull })(source, numLayers)
      : windowed({ gate: source.record.use_sliding_window !== undefined })(source, numLayers),
  thetaKeys: ["rope_theta", "rotary_emb_base"],
  partial: {
    honoured: true,
    default: 1,
    keys: ["partial_rotary_factor", "rotary_pct", "rope_pct", "rotary_percentage", "rotary_dim"],
  },
  readsAlpha: true,
  softmaxFactor: true,
});
