// Byte-pair encoding with a list of merges in order of rank: GPT-2's and its many children's (over bytes), and the
// converted SentencePiece kind (over characters, with <0xNN> tokens for what the vocabulary lacks). Words in, ids out;
// what a word is, the pre-tokenizer says.

import { FormatError, quote } from "../bytes/format-error.ts";
import { byteCharacter, byteLevelText } from "./byte-level.ts";
import { type MergeRules, Merger, WordCache } from "./merger.ts";
import { PairTable } from "./pair-table.ts";
import { Utf8Scratch, utf8Bytes } from "./utf8.ts";
import type { Vocabulary } from "./vocabulary.ts";

export interface BpeOptions {
  readonly vocabulary: Vocabulary;
  /** "left right", or the two parts, by rank. */
  readonly merges: readonly (string | readonly [string, string])[];
  /** What messages call the file. */
  readonly file: string;
  /** Words are bytes, written in byte-level text; otherwise characters. */
  readonly byteLevel: boolean;
  /** A word that is a token is that token, whatever the merges would make of it. */
  readonly ignoreMerges?: boolean;
  readonly unknownToken?: number | null;
  /** Neighbouring unknown characters make one unknown token. */
  readonly fuseUnknown?: boolean;
  /** A character without a token becomes the tokens <0xNN> of its bytes. */
  readonly byteFallback?: boolean;
  /** It does so after merging, when it has kept its neighbours apart (llama.cpp), and not before (Hugging Face). */
  readonly fallbackLast?: boolean;
  /** Stands before every character of a word but the first ("##"), or behind the last ("</w>"). */
  readonly continuingPrefix?: string;
  readonly endOfWord?: string;
}

/** Rules are merges, their number is their rank. */
class RankedMerges implements MergeRules {
  readonly #rules: PairTable;
  readonly #results: Int32Array;

  constructor(count: number) {
    this.#rules = new PairTable(count);
    this.#results = new Int32Array(count);
  }

  add(rank: number, left: number, right: number, result: number): void {
    this.#results[rank] = result;
    // A merge that is listed twice keeps its first rank.
    if (this.#rules.get(left, right) === undefined) this.#rules.set(left, right, rank);
  }

  find(left: number, right: number): number {
    return this.#rules.get(left, right) ?? -1;
  }
  rank(rule: number): number {
    return rule;
  }
  result(rule: number): number {
    return this.#results[rule]!;
  }
}

export class BpeEncoder {
  readonly #vocabulary: Vocabulary;
  readonly #options: BpeOptions;
  readonly #merges: RankedMerges;
  readonly #merger: Merger = new Merger();
  readonly #cache: WordCache = new WordCache();
  readonly #utf8: Utf8Scratch = new Utf8Scratch();
  /** Symbols that merges name but the vocabulary lacks, with numbers from its size on. */
  readonly #extra: Map<string, number> = new Map();
  readonly #extraTexts: string[] = [];
  readonly #byteSymbols: Int32Array;
  readonly #byteTokens: Int32Array;
  #symbols: Int32Array = new Int32Array(64);

  constructor(options: BpeOptions) {
    const { vocabulary, merges, file, byteLevel, continuingPrefix = "" } = options;
    this.#vocabulary = vocabulary;
    this.#options = options;
    this.#merges = new RankedMerges(merges.length);
    for (let rank = 0; rank < merges.length; rank++) {
      const merge = merges[rank]!;
      let [left, right] = typeof merge === "string" ? ["", ""] : merge;
      if (typeof merge === "string") {
        // The left part may itself start with a space (never in byte-level text, where a space is "Ġ").
        const at = merge.indexOf(" ", 1);
        if (at < 0) throw new FormatError(file, `expected merge ${rank} as two parts, got ${quote(merge)}`);
        left = merge.slice(0, at);
        right = merge.slice(at + 1);
      }
      if (left === "" || right === "") {
        throw new FormatError(
          file,
          `expected merge ${rank} as two parts that are not empty, got ${quote(String(merge))}`,
        );
      }
      const joined = left + (right.startsWith(continuingPrefix) ? right.slice(continuingPrefix.length) : right);
      this.#merges.add(rank, this.#symbol(left), this.#symbol(right), this.#symbol(joined));
    }
    this.#byteSymbols = byteLevel
      ? Int32Array.from({ length: 256 }, (_, byte) => this.#symbol(byteCharacter(byte)))
      : new Int32Array(0);
    this.#byteTokens = options.byteFallback ? vocabulary.byteTokens() : new Int32Array(0);
  }

  #symbol(text: string): number {
    const id = this.#vocabulary.id(text) ?? this.#extra.get(text);
    if (id !== undefined) return id;
    const extra = this.#vocabulary.size + this.#extraTexts.length;
    this.#extra.set(text, extra);
    this.#extraTexts.push(text);
    return extra;
  }

