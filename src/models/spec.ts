// A model as plain data: sizes, what each block is made of, and which position group each layer belongs to. Families
// fill it in from config.json or GGUF metadata (families/), one builder turns it into a graph (decoder.ts). Names are
// Hugging Face's in camelCase; a feature that no listed model has is absent.

import type { PositionGroup } from "../formats/model-description.ts";

/** A normalisation over the last axis. Weights hold what multiplies: a checkpoint that stores weight − 1 (Gemma) is
 *  corrected when it is read, not here. */
export interface NormSpec {
  /** rms: x / √(mean(x²) + ε). layer: (x − mean) / √(variance + ε). */
  readonly kind: "rms" | "layer";
  readonly epsilon: number;
  readonly bias: boolean;
}

/** What the gate or the middle of an MLP does to a number. gelu-tanh: gelu_new, gelu_pytorch_tanh. relu2: relu(x)². */
export type Activation = "silu" | "gelu" | "gelu-tanh" | "relu" | "relu2";

export interface AttentionSpec {
  readonly numHeads: number;
  readonly numKeyValueHeads: number;
  readonly headDim: number;
  /** Query, key and value projections add a bias. */
  readonly inputBias: boolean;
  /** The output projection adds a bias. */
  readonly outputBias: boolean;
  /** Queries and keys are normalised before they are rotated: each head on its own by one weight (Qwen 3, Gemma 3) or
   *  by a weight a head (Command R+), or over all heads at once (OLMo 2). */
  readonly queryKeyNorm: { readonly over: "head" | "each-head" | "width"; readonly norm: NormSpec } | null;
  /** Multiplies query · key: 1/√D by custom, softmaxFactor included. */
  readonly scale: number;
  /** c in c · tanh(score / c) (Gemma 2). */
  readonly softcap: number | null;
  /** Keys that a query sees, itself included; null: all before it. */
  readonly window: number | null;
  /** Query, key and value are clamped to ±clip (MPT's and OLMo's clip_qkv). */
  readonly clip: number | null;
  /** A learned logit a head in the softmax that has no value (GPT-OSS). */
  readonly sinks: boolean;
}

export interface MlpSpec {
  /** gated: down(act(gate(x)) · up(x)). plain: down(act(up(x))). */
  readonly kind: "gated" | "plain";
  readonly activation: Activation;
  readonly intermediateSize: number;
  readonly bias: boolean;
}

/**
 * One block. x is the residual stream, A attention, M the MLP:
 *
 *   inputNorm:   A and M read a norm of x (attentionNorm, mlpNorm), else x itself.
 *   outputNorm:  what A and M give is normalised before it is added (attentionPostNorm, mlpPostNorm).
 *   parallel:    "no": x += A; x += M. "two-norms": x += A + M, both of the same x (GPT-NeoX). "one-norm": M reads
 *                attentionNorm too (Cohere, Phi-2).
 *
 * pre-norm is inputNorm alone, OLMo 2 is outputNorm alone, Gemma 2 and 3 ("sandwich") are both.
 */
export interface LayerSpec {
  /** Index into ModelSpec.groups. */
  readonly group: number;
  readonly attention: AttentionSpec;
  readonly mlp: MlpSpec;
  readonly norm: NormSpec;
  readonly inputNorm: boolean;
  readonly outputNorm: boolean;
  readonly parallel: "no" | "two-norms" | "one-norm";
  /** Multiplies what A and M give before it is added (Granite). */
  readonly residualScale: number;
  /** A and M are added to what they read, not to what went into its norm (BLOOM's
   *  apply_residual_connection_post_layernorm). */
  readonly residualFromNorm: boolean;
}

/** A stack of layers that see each other's tokens in both directions, and whose output the decoder attends to (T5). */
export interface EncoderSpec {
  /** How its layers know positions: a learned bias by distance. */
  readonly group: PositionGroup;
  readonly layers: readonly LayerSpec[];
  readonly finalNorm: NormSpec;
  /** Which layers of both stacks have learned a bias of their own; the others use their stack's first. */
  readonly ownBias: "first-layer" | "every-layer";
  /** What a decoder's text begins with. */
  readonly decoderStartToken: number;
}

export interface ModelSpec {
  /** The record in families/ that made it. */
  readonly family: string;
  readonly vocabSize: number;
  readonly hiddenSize: number;
  readonly embedding: {
    /** Multiplies the token embeddings (Gemma: √hiddenSize; Granite). */
    readonly scale: number;
    /** A norm of the embeddings (BLOOM), after positions of the embedding site are added. */
    readonly norm: NormSpec | null;
  };
  /** How layers know positions: the description's groups. */
  readonly groups: readonly PositionGroup[];
  readonly layers: readonly LayerSpec[];
  /** Where the layers attend to the output of an encoder besides; their cross-attention has the self-attention's sizes. */
  readonly encoder?: EncoderSpec;
  /** Before the head; null: none. */
  readonly finalNorm: NormSpec | null;
  readonly head: {
    /** The head's weight is the token embedding. */
    readonly tied: boolean;
    readonly bias: boolean;
    /** Multiplies the logits (Cohere's logit_scale, Granite's 1 / logits_scaling). */
    readonly scale: number;
    /** c in c · tanh(logit / c) (Gemma 2's final_logit_softcapping). */
    readonly softcap: number | null;
  };
}

/** Where positions enter: "rotary", "bias" (added to scores), "embedding" (added to token embeddings), "none". */
export type PositionKind = "rotary" | "bias" | "embedding" | "none";

export function positionKind(group: PositionGroup): PositionKind {
  switch (group.position.site) {
    case "query-key":
      return "rotary";
    case "attention-bias":
      return "bias";
    case "embedding":
      return "embedding";
    case "none":
      return "none";
  }
}
