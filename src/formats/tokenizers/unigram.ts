// The unigram language model's best segmentation: among all ways to write the text as pieces, the one whose
// log-probabilities sum highest (Kudo 2018, "Subword Regularization"; Viterbi over a trie, linear in the text). A
// character that no piece covers costs the lowest score minus 10. Sums are float64, as in huggingface/tokenizers and
// llama.cpp; sentencepiece adds up in float32 over the whole sentence, which can tip near-ties in very long ones.

import { WordCache } from "./merger.ts";
import { ByteTrie } from "./pair-table.ts";
import { Utf8Scratch, utf8Bytes, utf8Length } from "./utf8.ts";
import type { Vocabulary } from "./vocabulary.ts";
import { cutAtSpaces, type SpaceBridges, spaceBridges } from "./word-breaks.ts";

const unknownPenalty = 10;

export interface UnigramOptions {
  readonly vocabulary: Vocabulary;
  /** Log-probabilities, one a token. */
  readonly scores: ArrayLike<number>;
  /** Whether a token may stand in a segmentation. */
  readonly usable: (id: number) => boolean;
  /** Whether its score counts for the lowest and the highest of the vocabulary. */
  readonly counted: (id: number) => boolean;
  /** Whether it beats any other way to write its bytes (SentencePiece's user-defined symbols). */
  readonly always: (id: number) => boolean;
  /** What the vocabulary writes for a space. */
  readonly space: string;
  readonly byteTokens: Int32Array | null;
  readonly unknownToken: number;
}

export class UnigramEncoder {
  readonly #options: UnigramOptions;
  readonly #trie: ByteTrie = new ByteTrie();
  readonly #scores: Float64Array;
  readonly #unknownScore: number;
  readonly #bridges: SpaceBridges;
  readonly #cache: WordCache = new WordCache();
  readonly #utf8: Utf8Scratch = new Utf8Scratch();
  #best: Float64Array = new Float64Array(0);
  #start: Int32Array = new Int32Array(0);
  #piece: Int32Array = new Int32Array(0);

  constructor(options: UnigramOptions) {
    const { vocabulary, scores, usable, counted, always } = options;
    this.#options = options;
    this.#scores = new Float64Array(vocabulary.size);
    let lowest = Number.POSITIVE_INFINITY;
    let highest = Number.NEGATIVE_INFINITY;
    for (let id = 0; id < vocabulary.size; id++) {
      if (!counted(id)) continue;
      lowest = Math.min(lowest, scores[id]!);
      highest = Math.max(highest, scores[id]!);
    }
    this.#unknownScore = lowest - unknownPenalty;
    const pieces: string[] = [];
    for (let id = 0; id < vocabulary.size; id++) {
      const text = vocabulary.texts[id]!;
      if (text === "" || !usable(id)) continue;
      const bytes = utf8Bytes(text);
      this.#trie.add(bytes, id);
      this.#scores[id] = always(id) ? bytes.length * highest - 0.1 : scores[id]!;
      pieces.push(text);
    }
    this.#bridges = spaceBridges(pieces, options.space);
  }

  /** Appends the ids of normalised text. */
  encode(text: string, out: number[]): void {
    cutAtSpaces(text, this.#options.space, this.#bridges, (word) => {
      let ids = this.#cache.get(word);
      if (ids === undefined) {
        const fresh: number[] = [];
        this.#segment(word, fresh);
        ids = fresh;
        this.#cache.set(word, ids);
      }
      const { unknownToken, byteTokens } = this.#options;
      // Unknown characters in a row are one unknown token, over the cut too.
      const fused = byteTokens === null && ids[0] === unknownToken && out.at(-1) === unknownToken;
      for (let i = fused ? 1 : 0; i < ids.length; i++) out.push(ids[i]!);
    });
  }

  #segment(text: string, out: number[]): void {
    const size = this.#utf8.encode(text);
    const { bytes } = this.#utf8;
    if (size + 1 > this.#best.length || this.#best.length > 1 << 20) {
      const room = Math.max(64, 2 * size + 2);
      this.#best = new Float64Array(room);
      this.#start = new Int32Array(room);
      this.#piece = new Int32Array(room);
    }
    const [best, start, piece] = [this.#best, this.#start, this.#piece];
    start.fill(-1, 0, size + 1);
    best[0] = 0;
    for (let at = 0; at < size; ) {
      const here = best[at]!;
      const length = Math.max(1, utf8Length(bytes[at]!));
      let covered = false;
      let node: number | undefined = 0;
      for (let end = at; end < size; ) {
        node = this.#trie.next(node, bytes[end++]!);
        if (node === undefined) break;
        const id = this.#trie.valueAt(node);
        if (id === -1) continue;
        const score = here + this.#scores[id]!;
        if (start[end] === -1 || score > best[end]!) {
          best[end] = score;
          start[end] = at;
          piece[end] = id;
        }
        covered ||= end - at === length;
      }
      if (!covered) {
        const end = at + length;
        const score = here + this.#unknownScore;
        if (start[end] === -1 || score > best[end]!) {
          best[end] = score;
          start[end] = at;
          piece[end] = -1;
        }
      }
      at += length;
    }
    const { byteTokens, unknownToken } = this.#options;
    const reversed: number[] = [];
    for (let end = size; end > 0; end = start[end]!) {
      const id = piece[end]!;
      if (id !== -1) {
        reversed.push(id);
        continue;
      }
      const from = start[end]!;
      if (byteTokens !== null && bytes.subarray(from, end).every((byte) => byteTokens[byte] !== -1)) {
        for (let i = end - 1; i >= from; i--) reversed.push(byteTokens[bytes[i]!]!);
      } else if (reversed.at(-1) !== unknownToken) {
        reversed.push(unknownToken);
      }
    }
    for (let i = reversed.length - 1; i >= 0; i--) out.push(reversed[i]!);
  }
}
