import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FormatError, memorySource, readGgufHeader } from "../../src/formats/index.ts";
import { AddedTokens, addedToken } from "../../src/formats/tokenizers/added-tokens.ts";
import {
  byteTokenizer,
  byteTokenizerConfig,
  ggufTokenizer,
  huggingFaceTokenizer,
  llama2cTokenizer,
  openTokenizer,
  preTokenizerNames,
  sentencePieceTokenizer,
  type Tokenizer,
} from "../../src/formats/tokenizers/index.ts";
import { Merger } from "../../src/formats/tokenizers/merger.ts";
import { ByteTrie, PairTable } from "../../src/formats/tokenizers/pair-table.ts";
import { preTokenizerNamed, splitWords } from "../../src/formats/tokenizers/pre-tokenizers.ts";
import { splitByPattern } from "../../src/formats/tokenizers/split.ts";
import { decodeUtf8, Utf8Stream } from "../../src/formats/tokenizers/utf8.ts";
import { ByteWriter, utf8 } from "../support/byte-writer.ts";
import { type Entry, model as ggufModel, writeGguf } from "../support/gguf-writer.ts";
import { fixtureBytes, fixtureJson, ggufOf, ggufOfJson, ggufOfSentencePiece } from "../support/tokenizer-fixtures.ts";

const texts: readonly string[] = fixtureJson("fixtures.json").texts;

/** A llama2.c tokenizer of the byte tokens and some pieces. */
function llama2cBytes(pieces: readonly (readonly [string, number])[], change: (out: ByteWriter) => void = () => {}) {
  const out = new ByteWriter();
  out.u32(32);
  const all: (readonly [string, number])[] = [
    ["<unk>", 0],
    ["\n<s>\n", 0],
    ["\n</s>\n", 0],
    ...Array.from({ length: 256 }, (_, byte): [string, number] => [
      `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`,
      0,
    ]),
    ...pieces,
  ];
  for (const [text, score] of all) {
    const bytes = utf8(text);
    out.f32(score).u32(bytes.length).bytes(bytes);
  }
  change(out);
  return out.done();
}

const llama2cPieces = [" ", "a", "b", "c", "ab", "bc", " a", " ab", " abc"].map((text, i): [string, number] => [
  text,
  -i,
]);

let all: Record<string, Tokenizer> = {};
beforeAll(async () => {
  const gpt2 = await ggufOf(ggufOfJson("byte-level.json", "gpt2", [["tokenizer.ggml.pre", "string", "qwen2"]]));
  all = {
    byte: byteTokenizer(),
    "byte-level": await huggingFaceTokenizer(fixtureJson("byte-level.json")),
    characters: await huggingFaceTokenizer(fixtureJson("characters.json")),
    unigram: await huggingFaceTokenizer(fixtureJson("unigram.json")),
    llama: sentencePieceTokenizer(fixtureBytes("llama.model")),
    gemma: sentencePieceTokenizer(fixtureBytes("gemma.model")),
    t5: sentencePieceTokenizer(fixtureBytes("t5.model")),
    "gguf gpt2": gpt2.tokenizer,
    "gguf llama": (await ggufOf(ggufOfSentencePiece("llama.model", "llama"))).tokenizer,
    "llama2.c": await llama2cTokenizer(memorySource("tok.bin", llama2cBytes(llama2cPieces))),
  };
});

/** Text with spaces, accents, CJK, emoji, digits and control characters, often. */
const text = fc.oneof(
  fc.string({ unit: "grapheme" }),
  fc.string({ unit: "binary" }),
  fc
    .array(
      fc.constantFrom(
        " ",
        "  ",
        "\n",
        "\t",
        "the",
        "don't",
        "位置",
        "é",
        "e\u0301",
        "👩‍👩‍👧‍👦",
        "123",
        "<|im_end|>",
        "x",
      ),
      {
        maxLength: 30,
      },
    )
    .map((parts) => parts.join("")),
  fc.constantFrom(...texts),
);

