// T5 1.0, 1.1 and Flan, mT5 and umT5: an encoder and a decoder of pre-norm RMS blocks without biases, scores without
// 1/√D, and a bias learned by distance. transformers' T5Config, MT5Config and UMT5Config (5.24.0), GGUF's "t5".

import { FormatError } from "../../formats/bytes/format-error.ts";
import type { ModelDescription, PositionGroup } from "../../formats/model-description.ts";
import { type DecoderFeatures, decoderSpec, type ModelFamily } from "../family.ts";
import type { NameMap } from "../names.ts";
import { activationOf, type Settings } from "../settings.ts";
import type { MlpSpec, ModelSpec } from "../spec.ts";

const ownHead = "head.weight";

export const t5: ModelFamily = {
  name: "t5",
  huggingFace: ["t5", "mt5", "umt5"],
  gguf: ["t5"],
  names: {
    huggingFace: {
      model: {
        "embedding.weight": "shared.weight",
        "finalNorm.weight": "decoder.final_layer_norm.weight",
        "head.weight": "lm_head.weight",
      },
      layer: {
        ...attentionNames("decoder.block.{i}.layer.0"),
        "crossNorm.weight": "decoder.block.{i}.layer.1.layer_norm.weight",
        "crossQuery.weight": "decoder.block.{i}.layer.1.EncDecAttention.q.weight",
        "crossKey.weight": "decoder.block.{i}.layer.1.EncDecAttention.k.weight",
        "crossValue.weight": "decoder.block.{i}.layer.1.EncDecAttention.v.weight",
        "crossOutput.weight": "decoder.block.{i}.layer.1.EncDecAttention.o.weight",
        ...mlpNames("decoder.block.{i}.layer.2"),
      },
      encoder: {
        model: { "finalNorm.weight": "encoder.final_layer_norm.weight" },
        layer: { ...attentionNames("encoder.block.{i}.layer.0"), ...mlpNames("encoder.block.{i}.layer.1") },
      },
      // Copies of shared.weight; and a bias of cross-attention that early files carry and no code reads.
      ignored: /^(encoder|decoder)\.embed_tokens\.weight$|EncDecAttention\.relative_attention_bias\.weight$/,
    },
    gguf: {
      model: {
        "embedding.weight": "token_embd.weight",
        "finalNorm.weight": "dec.output_norm.weight",
        "head.weight": "output.weight",
      },
      layer: {
        ...ggufStack("dec"),
        "crossNorm.weight": "dec.blk.{i}.cross_attn_norm.weight",
        "crossQuery.weight": "dec.blk.{i}.cross_attn_q.weight",
        "crossKey.weight": "dec.blk.{i}.cross_attn_k.weight",
        "crossValue.weight": "dec.blk.{i}.cross_attn_v.weight",
        "crossOutput.weight": "dec.blk.{i}.cross_attn_o.weight",
      },
      encoder: { model: { "finalNorm.weight": "enc.output_norm.weight" }, layer: ggufStack("enc") },
      ignored: /\.cross_attn_rel_b\.weight$/,
    },
  },
  spec(settings, description) {
    const epsilon = settings.number(
      { huggingFace: "layer_norm_epsilon", gguf: "attention.layer_norm_rms_epsilon" },
      1e-6,
    );
    const norm = { kind: "rms", epsilon, bias: false } as const;
    const mlp = mlpOf(settings);
    const features: DecoderFeatures = {
      norm,
      scale: 1,
      mlp,
      head: { tied: !settings.hasWeight(ownHead), scale: headScale(settings, description, mlp) },
    };
    const stack = (group: PositionGroup): ModelSpec =>
      decoderSpec("t5", settings, { ...description, numLayers: group.layers.length, groups: [group] }, features);
    const [encoder, decoder] = ["encoder", "decoder"].map((type) => {
      const found = description.groups.find(({ layerType }) => layerType === type);
      if (found !== undefined) return found;
      throw new FormatError(
        settings.file,
        `expected a T5 model with an encoder and a decoder, got one without ${type}`,
      );
    }) as [PositionGroup, PositionGroup];
    return {
      ...stack(decoder),
      encoder: {
        group: encoder,
        layers: stack(encoder).layers,
        finalNorm: norm,
        ownBias: hasOwnBiases(settings) ? "every-layer" : "first-layer",
        decoderStartToken: startToken(settings),
      },
    };
  },
};

function attentionNames(block: string): NameMap["layer"] {
  return {
    "attentionNorm.weight": `${block}.layer_norm.weight`,
    "query.weight": `${block}.SelfAttention.q.weight`,
    "key.weight": `${block}.SelfAttention.k.weight`,
    "value.weight": `${block}.SelfAttention.v.weight`,
    "attentionOutput.weight": `${block}.SelfAttention.o.weight`,
    "relativeBias.weight": `${block}.SelfAttention.relative_attention_bias.weight`,
  };
}

