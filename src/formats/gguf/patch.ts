// A copy of a GGUF with other metadata and other vectors, piece by piece: the file is never held as a whole. Keys and
// tensors keep their order and their bytes; tensors are laid one behind the other, since llama.cpp takes no gaps. The
// copy is version 3: llama.cpp no longer reads version 1.

import type { ByteSource } from "../bytes/byte-source.ts";
import { FormatError, quote } from "../bytes/format-error.ts";
import { decodeGgufArray, type GgufHeader, type GgufTensor, type GgufValue, readGgufHeader } from "./header.ts";
import { type GgufScalarType, ggmlTypeOf, ggufValueTypes } from "./types.ts";

/** A value of metadata to set; null removes the key. */
export interface MetadataChange {
  readonly key: string;
  readonly type: GgufScalarType | "string";
  readonly value: number | string | boolean | null;
}

export interface GgufPatch {
  readonly metadata: readonly MetadataChange[];
  /** Vectors of float32 to write; null removes the tensor. */
  readonly tensors: readonly { readonly name: string; readonly values: readonly number[] | null }[];
}

export interface PatchedGguf {
  /** Bytes of the whole copy. */
  readonly size: number;
  /** The copy's bytes in order, at most 8 MiB at a time. */
  chunks(): AsyncGenerator<Uint8Array>;
}

const pieceBytes = 8 * 2 ** 20;
const float32 = ggmlTypeOf(0)!;

interface Placed {
  readonly tensor: Pick<GgufTensor, "name" | "dimensions" | "type" | "byteLength">;
  /** Where its bytes stand in the source, or the bytes. */
  readonly from: number | Uint8Array;
  /** From the start of the data. */
  readonly offset: number;
}

/**
 * A patched copy of a GGUF file, to be streamed.
 *
 * @param source the file; it must stay open while the chunks are read
 * @throws FormatError as `readGgufHeader` does, and for a part of a split checkpoint; RangeError for a value that its
 *   type cannot hold
 * @example
 * ```ts
 * import { memorySource, patchGguf, readGgufHeader } from "longhand/formats";
 * const empty = new Uint8Array(32);
 * empty.set([0x47, 0x47, 0x55, 0x46, 3]); // magic, version 3, no tensors, no keys
 * const change = { key: "llama.context_length", type: "u32", value: 8192 };
 * const patched = await patchGguf(memorySource("a.gguf", empty), { metadata: [change], tensors: [] });
 * const parts = [];
 * for await (const chunk of patched.chunks()) parts.push(...chunk);
 * const header = await readGgufHeader(memorySource("b.gguf", Uint8Array.from(parts)));
 * header.metadata.get("llama.context_length").value; // => 8192
 * ```
 */
export async function patchGguf(source: ByteSource, patch: GgufPatch): Promise<PatchedGguf> {
  const header = await readGgufHeader(source);
  const splits = header.metadata.get("split.count")?.value;
  if (typeof splits === "number" && splits > 1) {
    throw new FormatError(
      header.file,
      `expected one file, got part of a checkpoint in ${splits}: join them with llama-gguf-split --merge`,
    );
  }
  const tensors = placeTensors(header, patch);
  const head = await writeHead(source, header, patch, tensors);
  const { alignment } = header;
  const padded = (size: number) => Math.ceil(size / alignment) * alignment;
  const dataBytes = tensors.reduce((sum, { tensor }) => sum + padded(tensor.byteLength), 0);
  return {
    size: padded(head.length) + dataBytes,
    async *chunks() {
      yield head;
      yield new Uint8Array(padded(head.length) - head.length);
      for (const { tensor, from } of tensors) {
        const { byteLength } = tensor;
        if (typeof from !== "number") yield from;
        else {
          for (let at = 0; at < byteLength; at += pieceBytes) {
            yield await source.read(from + at, Math.min(pieceBytes, byteLength - at));
          }
        }
        const gap = padded(byteLength) - byteLength;
        if (gap > 0) yield new Uint8Array(gap);
      }
    },
  };
}

function placeTensors({ tensors, alignment }: GgufHeader, { tensors: changes }: GgufPatch): Placed[] {
  const placed: Placed[] = [];
  let offset = 0;
  const add = (tensor: Placed["tensor"], from: Placed["from"]): void => {
    placed.push({ tensor, from, offset });
    offset += Math.ceil(tensor.byteLength / alignment) * alignment;
  };
  const vector = (name: string, values: readonly number[]): void => {
    const bytes = new Uint8Array(4 * values.length);
    const view = new DataView(bytes.buffer);
    values.forEach((value, i) => {
      if (!Number.isFinite(Math.fround(value))) {
        throw new RangeError(`gguf patch: expected ${name}[${i}] to be a finite float32, got ${value}`);
      }
      view.setFloat32(4 * i, value, true);
    });
    add({ name, dimensions: [values.length], type: float32, byteLength: bytes.length }, bytes);
  };
  for (const tensor of tensors.values()) {
    const change = changes.find(({ name }) => name === tensor.name);
    if (change === undefined) add(tensor, tensor.offset);
    else if (change.values !== null) vector(tensor.name, change.values);
  }
  for (const { name, values } of changes) if (values !== null && !tensors.has(name)) vector(name, values);
  return placed;
}