describe("every tokenizer", () => {
  test("decodes what it encodes, where nothing is normalised away", () => {
    for (const name of ["byte", "byte-level", "gguf gpt2"]) {
      const tokenizer = all[name]!;
      fc.assert(
        fc.property(text, (one) => tokenizer.decode(tokenizer.encode(one, { addSpecial: false })) === one),
        { numRuns: 300 },
      );
    }
    // A literal "▁" comes back as a space; the dummy space must not come back at all.
    for (const name of ["llama", "gemma", "gguf llama", "llama2.c"]) {
      const tokenizer = all[name]!;
      const options = { addSpecial: false, parseSpecial: false } as const;
      fc.assert(
        fc.property(text, (one) => {
          const plain = one.replaceAll("▁", "_");
          return tokenizer.decode(tokenizer.encode(plain, options)) === plain;
        }),
        { numRuns: 200 },
      );
    }
  });

  test("streams exactly what it decodes, from any point on, and never half a character", () => {
    for (const [name, tokenizer] of Object.entries(all)) {
      const id = fc.integer({ min: 0, max: tokenizer.vocabSize - 1 });
      const ids = fc.oneof(
        fc.array(id, { maxLength: 40 }),
        text.map((one) => tokenizer.encode(one)),
      );
      fc.assert(
        fc.property(ids, fc.boolean(), fc.nat(), (sequence, skipSpecial, where) => {
          const whole = tokenizer.decode(sequence, { skipSpecial });
          const start = sequence.length === 0 ? 0 : where % sequence.length;
          const before = tokenizer.stream({ skipSpecial });
          const head = sequence.slice(0, start).map((one) => before.push(one));
          const stream = tokenizer.stream({ skipSpecial, after: sequence.slice(0, start) });
          const tail = sequence.slice(start).map((one) => stream.push(one));
          const parts = [...head, ...tail, stream.end()];
          expect(parts.join(""), name).toBe(whole);
          for (const part of parts) expect(/\p{Cs}/u.test(part), name).toBe(false);
        }),
        { numRuns: 60 },
      );
    }
  });

  test("holds a character back until its last byte", () => {
    const tokenizer = all.byte!;
    const stream = tokenizer.stream();
    const bytes = tokenizer.encode("é👍", { addSpecial: false });
    expect(bytes.map((id) => stream.push(id))).toEqual(["", "é", "", "", "", "👍"]);
    expect(stream.end()).toBe("");
    const cut = tokenizer.stream();
    expect([0xf0, 0x9f, 0x41].map((id) => cut.push(id))).toEqual(["", "", "\ufffdA"]);
    const open = tokenizer.stream();
    open.push(0xf0);
    expect(open.end()).toBe("\ufffd");
  });

  test("reads lone surrogates as U+FFFD", () => {
    for (const tokenizer of Object.values(all)) {
      expect(tokenizer.encode("a\ud83d b\udc4d\ud83d")).toEqual(tokenizer.encode("a\ufffd b\ufffd\ufffd"));
    }
  });

  test("puts its special tokens around an empty text, and nothing with addSpecial false", () => {
    for (const tokenizer of Object.values(all)) {
      const around = tokenizer.encode("");
      expect(around.includes(tokenizer.bosToken ?? -1)).toBe(tokenizer.addsBos);
      expect(around.at(-1) === tokenizer.eosToken && around.length > 0).toBe(tokenizer.addsEos);
      expect(tokenizer.encode("", { addSpecial: false })).toEqual([]);
      expect(tokenizer.decode([])).toBe("");
    }
    expect(all.llama!.encode("")).toEqual([1]);
    expect(all.t5!.encode("")).toEqual([1]);
    expect(all["byte-level"]!.encode("")).toEqual([]);
  });

  test("refuses ids outside its vocabulary, and what is no text", () => {
    for (const tokenizer of Object.values(all)) {
      for (const id of [-1, tokenizer.vocabSize, 0.5, Number.NaN]) {
        expect(() => tokenizer.decode([id])).toThrow(RangeError);
        expect(() => tokenizer.tokenText(id)).toThrow(RangeError);
      }
      expect(() => tokenizer.encode(1 as unknown as string)).toThrow(TypeError);
    }
  });

  test("tokenText and tokenId are each other's inverse", () => {
    for (const tokenizer of Object.values(all)) {
      for (let id = 0; id < tokenizer.vocabSize; id++) {
        const written = tokenizer.tokenText(id);
        if (written !== "") expect(tokenizer.tokenText(tokenizer.tokenId(written)!)).toBe(written);
      }
      expect(tokenizer.tokenId("no such token")).toBeUndefined();
    }
    expect(all["byte-level"]!.tokenText(all["byte-level"]!.encode(" ")[0]!)).toBe("Ġ");
    expect(new TextDecoder().decode(all["byte-level"]!.tokenBytes(all["byte-level"]!.encode(" ")[0]!))).toBe(" ");
  });

  test("takes a hundred thousand letters without a break in seconds, whatever the script", () => {
    for (const [name, tokenizer] of Object.entries(all)) {
      for (const long of ["a".repeat(100_000), "位".repeat(100_000), "ab ".repeat(30_000), " ".repeat(50_000)]) {
        const start = performance.now();
        tokenizer.encode(long, { addSpecial: false });
        expect(performance.now() - start, `${name} ${long.slice(0, 3)}`).toBeLessThan(10_000);
      }
    }
  }, 120_000);
});

