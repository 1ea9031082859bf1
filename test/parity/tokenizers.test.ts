// Ids and texts against the libraries that define them: sentencepiece, tokenizers, transformers, llama.cpp. Fixtures by
// reference/tokenizers_fixtures.py; published tokenizers are read where they are and skipped otherwise.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import {
  huggingFaceTokenizer,
  openTokenizer,
  preTokenizerNames,
  sentencePieceTokenizer,
  type Tokenizer,
} from "../../src/formats/tokenizers/index.ts";
import { cachedModel, sharedFile } from "../support/real-files.ts";
import { fixtureBytes, fixtureJson, ggufOf, ggufOfJson, ggufOfSentencePiece } from "../support/tokenizer-fixtures.ts";

interface Ids {
  readonly with: number[][];
  readonly without: number[][];
  readonly decoded?: string[];
}
interface LlamaCpp {
  readonly parseSpecial: number[][];
  readonly plain: number[][];
}

const fixtures = fixtureJson("fixtures.json");
const texts: readonly string[] = fixtures.texts;

/** Each text with what it becomes, so that a failure names the text. */
const each = <T>(of: (text: string, i: number) => T): Record<string, T> =>
  Object.fromEntries(texts.map((text, i) => [JSON.stringify(text), of(text, i)]));

function expectIds(tokenizer: Tokenizer, ids: Ids, parseSpecial: boolean): void {
  expect(each((text) => tokenizer.encode(text, { parseSpecial }))).toEqual(each((_, i) => ids.with[i]));
  expect(each((text) => tokenizer.encode(text, { parseSpecial, addSpecial: false }))).toEqual(
    each((_, i) => ids.without[i]),
  );
  const { decoded } = ids;
  if (decoded === undefined) return;
  expect(each((_, i) => tokenizer.decode(ids.without[i]!, { skipSpecial: true }))).toEqual(each((_, i) => decoded[i]));
}

function expectLlamaCpp(tokenizer: Tokenizer, ids: LlamaCpp, except: (text: string) => boolean = () => false): void {
  for (const [parseSpecial, wanted] of [
    [true, ids.parseSpecial],
    [false, ids.plain],
  ] as const) {
    const got = each((text) => (except(text) ? null : tokenizer.encode(text, { parseSpecial, addSpecial: false })));
    expect(got).toEqual(each((text, i) => (except(text) ? null : wanted[i])));
  }
}

describe("SentencePiece models give sentencepiece's ids and text", () => {
  for (const [name, ids] of Object.entries<Ids & { addBos: boolean; addEos: boolean }>(fixtures.sentencepiece)) {
    test(name, () => {
      const { addBos, addEos } = ids;
      expectIds(sentencePieceTokenizer(fixtureBytes(`${name}.model`), { addBos, addEos }), ids, false);
    });
  }
});

describe("tokenizer.json gives tokenizers' ids and text", () => {
  for (const [name, ids] of Object.entries<Ids>(fixtures.json)) {
    test(name, async () => {
      expectIds(await huggingFaceTokenizer(fixtureJson(`${name}.json`)), ids, true);
    });
  }
});

describe("a pre-tokenizer cuts as the model's own tokenizer.json does", () => {
  const json = fixtureJson("byte-level.json");
  for (const [name, { step, without }] of Object.entries<{ step: object; without: number[][] }>(
    fixtures.preTokenizers,
  )) {
    const wanted = each((_, i) => without[i]);
    test(`${name} in tokenizer.json`, async () => {
      const ignoreMerges = name === "llama-bpe" || name === "tekken";
      const model = { ...json.model, ignore_merges: ignoreMerges };
      const tokenizer = await huggingFaceTokenizer({ ...json, pre_tokenizer: step, model });
      expect(each((text) => tokenizer.encode(text, { addSpecial: false }))).toEqual(wanted);
    });
    test(`${name} in GGUF`, async () => {
      const { tokenizer } = await ggufOf(
        ggufOfJson("byte-level.json", "gpt2", [
          ["tokenizer.ggml.pre", "string", name],
          ["tokenizer.ggml.bos_token_id", "u32", 0],
        ]),
      );
      expect(each((text) => tokenizer.encode(text, { addSpecial: false }))).toEqual(wanted);
    });
  }
});

