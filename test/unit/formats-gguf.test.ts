import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { computeRopeFrequencies } from "../../src/encodings/rope/scaling/index.ts";
import { type ByteSource, FormatError, memorySource, openFile, withFile } from "../../src/formats/bytes/index.ts";
import {
  decodeGgufArray,
  describeGguf,
  type GgufHeader,
  ggufArchitectures,
  openGguf,
  readGguf,
  readGgufHeader,
  ropeFromDivisors,
} from "../../src/formats/gguf/index.ts";
import type { PositionGroup } from "../../src/formats/model-description.ts";
import { ByteWriter, utf8 } from "../support/byte-writer.ts";
import { type Entry, float32Tensor, type GgufSpec, model, writeGguf, zeroTensor } from "../support/gguf-writer.ts";
import { CountingSource } from "../support/mutations.ts";
import { cachedModel, sharedFile } from "../support/real-files.ts";

const fixtures = new URL("../fixtures/gguf/", import.meta.url);
const expected = JSON.parse(readFileSync(new URL("expected.json", fixtures), "utf8"));
const path = (file: string): string => new URL(file, fixtures).pathname;

const read = (bytes: Uint8Array, name = "m.gguf"): Promise<GgufHeader> => readGgufHeader(memorySource(name, bytes));
const readSpec = (spec: GgufSpec): Promise<GgufHeader> => read(writeGguf(spec));
const describeSpec = async (
  architecture: string,
  own: readonly Entry[] = [],
  shape: Parameters<typeof model>[2] = {},
  tensors: GgufSpec["tensors"] = [],
) => describeGguf(await readSpec({ metadata: model(architecture, own, shape), tensors }));

interface Dump {
  readonly alignment: number;
  readonly dataOffset: number;
  readonly fields: Record<string, { types: string[]; value: unknown }>;
  readonly tensors: Record<
    string,
    { dimensions: number[]; type: number; offset: number; bytes: number; elements: number }
  >;
}

const pythonTypes: Record<string, string> = {
  uint: "u",
  int: "i",
  float: "f",
  bool: "bool",
  string: "string",
  array: "array",
};
function typeName(python: string): string {
  const [, word, bits] = /^([A-Z]+)(\d*)$/.exec(python)!;
  return pythonTypes[word!.toLowerCase()]! + bits!;
}

/** A header as the gguf package's reader dumps it. */
function expectAsDumped(header: GgufHeader, dump: Dump): void {
  expect(header.alignment).toBe(dump.alignment);
  expect(header.parts[0]!.dataOffset).toBe(dump.dataOffset);
  expect([...header.metadata.keys()]).toEqual(Object.keys(dump.fields));
  for (const [key, { types, value }] of Object.entries(dump.fields)) {
    const entry = header.metadata.get(key)!;
    expect([key, entry.type]).toEqual([key, typeName(types[0]!)]);
    if (entry.type === "array") {
      if (types[1] !== undefined) expect(entry.value.elementType).toBe(typeName(types[1]));
      const long = value as { length: number };
      expect(entry.value.count).toBe(long.length);
      if (Array.isArray(value)) expect(entry.value.values).toEqual(value);
      else expect(entry.value.values).toBeNull();
    } else if (typeof entry.value === "bigint") {
      expect(String(entry.value)).toBe((value as { big: string }).big);
    } else {
      expect(entry.value).toEqual(value);
    }
  }
  expect(
    Object.fromEntries(
      [...header.tensors.values()].map((tensor) => [
        tensor.name,
        {
          dimensions: [...tensor.dimensions],
          type: tensor.type.id,
          offset: tensor.offset,
          bytes: tensor.byteLength,
          elements: tensor.numElements,
        },
      ]),
    ),
  ).toEqual(dump.tensors);
}

