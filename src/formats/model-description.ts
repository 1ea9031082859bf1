// What every checkpoint format is read into: the model's shape, and how each layer knows positions. Plain data.

import type { KerpleKind } from "../encodings/kerple.ts";
import type { LogitTemperature } from "../encodings/logit-temperature.ts";
import type { RotaryLayout } from "../encodings/position-encoding.ts";
import type { RopeParameters } from "../encodings/rope/scaling/parameters.ts";
import type { Finding } from "./finding.ts";

/** How one group of layers knows positions, by site. */
export type PositionSettings =
  | { readonly site: "none"; readonly kind: "nope" }
  | {
      readonly site: "embedding";
      readonly kind: "learned";
      readonly hiddenSize: number;
      /** Rows that positions can use: the table's rows less `offset`. */
      readonly numPositions: number;
      /** Rows before position 0's (OPT and BART keep 2). */
      readonly offset: number;
    }
  | {
      readonly site: "embedding";
      readonly kind: "sinusoidal";
      readonly hiddenSize: number;
      readonly layout: "interleaved" | "concatenated";
      readonly theta: number;
      /** e_j of ω_j = theta^(−e_j): j/(C/2), or j/(C/2 − 1) ("fairseq"). */
      readonly exponent?: "vaswani" | "fairseq";
      readonly numPositions: number | null;
    }
  | {
      readonly site: "query-key";
      readonly kind: "rope";
      /** The width that partialRotaryFactor is a share of; qk_rope_head_dim under multi-head latent attention. */
      readonly headDim: number;
      readonly layout: RotaryLayout;
      readonly rope: RopeParameters;
      /** Pairs per axis of a multimodal rotary encoding; text rotates all of them by the same id. */
      readonly mropeSection?: readonly number[];
      readonly mropeInterleaved?: boolean;
    }
  | {
      readonly site: "attention-bias";
      readonly kind: "alibi";
      readonly numHeads: number;
      /** alibi_bias_max of MPT, 8 everywhere else. */
      readonly maxBias: number;
      /** Multiplies every slope; Falcon adds its bias before the 1/√D of the scores. 1 when absent. */
      readonly slopeScale?: number;
    }
  | {
      readonly site: "attention-bias";
      readonly kind: "t5";
      readonly numHeads: number;
      readonly numBuckets: number;
      readonly maxDistance: number;
      readonly bidirectional: boolean;
    }
  | {
      readonly site: "attention-bias";
      readonly kind: "kerple";
      readonly numHeads: number;
      readonly variant: KerpleKind;
    }
  | {
      readonly site: "attention-bias";
      readonly kind: "fire";
      readonly numHeads: number;
      /** Of the network's one hidden layer. */
      readonly hiddenUnits: number;
    };

/** Layers that share their settings. */
export interface PositionGroup {
  /** Indices of the layers, ascending, within their stack. */
  readonly layers: readonly number[];
  /** As in the configuration: full_attention, sliding_attention, chunked_attention; T5: encoder, decoder. */
  readonly layerType?: string;
  readonly position: PositionSettings;
  /** Keys that a query sees, itself included; null: all. */
  readonly slidingWindow: number | null;
  /** Llama 4: attention does not cross multiples of this; null: it does. */
  readonly attentionChunkSize: number | null;
  /** Multiplies queries by a function of position or length; null: none. */
  readonly logitTemperature: LogitTemperature | null;
  /** Multiplies the softmax scale (DeepSeek's m²); 1: none. */
  readonly softmaxFactor: number;
}

export interface ModelDescription {
  /** The file's or folder's name, or general.name. */
  readonly name: string;
  readonly format: "huggingface" | "gguf" | "llama2.c";
  /** Hugging Face's model_type, or GGUF's general.architecture. */
  readonly modelType: string;
  readonly numLayers: number;
  readonly hiddenSize: number;
  readonly numHeads: number;
  readonly numKeyValueHeads: number;
  readonly headDim: number;
  readonly vocabSize: number | null;
  /** Sum of the tensors' elements, where weights were read. */
  readonly numParameters: number | null;
  /** The length that the file claims; null when it claims none (T5, ALiBi without one). */
  readonly maxPositionEmbeddings: number | null;
  /** The length at which the unscaled frequencies were trained: the scaling's originalMaxPositionEmbeddings when it
   *  has one, else maxPositionEmbeddings. */
  readonly trainedLength: number | null;
  readonly groups: readonly PositionGroup[];
  readonly findings: readonly Finding[];
}
