// The header of one GGUF file: magic, version, metadata, tensor table; then padding and the tensors' bytes. Versions 1
// (32-bit counts and lengths), 2 and 3, little-endian, after ggml's gguf.cpp and docs/gguf.md. Long arrays (a
// vocabulary) are stepped over and decoded on demand, so a header costs its keys and its tensor table.

import type { ByteSource } from "../bytes/byte-source.ts";
import { FormatError, quote } from "../bytes/format-error.ts";
import { HeaderReader } from "../bytes/header-reader.ts";
import {
  type GgmlType,
  type GgufScalarType,
  type GgufValueType,
  ggmlTypeOf,
  ggufScalarBytes,
  ggufValueTypes,
} from "./types.ts";

export type GgufScalar = number | bigint | boolean | string;

/** An array of metadata: where it stands, and its values when it is short. */
export interface GgufArray {
  readonly elementType: GgufValueType;
  readonly count: number;
  /** The first element's first byte, and the bytes of all elements. */
  readonly offset: number;
  readonly byteLength: number;
  /** Up to 1024 scalars or strings; null for longer arrays and for arrays of arrays: see decodeGgufArray. */
  readonly values: readonly GgufScalar[] | null;
}

/** One metadata value with the type that the file gives it. 64-bit integers are bigints only past 2^53 − 1. */
export type GgufValue =
  | { readonly type: Exclude<GgufScalarType, "bool">; readonly value: number | bigint }
  | { readonly type: "bool"; readonly value: boolean }
  | { readonly type: "string"; readonly value: string }
  | { readonly type: "array"; readonly value: GgufArray };

export interface GgufTensor {
  readonly name: string;
  readonly type: GgmlType;
  /** Innermost dimension first, as ggml counts (safetensors and Hugging Face count the other way round). */
  readonly dimensions: readonly number[];
  readonly numElements: number;
  /** First byte, from the start of its file. */
  readonly offset: number;
  readonly byteLength: number;
  /** The file that holds it. */
  readonly file: string;
}

/** One file of a GGUF checkpoint. */
export interface GgufPart {
  readonly file: string;
  readonly fileSize: number;
  /** Bytes before the tensors' data, padding included. */
  readonly dataOffset: number;
}

/** Divisors of the inverse frequencies that converters bake into tensors, one a rotary pair. */
export interface GgufRotaryTensors {
  /** rope_freqs.weight (llama3 scaling, Gemma 4's unrotated channels). */
  readonly freqs: readonly number[] | null;
  /** rope_factors_long.weight and rope_factors_short.weight (longrope). */
  readonly long: readonly number[] | null;
  readonly short: readonly number[] | null;
}

export interface GgufHeader {
  /** The first part's name. */
  readonly file: string;
  readonly version: 1 | 2 | 3;
  readonly metadata: ReadonlyMap<string, GgufValue>;
  readonly tensors: ReadonlyMap<string, GgufTensor>;
  readonly alignment: number;
  readonly rotary: GgufRotaryTensors;
  /** Sum of the tensors' elements. */
  readonly numParameters: number;
  /** One, or all parts of a split checkpoint in order. */
  readonly parts: readonly GgufPart[];
}

// Far above any real file; what a hostile one can make us hold is bounded by them.
const maxHeaderBytes = 512 * 2 ** 20;
const maxKeys = 65_536;
const maxTensors = 262_144;
const maxNameBytes = 65_535;
const maxStringBytes = 64 * 2 ** 20;
const maxStringBytesInAll = 128 * 2 ** 20;
const maxArrayDepth = 4;
const maxInnerArrays = 65_536;
const maxStrings = 2 ** 24;
const eagerElements = 1024;
const eagerElementsInAll = 2 ** 20;
/** ggml's GGML_MAX_DIMS. */
const maxDimensions = 4;

/**
 * Reads the header of one GGUF file; of a split checkpoint, one part (`readGguf` joins them).
 *
 * @throws FormatError naming the byte: not GGUF, big-endian, a version above 3, a count or length past the file, a
 *   duplicate key or tensor, an unknown value or tensor type, a tensor that is misaligned, past the file's end or over
 *   another one
 * @example
 * ```ts
 * import { memorySource, readGgufHeader } from "longhand/formats";
 * const empty = new Uint8Array(24); // magic, version 3, no tensors, no keys
 * empty.set([0x47, 0x47, 0x55, 0x46, 3]);
 * const header = await readGgufHeader(memorySource("empty.gguf", empty));
 * header.version; // => 3
 * header.tensors.size; // => 0
 * ```
 */
