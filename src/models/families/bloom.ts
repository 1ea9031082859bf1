// BLOOM: ALiBi, a norm on the embeddings, biases, query, key and value fused head by head ([H, 3, D]), gelu by tanh.
// transformers' BloomConfig; GGUF's "bloom" fuses all queries, then keys, then values. The hub's checkpoints were saved
// as base models, without "transformer." before their names.

import { decoderSpec, layerNorm, type ModelFamily } from "../family.ts";
import { fusedHeads, fusedQueryKeyValue, ggufFusedNames, type NameMap } from "../names.ts";

const huggingFace: NameMap = {
  model: {
    "embedding.weight": "transformer.word_embeddings.weight",
    "embeddingNorm.weight": "transformer.word_embeddings_layernorm.weight",
    "embeddingNorm.bias": "transformer.word_embeddings_layernorm.bias",
    "finalNorm.weight": "transformer.ln_f.weight",
    "finalNorm.bias": "transformer.ln_f.bias",
    "head.weight": "lm_head.weight",
  },
  layer: {
    "attentionNorm.weight": "transformer.h.{i}.input_layernorm.weight",
    "attentionNorm.bias": "transformer.h.{i}.input_layernorm.bias",
    ...fusedQueryKeyValue("transformer.h.{i}.self_attention.query_key_value", (index) => fusedHeads(3, index)),
    "attentionOutput.weight": "transformer.h.{i}.self_attention.dense.weight",
    "attentionOutput.bias": "transformer.h.{i}.self_attention.dense.bias",
    "mlpNorm.weight": "transformer.h.{i}.post_attention_layernorm.weight",
    "mlpNorm.bias": "transformer.h.{i}.post_attention_layernorm.bias",
    "up.weight": "transformer.h.{i}.mlp.dense_h_to_4h.weight",
    "up.bias": "transformer.h.{i}.mlp.dense_h_to_4h.bias",
    "down.weight": "transformer.h.{i}.mlp.dense_4h_to_h.weight",
    "down.bias": "transformer.h.{i}.mlp.dense_4h_to_h.bias",
  },
  placements: [[["transformer.", ""]]],
};

export const bloom: ModelFamily = {
  name: "bloom",
  huggingFace: ["bloom"],
  gguf: ["bloom"],
  names: { huggingFace, gguf: ggufFusedNames },
  spec(settings, description) {
    const norm = layerNorm(settings, true);
    return decoderSpec("bloom", settings, description, {
      norm,
      embeddingNorm: norm,
      residualFromNorm: settings.flag({ huggingFace: "apply_residual_connection_post_layernorm" }, false),
      inputBias: true,
      outputBias: true,
      mlp: { kind: "plain", bias: true, activation: "gelu-tanh", intermediateSize: 4 * description.hiddenSize },
      tiedByDefault: true,
    });
  },
};
