// The normalisers of tokenizer.json, after huggingface/tokenizers' own (Rust) behaviour, which @huggingface/tokenizers
// approximates in places: the precompiled table is applied as it stands, characters are lowered one by one, white space
// is Unicode's. Regular expressions are Oniguruma's; the package translates them.

import { isJsonObject, type JsonObject, type JsonValue } from "../../bytes/json.ts";
import { byteLevelText } from "../byte-level.ts";
import { Charsmap } from "../charsmap.ts";
import { utf8Bytes } from "../utf8.ts";
import type { Complaints, HuggingFacePackage } from "./settings.ts";

export type Normalizer = (text: string) => string;

/** The function that a `normalizer` describes; null for none. */
export function createNormalizer(
  config: JsonValue | undefined,
  hf: HuggingFacePackage,
  file: Complaints,
): Normalizer | null {
  if (config === undefined || config === null) return null;
  if (!isJsonObject(config)) throw file.expected("normalizer", "an object", config);
  const type = file.string(config, "type", "normalizer.type");
  switch (type) {
    case "Sequence": {
      const parts = file.array(config, "normalizers", "normalizer.normalizers");
      const steps = parts.map((part) => createNormalizer(part, hf, file)).filter((step) => step !== null);
      return (text) => steps.reduce((before, step) => step(before), text);
    }
    case "NFC":
    case "NFD":
    case "NFKC":
    case "NFKD":
      return (text) => text.normalize(type);
    case "Precompiled":
      return precompiled(config, file);
    case "Replace": {
      const { pattern } = new hf.ReplaceNormalizer(file.plain(config)) as unknown as { pattern: RegExp | null };
      if (pattern === null) throw file.expected("normalizer.pattern", "a String or a Regex", config.pattern);
      const content = file.string(config, "content", "normalizer.content");
      return (text) => text.replace(pattern, () => content);
    }
    case "Prepend": {
      const prepend = file.string(config, "prepend", "normalizer.prepend");
      return (text) => (text === "" ? text : prepend + text);
    }
    case "Lowercase":
      // One character at a time: a sigma at the end of a word stays a plain small sigma.
      return (text) => text.replaceAll("Σ", "σ").toLowerCase();
    case "Strip": {
      const left = config.strip_left !== false;
      const right = config.strip_right !== false;
      return (text) => {
        const start = left ? text.replace(/^\p{White_Space}+/u, "") : text;
        let end = start.length;
        while (right && end > 0 && /\p{White_Space}/u.test(start[end - 1]!)) end--;
        return start.slice(0, end);
      };
    }
    case "StripAccents":
      return (text) => text.replace(/\p{M}/gu, "");
    case "ByteLevel":
      return (text) => byteLevelText(utf8Bytes(text));
    default:
      throw file.unsupported("normalizer.type", type, known);
  }
}

const known = [
  ...["Sequence", "NFC", "NFD", "NFKC", "NFKD", "Precompiled", "Replace", "Prepend", "Lowercase", "Strip"],
  ...["StripAccents", "ByteLevel"],
];

/**
 * SentencePiece's table as the spm_precompiled crate applies it: to whole grapheme clusters below six bytes (the rule
 * for the shortest prefix, which then stands for all of the cluster), otherwise to each character.
 */
function precompiled(config: JsonObject, file: Complaints): Normalizer {
  const text64 = file.string(config, "precompiled_charsmap", "normalizer.precompiled_charsmap");
  let blob: Uint8Array;
  try {
    blob = Uint8Array.from(atob(text64), (character) => character.charCodeAt(0));
  } catch {
    throw file.expected("normalizer.precompiled_charsmap", "base64", text64);
  }
  const charsmap = new Charsmap(blob, file.name);
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const transform = (part: string): string | null => {
    const bytes = utf8Bytes(part);
    return charsmap.match(bytes, 0, bytes.length, true) ? decoder.decode(charsmap.replacement) : null;
  };
  const remembered = new Map<string, string>();
  const cluster = (part: string): string => {
    let out = remembered.get(part);
    if (out === undefined) {
      const whole = utf8Bytes(part).length < 6 ? transform(part) : null;
      out = whole ?? [...part].map((character) => transform(character) ?? character).join("");
      if (remembered.size >= 16_384) remembered.clear();
      remembered.set(part, out);
    }
    return out;
  };
  const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });
  // In short stretches: V8 copies the whole text at every step. The last cluster of a stretch may go on behind it.
  const clusters = (part: string, onCluster: (one: string) => void): void => {
    let size = 256;
    for (let start = 0; start < part.length; ) {
      const unit = part.charCodeAt(start + size - 1);
      const stretch = part.slice(start, start + (unit >= 0xd800 && unit < 0xdc00 ? size + 1 : size));
      const last = start + stretch.length === part.length;
      let before = "";
      for (const { segment } of segmenter.segment(stretch)) {
        if (before !== "") onCluster(before);
        start += before.length;
        before = segment;
      }
      if (last) {
        onCluster(before);
        return;
      }
      // One cluster as long as the stretch: look further.
      size = before.length === stretch.length ? 2 * size : 256;
    }
  };
  const ascii = (part: string): string => part.replace(/\r\n|[\s\S]/g, cluster);
  // Between two ASCII characters there is always a boundary, except inside CR LF; the rest is left to the segmenter.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the whole of ASCII is meant
  const islands = /[\x00-\x7f]?[^\x00-\x7f]+(?:[\x20-\x7e][^\x00-\x7f]+)*[\x20-\x7e]?/g;
  return (text) => {
    const parts: string[] = [];
    let done = 0;
    for (const match of text.matchAll(islands)) {
      parts.push(ascii(text.slice(done, match.index)));
      clusters(match[0], (one) => parts.push(cluster(one)));
      done = match.index + match[0].length;
    }
    parts.push(ascii(text.slice(done)));
    return parts.join("");
  };
}
