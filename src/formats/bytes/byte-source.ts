// Where a reader's bytes come from: memory, a browser's File, a file on disk (node-file.ts), later a URL. Positioned
// reads only, so that a header of a 40 GB checkpoint costs the header and not the file.

import { FormatError } from "./format-error.ts";

export interface ByteSource {
  /** What messages call it; for a file its name without the folder. */
  readonly name: string;
  /** Bytes, fixed for the life of the source. */
  readonly size: number;
  /** Exactly `length` bytes from `offset`. Throws RangeError outside 0 .. size (a caller's mistake, never the file's),
   *  and FormatError when the file turns out shorter than it was. */
  read(offset: number, length: number): Promise<Uint8Array>;
  /** `read` into bytes of the caller's, so that a long read in pieces needs one buffer; absent where `read` is a view. */
  readInto?(offset: number, target: Uint8Array): Promise<void>;
  close(): Promise<void>;
}

/** Throws RangeError unless 0 ≤ offset, 0 ≤ length and offset + length ≤ size, all of them integers. */
export function expectRange(
  source: { readonly name: string; readonly size: number },
  offset: number,
  length: number,
): void {
  if (!Number.isSafeInteger(offset) || !Number.isSafeInteger(length) || offset < 0 || length < 0) {
    throw new RangeError(`${source.name}: expected an offset and a length of at least 0, got ${offset} and ${length}`);
  }
  if (offset + length > source.size) {
    throw new RangeError(
      `${source.name}: expected a range within ${source.size} bytes, got ${length} bytes from byte ${offset}`,
    );
  }
}

/**
 * Bytes in memory as a source. Reads are views, not copies.
 *
 * @example
 * ```ts
 * import { memorySource } from "longhand/formats";
 * const source = memorySource("two.bin", new Uint8Array([1, 2]));
 * source.size; // => 2
 * ```
 */
export function memorySource(name: string, bytes: Uint8Array): ByteSource {
  return {
    name,
    size: bytes.byteLength,
    async read(offset, length) {
      expectRange({ name, size: bytes.byteLength }, offset, length);
      return bytes.subarray(offset, offset + length);
    },
    async close() {},
  };
}

/** A Blob (a browser's File, whose name is then taken) as a source. */
export function blobSource(blob: Blob, name?: string): ByteSource {
  const called = name ?? (blob as Partial<File>).name ?? "blob";
  return {
    name: called,
    size: blob.size,
    async read(offset, length) {
      expectRange({ name: called, size: blob.size }, offset, length);
      const bytes = new Uint8Array(await blob.slice(offset, offset + length).arrayBuffer());
      if (bytes.byteLength !== length) {
        throw new FormatError(called, `expected ${length} bytes, got ${bytes.byteLength}: the file changed`, offset);
      }
      return bytes;
    },
    async close() {},
  };
}
