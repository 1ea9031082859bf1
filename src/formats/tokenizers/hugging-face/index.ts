// tokenizer.json, the format of Hugging Face's fast tokenizers, id for id as huggingface/tokenizers reads it.
// @huggingface/tokenizers translates the regular expressions (Oniguruma to JavaScript) and is loaded on demand; its
// pipeline is not run, because it approximates the precompiled normaliser, splits with JavaScript's \s, knows two of
// five split behaviours, drops single_word, fuse_unk and continuing_subword_prefix, and holds a whole book as one lattice
// of strings (its Unigram fails on a megabyte). Merging and segmenting are this folder's.

import { isJsonObject, type JsonObject, type JsonValue } from "../../bytes/json.ts";
import { type AddedToken, AddedTokens } from "../added-tokens.ts";
import { assembleTokenizer } from "../assembled.ts";
import { BpeEncoder } from "../bpe.ts";
import { endTokensOf } from "../end-tokens.ts";
import { spaceSymbol } from "../sentencepiece/normalizer.ts";
import type { Tokenizer } from "../tokenizer.ts";
import { UnigramEncoder } from "../unigram.ts";
import {
  byteOfToken,
  expectToken,
  expectVocabularySize,
  maxVocabulary,
  type TokenClass,
  Vocabulary,
} from "../vocabulary.ts";
import { cutAtSpaces, spaceBridges } from "../word-breaks.ts";
import { createDecoding } from "./decoders.ts";
import { createNormalizer } from "./normalizers.ts";
import { createPreTokenizer } from "./pre-tokenizers.ts";
import { Complaints } from "./settings.ts";

export interface HuggingFaceTokenizerOptions {
  /** What messages call the file. */
  readonly name?: string;
  /** tokenizer_config.json beside it: names the BOS, EOS, unknown and padding tokens. */
  readonly config?: JsonValue;
}

/**
 * A tokenizer from a parsed `tokenizer.json`. What is put around a text, the file's post-processor says
 * (tokenizer_config.json's add_bos_token does not count beside a tokenizer.json, as in transformers 5).
 *
 * @throws FormatError for a model other than BPE and Unigram, and for any part of a kind that is not known
 */