describe("special tokens in a text", () => {
  test("are read by default and are text with parseSpecial false; user-defined ones are always read", () => {
    const tokenizer = all["byte-level"]!;
    const end = tokenizer.tokenId("<|im_end|>")!;
    const keep = tokenizer.tokenId("<keep>")!;
    expect(tokenizer.encode("a<|im_end|><keep>")).toEqual([...tokenizer.encode("a"), end, keep]);
    const plain = tokenizer.encode("a<|im_end|><keep>", { parseSpecial: false });
    expect(plain).not.toContain(end);
    expect(plain.at(-1)).toBe(keep);
    expect(tokenizer.decode(plain)).toBe("a<|im_end|><keep>");
  });

  test("are left out by skipSpecial, user-defined ones are not", () => {
    const tokenizer = all.llama!;
    const ids = tokenizer.encode("one<sep>two</s>");
    expect(tokenizer.decode(ids)).toBe("<s>one<sep>two</s>");
    expect(tokenizer.decode(ids, { skipSpecial: true })).toBe("one<sep>two");
    expect(ids.map((id) => tokenizer.isSpecial(id)).filter(Boolean)).toHaveLength(2);
  });

  test("a stream that goes on from a prompt keeps the space of its first word", () => {
    const tokenizer = all.llama!;
    const prompt = tokenizer.encode("the");
    const [word] = tokenizer.encode("the the", { addSpecial: false }).slice(-1) as [number];
    expect(tokenizer.stream({ after: prompt }).push(word)).toBe(" the");
    expect(tokenizer.stream().push(word)).toBe("the");
  });

  const split = (tokens: Parameters<typeof AddedTokens.prototype.split>[0], made: AddedTokens, parse = true) => {
    const out: (string | number)[] = [];
    made.split(
      tokens,
      parse,
      (part) => out.push(part),
      (token) => out.push(token.id),
    );
    return out;
  };

  test("the longest of those that start leftmost is taken", () => {
    const made = new AddedTokens([addedToken(1, "<a", true), addedToken(2, "<ab>", true), addedToken(3, "b>c", false)]);
    expect(split("x<ab>c<a", made)).toEqual(["x", 2, "c", 1]);
    expect(split("<ab>c", made, false)).toEqual(["<a", 3]);
  });

  test("they strip white space and stay out of words where they say so", () => {
    const strip = { id: 1, text: "<m>", special: true, stripLeft: true, stripRight: true, singleWord: false };
    expect(split("a \u00a0<m>\n\n b", new AddedTokens([strip]))).toEqual(["a", 1, "b"]);
    const word = { id: 1, text: "we", special: false, stripLeft: false, stripRight: false, singleWord: true };
    expect(split("we were owe we. éwe wé", new AddedTokens([word]))).toEqual([1, " were owe ", 1, ". éwe wé"]);
  });

  test("those that end a turn are end tokens", async () => {
    const { tokenizer } = await ggufOf(
      ggufOfJson("byte-level.json", "gpt2", [
        ["tokenizer.ggml.pre", "string", "gpt-2"],
        ["tokenizer.ggml.eos_token_id", "u32", 0],
      ]),
    );
    expect(tokenizer.eosToken).toBe(0);
    expect(tokenizer.endTokens).toEqual([0, tokenizer.tokenId("<|im_end|>")]);
  });
});