describe("GGUF tokenizers give llama.cpp's ids", () => {
  const recorded = fixtureJson("llama-cpp.json").tokenizers;
  const idsOf = (name: string): LlamaCpp => recorded[recorded[name].sameAs ?? name];

  test("every name that is known was put to llama.cpp", () => {
    expect(Object.keys(recorded).filter((name) => !name.startsWith("sentencepiece"))).toEqual(preTokenizerNames);
  });

  for (const name of preTokenizerNames) {
    const ids = idsOf(name);
    // The recorded llama.cpp is older than these names and refuses the file.
    if (typeof ids.plain === "string") {
      test(`${name}: llama.cpp's refusal is recorded`, () => {
        expect(["hy_v4", "spark2_5", "ufakzeka"]).toContain(name);
      });
      continue;
    }
    test(`pre-tokenizer ${name}`, async () => {
      const overCharacters = ["gemma4", "granite-embed-multi-311m", "sarvam-moe"].includes(name);
      const { tokenizer } = await ggufOf(
        ggufOfJson(
          overCharacters ? "characters.json" : "byte-level.json",
          name === "gemma4" ? "gemma4" : "gpt2",
          name === "gemma4"
            ? [["tokenizer.ggml.bos_token_id", "u32", 0]]
            : [
                ["tokenizer.ggml.pre", "string", name],
                ["tokenizer.ggml.bos_token_id", "u32", 0],
              ],
        ),
      );
      expectLlamaCpp(tokenizer, ids);
    });
  }

  test("llama, with a dummy space", async () => {
    const { tokenizer } = await ggufOf(ggufOfSentencePiece("llama.model", "llama"));
    expectLlamaCpp(tokenizer, idsOf("sentencepiece llama"));
  });

  test("llama, without a dummy space; user-defined symbols of spaces also where the text holds ▁", async () => {
    const { tokenizer } = await ggufOf(ggufOfSentencePiece("gemma.model", "llama"));
    expectLlamaCpp(tokenizer, idsOf("sentencepiece gemma"), (text) => text.includes("▁"));
    const spm: Ids = fixtures.sentencepiece.gemma;
    expect(each((text) => tokenizer.encode(text, { parseSpecial: false, addSpecial: false }))).toEqual(
      each((_, i) => spm.without[i]),
    );
  });

  test("t5", async () => {
    const { tokenizer } = await ggufOf(
      ggufOfSentencePiece("t5.model", "t5", [
        ["tokenizer.ggml.unknown_token_id", "u32", 2],
        ["tokenizer.ggml.eos_token_id", "u32", 1],
      ]),
    );
    // A "▁" at the end of the text is trimmed like a space by sentencepiece and here, and kept by llama.cpp.
    expectLlamaCpp(tokenizer, idsOf("sentencepiece t5"), (text) => text.includes("▁"));
    // sentencepiece normalises over a user-defined symbol, llama.cpp (and this) begins anew behind it.
    const spm: Ids = fixtures.sentencepiece.t5;
    const same = (text: string): boolean => !text.includes("<sep>");
    expect(each((text) => same(text) && tokenizer.encode(text, { parseSpecial: false }))).toEqual(
      each((text, i) => same(text) && spm.with[i]),
    );
  });
});