export async function huggingFaceTokenizer(
  json: JsonValue,
  options: HuggingFaceTokenizerOptions = {},
): Promise<Tokenizer> {
  const file = new Complaints(options.name ?? "tokenizer.json");
  if (!isJsonObject(json)) throw file.expected("the document", "an object", json);
  const hf = await import("@huggingface/tokenizers");
  const model = json.model;
  if (!isJsonObject(model)) throw file.expected("model", "an object", model);
  const kind = modelKind(model, file);
  const added = readAddedTokens(json.added_tokens, file);
  const { vocabulary, scores } = readVocabulary(model, kind, added, file);
  const { classes, texts } = vocabulary;
  const isAdded = new Set(added.map((token) => token.id));

  let normalize = null;
  let preTokenization = null;
  let decoding = null;
  try {
    normalize = createNormalizer(json.normalizer, hf, file);
    preTokenization = createPreTokenizer(json.pre_tokenizer, hf, file);
    decoding = createDecoding(json.decoder, hf, file);
  } catch (error) {
    // An expression that cannot be said in JavaScript.
    if (error instanceof SyntaxError)
      throw file.expected("every pattern", "a regular expression that can be translated", error.message);
    throw error;
  }
  const { cut, byteLevel } = preTokenization;
  const tokenNamed = (name: JsonValue | undefined): number | null => {
    const text = isJsonObject(name) ? name.content : name;
    return typeof text === "string" ? (vocabulary.id(text) ?? null) : null;
  };

  const encodeWord = kind === "BPE" ? bpe() : unigram();
  const normalized = added
    .filter((token) => token.normalized)
    .map((token) => ({ ...token, text: normalize === null ? token.text : normalize(token.text) }));
  const normalizedTokens = new AddedTokens(normalized);
  // Decoding writes them as they are found.
  const normalizedTexts = new Map(normalized.map((token) => [token.id, token.text]));
  const { prefix, suffix } = around(json.post_processor, tokenNamed, file);
  for (const id of [...prefix, ...suffix]) expectToken(file.name, "a token of post_processor", id, vocabulary.size);
  const config = isJsonObject(options.config) ? options.config : ({} as JsonObject);
  const controlNamed = (...names: string[]): number | null =>
    names.map((name) => vocabulary.id(name)).find((id) => id !== undefined && classes[id] === "control") ?? null;
  const bosToken =
    tokenNamed(config.bos_token) ?? prefix[0] ?? controlNamed("<s>", "<bos>", "<|begin_of_text|>", "<|startoftext|>");
  const eosToken =
    tokenNamed(config.eos_token) ??
    suffix.at(-1) ??
    controlNamed("</s>", "<eos>", "<|end_of_text|>", "<|endoftext|>", "<|im_end|>");

  return assembleTokenizer({
    kind: "hugging-face",
    vocabulary,
    bosToken,
    eosToken,
    unknownToken: kind === "BPE" ? tokenNamed(model.unk_token) : unknownId(),
    padToken: tokenNamed(config.pad_token) ?? controlNamed("<pad>", "[PAD]", "<|padding|>"),
    endTokens: endTokensOf(vocabulary, [eosToken]),
    prefix,
    suffix,
    addedTokens: new AddedTokens(added.filter((token) => !token.normalized)),
    encodeText: (text, start, out, parseSpecial) => {
      normalizedTokens.split(
        normalize === null ? text : normalize(text),
        parseSpecial,
        (part, partStart) => {
          const first = start === 0 && partStart === 0;
          if (cut === null) encodeWord(part, out);
          else cut(part, first, (word) => encodeWord(word, out));
        },
        (token) => out.push(token.id),
      );
    },
    isSpecial: (id) => classes[id] === "control",
    tokenBytes: (id) => decoding.tokenBytes(normalizedTexts.get(id) ?? texts[id]!, isAdded.has(id)),
    leadingSpace: decoding.leadingSpace,
    restartsAfter: () => false,
    invalidBytes: decoding.invalidBytes,
  });

  function bpe(): (word: string, out: number[]) => void {
    const settings = model as JsonObject;
    const text = (key: string): string => {
      const value = settings[key] ?? "";
      if (typeof value !== "string") throw file.expected(`model.${key}`, "a string", value);
      return value;
    };
    const merges = file.array(settings, "merges", "model.merges");
    for (const [rank, merge] of merges.entries()) {
      const fits = Array.isArray(merge)
        ? merge.length === 2 && typeof merge[0] === "string" && typeof merge[1] === "string"
        : typeof merge === "string";
      if (!fits) throw file.expected(`model.merges[${rank}]`, "two parts", merge);
    }
    const ignoreMerges = file.flag(settings, "ignore_merges", "model.ignore_merges");
    const unknownToken = tokenNamed(settings.unk_token);
    const fuseUnknown = file.flag(settings, "fuse_unk", "model.fuse_unk");
    const encoder = new BpeEncoder({
      vocabulary,
      merges: merges as readonly (string | readonly [string, string])[],
      file: file.name,
      byteLevel,
      ignoreMerges,
      unknownToken,
      fuseUnknown,
      byteFallback: file.flag(settings, "byte_fallback", "model.byte_fallback"),
      continuingPrefix: text("continuing_subword_prefix"),
      endOfWord: text("end_of_word_suffix"),
    });
    const whole = (word: string, out: number[]): void => encoder.encodeWord(word, out);
    // A pre-tokenizer that cuts words makes them short; without one, a book is one word.
    if (byteLevel || ignoreMerges || text("continuing_subword_prefix") !== "" || text("end_of_word_suffix") !== "") {
      return whole;
    }
    const bridges = spaceBridges(texts, spaceSymbol);
    return (word, out) =>
      cutAtSpaces(word, spaceSymbol, bridges, (part) => {
        const before = out.length;
        const joins = fuseUnknown && before > 0 && out[before - 1] === unknownToken;
        encoder.encodeWord(part, out);
        if (joins && out[before] === unknownToken) out.splice(before, 1);
      });
  }

  function unknownId(): number | null {
    const id = (model as JsonObject).unk_id ?? null;
    if (id === null) return null;
    if (typeof id !== "number" || !Number.isInteger(id) || id < 0 || id >= vocabulary.size) {
      throw file.expected("model.unk_id", `a token id from 0 to ${vocabulary.size - 1}`, id);
    }
    return id;
  }

  function unigram(): (word: string, out: number[]) => void {
    const unknownToken = unknownId();
    if (unknownToken === null) throw file.expected("model.unk_id", "a token id", null);
    const inModel = scores.length;
    const fallback = file.flag(model as JsonObject, "byte_fallback", "model.byte_fallback");
    const encoder = new UnigramEncoder({
      vocabulary,
      scores,
      usable: (id) => id < inModel,
      counted: (id) => id < inModel,
      always: () => false,
      space: spaceSymbol,
      byteTokens: fallback ? vocabulary.byteTokens() : null,
      unknownToken,
    });
    return (word, out) => encoder.encode(word, out);
  }
}

