// OLMo 2 and 3: nothing is normalised before a block but what it gives is, and queries and keys are over all heads at once.
// OLMo 3 adds windows, which the description's groups say. transformers' Olmo2Config and Olmo3Config; GGUF's "olmo2" is both.

import { decoderSpec, flagOrWeight, type ModelFamily, rmsNorm } from "../family.ts";
import { ggufNames, huggingFaceNames, names } from "../names.ts";

export const olmo2: ModelFamily = {
  name: "olmo2",
  huggingFace: ["olmo2", "olmo3"],
  gguf: ["olmo2"],
  names: {
    huggingFace: names(huggingFaceNames, {
      layer: {
        "attentionPostNorm.weight": "model.layers.{i}.post_attention_layernorm.weight",
        "mlpPostNorm.weight": "model.layers.{i}.post_feedforward_layernorm.weight",
      },
    }),
    gguf: ggufNames,
  },
  spec: (settings, description) => {
    const norm = rmsNorm(settings, 1e-5);
    return decoderSpec("olmo2", settings, description, {
      norm,
      inputNorm: false,
      outputNorm: true,
      queryKeyNorm: { over: "width", norm },
      inputBias: flagOrWeight(settings, "attention_bias", "layers.0.query.bias", false),
      outputBias: flagOrWeight(settings, "attention_bias", "layers.0.attentionOutput.bias", false),
    });
  },
};
