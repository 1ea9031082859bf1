// Which class of transformers a trained model is, by its blocks and encodings, and the config.json that says so. What no
// class can be is written in the project's own form.

import type { LogitTemperature } from "../../encodings/logit-temperature.ts";
import { toHuggingFace } from "../../formats/huggingface/index.ts";
import { bloom } from "../../models/families/bloom.ts";
import { gpt2 } from "../../models/families/gpt2.ts";
import { llama } from "../../models/families/llama.ts";
import { longhand } from "../../models/families/longhand.ts";
import { mpt } from "../../models/families/mpt.ts";
import { qwen3 } from "../../models/families/qwen.ts";
import { smollm3 } from "../../models/families/smollm3.ts";
import type { ModelFamily } from "../../models/family.ts";
import type { AttentionSpec, MlpSpec, NormSpec } from "../../models/spec.ts";
import type { TrainableSpec } from "../model.ts";
import { type NamedEncoding, type PositionEntry, positionEncodingJson, temperatureJson } from "./positions.ts";

/** The forms by the families that read them. */
export type ExportForm = "llama" | "qwen3" | "smollm3" | "mpt" | "bloom" | "gpt2" | "longhand";

export interface FormInput {
  readonly spec: TrainableSpec;
  readonly entries: readonly PositionEntry[];
  readonly trainedLength: number;
  readonly temperature: LogitTemperature | null;
}

export interface Form {
  readonly form: ExportForm;
  readonly family: ModelFamily;
  /** config.json, without dtype and the ids of special tokens. */
  readonly config: Readonly<Record<string, unknown>>;
}

/** What all layers share. */
interface Blocks {
  readonly attention: AttentionSpec;
  readonly mlp: MlpSpec;
  readonly norm: NormSpec;
  readonly kind: "llama" | "gpt2" | "mpt" | "bloom" | "other";
}

/** Types that transformers 5.24.0 can build for a whole head. */
const transformersRopes: readonly string[] = ["default", "linear", "dynamic", "yarn", "longrope", "llama3"];

/**
 * The form of a model.
 *
 * @param wanted "longhand" asks for the own form even where a class of transformers fits
 * @throws RangeError for what no form can be, naming the possibilities
 */
export function chooseForm(input: FormInput, wanted?: "longhand"): Form {
  const blocks = blocksOf(input.spec);
  const encodings = input.entries.map(({ encoding }) => encoding);
  const windowed = input.entries.some(({ window }) => window !== null);
  const first = encodings[0]!;
  const alone = encodings.every((one) => JSON.stringify(one) === JSON.stringify(first)) ? first : undefined;
  if (input.temperature !== null && !encodings.some(({ type }) => type === "none")) {
    throw new RangeError(
      "exportModel: expected layers without positions for a logit temperature, got " +
        `${[...new Set(encodings.map(({ type }) => type))].join(", ")}; leave logitTemperature out`,
    );
  }
  if (wanted !== "longhand" && !windowed) {
    if (blocks.kind === "llama") {
      const normed = blocks.attention.queryKeyNorm !== null;
      if (alone !== undefined && isPlainRope(alone))
        return normed ? qwen3Form(input, blocks) : llamaForm(input, blocks);
      const ropes = encodings.filter(({ type }) => type !== "none");
      const oneRope = ropes.every((one) => isPlainRope(one) && JSON.stringify(one) === JSON.stringify(ropes[0]));
      if (!normed && oneRope) return smollm3Form(input, blocks);
    }
    if (alone?.type === "alibi" && alone.maxBias === 8) {
      if (blocks.kind === "mpt") return mptForm(input, blocks);
      if (blocks.kind === "bloom") return bloomForm(input, blocks);
    }
    if (alone?.type === "learned" && blocks.kind === "gpt2") return gpt2Form(input, blocks, alone.numPositions);
  }
  return longhandForm(input, blocks);
}

/** What every layer is made of. Throws RangeError where layers differ or a block is none that a form has. */
function blocksOf(spec: TrainableSpec): Blocks {
  const [first] = spec.layers;
  if (first === undefined || spec.finalNorm === null) {
    throw new RangeError("exportModel: expected layers and a last norm, got none");
  }
  const { attention, mlp, norm } = first;
  const same = spec.layers.every(
    (layer) =>
      JSON.stringify({ ...layer, group: 0, attention: { ...layer.attention, window: null } }) ===
      JSON.stringify({ ...first, group: 0, attention: { ...attention, window: null } }),
  );
  const { head, embedding, finalNorm } = spec;
  const common =
    same &&
    first.inputNorm &&
    !first.outputNorm &&
    first.parallel === "no" &&
    first.residualScale === 1 &&
    !first.residualFromNorm &&
    attention.softcap === null &&
    attention.clip === null &&
    !attention.sinks &&
    (attention.queryKeyNorm === null || attention.queryKeyNorm.over === "head") &&
    attention.inputBias === attention.outputBias &&
    attention.inputBias === mlp.bias &&
    [finalNorm, embedding.norm ?? norm, attention.queryKeyNorm?.norm ?? norm].every(
      (one) => JSON.stringify(one) === JSON.stringify(norm),
    ) &&
    norm.bias === (norm.kind === "layer" && mlp.bias) &&
    !head.bias &&
    head.scale === 1 &&
    head.softcap === null;
  if (!common) {
    throw new RangeError(
      "exportModel: expected a spec of smallDecoder, whose blocks are those of Llama, GPT-2, MPT or BLOOM (llamaBlocks, " +
        "gpt2Blocks, mptBlocks, bloomBlocks) or a mixture of their options, got other blocks",
    );
  }
  return { attention, mlp, norm, kind: kindOf(spec, attention, mlp, norm) };
}