describe("the byte tokenizer", () => {
  test("has the bytes as ids and its roles behind them", () => {
    const tokenizer = byteTokenizer();
    expect(tokenizer.vocabSize).toBe(259);
    expect([tokenizer.bosToken, tokenizer.eosToken, tokenizer.padToken]).toEqual([256, 257, 258]);
    expect(tokenizer.encode("é<eos>")).toEqual([256, 0xc3, 0xa9, 257]);
    expect(byteTokenizer({ specialTokens: [] }).encode("hi")).toEqual([104, 105]);
    expect(byteTokenizer({ addEos: true, addBos: false }).encode("h")).toEqual([104, 257]);
  });

  test("refuses special tokens that repeat, and roles that it lacks", () => {
    expect(() => byteTokenizer({ specialTokens: ["<a>", "<a>"] })).toThrow(RangeError);
    expect(() => byteTokenizer({ specialTokens: ["<a>"], addEos: true })).toThrow(TypeError);
  });
});

describe("llama2.c", () => {
  test("merges by score, the leftmost of equals first, with a dummy space and bytes for the rest", async () => {
    const tokenizer = all["llama2.c"]!;
    const id = (piece: string): number => tokenizer.tokenId(piece)!;
    // " ab" scores above " abc"'s other halves; then "c" joins it.
    expect(tokenizer.encode("abc", { addSpecial: false })).toEqual([id(" abc")]);
    expect(tokenizer.encode("é", { addSpecial: false })).toEqual([id(" "), 0xc3 + 3, 0xa9 + 3]);
    expect(tokenizer.encode("a")).toEqual([1, id(" a")]);
  });

  test.each([
    ["an end inside a token", (out: ByteWriter) => out.u32(0), /score and length of token 268/],
    ["a length past the end", (out: ByteWriter) => out.f32(0).u32(30), /token 268 of at most 0 bytes/],
    ["a negative length", (out: ByteWriter) => out.f32(0).u32(0xffffffff), /got length -1/],
    ["a score that is no number", (out: ByteWriter) => out.f32(Number.NaN).u32(1).u8(65), /finite score/],
    ["text that is no UTF-8", (out: ByteWriter) => out.f32(0).u32(1).u8(0xff), /valid UTF-8/],
  ])("refuses %s", async (_, change, message) => {
    const bytes = llama2cBytes(llama2cPieces, change);
    await expect(llama2cTokenizer(memorySource("tok.bin", bytes))).rejects.toThrow(message);
    await expect(llama2cTokenizer(memorySource("tok.bin", bytes))).rejects.toBeInstanceOf(FormatError);
  });

  test("refuses another number of tokens than the model has, and other files", async () => {
    const source = memorySource("tok.bin", llama2cBytes(llama2cPieces));
    await expect(llama2cTokenizer(source, 300)).rejects.toThrow(/expected 300 tokens, as the model has, got 268/);
    await expect(llama2cTokenizer(source, 260)).rejects.toThrow(/expected 260 tokens, as the model has, got more/);
    await expect(llama2cTokenizer(memorySource("x", utf8("GGUF....")))).rejects.toThrow(/max_token_length/);
    await expect(llama2cTokenizer(memorySource("x", new Uint8Array(2)))).rejects.toThrow(/max_token_length/);
  });
});

describe("SentencePiece files that are damaged", () => {
  test("give a FormatError or a tokenizer that works, never anything else", () => {
    const original = fixtureBytes("t5.model");
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(original.length - 1), fc.nat(255)), { minLength: 1, maxLength: 6 }),
        fc.nat(original.length),
        fc.boolean(),
        (edits, length, cut) => {
          const bytes = original.slice(0, cut ? length : original.length);
          for (const [at, value] of edits) if (at < bytes.length) bytes[at] = value;
          try {
            const tokenizer = sentencePieceTokenizer(bytes);
            for (const one of texts) tokenizer.decode(tokenizer.encode(one));
          } catch (error) {
            expect(error).toBeInstanceOf(FormatError);
          }
        },
      ),
      { numRuns: 400 },
    );
  }, 60_000);

  test.each([
    ["an empty file", new Uint8Array(0), /expected pieces, got none/],
    ["text", utf8("hello, this is no protobuf"), /t: |tokenizer.model: expected/],
    ["a length past the end", Uint8Array.of(0x0a, 0xff, 0x7f), /within the 0 bytes left, got length 16383/],
    ["a varint without end", new Uint8Array(20).fill(0xff), /at most ten bytes/],
    ["a piece without text", Uint8Array.of(0x0a, 0x02, 0x18, 0x01), /expected a text for piece 0/],
    [
      "an unknown class",
      Uint8Array.of(0x0a, 0x05, 0x0a, 0x01, 0x41, 0x18, 0x09),
      /class of piece 0 to be 1 to 6, got 9/,
    ],
    ["no unknown piece", Uint8Array.of(0x0a, 0x03, 0x0a, 0x01, 0x41), /expected one unknown piece, got 0/],
    [
      "a word model",
      Uint8Array.of(0x12, 0x02, 0x18, 0x03, 0x0a, 0x05, 0x0a, 0x01, 0x41, 0x18, 0x02),
      /got model type word/,
    ],
  ])("%s is named", (_, bytes, message) => {
    expect(() => sentencePieceTokenizer(bytes)).toThrow(message);
    expect(() => sentencePieceTokenizer(bytes)).toThrow(FormatError);
  });
});

