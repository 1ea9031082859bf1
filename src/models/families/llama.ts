// Llama 1 to 3.x and what repeats it: Mistral, SmolLM2, Yi, TinyLlama. transformers' LlamaConfig and MistralConfig,
// GGUF's "llama", llama2.c.

import { decoderSpec, flagOrWeight, type ModelFamily, rmsNorm } from "../family.ts";
import { ggufNames, huggingFaceNames, names } from "../names.ts";

export const llama: ModelFamily = {
  name: "llama",
  huggingFace: ["llama", "mistral"],
  gguf: ["llama"],
  names: {
    huggingFace: huggingFaceNames,
    gguf: ggufNames,
    llama2c: names(
      {
        model: {
          "embedding.weight": "tok_embeddings.weight",
          "finalNorm.weight": "norm.weight",
          "head.weight": "output.weight",
        },
        layer: {
          "attentionNorm.weight": "layers.{i}.attention_norm.weight",
          "query.weight": "layers.{i}.attention.wq.weight",
          "key.weight": "layers.{i}.attention.wk.weight",
          "value.weight": "layers.{i}.attention.wv.weight",
          "attentionOutput.weight": "layers.{i}.attention.wo.weight",
          "mlpNorm.weight": "layers.{i}.ffn_norm.weight",
          "gate.weight": "layers.{i}.feed_forward.w1.weight",
          "down.weight": "layers.{i}.feed_forward.w2.weight",
          "up.weight": "layers.{i}.feed_forward.w3.weight",
        },
      },
      {},
    ),
  },
  spec: (settings, description) =>
    decoderSpec("llama", settings, description, {
      norm: rmsNorm(settings),
      inputBias: flagOrWeight(settings, "attention_bias", "layers.0.query.bias", false),
      outputBias: flagOrWeight(settings, "attention_bias", "layers.0.attentionOutput.bias", false),
      mlp: { bias: flagOrWeight(settings, "mlp_bias", "layers.0.up.bias", false) },
    }),
};
