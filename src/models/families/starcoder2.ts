// StarCoder 2: Llama's shape with layer norms, a plain MLP and biases. transformers' Starcoder2Config, GGUF's
// "starcoder2".

import { decoderSpec, flagOrWeight, keys, layerNorm, type ModelFamily } from "../family.ts";
import { ggufNames, huggingFaceNames, names } from "../names.ts";
import { activationOf } from "../settings.ts";

export const starcoder2: ModelFamily = {
  name: "starcoder2",
  huggingFace: ["starcoder2"],
  gguf: ["starcoder2"],
  names: {
    huggingFace: names(huggingFaceNames, {
      layer: {
        "up.weight": "model.layers.{i}.mlp.c_fc.weight",
        "up.bias": "model.layers.{i}.mlp.c_fc.bias",
        "down.weight": "model.layers.{i}.mlp.c_proj.weight",
        "down.bias": "model.layers.{i}.mlp.c_proj.bias",
      },
    }),
    gguf: ggufNames,
  },
  spec(settings, description) {
    const bias = (weight: string): boolean => flagOrWeight(settings, "use_bias", `layers.0.${weight}.bias`, true);
    return decoderSpec("starcoder2", settings, description, {
      norm: layerNorm(settings, true),
      inputBias: bias("query"),
      outputBias: bias("attentionOutput"),
      mlp: { kind: "plain", bias: bias("up"), activation: activationOf(settings, keys.activation, "gelu-tanh") },
      tiedByDefault: true,
    });
  },
};
