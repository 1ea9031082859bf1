// The small tokenizers of test/fixtures/tokenizers, and GGUF files written from them as llama.cpp's converters would.

import { readFileSync } from "node:fs";
import { type GgufHeader, memorySource, readGgufHeader } from "../../src/formats/index.ts";
import { ggufTokenizer, type Tokenizer } from "../../src/formats/tokenizers/index.ts";
import { readSentencePieceModel } from "../../src/formats/tokenizers/sentencepiece/proto.ts";
import { type Entry, model, writeGguf } from "./gguf-writer.ts";

const folder = new URL("../fixtures/tokenizers/", import.meta.url).pathname;

export function fixtureBytes(file: string): Uint8Array {
  return new Uint8Array(readFileSync(folder + file));
}

// biome-ignore lint/suspicious/noExplicitAny: fixtures are plain JSON
export function fixtureJson(file: string): any {
  return JSON.parse(readFileSync(folder + file, "utf8"));
}

const array = (key: string, of: "string" | "i32" | "f32" | "u8", values: readonly (string | number)[]): Entry => [
  `tokenizer.ggml.${key}`,
  "array",
  { of, values },
];

/** Entries of a GGUF file for the vocabulary and merges of a tokenizer.json. */
export function ggufOfJson(file: string, kind: string, own: readonly Entry[] = []): Entry[] {
  const json = fixtureJson(file);
  const vocab = Object.entries<number>(json.model.vocab);
  const added: { id: number; content: string; special: boolean }[] = json.added_tokens;
  const size = Math.max(...vocab.map(([, id]) => id), ...added.map((token) => token.id)) + 1;
  const tokens = new Array<string>(size).fill("");
  const types = new Array<number>(size).fill(1);
  for (const [text, id] of vocab) {
    tokens[id] = text;
    if (/^<0x..>$/.test(text)) types[id] = 6;
  }
  for (const token of added) {
    tokens[token.id] = token.content;
    types[token.id] = token.special ? 3 : 4;
  }
  return [
    ["tokenizer.ggml.model", "string", kind],
    array("tokens", "string", tokens),
    array("token_type", "i32", types),
    array(
      "merges",
      "string",
      json.model.merges.map((merge: [string, string]) => merge.join(" ")),
    ),
    ...own,
  ];
}

/** Entries of a GGUF file for a SentencePiece model; user-defined symbols as the text that they match. */
export function ggufOfSentencePiece(file: string, kind: "llama" | "t5", own: readonly Entry[] = []): Entry[] {
  const spm = readSentencePieceModel(fixtureBytes(file), file);
  const number = { normal: 1, unknown: 2, control: 3, "user-defined": 4, unused: 5, byte: 6 };
  return [
    ["tokenizer.ggml.model", "string", kind],
    array(
      "tokens",
      "string",
      spm.pieces.map((text, id) => (spm.classes[id] === "user-defined" ? text.replaceAll("▁", " ") : text)),
    ),
    array(
      "token_type",
      "i32",
      spm.classes.map((one) => number[one]),
    ),
    array("scores", "f32", [...spm.scores]),
    ["tokenizer.ggml.add_space_prefix", "bool", spm.addDummyPrefix],
    ...(kind === "t5"
      ? [
          ["tokenizer.ggml.remove_extra_whitespaces", "bool", spm.removeExtraWhitespaces] as Entry,
          array("precompiled_charsmap", "u8", [...spm.precompiledCharsmap]),
        ]
      : []),
    ...own,
  ];
}

export async function ggufOf(
  entries: readonly Entry[],
  version: 1 | 2 | 3 = 3,
): Promise<{ tokenizer: Tokenizer; header: GgufHeader }> {
  const source = memorySource("test.gguf", writeGguf({ version, metadata: model("llama", entries) }));
  const header = await readGgufHeader(source);
  return { tokenizer: await ggufTokenizer(source, header), header };
}
