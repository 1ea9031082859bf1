// What a model family is: a record of which files it reads, how its settings become a ModelSpec, and what its weights
// are called. `decoderSpec` fills in everything that families share; a record states its differences from Llama.

import { FormatError } from "../formats/bytes/format-error.ts";
import type { ModelDescription, PositionGroup } from "../formats/model-description.ts";
import type { NameMap } from "./names.ts";
import { activationOf, type Settings } from "./settings.ts";
import type { Activation, AttentionSpec, LayerSpec, MlpSpec, ModelSpec, NormSpec } from "./spec.ts";

export interface ModelFamily {
  readonly name: string;
  /** Values of model_type (of the text model's part) that this record reads. */
  readonly huggingFace: readonly string[];
  /** Values of general.architecture. */
  readonly gguf: readonly string[];
  readonly names: { readonly huggingFace: NameMap; readonly gguf?: NameMap; readonly llama2c?: NameMap };
  spec(settings: Settings, description: ModelDescription): ModelSpec;
}

/** Differences of a family from Llama: pre-norm RMS, gated SiLU, no biases, scale 1/√D. */
export interface DecoderFeatures {
  /** Norm of blocks and before the head. */
  readonly norm?: NormSpec;
  readonly inputNorm?: boolean;
  readonly outputNorm?: boolean;
  readonly parallel?: LayerSpec["parallel"];
  readonly residualScale?: number;
  readonly residualFromNorm?: boolean;
  readonly inputBias?: boolean;
  readonly outputBias?: boolean;
  readonly queryKeyNorm?: AttentionSpec["queryKeyNorm"];
  /** Before a group's softmaxFactor multiplies it. */
  readonly scale?: number;
  readonly softcap?: number | null;
  readonly clip?: number | null;
  readonly sinks?: boolean;
  readonly mlp?: Partial<MlpSpec>;
  readonly embeddingScale?: number;
  readonly embeddingNorm?: NormSpec | null;
  readonly head?: Partial<ModelSpec["head"]>;
  /** Where config.json leaves vocab_size out (a text_config that holds differences from its class). */
  readonly vocabSize?: number;
  /** Where the head is tied when config.json does not say (PreTrainedConfig: true). */
  readonly tiedByDefault?: boolean;
}

/** The common keys of config.json and GGUF. */
export const keys = {
  vocabSize: { huggingFace: ["vocab_size", "padded_vocab_size"], gguf: "vocab_size" },
  intermediateSize: { huggingFace: ["intermediate_size", "n_inner", "ffn_dim"], gguf: "feed_forward_length" },
  rmsEpsilon: { huggingFace: "rms_norm_eps", gguf: "attention.layer_norm_rms_epsilon" },
  layerEpsilon: {
    huggingFace: ["layer_norm_eps", "layer_norm_epsilon", "norm_epsilon"],
    gguf: "attention.layer_norm_epsilon",
  },
  activation: { huggingFace: ["hidden_activation", "hidden_act", "activation_function"] },
  tied: { huggingFace: "tie_word_embeddings" },
} as const;

/** RMS norm with the file's epsilon. */
export function rmsNorm(settings: Settings, fallback = 1e-6): NormSpec {
  return { kind: "rms", epsilon: settings.number(keys.rmsEpsilon, fallback), bias: false };
}

/** Layer norm with the file's epsilon. */
export function layerNorm(settings: Settings, bias: boolean, fallback = 1e-5): NormSpec {
  return { kind: "layer", epsilon: settings.number(keys.layerEpsilon, fallback), bias };
}

/** A flag of config.json; in the other formats the weight tells. */
export function flagOrWeight(settings: Settings, key: string, weight: string, fallback: boolean): boolean {
  return settings.format === "huggingface" ? settings.flag({ huggingFace: key }, fallback) : settings.hasWeight(weight);
}

/** The spec of a decoder: sizes and positions from the description, the rest from settings and features. */
export function decoderSpec(
  family: string,
  settings: Settings,
  description: ModelDescription,
  features: DecoderFeatures = {},
  perLayer: (layer: number, group: PositionGroup) => DecoderFeatures = () => ({}),
): ModelSpec {
  const { numLayers, numHeads, numKeyValueHeads, headDim, hiddenSize, groups } = description;
  const layers: LayerSpec[] = [];
  const intermediateSize = features.mlp?.intermediateSize ?? settings.count(keys.intermediateSize);
  const activation: Activation = features.mlp?.activation ?? activationOf(settings, keys.activation, "silu");
  const groupOf = new Map<number, number>();
  groups.forEach((group, index) => {
    for (const layer of group.layers) groupOf.set(layer, index);
    if (group.attentionChunkSize !== null) {
      throw new FormatError(
        settings.file,
        `expected attention over all keys or a window, got chunks of ${group.attentionChunkSize}: not supported`,
      );
    }
  });
  for (let layer = 0; layer < numLayers; layer++) {
    const index = groupOf.get(layer);
    if (index === undefined) {
      throw new FormatError(settings.file, `expected attention in every layer, got none in layer ${layer}`);
    }
    const group = groups[index]!;
    const own = { ...features, ...perLayer(layer, group) };
    layers.push({
      group: index,
      attention: {
        numHeads,
        numKeyValueHeads,
        headDim,
        inputBias: own.inputBias ?? false,
        outputBias: own.outputBias ?? false,
        queryKeyNorm: own.queryKeyNorm ?? null,
        scale: (own.scale ?? 1 / Math.sqrt(headDim)) * group.softmaxFactor,
        softcap: own.softcap ?? null,
        window: group.slidingWindow,
        clip: own.clip ?? null,
        sinks: own.sinks ?? false,
      },
      mlp: {
        kind: own.mlp?.kind ?? "gated",
        activation: own.mlp?.activation ?? activation,
        intermediateSize: own.mlp?.intermediateSize ?? intermediateSize,
        bias: own.mlp?.bias ?? false,
      },
      norm: own.norm ?? rmsNorm(settings),
      inputNorm: own.inputNorm ?? true,
      outputNorm: own.outputNorm ?? false,
      parallel: own.parallel ?? "no",
      residualScale: own.residualScale ?? 1,
      residualFromNorm: own.residualFromNorm ?? false,
    });
  }
  const tied =
    settings.format === "gguf"
      ? !settings.hasWeight("head.weight")
      : settings.flag(keys.tied, features.tiedByDefault ?? false);
  return {
    family,
    vocabSize: description.vocabSize ?? settings.count(keys.vocabSize, features.vocabSize),
    hiddenSize,
    embedding: { scale: features.embeddingScale ?? 1, norm: features.embeddingNorm ?? null },
    groups,
    layers,
    finalNorm: features.norm ?? rmsNorm(settings),
    head: {
      tied: features.head?.tied ?? tied,
      bias: features.head?.bias ?? false,
      scale: features.head?.scale ?? 1,
      softcap: features.head?.softcap ?? null,
    },
  };
}