function kindOf(spec: TrainableSpec, attention: AttentionSpec, mlp: MlpSpec, norm: NormSpec): Blocks["kind"] {
  const { hiddenSize, embedding } = spec;
  const { numHeads, numKeyValueHeads, headDim, scale, queryKeyNorm } = attention;
  if (scale !== 1 / Math.sqrt(headDim) || embedding.scale !== 1) return "other";
  if (norm.kind === "rms") {
    const fits = mlp.kind === "gated" && mlp.activation === "silu" && !mlp.bias && embedding.norm === null;
    return fits ? "llama" : "other";
  }
  const plain = mlp.kind === "plain" && numKeyValueHeads === numHeads && numHeads * headDim === hiddenSize;
  if (!plain || queryKeyNorm !== null) return "other";
  const isFourfold = mlp.intermediateSize === 4 * hiddenSize;
  if (!mlp.bias) {
    return mlp.activation === "gelu" && isFourfold && embedding.norm === null ? "mpt" : "other";
  }
  if (mlp.activation !== "gelu-tanh") return "other";
  if (embedding.norm === null) return "gpt2";
  return isFourfold ? "bloom" : "other";
}

/** RoPE on whole heads in Llama's layout, under a scaling that transformers has. */
function isPlainRope(encoding: NamedEncoding): encoding is Extract<NamedEncoding, { type: "rope" }> {
  if (encoding.type !== "rope" || encoding.layout !== "half") return false;
  const { ropeType, partialRotaryFactor } = encoding.config.rope;
  return transformersRopes.includes(ropeType) && (partialRotaryFactor ?? 1) === 1;
}

/** The length that frequencies are computed with, which dynamic and longrope read; else the trained one. */
function maxPositions({ entries, trainedLength }: FormInput): number {
  const scaled = entries.flatMap(({ encoding }) =>
    encoding.type === "rope" && encoding.config.rope.ropeType !== "default" ? [encoding.config] : [],
  );
  const lengths = new Set(scaled.map((config) => config.maxPositionEmbeddings));
  if (lengths.size > 1) {
    throw new RangeError(
      `exportModel: expected scalings of one maxPositionEmbeddings, got ${[...lengths].join(" and ")}`,
    );
  }
  return scaled[0]?.maxPositionEmbeddings ?? trainedLength;
}

/** Sizes under Llama's names. */
function llamaSizes({ spec }: FormInput, { attention, mlp }: Blocks): Record<string, unknown> {
  return {
    vocab_size: spec.vocabSize,
    hidden_size: spec.hiddenSize,
    intermediate_size: mlp.intermediateSize,
    num_hidden_layers: spec.layers.length,
    num_attention_heads: attention.numHeads,
    num_key_value_heads: attention.numKeyValueHeads,
    head_dim: attention.headDim,
  };
}

function llamaConfig(input: FormInput, blocks: Blocks): Record<string, unknown> {
  const rope = input.entries.map(({ encoding }) => encoding).find(({ type }) => type === "rope");
  return {
    ...llamaSizes(input, blocks),
    hidden_act: "silu",
    rms_norm_eps: blocks.norm.epsilon,
    attention_bias: false,
    attention_dropout: 0,
    max_position_embeddings: maxPositions(input),
    // A model without rotation has a base all the same: the classes ask for one.
    rope_parameters: toHuggingFace(
      rope?.type === "rope" ? rope.config.rope : { ropeType: "default", ropeTheta: 10000 },
    ),
    tie_word_embeddings: input.spec.head.tied,
  };
}

function llamaForm(input: FormInput, blocks: Blocks): Form {
  return {
    form: "llama",
    family: llama,
    config: {
      architectures: ["LlamaForCausalLM"],
      model_type: "llama",
      ...llamaConfig(input, blocks),
      mlp_bias: false,
    },
  };
}

