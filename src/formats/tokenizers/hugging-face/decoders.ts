// The decoders of tokenizer.json, as the bytes that each token adds and which leading spaces go. Those that cannot be
// said so (CTC, WordPiece) belong to models that generate no text. One thing differs on purpose: of a run of byte tokens
// that is no UTF-8 the good characters are kept, where huggingface/tokenizers gives up the run as a whole; a stream
// could not write a character before its run ends otherwise.

import { isJsonObject, type JsonObject, type JsonValue } from "../../bytes/json.ts";
import type { LeadingSpace } from "../assembled.ts";
import { byteLevelBytes } from "../byte-level.ts";
import { type InvalidBytes, utf8Bytes } from "../utf8.ts";
import { byteOfToken } from "../vocabulary.ts";
import type { Complaints, HuggingFacePackage } from "./settings.ts";

export interface Decoding {
  readonly tokenBytes: (text: string, added: boolean) => Uint8Array;
  readonly leadingSpace: LeadingSpace;
  readonly invalidBytes: InvalidBytes;
}

const known = ["ByteLevel", "Metaspace", "Sequence", "Replace", "ByteFallback", "Fuse", "Strip"];

export function createDecoding(config: JsonValue | undefined, hf: HuggingFacePackage, file: Complaints): Decoding {
  // Without a decoder tokens are joined by spaces.
  if (config === undefined || config === null) {
    return { tokenBytes: (text) => utf8Bytes(` ${text}`), leadingSpace: "one", invalidBytes: "one-a-part" };
  }
  const replacements: ((text: string) => string)[] = [];
  let byteLevel = false;
  let byteFallback = false;
  let fused = false;
  let leadingSpace: LeadingSpace = "keep";
  for (const step of flatten(config, file)) {
    const type = file.string(step, "type", "decoder.type");
    switch (type) {
      case "ByteLevel":
        byteLevel = true;
        break;
      case "ByteFallback":
        byteFallback = true;
        break;
      case "Fuse":
        fused = true;
        break;
      case "Metaspace": {
        const replacement = typeof step.replacement === "string" ? step.replacement : "\u2581";
        const scheme = step.prepend_scheme ?? (step.add_prefix_space === false ? "never" : "always");
        replacements.push((text) => text.replaceAll(replacement, " "));
        if (scheme !== "never") leadingSpace = "first-token";
        break;
      }
      case "Replace": {
        const { pattern } = new hf.ReplaceDecoder(file.plain(step)) as unknown as { pattern: RegExp | null };
        if (pattern === null || fused) throw file.expected("decoder Replace", "a pattern before Fuse", step);
        const content = file.string(step, "content", "decoder.content");
        replacements.push((text) => text.replace(pattern, () => content));
        break;
      }
      case "Strip": {
        const start = step.start ?? 0;
        const stop = step.stop ?? 0;
        if (step.content !== " " || (start !== 0 && start !== 1) || stop !== 0 || (start === 1 && !fused)) {
          throw file.expected("decoder Strip", "at most one space from the start of the fused text", step);
        }
        if (start === 1) leadingSpace = "one";
        break;
      }
      default:
        throw file.unsupported("decoder.type", type, known);
    }
  }
  return {
    tokenBytes: (text, added) => {
      if (byteLevel) return (added ? undefined : byteLevelBytes(text)) ?? utf8Bytes(text);
      const byte = byteFallback ? byteOfToken(text) : undefined;
      if (byte !== undefined) return Uint8Array.of(byte);
      return utf8Bytes(replacements.reduce((before, replace) => replace(before), text));
    },
    leadingSpace,
    invalidBytes: byteFallback ? "one-a-byte" : "one-a-part",
  };
}

function flatten(config: JsonValue, file: Complaints): JsonObject[] {
  if (!isJsonObject(config)) throw file.expected("decoder", "an object", config);
  if (config.type !== "Sequence") return [config];
  return file.array(config, "decoders", "decoder.decoders").flatMap((part) => flatten(part, file));
}
