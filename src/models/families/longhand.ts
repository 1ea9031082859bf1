// The project's own form (docs/longhand-form.md): pre-norm blocks of one kind in all layers, with any encoding in each.
// Names are Llama's, with those of what Llama lacks.

import { FormatError } from "../../formats/bytes/format-error.ts";
import { decoderSpec, type ModelFamily } from "../family.ts";
import { huggingFaceNames, names } from "../names.ts";
import { activationOf, type SettingKey, type Settings } from "../settings.ts";
import type { NormSpec } from "../spec.ts";

const attention = "model.layers.{i}.self_attn";

export const longhand: ModelFamily = {
  name: "longhand",
  huggingFace: ["longhand"],
  gguf: [],
  names: {
    huggingFace: names(huggingFaceNames, {
      model: {
        "embeddingNorm.weight": "model.embed_norm.weight",
        "embeddingNorm.bias": "model.embed_norm.bias",
        "positions.weight": "model.embed_positions.weight",
      },
      layer: {
        "relativeBias.weight": `${attention}.relative_attention_bias.weight`,
        "kerple.r1": `${attention}.kerple.r1`,
        "kerple.r2": `${attention}.kerple.r2`,
        "fire.c": `${attention}.fire.c`,
        "fire.threshold": `${attention}.fire.threshold`,
        "fire.layers.0.weight": `${attention}.fire.layers.0.weight`,
        "fire.layers.0.bias": `${attention}.fire.layers.0.bias`,
        "fire.layers.1.weight": `${attention}.fire.layers.1.weight`,
        "fire.layers.1.bias": `${attention}.fire.layers.1.bias`,
      },
    }),
  },
  spec(settings, description) {
    const kind = choice(settings, "norm_type", "rms", "layer");
    const mlp = choice(settings, "mlp_type", "gated", "plain");
    const bias = settings.flag({ huggingFace: "use_bias" }, false);
    const norm: NormSpec = {
      kind,
      epsilon: settings.number({ huggingFace: "norm_eps" }, 1e-5),
      bias: kind === "layer" && bias,
    };
    const scale = settings.optional({ huggingFace: "attention_scale" });
    return decoderSpec("longhand", settings, description, {
      norm,
      inputBias: bias,
      outputBias: bias,
      queryKeyNorm: settings.flag({ huggingFace: "query_key_norm" }, false) ? { over: "head", norm } : null,
      ...(scale === null ? {} : { scale }),
      mlp: { kind: mlp, bias, activation: activationOf(settings, activation, mlp === "gated" ? "silu" : "gelu") },
      embeddingScale: settings.number({ huggingFace: "embedding_scale" }, 1),
      embeddingNorm: settings.flag({ huggingFace: "embedding_norm" }, false) ? norm : null,
      tiedByDefault: true,
    });
  },
};

const activation: SettingKey = { huggingFace: "hidden_act" };

function choice<T extends string>(settings: Settings, key: string, first: T, second: T): T {
  const value = settings.string({ huggingFace: key }, first);
  if (value === first || value === second) return value as T;
  throw new FormatError(settings.file, `expected ${key} to be "${first}" or "${second}", got ${JSON.stringify(value)}`);
}