function qwen3Form(input: FormInput, blocks: Blocks): Form {
  return {
    form: "qwen3",
    family: qwen3,
    config: {
      architectures: ["Qwen3ForCausalLM"],
      model_type: "qwen3",
      ...llamaConfig(input, blocks),
      use_sliding_window: false,
      sliding_window: null,
    },
  };
}

function smollm3Form(input: FormInput, blocks: Blocks): Form {
  const rotates = new Set(
    input.entries.flatMap(({ layers, encoding }) => (encoding.type === "rope" ? [...layers] : [])),
  );
  return {
    form: "smollm3",
    family: smollm3,
    config: {
      architectures: ["SmolLM3ForCausalLM"],
      model_type: "smollm3",
      ...llamaConfig(input, blocks),
      mlp_bias: false,
      use_sliding_window: false,
      // 1: the layer rotates. The name says the opposite.
      no_rope_layers: input.spec.layers.map((_, layer) => (rotates.has(layer) ? 1 : 0)),
      ...(input.temperature === null ? {} : { longhand_logit_temperature: temperatureJson(input.temperature) }),
    },
  };
}

function mptForm({ spec, trainedLength }: FormInput, { attention, norm }: Blocks): Form {
  return {
    form: "mpt",
    family: mpt,
    config: {
      architectures: ["MptForCausalLM"],
      model_type: "mpt",
      vocab_size: spec.vocabSize,
      d_model: spec.hiddenSize,
      n_heads: attention.numHeads,
      n_layers: spec.layers.length,
      expansion_ratio: 4,
      // transformers makes its bias as long as this.
      max_seq_len: trainedLength,
      layer_norm_epsilon: norm.epsilon,
      no_bias: true,
      emb_pdrop: 0,
      resid_pdrop: 0,
      attn_config: { alibi: true, alibi_bias_max: 8, attn_pdrop: 0, attn_type: "multihead_attention" },
      tie_word_embeddings: spec.head.tied,
    },
  };
}

function bloomForm({ spec, trainedLength }: FormInput, { attention, norm }: Blocks): Form {
  return {
    form: "bloom",
    family: bloom,
    config: {
      architectures: ["BloomForCausalLM"],
      model_type: "bloom",
      vocab_size: spec.vocabSize,
      hidden_size: spec.hiddenSize,
      n_layer: spec.layers.length,
      n_head: attention.numHeads,
      seq_length: trainedLength,
      layer_norm_epsilon: norm.epsilon,
      apply_residual_connection_post_layernorm: false,
      hidden_dropout: 0,
      attention_dropout: 0,
      tie_word_embeddings: spec.head.tied,
    },
  };
}

function gpt2Form({ spec }: FormInput, { attention, mlp, norm }: Blocks, numPositions: number): Form {
  return {
    form: "gpt2",
    family: gpt2,
    config: {
      architectures: ["GPT2LMHeadModel"],
      model_type: "gpt2",
      vocab_size: spec.vocabSize,
      n_embd: spec.hiddenSize,
      n_layer: spec.layers.length,
      n_head: attention.numHeads,
      n_inner: mlp.intermediateSize,
      n_positions: numPositions,
      activation_function: "gelu_new",
      layer_norm_epsilon: norm.epsilon,
      scale_attn_weights: true,
      embd_pdrop: 0,
      resid_pdrop: 0,
      attn_pdrop: 0,
      tie_word_embeddings: spec.head.tied,
    },
  };
}

const activationNames = { silu: "silu", gelu: "gelu", "gelu-tanh": "gelu_new", relu: "relu", relu2: "relu2" } as const;

function longhandForm(input: FormInput, blocks: Blocks): Form {
  const { attention, mlp, norm } = blocks;
  const { spec, entries, temperature } = input;
  if (entries.filter(({ encoding }) => encoding.type === "learned" || encoding.type === "sinusoidal").length > 1) {
    throw new RangeError(
      "exportModel: expected at most one encoding that adds rows to the embeddings, for layers of one window; got more",
    );
  }
  const isDefault = attention.scale === 1 / Math.sqrt(attention.headDim);
  return {
    form: "longhand",
    family: longhand,
    config: {
      architectures: ["LonghandForCausalLM"],
      model_type: "longhand",
      ...llamaSizes(input, blocks),
      hidden_act: activationNames[mlp.activation],
      norm_type: norm.kind,
      norm_eps: norm.epsilon,
      mlp_type: mlp.kind,
      use_bias: mlp.bias,
      ...(spec.embedding.scale === 1 ? {} : { embedding_scale: spec.embedding.scale }),
      embedding_norm: spec.embedding.norm !== null,
      query_key_norm: attention.queryKeyNorm !== null,
      ...(isDefault ? {} : { attention_scale: attention.scale }),
      max_position_embeddings: maxPositions(input),
      tie_word_embeddings: spec.head.tied,
      position_encoding: positionEncodingJson(entries, temperature),
    },
  };
}
