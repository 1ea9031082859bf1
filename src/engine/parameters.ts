// A checkpoint's weights as a graph wants them: each is read once, and its parts go to the parameters that name it.

import type { QuantizedMatrix } from "../formats/weights/index.ts";
import {
  type Checkpoint,
  type DecoderProgram,
  type ParameterSource,
  readFrom,
  type WeightFile,
} from "../models/index.ts";
import { elementCount, type Tensor, tensor } from "../tensor/index.ts";
import type { FileWeight, WeightSource } from "./backend.ts";

export interface ReadOptions {
  /** Whether weights may stay in their files, where those hold them as a graph wants them; not when absent. */
  readonly inFiles?: boolean;
  readonly signal?: AbortSignal;
  readonly onProgress?: (done: number, total: number) => void;
}

/** The checkpoint's weights that programs read. */
export function weightsOf(...programs: readonly Pick<DecoderProgram, "parameters">[]): Set<string> {
  const sources = programs.flatMap(({ parameters }) => [...parameters.values()]);
  return new Set(sources.flatMap(readFrom).map(({ weight }) => weight));
}

/**
 * Every parameter of a program as a tensor, or where it lies: float32 weights stay in their files where next to all bytes
 * can. They are read all the same, one after the other, so that what is broken is found.
 *
 * @throws what reading throws: MissingWeightError, RangeError for a wrong shape, FormatError for NaN
 */
export async function readParameters(
  program: Pick<DecoderProgram, "parameters">,
  checkpoint: Checkpoint,
  { signal, onProgress, inFiles = false }: ReadOptions = {},
): Promise<Map<string, WeightSource>> {
  const byWeight = new Map<string, [string, ParameterSource][]>();
  for (const entry of program.parameters) {
    const list = byWeight.get(entry[1].weight);
    if (list === undefined) byWeight.set(entry[1].weight, [entry]);
    else list.push(entry);
  }
  const out = new Map<string, WeightSource>();
  const stay = inFiles ? filesOf([...byWeight.values()], checkpoint) : new Map<string, WeightFile>();
  const total = weightsOf(program).size;
  let done = 0;
  for (const entries of byWeight.values()) {
    signal?.throwIfAborted();
    const { weight, part } = entries[0]![1];
    const stored = readFrom(entries[0]![1]);
    if (part === "float32") {
      const parts: Float32Array[] = [];
      for (const one of stored) parts.push(await checkpoint.readFloat32(one.weight, one.shape));
      const file = stay.get(weight);
      if (file === undefined) {
        const data = concatenate(parts);
        for (const [name, source] of entries) out.set(name, floats(data, source));
      } else {
        for (const [name, source] of entries) out.set(name, floatsInFile(file, source));
      }
    } else {
      const parts: QuantizedMatrix[] = [];
      for (const one of stored) parts.push(await checkpoint.readQuantized(one.weight, one.shape as [number, number]));
      const matrix = joinMatrices(parts);
      for (const [name, source] of entries) out.set(name, quantizedPart(matrix, source));
    }
    done += stored.length;
    onProgress?.(done, total);
  }
  return out;
}

function concatenate<A extends Float32Array | Uint8Array>(parts: readonly A[]): A {
  const first = parts[0]!;
  if (parts.length === 1) return first;
  const out = new (first.constructor as new (length: number) => A)(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part as never, at);
    at += part.length;
  }
  return out;
}

/** Matrices of one form and width, one below the other. */
function joinMatrices(parts: readonly QuantizedMatrix[]): QuantizedMatrix {
  const first = parts[0]!;
  if (parts.length === 1) return first;
  const joinOf = <A extends Float32Array | Uint8Array>(get: (matrix: QuantizedMatrix) => A | null): A | null =>
    get(first) === null ? null : concatenate(parts.map((part) => get(part)!));
  return {
    ...first,
    rows: parts.reduce((sum, { rows }) => sum + rows, 0),
    blocks: concatenate(parts.map(({ blocks }) => blocks)),
    scales: concatenate(parts.map(({ scales }) => scales)),
    zeroPoints: joinOf(({ zeroPoints }) => zeroPoints),
    blockMinimum: joinOf(({ blockMinimum }) => blockMinimum),
  };
}

/** Files of the weights that can stay there; none where more than an eighth of all bytes cannot: what is in memory
 *  besides is written into the model. */
function filesOf(
  weights: readonly (readonly [string, ParameterSource][])[],
  checkpoint: Checkpoint,
): Map<string, WeightFile> {
  const out = new Map<string, WeightFile>();
  let others = 0;
  let inside = 0;
  for (const [entry] of weights) {
    const source = entry![1];
    const file = source.part === "float32" && source.joined === undefined ? checkpoint.file(source.weight) : null;
    const bytes = 4 * elementCount(source.shape);
    if (file === null) others += bytes;
    else {
      inside += bytes;
      out.set(source.weight, file);
    }
  }
  return others > inside / 8 ? new Map() : out;
}

/** The shape of a parameter, and where it begins in its weight, in elements. */
function partOf({ rows, shape }: ParameterSource): { readonly shape: readonly number[]; readonly from: number } {
  if (rows === undefined) return { shape, from: 0 };
  return { shape: [rows[1] - rows[0], ...shape.slice(1)], from: rows[0] * elementCount(shape.slice(1)) };
}

function floatsInFile({ file, offset }: WeightFile, source: ParameterSource): FileWeight {
  const { shape, from } = partOf(source);
  return { dtype: "f32", shape, file, offset: offset + 4 * from, length: 4 * elementCount(shape) };
}

function floats(data: Float32Array, source: ParameterSource): Tensor {
  const { shape, from } = partOf(source);
  return tensor("f32", shape, data.subarray(from, from + elementCount(shape)));
}

function quantizedPart(matrix: QuantizedMatrix, source: ParameterSource): Tensor {
  const { bits, blockSize, columns } = matrix;
  const [from, to] = source.rows ?? [0, matrix.rows];
  const count = to - from;
  const blocks = columns / blockSize;
  const bytes = (blockSize * bits) / 8;
  const cut = <A extends Uint8Array | Float32Array>(data: A, width: number): A =>
    data.subarray(from * width, to * width) as A;
  switch (source.part) {
    case "blocks":
      return tensor("u8", [count, blocks, bytes], cut(matrix.blocks, blocks * bytes));
    case "scales":
      return tensor("f32", [count, blocks], cut(matrix.scales, blocks));
    case "zeroPoints": {
      const width = Math.ceil((blocks * bits) / 8);
      return tensor("u8", [count, width], cut(matrix.zeroPoints!, width));
    }
    case "minimum":
      return tensor("f32", [count, blocks], cut(matrix.blockMinimum!, blocks));
    case "float32":
      throw new Error(`internal: ${source.weight} is quantised`);
  }
}
