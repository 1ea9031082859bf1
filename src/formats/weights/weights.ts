// What a checkpoint's tensors look like to whoever builds a model from them, whichever format holds them. Shapes are
// row-major, outermost axis first, as Hugging Face writes them (GGUF's dimensions reversed). Rows stay as stored: a GGUF
// or llama2.c Llama keeps q and k in the interleaved order of its rotation.

import { MissingWeightError } from "../../graph/errors.ts";
import { didYouMean } from "../nearest.ts";

/** One tensor as its file lists it. */
export interface WeightInfo {
  readonly name: string;
  /** Outermost axis first; empty for a scalar. */
  readonly shape: readonly number[];
  /** As the format calls it: F32, F16, BF16, …, a ggml type (Q4_0, Q6_K, …), or "Q8" for llama2.c's int8 groups. */
  readonly dtype: string;
  /** Bytes in the file; for llama2.c's int8 groups the scales behind them included. */
  readonly byteLength: number;
  /** The file (a path when opened by path, else its name) and the first byte in it. */
  readonly location: { readonly source: string; readonly offset: number };
}

/**
 * A weight as ONNX Runtime's com.microsoft.MatMulNBits takes it, N rows of K columns:
 *
 *   W[n, k] = scales[n, b] · (q[n, k] − zeroPoint[n, b]) + blockMinimum[n, b],   b = ⌊k / blockSize⌋
 *
 * so that x · Wᵀ = MatMulNBits(x) + blockSums(x) · blockMinimumᵀ, blockSums(x)[t, b] the sum of x over block b.
 */
export interface QuantizedMatrix {
  readonly bits: 4 | 8;
  /** A power of two, at least 16; columns are whole blocks. */
  readonly blockSize: number;
  /** N, the outputs: the product of all axes but the last. */
  readonly rows: number;
  /** K, the inputs. */
  readonly columns: number;
  /** [rows, columns / blockSize, blockSize · bits / 8]; with 4 bits the earlier element in the low nibble. */
  readonly blocks: Uint8Array;
  /** [rows, columns / blockSize]. */
  readonly scales: Float32Array;
  /** Packed as blocks are, [rows, ⌈columns / blockSize · bits / 8⌉]; null: 2^(bits − 1), which every kind here uses. */
  readonly zeroPoints: Uint8Array | null;
  /** [rows, columns / blockSize], or null where nothing needs adding. */
  readonly blockMinimum: Float32Array | null;
  /** The numbers are those of readFloat32 up to float32 rounding of blockMinimum (Q4_1, Q4_K), else the same numbers;
   *  false would mean that they were quantised anew. */
  readonly exact: boolean;
}

/** The form of a QuantizedMatrix. */
export interface QuantizedLayout {
  readonly bits: 4 | 8;
  readonly blockSize: number;
  readonly hasZeroPoints: boolean;
  readonly hasMinimum: boolean;
}

/** A checkpoint's tensors by name. Reads may overlap; after `close` they fail. */
export interface Weights {
  readonly format: "safetensors" | "gguf" | "llama2.c";
  /** In the file's order. */
  readonly names: readonly string[];
  has(name: string): boolean;
  /** @throws MissingWeightError, naming the nearest */
  info(name: string): WeightInfo;
  /**
   * All elements as float32, row-major; 16- and 8-bit floats and quantised kinds without any error of ours.
   *
   * @throws MissingWeightError; TypeError for a kind that is not read, naming those that are; FormatError for NaN or
   *   infinity (unless `checkFinite` is false), naming tensor and index, and for a file that changed since it was opened
   */
  readFloat32(name: string): Promise<Float32Array>;
  /** The bytes as they stand in the file. */
  readRaw(name: string): Promise<Uint8Array>;
  /** The blocks repacked for MatMulNBits; null for a tensor that is not quantised in blocks (a float dtype). */
  readQuantized(name: string): Promise<QuantizedMatrix | null>;
  /** What readQuantized will give, without reading: a graph is built before its weights are there. */
  quantizedLayout(name: string): QuantizedLayout | null;
  /** Waits for reads under way and closes the files. Twice is once. */
  close(): Promise<void>;
}

export interface WeightsOptions {
  /** Refuse NaN and infinity in what is read (default true). */
  readonly checkFinite?: boolean;
}

/** The error for a name that a checkpoint lacks. */
export function missingWeight(name: string, names: readonly string[], where: string): MissingWeightError {
  return new MissingWeightError(
    name,
    `${where}: expected tensor ${JSON.stringify(name)}, got ${names.length} others${didYouMean(name, names)}`,
  );
}