/** wi alone is what is activated; of a gated pair it is wi_0. */
function mlpNames(block: string): NameMap["layer"] {
  return {
    "mlpNorm.weight": `${block}.layer_norm.weight`,
    "gate.weight": `${block}.DenseReluDense.wi_0.weight`,
    "up.weight": { tensor: `${block}.DenseReluDense.wi_1.weight`, otherwise: `${block}.DenseReluDense.wi.weight` },
    "down.weight": `${block}.DenseReluDense.wo.weight`,
  };
}

function ggufStack(stack: "enc" | "dec"): NameMap["layer"] {
  const block = `${stack}.blk.{i}`;
  return {
    "attentionNorm.weight": `${block}.attn_norm.weight`,
    "query.weight": `${block}.attn_q.weight`,
    "key.weight": `${block}.attn_k.weight`,
    "value.weight": `${block}.attn_v.weight`,
    "attentionOutput.weight": `${block}.attn_o.weight`,
    "relativeBias.weight": `${block}.attn_rel_b.weight`,
    "mlpNorm.weight": `${block}.ffn_norm.weight`,
    "gate.weight": `${block}.ffn_gate.weight`,
    "up.weight": `${block}.ffn_up.weight`,
    "down.weight": `${block}.ffn_down.weight`,
  };
}

/** dense_act_fn and is_gated_act, which transformers writes beside feed_forward_proj and takes over it; GGUF has the
 *  weights alone: gated by gelu_new, plain by relu, as llama.cpp runs them. */
function mlpOf(settings: Settings): Pick<MlpSpec, "kind" | "activation" | "intermediateSize"> {
  const intermediateSize = settings.count({ huggingFace: "d_ff", gguf: "feed_forward_length" });
  if (settings.format === "gguf") {
    return settings.hasWeight("layers.0.gate.weight")
      ? { kind: "gated", activation: "gelu-tanh", intermediateSize }
      : { kind: "plain", activation: "relu", intermediateSize };
  }
  const key = { huggingFace: "feed_forward_proj" };
  const projection = settings.string(key, settings.modelType === "t5" ? "relu" : "gated-gelu");
  const [, gated, name] = /^(gated-)?([^-]+)$/.exec(projection) ?? [];
  if (name === undefined) {
    throw new FormatError(
      settings.file,
      `expected feed_forward_proj to be an activation or "gated-" and one, got ${JSON.stringify(projection)}`,
    );
  }
  const isGated = settings.flag({ huggingFace: "is_gated_act" }, gated !== undefined);
  const named = projection === "gated-gelu" ? "gelu_new" : name;
  const which = settings.string({ huggingFace: "dense_act_fn" }, named);
  // Through the one list of activations, whichever key says it.
  const activation = activationOf({ ...settings, string: () => which }, key, "relu");
  return { kind: isGated ? "gated" : "plain", activation, intermediateSize };
}

/**
 * d_model^−0.5 in T5 1.0. transformers 5.24.0 takes it from scale_decoder_outputs, else from tie_word_embeddings as the
 * file says it: false means none, whatever is tied; mT5 has none. GGUF has no key: 1.0 is what has a plain MLP and no
 * head of its own (llama.cpp multiplies none, so its losses of 1.0 differ).
 */
function headScale(settings: Settings, { hiddenSize }: ModelDescription, mlp: Pick<MlpSpec, "kind">): number {
  const tied = settings.flag({ huggingFace: "tie_word_embeddings" }, true);
  const scales =
    settings.format === "gguf"
      ? mlp.kind === "plain" && !settings.hasWeight(ownHead)
      : settings.modelType !== "mt5" && settings.flag({ huggingFace: "scale_decoder_outputs" }, tied);
  return scales ? 1 / Math.sqrt(hiddenSize) : 1;
}

/** umT5's layers have learned a bias each. GGUF calls it t5 too. */
function hasOwnBiases(settings: Settings): boolean {
  if (settings.format !== "gguf") return settings.modelType === "umt5";
  return ["layers.1", "encoder.layers.1"].some((layer) => settings.hasWeight(`${layer}.relativeBias.weight`));
}

function startToken(settings: Settings): number {
  const key = "decoder_start_token_id";
  // Every T5 begins with its padding.
  const padding = settings.optional({ huggingFace: "pad_token_id" }) ?? 0;
  return settings.optional({ huggingFace: key, gguf: key }) ?? padding;
}
