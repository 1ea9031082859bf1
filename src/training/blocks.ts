// Presets of smallDecoder's options: the blocks of four published decoders, so that what is trained with them is exported
// as a model of that class (export/). Each takes sizes alone; what makes the block is fixed here.

import type { SmallDecoderOptions } from "./model.ts";

/** Sizes, and what layers see; the block decides the rest. */
export type BlockSizes = Pick<
  SmallDecoderOptions,
  "vocabSize" | "hiddenSize" | "numLayers" | "numHeads" | "normEpsilon" | "groups"
>;

/** What Llama's class leaves open besides. */
export type LlamaBlockSizes = BlockSizes &
  Pick<SmallDecoderOptions, "numKeyValueHeads" | "headDim" | "queryKeyNorm" | "tied"> & {
    /** 8/3 · hiddenSize up to a multiple of 32 when absent: a gated MLP then has as many weights as a plain one of 4
     *  times the width (Shazeer 2020, 2002.05202). */
    readonly intermediateSize?: number;
  };

/**
 * Llama's blocks: RMS norms before each part, gated SiLU, no biases (Touvron et al. 2023, 2302.13971, section 2.2).
 * With `queryKeyNorm` they are Qwen 3's.
 *
 * @example
 * ```ts
 * import { llamaBlocks, smallDecoder } from "longhand/training";
 * const spec = smallDecoder(llamaBlocks({ vocabSize: 256, hiddenSize: 64, numLayers: 2, numHeads: 4 }));
 * spec.layers[0].mlp.intermediateSize; // => 192
 * ```
 */
export function llamaBlocks(sizes: LlamaBlockSizes): SmallDecoderOptions {
  const intermediateSize = sizes.intermediateSize ?? 32 * Math.ceil((8 * sizes.hiddenSize) / 3 / 32);
  return { ...sizes, intermediateSize, norm: "rms", mlp: "gated", activation: "silu", bias: false };
}

/**
 * GPT-2's blocks: layer norms before each part, GELU by tanh, biases everywhere, a plain MLP of 4 times the width, the
 * head tied to the embedding (Radford et al. 2019, section 2.3).
 *
 * @example
 * ```ts
 * import { gpt2Blocks } from "longhand/training";
 * gpt2Blocks({ vocabSize: 256, hiddenSize: 64, numLayers: 2, numHeads: 4 }).activation; // => "gelu-tanh"
 * ```
 */
export function gpt2Blocks(sizes: BlockSizes): SmallDecoderOptions {
  return { ...plainBlocks(sizes), activation: "gelu-tanh", bias: true };
}

/**
 * MPT's blocks: layer norms without biases before each part, exact GELU, no biases, a plain MLP of 4 times the width, the
 * head tied to the embedding (MosaicML 2023, MPT-7B).
 *
 * @example
 * ```ts
 * import { mptBlocks } from "longhand/training";
 * mptBlocks({ vocabSize: 256, hiddenSize: 64, numLayers: 2, numHeads: 4 }).bias; // => false
 * ```
 */
export function mptBlocks(sizes: BlockSizes): SmallDecoderOptions {
  return { ...plainBlocks(sizes), activation: "gelu", bias: false };
}

/**
 * BLOOM's blocks: GPT-2's, and a norm of the embeddings (BigScience 2022, 2211.05100, section 3.2).
 *
 * @example
 * ```ts
 * import { bloomBlocks } from "longhand/training";
 * bloomBlocks({ vocabSize: 256, hiddenSize: 64, numLayers: 2, numHeads: 4 }).embeddingNorm; // => true
 * ```
 */
export function bloomBlocks(sizes: BlockSizes): SmallDecoderOptions {
  return { ...gpt2Blocks(sizes), embeddingNorm: true };
}

function plainBlocks(sizes: BlockSizes): SmallDecoderOptions {
  return { ...sizes, intermediateSize: 4 * sizes.hiddenSize, norm: "layer", mlp: "plain", tied: true };
}
