// The tokenizer inside a GGUF file: `tokenizer.ggml.model` "gpt2" (byte-level BPE, cut as `tokenizer.ggml.pre` says),
// "llama" (SentencePiece BPE by score), "t5" (unigram), "gemma4" (merges over characters). Keys and defaults are
// llama.cpp's (src/llama-vocab.cpp).

import type { ByteSource } from "../bytes/byte-source.ts";
import { FormatError, quote } from "../bytes/format-error.ts";
import type { GgufArray, GgufHeader, GgufValue } from "../gguf/header.ts";
import { didYouMean } from "../nearest.ts";
import { type AddedToken, AddedTokens, addedToken } from "./added-tokens.ts";
import { assembleTokenizer, type TokenizerParts } from "./assembled.ts";
import { BpeEncoder } from "./bpe.ts";
import { byteLevelBytes } from "./byte-level.ts";
import { endTokensOf } from "./end-tokens.ts";
import { preTokenizerNamed, preTokenizerNames, splitWords } from "./pre-tokenizers.ts";
import { ScoreBpeEncoder } from "./score-bpe.ts";
import { sentencePieceNormalizer, spaceSymbol } from "./sentencepiece/normalizer.ts";
import type { Tokenizer } from "./tokenizer.ts";
import { UnigramEncoder } from "./unigram.ts";
import { utf8Bytes } from "./utf8.ts";
import {
  byteOfToken,
  expectToken,
  expectVocabularySize,
  type TokenClass,
  tokenClasses,
  Vocabulary,
} from "./vocabulary.ts";

const models = ["gpt2", "llama", "t5", "gemma4"] as const;
type Model = (typeof models)[number];
/** Written by converters where the model has no such token. */
const noToken = 0xffffffff;

/**
 * The tokenizer of a GGUF checkpoint.
 *
 * @param source the file that the header was read from (of a split checkpoint, its first part)
 * @throws FormatError when it carries none, one of another kind (naming those that are known), a pre-tokenizer that is
 *   not known (naming the nearest), or arrays that do not fit together
 */
