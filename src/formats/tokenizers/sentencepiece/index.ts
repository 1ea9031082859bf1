// SentencePiece models: the tokenizers of T5, LLaMA 1 and 2, Mistral, Gemma. Normalise, segment by BPE or unigram, fall
// back to bytes; ids equal those of the sentencepiece library.

import { type AddedToken, AddedTokens, addedToken } from "../added-tokens.ts";
import { assembleTokenizer } from "../assembled.ts";
import { endTokensOf } from "../end-tokens.ts";
import { ScoreBpeEncoder } from "../score-bpe.ts";
import type { Tokenizer } from "../tokenizer.ts";
import { UnigramEncoder } from "../unigram.ts";
import { utf8Bytes } from "../utf8.ts";
import { byteOfToken, Vocabulary } from "../vocabulary.ts";
import { sentencePieceNormalizer, spaceSymbol } from "./normalizer.ts";
import { readSentencePieceModel } from "./proto.ts";

export interface SentencePieceOptions {
  /** What messages call the file. */
  readonly name?: string;
  /** Put BOS in front, EOS behind. A .model does not say; without these a model that has BOS gets it in front (LLaMA,
   *  Gemma), and one without gets EOS behind (T5). */
  readonly addBos?: boolean;
  readonly addEos?: boolean;
  /** Tokens that stand beyond the model's pieces, in order: T5's 100 sentinels. */
  readonly extraTokens?: readonly string[];
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
  const { extraTokens = [] } = options;
  const vocabulary = new Vocabulary(
    [...model.pieces, ...extraTokens],
    [...model.classes, ...extraTokens.map(() => "control" as const)],
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
  for (let id = 0; id < texts.length; id++) {
    if (classes[id] === "control" || classes[id] === "unknown") special.push(addedToken(id, texts[id]!, true));
    else if (classes[id] === "user-defined") userDefined.push(addedToken(id, texts[id]!, false));
  }
  const normalize = sentencePieceNormalizer({ file, ...model, userDefined: userDefined.map((token) => token.text) });
  const piece = (id: number): boolean =>
    classes[id] === "normal" || classes[id] === "user-defined" || classes[id] === "unused";
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
      usable: (id) => classes[id] === "normal" || classes[id] === "user-defined",
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
    addedTokens: new AddedTokens(special),
    encodeText: (text, _start, out) => segment(normalize(text), out),
    isSpecial: (id) => classes[id] === "control",
    tokenBytes: (id) => {
      if (classes[id] === "unknown") return utf8Bytes(model.unknownSurface);
      if (classes[id] === "control") return utf8Bytes(texts[id]!);
      const byte = classes[id] === "byte" ? byteOfToken(texts[id]!) : undefined;
      if (byte !== undefined) return Uint8Array.of(byte);
      return utf8Bytes(model.escapeWhitespaces ? texts[id]!.replaceAll(spaceSymbol, " ") : texts[id]!);
    },
    leadingSpace: model.treatWhitespaceAsSuffix
      ? "keep"
      : model.removeExtraWhitespaces
        ? "one-a-token"
        : model.addDummyPrefix
          ? "one"
          : "keep",
    restartsAfter: (id) => classes[id] === "control",
    invalidBytes: "one-a-byte",
  });
}
