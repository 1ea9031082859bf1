// Gemma 1, 2 and 3 (text): RMS norms that multiply by 1 + weight, embeddings times √hiddenSize, gelu by
// tanh, tied heads. 2 and 3 normalise what a block gives as well; 2 caps scores and logits; 3 normalises heads. transformers'
// GemmaConfig, Gemma2Config, Gemma3TextConfig; GGUF keeps norms with the 1 added.
//
// In bfloat16 transformers rounds √hiddenSize too (√640 to 25.25); in float32, here and in llama.cpp, it stays as it is.

import { FormatError } from "../../formats/bytes/format-error.ts";
import type { ModelDescription } from "../../formats/model-description.ts";
import { type DecoderFeatures, decoderSpec, flagOrWeight, type ModelFamily, rmsNorm } from "../family.ts";
import { ggufNames, huggingFaceNames, type NameMap, names } from "../names.ts";
import { activationOf, type Settings } from "../settings.ts";

const plusOne = (tensor: string) => ({ tensor, add: 1 });
const layer = "model.layers.{i}";

const gemmaNames: NameMap = names(huggingFaceNames, {
  model: { "finalNorm.weight": plusOne("model.norm.weight") },
  layer: {
    "attentionNorm.weight": plusOne(`${layer}.input_layernorm.weight`),
    "mlpNorm.weight": plusOne(`${layer}.post_attention_layernorm.weight`),
  },
});

/** Norms before and after each block. */
const sandwichNames: NameMap = names(gemmaNames, {
  layer: {
    "attentionPostNorm.weight": plusOne(`${layer}.post_attention_layernorm.weight`),
    "mlpNorm.weight": plusOne(`${layer}.pre_feedforward_layernorm.weight`),
    "mlpPostNorm.weight": plusOne(`${layer}.post_feedforward_layernorm.weight`),
  },
});

const headNormNames: NameMap = names(sandwichNames, {
  layer: {
    "queryNorm.weight": plusOne(`${layer}.self_attn.q_norm.weight`),
    "keyNorm.weight": plusOne(`${layer}.self_attn.k_norm.weight`),
  },
});

function gemmaFeatures(settings: Settings, description: ModelDescription): DecoderFeatures {
  if (settings.flag({ huggingFace: "use_bidirectional_attention" }, false)) {
    throw new FormatError(
      settings.file,
      "expected use_bidirectional_attention to be false, got true: a model whose tokens see those after them gives no " +
        "loss of a next token",
    );
  }
  return {
    norm: rmsNorm(settings),
    embeddingScale: Math.fround(Math.sqrt(description.hiddenSize)),
    inputBias: flagOrWeight(settings, "attention_bias", "layers.0.query.bias", false),
    outputBias: flagOrWeight(settings, "attention_bias", "layers.0.attentionOutput.bias", false),
    tiedByDefault: true,
  };
}

/**
 * 1 / √query_pre_attn_scalar. GGUF has no key for it: llama.cpp takes the head's width, and the width of the model by its
 * heads for the 27B models, which it knows by their number of layers.
 */
function scoreScale(settings: Settings, description: ModelDescription, layersOf27B: number): number {
  const { hiddenSize, numHeads, headDim, numLayers } = description;
  if (settings.format !== "gguf") {
    return 1 / Math.sqrt(settings.number({ huggingFace: "query_pre_attn_scalar" }, 256));
  }
  return 1 / Math.sqrt(numLayers === layersOf27B ? Math.floor(hiddenSize / numHeads) : headDim);
}

const scoreCap = { huggingFace: "attn_logit_softcapping", gguf: "attn_logit_softcapping" };
const logitCap = { huggingFace: "final_logit_softcapping", gguf: "final_logit_softcapping" };
// Their classes read hidden_activation alone; released files have a hidden_act beside it that says otherwise.
const activation = (settings: Settings) => activationOf(settings, { huggingFace: "hidden_activation" }, "gelu-tanh");

export const gemma: ModelFamily = {
  name: "gemma",
  huggingFace: ["gemma"],
  gguf: ["gemma"],
  names: { huggingFace: gemmaNames, gguf: ggufNames },
  spec: (settings, description) => {
    // "gelu" in the first files means gelu by tanh.
    const act = activationOf(settings, { huggingFace: "hidden_act" }, "gelu-tanh");
    return decoderSpec("gemma", settings, description, {
      ...gemmaFeatures(settings, description),
      mlp: { activation: act === "gelu" ? "gelu-tanh" : act },
      vocabSize: 256_000,
    });
  },
};

export const gemma2: ModelFamily = {
  name: "gemma2",
  huggingFace: ["gemma2"],
  gguf: ["gemma2"],
  names: { huggingFace: sandwichNames, gguf: ggufNames },
  spec: (settings, description) =>
    decoderSpec("gemma2", settings, description, {
      ...gemmaFeatures(settings, description),
      outputNorm: true,
      scale: scoreScale(settings, description, 46),
      softcap: settings.optional(scoreCap, 50),
      mlp: { activation: activation(settings) },
      head: { softcap: settings.optional(logitCap, 30) },
      vocabSize: 256_000,
    }),
};

export const gemma3: ModelFamily = {
  name: "gemma3",
  huggingFace: ["gemma3_text"],
  gguf: ["gemma3"],
  names: { huggingFace: headNormNames, gguf: ggufNames },
  spec: (settings, description) => {
    const features = gemmaFeatures(settings, description);
    return decoderSpec("gemma3", settings, description, {
      ...features,
      outputNorm: true,
      queryKeyNorm: { over: "head", norm: features.norm! },
      scale: scoreScale(settings, description, 62),
      mlp: { activation: activation(settings) },
      // Gemma 3's class keeps attn_logit_softcapping and never applies it. llama.cpp reads 0 as none.
      head: { softcap: settings.optional(logitCap) || null },
      vocabSize: 262_208,
    });
  },
};
