// SmolLM3: Llama with layers that have no positions, which the description's groups say. transformers' SmolLM3Config.

import { decoderSpec, flagOrWeight, type ModelFamily, rmsNorm } from "../family.ts";
import { ggufNames, huggingFaceNames } from "../names.ts";

export const smollm3: ModelFamily = {
  name: "smollm3",
  huggingFace: ["smollm3"],
  gguf: ["smollm3"],
  names: { huggingFace: huggingFaceNames, gguf: ggufNames },
  spec: (settings, description) =>
    decoderSpec("smollm3", settings, description, {
      norm: rmsNorm(settings),
      inputBias: flagOrWeight(settings, "attention_bias", "layers.0.query.bias", false),
      outputBias: flagOrWeight(settings, "attention_bias", "layers.0.attentionOutput.bias", false),
      mlp: { bias: flagOrWeight(settings, "mlp_bias", "layers.0.up.bias", false) },
      tiedByDefault: true,
    }),
};