type ModelKind = "BPE" | "Unigram";

function modelKind(model: JsonObject, file: Complaints): ModelKind {
  // Old files leave the type out.
  const type = model.type ?? (Array.isArray(model.vocab) ? "Unigram" : model.merges === undefined ? null : "BPE");
  if (type === "BPE" || type === "Unigram") return type;
  if (typeof type !== "string") throw file.expected("model.type", "BPE or Unigram", type);
  throw file.unsupported("model.type", type, ["BPE", "Unigram"]);
}

interface JsonAddedToken extends AddedToken {
  /** Found in the text after normalising it. */
  readonly normalized: boolean;
}

function readAddedTokens(list: JsonValue | undefined, file: Complaints): JsonAddedToken[] {
  if (list === undefined || list === null) return [];
  if (!Array.isArray(list)) throw file.expected("added_tokens", "an array", list);
  return list.map((entry: JsonValue, i): JsonAddedToken => {
    const where = `added_tokens[${i}]`;
    if (!isJsonObject(entry)) throw file.expected(where, "an object", entry);
    const { id } = entry;
    if (typeof id !== "number" || !Number.isInteger(id) || id < 0 || id >= maxVocabulary) {
      throw file.expected(`${where}.id`, `an integer from 0 to ${maxVocabulary - 1}`, id);
    }
    const special = file.flag(entry, "special", `${where}.special`);
    return {
      id,
      text: file.string(entry, "content", `${where}.content`),
      special,
      stripLeft: file.flag(entry, "lstrip", `${where}.lstrip`),
      stripRight: file.flag(entry, "rstrip", `${where}.rstrip`),
      singleWord: file.flag(entry, "single_word", `${where}.single_word`),
      normalized: entry.normalized === undefined ? !special : file.flag(entry, "normalized", `${where}.normalized`),
    };
  });
}

