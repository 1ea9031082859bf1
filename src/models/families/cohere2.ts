// Cohere (Command R, R+) and Cohere 2 (Command R7B, A): a layer norm without bias, one norm for attention and MLP side by
// side, scaled logits. Which layers of Cohere 2 rotate is the description's. transformers' CohereConfig, Cohere2Config.

import { decoderSpec, flagOrWeight, layerNorm, type ModelFamily } from "../family.ts";
import { ggufNames, huggingFaceNames } from "../names.ts";

const cohereNames = { huggingFace: huggingFaceNames, gguf: ggufNames };

function cohereFamily(name: string, gguf: string): ModelFamily {
  return {
    name,
    huggingFace: [name],
    gguf: [gguf],
    names: cohereNames,
    spec: (settings, description) => {
      const norm = layerNorm(settings, false);
      return decoderSpec(name, settings, description, {
        norm,
        parallel: "one-norm",
        // Command R+: a weight for each head.
        queryKeyNorm: flagOrWeight(settings, "use_qk_norm", "layers.0.queryNorm.weight", false)
          ? { over: "each-head", norm }
          : null,
        inputBias: flagOrWeight(settings, "attention_bias", "layers.0.query.bias", false),
        outputBias: flagOrWeight(settings, "attention_bias", "layers.0.attentionOutput.bias", false),
        head: { scale: settings.number({ huggingFace: "logit_scale", gguf: "logit_scale" }, 0.0625) },
        tiedByDefault: true,
      });
    },
  };
}

export const cohere: ModelFamily = cohereFamily("cohere", "command-r");
export const cohere2: ModelFamily = cohereFamily("cohere2", "cohere2");