describe("a GGUF header", () => {
  test("agrees with the gguf package on every value type, tensor type, size and offset", async () => {
    expectAsDumped(await openGguf(path("all-types.gguf")), expected["all-types.gguf"]);
  });

  test("keeps long arrays in the file until they are asked for", async () => {
    await withFile(path("all-types.gguf"), async (source) => {
      const header = await readGgufHeader(source);
      const words = header.metadata.get("t.words")!;
      const long = header.metadata.get("t.long")!;
      if (words.type !== "array" || long.type !== "array") throw new Error("expected arrays");
      expect(words.value.values).toBeNull();
      expect(await decodeGgufArray(source, words.value, header.version)).toEqual(
        Array.from({ length: 2000 }, (_, i) => `word${i}`),
      );
      expect(await decodeGgufArray(source, long.value, header.version)).toEqual(
        Array.from({ length: 3000 }, (_, i) => i),
      );
    });
  });

  test.each([1, 2, 3] as const)("of version %d reads the same metadata and tensors", async (version) => {
    const header = await readSpec({
      version,
      metadata: [
        ...model("llama"),
        [
          "a.nested",
          "array",
          {
            of: "array",
            values: [
              { of: "u8", values: [1, 2] },
              { of: "string", values: ["x"] },
            ],
          },
        ],
        ["a.last", "i16", -7],
      ],
      tensors: [zeroTensor("token_embd.weight", [16, 3]), float32Tensor("b", [1, 2, 3])],
    });
    expect(header.version).toBe(version);
    expect(header.metadata.get("general.name")).toEqual({ type: "string", value: "Test" });
    expect(header.metadata.get("a.last")).toEqual({ type: "i16", value: -7 });
    expect(header.metadata.get("a.nested")).toMatchObject({ value: { elementType: "array", count: 2, values: null } });
    expect(header.tensors.get("b")).toMatchObject({ dimensions: [3], byteLength: 12 });
    expect(header.tensors.get("b")!.offset).toBe(header.parts[0]!.dataOffset + 192);
    expect(header.numParameters).toBe(51);
  });

  test("decodes rotary tensors in F32, F16 and BF16", async () => {
    const half = new ByteWriter().u16(0x3c00).u16(0x4248).u16(0x0001).u16(0xfc00).done();
    const bfloat = new ByteWriter().u16(0x3f80).u16(0x4049).done();
    const { rotary } = await readSpec({
      metadata: model("llama"),
      tensors: [
        float32Tensor("rope_freqs.weight", [1, 8, 2.5]),
        { name: "rope_factors_long.weight", dimensions: [4], type: 1, data: half },
        { name: "rope_factors_short.weight", dimensions: [2], type: 30, data: bfloat },
      ],
    });
    expect(rotary).toEqual({
      freqs: [1, 8, 2.5],
      long: [1, 3.140625, 2 ** -24, Number.NEGATIVE_INFINITY],
      short: [1, 3.140625],
    });
  });

  test("a big-endian file is named as one", async () => {
    await expect(openGguf(path("big-endian.gguf"))).rejects.toThrow(
      "big-endian.gguf: expected a little-endian GGUF file, got a big-endian one",
    );
  });

  const base = { metadata: model("llama") };
  const patched = (at: number, change: (view: DataView, at: number) => void, spec: GgufSpec = base): Uint8Array => {
    const bytes = writeGguf(spec);
    change(new DataView(bytes.buffer), at);
    return bytes;
  };
  test.each<[string, () => Uint8Array, RegExp]>([
    ["another format", () => utf8("PK\u0003\u0004 and so on"), /expected the magic "GGUF", got "PK/],
    ["a format from before GGUF", () => utf8("tjgg............"), /a format from before GGUF/],
    ["an empty file", () => new Uint8Array(0), /expected the magic "GGUF" \(4 bytes\), got 0 bytes/],
    ["version 4", () => patched(4, (v, at) => v.setUint32(at, 4, true)), /version 1, 2 or 3, got 4 \(byte 4\)/],
    ["version 0", () => patched(4, (v, at) => v.setUint32(at, 0, true)), /version 1, 2 or 3, got 0/],
    [
      "2^40 tensors",
      () => patched(8, (v, at) => v.setBigUint64(at, 2n ** 40n, true)),
      /at most 262144 tensors, got 1099511627776 \(byte 8\)/,
    ],
    [
      "more tensors than bytes",
      () => patched(8, (v, at) => v.setBigUint64(at, 9999n, true)),
      /expected tensors to fit in the \d+ bytes left, got 9999/,
    ],
    [
      "2^63 keys",
      () => patched(16, (v, at) => v.setBigUint64(at, 2n ** 63n, true)),
      /the number of metadata keys below 2\^53/,
    ],
    [
      "a key of 2^52 bytes",
      () => patched(24, (v, at) => v.setBigUint64(at, 2n ** 52n, true)),
      /metadata key 0 of at most 65535 bytes, got length 4503599627370496 \(byte 24\)/,
    ],
    [
      "an unknown value type",
      () => patched(24 + 8 + 20, (v, at) => v.setUint32(at, 13, true)),
      /a type of 0 to 12 for the value of "general.architecture", got 13 \(byte 52\)/,
    ],
    [
      "a duplicate key",
      () => writeGguf({ metadata: [...model("llama"), ["general.name", "u8", 1]] }),
      /the key "general.name" once/,
    ],
    ["an empty key", () => writeGguf({ metadata: [["", "u8", 1]] }), /a name for metadata key 0/],
    [
      "an alignment of 48",
      () => writeGguf({ metadata: [["general.alignment", "u32", 48]] }),
      /a power of two and a multiple of 8, got u32 48/,
    ],
    ["an alignment of 4", () => writeGguf({ metadata: [["general.alignment", "u32", 4]] }), /got u32 4/],
    [
      "an alignment that is text",
      () => writeGguf({ metadata: [["general.alignment", "string", "32"]] }),
      /got string 32/,
    ],
    [
      "deep arrays",
      () =>
        writeGguf({
          metadata: [
            [
              "a",
              "array",
              [1, 2, 3, 4].reduce<{ of: "array" | "u8"; values: never[] }>(
                (inner) => ({ of: "array", values: [inner as never] }),
                { of: "u8", values: [] },
              ),
            ],
          ],
        }),
      /arrays nested at most 4 deep/,
    ],
    [
      "a duplicate tensor",
      () => writeGguf({ ...base, tensors: [zeroTensor("a", [8]), zeroTensor("a", [8])] }),
      /the tensor "a" once/,
    ],
    [
      "5 dimensions",
      () => writeGguf({ ...base, tensors: [zeroTensor("a", [1, 1, 1, 1, 1])] }),
      /at most 4 dimensions of tensor "a", got 5/,
    ],
    [
      "an unknown tensor type",
      () => writeGguf({ ...base, tensors: [{ ...zeroTensor("a", [8]), type: 4 }] }),
      /a known ggml type of tensor "a", got number 4/,
    ],
    [
      "a row that is no whole block",
      () => writeGguf({ ...base, tensors: [{ ...zeroTensor("a", [48]), type: 2 }] }),
      /whole blocks of 32 \(Q4_0\), got 48 elements/,
    ],
    [
      "a tensor past the end",
      () => writeGguf({ ...base, tensors: [{ ...zeroTensor("a", [64]), data: new Uint8Array(32) }] }),
      /tensor "a" \(256 bytes from byte \d+\) within the file/,
    ],
    [
      "a misaligned tensor",
      () => writeGguf({ ...base, tensors: [{ ...zeroTensor("a", [64]), offset: 16 }] }),
      /a multiple of 32, got 16/,
    ],
    [
      "overlapping tensors",
      () => writeGguf({ ...base, tensors: [zeroTensor("a", [16]), { ...zeroTensor("b", [8]), offset: 32 }] }),
      /tensor "b" after tensor "a", got an overlap of 32 bytes/,
    ],
    [
      "2^80 elements",
      () => writeGguf({ ...base, tensors: [{ ...zeroTensor("a", [8]), dimensions: [2 ** 40, 2 ** 40] }] }),
      /below 2\^53 bytes/,
    ],
    [
      "a rotary tensor in 4 bits",
      () =>
        writeGguf({
          ...base,
          tensors: [{ name: "rope_freqs.weight", dimensions: [32], type: 2, data: new Uint8Array(18) }],
        }),
      /rope_freqs.weight as F32, F16 or BF16, got Q4_0/,
    ],
    [
      "a rotary matrix",
      () => writeGguf({ ...base, tensors: [zeroTensor("rope_freqs.weight", [8, 2])] }),
      /to be a vector/,
    ],
  ])("refuses %s", async (_, bytes, message) => {
    await expect(read(bytes())).rejects.toThrow(message);
    await expect(read(bytes())).rejects.toBeInstanceOf(FormatError);
  });

  test("every prefix of a file is a format error", async () => {
    const bytes = writeGguf({ metadata: model("llama"), tensors: [zeroTensor("a", [8])] });
    for (let length = 0; length < bytes.length; length++) {
      const cut = bytes.subarray(0, length);
      // What is cut off the padding behind the last tensor is not missed.
      const header = await read(cut).catch((error: unknown) => error);
      if (length <= bytes.length - 32) expect(header).toBeInstanceOf(FormatError);
    }
  });
});

test("a pretended terabyte of strings is refused before they are counted", async () => {
  const bytes = writeGguf({ metadata: [["a", "array", { of: "string", values: [] }]] });
  new DataView(bytes.buffer).setBigUint64(24 + 8 + 1 + 4 + 4, 2n ** 25n, true);
  const source = new CountingSource("m.gguf", bytes, 2 ** 40);
  await expect(readGgufHeader(source)).rejects.toThrow(/at most 16777216 strings in arrays, got 33554432/);
  expect(source.bytesRead).toBeLessThan(2 ** 21);
});

describe("a split GGUF checkpoint", () => {
  let folder = "";
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "longhand-split-"));
  });
  afterEach(() => rm(folder, { recursive: true }));
  const names = Object.keys(expected.split as object);

  test.each([0, 1, 2])("written by the gguf package is joined from part %d", async (part) => {
    const header = await openGguf(path(names[part]!));
    expect(header.parts.map(({ file }) => file)).toEqual(names);
    expect([...header.tensors.keys()]).toEqual(["t.0", "t.1", "t.2", "t.3", "t.4"]);
    for (const [name, tensor] of header.tensors) {
      expect([name, tensor.offset]).toEqual([name, expected.split[tensor.file].tensors[name].offset]);
    }
    expect(header.metadata.get("general.name")?.value).toBe("Split");
    expect(header.numParameters).toBe(20);
  });

  const partFile = (no: number, count: number, own: Partial<GgufSpec> & { more?: Entry[]; total?: number } = {}) =>
    writeGguf({
      metadata: [
        ["split.no", "u16", no],
        ["split.count", "u16", count],
        ["split.tensors.count", "i32", own.total ?? count],
        ...(own.more ?? []),
      ],
      tensors: own.tensors ?? [zeroTensor(`t.${no}`, [8])],
    });
  async function write(files: Record<string, Uint8Array>): Promise<string> {
    for (const [name, bytes] of Object.entries(files)) await writeFile(join(folder, name), bytes);
    return join(folder, Object.keys(files)[0]!);
  }

  test("names the file of a missing part", async () => {
    const first = await write({ "m-00001-of-00003.gguf": partFile(0, 3), "m-00003-of-00003.gguf": partFile(2, 3) });
    await expect(openGguf(first)).rejects.toThrow(
      'm-00001-of-00003.gguf: expected the part "m-00002-of-00003.gguf" beside it, got none',
    );
  });

  test.each<[string, Record<string, Uint8Array>, RegExp]>([
    ["a name without numbers", { "m.gguf": partFile(0, 2) }, /a name ending in -NNNNN-of-00002.gguf/],
    [
      "a part under another's name",
      { "m-00002-of-00002.gguf": partFile(0, 2), "m-00001-of-00002.gguf": partFile(1, 2) },
      /expected split.no 1, as its name says, got 0/,
    ],
    [
      "a part of another split",
      { "m-00001-of-00002.gguf": partFile(0, 2), "m-00002-of-00002.gguf": partFile(1, 3) },
      /expected split.count 2, as in the other parts, got 3/,
    ],
    [
      "a part without keys",
      { "m-00001-of-00002.gguf": partFile(0, 2), "m-00002-of-00002.gguf": writeGguf({ metadata: [] }) },
      /expected split.count 2, as in the other parts, got none/,
    ],
    [
      "a tensor in two parts",
      {
        "m-00001-of-00002.gguf": partFile(0, 2),
        "m-00002-of-00002.gguf": partFile(1, 2, { tensors: [zeroTensor("t.0", [8])] }),
      },
      /tensor "t.0" in one part, got it in m-00001-of-00002.gguf too/,
    ],
    [
      "too few tensors",
      { "m-00001-of-00002.gguf": partFile(0, 2, { total: 3 }), "m-00002-of-00002.gguf": partFile(1, 2) },
      /expected 3 tensors in all parts \(split.tensors.count\), got 2/,
    ],
    [
      "a broken part",
      { "m-00001-of-00002.gguf": partFile(0, 2), "m-00002-of-00002.gguf": new Uint8Array(3) },
      /^m-00002-of-00002.gguf: expected the magic/,
    ],
  ])("refuses %s", async (_, files, message) => {
    const given = await write(files);
    await expect(openGguf(given)).rejects.toThrow(message);
  });

  test("closes every sibling, in failure too", async () => {
    let open = 0;
    const opener = async (name: string): Promise<ByteSource> => {
      open++;
      const no = Number(/-(\d{5})-/.exec(name)![1]) - 1;
      const source = memorySource(name, no === 3 ? new Uint8Array(5) : partFile(no, 5));
      return { ...source, close: async () => void open-- };
    };
    await expect(readGguf(memorySource("m-00001-of-00005.gguf", partFile(0, 5)), opener)).rejects.toThrow(FormatError);
    expect(open).toBe(0);
  });

  test("a split of one part needs no other", async () => {
    expect((await openGguf(await write({ "anything.gguf": partFile(0, 1) }))).tensors.size).toBe(1);
  });
});