export async function ggufTokenizer(source: ByteSource, header: GgufHeader): Promise<Tokenizer> {
  const file = new Metadata(source, header);
  const model = file.string("tokenizer.ggml.model");
  if (model === undefined) throw file.error("expected the key tokenizer.ggml.model, got none: no tokenizer inside");
  if (!(models as readonly string[]).includes(model)) {
    throw file.error(
      `expected tokenizer.ggml.model to be one of ${models.join(", ")}, got ${quote(model)}${didYouMean(model, models)}`,
    );
  }
  const { vocabulary, scores } = await readVocabulary(file, model as Model);
  const { classes, texts } = vocabulary;
  const token = (key: string, fallback: number | null): number | null => {
    const id = file.integer(`tokenizer.ggml.${key}`);
    if (id === noToken) return null;
    if (id !== undefined) return expectToken(source.name, `tokenizer.ggml.${key}`, id, vocabulary.size);
    return fallback !== null && fallback < vocabulary.size ? fallback : null;
  };
  const [bos, eos, unknown, pad] = {
    gpt2: [null, null, null, null],
    llama: [1, 2, 0, null],
    t5: [null, 1, 2, 0],
    gemma4: [null, null, null, null],
  }[model as Model] as [number | null, number | null, number | null, number | null];
  const bosToken = token("bos_token_id", bos);
  const eosToken = token("eos_token_id", eos);
  const unknownToken = token("unknown_token_id", unknown);
  const named = [eosToken, token("eot_token_id", null), token("eom_token_id", null)];

  const special: AddedToken[] = [];
  const userDefined: AddedToken[] = [];
  for (let id = 0; id < texts.length; id++) {
    if (classes[id] === "control" || classes[id] === "unknown") special.push(addedToken(id, texts[id]!, true));
    else if (classes[id] === "user-defined") userDefined.push(addedToken(id, texts[id]!, false));
  }
  const around = (addBos: boolean, addEos: boolean): Pick<TokenizerParts, "prefix" | "suffix"> => {
    const put = (key: string, byDefault: boolean, id: number | null, idKey: string): number[] => {
      if (!(file.boolean(`tokenizer.ggml.${key}`) ?? byDefault)) return [];
      if (id === null) throw file.error(`expected tokenizer.ggml.${idKey}, as ${key} is true, got none`);
      return [id];
    };
    return {
      prefix: put("add_bos_token", addBos, bosToken, "bos_token_id"),
      suffix: put("add_eos_token", addEos, eosToken, "eos_token_id"),
    };
  };
  const shared = {
    vocabulary,
    bosToken,
    eosToken,
    unknownToken,
    padToken: token("padding_token_id", pad),
    endTokens: endTokensOf(vocabulary, named),
    addedTokens: new AddedTokens([...special, ...userDefined]),
    isSpecial: (id: number) => classes[id] === "control" || classes[id] === "unknown",
  };
  const verbatim = (id: number): boolean =>
    classes[id] === "control" || classes[id] === "unknown" || classes[id] === "user-defined";
  const pieceBytes = (id: number): Uint8Array => {
    const text = texts[id]!;
    const byte = classes[id] === "byte" ? byteOfToken(text) : undefined;
    if (byte !== undefined) return Uint8Array.of(byte);
    return utf8Bytes(verbatim(id) ? text : text.replaceAll(spaceSymbol, " "));
  };

  switch (model as Model) {
    case "gpt2": {
      const name = file.string("tokenizer.ggml.pre") ?? "default";
      const pre = preTokenizerNamed(name);
      if (pre === undefined || name === "gemma4") {
        throw file.error(
          `expected tokenizer.ggml.pre to be a known pre-tokenizer, got ${quote(name)}` +
            `${didYouMean(name, preTokenizerNames)}; known: ${preTokenizerNames.join(", ")}`,
        );
      }
      const byteLevel = !preTokenizerOverCharacters.includes(name);
      const encoder = new BpeEncoder({
        vocabulary,
        merges: await file.strings("tokenizer.ggml.merges"),
        file: source.name,
        byteLevel,
        byteFallback: !byteLevel,
        fallbackLast: !byteLevel,
        ignoreMerges: pre.ignoreMerges,
        unknownToken,
      });
      return assembleTokenizer({
        ...shared,
        ...around(pre.addBos, false),
        kind: "gguf-gpt2",
        encodeText: (text, _start, out) =>
          splitWords(byteLevel ? text : text.replaceAll(" ", spaceSymbol), pre.steps, (word) =>
            encoder.encodeWord(word, out),
          ),
        tokenBytes: (id) => {
          if (!byteLevel || classes[id] === "byte") return pieceBytes(id);
          return (verbatim(id) ? undefined : byteLevelBytes(texts[id]!)) ?? utf8Bytes(texts[id]!);
        },
        leadingSpace: "keep",
        restartsAfter: () => false,
        invalidBytes: byteLevel ? "one-a-part" : "one-a-byte",
      });
    }
    case "gemma4": {
      const encoder = new BpeEncoder({
        vocabulary,
        merges: await file.strings("tokenizer.ggml.merges"),
        file: source.name,
        byteLevel: false,
        byteFallback: true,
        fallbackLast: true,
      });
      const { steps } = preTokenizerNamed("gemma4")!;
      const around4 = around(true, false);
      // Files that say false were converted wrongly; llama.cpp adds BOS to all of this kind.
      const prefix = bosToken === null ? around4.prefix : [bosToken];
      return assembleTokenizer({
        ...shared,
        ...around4,
        prefix,
        kind: "gguf-gemma4",
        encodeText: (text, _start, out) =>
          splitWords(text.replaceAll(" ", spaceSymbol), steps, (word) => {
            // A run of line feeds is a token of its own where there is one.
            const whole = word.startsWith("\n") ? vocabulary.id(word) : undefined;
            if (whole === undefined) encoder.encodeWord(word, out);
            else out.push(whole);
          }),
        tokenBytes: pieceBytes,
        leadingSpace: "keep",
        restartsAfter: () => false,
        invalidBytes: "one-a-byte",
      });
    }
    case "llama": {
      const prefixSpace = file.boolean("tokenizer.ggml.add_space_prefix") ?? true;
      const encoder = new ScoreBpeEncoder({
        vocabulary,
        scores: file.expectScores(scores),
        mergeable: (id) => !verbatim(id) && classes[id] !== "byte",
        space: spaceSymbol,
        byteTokens: vocabulary.byteTokens(),
        unknownToken,
      });
      const escaped = (text: string): string => text.replaceAll(" ", spaceSymbol);
      const common = {
        ...shared,
        ...around(true, false),
        kind: "gguf-llama",
        tokenBytes: pieceBytes,
        restartsAfter: verbatim,
        invalidBytes: "one-a-byte",
      } as const;
      if (prefixSpace) {
        return assembleTokenizer({
          ...common,
          encodeText: (text, _start, out) => encoder.encode(spaceSymbol + escaped(text), out),
          leadingSpace: "one",
        });
      }
      // Without a dummy space user-defined symbols are found where sentencepiece finds them, in normalised text; llama.cpp
      // looks in the text before, which differs where it holds "▁" itself.
      const symbols = new AddedTokens(userDefined.map((one) => ({ ...one, text: escaped(one.text) })));
      return assembleTokenizer({
        ...common,
        addedTokens: new AddedTokens(special),
        encodeText: (text, _start, out) =>
          symbols.split(
            escaped(text),
            true,
            (part) => encoder.encode(part, out),
            (one) => out.push(one.id),
          ),
        leadingSpace: "keep",
      });
    }
    case "t5": {
      if (unknownToken === null) throw file.error("expected tokenizer.ggml.unknown_token_id, got none");
      const addDummyPrefix = file.boolean("tokenizer.ggml.add_space_prefix") ?? false;
      const removeExtraWhitespaces = file.boolean("tokenizer.ggml.remove_extra_whitespaces") ?? false;
      const normalize = sentencePieceNormalizer({
        file: source.name,
        precompiledCharsmap: await file.bytes("tokenizer.ggml.precompiled_charsmap"),
        addDummyPrefix,
        removeExtraWhitespaces,
        escapeWhitespaces: true,
        treatWhitespaceAsSuffix: false,
        userDefined: texts.filter((_, id) => classes[id] === "user-defined"),
      });
      const bytes = vocabulary.byteTokens();
      const encoder = new UnigramEncoder({
        vocabulary,
        scores: file.expectScores(scores),
        usable: (id) => classes[id] === "normal" || classes[id] === "user-defined",
        counted: (id) => classes[id] === "normal",
        always: (id) => classes[id] === "user-defined",
        space: spaceSymbol,
        byteTokens: bytes.includes(-1) ? null : bytes,
        unknownToken,
      });
      return assembleTokenizer({
        ...shared,
        ...around(false, true),
        kind: "gguf-t5",
        encodeText: (text, _start, out) => encoder.encode(normalize(text), out),
        tokenBytes: pieceBytes,
        leadingSpace: removeExtraWhitespaces ? "one-a-token" : addDummyPrefix ? "one" : "keep",
        restartsAfter: verbatim,
        invalidBytes: "one-a-byte",
      });
    }
  }
}