describe("GGUF metadata that are damaged", () => {
  const base = (own: readonly Entry[] = []): Entry[] =>
    ggufOfJson("byte-level.json", "gpt2", [["tokenizer.ggml.pre", "string", "gpt-2"], ...own]);
  const replace = (key: string, entry: Entry | null): Entry[] =>
    base().flatMap((one) => (one[0] === key ? (entry === null ? [] : [entry]) : [one]));

  test.each([
    ["no tokenizer", [], /expected the key tokenizer.ggml.model, got none/],
    ["an unknown kind", [["tokenizer.ggml.model", "string", "gtp2"]] as Entry[], /got "gtp2"; did you mean "gpt2"\?/],
    [
      "an unknown pre-tokenizer",
      replace("tokenizer.ggml.pre", ["tokenizer.ggml.pre", "string", "qwen-2"]),
      /got "qwen-2"; did you mean "qwen2"/,
    ],
    [
      "token types that do not fit",
      replace("tokenizer.ggml.token_type", ["tokenizer.ggml.token_type", "array", { of: "i32", values: [1, 1] }]),
      /expected tokenizer.ggml.token_type for \d+ tokens, got 2/,
    ],
    ["no merges", replace("tokenizer.ggml.merges", null), /expected the key tokenizer.ggml.merges/],
    [
      "a merge of one part",
      replace("tokenizer.ggml.merges", ["tokenizer.ggml.merges", "array", { of: "string", values: ["ab"] }]),
      /expected merge 0 as two parts, got "ab"/,
    ],
    ["BOS outside", base([["tokenizer.ggml.bos_token_id", "u32", 99_999]]), /bos_token_id to be a token id/],
    [
      "BOS asked for and missing",
      base([["tokenizer.ggml.add_bos_token", "bool", true]]),
      /as add_bos_token is true, got none/,
    ],
    ["a key of another type", base([["tokenizer.ggml.add_bos_token", "u32", 1]]), /add_bos_token to be bool, got u32/],
    [
      "llama without scores",
      [
        ["tokenizer.ggml.model", "string", "llama"],
        ["tokenizer.ggml.tokens", "array", { of: "string", values: ["<unk>", "<s>", "</s>", "a"] }],
      ] as Entry[],
      /expected the key tokenizer.ggml.scores/,
    ],
    [
      "scores that are not finite",
      [
        ["tokenizer.ggml.model", "string", "llama"],
        ["tokenizer.ggml.tokens", "array", { of: "string", values: ["<unk>", "a"] }],
        ["tokenizer.ggml.scores", "array", { of: "f32", values: [0, Number.NaN] }],
      ] as Entry[],
      /expected finite tokenizer.ggml.scores, got NaN/,
    ],
  ])("%s is named", async (_, entries, message) => {
    await expect(ggufOf(entries)).rejects.toThrow(message);
    await expect(ggufOf(entries)).rejects.toBeInstanceOf(FormatError);
  });

  test("token text that is no UTF-8 is named by its byte", async () => {
    const bytes = writeGguf({ metadata: ggufModel("llama", replace("tokenizer.ggml.pre", null)) });
    // The first token's first byte.
    const at = Buffer.from(bytes).indexOf("<|endoftext|>");
    bytes[at] = 0xff;
    const source = memorySource("x.gguf", bytes);
    const header = await readGgufHeader(source);
    await expect(ggufTokenizer(source, header)).rejects.toThrow(`valid UTF-8 (byte ${at})`);
  });

  test("version 1, with its 32-bit lengths, reads the same", async () => {
    const first = await ggufOf(base(), 1);
    const third = await ggufOf(base(), 3);
    for (const one of texts) expect(first.tokenizer.encode(one)).toEqual(third.tokenizer.encode(one));
  });

  test("no name of a pre-tokenizer means llama.cpp's default", async () => {
    const { tokenizer } = await ggufOf(replace("tokenizer.ggml.pre", null));
    const named = await ggufOf(replace("tokenizer.ggml.pre", ["tokenizer.ggml.pre", "string", "default"]));
    for (const one of texts) expect(tokenizer.encode(one)).toEqual(named.tokenizer.encode(one));
  });
});

