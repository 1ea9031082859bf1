// SentencePiece's precompiled normalisation rules (nmt_nfkc and others): a double-array trie over UTF-8 whose values
// are places in a list of replacement strings (darts-clone's unit layout; sentencepiece normalizer.cc). The blob comes
// out of a file, so every index is checked.

import { FormatError } from "../bytes/format-error.ts";

export class Charsmap {
  readonly #file: string;
  readonly #units: Uint32Array;
  readonly #replacements: Uint8Array;
  /** Bytes that the last `match` took, and its replacement. */
  consumed = 0;
  replacement: Uint8Array = new Uint8Array(0);

  /** @throws FormatError for a blob whose parts do not fit */
  constructor(blob: Uint8Array, file: string) {
    this.#file = file;
    const view = new DataView(blob.buffer, blob.byteOffset, blob.byteLength);
    const trieBytes = blob.length < 4 ? 0 : view.getUint32(0, true);
    if (trieBytes === 0 || trieBytes % 4 !== 0 || trieBytes > blob.length - 4) {
      throw new FormatError(
        file,
        `expected a normalisation table whose trie fits in its ${blob.length} bytes, got a trie of ${trieBytes} bytes`,
      );
    }
    this.#units = Uint32Array.from({ length: trieBytes / 4 }, (_, i) => view.getUint32(4 + 4 * i, true));
    this.#replacements = blob.subarray(4 + trieBytes);
  }

  #unit(at: number): number {
    if (at >= this.#units.length) {
      throw new FormatError(
        this.#file,
        `expected the normalisation trie to stay within its ${this.#units.length} units, got unit ${at}`,
      );
    }
    return this.#units[at]!;
  }

  /** Finds the rule for the longest prefix of the bytes from `at` (the shortest with `shortest`); false when none. */
  match(bytes: Uint8Array, at: number, end: number, shortest = false): boolean {
    let node = offsetOf(this.#unit(0));
    let value = -1;
    for (let i = at; i < end; i++) {
      const byte = bytes[i]!;
      node ^= byte;
      const unit = this.#unit(node);
      // The label carries the top bit of value units, so those never match a byte.
      if (unit >>> 31 !== 0 || (unit & 0xff) !== byte) break;
      node ^= offsetOf(unit);
      if (((unit >>> 8) & 1) === 1) {
        value = this.#unit(node) & 0x7fffffff;
        this.consumed = i + 1 - at;
        if (shortest) break;
      }
    }
    if (value === -1) return false;
    const stop = value < this.#replacements.length ? this.#replacements.indexOf(0, value) : -1;
    if (stop < 0) {
      throw new FormatError(
        this.#file,
        `expected a replacement that ends within the ${this.#replacements.length} bytes of them, got one at ${value}`,
      );
    }
    this.replacement = this.#replacements.subarray(value, stop);
    return true;
  }
}

function offsetOf(unit: number): number {
  return (unit >>> 10) << ((unit & 0x200) >>> 6);
}
