// llama2.c's tokenizer.bin (tok512.bin beside stories260K): the longest token's length, then for each token its score
// and its text, where a space is a space. Merging by score with a dummy space in front, as run.c does; characters
// without a token become byte tokens, whose ids follow the three special ones.

import type { ByteSource } from "../bytes/byte-source.ts";
import { FormatError } from "../bytes/format-error.ts";
import { AddedTokens } from "./added-tokens.ts";
import { assembleTokenizer } from "./assembled.ts";
import { ScoreBpeEncoder } from "./score-bpe.ts";
import type { Tokenizer } from "./tokenizer.ts";
import { utf8Bytes } from "./utf8.ts";
import { byteOfToken, expectVocabularySize, maxVocabulary, type TokenClass, Vocabulary } from "./vocabulary.ts";

const bos = 1;
const eos = 2;
const maxFileBytes = 256 * 2 ** 20;

/**
 * A tokenizer from llama2.c's `tokenizer.bin`.
 *
 * @param vocabSize what the model beside it says; the file itself carries no count
 * @throws FormatError for a file that ends inside a token, another number of tokens, text that is not UTF-8, fewer than
 *   the three special and 256 byte tokens
 */
export async function llama2cTokenizer(source: ByteSource, vocabSize?: number): Promise<Tokenizer> {
  const file = source.name;
  if (source.size > maxFileBytes) {
    throw new FormatError(file, `expected a tokenizer of at most ${maxFileBytes} bytes, got ${source.size}`);
  }
  const bytes = await source.read(0, source.size);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  if (bytes.length < 4)
    throw new FormatError(file, `expected max_token_length (4 bytes), got ${bytes.length} bytes`, 0);
  const longest = view.getInt32(0, true);
  if (longest < 1 || longest > 2 ** 16) {
    throw new FormatError(
      file,
      `expected max_token_length from 1 to 65536, got ${longest}: is it a llama2.c tokenizer?`,
      0,
    );
  }
  const texts: string[] = [];
  const scores: number[] = [];
  for (let at = 4; at < bytes.length; ) {
    const id = texts.length;
    if (id === vocabSize) {
      throw new FormatError(file, `expected ${vocabSize} tokens, as the model has, got more`, at);
    }
    if (id >= maxVocabulary) throw new FormatError(file, `expected at most ${maxVocabulary} tokens, got more`, at);
    if (bytes.length - at < 8) {
      throw new FormatError(file, `expected the score and length of token ${id}, got ${bytes.length - at} bytes`, at);
    }
    const score = view.getFloat32(at, true);
    const length = view.getInt32(at + 4, true);
    if (!Number.isFinite(score))
      throw new FormatError(file, `expected a finite score of token ${id}, got ${score}`, at);
    if (length < 0 || length > longest || length > bytes.length - at - 8) {
      throw new FormatError(
        file,
        `expected token ${id} of at most ${Math.min(longest, bytes.length - at - 8)} bytes, got length ${length}`,
        at + 4,
      );
    }
    try {
      texts.push(decoder.decode(bytes.subarray(at + 8, at + 8 + length)));
    } catch {
      throw new FormatError(file, `expected token ${id} to be valid UTF-8`, at + 8);
    }
    scores.push(score);
    at += 8 + length;
  }
  expectVocabularySize(file, texts.length);
  if (vocabSize !== undefined && texts.length !== vocabSize) {
    throw new FormatError(file, `expected ${vocabSize} tokens, as the model has, got ${texts.length}`);
  }
  if (texts.length < 259) {
    throw new FormatError(file, `expected three special and 256 byte tokens at least, got ${texts.length} tokens`);
  }
  const classes = texts.map((_, id): TokenClass => {
    if (id < 3) return id === 0 ? "unknown" : "control";
    return id < 259 ? "byte" : "normal";
  });
  for (let id = 3; id < 259; id++) {
    if (byteOfToken(texts[id]!) !== id - 3) {
      throw new FormatError(file, `expected token ${id} to be the byte ${id - 3}, got ${JSON.stringify(texts[id])}`);
    }
  }
  const vocabulary = new Vocabulary(texts, classes);
  const encoder = new ScoreBpeEncoder({
    vocabulary,
    scores,
    mergeable: (id) => classes[id] === "normal",
    space: " ",
    byteTokens: Int32Array.from({ length: 256 }, (_, byte) => byte + 3),
    unknownToken: 0,
  });
  return assembleTokenizer({
    kind: "llama2.c",
    vocabulary,
    bosToken: bos,
    eosToken: eos,
    unknownToken: 0,
    padToken: null,
    // run.c stops at BOS too, which its training data put between stories.
    endTokens: [bos, eos],
    prefix: [bos],
    suffix: [],
    // run.c never reads a special token in a text.
    addedTokens: new AddedTokens([]),
    encodeText: (text, _start, out) => encoder.encode(` ${text}`, out),
    isSpecial: (id) => id < 3,
    tokenBytes: (id) => (classes[id] === "byte" ? Uint8Array.of(id - 3) : utf8Bytes(texts[id]!)),
    leadingSpace: "one",
    restartsAfter: (id) => id === bos,
    invalidBytes: "one-a-byte",
  });
}
