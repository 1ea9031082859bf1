// SentencePiece's BPE: characters merge while their concatenation is a piece, highest score first, leftmost of equals
// (Kudo and Richardson 2018; sentencepiece bpe_model.cc). There is no list of merges: the pieces are the rules. The
// same runs llama.cpp's "llama" vocabularies and llama2.c's.

import { type MergeRules, Merger, WordCache } from "./merger.ts";
import { PairTable } from "./pair-table.ts";
import { Utf8Scratch } from "./utf8.ts";
import type { Vocabulary } from "./vocabulary.ts";
import { cutAtSpaces, type SpaceBridges, spaceBridges } from "./word-breaks.ts";

export interface ScoreBpeOptions {
  readonly vocabulary: Vocabulary;
  /** One a token. */
  readonly scores: ArrayLike<number>;
  /** Whether a token may come out of merging. */
  readonly mergeable: (id: number) => boolean;
  /** What the vocabulary writes for a space: "▁", or " ". */
  readonly space: string;
  /** The token of each byte, −1 without one; null when there is no byte fallback. */
  readonly byteTokens: Int32Array | null;
  readonly unknownToken: number | null;
}

/** Rules are the pieces that come out; their rank is the rank of their score. */
class Scores implements MergeRules {
  readonly #pairs: PairTable = new PairTable(4096);
  readonly #ranks: Int32Array;
  readonly #texts: (symbol: number) => string;
  readonly #pieces: ReadonlyMap<string, number>;

  constructor(ranks: Int32Array, texts: (symbol: number) => string, pieces: ReadonlyMap<string, number>) {
    this.#ranks = ranks;
    this.#texts = texts;
    this.#pieces = pieces;
  }

  find(left: number, right: number): number {
    const known = this.#pairs.get(left, right);
    if (known !== undefined) return known;
    const rule = this.#pieces.get(this.#texts(left) + this.#texts(right)) ?? -1;
    // Pairs that lead nowhere are remembered too, so the table must not grow with every text that passes.
    if (this.#pairs.size >= 1 << 20) this.#pairs.clear();
    this.#pairs.set(left, right, rule);
    return rule;
  }
  rank(rule: number): number {
    return this.#ranks[rule]!;
  }
  result(rule: number): number {
    return rule;
  }
}

export class ScoreBpeEncoder {
  readonly #options: ScoreBpeOptions;
  readonly #size: number;
  readonly #pieces: Map<string, number> = new Map();
  readonly #rules: Scores;
  readonly #merger: Merger = new Merger();
  readonly #cache: WordCache = new WordCache();
  readonly #utf8: Utf8Scratch = new Utf8Scratch();
  /** Characters that are no piece, with numbers from the vocabulary's size on: at most one a code point. */
  readonly #strangers: Map<string, number> = new Map();
  readonly #strangerTexts: string[] = [];
  readonly #bridges: SpaceBridges;
  #symbols: Int32Array = new Int32Array(64);

  constructor(options: ScoreBpeOptions) {
    const { vocabulary, scores, mergeable } = options;
    this.#options = options;
    this.#size = vocabulary.size;
    for (let id = 0; id < vocabulary.size; id++) {
      const text = vocabulary.texts[id]!;
      if (mergeable(id) && text !== "" && !this.#pieces.has(text)) this.#pieces.set(text, id);
    }
    this.#rules = new Scores(scoreRanks(scores), (symbol) => this.#text(symbol), this.#pieces);
    this.#bridges = spaceBridges(this.#pieces.keys(), options.space);
  }

  #text(symbol: number): string {
    return symbol < this.#size ? this.#options.vocabulary.texts[symbol]! : this.#strangerTexts[symbol - this.#size]!;
  }

  /** Appends the ids of normalised text. */
  encode(text: string, out: number[]): void {
    cutAtSpaces(text, this.#options.space, this.#bridges, (word) => {
      let ids = this.#cache.get(word);
      if (ids === undefined) {
        const fresh: number[] = [];
        this.#word(word, fresh);
        ids = fresh;
        this.#cache.set(word, ids);
      }
      const { byteTokens, unknownToken } = this.#options;
      // Unknown characters in a row are one unknown token, over the cut too.
      const fused = byteTokens === null && ids[0] === unknownToken && out.at(-1) === unknownToken;
      for (let i = fused ? 1 : 0; i < ids.length; i++) out.push(ids[i]!);
    });
  }

  #word(word: string, out: number[]): void {
    if (word.length > this.#symbols.length || this.#symbols.length > 1 << 20) {
      this.#symbols = new Int32Array(Math.max(64, word.length));
    }
    let count = 0;
    for (const character of word) this.#symbols[count++] = this.#character(character);
    const kept = this.#merger.merge(this.#symbols, count, this.#rules);
    const { byteTokens, unknownToken } = this.#options;
    let wasUnknown = false;
    for (let i = 0; i < kept; i++) {
      const symbol = this.#symbols[i]!;
      if (symbol < this.#size) {
        this.#emit(symbol, out);
        wasUnknown = false;
        continue;
      }
      const length = byteTokens === null ? 0 : this.#utf8.encode(this.#strangerTexts[symbol - this.#size]!);
      const bytes = this.#utf8.bytes.subarray(0, length);
      if (byteTokens !== null && bytes.every((byte) => byteTokens[byte] !== -1)) {
        for (const byte of bytes) out.push(byteTokens[byte]!);
        wasUnknown = false;
      } else if (unknownToken !== null) {
        // Unknown characters in a row are one unknown token.
        if (!wasUnknown) out.push(unknownToken);
        wasUnknown = true;
      }
    }
  }

  /** Unused pieces help other pieces to form and are taken apart again when they remain. */
  #emit(id: number, out: number[]): void {
    const { vocabulary } = this.#options;
    if (vocabulary.classes[id] !== "unused") {
      out.push(id);
      return;
    }
    const halves = this.#halves(vocabulary.texts[id]!);
    if (halves === null) {
      out.push(id);
      return;
    }
    for (const half of halves) this.#emit(half, out);
  }

  /** The pair of pieces that would have merged into a text last: the one merging of its characters ends with. */
  #halves(text: string): readonly [number, number] | null {
    const characters = [...text].map((character) => this.#character(character));
    if (characters.length < 2) return null;
    // Merge everything but the last step: the same run, with the whole text forbidden.
    const whole = this.#pieces.get(text)!;
    const symbols = Int32Array.from(characters);
    const kept = new Merger().merge(symbols, symbols.length, {
      find: (left, right) => {
        const rule = this.#rules.find(left, right);
        return rule === whole ? -1 : rule;
      },
      rank: (rule) => this.#rules.rank(rule),
      result: (rule) => rule,
    });
    return kept === 2 && symbols[0]! < this.#size && symbols[1]! < this.#size ? [symbols[0]!, symbols[1]!] : null;
  }

  #character(character: string): number {
    const piece = this.#pieces.get(character) ?? this.#strangers.get(character);
    if (piece !== undefined) return piece;
    const stranger = this.#size + this.#strangerTexts.length;
    this.#strangers.set(character, stranger);
    this.#strangerTexts.push(character);
    return stranger;
  }
}

/** Position of each score among the distinct scores, highest first. */
export function scoreRanks(scores: ArrayLike<number>): Int32Array {
  const sorted = Float64Array.from(new Set(Array.from(scores)))
    .sort()
    .reverse();
  const ranks = new Map<number, number>();
  for (let i = 0; i < sorted.length; i++) ranks.set(sorted[i]!, i);
  return Int32Array.from({ length: scores.length }, (_, id) => ranks.get(scores[id]!)!);
}
