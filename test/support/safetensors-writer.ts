// Writes safetensors files for tests: 8 bytes of length, JSON, data.

import { ByteWriter, utf8 } from "./byte-writer.ts";

export interface WrittenSafetensor {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly bytes: number;
}

/** The JSON of a well-formed header, tensors back to back. */
export function safetensorsJson(tensors: readonly WrittenSafetensor[], metadata?: Record<string, string>): string {
  const root: Record<string, unknown> = {};
  if (metadata !== undefined) root.__metadata__ = metadata;
  let offset = 0;
  for (const { name, dtype, shape, bytes } of tensors) {
    root[name] = { dtype, shape, data_offsets: [offset, offset + bytes] };
    offset += bytes;
  }
  return JSON.stringify(root);
}

/** A file from the JSON and so many bytes of data. */
export function safetensorsFile(json: string, dataBytes: number): Uint8Array<ArrayBuffer> {
  const header = utf8(json);
  return new ByteWriter().u64(header.length).bytes(header).zeros(dataBytes).done();
}

export function writeSafetensors(
  tensors: readonly WrittenSafetensor[],
  metadata?: Record<string, string>,
): Uint8Array<ArrayBuffer> {
  const bytes = tensors.reduce((sum, one) => sum + one.bytes, 0);
  return safetensorsFile(safetensorsJson(tensors, metadata), bytes);
}
