// The pre-tokenizers of tokenizer.json: how a normalised text is cut into words, after huggingface/tokenizers' own
// (Rust) behaviour. Regular expressions are Oniguruma's; @huggingface/tokenizers translates them.

import { isJsonObject, type JsonObject, type JsonValue } from "../../bytes/json.ts";
import { byteLevelText } from "../byte-level.ts";
import { preTokenizerNamed } from "../pre-tokenizers.ts";
import { splitByPattern } from "../split.ts";
import { utf8Bytes } from "../utf8.ts";
import type { Complaints, HuggingFacePackage } from "./settings.ts";

/** Hands on the words of a piece; `first` when it stands at the very start of the text. */
export type PreTokenizer = (piece: string, first: boolean, emit: (word: string, first: boolean) => void) => void;

export interface PreTokenization {
  readonly cut: PreTokenizer | null;
  /** Words are still text and are to be read as bytes: the last step was ByteLevel. */
  readonly byteLevel: boolean;
}

const wordCharacters = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}";
const space = "\\p{White_Space}";

/** The function that a `pre_tokenizer` describes. */
export function createPreTokenizer(
  config: JsonValue | undefined,
  hf: HuggingFacePackage,
  file: Complaints,
): PreTokenization {
  const steps = flatten(config ?? null, file);
  if (steps.length === 0) return { cut: null, byteLevel: false };
  const byteLevel =
    steps.at(-1)!.type === "ByteLevel" && steps.filter((step) => step.type === "ByteLevel").length === 1;
  const cuts = steps.map((step, i) => createStep(step, hf, file, byteLevel && i === steps.length - 1));
  const run = (at: number, piece: string, first: boolean, emit: (word: string, first: boolean) => void): void => {
    if (piece === "") return;
    if (at === cuts.length) emit(piece, first);
    else cuts[at]!(piece, first, (part, partFirst) => run(at + 1, part, partFirst, emit));
  };
  return { cut: (piece, first, emit) => run(0, piece, first, emit), byteLevel };
}

function flatten(config: JsonValue, file: Complaints): JsonObject[] {
  if (config === null) return [];
  if (!isJsonObject(config)) throw file.expected("pre_tokenizer", "an object", config);
  if (config.type !== "Sequence") return [config];
  return file.array(config, "pretokenizers", "pre_tokenizer.pretokenizers").flatMap((part) => flatten(part, file));
}

const known = [
  ...["Sequence", "ByteLevel", "Split", "Digits", "Punctuation", "Whitespace", "WhitespaceSplit", "Metaspace"],
  ...["BertPreTokenizer", "CharDelimiterSplit", "FixedLength"],
];