describe("tokenizer.json that cannot be read", () => {
  const json = fixtureJson("byte-level.json");
  test.each([
    [
      "a model of another kind",
      { ...json, model: { type: "WordPiece", vocab: {} } },
      /one of BPE, Unigram, got "WordPiece"/,
    ],
    ["an unknown pre-tokenizer", { ...json, pre_tokenizer: { type: "Splitt" } }, /did you mean "Split"/],
    ["an unknown normaliser", { ...json, normalizer: { type: "NFKD2" } }, /got "NFKD2"/],
    ["a decoder for speech", { ...json, decoder: { type: "CTC" } }, /decoder.type to be one of .*, got "CTC"/],
    ["no vocabulary", { ...json, model: { type: "BPE", merges: [] } }, /model.vocab to be an object/],
    ["an id that is no integer", { ...json, model: { ...json.model, vocab: { a: 1.5 } } }, /model.vocab\["a"\]/],
    ["an id twice", { ...json, model: { ...json.model, vocab: { a: 1, b: 1 } } }, /an id of its own, not that of "a"/],
    ["an id beyond reason", { ...json, model: { ...json.model, vocab: { a: 2 ** 40 } } }, /got 1099511627776/],
    [
      "merges that are no pairs",
      { ...json, model: { ...json.model, merges: [["a"]] } },
      /model.merges\[0\] to be two parts/,
    ],
    [
      "an expression that is none",
      { ...json, pre_tokenizer: { type: "Split", pattern: { Regex: "(" }, behavior: "Isolated" } },
      /a regular expression that can be translated/,
    ],
    [
      "a template token outside the vocabulary",
      {
        ...json,
        post_processor: {
          type: "TemplateProcessing",
          single: [{ SpecialToken: { id: "x", type_id: 0 } }],
          special_tokens: { x: { ids: [1e6] } },
        },
      },
      /a token of post_processor to be a token id/,
    ],
    [
      "a table that is none",
      { ...json, normalizer: { type: "Precompiled", precompiled_charsmap: "AAAA" } },
      /normalisation table whose trie fits/,
    ],
    ["no object", [], /the document to be an object/],
  ])("%s is named", async (_, document, message) => {
    await expect(huggingFaceTokenizer(document)).rejects.toThrow(message);
    await expect(huggingFaceTokenizer(document)).rejects.toBeInstanceOf(FormatError);
  });

  test("tokenizer_config.json names the roles", async () => {
    const config = { bos_token: "<|im_start|>", eos_token: { content: "<|im_end|>" }, pad_token: null };
    const tokenizer = await huggingFaceTokenizer(json, { config });
    expect(tokenizer.bosToken).toBe(tokenizer.tokenId("<|im_start|>"));
    expect(tokenizer.eosToken).toBe(tokenizer.tokenId("<|im_end|>"));
    expect(tokenizer.padToken).toBeNull();
    // Roles put nothing around a text; the post-processor does.
    expect(tokenizer.addsBos).toBe(false);
  });
});