describe("rope_freqs divisors", () => {
  for (const one of expected.llama3) {
    const { divisors, rotaryDim, ...settings } = one;
    test(`of llama3 ${JSON.stringify(settings)} give these settings back`, () => {
      expect(ropeFromDivisors(divisors, settings.ropeTheta, rotaryDim)).toEqual({ ropeType: "llama3", ...settings });
    });
  }

  test("of Gemma 4 are proportional: ones, then 1e30", () => {
    const divisors = Array.from({ length: 256 }, (_, i) => (i < 64 ? 1 : Math.fround(1e30)));
    expect(ropeFromDivisors(divisors, 1e6, 512)).toEqual({
      ropeType: "proportional",
      ropeTheta: 1e6,
      partialRotaryFactor: 0.25,
    });
  });

  test("of one are no scaling", () => {
    expect(ropeFromDivisors([1, 1, 1], 1e4, 6)).toEqual({ ropeType: "default", ropeTheta: 1e4 });
  });

  test("that no scaling gives stay a table of frequencies", () => {
    const one = expected.llama3[0];
    const bent = one.divisors.map((divisor: number, i: number) => (i === 31 ? divisor * 1.0001 : divisor));
    const rope = ropeFromDivisors(bent, one.ropeTheta, one.rotaryDim);
    expect(rope.ropeType).toBe("table");
    const frequencies = (rope as { inverseFrequencies?: readonly number[] }).inverseFrequencies!;
    bent.forEach((divisor: number, i: number) => {
      expect(frequencies[i]! * divisor).toBeCloseTo(5e5 ** (-i / 64), 15);
    });
  });
});

/** Layers by index as short words: r half-open rotary, n none; the group's kind in front. */
function map(groups: readonly PositionGroup[], layers: number): string {
  const out = new Array<string>(layers).fill("?");
  for (const group of groups) {
    const kind = group.layerType?.[0] ?? "-";
    for (const layer of group.layers) {
      expect(out[layer]).toBe("?");
      out[layer] = kind + (group.position.site === "none" ? "n" : "r");
    }
  }
  return out.join(" ");
}
const codes = (one: { findings: readonly { code: string }[] }): string[] => one.findings.map(({ code }) => code).sort();

