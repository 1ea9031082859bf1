// Writes GGUF files of any version for tests, after docs/gguf.md of ggml. Independent of the reader under test: it
// shares no table with it.

import { ByteWriter, utf8 } from "./byte-writer.ts";

const typeIds = {
  u8: 0,
  i8: 1,
  u16: 2,
  i16: 3,
  u32: 4,
  i32: 5,
  f32: 6,
  bool: 7,
  string: 8,
  array: 9,
  u64: 10,
  i64: 11,
  f64: 12,
};
type TypeName = keyof typeof typeIds;

export interface WrittenArray {
  readonly of: TypeName;
  readonly values: readonly Value[];
}
export type Value = number | bigint | boolean | string | WrittenArray;
export type Entry = readonly [key: string, type: TypeName, value: Value];

export interface WrittenTensor {
  readonly name: string;
  readonly dimensions: readonly number[];
  /** Number in ggml's enumeration, and the bytes of the data. */
  readonly type: number;
  /** A number: so many bytes, which `headerOnly` leaves to the caller. */
  readonly data: Uint8Array | number;
  /** Written in place of the true offset. */
  readonly offset?: number;
}

export interface GgufSpec {
  readonly version?: 1 | 2 | 3;
  readonly alignment?: number;
  readonly metadata: readonly Entry[];
  readonly tensors?: readonly WrittenTensor[];
  /** Stop where the data start: for sparse files. */
  readonly headerOnly?: boolean;
}

const bytesOf = ({ data }: WrittenTensor): number => (typeof data === "number" ? data : data.length);

/** Bytes of all tensors, padded. */
export function ggufDataBytes({ tensors = [], alignment = 32 }: GgufSpec): number {
  return tensors.reduce((sum, tensor) => sum + Math.ceil(bytesOf(tensor) / alignment) * alignment, 0);
}

export function writeGguf(spec: GgufSpec): Uint8Array<ArrayBuffer> {
  const { version = 3, alignment = 32, metadata, tensors = [] } = spec;
  const out = new ByteWriter();
  const size = (value: number | bigint): void => {
    if (version === 1) out.u32(Number(value));
    else out.u64(value);
  };
  const text = (value: string): void => {
    const bytes = utf8(value);
    size(bytes.length);
    out.bytes(bytes);
  };
  const write = (type: TypeName, value: Value): void => {
    switch (type) {
      case "u8":
      case "i8":
        out.u8(Number(value) & 255);
        break;
      case "bool":
        out.u8(value === true ? 1 : 0);
        break;
      case "u16":
      case "i16":
        out.u16(Number(value) & 65535);
        break;
      case "u32":
      case "i32":
        out.u32(Number(value) >>> 0);
        break;
      case "u64":
      case "i64":
        out.u64(BigInt.asUintN(64, BigInt(value as number | bigint)));
        break;
      case "f32":
        out.f32(Number(value));
        break;
      case "f64":
        out.f64(Number(value));
        break;
      case "string":
        text(value as string);
        break;
      case "array": {
        const { of, values } = value as WrittenArray;
        out.u32(typeIds[of]);
        size(values.length);
        for (const one of values) write(of, one);
      }
    }
  };
  out.bytes(utf8("GGUF")).u32(version);
  size(tensors.length);
  size(metadata.length);
  for (const [key, type, value] of metadata) {
    text(key);
    out.u32(typeIds[type]);
    write(type, value);
  }
  let offset = 0;
  for (const tensor of tensors) {
    text(tensor.name);
    out.u32(tensor.dimensions.length);
    for (const dimension of tensor.dimensions) size(dimension);
    out.u32(tensor.type).u64(tensor.offset ?? offset);
    offset += Math.ceil(bytesOf(tensor) / alignment) * alignment;
  }
  out.padTo(alignment);
  if (spec.headerOnly) return out.done();
  for (const { data } of tensors) {
    if (typeof data === "number") out.zeros(data);
    else out.bytes(data);
    out.padTo(alignment);
  }
  return out.done();
}

/** A vector of float32 as a tensor. */
export function float32Tensor(name: string, values: readonly number[]): WrittenTensor {
  const out = new ByteWriter();
  for (const value of values) out.f32(value);
  return { name, dimensions: [values.length], type: 0, data: out.done() };
}

/** A tensor of zeros, float32. */
export function zeroTensor(name: string, dimensions: readonly number[]): WrittenTensor {
  const elements = dimensions.reduce((product, one) => product * one, 1);
  return { name, dimensions, type: 0, data: new Uint8Array(4 * elements) };
}

/** The keys that every model needs, with entries of one's own behind. Keys without a dot belong to the architecture. */
export function model(architecture: string, own: readonly Entry[] = [], shape: Partial<Shape> = {}): Entry[] {
  const { layers, context, hidden, heads } = { layers: 4, context: 4096, hidden: 512, heads: 8, ...shape };
  const at = (key: string): string => `${architecture}.${key}`;
  return [
    ["general.architecture", "string", architecture],
    ["general.name", "string", "Test"],
    [at("block_count"), "u32", layers],
    [at("context_length"), "u32", context],
    [at("embedding_length"), "u32", hidden],
    [at("attention.head_count"), "u32", heads],
    ...own.map(([key, type, value]): Entry => [/^(general|tokenizer|split)\./.test(key) ? key : at(key), type, value]),
  ];
}

interface Shape {
  readonly layers: number;
  readonly context: number;
  readonly hidden: number;
  readonly heads: number;
}