describe("openTokenizer", () => {
  let folder = "";
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "longhand-tokenizers-"));
    const put = async (path: string, data: Uint8Array | string): Promise<void> => {
      await mkdir(join(folder, path, ".."), { recursive: true });
      await writeFile(join(folder, path), data);
    };
    await put("hf/tokenizer.json", fixtureBytes("byte-level.json"));
    await put("hf/tokenizer.model", fixtureBytes("llama.model"));
    await put("hf/config.json", "{}");
    await put("llama/tokenizer.model", fixtureBytes("llama.model"));
    await put("llama/tokenizer_config.json", '{"add_bos_token": false, "add_eos_token": true}');
    await put("t5/spiece.model", fixtureBytes("t5.model"));
    await put("t5/tokenizer_config.json", '{"extra_ids": 3}');
    await put("added/tokenizer.model", fixtureBytes("llama.model"));
    await put(
      "added/tokenizer_config.json",
      '{"added_tokens_decoder": {"0": {"content": "<unk>", "special": true}, "700": {"content": "<|im_end|>", "special": true}}}',
    );
    await put("gap/tokenizer.model", fixtureBytes("llama.model"));
    await put("gap/tokenizer_config.json", '{"added_tokens_decoder": {"702": {"content": "x"}}}');
    await put("small/tokenizer_config.json", JSON.stringify(byteTokenizerConfig({ specialTokens: ["<bos>", "<x>"] })));
    await put(
      "gguf/model.gguf",
      writeGguf({ metadata: ggufModel("llama", ggufOfSentencePiece("llama.model", "llama")) }),
    );
    await put("none/vocab.json", "{}");
    await put("bad/tokenizer.json", '{"model": ');
    await put("tok/tok268.bin", llama2cBytes(llama2cPieces));
  });
  afterAll(() => rm(folder, { recursive: true }));
  const open = (path: string): Promise<Tokenizer> => openTokenizer(join(folder, path));

  test("takes tokenizer.json before a SentencePiece model, from the folder, its config.json or by name", async () => {
    for (const path of ["hf", "hf/config.json", "hf/tokenizer.json"])
      expect((await open(path)).kind).toBe("hugging-face");
    expect((await open("hf/tokenizer.model")).kind).toBe("sentencepiece-bpe");
  });

  test("lets tokenizer_config.json say what stands around a SentencePiece text, and which tokens follow", async () => {
    const llama = await open("llama");
    expect([llama.addsBos, llama.addsEos]).toEqual([false, true]);
    const t5 = await open("t5");
    expect(t5.tokenText(t5.vocabSize - 1)).toBe("<extra_id_0>");
    expect(t5.encode("a <extra_id_0> b", { addSpecial: false }).filter((id) => id >= t5.vocabSize - 3)).toEqual([
      t5.vocabSize - 1,
    ]);
    const added = await open("added");
    expect(added.tokenText(added.vocabSize - 1)).toBe("<|im_end|>");
    expect(added.encode("a<|im_end|>").at(-1)).toBe(added.vocabSize - 1);
    expect(added.endTokens).toContain(added.vocabSize - 1);
    await expect(open("gap")).rejects.toThrow(/follow the 700 pieces without a gap, got "x" as 702/);
  });

  test("opens GGUF, llama2.c and byte tokenizers", async () => {
    expect((await open("gguf/model.gguf")).kind).toBe("gguf-llama");
    expect((await open("tok/tok268.bin")).kind).toBe("llama2.c");
    const small = await open("small");
    expect([small.kind, small.vocabSize, small.bosToken]).toEqual(["byte", 258, 256]);
  });

  test("says what it looked for", async () => {
    await expect(open("none")).rejects.toThrow(/expected tokenizer.json, .* in the folder, got only vocab.json/);
    await expect(open("nowhere")).rejects.toThrow(/got a path that does not exist/);
    await expect(open("bad")).rejects.toBeInstanceOf(FormatError);
    await expect(open("none/vocab.json")).rejects.toBeInstanceOf(FormatError);
  });
});