describe("describeGguf", () => {
  test("reads shape, name and vocabulary", async () => {
    const tokens: Entry = ["tokenizer.ggml.tokens", "array", { of: "string", values: ["a", "b", "c"] }];
    const one = await describeSpec("llama", [
      ["attention.head_count_kv", "u32", 2],
      ["rope.freq_base", "f32", 5e5],
      ["rope.dimension_count", "u32", 64],
      tokens,
    ]);
    expect(one).toMatchObject({
      name: "Test",
      format: "gguf",
      modelType: "llama",
      numLayers: 4,
      hiddenSize: 512,
      numHeads: 8,
      numKeyValueHeads: 2,
      headDim: 64,
      vocabSize: 3,
      maxPositionEmbeddings: 4096,
      trainedLength: 4096,
    });
    expect(codes(one)).toEqual(["assumed-rotary-layout"]);
  });

  test("an architecture that is unknown is an error naming the nearest ones", async () => {
    await expect(describeSpec("qwen2moee")).rejects.toThrow(
      'm.gguf: expected a known general.architecture, got "qwen2moee"; did you mean "qwen2moe"',
    );
    await expect(describeSpec("__proto__")).rejects.toThrow(/expected a known general.architecture/);
    await expect(describeSpec("mamba2")).rejects.toThrow(/expected a model with attention, got architecture "mamba2"/);
    await expect(readSpec({ metadata: [] }).then(describeGguf)).rejects.toThrow(
      /the string general.architecture, got none/,
    );
  });

  // Pairing by architecture, as the models' own code has it before conversion: llama's weights are permuted to
  // neighbours, GPT-NeoX's kin are not.
  test.each([
    ["llama", "interleaved"],
    ["mistral3", "interleaved"],
    ["deepseek2", "interleaved"],
    ["command-r", "interleaved"],
    ["glm4", "interleaved"],
    ["granite", "interleaved"],
    ["qwen2", "half"],
    ["qwen3", "half"],
    ["qwen3moe", "half"],
    ["gemma", "half"],
    ["phi3", "half"],
    ["gptneox", "half"],
    ["falcon", "half"],
    ["stablelm", "half"],
    ["olmo2", "half"],
    ["starcoder2", "half"],
    ["gpt-oss", "half"],
  ])("%s pairs channels %s, and says that this is assumed", async (architecture, layout) => {
    const one = await describeSpec(architecture, [["rope.dimension_count", "u32", 64]]);
    expect(one.groups[0]!.position).toMatchObject({ site: "query-key", layout });
    expect(one.findings).toContainEqual(expect.objectContaining({ code: "assumed-rotary-layout", expected: layout }));
  });

  test("what a rotary file leaves out is noted: theta 10000, the whole head", async () => {
    const one = await describeSpec("qwen2");
    expect(codes(one)).toEqual(["assumed-rope-theta", "assumed-rotary-dim", "assumed-rotary-layout"]);
    expect(one.findings.every(({ severity }) => severity === "note")).toBe(true);
    expect(one.groups[0]!.position).toMatchObject({ headDim: 64, rope: { ropeType: "default", ropeTheta: 10000 } });
  });

  test.each([
    [20, 80, 640],
    [16, 64, 512],
    [22, 49 * 2, 784],
    [80, 80, 640],
  ])("%d of %d channels rotate", async (rotaryDim, headDim, hidden) => {
    const one = await describeSpec("phi2", [["rope.dimension_count", "u32", rotaryDim]], { hidden });
    const { position } = one.groups[0]!;
    if (position.kind !== "rope") throw new Error("expected rope");
    expect(position.headDim).toBe(headDim);
    const { inverseFrequencies } = computeRopeFrequencies(
      { headDim, maxPositionEmbeddings: 4096, rope: position.rope },
      1,
    );
    expect(inverseFrequencies.length).toBe(rotaryDim / 2);
  });

  test("a share is exact for every even rotary width of every head up to 160", async () => {
    for (let headDim = 2; headDim <= 160; headDim += 2) {
      const metadata = model("phi2", [], { hidden: headDim, heads: 1 });
      for (let rotaryDim = 2; rotaryDim <= headDim; rotaryDim += 14) {
        const one = describeGguf(
          await readSpec({ metadata: [...metadata, ["phi2.rope.dimension_count", "u32", rotaryDim]] }),
        );
        const { position } = one.groups[0]!;
        expect(position.kind === "rope" && Math.trunc(headDim * (position.rope.partialRotaryFactor ?? 1))).toBe(
          rotaryDim,
        );
      }
    }
  });

  test("an odd or too wide rotary dimension is an error", async () => {
    await expect(describeSpec("phi2", [["rope.dimension_count", "u32", 33]])).rejects.toThrow(
      /an even number of 2 to 64/,
    );
    await expect(describeSpec("phi2", [["rope.dimension_count", "u32", 128]])).rejects.toThrow(
      /at most the head's width, 64/,
    );
  });

  // Layers that slide (s), see everything (f), stay in chunks (c) or recur (l); that rotate (r) or do not (n).
  test.each<[string, readonly Entry[], number, string]>([
    ["gemma3", [["attention.sliding_window", "u32", 512]], 7, "sr sr sr sr sr fr sr"],
    ["gemma3", [], 3, "fr fr fr"],
    [
      "gemma3",
      [
        ["attention.sliding_window", "u32", 512],
        ["attention.sliding_window_pattern", "u32", 2],
      ],
      4,
      "sr fr sr fr",
    ],
    ["gemma2", [], 4, "sr fr sr fr"],
    ["gpt-oss", [["attention.sliding_window", "u32", 128]], 4, "sr fr sr fr"],
    [
      "olmo2",
      [
        ["attention.sliding_window", "u32", 4096],
        ["attention.sliding_window_pattern", "array", { of: "bool", values: [true, false, false, true] }],
      ],
      4,
      "sr fr fr sr",
    ],
    ["cohere2", [["attention.sliding_window", "u32", 4096]], 5, "sr sr sr fn sr"],
    ["exaone4", [["attention.sliding_window", "u32", 4096]], 4, "sr sr sr fn"],
    ["exaone4", [], 4, "fr fr fr fr"],
    ["smollm3", [], 8, "-r -r -r -n -r -r -r -n"],
    ["llama4", [], 5, "cr cr cr fn cr"],
    ["llama4", [["attention.sliding_window", "u32", 0]], 4, "fr fr fr fr"],
    ["smallthinker", [["attention.sliding_window", "u32", 4096]], 5, "fn sr sr sr fn"],
    ["afmoe", [["attention.sliding_window", "u32", 2048]], 4, "sr sr sr fn"],
    ["modern-bert", [["attention.sliding_window", "u32", 128]], 4, "fr sr sr fr"],
    ["qwen3next", [], 8, "ln ln ln fr ln ln ln fr"],
    ["lfm2", [["attention.head_count_kv", "array", { of: "i32", values: [0, 0, 4, 0] }]], 4, "ln ln fr ln"],
    ["jamba", [["attention.head_count_kv", "array", { of: "i32", values: [0, 8, 0, 0] }]], 4, "ln fn ln ln"],
    ["granite", [["rope.scaling.finetuned", "bool", false]], 2, "-n -n"],
    ["granite", [], 2, "-r -r"],
  ])("layers of %s with %j", async (architecture, own, layers, pattern) => {
    const one = await describeSpec(
      architecture,
      [["rope.dimension_count", "u32", 64], ["rope.freq_base", "f32", 1e6], ...own],
      { layers },
    );
    expect(map(one.groups, layers)).toBe(pattern);
  });

  test("Gemma 3: sliding layers turn at 10000 unscaled, full ones at 1e6 divided by 8", async () => {
    const one = await describeSpec(
      "gemma3",
      [
        ["rope.freq_base", "f32", 1e6],
        ["rope.scaling.type", "string", "linear"],
        ["rope.scaling.factor", "f32", 8],
        ["attention.sliding_window", "u32", 1024],
        ["attention.key_length", "u32", 128],
      ],
      { layers: 6, context: 131072 },
    );
    const [local, global] = one.groups;
    expect(local).toMatchObject({
      slidingWindow: 1024,
      layerType: "sliding_attention",
      position: { headDim: 128, rope: { ropeType: "default", ropeTheta: 1e4 } },
    });
    expect(global).toMatchObject({
      slidingWindow: null,
      layerType: "full_attention",
      position: { headDim: 128, rope: { ropeType: "linear", ropeTheta: 1e6, factor: 8 } },
    });
    expect(codes(one)).toEqual([
      "assumed-local-rope-theta",
      "assumed-rotary-dim",
      "assumed-rotary-layout",
      "assumed-sliding-pattern",
      "assumed-unscaled-sliding-layers",
    ]);
  });

  test("Gemma 3 with freq_base_swa needs no assumed theta", async () => {
    const one = await describeSpec("gemma3", [
      ["attention.sliding_window", "u32", 512],
      ["rope.freq_base_swa", "f32", 20000],
    ]);
    expect(one.groups[0]!.position).toMatchObject({ rope: { ropeTheta: 20000 } });
    expect(codes(one)).not.toContain("assumed-local-rope-theta");
  });

  test("Llama 3.1: rope_freqs.weight gives llama3 with factor 8 and original length 8192", async () => {
    const { divisors } = expected.llama3[0];
    const one = await describeSpec(
      "llama",
      [
        ["rope.freq_base", "f32", 5e5],
        ["rope.dimension_count", "u32", 128],
      ],
      { hidden: 1024, context: 131072 },
      [float32Tensor("rope_freqs.weight", divisors)],
    );
    expect(one.trainedLength).toBe(8192);
    expect(one.maxPositionEmbeddings).toBe(131072);
    expect(one.groups[0]!.position).toMatchObject({
      rope: {
        ropeType: "llama3",
        ropeTheta: 5e5,
        factor: 8,
        originalMaxPositionEmbeddings: 8192,
        lowFreqFactor: 1,
        highFreqFactor: 4,
      },
    });
    expect(codes(one)).toContain("inferred-llama3-scaling");
  });

  test("divisors under linear scaling become a table with both", async () => {
    const one = await describeSpec(
      "llama",
      [
        ["rope.scaling.type", "string", "linear"],
        ["rope.scaling.factor", "f32", 2],
        ["rope.dimension_count", "u32", 64],
      ],
      {},
      [
        float32Tensor(
          "rope_freqs.weight",
          Array.from({ length: 32 }, (_, i) => i + 1),
        ),
      ],
    );
    const { position } = one.groups[0]!;
    if (position.kind !== "rope" || position.rope.ropeType !== "table") throw new Error("expected a table");
    expect(position.rope.inverseFrequencies[3]).toBeCloseTo(10000 ** (-6 / 64) / 8, 15);
  });

  test.each([
    ["a wrong length", [1, 2, 3], /rope_freqs.weight to hold 32 divisors, one a rotary pair, got 3/],
    ["a zero", [...new Array(31).fill(1), 0], /rope_freqs.weight\[31\] to be a finite number above 0, got 0/],
    ["NaN", [Number.NaN, ...new Array(31).fill(1)], /rope_freqs.weight\[0\] .* got NaN/],
  ])("divisors with %s are an error", async (_, values, message) => {
    await expect(describeSpec("llama", [], {}, [float32Tensor("rope_freqs.weight", values)])).rejects.toThrow(message);
  });

  const longFactors = Array.from({ length: 32 }, (_, i) => 1 + i);
  const shortFactors = Array.from({ length: 32 }, () => 1.5);
  const phi: Entry[] = [
    ["rope.dimension_count", "u32", 64],
    ["rope.scaling.original_context_length", "u32", 4096],
  ];
  const factorTensors = [
    float32Tensor("rope_factors_long.weight", longFactors),
    float32Tensor("rope_factors_short.weight", shortFactors),
  ];

  test("Phi-3.5: longrope from two tensors, attention factor 1.1902380714 as computed", async () => {
    // What the converter writes: √(1 + ln 32 / ln 4096) in 32 bits.
    const one = await describeSpec(
      "phi3",
      [...phi, ["rope.scaling.attn_factor", "f32", 1.1902380714238083]],
      { context: 131072 },
      factorTensors,
    );
    const { position } = one.groups[0]!;
    if (position.kind !== "rope") throw new Error("expected rope");
    expect(position.rope).toEqual({
      ropeType: "longrope",
      ropeTheta: 10000,
      originalMaxPositionEmbeddings: 4096,
      shortFactor: shortFactors,
      longFactor: longFactors,
      attentionFactor: null,
    });
    expect(one.trainedLength).toBe(4096);
    const config = { headDim: 64, maxPositionEmbeddings: 131072, rope: position.rope };
    expect(computeRopeFrequencies(config, 4096).attentionFactor).toBeCloseTo(1.1902380714, 10);
  });

  test("longrope with a factor of its own keeps it; without one a warning says so", async () => {
    const own = await describeSpec(
      "phi3",
      [...phi, ["rope.scaling.attn_factor", "f32", 1.25]],
      { context: 131072 },
      factorTensors,
    );
    expect(own.groups[0]!.position).toMatchObject({ rope: { attentionFactor: 1.25 } });
    const none = await describeSpec("phi3", phi, { context: 131072 }, factorTensors);
    expect(none.findings).toContainEqual(
      expect.objectContaining({ code: "assumed-attention-factor", severity: "warning" }),
    );
  });

  test("one list of factors without the other, and longrope without lists, are errors", async () => {
    await expect(describeSpec("phi3", phi, {}, [factorTensors[0]!])).rejects.toThrow(/got long without short/);
    await expect(describeSpec("phi3", [...phi, ["rope.scaling.type", "string", "longrope"]])).rejects.toThrow(
      /as rope.scaling.type is longrope/,
    );
  });

  test("a window that llama.cpp ignores is kept with a warning", async () => {
    const one = await describeSpec("phi3", [["attention.sliding_window", "u32", 2047]]);
    expect(one.groups).toMatchObject([{ slidingWindow: 2047, layerType: "sliding_attention" }]);
    expect(codes(one)).toContain("sliding-window-ignored-by-llama.cpp");
  });

  const yarn: Entry[] = [
    ["rope.dimension_count", "u32", 64],
    ["rope.freq_base", "f32", 1e6],
    ["rope.scaling.type", "string", "yarn"],
    ["rope.scaling.factor", "f32", 4],
    ["rope.scaling.original_context_length", "u32", 32768],
  ];
  test("Qwen 3 with YaRN: factor 4 over 32768", async () => {
    const one = await describeSpec("qwen3", yarn, { context: 131072 });
    expect(one.trainedLength).toBe(32768);
    expect(one.groups[0]!.position).toMatchObject({
      rope: { ropeType: "yarn", ropeTheta: 1e6, factor: 4, originalMaxPositionEmbeddings: 32768 },
    });
    expect(codes(one)).toEqual(["assumed-rotary-layout"]);
  });

  test("gpt-oss: the ramp is not rounded, which the file cannot say", async () => {
    const one = await describeSpec(
      "gpt-oss",
      [
        ["rope.freq_base", "f32", 150000],
        ["rope.dimension_count", "u32", 64],
        ["rope.scaling.type", "string", "yarn"],
        ["rope.scaling.factor", "f32", 32],
        ["rope.scaling.original_context_length", "u32", 4096],
        ["attention.sliding_window", "u32", 128],
      ],
      { context: 131072 },
    );
    expect(one.groups.map(({ position }) => (position as { rope: unknown }).rope)).toEqual(
      [0, 1].map(() => ({
        ropeType: "yarn",
        ropeTheta: 150000,
        factor: 32,
        originalMaxPositionEmbeddings: 4096,
        truncate: false,
      })),
    );
    expect(codes(one)).toContain("assumed-yarn-truncate");
    // Anchor: published value of pair 16 with truncate false.
    const { position } = one.groups[0]!;
    if (position.kind !== "rope") throw new Error("expected rope");
    const { inverseFrequencies } = computeRopeFrequencies(
      { headDim: 64, maxPositionEmbeddings: 131072, rope: position.rope },
      1,
    );
    expect(inverseFrequencies[16]).toBeCloseTo(4.564839192e-4, 12);
  });

  test("betas and an attention factor that llama.cpp ignores are followed, with a warning", async () => {
    const one = await describeSpec("qwen3", [
      ...yarn,
      ["rope.scaling.yarn_beta_fast", "f32", 16],
      ["rope.scaling.yarn_attn_factor", "f32", 1.5],
    ]);
    expect(one.groups[0]!.position).toMatchObject({ rope: { betaFast: 16, attentionFactor: 1.5 } });
    expect(one.findings.filter(({ severity }) => severity === "warning").map(({ where }) => where)).toEqual([
      "qwen3.rope.scaling.yarn_beta_fast",
      "qwen3.rope.scaling.yarn_attn_factor",
    ]);
  });

  // Softmax factors of the models: DeepSeek-V2-Lite 1.5896, V3 1.8739; their cos and sin are not scaled.
  test.each([
    ["DeepSeek-V2-Lite", 0.0707, 1.5896261651208736],
    ["DeepSeek-V3", 0.1, 1.8738542070926265],
  ])("%s: rotation of its own channels, m² in the softmax", async (_, multiplier, softmaxFactor) => {
    const one = await describeSpec(
      "deepseek2",
      [
        ["attention.key_length", "u32", 576],
        ["attention.key_length_mla", "u32", 192],
        ["rope.dimension_count", "u32", 64],
        ["rope.scaling.type", "string", "yarn"],
        ["rope.scaling.factor", "f32", 40],
        ["rope.scaling.original_context_length", "u32", 4096],
        ["rope.scaling.yarn_log_multiplier", "f32", multiplier],
        ["rope.freq_base", "f32", 10000],
      ],
      { context: 163840 },
    );
    expect(one.headDim).toBe(192);
    const { position } = one.groups[0]!;
    if (position.kind !== "rope") throw new Error("expected rope");
    expect(position.headDim).toBe(64);
    expect(one.groups[0]!.softmaxFactor).toBeCloseTo(softmaxFactor, 12);
    const config = { headDim: 64, maxPositionEmbeddings: 163840, rope: position.rope };
    expect(computeRopeFrequencies(config, 1).attentionFactor).toBe(1);
    expect(codes(one)).toContain("assumed-mscale");
  });

  test("Ministral 3: mscale_all_dim cancels the attention factor, temperature on every layer", async () => {
    const one = await describeSpec(
      "mistral3",
      [
        ["rope.dimension_count", "u32", 64],
        ["rope.freq_base", "f32", 1e6],
        ["rope.scaling.type", "string", "yarn"],
        ["rope.scaling.factor", "f32", 16],
        ["rope.scaling.original_context_length", "u32", 16384],
        ["rope.scaling.yarn_log_multiplier", "f32", 1],
        ["rope.scaling.yarn_beta_fast", "f32", 32],
        ["attention.temperature_scale", "f32", 0.1],
      ],
      { context: 262144 },
    );
    const { position, logitTemperature, softmaxFactor } = one.groups[0]!;
    if (position.kind !== "rope") throw new Error("expected rope");
    expect(
      computeRopeFrequencies({ headDim: 64, maxPositionEmbeddings: 262144, rope: position.rope }, 1).attentionFactor,
    ).toBe(1);
    expect(softmaxFactor).toBe(1);
    expect(logitTemperature).toEqual({ kind: "ministral3", beta: 0.1, originalMaxPositionEmbeddings: 16384 });
  });

  test("Llama 4: chunks of 8192, temperature on the layers without rotation", async () => {
    const one = await describeSpec("llama4", [
      ["attention.sliding_window", "u32", 8192],
      ["rope.dimension_count", "u32", 64],
      ["rope.freq_base", "f32", 5e5],
    ]);
    const [chunked, full] = one.groups;
    expect(chunked).toMatchObject({
      layerType: "chunked_attention",
      attentionChunkSize: 8192,
      slidingWindow: null,
      logitTemperature: null,
    });
    expect(full).toMatchObject({
      layerType: "full_attention",
      position: { site: "none" },
      attentionChunkSize: null,
      logitTemperature: { kind: "llama4", scale: 0.1, floorScale: 8192 },
    });
  });

  test("SmolLM3: every fourth layer is noted as assumed without rotation", async () => {
    const one = await describeSpec("smollm3", [], { layers: 36 });
    expect(one.groups.find(({ position }) => position.site === "none")!.layers).toEqual([
      3, 7, 11, 15, 19, 23, 27, 31, 35,
    ]);
    expect(codes(one)).toContain("assumed-nope-layers");
  });

  test.each<[string, readonly Entry[], number, object]>([
    ["bloom", [], 4, { kind: "alibi", numHeads: 8, maxBias: 8 }],
    ["refact", [], 4, { kind: "alibi", maxBias: 8 }],
    ["mpt", [["attention.max_alibi_bias", "f32", 16]], 4, { kind: "alibi", maxBias: 16 }],
    ["mpt", [["attention.max_alibi_bias", "f32", 0]], 4, { kind: "learned", numPositions: 4096 }],
    ["jais", [["attention.max_alibi_bias", "f32", 8]], 4, { kind: "alibi", maxBias: 8 }],
    ["baichuan", [], 40, { kind: "alibi", maxBias: 8 }],
    ["baichuan", [], 32, { kind: "rope", layout: "interleaved" }],
    ["gpt2", [], 4, { kind: "learned", hiddenSize: 512, numPositions: 4096, offset: 0 }],
    ["starcoder", [], 4, { kind: "learned" }],
    ["bert", [], 4, { kind: "learned" }],
  ])("%s with %j on %d layers", async (architecture, own, layers, position) => {
    expect((await describeSpec(architecture, own, { layers })).groups[0]!.position).toMatchObject(position);
  });

  test("a learned table of the wrong size is an error", async () => {
    await expect(
      describeSpec("gpt2", [], { context: 8 }, [zeroTensor("position_embd.weight", [512, 7])]),
    ).rejects.toThrow(/position_embd.weight to hold 8 rows of 512, got \[512,7\]/);
  });

  test("T5: encoder both ways, decoder causal, distance 128 assumed", async () => {
    const one = await describeSpec(
      "t5",
      [
        ["attention.relative_buckets_count", "u32", 32],
        ["decoder_block_count", "u32", 2],
      ],
      { layers: 3 },
    );
    expect(one.groups).toMatchObject([
      {
        layers: [0, 1, 2],
        layerType: "encoder",
        position: { kind: "t5", numBuckets: 32, maxDistance: 128, bidirectional: true },
      },
      { layers: [0, 1], layerType: "decoder", position: { kind: "t5", bidirectional: false } },
    ]);
    expect(codes(one)).toEqual(["assumed-max-distance"]);
  });

  test("Gemma 4: two head widths, proportional rotation on full layers only", async () => {
    const divisors = Array.from({ length: 32 }, (_, i) => (i < 8 ? 1 : 1e30));
    const one = await describeSpec(
      "gemma4",
      [
        ["attention.key_length", "u32", 64],
        ["attention.key_length_swa", "u32", 32],
        ["rope.dimension_count", "u32", 64],
        ["rope.dimension_count_swa", "u32", 32],
        ["rope.freq_base", "f32", 1e6],
        ["rope.freq_base_swa", "f32", 1e4],
        ["attention.sliding_window", "u32", 512],
        ["attention.sliding_window_pattern", "array", { of: "bool", values: [true, true, false, true] }],
      ],
      {},
      [float32Tensor("rope_freqs.weight", divisors)],
    );
    expect(one.groups).toMatchObject([
      { layers: [0, 1, 3], position: { headDim: 32, rope: { ropeType: "default", ropeTheta: 1e4 } } },
      {
        layers: [2],
        position: { headDim: 64, rope: { ropeType: "proportional", ropeTheta: 1e6, partialRotaryFactor: 0.25 } },
      },
    ]);
  });

  test("multimodal sections are kept and must add up", async () => {
    const sections = (values: number[]): Entry => ["rope.dimension_sections", "array", { of: "i32", values }];
    const one = await describeSpec("qwen2vl", [sections([8, 12, 12, 0])]);
    expect(one.groups[0]!.position).toMatchObject({
      mropeSection: [8, 12, 12],
      mropeInterleaved: false,
      layout: "half",
    });
    const three = await describeSpec("qwen3vl", [sections([12, 10, 10, 0])]);
    expect(three.groups[0]!.position).toMatchObject({ mropeSection: [12, 10, 10], mropeInterleaved: true });
    await expect(describeSpec("qwen2vl", [sections([8, 12, 13, 0])])).rejects.toThrow(/32 pairs in all/);
    // Its converter permutes the weights of multimodal files.
    expect((await describeSpec("glm4", [sections([8, 12, 12, 0])])).groups[0]!.position).toMatchObject({
      layout: "half",
    });
  });

  test("legacy rope.scale_linear, and a factor without a type, are linear", async () => {
    const legacy = await describeSpec("llama", [["rope.scale_linear", "f32", 4]]);
    expect(legacy.groups[0]!.position).toMatchObject({ rope: { ropeType: "linear", factor: 4 } });
    expect(codes(legacy)).toContain("assumed-scaling-type");
    const zero = await describeSpec("llama", [
      ["rope.scaling.type", "string", "linear"],
      ["rope.scaling.factor", "f32", 0],
    ]);
    expect(zero.groups[0]!.position).toMatchObject({ rope: { ropeType: "default" } });
  });

  test("Ollama's names for the local theta and the betas are understood", async () => {
    const gemma = await describeSpec("gemma3", [
      ["rope.local.freq_base", "f32", 10000],
      ["attention.sliding_window", "u32", 512],
    ]);
    expect(codes(gemma)).not.toContain("assumed-local-rope-theta");
    expect(codes(gemma)).not.toContain("unknown-rope-key");
    const betas = await describeSpec("gptoss", [...yarn, ["rope.scaling.beta_fast", "f32", 16]]);
    expect(betas.groups[0]!.position).toMatchObject({ rope: { betaFast: 16, truncate: false } });
  });

  test("a rotary key that nothing reads is a warning naming the nearest one", async () => {
    const one = await describeSpec("llama", [["rope.freq_bases", "f32", 5e5]]);
    expect(one.findings).toContainEqual(
      expect.objectContaining({
        code: "unknown-rope-key",
        where: "llama.rope.freq_bases",
        got: 5e5,
        expected: expect.stringContaining('did you mean "freq_base"'),
      }),
    );
  });

  test("an attention factor without yarn or longrope is a warning", async () => {
    const one = await describeSpec("llama", [["rope.scaling.attn_factor", "f32", 1.5]]);
    expect(codes(one)).toContain("rope-key-unused");
  });

  test("scaling type none with a factor is no scaling, with a warning", async () => {
    const one = await describeSpec("llama", [
      ["rope.scaling.type", "string", "none"],
      ["rope.scaling.factor", "f32", 4],
    ]);
    expect(one.groups[0]!.position).toMatchObject({ rope: { ropeType: "default" } });
    expect(codes(one)).toContain("scaling-factor-unused");
  });

  test.each<[string, readonly Entry[], RegExp]>([
    [
      "an unknown scaling type",
      [["rope.scaling.type", "string", "yarnn"]],
      /one of none, linear, yarn, longrope, got "yarnn"; did you mean "yarn"/,
    ],
    ["a theta of 0", [["rope.freq_base", "f32", 0]], /llama.rope.freq_base to be a number above 0, got 0/],
    ["a theta of NaN", [["rope.freq_base", "f32", Number.NaN]], /a finite number, got "NaN"/],
    ["a theta that is text", [["rope.freq_base", "string", "10000"]], /a finite number, got "another type"/],
    ["a theta that gives infinite frequencies", [["rope.freq_base", "f64", 5e-324]], /finite frequencies/],
    ["a head of 2^30 channels", [["attention.key_length", "u32", 2 ** 30]], /at most 65536, got 1073741824/],
    ["a negative factor", [["rope.scaling.factor", "f32", -2]], /a number of at least 0, got -2/],
    ["more prediction layers than layers", [["nextn_predict_layers", "u32", 4]], /fewer than the 4 blocks, got 4/],
    [
      "too short a list of heads",
      [["attention.head_count_kv", "array", { of: "u32", values: [1, 2] }]],
      /one value a layer, 4/,
    ],
  ])("refuses %s", async (_, own, message) => {
    await expect(describeSpec("llama", own)).rejects.toThrow(message);
    await expect(describeSpec("llama", own)).rejects.toBeInstanceOf(FormatError);
  });

  test("a missing key is named, and a block count of 2^31 is refused", async () => {
    const without = (key: string) => ({ metadata: model("llama").filter(([one]) => one !== `llama.${key}`) });
    for (const key of ["block_count", "context_length", "embedding_length", "attention.head_count"]) {
      await expect(readSpec(without(key)).then(describeGguf)).rejects.toThrow(
        `expected the key llama.${key}, got none`,
      );
    }
    await expect(describeSpec("llama", [], { layers: 2 ** 31 })).rejects.toThrow(/at most 4096/);
  });

  test("further-token layers behind the model are left out", async () => {
    const one = await describeSpec("glm4moe", [
      ["nextn_predict_layers", "u32", 1],
      ["rope.dimension_count", "u32", 32],
    ]);
    expect(one.numLayers).toBe(3);
    expect(one.groups[0]!.layers).toEqual([0, 1, 2]);
  });

  test("every architecture of the table can be described, each layer in one group", async () => {
    const pattern: Entry = [
      "attention.sliding_window_pattern",
      "array",
      { of: "bool", values: [true, false, true, true, true, false, true, true] },
    ];
    for (const architecture of Object.keys(ggufArchitectures)) {
      const facts = ggufArchitectures[architecture]!;
      const own: Entry[] = [
        ["rope.dimension_count", "u32", 64],
        ["attention.relative_buckets_count", "u32", 32],
      ];
      if (facts.sliding !== undefined) own.push(["attention.sliding_window", "u32", 256]);
      if (facts.sliding?.period === null) own.push(pattern);
      const one = await describeSpec(architecture, own, { layers: 8 });
      if (facts.positions !== "t5") map(one.groups, 8);
      expect([architecture, one.groups.length > 0]).toEqual([architecture, true]);
    }
  });
});

