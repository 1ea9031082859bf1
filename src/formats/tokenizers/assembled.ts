// What all tokenizers share, built from their parts: special tokens around and inside the text, and decoding through
// the bytes of each token. A tokenizer's own file knows how plain text becomes ids, and nothing of the rest.

import { show } from "../../encodings/errors.ts";
import type { AddedTokens } from "./added-tokens.ts";
import type {
  DecodeOptions,
  EncodeOptions,
  StreamOptions,
  Tokenizer,
  TokenizerKind,
  TokenStream,
} from "./tokenizer.ts";
import { ByteSink, decodeUtf8, type InvalidBytes, Utf8Stream, wellFormed } from "./utf8.ts";
import type { Vocabulary } from "./vocabulary.ts";

/** Which spaces at the start of a text were put there by the encoder, so that the decoder takes them away. */
export type LeadingSpace =
  | "keep"
  /** One. */
  | "one"
  /** One from each token, until there is text: SentencePiece with remove_extra_whitespaces. */
  | "one-a-token"
  /** All of the first token: the Metaspace decoder of huggingface/tokenizers. */
  | "first-token";

export interface TokenizerParts {
  readonly kind: TokenizerKind;
  readonly vocabulary: Vocabulary;
  readonly bosToken: number | null;
  readonly eosToken: number | null;
  readonly unknownToken: number | null;
  readonly padToken: number | null;
  readonly endTokens: readonly number[];
  /** What addSpecial puts around a text. */
  readonly prefix: readonly number[];
  readonly suffix: readonly number[];
  readonly addedTokens: AddedTokens;
  /** Ids of plain, well-formed text that stands at `start` of the whole; never empty. */
  readonly encodeText: (text: string, start: number, out: number[], parseSpecial: boolean) => void;
  readonly isSpecial: (id: number) => boolean;
  readonly tokenBytes: (id: number) => Uint8Array;
  readonly leadingSpace: LeadingSpace;
  /** The encoder begins anew behind this token (with a dummy space, say), so the decoder does too. */
  readonly restartsAfter: (id: number) => boolean;
  readonly invalidBytes: InvalidBytes;
}

const none: Uint8Array = new Uint8Array(0);

export function assembleTokenizer(parts: TokenizerParts): Tokenizer {
  return new AssembledTokenizer(parts);
}

class AssembledTokenizer implements Tokenizer {
  readonly kind: TokenizerKind;
  readonly vocabSize: number;
  readonly bosToken: number | null;
  readonly eosToken: number | null;
  readonly unknownToken: number | null;
  readonly padToken: number | null;
  readonly endTokens: readonly number[];
  readonly addsBos: boolean;
  readonly addsEos: boolean;
  readonly #parts: TokenizerParts;
  readonly #bytes: (Uint8Array | undefined)[] = [];

  constructor(parts: TokenizerParts) {
    this.#parts = parts;
    this.kind = parts.kind;
    this.vocabSize = parts.vocabulary.size;
    this.bosToken = parts.bosToken;
    this.eosToken = parts.eosToken;
    this.unknownToken = parts.unknownToken;
    this.padToken = parts.padToken;
    this.endTokens = parts.endTokens;
    this.addsBos = parts.bosToken !== null && parts.prefix.includes(parts.bosToken);
    this.addsEos = parts.eosToken !== null && parts.suffix.includes(parts.eosToken);
  }

  encode(text: string, { addSpecial = true, parseSpecial = true }: EncodeOptions = {}): number[] {
    if (typeof text !== "string") throw new TypeError(`encode: expected a string, got ${show(text)}`);
    const { prefix, suffix, addedTokens, encodeText } = this.#parts;
    const out: number[] = addSpecial ? [...prefix] : [];
    addedTokens.split(
      wellFormed(text),
      parseSpecial,
      (part, start) => encodeText(part, start, out, parseSpecial),
      (token) => out.push(token.id),
    );
    if (addSpecial) out.push(...suffix);
    return out;
  }

  decode(ids: ArrayLike<number>, { skipSpecial = false }: DecodeOptions = {}): string {
    const sink = new ByteSink();
    const writer = new TokenWriter(this, this.#parts, skipSpecial);
    for (let i = 0; i < ids.length; i++) sink.push(writer.bytesOf(ids[i]!));
    return decodeUtf8(sink.view(), this.#parts.invalidBytes);
  }

  stream({ skipSpecial = false, after = [] }: StreamOptions = {}): TokenStream {
    const writer = new TokenWriter(this, this.#parts, skipSpecial);
    const text = new Utf8Stream(this.#parts.invalidBytes);
    for (let i = 0; i < after.length; i++) text.push(writer.bytesOf(after[i]!));
    return {
      push: (id) => text.push(writer.bytesOf(id)),
      end: () => text.end(),
    };
  }

  tokenText(id: number): string {
    this.expectId("tokenText", id);
    return this.#parts.vocabulary.texts[id]!;
  }

  tokenBytes(id: number): Uint8Array {
    this.expectId("tokenBytes", id);
    return this.bytes(id).slice();
  }

  tokenId(text: string): number | undefined {
    return this.#parts.vocabulary.id(text);
  }

  isSpecial(id: number): boolean {
    this.expectId("isSpecial", id);
    return this.#parts.isSpecial(id);
  }

  /** tokenBytes without the copy. */
  bytes(id: number): Uint8Array {
    let bytes = this.#bytes[id];
    if (bytes === undefined) {
      bytes = this.#parts.tokenBytes(id);
      this.#bytes[id] = bytes;
    }
    return bytes;
  }

  expectId(who: string, id: number): void {
    if (!Number.isInteger(id) || id < 0 || id >= this.vocabSize) {
      throw new RangeError(`${who}: expected a token id from 0 to ${this.vocabSize - 1}, got ${show(id)}`);
    }
  }
}

/** The bytes that each token adds to a text, knowing what came before it. */
class TokenWriter {
  readonly #tokenizer: AssembledTokenizer;
  readonly #parts: TokenizerParts;
  readonly #skipSpecial: boolean;
  #atStart = true;

  constructor(tokenizer: AssembledTokenizer, parts: TokenizerParts, skipSpecial: boolean) {
    this.#tokenizer = tokenizer;
    this.#parts = parts;
    this.#skipSpecial = skipSpecial;
  }

  bytesOf(id: number): Uint8Array {
    this.#tokenizer.expectId("decode", id);
    const { isSpecial, leadingSpace, restartsAfter } = this.#parts;
    const skipped = this.#skipSpecial && isSpecial(id);
    if (skipped || restartsAfter(id)) {
      this.#atStart ||= restartsAfter(id);
      return skipped ? none : this.#tokenizer.bytes(id);
    }
    const bytes = this.#tokenizer.bytes(id);
    if (!this.#atStart) return bytes;
    this.#atStart = false;
    // Byte tokens and what is written for unknown ones stand as they are.
    const kind = this.#parts.vocabulary.classes[id];
    if (leadingSpace === "keep" || kind === "byte" || kind === "unknown" || bytes[0] !== 0x20) return bytes;
    if (leadingSpace === "first-token") {
      const end = bytes.findIndex((byte) => byte !== 0x20);
      return end < 0 ? none : bytes.subarray(end);
    }
    this.#atStart = leadingSpace === "one-a-token" && bytes.length === 1;
    return bytes.subarray(1);
  }
}
