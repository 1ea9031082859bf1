// Phi 1, 1.5 and 2: rotary positions on a part of each head, attention and MLP in parallel after one norm, biases
// everywhere, the head's too. transformers' PhiConfig, GGUF's "phi2".

import { decoderSpec, keys, layerNorm, type ModelFamily } from "../family.ts";
import { ggufNames, huggingFaceNames, names } from "../names.ts";
import { activationOf } from "../settings.ts";

export const phi: ModelFamily = {
  name: "phi",
  huggingFace: ["phi"],
  gguf: ["phi2"],
  names: {
    huggingFace: names(huggingFaceNames, {
      model: {
        "finalNorm.weight": "model.final_layernorm.weight",
        "finalNorm.bias": "model.final_layernorm.bias",
      },
      layer: {
        "queryNorm.weight": "model.layers.{i}.self_attn.q_layernorm.weight",
        "queryNorm.bias": "model.layers.{i}.self_attn.q_layernorm.bias",
        "keyNorm.weight": "model.layers.{i}.self_attn.k_layernorm.weight",
        "keyNorm.bias": "model.layers.{i}.self_attn.k_layernorm.bias",
        "attentionOutput.weight": "model.layers.{i}.self_attn.dense.weight",
        "attentionOutput.bias": "model.layers.{i}.self_attn.dense.bias",
        "up.weight": "model.layers.{i}.mlp.fc1.weight",
        "up.bias": "model.layers.{i}.mlp.fc1.bias",
        "down.weight": "model.layers.{i}.mlp.fc2.weight",
        "down.bias": "model.layers.{i}.mlp.fc2.bias",
      },
    }),
    gguf: ggufNames,
  },
  spec(settings, description) {
    const norm = layerNorm(settings, true);
    return decoderSpec("phi", settings, description, {
      norm,
      parallel: "one-norm",
      inputBias: true,
      outputBias: true,
      queryKeyNorm: settings.flag({ huggingFace: "qk_layernorm" }, false) ? { over: "head", norm } : null,
      mlp: {
        kind: "plain",
        bias: true,
        activation: activationOf(settings, keys.activation, "gelu-tanh"),
        intermediateSize: settings.count(keys.intermediateSize, 4 * description.hiddenSize),
      },
      head: { bias: true },
    });
  },
};