export async function readGgufHeader(source: ByteSource): Promise<GgufHeader> {
  const reader = new HeaderReader(source, { limit: maxHeaderBytes });
  const magic = await reader.bytes(4, 'the magic "GGUF"');
  const text = String.fromCharCode(...magic);
  if (text === "FUGG") throw reader.error(bigEndian, 0);
  if (text !== "GGUF") {
    const older = ["ggml", "ggmf", "ggjt", "lmgg", "fmgg", "tjgg"].includes(text)
      ? ", a format from before GGUF: convert it with llama.cpp's convert_llama_ggml_to_gguf.py"
      : "";
    throw reader.error(`expected the magic "GGUF", got ${quote(text)}${older}`, 0);
  }
  const version = await reader.u32("the version");
  if (version !== 0 && (version & 0xffff) === 0) throw reader.error(bigEndian, 4);
  if (version < 1 || version > 3) throw reader.error(`expected GGUF version 1, 2 or 3, got ${version}`, 4);
  const parser = new Parser(reader, version === 1 ? 4 : 8);
  const tensorCount = await parser.count("tensors", maxTensors, 4 + parser.lengthBytes + 12);
  const keyCount = await parser.count("metadata keys", maxKeys, parser.lengthBytes + 5);
  const metadata = await parser.metadata(keyCount);
  const alignment = alignmentOf(metadata, reader);
  const listed = await parser.tensorTable(tensorCount);
  const dataOffset = Math.ceil(reader.position / alignment) * alignment;
  const tensors = new Map<string, GgufTensor>();
  let numParameters = 0;
  for (const { infoOffset, ...entry } of listed) {
    if (entry.offset % alignment !== 0) {
      throw reader.error(
        `expected the offset of tensor ${quote(entry.name)} to be a multiple of ${alignment}, got ${entry.offset}`,
        infoOffset,
      );
    }
    const offset = dataOffset + entry.offset;
    if (offset + entry.byteLength > source.size) {
      throw reader.error(
        `expected tensor ${quote(entry.name)} (${entry.byteLength} bytes from byte ${offset}) within the file, ` +
          `got a file of ${source.size} bytes: it is cut short or its table is wrong`,
        infoOffset,
      );
    }
    numParameters += entry.numElements;
    tensors.set(entry.name, { ...entry, offset, file: source.name });
  }
  expectNoOverlap(tensors, reader);
  const rotary: GgufRotaryTensors = {
    freqs: await readVector(source, tensors.get("rope_freqs.weight")),
    long: await readVector(source, tensors.get("rope_factors_long.weight")),
    short: await readVector(source, tensors.get("rope_factors_short.weight")),
  };
  return {
    file: source.name,
    version: version as 1 | 2 | 3,
    metadata,
    tensors,
    alignment,
    rotary,
    numParameters,
    parts: [{ file: source.name, fileSize: source.size, dataOffset }],
  };
}

const bigEndian =
  "expected a little-endian GGUF file, got a big-endian one: convert it with gguf-py's gguf_convert_endian.py";

class Parser {
  readonly reader: HeaderReader;
  readonly lengthBytes: 4 | 8;
  #stringBytes = 0;
  #innerArrays = 0;
  #strings = 0;
  #eagerElements = 0;

  constructor(reader: HeaderReader, lengthBytes: 4 | 8) {
    this.reader = reader;
    this.lengthBytes = lengthBytes;
  }

