// The tokens of a tokenizer: their texts, what class each is of, and their ids by text. Classes are SentencePiece's,
// which GGUF took over (llama.h, llama_token_type).

import { FormatError } from "../bytes/format-error.ts";

export type TokenClass = "normal" | "unknown" | "control" | "user-defined" | "unused" | "byte";

/** By SentencePiece's and GGUF's number; GGUF's 0 is "undefined", which nothing writes. */
export const tokenClasses: readonly (TokenClass | undefined)[] = [
  undefined,
  "normal",
  "unknown",
  "control",
  "user-defined",
  "unused",
  "byte",
];

/** No published vocabulary has more than 2^20; a hostile file may claim anything. */
export const maxVocabulary: number = 2 ** 22;

export class Vocabulary {
  readonly texts: readonly string[];
  readonly classes: readonly TokenClass[];
  readonly #ids: Map<string, number> = new Map();

  /** Of texts that occur twice the first keeps its id. */
  constructor(texts: readonly string[], classes: readonly TokenClass[]) {
    this.texts = texts;
    this.classes = classes;
    for (let id = 0; id < texts.length; id++) {
      const text = texts[id]!;
      if (!this.#ids.has(text)) this.#ids.set(text, id);
    }
  }

  get size(): number {
    return this.texts.length;
  }

  id(text: string): number | undefined {
    return this.#ids.get(text);
  }

  /** Ids of the byte tokens <0x00> to <0xFF>; −1 where there is none. */
  byteTokens(): Int32Array {
    return Int32Array.from({ length: 256 }, (_, byte) => this.id(byteTokenText(byte)) ?? -1);
  }
}

/** "<0x0A>" for 10. */
export function byteTokenText(byte: number): string {
  return `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;
}

/** 10 for "<0x0A>"; undefined for any other text. */
export function byteOfToken(text: string): number | undefined {
  return /^<0x[0-9A-F]{2}>$/.test(text) ? Number.parseInt(text.slice(3, 5), 16) : undefined;
}

/** Throws unless the id is one of the vocabulary, or absent. */
export function expectToken(file: string, what: string, id: number | null, size: number): number | null {
  if (id !== null && (!Number.isInteger(id) || id < 0 || id >= size)) {
    throw new FormatError(file, `expected ${what} to be a token id from 0 to ${size - 1}, got ${id}`);
  }
  return id;
}

/** Throws unless a file's count of tokens is possible. */
export function expectVocabularySize(file: string, count: number): void {
  if (count < 1 || count > maxVocabulary) {
    throw new FormatError(file, `expected a vocabulary of 1 to ${maxVocabulary} tokens, got ${count}`);
  }
}
