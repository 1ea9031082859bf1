// SentencePiece models: the tokenizers of T5, LLaMA 1 and 2, Mistral, Gemma. Normalise, segment by BPE or unigram, fall
// back to bytes; ids equal those of the sentencepiece library.

import { FormatError } from "../../bytes/format-error.ts";
import { type AddedToken, AddedTokens, addedToken } from "../added-tokens.ts";
import { assembleTokenizer } from "../assembled.ts";
import { endTokensOf } from "../end-tokens.ts";
import { ScoreBpeEncoder } from "../score-bpe.ts";
import type { Tokenizer } from "../tokenizer.ts";
import { UnigramEncoder } from "../unigram.ts";
import { utf8Bytes } from "../utf8.ts";
import { byteOfToken, type TokenClass, Vocabulary } from "../vocabulary.ts";
import { sentencePieceNormalizer, spaceSymbol } from "./normalizer.ts";
import { readSentencePieceModel } from "./proto.ts";

export interface SentencePieceOptions {
  /** What messages call the file. */
  readonly name?: string;
  /** Put BOS in front, EOS behind. A .model does not say; without these a model that has BOS gets it in front (LLaMA,
   *  Gemma), and one without gets EOS behind (T5). */
  readonly addBos?: boolean;
  readonly addEos?: boolean;
  /** Tokens that tokenizer_config.json lists (added_tokens_decoder). Those with the id of a piece are that piece; the
   *  others must follow the pieces without a gap. */
  readonly addedTokens?: readonly AddedToken[];
  /** T5's sentinels behind the pieces, <extra_id_0> with the highest id. */
  readonly sentinels?: number;
}

/**
 * A tokenizer from the bytes of a SentencePiece `.model`.
 *
 * Text between special tokens is encoded on its own, dummy space included. `parseSpecial: false` gives what the
 * sentencepiece library gives, which never reads control symbols in a text.
 *
 * @throws FormatError for bytes that are no such model, and for word and char models
 */
export function sentencePieceTokenizer(bytes: Uint8Array, options: SentencePieceOptions = {}): Tokenizer {
  const file = options.name ?? "tokenizer.model";
  const model = readSentencePieceModel(bytes, file);
  const extra = extraTokens(model.pieces.length, options, file);
  const vocabulary = new Vocabulary(
    [...model.pieces, ...extra.map((token) => token.text)],
    [...model.classes, ...extra.map((token): TokenClass => (token.special ? "control" : "user-defined"))],
  );
  const { classes, texts } = vocabulary;
  const scores = new Float64Array(vocabulary.size);
  scores.set(model.scores);

  const control = (name: string): number | null => {
    const id = vocabulary.id(name);
    return id !== undefined && classes[id] === "control" ? id : null;
  };
  const unknownToken = classes.indexOf("unknown");
  const bosToken = control(model.names.bos);
  const eosToken = control(model.names.eos);
  const addBos = (options.addBos ?? bosToken !== null) && bosToken !== null;
  const addEos = (options.addEos ?? bosToken === null) && eosToken !== null;

  const special: AddedToken[] = [];
  const userDefined: AddedToken[] = [];
  for (let id = 0; id < model.pieces.length; id++) {
    if (classes[id] === "control" || classes[id] === "unknown") special.push(addedToken(id, texts[id]!, true));
    else if (classes[id] === "user-defined") userDefined.push(addedToken(id, texts[id]!, false));
  }
  const normalize = sentencePieceNormalizer({ file, ...model, userDefined: userDefined.map((token) => token.text) });
  const piece = (id: number): boolean =>
    id < model.pieces.length &&
    (classes[id] === "normal" || classes[id] === "user-defined" || classes[id] === "unused");
  const shared = {
    vocabulary,
    scores,
    space: model.escapeWhitespaces ? spaceSymbol : " ",
    byteTokens: model.byteFallback ? vocabulary.byteTokens() : null,
    unknownToken,
  };
  let segment: (text: string, out: number[]) => void;
  if (model.modelType === "unigram") {
    const encoder = new UnigramEncoder({
      ...shared,
      usable: (id) => piece(id) && classes[id] !== "unused",
      counted: (id) => classes[id] === "normal",
      always: (id) => classes[id] === "user-defined",
    });
    segment = (text, out) => encoder.encode(text, out);
  } else {
    const encoder = new ScoreBpeEncoder({ ...shared, mergeable: piece });
    const symbols = new AddedTokens(userDefined);
    segment = (text, out) =>
      symbols.split(
        text,
        true,
        (part) => encoder.encode(part, out),
        (token) => out.push(token.id),
      );
  }

  return assembleTokenizer({
    kind: model.modelType === "unigram" ? "sentencepiece-unigram" : "sentencepiece-bpe",
    vocabulary,
    bosToken,
    eosToken,
    unknownToken,
    padToken: control(model.names.pad),
    endTokens: endTokensOf(vocabulary, [eosToken]),
    prefix: addBos ? [bosToken] : [],
    suffix: addEos ? [eosToken] : [],
    addedTokens: new AddedTokens([...extra, ...special]),
    encodeText: (text, _start, out) => segment(normalize(text), out),
    isSpecial: (id) => classes[id] === "control",
    tokenBytes: (id) => {
      if (classes[id] === "unknown") return utf8Bytes(model.unknownSurface);
      if (classes[id] === "control") return utf8Bytes(texts[id]!);
      const byte = classes[id] === "byte" ? byteOfToken(texts[id]!) : undefined;
      if (byte !== undefined) return Uint8Array.of(byte);
      return utf8Bytes(model.escapeWhitespaces ? texts[id]!.replaceAll(spaceSymbol, " ") : texts[id]!);
    },
    leadingSpace: model.removeExtraWhitespaces ? "one-a-token" : model.addDummyPrefix ? "one" : "keep",
    restartsAfter: (id) => classes[id] === "control",
    invalidBytes: "one-a-byte",
  });
}

/** The tokens behind the model's pieces, in order. */
function extraTokens(pieces: number, options: SentencePieceOptions, file: string): AddedToken[] {
  const { addedTokens = [], sentinels = 0 } = options;
  const extra = addedTokens.filter((token) => token.id >= pieces).sort((a, b) => a.id - b.id);
  const listed = new Set(extra.map((token) => token.text));
  // A configuration may list the sentinels as well as count them.
  for (let i = 0; i < sentinels && !listed.has("<extra_id_0>"); i++) {
    extra.push({
      ...addedToken(pieces + extra.length, `<extra_id_${sentinels - 1 - i}>`, true),
      stripLeft: true,
      stripRight: true,
    });
  }
  for (const [i, token] of extra.entries()) {
    if (token.id !== pieces + i) {
      throw new FormatError(
        file,
        `expected added tokens to follow the ${pieces} pieces without a gap, got ${JSON.stringify(token.text)} as ${token.id}`,
      );
    }
  }
  return extra;
}