  /** A 64-bit size, or a 32-bit one in version 1. */
  #size(what: string): Promise<number> {
    return this.lengthBytes === 4 ? this.reader.u32(what) : this.reader.u64(what);
  }

  async count(what: string, most: number, minimumBytes: number): Promise<number> {
    const at = this.reader.position;
    const count = await this.#size(`the number of ${what}`);
    if (count > most) throw this.reader.error(`expected at most ${most} ${what}, got ${count}`, at);
    this.reader.expectCount(count, minimumBytes, what, at);
    return count;
  }

  async metadata(count: number): Promise<Map<string, GgufValue>> {
    const metadata = new Map<string, GgufValue>();
    for (let i = 0; i < count; i++) {
      const at = this.reader.position;
      const key = await this.reader.string(`metadata key ${i}`, this.lengthBytes, maxNameBytes);
      if (key === "") throw this.reader.error(`expected a name for metadata key ${i}, got an empty string`, at);
      if (metadata.has(key)) throw this.reader.error(`expected the key ${quote(key)} once, got it again`, at);
      metadata.set(key, await this.#value(`the value of ${quote(key)}`));
    }
    return metadata;
  }

  async #type(what: string): Promise<GgufValueType> {
    const at = this.reader.position;
    const id = await this.reader.u32(`the type of ${what}`);
    const type = ggufValueTypes[id];
    if (type === undefined) {
      throw this.reader.error(`expected a type of 0 to ${ggufValueTypes.length - 1} for ${what}, got ${id}`, at);
    }
    return type;
  }

  async #value(what: string): Promise<GgufValue> {
    const type = await this.#type(what);
    if (type === "array") return { type, value: await this.#array(what, 1) };
    if (type === "string") return { type, value: await this.#string(what) };
    if (type === "bool") return { type, value: await this.reader.bool(what) };
    return { type, value: (await readScalar(this.reader, type, what)) as number | bigint };
  }

  async #string(what: string): Promise<string> {
    const at = this.reader.position;
    const value = await this.reader.string(what, this.lengthBytes, maxStringBytes);
    this.#stringBytes += this.reader.position - at;
    if (this.#stringBytes > maxStringBytesInAll) {
      throw this.reader.error(`expected at most ${maxStringBytesInAll} bytes of text in metadata, got more`, at);
    }
    return value;
  }

  async #array(what: string, depth: number): Promise<GgufArray> {
    const { reader } = this;
    if (depth > maxArrayDepth) throw reader.error(`expected arrays nested at most ${maxArrayDepth} deep in ${what}`);
    const elementType = await this.#type(`the elements of ${what}`);
    const countAt = reader.position;
    const count = await this.#size(`the length of ${what}`);
    const minimum =
      elementType === "array"
        ? 4 + this.lengthBytes
        : elementType === "string"
          ? this.lengthBytes
          : ggufScalarBytes[elementType];
    reader.expectCount(count, minimum, what, countAt);
    if (elementType === "string") {
      this.#strings += count;
      if (this.#strings > maxStrings) {
        throw reader.error(
          `expected at most ${maxStrings} strings in arrays, got ${this.#strings} with ${what}`,
          countAt,
        );
      }
    }
    const offset = reader.position;
    let values: GgufScalar[] | null = null;
    if (elementType === "array") {
      this.#innerArrays += count;
      if (this.#innerArrays > maxInnerArrays) {
        throw reader.error(`expected at most ${maxInnerArrays} arrays inside arrays, got more in ${what}`, countAt);
      }
      for (let i = 0; i < count; i++) await this.#array(what, depth + 1);
    } else if (count <= eagerElements && this.#eagerElements + count <= eagerElementsInAll) {
      this.#eagerElements += count;
      values = [];
      for (let i = 0; i < count; i++) {
        values.push(elementType === "string" ? await this.#string(what) : await readScalar(reader, elementType, what));
      }
    } else if (elementType === "string") {
      await reader.skipStrings(count, this.lengthBytes, what);
    } else {
      reader.skip(count * ggufScalarBytes[elementType], what);
    }
    return { elementType, count, offset, byteLength: reader.position - offset, values };
  }

  /** The tensor table; offsets still count from the start of the data. */
  async tensorTable(count: number): Promise<(Omit<GgufTensor, "file"> & { infoOffset: number })[]> {
    const { reader } = this;
    const names = new Set<string>();
    const listed: (Omit<GgufTensor, "file"> & { infoOffset: number })[] = [];
    for (let i = 0; i < count; i++) {
      const infoOffset = reader.position;
      const name = await reader.string(`the name of tensor ${i}`, this.lengthBytes, maxNameBytes);
      if (names.has(name)) throw reader.error(`expected the tensor ${quote(name)} once, got it again`, infoOffset);
      names.add(name);
      const what = `tensor ${quote(name)}`;
      const dimensionsAt = reader.position;
      const rank = await reader.u32(`the number of dimensions of ${what}`);
      if (rank > maxDimensions) {
        throw reader.error(`expected at most ${maxDimensions} dimensions of ${what}, got ${rank}`, dimensionsAt);
      }
      const dimensions: number[] = [];
      let numElements = 1;
      for (let d = 0; d < rank; d++) {
        const size = await this.#size(`dimension ${d} of ${what}`);
        dimensions.push(size);
        numElements *= size;
      }
      const typeAt = reader.position;
      const id = await reader.u32(`the type of ${what}`);
      const type = ggmlTypeOf(id);
      if (type === undefined) throw reader.error(`expected a known ggml type of ${what}, got number ${id}`, typeAt);
      const rowLength = dimensions[0] ?? 1;
      if (rowLength % type.blockSize !== 0) {
        throw reader.error(
          `expected rows of ${what} in whole blocks of ${type.blockSize} (${type.name}), got ${rowLength} elements`,
          dimensionsAt,
        );
      }
      const byteLength = (numElements / type.blockSize) * type.blockBytes;
      if (!Number.isSafeInteger(numElements) || !Number.isSafeInteger(byteLength)) {
        throw reader.error(`expected ${what} below 2^53 bytes, got dimensions [${dimensions}]`, dimensionsAt);
      }
      const offset = await reader.u64(`the offset of ${what}`);
      if (offset > reader.source.size) {
        throw reader.error(
          `expected the offset of ${what} within the file of ${reader.source.size} bytes, got ${offset}`,
          reader.position - 8,
        );
      }
      listed.push({ name, type, dimensions, numElements, offset, byteLength, infoOffset });
    }
    return listed;
  }
}

