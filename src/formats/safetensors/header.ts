// The header of one safetensors file: 8 bytes of little-endian length, that much JSON, then the tensors' bytes, one
// after the other. As strict as the reference implementation (huggingface/safetensors): no hole, no overlap, nothing
// after the last tensor; stricter in that a duplicate key is an error.

import type { ByteSource } from "../bytes/byte-source.ts";
import { FormatError, quote } from "../bytes/format-error.ts";
import { HeaderReader } from "../bytes/header-reader.ts";
import { isJsonObject, type JsonValue, parseJson } from "../bytes/json.ts";
import { didYouMean } from "../nearest.ts";
import { type SafetensorsDtype, safetensorsDtypes } from "./dtypes.ts";

/** The format's own limit on the JSON. */
export const maxSafetensorsHeaderBytes = 100_000_000;

export interface SafetensorsTensor {
  readonly name: string;
  readonly dtype: SafetensorsDtype;
  /** Outermost dimension first; empty for a scalar. */
  readonly shape: readonly number[];
  readonly numElements: number;
  /** First byte, from the start of its file. */
  readonly offset: number;
  readonly byteLength: number;
  /** The file that holds it. */
  readonly file: string;
}

export interface SafetensorsHeader {
  readonly file: string;
  readonly fileSize: number;
  /** First byte after the JSON. */
  readonly dataOffset: number;
  /** `__metadata__`: free text that the writer left. */
  readonly metadata: ReadonlyMap<string, string>;
  /** In the order of their bytes. */
  readonly tensors: ReadonlyMap<string, SafetensorsTensor>;
  /** Sum of the tensors' elements. */
  readonly numParameters: number;
}

/**
 * Reads the header of one safetensors file.
 *
 * @throws FormatError for a length past the file or past 100 MB, JSON that is not strict, an unknown dtype, a shape
 *   whose bytes are not those of its range, ranges with holes or overlaps, bytes after the last tensor
 * @example
 * ```ts
 * import { memorySource, readSafetensorsHeader } from "longhand/formats";
 * const json = '{"a": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}}';
 * const file = new Uint8Array(8 + json.length + 12);
 * file[0] = json.length;
 * file.set(new TextEncoder().encode(json), 8);
 * const header = await readSafetensorsHeader(memorySource("a.safetensors", file));
 * header.tensors.get("a").shape; // => [2, 3]
 * header.numParameters; // => 6
 * ```
 */
export async function readSafetensorsHeader(source: ByteSource): Promise<SafetensorsHeader> {
  const file = source.name;
  // One read for most shards: their headers are a few kilobytes.
  const reader = new HeaderReader(source, { windowBytes: 1 << 16 });
  const length = await reader.u64("the length of the header");
  if (length > maxSafetensorsHeaderBytes) {
    throw new FormatError(file, `expected a header of at most ${maxSafetensorsHeaderBytes} bytes, got ${length}`, 0);
  }
  const text = await reader.text(length, "the header");
  // The reference implementation demands it, to keep the door open for other headers.
  if (text[0] !== "{")
    throw new FormatError(file, `expected the header to start with "{", got ${quote(text[0] ?? "")}`, 8);
  const root = parseJson(text, file, 8);
  if (!isJsonObject(root)) throw new FormatError(file, "expected the header to be a JSON object", 8);

  const metadata = new Map<string, string>();
  const listed: SafetensorsTensor[] = [];
  const dataOffset = 8 + length;
  for (const [name, value] of Object.entries(root)) {
    if (name === "__metadata__") {
      if (!isJsonObject(value))
        throw new FormatError(file, `expected __metadata__ to be an object, got ${show(value)}`);
      for (const [key, entry] of Object.entries(value)) {
        if (typeof entry !== "string") {
          throw new FormatError(file, `expected __metadata__.${key} to be a string, got ${show(entry)}`);
        }
        metadata.set(key, entry);
      }
    } else {
      listed.push(tensorOf(name, value, file, dataOffset));
    }
  }

  // A tensor without elements starts where its neighbour does: length orders them.
  listed.sort((a, b) => a.offset - b.offset || a.byteLength - b.byteLength);
  let end = dataOffset;
  let before = "the header";
  let numParameters = 0;
  for (const tensor of listed) {
    if (tensor.offset !== end) {
      const gap = tensor.offset - end;
      throw new FormatError(
        file,
        `expected tensor ${quote(tensor.name)} to start where ${before} ends, got ` +
          (gap > 0 ? `a hole of ${gap} bytes` : `an overlap of ${-gap} bytes`),
        end,
      );
    }
    end += tensor.byteLength;
    before = `tensor ${quote(tensor.name)}`;
    numParameters += tensor.numElements;
  }
  if (end !== source.size) {
    throw new FormatError(
      file,
      `expected a file of ${end} bytes, where its last tensor ends, got ${source.size}` +
        (end > source.size ? ": the file is cut short" : ""),
      Math.min(end, source.size),
    );
  }
  const tensors = new Map(listed.map((tensor) => [tensor.name, tensor]));
  return { file, fileSize: source.size, dataOffset, metadata, tensors, numParameters };
}

function tensorOf(name: string, value: JsonValue, file: string, dataOffset: number): SafetensorsTensor {
  const where = `tensor ${quote(name)}`;
  if (!isJsonObject(value)) throw new FormatError(file, `expected ${where} to be an object, got ${show(value)}`);
  for (const key of Object.keys(value)) {
    if (key !== "dtype" && key !== "shape" && key !== "data_offsets") {
      throw new FormatError(file, `expected only dtype, shape and data_offsets in ${where}, got ${quote(key)}`);
    }
  }
  const dtype = value.dtype;
  if (typeof dtype !== "string" || !Object.hasOwn(safetensorsDtypes, dtype)) {
    const hint = typeof dtype === "string" ? didYouMean(dtype, Object.keys(safetensorsDtypes)) : "";
    throw new FormatError(file, `expected a known dtype of ${where}, got ${show(dtype)}${hint}`);
  }
  const shape = sizes(value.shape, `the shape of ${where}`, file);
  const offsets = sizes(value.data_offsets, `data_offsets of ${where}`, file);
  const [begin, end] = offsets;
  if (offsets.length !== 2 || begin! > end!) {
    throw new FormatError(file, `expected data_offsets of ${where} as [begin, end], got ${show(value.data_offsets)}`);
  }
  let numElements = 1;
  for (const size of shape) numElements *= size;
  const bits = numElements * safetensorsDtypes[dtype as SafetensorsDtype];
  if (!Number.isSafeInteger(bits)) {
    throw new FormatError(file, `expected the bits of ${where} below 2^53, got shape ${show(value.shape)}`);
  }
  if (bits % 8 !== 0 || bits / 8 !== end! - begin!) {
    throw new FormatError(
      file,
      `expected ${bits / 8} bytes for ${where} (${dtype}, shape ${show(value.shape)}), got ${end! - begin!}`,
      dataOffset + begin!,
    );
  }
  return {
    name,
    dtype: dtype as SafetensorsDtype,
    shape,
    numElements,
    offset: dataOffset + begin!,
    byteLength: end! - begin!,
    file,
  };
}

function sizes(value: JsonValue | undefined, what: string, file: string): readonly number[] {
  if (!Array.isArray(value) || !value.every((one) => Number.isSafeInteger(one) && (one as number) >= 0)) {
    throw new FormatError(file, `expected ${what} as a list of integers of at least 0, got ${show(value)}`);
  }
  return value as readonly number[];
}

function show(value: JsonValue | undefined): string {
  const text = value === undefined ? "nothing" : JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}
