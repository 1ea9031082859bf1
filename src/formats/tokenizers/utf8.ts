// UTF-8 both ways: well-formed text in, and bytes out that may break off anywhere. The two decoders differ in how many
// U+FFFD a broken character becomes: one for the whole broken part (WHATWG, Rust: byte-level vocabularies), or one for
// each byte (SentencePiece's byte fallback).

const encoder = new TextEncoder();
const lenient = new TextDecoder("utf-8", { ignoreBOM: true });

/** Text without lone surrogates: each becomes U+FFFD, as TextEncoder would write it. */
export function wellFormed(text: string): string {
  return text.replace(/\p{Cs}/gu, "\ufffd");
}

export function utf8Bytes(text: string): Uint8Array {
  return encoder.encode(text);
}

/** UTF-8 of text into a scratch buffer that grows; the bytes are valid until the next call. */
export class Utf8Scratch {
  bytes: Uint8Array = new Uint8Array(256);

  /** How many bytes of `bytes` the text takes. */
  encode(text: string): number {
    if (text.length * 3 > this.bytes.length) this.bytes = new Uint8Array(text.length * 4);
    return encoder.encodeInto(text, this.bytes).written;
  }
}

/** Bytes of the character that starts with this byte; 0 for a byte that starts none. */
export function utf8Length(first: number): number {
  if (first < 0x80) return 1;
  if (first < 0xc2) return 0;
  if (first < 0xe0) return 2;
  if (first < 0xf0) return 3;
  return first < 0xf5 ? 4 : 0;
}

/**
 * The well-formed character at `at`: its length; 0 when the bytes are wrong; −1 when they are right so far but end.
 * Overlong forms and surrogates are wrong (Unicode 15, table 3-7).
 */
export function utf8At(bytes: Uint8Array, at: number, end: number): number {
  const first = bytes[at]!;
  const length = utf8Length(first);
  if (length < 2) return length;
  for (let i = 1; i < length; i++) {
    if (at + i >= end) return -1;
    const byte = bytes[at + i]!;
    let low = 0x80;
    let high = 0xbf;
    if (i === 1) {
      if (first === 0xe0) low = 0xa0;
      else if (first === 0xed) high = 0x9f;
      else if (first === 0xf0) low = 0x90;
      else if (first === 0xf4) high = 0x8f;
    }
    if (byte < low || byte > high) return 0;
  }
  return length;
}

export type InvalidBytes = "one-a-byte" | "one-a-part";

/** An incremental UTF-8 decoder. */
export class Utf8Stream {
  readonly #mode: InvalidBytes;
  #pending: Uint8Array = new Uint8Array(0);

  constructor(mode: InvalidBytes) {
    this.#mode = mode;
  }

  /** Text of all characters that are complete, or broken for certain. */
  push(bytes: Uint8Array): string {
    if (bytes.length === 0) return "";
    let all = bytes;
    if (this.#pending.length > 0) {
      all = new Uint8Array(this.#pending.length + bytes.length);
      all.set(this.#pending);
      all.set(bytes, this.#pending.length);
    }
    // Only the last three bytes can begin a character that is still incomplete.
    let end = all.length;
    for (let at = Math.max(0, all.length - 3); at < all.length; at++) {
      if ((all[at]! & 0xc0) !== 0x80 && utf8At(all, at, all.length) === -1) {
        end = at;
        break;
      }
    }
    this.#pending = all.slice(end);
    return decodeUtf8(all.subarray(0, end), this.#mode);
  }

  /** What is left of an incomplete character. */
  end(): string {
    const rest = this.#pending;
    this.#pending = new Uint8Array(0);
    return decodeUtf8(rest, this.#mode);
  }
}

/** Bytes as text, each broken part as U+FFFD. */
export function decodeUtf8(bytes: Uint8Array, mode: InvalidBytes): string {
  if (mode === "one-a-part") return lenient.decode(bytes);
  const text = lenient.decode(bytes);
  if (!text.includes("\ufffd")) return text;
  const parts: string[] = [];
  let start = 0;
  for (let at = 0; at < bytes.length; ) {
    const length = utf8At(bytes, at, bytes.length);
    if (length > 0) {
      at += length;
      continue;
    }
    parts.push(lenient.decode(bytes.subarray(start, at)), "\ufffd");
    start = ++at;
  }
  parts.push(lenient.decode(bytes.subarray(start)));
  return parts.join("");
}

/** Bytes appended one after another. */
export class ByteSink {
  #bytes = new Uint8Array(1024);
  length = 0;

  push(bytes: Uint8Array): void {
    if (this.length + bytes.length > this.#bytes.length) {
      const bigger = new Uint8Array(2 * (this.length + bytes.length));
      bigger.set(this.#bytes.subarray(0, this.length));
      this.#bytes = bigger;
    }
    this.#bytes.set(bytes, this.length);
    this.length += bytes.length;
  }

  view(): Uint8Array {
    return this.#bytes.subarray(0, this.length);
  }
}
