// Qwen 2, 2.5 and 3 (dense): Llama with biases on query, key and value (2), or with normalised heads (3).

import { decoderSpec, flagOrWeight, type ModelFamily, rmsNorm } from "../family.ts";
import { ggufNames, huggingFaceNames } from "../names.ts";

const qwenNames = { huggingFace: huggingFaceNames, gguf: ggufNames };

export const qwen2: ModelFamily = {
  name: "qwen2",
  huggingFace: ["qwen2"],
  gguf: ["qwen2"],
  names: qwenNames,
  spec: (settings, description) =>
    decoderSpec("qwen2", settings, description, { norm: rmsNorm(settings), inputBias: true }),
};

export const qwen3: ModelFamily = {
  name: "qwen3",
  huggingFace: ["qwen3"],
  gguf: ["qwen3"],
  names: qwenNames,
  spec: (settings, description) => {
    const norm = rmsNorm(settings);
    return decoderSpec("qwen3", settings, description, {
      norm,
      queryKeyNorm: { over: "head", norm },
      inputBias: flagOrWeight(settings, "attention_bias", "layers.0.query.bias", false),
      outputBias: flagOrWeight(settings, "attention_bias", "layers.0.attentionOutput.bias", false),
    });
  },
};