/** gpt2 vocabularies whose pieces are characters and not bytes. */
const preTokenizerOverCharacters = ["granite-embed-multi-311m", "sarvam-moe"];

async function readVocabulary(
  file: Metadata,
  model: Model,
): Promise<{ vocabulary: Vocabulary; scores: Float64Array | null }> {
  const texts = [...(await file.strings("tokenizer.ggml.tokens"))];
  expectVocabularySize(file.name, texts.length);
  for (let id = 0; id < texts.length; id++) if (texts[id] === "") texts[id] = `[EMPTY_${id}]`;
  const scores = await file.numbers("tokenizer.ggml.scores", ["f32", "i32"]);
  const types = await file.numbers("tokenizer.ggml.token_type", ["i32", "u32"]);
  for (const [what, values] of [
    ["scores", scores],
    ["token_type", types],
  ] as const) {
    if (values !== null && values.length !== texts.length) {
      throw file.error(`expected tokenizer.ggml.${what} for ${texts.length} tokens, got ${values.length}`);
    }
  }
  const classes = texts.map((text, id): TokenClass => {
    if (types === null) return model !== "gpt2" && byteOfToken(text) !== undefined ? "byte" : "normal";
    const known = types[id] === 0 ? "normal" : tokenClasses[types[id]!];
    if (known !== undefined) return known;
    throw file.error(`expected the type of token ${id} to be 0 to ${tokenClasses.length - 1}, got ${types[id]}`);
  });
  return { vocabulary: new Vocabulary(texts, classes), scores };
}

