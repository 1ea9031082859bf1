// Tensors of a llama2.c checkpoint. The file has no names; these are Meta's, which its exporter reads them from:
//
//   tok_embeddings.weight [V, C]          layers.{i}.attention_norm.weight [C]
//   norm.weight [C]                       layers.{i}.attention.wq.weight, wo [C, C];  wk, wv [K·D, C]
//   output.weight [V, C], where the       layers.{i}.ffn_norm.weight [C]
//   classifier is not the embedding       layers.{i}.feed_forward.w1.weight (gate), w3 (up) [F, C];  w2 (down) [C, F]
//
// Orders after llama2.c's export.py and run.c: version 0 lists each kind for all layers, with two rotary tables before the
// classifier; versions 1 and 2 put all norms first. In version 2 a matrix is its int8 values, then one float32 scale a
// group. Rows of wq and wk pair neighbouring channels, as in GGUF.

import type { Llama2cHeader } from "../llama2c/index.ts";
import type { Codec } from "./codec.ts";
import { type FileAccess, filesOf, type StoredFile } from "./files.ts";
import { plainCodecs } from "./plain.ts";
import { elementsOf, type StoredTensor, WeightStore } from "./store.ts";
import type { Weights, WeightsOptions } from "./weights.ts";

const codecs: ReadonlyMap<string, Codec> = new Map(
  plainCodecs.filter((codec) => codec.name === "F32").map((codec) => [codec.name, codec]),
);

/**
 * The tensors of a llama2.c checkpoint of any version. A tied classifier is not listed again: `has("output.weight")` is
 * false where the output layer is `tok_embeddings.weight`.
 *
 * @param header what readLlama2cHeader gave
 * @param access opens the file at the first read
 * @example
 * ```ts
 * import { llama2cWeights, memorySource, readLlama2cHeader } from "longhand/formats";
 * const file = new Uint8Array(28 + 4 * 34);
 * new Int32Array(file.buffer, 0, 7).set([2, 1, 1, 1, 1, 2, 1]); // dim, hidden_dim, layers, heads, kv heads, vocab, seq
 * new Float32Array(file.buffer, 28, 4).set([1, 2, 3, 4]);
 * const source = memorySource("tiny.bin", file);
 * const weights = llama2cWeights(await readLlama2cHeader(source), { open: async () => source });
 * weights.info("tok_embeddings.weight").shape; // => [2, 2]
 * Array.from(await weights.readFloat32("tok_embeddings.weight")); // => [1, 2, 3, 4]
 * weights.has("output.weight"); // => false
 * ```
 */
export function llama2cWeights(header: Llama2cHeader, access: FileAccess, options: WeightsOptions = {}): Weights {
  const file = filesOf([header], access)(header.file);
  return new WeightStore("llama2.c", header.file, tensorsOf(header, file), codecs, options);
}

function tensorsOf(header: Llama2cHeader, file: StoredFile): StoredTensor[] {
  const { version, groupSize, hiddenSize: width, intermediateSize: wide, numLayers, vocabSize } = header;
  const headDim = width / header.numHeads;
  const narrow = headDim * header.numKeyValueHeads;
  const tensors: StoredTensor[] = [];
  let offset = header.dataOffset;
  const add = (name: string, shape: readonly number[]): void => {
    const elements = elementsOf(shape);
    const groups = version === 2 && shape.length === 2 ? groupSize : null;
    const byteLength = groups === null ? 4 * elements : elements + 4 * (elements / groups);
    const dtype = groups === null ? "F32" : "Q8";
    tensors.push({ name, shape, dtype, file, offset, byteLength, ...(groups === null ? {} : { groupSize: groups }) });
    offset += byteLength;
  };
  const addEach = (name: string, shape: readonly number[]): void => {
    for (let layer = 0; layer < numLayers; layer++) add(`layers.${layer}.${name}.weight`, shape);
  };
  const embedding = (): void => add("tok_embeddings.weight", [vocabSize, width]);
  const attentionMatrices = (): void => {
    addEach("attention.wq", [width, width]);
    addEach("attention.wk", [narrow, width]);
    addEach("attention.wv", [narrow, width]);
    addEach("attention.wo", [width, width]);
  };
  const feedForwardMatrices = (): void => {
    addEach("feed_forward.w1", [wide, width]);
    addEach("feed_forward.w2", [width, wide]);
    addEach("feed_forward.w3", [wide, width]);
  };
  if (version === 0) {
    embedding();
    addEach("attention_norm", [width]);
    attentionMatrices();
    addEach("ffn_norm", [width]);
    feedForwardMatrices();
    add("norm.weight", [width]);
    // cos and sin of the rotary angles, seq_len × headDim / 2 each: computed anew by every reader.
    offset += 4 * header.maxPositionEmbeddings * headDim;
  } else {
    addEach("attention_norm", [width]);
    addEach("ffn_norm", [width]);
    add("norm.weight", [width]);
    embedding();
    attentionMatrices();
    feedForwardMatrices();
  }
  if (!header.tiedEmbeddings) add("output.weight", [vocabSize, width]);
  if (offset !== header.fileSize) {
    throw new Error(`internal: expected the tensors of ${header.file} to end at ${header.fileSize}, got ${offset}`);
  }
  return tensors;
}