describe("real GGUF files", () => {
  const stories = sharedFile("models/stories260K/tinyllamas-stories-260k-f32.gguf");
  test.skipIf(stories === null)("stories260K, version 1, has the sizes of its llama2.c form", async () => {
    const header = await openGguf(stories!);
    expect(header.version).toBe(1);
    expect(header.tensors.size).toBe(48);
    const one = describeGguf(header);
    expect(one).toMatchObject({
      numLayers: 5,
      hiddenSize: 64,
      numHeads: 8,
      numKeyValueHeads: 4,
      vocabSize: 512,
      trainedLength: 512,
    });
    // Its last tensor ends where the file does.
    const end = Math.max(...[...header.tensors.values()].map(({ offset, byteLength }) => offset + byteLength));
    expect(end).toBe(header.parts[0]!.fileSize);
    await withFile(stories!, async (source) => {
      const tokens = header.metadata.get("tokenizer.ggml.tokens")!;
      if (tokens.type !== "array") throw new Error("expected an array");
      expect((await decodeGgufArray(source, tokens.value, header.version)).slice(0, 3)).toEqual([
        "<unk>",
        "<s>",
        "</s>",
      ]);
    });
  });

  const smol = cachedModel("SmolLM2-135M-Instruct.Q4_1.gguf");
  test.skipIf(smol === null)("SmolLM2-135M: 134,515,008 parameters, theta 100000, 8192 tokens", async () => {
    const one = describeGguf(await openGguf(smol!));
    expect(one).toMatchObject({
      numParameters: 134_515_008,
      numLayers: 30,
      headDim: 64,
      trainedLength: 8192,
      vocabSize: 49152,
    });
    expect(one.groups).toMatchObject([
      { position: { layout: "interleaved", rope: { ropeType: "default", ropeTheta: 1e5 } } },
    ]);
  });

  const gemma = cachedModel("gemma-3-270m-q4_k_m.gguf");
  test.skipIf(gemma === null)("Gemma 3 270M: layers 5, 11, 17 full at 1e6, the rest window 512 at 10000", async () => {
    const one = describeGguf(await openGguf(gemma!));
    expect(one).toMatchObject({ numParameters: 268_098_176, numLayers: 18, headDim: 256, trainedLength: 32768 });
    expect(
      one.groups.map(({ layers, slidingWindow, position }) => [
        layers.length,
        slidingWindow,
        (position as { rope: { ropeTheta: number } }).rope.ropeTheta,
      ]),
    ).toEqual([
      [15, 512, 1e4],
      [3, null, 1e6],
    ]);
    expect(one.groups[1]!.layers).toEqual([5, 11, 17]);
  });

  test.skipIf(smol === null)("a long vocabulary decodes to its count", async () => {
    const source = await openFile(smol!);
    const header = await readGgufHeader(source);
    const merges = header.metadata.get("tokenizer.ggml.merges")!;
    if (merges.type !== "array") throw new Error("expected an array");
    const values = await decodeGgufArray(source, merges.value, header.version);
    expect(values.length).toBe(merges.value.count);
    expect(values.every((one) => typeof one === "string" && one.includes(" "))).toBe(true);
    await source.close();
  });
});
