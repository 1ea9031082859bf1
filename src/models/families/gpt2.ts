// GPT-2: learned positions, layer norms with biases, one fused projection, every matrix stored [in, out] (Conv1D).
// transformers' GPT2Config; GGUF's "gpt2" keeps the fusion and turns the matrices. The hub's own gpt2 was saved as a base
// model, without "transformer." before its names.

import { decoderSpec, keys, layerNorm, type ModelFamily } from "../family.ts";
import {
  fusedQueryKeyValue,
  fusedRows,
  ggufFusedNames,
  type NameMap,
  queryKeyValueSizes,
  type WeightRule,
} from "../names.ts";
import { activationOf } from "../settings.ts";

const conv1d = (tensor: string): WeightRule => ({ tensor, transpose: true });

const huggingFace: NameMap = {
  model: {
    "embedding.weight": "transformer.wte.weight",
    "positions.weight": "transformer.wpe.weight",
    "finalNorm.weight": "transformer.ln_f.weight",
    "finalNorm.bias": "transformer.ln_f.bias",
    "head.weight": "lm_head.weight",
  },
  layer: {
    "attentionNorm.weight": "transformer.h.{i}.ln_1.weight",
    "attentionNorm.bias": "transformer.h.{i}.ln_1.bias",
    ...fusedQueryKeyValue("transformer.h.{i}.attn.c_attn", (index) => fusedRows(queryKeyValueSizes, index), {
      transpose: true,
    }),
    "attentionOutput.weight": conv1d("transformer.h.{i}.attn.c_proj.weight"),
    "attentionOutput.bias": "transformer.h.{i}.attn.c_proj.bias",
    "mlpNorm.weight": "transformer.h.{i}.ln_2.weight",
    "mlpNorm.bias": "transformer.h.{i}.ln_2.bias",
    "up.weight": conv1d("transformer.h.{i}.mlp.c_fc.weight"),
    "up.bias": "transformer.h.{i}.mlp.c_fc.bias",
    "down.weight": conv1d("transformer.h.{i}.mlp.c_proj.weight"),
    "down.bias": "transformer.h.{i}.mlp.c_proj.bias",
  },
  // The causal mask, saved as a buffer.
  ignored: /\.attn\.(bias|masked_bias)$/,
  placements: [[["transformer.", ""]]],
};

export const gpt2: ModelFamily = {
  name: "gpt2",
  huggingFace: ["gpt2"],
  gguf: ["gpt2"],
  names: { huggingFace, gguf: ggufFusedNames },
  spec(settings, description) {
    const { headDim, hiddenSize } = description;
    const scaled = settings.flag({ huggingFace: "scale_attn_weights" }, true);
    const byLayer = settings.flag({ huggingFace: "scale_attn_by_inverse_layer_idx" }, false);
    return decoderSpec(
      "gpt2",
      settings,
      description,
      {
        norm: layerNorm(settings, true),
        inputBias: true,
        outputBias: true,
        mlp: {
          kind: "plain",
          bias: true,
          activation: activationOf(settings, keys.activation, "gelu-tanh"),
          intermediateSize: settings.count(keys.intermediateSize, 4 * hiddenSize),
        },
        tiedByDefault: true,
      },
      (layer) => ({ scale: (scaled ? 1 / Math.sqrt(headDim) : 1) / (byLayer ? layer + 1 : 1) }),
    );
  },
};
