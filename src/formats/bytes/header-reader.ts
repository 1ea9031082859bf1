// A cursor over a header: little-endian numbers and length-prefixed strings on top of a buffered window. Every count
// and length is compared with the bytes that are left before anything is allocated, so a hostile file costs at most
// the window and what it really holds. 64-bit counts must fit a double exactly (2^53 − 1).

import type { ByteSource } from "./byte-source.ts";
import { FormatError, quote } from "./format-error.ts";

export interface HeaderReaderOptions {
  /** Bytes read at once. */
  readonly windowBytes?: number;
  /** The header may not reach past this byte: bounds the work that a file of many gigabytes can ask for. */
  readonly limit?: number;
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export class HeaderReader {
  readonly source: ByteSource;
  readonly limit: number;
  #position = 0;
  readonly #windowBytes: number;
  #window: DataView<ArrayBufferLike> = new DataView(new ArrayBuffer(0));
  #windowStart = 0;

  constructor(source: ByteSource, options: HeaderReaderOptions = {}) {
    this.source = source;
    this.limit = Math.min(source.size, options.limit ?? source.size);
    this.#windowBytes = options.windowBytes ?? 1 << 20;
  }

  /** Byte from the start of the source that is read next. */
  get position(): number {
    return this.#position;
  }

  /** Bytes between the position and the limit. */
  get remaining(): number {
    return this.limit - this.#position;
  }

  /** A FormatError about this source at a byte; the position when none is given. */
  error(complaint: string, offset: number = this.#position): FormatError {
    return new FormatError(this.source.name, complaint, offset);
  }

  /** Throws unless `bytes` more bytes are left. */
  expectBytes(bytes: number, what: string): void {
    if (bytes <= this.remaining) return;
    const end = this.limit < this.source.size ? `the header's limit of ${this.limit} bytes` : "the file's end";
    throw this.error(`expected ${what} (${bytes} bytes), got ${this.remaining} bytes before ${end}`);
  }

  /** Moves on without reading. */
  skip(bytes: number, what: string): void {
    this.expectBytes(bytes, what);
    this.#position += bytes;
  }

  async bytes(length: number, what: string): Promise<Uint8Array> {
    this.expectBytes(length, what);
    const at = this.#position;
    this.#position += length;
    if (length > this.#windowBytes) return this.source.read(at, length);
    await this.#fill(at, length);
    const view = this.#window;
    return new Uint8Array(view.buffer, view.byteOffset + at - this.#windowStart, length);
  }

  async u8(what: string): Promise<number> {
    const at = await this.#take(1, what);
    return this.#window.getUint8(at);
  }
  async i8(what: string): Promise<number> {
    const at = await this.#take(1, what);
    return this.#window.getInt8(at);
  }
  async u16(what: string): Promise<number> {
    const at = await this.#take(2, what);
    return this.#window.getUint16(at, true);
  }
  async i16(what: string): Promise<number> {
    const at = await this.#take(2, what);
    return this.#window.getInt16(at, true);
  }
  async u32(what: string): Promise<number> {
    const at = await this.#take(4, what);
    return this.#window.getUint32(at, true);
  }
  async i32(what: string): Promise<number> {
    const at = await this.#take(4, what);
    return this.#window.getInt32(at, true);
  }
  async f32(what: string): Promise<number> {
    const at = await this.#take(4, what);
    return this.#window.getFloat32(at, true);
  }
  async f64(what: string): Promise<number> {
    const at = await this.#take(8, what);
    return this.#window.getFloat64(at, true);
  }
  /** As a bigint: for values; counts, lengths and offsets go through `u64`. */
  async bigU64(what: string): Promise<bigint> {
    const at = await this.#take(8, what);
    return this.#window.getBigUint64(at, true);
  }
  async bigI64(what: string): Promise<bigint> {
    const at = await this.#take(8, what);
    return this.#window.getBigInt64(at, true);
  }

  async u64(what: string): Promise<number> {
    const at = this.#position;
    const value = await this.bigU64(what);
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) {
      throw this.error(`expected ${what} below 2^53, got ${value}`, at);
    }
    return Number(value);
  }

  /** One byte, 0 or 1. */
  async bool(what: string): Promise<boolean> {
    const at = this.#position;
    const value = await this.u8(what);
    if (value > 1) throw this.error(`expected ${what} to be 0 or 1, got ${value}`, at);
    return value === 1;
  }

  /** A string after its own length, a 64-bit count, or a 32-bit one in older formats. */
  async string(what: string, lengthBytes: 4 | 8, maxBytes: number): Promise<string> {
    const at = this.#position;
    const length = await (lengthBytes === 4 ? this.u32(`the length of ${what}`) : this.u64(`the length of ${what}`));
    if (length > maxBytes) throw this.error(`expected ${what} of at most ${maxBytes} bytes, got length ${length}`, at);
    return this.text(length, what);
  }

  /** So many bytes of UTF-8. */
  async text(length: number, what: string): Promise<string> {
    const at = this.#position;
    const bytes = await this.bytes(length, what);
    try {
      return utf8.decode(bytes);
    } catch {
      const shown = quote(new TextDecoder().decode(bytes.subarray(0, 80)));
      throw this.error(`expected ${what} to be valid UTF-8, got ${shown}`, at);
    }
  }

  /** Throws unless an array of `count` elements of at least `minimumBytes` each can fit in what is left. */
  expectCount(count: number, minimumBytes: number, what: string, offset: number): void {
    if (count > Math.floor(this.remaining / minimumBytes)) {
      throw this.error(
        `expected ${what} to fit in the ${this.remaining} bytes left, ` +
          `got ${count} of at least ${minimumBytes} bytes each`,
        offset,
      );
    }
  }

  /** Steps over `count` strings by their lengths alone. A vocabulary of a million is a few windows. */
  async skipStrings(count: number, lengthBytes: 4 | 8, what: string): Promise<void> {
    this.expectCount(count, lengthBytes, what, this.#position);
    let left = count;
    while (left > 0) {
      await this.#fill(this.#position, Math.min(lengthBytes, this.remaining));
      const view = this.#window;
      // Inside the window without awaiting: one await a string would cost more than the parsing.
      let at = this.#position - this.#windowStart;
      while (left > 0 && at + lengthBytes <= view.byteLength) {
        const high = lengthBytes === 8 ? view.getUint32(at + 4, true) : 0;
        const length = high * 2 ** 32 + view.getUint32(at, true);
        const start = this.#windowStart + at;
        if (length > this.limit - start - lengthBytes) {
          throw this.error(
            `expected a string of ${what} within the ${this.limit - start - lengthBytes} bytes left, ` +
              `got length ${high >= 2 ** 21 ? "of 2^53 or more" : length}`,
            start,
          );
        }
        at += lengthBytes + length;
        left--;
      }
      this.#position = this.#windowStart + at;
      if (left > 0) this.expectBytes(lengthBytes, what);
    }
  }

  /** Makes the next `bytes` available and steps over them; where they start in the window. */
  async #take(bytes: number, what: string): Promise<number> {
    this.expectBytes(bytes, what);
    const at = this.#position;
    await this.#fill(at, bytes);
    this.#position = at + bytes;
    return at - this.#windowStart;
  }

  async #fill(at: number, length: number): Promise<void> {
    if (at >= this.#windowStart && at + length <= this.#windowStart + this.#window.byteLength) return;
    const bytes = await this.source.read(at, Math.min(Math.max(this.#windowBytes, length), this.source.size - at));
    this.#window = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#windowStart = at;
  }
}
