// Tokens that needles are hidden in: a text of the user's, or sentences that are made up.

import { random } from "../../../tensor/index.ts";
import { type PieceTokenizer, pieceTokens } from "./pieces.ts";
import { drawSentence } from "./words.ts";

export interface Haystack {
  /** For a report: "text", "generated". */
  readonly kind: string;
  /** `count` tokens, or fewer where there are no more; another stretch for another seed. */
  tokens(count: number, seed: number): number[];
  /** Whether a sentence ends with this token. */
  endsSentence(token: number): boolean;
}

/**
 * Stretches of a text.
 *
 * @param tokens of the text, without special tokens
 */
export function textHaystack(tokenizer: PieceTokenizer, tokens: ArrayLike<number>): Haystack {
  return {
    kind: "text",
    endsSentence: sentenceEnds(tokenizer),
    tokens(count, seed) {
      const room = tokens.length - count;
      const start = room <= 0 ? 0 : random(seed).integer(room + 1);
      return Array.from({ length: Math.min(count, tokens.length) }, (_, i) => tokens[start + i]!);
    },
  };
}

/** Sentences that are drawn, for whoever has no text: "At noon the miller hid the dusty lamp behind the mill." */
export function generatedHaystack(tokenizer: PieceTokenizer): Haystack {
  return {
    kind: "generated",
    endsSentence: sentenceEnds(tokenizer),
    tokens(count, seed) {
      const stream = random(seed);
      const out: number[] = [];
      while (out.length < count) out.push(...pieceTokens(tokenizer, drawSentence(stream)));
      return out.slice(0, count);
    },
  };
}

function sentenceEnds(tokenizer: PieceTokenizer): (token: number) => boolean {
  const decoder = new TextDecoder();
  const known = new Map<number, boolean>();
  return (token) => {
    let ends = known.get(token);
    if (ends === undefined) {
      ends = /[.!?。！？]["'”’)\]]*\s*$|\n\s*$/u.test(decoder.decode(tokenizer.tokenBytes(token)));
      known.set(token, ends);
    }
    return ends;
  };
}