/** Metadata by key, of the type that it must have. */
class Metadata {
  readonly #source: ByteSource;
  readonly #header: GgufHeader;

  constructor(source: ByteSource, header: GgufHeader) {
    this.#source = source;
    this.#header = header;
  }

  get name(): string {
    return this.#source.name;
  }

  error(complaint: string, offset: number | null = null): FormatError {
    return new FormatError(this.#source.name, complaint, offset);
  }

  #value(key: string, types: readonly string[]): GgufValue["value"] | undefined {
    const entry = this.#header.metadata.get(key);
    if (entry !== undefined && !types.includes(entry.type)) {
      throw this.error(`expected ${key} to be ${types.join(" or ")}, got ${entry.type}`);
    }
    return entry?.value;
  }

  string(key: string): string | undefined {
    return this.#value(key, ["string"]) as string | undefined;
  }

  boolean(key: string): boolean | undefined {
    return this.#value(key, ["bool"]) as boolean | undefined;
  }

  integer(key: string): number | undefined {
    const value = this.#value(key, ["u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64"]);
    return value === undefined ? undefined : Number(value);
  }

  /** An array's own bytes; its length was compared with the file when the header was read. */
  async #array(key: string, elements: readonly string[]): Promise<{ array: GgufArray; bytes: Uint8Array } | null> {
    const array = this.#value(key, ["array"]) as GgufArray | undefined;
    if (array === undefined) return null;
    if (!elements.includes(array.elementType)) {
      throw this.error(`expected ${key} to be an array of ${elements.join(" or ")}, got one of ${array.elementType}`);
    }
    return { array, bytes: await this.#source.read(array.offset, array.byteLength) };
  }

  async strings(key: string): Promise<readonly string[]> {
    const found = await this.#array(key, ["string"]);
    if (found === null) throw this.error(`expected the key ${key}, got none`);
    const { array, bytes } = found;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const width = this.#header.version === 1 ? 4 : 8;
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    const out = new Array<string>(array.count);
    for (let i = 0, at = 0; i < array.count; i++) {
      // The high half of a 64-bit length is zero: the array fits in the file.
      const length = view.getUint32(at, true);
      const start = at + width;
      try {
        out[i] = decoder.decode(bytes.subarray(start, start + length));
      } catch {
        throw this.error(`expected element ${i} of ${key} to be valid UTF-8`, array.offset + start);
      }
      at = start + length;
    }
    return out;
  }

  async numbers(key: string, elements: readonly ("f32" | "i32" | "u32")[]): Promise<Float64Array | null> {
    const found = await this.#array(key, elements);
    if (found === null) return null;
    const { array, bytes } = found;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const read = { f32: "getFloat32", i32: "getInt32", u32: "getUint32" } as const;
    const method = read[array.elementType as "f32" | "i32" | "u32"];
    return Float64Array.from({ length: array.count }, (_, i) => {
      const value = view[method](4 * i, true);
      if (!Number.isFinite(value)) throw this.error(`expected finite ${key}, got ${value}`, array.offset + 4 * i);
      return value;
    });
  }

  async bytes(key: string): Promise<Uint8Array> {
    return (await this.#array(key, ["i8", "u8"]))?.bytes ?? new Uint8Array(0);
  }

  expectScores(scores: Float64Array | null): Float64Array {
    if (scores === null) throw this.error("expected the key tokenizer.ggml.scores, got none");
    return scores;
  }
}