describe("parts", () => {
  test("merging with a heap equals merging pair by pair", () => {
    // Symbols 0..3 merge by a random table; the plain way scans for the lowest rank, leftmost first.
    const pairs = fc.array(fc.tuple(fc.nat(5), fc.nat(5), fc.integer({ min: 0, max: 9 })), { maxLength: 12 });
    fc.assert(
      fc.property(fc.array(fc.nat(5), { maxLength: 40 }), pairs, (symbols, table) => {
        const rules = new Map<string, { rank: number; rule: number }>();
        for (const [rule, [a, b, rank]] of table.entries())
          if (!rules.has(`${a} ${b}`)) rules.set(`${a} ${b}`, { rank, rule });
        const result = (rule: number): number => (table[rule]![0] + table[rule]![1] + 1) % 6;
        const plain = [...symbols];
        for (;;) {
          let best = Number.POSITIVE_INFINITY;
          let where = -1;
          for (let i = 0; i + 1 < plain.length; i++) {
            const found = rules.get(`${plain[i]} ${plain[i + 1]}`);
            if (found !== undefined && found.rank < best) [best, where] = [found.rank, i];
          }
          if (where < 0) break;
          plain.splice(where, 2, result(rules.get(`${plain[where]} ${plain[where + 1]}`)!.rule));
        }
        const fast = Int32Array.from(symbols);
        const left = new Merger().merge(fast, fast.length, {
          find: (a, b) => rules.get(`${a} ${b}`)?.rule ?? -1,
          rank: (rule) => table[rule]![2],
          result,
        });
        expect([...fast.subarray(0, left)]).toEqual(plain);
      }),
      { numRuns: 500 },
    );
  });

  test("a pair table is a map, and a trie finds the longest key", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(50), fc.nat(50), fc.integer())), (entries) => {
        const table = new PairTable(1);
        const map = new Map<string, number>();
        for (const [a, b, value] of entries) {
          table.set(a, b, value | 0);
          map.set(`${a} ${b}`, value | 0);
        }
        expect(table.size).toBe(map.size);
        const wrong = [];
        for (let a = 0; a <= 50; a++) {
          for (let b = 0; b <= 50; b++) if (table.get(a, b) !== map.get(`${a} ${b}`)) wrong.push([a, b]);
        }
        expect(wrong).toEqual([]);
      }),
      { numRuns: 20 },
    );
    const trie = new ByteTrie();
    for (const key of ["a", "abc", "b"]) trie.add(utf8(key), 0);
    expect([..."abca"].map((_, at) => trie.longestMatch(utf8("abca"), at, 4))).toEqual([3, 1, 0, 1]);
  });

  test("text is cut the same in windows as whole", () => {
    const bits = fc.constantFrom(
      "word ",
      "123",
      "'ll",
      "\n\n",
      "  ",
      "位置",
      "é",
      "Ab",
      "!?",
      "x".repeat(40),
      "🤦🏽‍♀️ ",
    );
    const long = fc.array(bits, { minLength: 200, maxLength: 600 }).map((parts) => parts.join(""));
    fc.assert(
      fc.property(long, fc.constantFrom("gpt-2", "llama-bpe", "gpt-4o", "qwen2"), (one, name) => {
        const pattern = preTokenizerNamed(name)!.steps[0] as RegExp;
        const whole: string[] = [];
        splitByPattern(one, pattern, (piece) => whole.push(piece));
        // An engine whose stack is exhausted at the first try.
        let failed = false;
        const failing = new (class extends RegExp {
          override exec(of: string): RegExpExecArray | null {
            if (!failed) {
              failed = true;
              throw new RangeError("Maximum call stack size exceeded");
            }
            return super.exec(of);
          }
        })(pattern.source, pattern.flags);
        const windows: string[] = [];
        splitByPattern(one, failing, (piece) => windows.push(piece), 600);
        expect(windows).toEqual(whole);
      }),
      { numRuns: 60 },
    );
  });

  test("every pre-tokenizer keeps every character", () => {
    fc.assert(
      fc.property(text, fc.constantFrom(...preTokenizerNames), (one, name) => {
        const words: string[] = [];
        splitWords(one.replace(/\p{Cs}/gu, ""), preTokenizerNamed(name)!.steps, (word) => words.push(word));
        expect(words.join("")).toBe(one.replace(/\p{Cs}/gu, ""));
        expect(words).not.toContain("");
      }),
      { numRuns: 1000 },
    );
  });

  test("broken UTF-8 is one U+FFFD a part, or one a byte, whole or in pieces", () => {
    expect(decodeUtf8(Uint8Array.of(0xe4, 0xbd, 0x41), "one-a-part")).toBe("\ufffdA");
    expect(decodeUtf8(Uint8Array.of(0xe4, 0xbd, 0x41), "one-a-byte")).toBe("\ufffd\ufffdA");
    expect(decodeUtf8(Uint8Array.of(0xed, 0xa0, 0x80), "one-a-byte")).toBe("\ufffd\ufffd\ufffd");
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), fc.constantFrom("one-a-part", "one-a-byte"), (bytes, mode) => {
        const stream = new Utf8Stream(mode);
        const parts = [...bytes].map((byte) => stream.push(Uint8Array.of(byte)));
        expect(parts.join("") + stream.end()).toBe(decodeUtf8(bytes, mode));
        if (mode === "one-a-part")
          expect(decodeUtf8(bytes, mode)).toBe(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes));
      }),
      { numRuns: 500 },
    );
  });
});
