// StableLM 2 and 3B: Llama with layer norms, rotary positions on a part of each head, perhaps with attention and MLP in
// parallel and a norm a head (12B). transformers' StableLmConfig, GGUF's "stablelm".

import { FormatError } from "../../formats/bytes/format-error.ts";
import { decoderSpec, flagOrWeight, layerNorm, type ModelFamily } from "../family.ts";
import { ggufNames, huggingFaceNames } from "../names.ts";

export const stablelm: ModelFamily = {
  name: "stablelm",
  huggingFace: ["stablelm"],
  gguf: ["stablelm"],
  names: { huggingFace: huggingFaceNames, gguf: ggufNames },
  spec(settings, description) {
    const norm = layerNorm(settings, true);
    if (settings.flag({ huggingFace: "qk_layernorm" }, false)) {
      throw new FormatError(
        settings.file,
        "expected qk_layernorm false, got true: a tensor a head is not read; a GGUF file of the model, which joins " +
          "them, can be run",
      );
    }
    const hasHeadNorms = settings.hasWeight("layers.0.queryNorm.weight");
    // llama.cpp tells it by the norm that is missing.
    const parallel =
      settings.format === "gguf"
        ? !settings.hasWeight("layers.0.mlpNorm.weight")
        : settings.flag({ huggingFace: "use_parallel_residual" }, false);
    return decoderSpec("stablelm", settings, description, {
      norm,
      parallel: parallel ? "one-norm" : "no",
      inputBias: flagOrWeight(settings, "use_qkv_bias", "layers.0.query.bias", false),
      queryKeyNorm: hasHeadNorms ? { over: "each-head", norm: { ...norm, bias: false } } : null,
    });
  },
};