/** One number or bool; integers of 64 bits stay bigint only where a double cannot hold them. */
async function readScalar(
  reader: HeaderReader,
  type: GgufScalarType,
  what: string,
): Promise<number | bigint | boolean> {
  switch (type) {
    case "u8":
      return reader.u8(what);
    case "i8":
      return reader.i8(what);
    case "u16":
      return reader.u16(what);
    case "i16":
      return reader.i16(what);
    case "u32":
      return reader.u32(what);
    case "i32":
      return reader.i32(what);
    case "f32":
      return reader.f32(what);
    case "f64":
      return reader.f64(what);
    case "bool":
      return reader.bool(what);
    case "u64":
      return narrow(await reader.bigU64(what));
    case "i64":
      return narrow(await reader.bigI64(what));
  }
}

function narrow(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

function alignmentOf(metadata: ReadonlyMap<string, GgufValue>, reader: HeaderReader): number {
  const entry = metadata.get("general.alignment");
  if (entry === undefined) return 32;
  const { type, value } = entry;
  if (type !== "u32" || typeof value !== "number" || value < 8 || (value & (value - 1)) !== 0) {
    throw new FormatError(
      reader.source.name,
      `expected general.alignment to be a u32, a power of two and a multiple of 8, got ${type} ${String(value)}`,
    );
  }
  return value;
}

function expectNoOverlap(tensors: ReadonlyMap<string, GgufTensor>, reader: HeaderReader): void {
  const ordered = [...tensors.values()].filter((one) => one.byteLength > 0).sort((a, b) => a.offset - b.offset);
  for (let i = 1; i < ordered.length; i++) {
    const a = ordered[i - 1]!;
    const b = ordered[i]!;
    if (a.offset + a.byteLength > b.offset) {
      throw reader.error(
        `expected tensor ${quote(b.name)} after tensor ${quote(a.name)}, ` +
          `got an overlap of ${a.offset + a.byteLength - b.offset} bytes`,
        b.offset,
      );
    }
  }
}

/** Longest rotary tensor that is decoded: one value a pair of one head. */
const maxVector = 65_536;

async function readVector(source: ByteSource, tensor: GgufTensor | undefined): Promise<readonly number[] | null> {
  if (tensor === undefined) return null;
  const { name, type, numElements, offset, byteLength } = tensor;
  if (numElements > maxVector || numElements !== (tensor.dimensions[0] ?? 1)) {
    throw new FormatError(
      source.name,
      `expected ${name} to be a vector of at most ${maxVector}, got dimensions [${tensor.dimensions}]`,
      offset,
    );
  }
  if (type.name !== "F32" && type.name !== "F16" && type.name !== "BF16") {
    throw new FormatError(source.name, `expected ${name} as F32, F16 or BF16, got ${type.name}`, offset);
  }
  const bytes = await source.read(offset, byteLength);
  const view = new DataView(bytes.buffer, bytes.byteOffset, byteLength);
  return Array.from({ length: numElements }, (_, i) => {
    if (type.name === "F32") return view.getFloat32(4 * i, true);
    const half = view.getUint16(2 * i, true);
    return type.name === "F16" ? float16(half) : bfloat16(half);
  });
}

function float16(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15));
}

const scratch = new DataView(new ArrayBuffer(4));
function bfloat16(bits: number): number {
  scratch.setUint32(0, bits << 16);
  return scratch.getFloat32(0);
}

/**
 * All values of an array of metadata, read again from its file: a vocabulary, scores, merges.
 *
 * @param source the file that the header was read from (its first part)
 * @param array what the header holds of it
 * @param version the header's version, which sets the width of string lengths
 * @throws FormatError for text that is not UTF-8, and for an array of arrays
 */
export async function decodeGgufArray(
  source: ByteSource,
  array: GgufArray,
  version: GgufHeader["version"],
): Promise<readonly GgufScalar[]> {
  if (array.values !== null) return array.values;
  const { elementType } = array;
  const reader = new HeaderReader(source, { limit: array.offset + array.byteLength });
  reader.skip(array.offset, "what stands before the array");
  if (elementType === "array") throw reader.error("expected an array of scalars or strings, got an array of arrays");
  const values: GgufScalar[] = [];
  for (let i = 0; i < array.count; i++) {
    values.push(
      elementType === "string"
        ? await reader.string(`string ${i}`, version === 1 ? 4 : 8, maxStringBytes)
        : await readScalar(reader, elementType, `element ${i}`),
    );
  }
  return values;
}