async function writeHead(
  source: ByteSource,
  header: GgufHeader,
  patch: GgufPatch,
  tensors: readonly Placed[],
): Promise<Uint8Array> {
  const out = new Bytes();
  const size = (value: number): void => out.u64(value);
  const text = (value: string): void => {
    const bytes = new TextEncoder().encode(value);
    size(bytes.length);
    out.bytes(bytes);
  };
  const entries: [key: string, value: GgufValue][] = [];
  const changes = new Map(patch.metadata.map((change) => [change.key, change]));
  for (const [key, value] of header.metadata) {
    const change = changes.get(key);
    if (change === undefined) entries.push([key, value]);
    else if (change.value !== null) entries.push([key, changed(change)]);
  }
  for (const change of patch.metadata) {
    if (change.value !== null && !header.metadata.has(change.key)) entries.push([change.key, changed(change)]);
  }
  out.bytes(new TextEncoder().encode("GGUF"));
  out.u32(3);
  size(tensors.length);
  size(entries.length);
  for (const [key, { type, value }] of entries) {
    text(key);
    out.u32(ggufValueTypes.indexOf(type));
    if (type === "array") {
      out.u32(ggufValueTypes.indexOf(value.elementType));
      size(value.count);
      if (header.version !== 1 || (value.elementType !== "string" && value.elementType !== "array")) {
        out.bytes(await source.read(value.offset, value.byteLength));
      } else {
        // Lengths take 4 bytes there; decodeGgufArray refuses arrays of arrays.
        for (const one of await decodeGgufArray(source, value, 1)) text(String(one));
      }
    } else if (type === "string") text(value);
    else out.scalar(type, value);
  }
  for (const { tensor, offset } of tensors) {
    text(tensor.name);
    out.u32(tensor.dimensions.length);
    for (const dimension of tensor.dimensions) size(dimension);
    out.u32(tensor.type.id);
    out.u64(offset);
  }
  return out.done();
}

/** Throws RangeError for a value that its type cannot hold. */
function changed({ key, type, value }: MetadataChange): GgufValue {
  const fail = (expectation: string): RangeError =>
    new RangeError(`gguf patch: expected ${quote(key)} to be ${expectation}, got ${JSON.stringify(value)}`);
  if (type === "string") {
    if (typeof value !== "string") throw fail("a string");
    return { type, value };
  }
  if (type === "bool") {
    if (typeof value !== "boolean") throw fail("true or false");
    return { type, value };
  }
  if (typeof value !== "number") throw fail("a number");
  if (type === "f32" || type === "f64") {
    if (!Number.isFinite(type === "f32" ? Math.fround(value) : value)) throw fail(`a finite ${type}`);
    return { type, value };
  }
  const bits = Number(type.slice(1));
  const [least, most] = type[0] === "u" ? [0, 2 ** bits - 1] : [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1];
  if (!Number.isSafeInteger(value) || value < least || value > most) throw fail(`an integer that ${type} holds`);
  return { type, value };
}

/** Little-endian bytes that grow. */
class Bytes {
  #buffer = new Uint8Array(4096);
  #length = 0;

  #room(bytes: number): DataView {
    if (this.#length + bytes > this.#buffer.length) {
      const grown = new Uint8Array(Math.max(2 * this.#buffer.length, this.#length + bytes));
      grown.set(this.#buffer.subarray(0, this.#length));
      this.#buffer = grown;
    }
    const view = new DataView(this.#buffer.buffer, this.#length, bytes);
    this.#length += bytes;
    return view;
  }

  bytes(bytes: Uint8Array): void {
    const at = this.#length;
    this.#room(bytes.length);
    this.#buffer.set(bytes, at);
  }

  u32(value: number): void {
    this.#room(4).setUint32(0, value, true);
  }

  u64(value: number): void {
    this.#room(8).setBigUint64(0, BigInt(value), true);
  }

  scalar(type: GgufScalarType, value: number | bigint | boolean): void {
    switch (type) {
      case "u8":
      case "i8":
      case "bool":
        this.#room(1).setUint8(0, Number(value));
        break;
      case "u16":
      case "i16":
        this.#room(2).setUint16(0, Number(value), true);
        break;
      case "u32":
      case "i32":
        this.#room(4).setUint32(0, Number(value), true);
        break;
      case "u64":
      case "i64":
        this.#room(8).setBigUint64(0, BigInt.asUintN(64, BigInt(value)), true);
        break;
      case "f32":
        this.#room(4).setFloat32(0, Number(value), true);
        break;
      case "f64":
        this.#room(8).setFloat64(0, Number(value), true);
        break;
    }
  }

  done(): Uint8Array {
    return this.#buffer.subarray(0, this.#length);
  }
}
