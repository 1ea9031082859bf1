// GPT-NeoX and Pythia: rotary positions on a part of each head, attention and MLP in parallel (or in turn), biases,
// query, key and value fused head by head ([H, 3, D]). transformers' GPTNeoXConfig; GGUF's "gptneox" fuses all queries,
// then keys, then values. GGUF has no key for the activation: Pythia's exact gelu, as transformers assumes, is taken.

import { decoderSpec, flagOrWeight, keys, layerNorm, type ModelFamily } from "../family.ts";
import { fusedHeads, fusedQueryKeyValue, ggufFusedNames, type NameMap } from "../names.ts";
import { activationOf } from "../settings.ts";

const huggingFace: NameMap = {
  model: {
    "embedding.weight": "gpt_neox.embed_in.weight",
    "finalNorm.weight": "gpt_neox.final_layer_norm.weight",
    "finalNorm.bias": "gpt_neox.final_layer_norm.bias",
    "head.weight": "embed_out.weight",
  },
  layer: {
    "attentionNorm.weight": "gpt_neox.layers.{i}.input_layernorm.weight",
    "attentionNorm.bias": "gpt_neox.layers.{i}.input_layernorm.bias",
    ...fusedQueryKeyValue("gpt_neox.layers.{i}.attention.query_key_value", (index) => fusedHeads(3, index)),
    "attentionOutput.weight": "gpt_neox.layers.{i}.attention.dense.weight",
    "attentionOutput.bias": "gpt_neox.layers.{i}.attention.dense.bias",
    "mlpNorm.weight": "gpt_neox.layers.{i}.post_attention_layernorm.weight",
    "mlpNorm.bias": "gpt_neox.layers.{i}.post_attention_layernorm.bias",
    "up.weight": "gpt_neox.layers.{i}.mlp.dense_h_to_4h.weight",
    "up.bias": "gpt_neox.layers.{i}.mlp.dense_h_to_4h.bias",
    "down.weight": "gpt_neox.layers.{i}.mlp.dense_4h_to_h.weight",
    "down.bias": "gpt_neox.layers.{i}.mlp.dense_4h_to_h.bias",
  },
  // Buffers of older versions: the causal mask and the frequencies.
  ignored: /\.attention\.(bias|masked_bias|rotary_emb\.inv_freq)$/,
  placements: [[["gpt_neox.", ""]]],
};

export const gptNeox: ModelFamily = {
  name: "gpt_neox",
  huggingFace: ["gpt_neox"],
  gguf: ["gptneox"],
  names: { huggingFace, gguf: ggufFusedNames },
  spec(settings, description) {
    const parallel = settings.flag({ huggingFace: "use_parallel_residual", gguf: "use_parallel_residual" }, true);
    return decoderSpec("gpt_neox", settings, description, {
      norm: layerNorm(settings, true),
      parallel: parallel ? "two-norms" : "no",
      inputBias: flagOrWeight(settings, "attention_bias", "layers.0.query.bias", true),
      outputBias: flagOrWeight(settings, "attention_bias", "layers.0.attentionOutput.bias", true),
      mlp: { kind: "plain", bias: true, activation: activationOf(settings, keys.activation, "gelu") },
    });
  },
};
