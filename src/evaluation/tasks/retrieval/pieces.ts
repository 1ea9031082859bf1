// Texts as tokens that stand in the middle of other tokens. A prompt is put together from pieces, so that it has exactly
// as many tokens as it should.

import type { Tokenizer } from "../../../formats/tokenizers/index.ts";

/** What evaluation needs of a tokenizer. */
export type PieceTokenizer = Pick<Tokenizer, "encode" | "tokenBytes">;

/** Tokens of a text that follows other text. It begins with a space (or is empty), where tokenizers cut anyway; some put
 *  a space of their own before whatever they are given, so the text is read behind a word that is then taken away. */
export function pieceTokens(tokenizer: PieceTokenizer, text: string): number[] {
  if (text === "") return [];
  const options = { addSpecial: false, parseSpecial: false } as const;
  const before = tokenizer.encode("a.", options);
  const whole = tokenizer.encode(`a.${text}`, options);
  if (before.every((id, i) => whole[i] === id)) return whole.slice(before.length);
  return tokenizer.encode(text, options);
}

/** UTF-8 bytes that each token stands for. */
export function byteCounts(tokenizer: PieceTokenizer, tokens: ArrayLike<number>): Uint32Array {
  return Uint32Array.from({ length: tokens.length }, (_, i) => tokenizer.tokenBytes(tokens[i]!).length);
}