  /** Appends the ids of one word. */
  encodeWord(word: string, out: number[]): void {
    let ids = this.#cache.get(word);
    if (ids === undefined) {
      ids = this.#options.byteLevel ? this.#bytes(word) : this.#characters(word);
      this.#cache.set(word, ids);
    }
    for (const id of ids) out.push(id);
  }

  #room(count: number): void {
    if (count > this.#symbols.length || this.#symbols.length > 1 << 20) this.#symbols = new Int32Array(2 * count);
  }

  #bytes(word: string): number[] {
    const length = this.#utf8.encode(word);
    const { bytes } = this.#utf8;
    if (this.#options.ignoreMerges) {
      const whole = this.#vocabulary.id(byteLevelText(bytes, length));
      if (whole !== undefined) return [whole];
    }
    this.#room(length);
    for (let i = 0; i < length; i++) this.#symbols[i] = this.#byteSymbols[bytes[i]!]!;
    return this.#finish(this.#merger.merge(this.#symbols, length, this.#merges));
  }

  #characters(word: string): number[] {
    const { ignoreMerges, continuingPrefix = "", endOfWord = "", fallbackLast } = this.#options;
    const { unknownToken = null, fuseUnknown } = this.#options;
    if (ignoreMerges) {
      const whole = this.#vocabulary.id(word);
      if (whole !== undefined) return [whole];
    }
    const length = this.#utf8.encode(word);
    this.#room(length);
    const symbols = this.#symbols;
    let count = 0;
    let at = 0;
    let byteAt = 0;
    let wasUnknown = false;
    for (const character of word) {
      let text = character;
      if (at > 0) text = continuingPrefix + text;
      at += character.length;
      if (at === word.length) text += endOfWord;
      const bytes = utf8Size(character);
      const id = this.#vocabulary.id(text);
      if (id !== undefined) {
        symbols[count++] = id;
      } else if (fallbackLast) {
        symbols[count++] = this.#symbol(text);
      } else if (this.#fallsBack(byteAt, bytes)) {
        for (let i = 0; i < bytes; i++) symbols[count++] = this.#byteTokens[this.#utf8.bytes[byteAt + i]!]!;
      } else if (unknownToken !== null && !(fuseUnknown && wasUnknown)) {
        symbols[count++] = unknownToken;
      }
      wasUnknown = id === undefined;
      byteAt += bytes;
    }
    return this.#finish(this.#merger.merge(symbols, count, this.#merges));
  }

  /** Every byte of the character has its token. */
  #fallsBack(at: number, bytes: number): boolean {
    if (this.#byteTokens.length === 0) return false;
    for (let i = 0; i < bytes; i++) if (this.#byteTokens[this.#utf8.bytes[at + i]!] === -1) return false;
    return true;
  }

  /** Symbols without a token go out as their characters' tokens; what has none at all is unknown, or lost. */
  #finish(count: number): number[] {
    const { size } = this.#vocabulary;
    const { unknownToken = null, fallbackLast } = this.#options;
    const ids: number[] = [];
    for (let i = 0; i < count; i++) {
      const symbol = this.#symbols[i]!;
      if (symbol < size) {
        ids.push(symbol);
        continue;
      }
      const text = this.#extraTexts[symbol - size]!;
      if (fallbackLast) {
        for (const byte of utf8Bytes(text)) if (this.#byteTokens[byte]! >= 0) ids.push(this.#byteTokens[byte]!);
        continue;
      }
      for (const character of text) {
        const id = this.#vocabulary.id(character) ?? unknownToken;
        if (id !== null) ids.push(id);
      }
    }
    return ids;
  }
}

function utf8Size(character: string): number {
  const code = character.codePointAt(0)!;
  return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}