function readVocabulary(
  model: JsonObject,
  kind: ModelKind,
  added: readonly JsonAddedToken[],
  file: Complaints,
): { vocabulary: Vocabulary; scores: number[] } {
  const texts: string[] = [];
  const scores: number[] = [];
  const { vocab } = model;
  if (kind === "Unigram") {
    if (!Array.isArray(vocab)) throw file.expected("model.vocab", "an array of pairs", vocab);
    for (const [id, entry] of (vocab as readonly JsonValue[]).entries()) {
      const pair: readonly JsonValue[] = Array.isArray(entry) ? entry : [];
      const [text, score] = pair;
      if (typeof text !== "string" || typeof score !== "number" || pair.length !== 2) {
        throw file.expected(`model.vocab[${id}]`, "a text and its score", entry);
      }
      texts.push(text);
      scores.push(score);
    }
  } else {
    if (!isJsonObject(vocab as JsonValue)) throw file.expected("model.vocab", "an object", vocab);
    for (const [text, id] of Object.entries(vocab as JsonObject)) {
      if (typeof id !== "number" || !Number.isInteger(id) || id < 0 || id >= maxVocabulary) {
        throw file.expected(`model.vocab[${JSON.stringify(text)}]`, `an id from 0 to ${maxVocabulary - 1}`, id);
      }
      if (texts[id] !== undefined) {
        throw file.expected(
          `model.vocab[${JSON.stringify(text)}]`,
          `an id of its own, not that of ${JSON.stringify(texts[id])}`,
          id,
        );
      }
      texts[id] = text;
    }
  }
  const byteFallback = model.byte_fallback === true;
  const classes = texts.map(
    (text): TokenClass => (byteFallback && byteOfToken(text) !== undefined ? "byte" : "normal"),
  );
  for (const token of added) {
    texts[token.id] = token.text;
    classes[token.id] = token.special ? "control" : "user-defined";
  }
  expectVocabularySize(file.name, texts.length);
  // Ids that nothing uses.
  for (let id = 0; id < texts.length; id++) {
    texts[id] ??= "";
    classes[id] ??= "unused";
  }
  return { vocabulary: new Vocabulary(texts, classes), scores };
}

/** The ids that a post-processor puts before and behind one text. */
function around(
  config: JsonValue | undefined,
  tokenNamed: (name: JsonValue | undefined) => number | null,
  file: Complaints,
): { prefix: number[]; suffix: number[] } {
  const prefix: number[] = [];
  const suffix: number[] = [];
  if (config === undefined || config === null) return { prefix, suffix };
  if (!isJsonObject(config)) throw file.expected("post_processor", "an object", config);
  const type = file.string(config, "type", "post_processor.type");
  switch (type) {
    case "ByteLevel":
      break;
    case "Sequence":
      for (const part of file.array(config, "processors", "post_processor.processors")) {
        const inner = around(part, tokenNamed, file);
        prefix.unshift(...inner.prefix);
        suffix.push(...inner.suffix);
      }
      break;
    case "BertProcessing":
    case "RobertaProcessing":
      for (const [key, into] of [
        ["cls", prefix],
        ["sep", suffix],
      ] as const) {
        const id = tokenNamed(file.array(config, key, `post_processor.${key}`)[0]);
        if (id === null) throw file.expected(`post_processor.${key}`, "a token of the vocabulary", config[key]);
        into.push(id);
      }
      break;
    case "TemplateProcessing": {
      let into = prefix;
      for (const item of file.array(config, "single", "post_processor.single")) {
        if (isJsonObject(item) && isJsonObject(item.Sequence)) {
          into = suffix;
          continue;
        }
        const name = isJsonObject(item) && isJsonObject(item.SpecialToken) ? item.SpecialToken.id : undefined;
        const tokens = isJsonObject(config.special_tokens) ? config.special_tokens[String(name)] : undefined;
        const ids = isJsonObject(tokens) ? tokens.ids : undefined;
        if (!Array.isArray(ids) || !ids.every((id) => typeof id === "number" && Number.isInteger(id) && id >= 0)) {
          throw file.expected("post_processor.single", "sequences and special tokens with their ids", item);
        }
        into.push(...(ids as number[]));
      }
      break;
    }
    default:
      throw file.unsupported("post_processor.type", type, [
        ...["ByteLevel", "Sequence", "TemplateProcessing", "BertProcessing", "RobertaProcessing"],
      ]);
  }
  return { prefix, suffix };
}
