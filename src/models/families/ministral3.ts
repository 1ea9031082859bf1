// Ministral (8B 2410) and Ministral 3: Mistral with windows on some layers, and with a factor on each query that grows with
// its position. Both are the description's. transformers' MinistralConfig and Ministral3Config, GGUF's "mistral3".

import { decoderSpec, type ModelFamily, rmsNorm } from "../family.ts";
import { ggufNames, huggingFaceNames } from "../names.ts";

const ministralNames = { huggingFace: huggingFaceNames, gguf: ggufNames };

export const ministral: ModelFamily = {
  name: "ministral",
  huggingFace: ["ministral"],
  // Converted as "llama".
  gguf: [],
  names: ministralNames,
  spec: (settings, description) => decoderSpec("ministral", settings, description, { norm: rmsNorm(settings) }),
};

export const ministral3: ModelFamily = {
  name: "ministral3",
  huggingFace: ["ministral3"],
  gguf: ["mistral3"],
  names: ministralNames,
  spec: (settings, description) => decoderSpec("ministral3", settings, description, { norm: rmsNorm(settings, 1e-5) }),
};