describe("published tokenizers", () => {
  const shared = fixtureJson("shared.json").tokenizers;

  const open = async (path: string | null): Promise<Tokenizer | null> => (path === null ? null : openTokenizer(path));

  function expectBooks(tokenizer: Tokenizer, books: Record<string, { count: number; sha256: string }>, parse: boolean) {
    for (const [book, wanted] of Object.entries(books)) {
      const path = sharedFile(`corpora/books/${book}`);
      if (path === null) continue;
      const paragraphs = beginning(path).split("\n\n");
      const ids = paragraphs.flatMap((one) => tokenizer.encode(one, { addSpecial: false, parseSpecial: parse }));
      expect({ book, ...digest(ids) }).toEqual({ book, ...wanted });
    }
  }

  /** The first 200,000 characters, to their last empty line. */
  function beginning(path: string): string {
    const start = new TextDecoder().decode(readFileSync(path).subarray(0, 400_000));
    const cut = [...start].slice(0, 200_000).join("").replaceAll("\r\n", "\n");
    return cut.slice(0, cut.lastIndexOf("\n\n"));
  }

  function digest(ids: number[]): { count: number; sha256: string } {
    const bytes = new Uint8Array(Uint32Array.from(ids).buffer);
    return { count: ids.length, sha256: createHash("sha256").update(bytes).digest("hex") };
  }

  /** In one piece: an empty line before a digit is cut otherwise than a paragraph alone. */
  function expectWhole(tokenizer: Tokenizer, wanted: { count: number; sha256: string }): void {
    const path = sharedFile("corpora/books/se-gibbon.txt");
    if (path !== null) expect(digest(tokenizer.encode(beginning(path), { addSpecial: false }))).toEqual(wanted);
  }

  for (const name of [
    "t5-tokenizer.json",
    "gpt-neox-20B_tokenizer.json",
    "llama2-tokenizer.model",
    "t5-spiece.model",
  ]) {
    test(`${name}, texts and 200,000 characters of each book`, async ({ skip }) => {
      const tokenizer = await open(sharedFile(`tokenizers/${name}`));
      if (tokenizer === null) return skip();
      const parse = name.endsWith(".json");
      expectIds(tokenizer, shared[name], parse);
      expectBooks(tokenizer, shared[name].books, parse);
    });
  }

  test("tok512.bin gives run.c's ids, and so does the GGUF of the same model", async ({ skip }) => {
    const tokenizer = await open(sharedFile("models/stories260K/tok512.bin"));
    const gguf = await open(sharedFile("models/stories260K/tinyllamas-stories-260k-f32.gguf"));
    if (tokenizer === null || gguf === null) return skip();
    const ids: Ids = shared["tok512.bin"];
    expectIds(tokenizer, ids, false);
    // Pieces of a GGUF file write a space as "▁", so there the two cannot be told apart.
    const same = (text: string): boolean => !text.includes("▁");
    const got = each((text) => same(text) && gguf.encode(text, { parseSpecial: false, addSpecial: false }));
    expect(got).toEqual(each((text, i) => same(text) && ids.without[i]));
  });

  test("SmolLM2's GGUF: the ids of llama.cpp, and of tokenizers with the model's own cut at digits", async ({
    skip,
  }) => {
    const name = "SmolLM2-135M-Instruct.Q4_1.gguf";
    const tokenizer = await open(cachedModel(name));
    if (tokenizer === null) return skip();
    const ids: Ids & { llamaCpp: LlamaCpp } = shared[name];
    expectIds(tokenizer, ids, true);
    expectLlamaCpp(tokenizer, ids.llamaCpp);
    expectBooks(tokenizer, shared[name].books, true);
    expectWhole(tokenizer, shared[name].wholeGibbon);
    // transformers reads no tokenizer.ggml.pre and leaves the cut at digits out: "\n\n", " " and "1" there.
    expect(tokenizer.encode("\n\n 1. As", { addSpecial: false })).toEqual([8866, 33, 30, 1032]);
  });

  test("Gemma 3's GGUF: transformers' ids; llama.cpp's but for ▁ in the text and its reading of </s>", async ({
    skip,
  }) => {
    const name = "gemma-3-270m-q4_k_m.gguf";
    const tokenizer = await open(cachedModel(name));
    if (tokenizer === null) return skip();
    const ids: Ids & { llamaCpp: LlamaCpp } = shared[name];
    expectIds(tokenizer, ids, true);
    // llama.cpp takes the HTML tag </s>, user-defined here, for an end of sequence by its name.
    expectLlamaCpp(tokenizer, ids.llamaCpp, (text) => text.includes("▁") || text.includes("</s>"));
    expectBooks(tokenizer, shared[name].books, true);
    expectWhole(tokenizer, shared[name].wholeGibbon);
  });
});
