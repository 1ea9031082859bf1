// What loading any model may be asked for, and the checks that every model makes of it.

import type { Checkpoint, DecoderOptions } from "../models/index.ts";
import type { Backend } from "./backend.ts";

/** float32: every weight dequantised. quantized: matrices stay in the blocks of the file. */
export type Precision = "float32" | "quantized";

export interface LoadModelOptions {
  /** ONNX Runtime's for this place when absent. */
  readonly backend?: Backend;
  /** "auto" (when absent): quantized where the file holds quantised blocks. */
  readonly precision?: Precision | "auto";
  /** The most tokens that a sequence may have, as the cache's limit; none when absent: the cache grows as needed. */
  readonly capacity?: number;
  /** Of quantised weights: whether the session for decoding is loaded at once, and not at the first `generate`. */
  readonly decoding?: boolean;
  /** Of a model with ALiBi: "dense" accepts any bias by distance among `encodings`, at the cost of scores in memory;
   *  "columns" (when absent) takes none, and only a bias that is linear in the distance. */
  readonly attentionBias?: "columns" | "dense";
  /** Threads of a run; the backend's choice when absent. */
  readonly threads?: number;
  readonly signal?: AbortSignal;
  /** Weights read, of all. */
  readonly onProgress?: (progress: { readonly done: number; readonly total: number }) => void;
}

/** The precision that is meant, and a graph's option for it. Throws RangeError for blocks that the file does not hold. */
export function choosePrecision(
  { precision = "auto" }: LoadModelOptions,
  checkpoint: Checkpoint,
): { readonly precision: Precision; readonly form: Pick<DecoderOptions, "form"> } {
  const { isQuantized } = checkpoint;
  if (precision === "quantized" && !isQuantized) {
    throw new RangeError(
      `load: expected quantised weights for precision "quantized", got floats in ${checkpoint.description.name}`,
    );
  }
  if (precision === "float32" || !isQuantized) return { precision: "float32", form: {} };
  return { precision: "quantized", form: { form: (weight) => checkpoint.form(weight) } };
}

/** Rows that the cache begins with, and the most it may have. Throws RangeError for a capacity that is no such number. */
export function chooseCapacity({ capacity }: LoadModelOptions): { readonly initial: number; readonly limit: number } {
  if (capacity === undefined) return { initial: 0, limit: Number.POSITIVE_INFINITY };
  if (!Number.isInteger(capacity) || capacity < 1) {
    throw new RangeError(`load: expected a capacity that is an integer of at least 1, got ${capacity}`);
  }
  return { initial: capacity, limit: capacity };
}
