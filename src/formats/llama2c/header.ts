// The header of a llama2.c checkpoint (karpathy/llama2.c, export.py): seven 32-bit integers and weights in a fixed
// order without names. Version 0 is only that; versions 1 (float32) and 2 (int8 in groups) start with "ak42" and a
// 256-byte header. Nothing in the file can be checked but its size, so that is checked exactly.

import type { ByteSource } from "../bytes/byte-source.ts";
import { HeaderReader } from "../bytes/header-reader.ts";

export interface Llama2cHeader {
  readonly file: string;
  readonly fileSize: number;
  readonly version: 0 | 1 | 2;
  /** dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size, seq_len of the file, under Hugging Face's names. */
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly numLayers: number;
  readonly numHeads: number;
  readonly numKeyValueHeads: number;
  readonly vocabSize: number;
  readonly maxPositionEmbeddings: number;
  /** The output layer is the token embedding. Version 0 says no by a negative vocabulary size. */
  readonly tiedEmbeddings: boolean;
  /** Weights that share one scale in version 2; null otherwise. */
  readonly groupSize: number | null;
  /** First byte of the weights. */
  readonly dataOffset: number;
  /** Trained weights: without version 0's rotary tables and version 2's scales. */
  readonly numParameters: number;
}

const magic = 0x616b3432;
const headerBytes = 256;

/**
 * Reads the header of a llama2.c `.bin`, version 0, 1 or 2.
 *
 * @throws FormatError for sizes that contradict each other, or a file that is not exactly as long as they say
 * @example
 * ```ts
 * import { describeLlama2c, memorySource, readLlama2cHeader } from "longhand/formats";
 * const file = new Uint8Array(28 + 4 * 34); // 32 weights and two tables of one number
 * new Int32Array(file.buffer, 0, 7).set([2, 1, 1, 1, 1, 2, 1]); // dim, hidden_dim, layers, heads, kv heads, vocab, seq
 * const header = await readLlama2cHeader(memorySource("tiny.bin", file));
 * header.numParameters; // => 32
 * describeLlama2c(header).trainedLength; // => 1
 * ```
 */
export async function readLlama2cHeader(source: ByteSource): Promise<Llama2cHeader> {
  const reader = new HeaderReader(source, { windowBytes: headerBytes });
  const first = await reader.u32("the first number of the header");
  let version: 0 | 1 | 2 = 0;
  if (first === magic) {
    const at = reader.position;
    const written = await reader.i32("the version");
    if (written !== 1 && written !== 2) throw reader.error(`expected llama2.c version 1 or 2, got ${written}`, at);
    version = written;
  }
  const size = async (what: string, given?: number, most = 2 ** 24): Promise<number> => {
    const at = given === undefined ? reader.position : 0;
    const value = given === undefined ? await reader.i32(what) : given | 0;
    // 2^24 is far above any model's and keeps every product below 2^53.
    if (value < 1 || value > most) {
      const hint = given === undefined ? "" : ": is it a llama2.c file?";
      throw reader.error(`expected ${what} from 1 to ${most}, got ${value}${hint}`, at);
    }
    return value;
  };
  const hiddenSize = await size("dim", version === 0 ? first : undefined);
  const intermediateSize = await size("hidden_dim");
  const numLayers = await size("n_layers", undefined, 4096);
  const numHeads = await size("n_heads");
  const numKeyValueHeads = await size("n_kv_heads");
  const vocabAt = reader.position;
  const signedVocab = await reader.i32("vocab_size");
  const vocabSize = version === 0 ? Math.abs(signedVocab) : signedVocab;
  if (vocabSize < 1 || vocabSize > 2 ** 24) {
    throw reader.error(`expected vocab_size from 1 to ${2 ** 24}, got ${signedVocab}`, vocabAt);
  }
  const maxPositionEmbeddings = await size("seq_len");
  let tiedEmbeddings = signedVocab > 0;
  let groupSize: number | null = null;
  if (version > 0) {
    tiedEmbeddings = await reader.bool("shared_classifier");
    if (version === 2) groupSize = await size("group_size");
  }

  if (hiddenSize % numHeads !== 0 || (hiddenSize / numHeads) % 2 !== 0) {
    throw reader.error(`expected dim to be n_heads times an even number, got ${hiddenSize} and ${numHeads} heads`, 0);
  }
  if (numHeads % numKeyValueHeads !== 0) {
    throw reader.error(`expected n_heads to be a multiple of n_kv_heads, got ${numHeads} and ${numKeyValueHeads}`, 0);
  }
  const headDim = hiddenSize / numHeads;
  const keyValueDim = headDim * numKeyValueHeads;
  const norms = (2 * numLayers + 1) * hiddenSize;
  const matrices = [
    vocabSize * hiddenSize,
    ...(tiedEmbeddings ? [] : [vocabSize * hiddenSize]),
    // wq, wo; wk, wv; w1, w2, w3: by layer, as version 2 forms its groups within one layer's matrix.
    ...[hiddenSize * hiddenSize, hiddenSize * keyValueDim, hiddenSize * intermediateSize],
  ];
  const [perLayerSquare, perLayerKeyValue, perLayerWide] = matrices.slice(-3) as [number, number, number];
  const layers = numLayers * (2 * perLayerSquare + 2 * perLayerKeyValue + 3 * perLayerWide);
  const weights = layers + vocabSize * hiddenSize * (tiedEmbeddings ? 1 : 2);

  let dataOffset = headerBytes;
  let bytes = 4 * (weights + norms);
  if (version === 0) {
    dataOffset = reader.position;
    // Two tables of the rotary frequencies, seq_len × headDim / 2 each, which readers skip.
    bytes += 4 * maxPositionEmbeddings * headDim;
  } else if (groupSize !== null) {
    for (const count of matrices) {
      if (count % groupSize !== 0) {
        throw reader.error(`expected every matrix in whole groups of ${groupSize}, got one of ${count} weights`, 0);
      }
    }
    bytes = 4 * norms + weights + 4 * (weights / groupSize);
  }
  if (dataOffset + bytes !== source.size) {
    throw reader.error(
      `expected a file of ${dataOffset + bytes} bytes for these sizes (dim ${hiddenSize}, hidden_dim ` +
        `${intermediateSize}, ${numLayers} layers, vocab_size ${signedVocab}, seq_len ${maxPositionEmbeddings}), ` +
        `got ${source.size}` +
        (version === 0 ? ": it is cut short, or not a llama2.c file" : ""),
      0,
    );
  }
  return {
    file: source.name,
    fileSize: source.size,
    version,
    hiddenSize,
    intermediateSize,
    numLayers,
    numHeads,
    numKeyValueHeads,
    vocabSize,
    maxPositionEmbeddings,
    tiedEmbeddings,
    groupSize,
    dataOffset,
    numParameters: weights + norms,
  };
}