function createStep(config: JsonObject, hf: HuggingFacePackage, file: Complaints, keepText: boolean): PreTokenizer {
  const type = file.string(config, "type", "pre_tokenizer.type");
  switch (type) {
    case "ByteLevel": {
      const [gpt2] = preTokenizerNamed("gpt-2")!.steps as readonly [RegExp];
      const addPrefixSpace = config.add_prefix_space === true;
      const useRegex = config.use_regex !== false;
      const write = keepText ? (word: string) => word : (word: string) => byteLevelText(utf8Bytes(word));
      return (piece, first, emit) => {
        const text = addPrefixSpace && !piece.startsWith(" ") ? ` ${piece}` : piece;
        if (!useRegex) emit(write(text), first);
        else split(text, gpt2, "Isolated", false, (word, wordFirst) => emit(write(word), first && wordFirst));
      };
    }
    case "Split": {
      const behavior = behaviorOf(config, file);
      const { pattern } = new hf.SplitPreTokenizer(file.plain({ ...config, invert: false })) as unknown as {
        pattern: RegExp | null;
      };
      if (pattern === null) throw file.expected("pre_tokenizer.pattern", "a String or a Regex", config.pattern);
      const invert = config.invert === true;
      return (piece, first, emit) => split(piece, pattern, behavior, invert, (word, at) => emit(word, first && at));
    }
    case "Digits":
      return byPattern(config.individual_digits === true ? /\p{N}/gu : /\p{N}+/gu, "Isolated");
    case "Punctuation":
      return byPattern(/[!-/:-@[-`{-~\p{P}]/gu, config.behavior === undefined ? "Isolated" : behaviorOf(config, file));
    case "Whitespace":
      return byPattern(new RegExp(`[${wordCharacters}]+|[^${wordCharacters}${space}]+`, "gu"), "Removed", true);
    case "WhitespaceSplit":
      return byPattern(/\p{White_Space}/gu, "Removed");
    case "BertPreTokenizer": {
      const words = byPattern(/\p{White_Space}/gu, "Removed");
      const marks = byPattern(/[!-/:-@[-`{-~\p{P}]/gu, "Isolated");
      return (piece, first, emit) => words(piece, first, (word, wordFirst) => marks(word, wordFirst, emit));
    }
    case "CharDelimiterSplit": {
      const delimiter = file.string(config, "delimiter", "pre_tokenizer.delimiter");
      return byPattern(literal(delimiter), "Removed");
    }
    case "FixedLength": {
      const { length } = config;
      if (typeof length !== "number" || !Number.isInteger(length) || length < 1) {
        throw file.expected("pre_tokenizer.length", "an integer of at least 1", length);
      }
      return byPattern(new RegExp(`[\\s\\S]{1,${length}}`, "gu"), "Isolated");
    }
    case "Metaspace": {
      const replacement = config.replacement ?? "\u2581";
      // Files from before prepend_scheme say add_prefix_space.
      const scheme = config.prepend_scheme ?? (config.add_prefix_space === false ? "never" : "always");
      if (typeof replacement !== "string" || replacement === "") {
        throw file.expected("pre_tokenizer.replacement", "a character", replacement);
      }
      if (scheme !== "always" && scheme !== "first" && scheme !== "never") {
        throw file.expected("pre_tokenizer.prepend_scheme", "always, first or never", scheme);
      }
      const cuts = config.split !== false;
      const pattern = literal(replacement);
      return (piece, first, emit) => {
        let text = piece.replaceAll(" ", replacement);
        if (!text.startsWith(replacement) && (scheme === "always" || (scheme === "first" && first))) {
          text = replacement + text;
        }
        if (!cuts) emit(text, first);
        else split(text, pattern, "MergedWithNext", false, (word, at) => emit(word, first && at));
      };
    }
    default:
      throw file.unsupported("pre_tokenizer.type", type, known);
  }
}

function literal(text: string): RegExp {
  return new RegExp(text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), "gu");
}

const behaviors = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"] as const;
type Behavior = (typeof behaviors)[number];

function behaviorOf(config: JsonObject, file: Complaints): Behavior {
  const written = file.string(config, "behavior", "pre_tokenizer.behavior");
  const found = behaviors.find((one) => one.toLowerCase() === written.toLowerCase());
  if (found === undefined) throw file.unsupported("pre_tokenizer.behavior", written, behaviors);
  return found;
}

function byPattern(pattern: RegExp, behavior: Behavior, invert = false): PreTokenizer {
  return (piece, first, emit) => split(piece, pattern, behavior, invert, (word, at) => emit(word, first && at));
}

/** Cuts by a pattern; what becomes of the matches, `behavior` says. `invert` takes what lies between as the matches. */
function split(
  text: string,
  pattern: RegExp,
  behavior: Behavior,
  invert: boolean,
  emit: (word: string, first: boolean) => void,
): void {
  if (behavior === "Isolated") {
    let first = true;
    splitByPattern(text, pattern, (piece) => {
      emit(piece, first);
      first = false;
    });
    return;
  }
  if (behavior === "Removed") {
    let at = 0;
    splitByPattern(text, pattern, (piece, matched) => {
      if (matched === invert) emit(piece, at === 0);
      at += piece.length;
    });
    return;
  }
  // The others join neighbours; `held` is what may still grow.
  let held = "";
  let heldMatched = false;
  let first = true;
  const flush = (): void => {
    if (held === "") return;
    emit(held, first);
    first = false;
    held = "";
  };
  splitByPattern(text, pattern, (piece, found) => {
    const matched = found !== invert;
    const joins =
      behavior === "Contiguous"
        ? matched === heldMatched
        : behavior === "MergedWithPrevious"
          ? matched && !heldMatched
          : heldMatched && !matched;
    if (!joins) flush();
    held += piece;
    heldMatched = matched;
  });
  flush();
}
