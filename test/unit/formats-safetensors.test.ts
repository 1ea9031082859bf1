import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type ByteSource, FormatError, memorySource } from "../../src/formats/bytes/index.ts";
import {
  readSafetensorsFile,
  readSafetensorsFolder,
  readSafetensorsHeader,
  readSafetensorsIndex,
  readSafetensorsShards,
  safetensorsDtypes,
} from "../../src/formats/safetensors/index.ts";
import { ByteWriter, utf8 } from "../support/byte-writer.ts";
import { safetensorsFile, writeSafetensors } from "../support/safetensors-writer.ts";

const read = (bytes: Uint8Array) => readSafetensorsHeader(memorySource("m.safetensors", bytes));
const readJson = (json: string, dataBytes = 0) => read(safetensorsFile(json, dataBytes));
const tensor = (dtype: string, shape: readonly number[], begin: number, end: number) => ({
  dtype,
  shape,
  data_offsets: [begin, end],
});

describe("a safetensors header", () => {
  test("gives names, shapes, absolute offsets, metadata and the sum of elements", async () => {
    const json = JSON.stringify({
      __metadata__: { format: "pt" },
      b: tensor("BF16", [2, 3], 4, 16),
      a: tensor("F32", [], 0, 4),
      empty: tensor("F16", [0, 7], 16, 16),
    });
    const header = await readJson(`${json}   `, 16);
    const start = 8 + json.length + 3;
    expect(header.dataOffset).toBe(start);
    expect(Object.fromEntries(header.metadata)).toEqual({ format: "pt" });
    expect([...header.tensors.keys()]).toEqual(["a", "b", "empty"]);
    expect(header.tensors.get("b")).toEqual({
      name: "b",
      dtype: "BF16",
      shape: [2, 3],
      numElements: 6,
      offset: start + 4,
      byteLength: 12,
      file: "m.safetensors",
    });
    expect(header.numParameters).toBe(7);
  });

  // Bits by the names' own numbers; what has no number in its name is listed.
  test("every dtype has the width that its name says", () => {
    for (const [name, bits] of Object.entries(safetensorsDtypes)) {
      expect([name, bits]).toEqual([name, name === "BOOL" ? 8 : Number(/\d+/.exec(name)![0])]);
    }
  });

  test("4-bit and 6-bit tensors are packed, and must come out at whole bytes", async () => {
    expect((await readJson(JSON.stringify({ a: tensor("F4", [3, 2], 0, 3) }), 3)).numParameters).toBe(6);
    expect((await readJson(JSON.stringify({ a: tensor("F6_E2M3", [4], 0, 3) }), 3)).numParameters).toBe(4);
    await expect(readJson(JSON.stringify({ a: tensor("F4", [3], 0, 1) }), 1)).rejects.toThrow(/expected 1.5 bytes/);
  });

  test.each<[string, unknown, number, RegExp]>([
    [
      "an unknown dtype",
      { a: tensor("FP16", [1], 0, 2) },
      2,
      /expected a known dtype of tensor "a", got "FP16".*"F16"/,
    ],
    ["a shape that does not fill its range", { a: tensor("F32", [2], 0, 4) }, 4, /expected 8 bytes for tensor "a"/],
    [
      "a hole",
      { a: tensor("U8", [1], 0, 1), b: tensor("U8", [1], 2, 3) },
      3,
      /"b" to start where tensor "a" ends, got a hole of 1/,
    ],
    ["a hole before the first", { a: tensor("U8", [1], 1, 2) }, 2, /start where the header ends, got a hole of 1/],
    ["an overlap", { a: tensor("U8", [2], 0, 2), b: tensor("U8", [2], 1, 3) }, 3, /got an overlap of 1 bytes/],
    ["bytes after the last tensor", { a: tensor("U8", [1], 0, 1) }, 2, /where its last tensor ends, got/],
    ["a file cut short", { a: tensor("U8", [4], 0, 4) }, 3, /the file is cut short/],
    ["a negative size", { a: tensor("U8", [-1], 0, 1) }, 1, /the shape of tensor "a" as a list of integers/],
    ["a fraction", { a: tensor("U8", [1], 0, 0.5) }, 1, /data_offsets of tensor "a" as a list of integers/],
    ["a reversed range", { a: tensor("U8", [1], 1, 0) }, 1, /as \[begin, end\]/],
    ["a shape past 2^53", { a: tensor("U8", [2 ** 40, 2 ** 40], 0, 1) }, 1, /below 2\^53/],
    ["an extra key", { a: { ...tensor("U8", [1], 0, 1), extra: 1 } }, 1, /got "extra"/],
    ["a missing key", { a: { dtype: "U8", shape: [1] } }, 1, /data_offsets .* got nothing/],
    ["metadata that are not strings", { __metadata__: { a: 1 } }, 0, /__metadata__.a to be a string, got 1/],
    ["a tensor that is a number", { a: 1 }, 0, /expected tensor "a" to be an object/],
  ])("refuses %s", async (_, root, dataBytes, message) => {
    await expect(readJson(JSON.stringify(root), dataBytes)).rejects.toThrow(message);
    await expect(readJson(JSON.stringify(root), dataBytes)).rejects.toBeInstanceOf(FormatError);
  });

  test("refuses a tensor named twice, which JSON.parse would let pass", async () => {
    const one = JSON.stringify(tensor("U8", [1], 0, 1));
    await expect(readJson(`{"a":${one},"a":${one}}`, 1)).rejects.toThrow(/expected the key "a" once/);
  });

  test.each<[string, Uint8Array, RegExp]>([
    ["an empty file", new Uint8Array(0), /expected the length of the header/],
    [
      "a length past the file",
      new ByteWriter().u64(100).zeros(10).done(),
      /\(100 bytes\), got 10 bytes before the file's end/,
    ],
    ["a length past 100 MB", new ByteWriter().u64(100_000_001).done(), /at most 100000000 bytes, got 100000001/],
    ["a length past 2^53", new ByteWriter().u64(2n ** 63n).done(), /below 2\^53, got 9223372036854775808 \(byte 0\)/],
    ["leading space", safetensorsFile(" {}", 0), /expected the header to start with "\{"/],
    ["text that is not UTF-8", new ByteWriter().u64(2).u8(0xff).u8(0xfe).done(), /valid UTF-8/],
    ["an array", safetensorsFile("[]", 0), /start with "\{"/],
    ["an empty header", new ByteWriter().u64(0).done(), /start with "\{"/],
  ])("refuses %s", async (_, bytes, message) => {
    await expect(read(bytes)).rejects.toThrow(message);
  });
});

describe("a sharded checkpoint", () => {
  const shards = {
    "model-00001-of-00002.safetensors": writeSafetensors([{ name: "a", dtype: "F32", shape: [2], bytes: 8 }]),
    "model-00002-of-00002.safetensors": writeSafetensors([
      { name: "b", dtype: "BF16", shape: [3], bytes: 6 },
      { name: "c", dtype: "I8", shape: [], bytes: 1 },
    ]),
  };
  const [first, second] = Object.keys(shards) as [string, string];
  let folder = "";
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "longhand-shards-"));
  });
  afterEach(() => rm(folder, { recursive: true }));

  const index = (map: Record<string, unknown>) => JSON.stringify({ metadata: { total_size: 15 }, weight_map: map });
  async function folderWith(map: Record<string, unknown>, files: Record<string, Uint8Array> = shards): Promise<string> {
    await writeFile(join(folder, "model.safetensors.index.json"), index(map));
    for (const [name, bytes] of Object.entries(files)) await writeFile(join(folder, name), bytes);
    return folder;
  }

  test("joins the tensors of all shards and counts their elements", async () => {
    const checkpoint = await readSafetensorsFolder(await folderWith({ a: first, b: second, c: second }));
    expect([...checkpoint!.tensors].map(([name, one]) => [name, one.file])).toEqual([
      ["a", first],
      ["b", second],
      ["c", second],
    ]);
    expect(checkpoint!.numParameters).toBe(6);
    expect(checkpoint!.findings).toEqual([]);
  });

  test("names the shard that is missing", async () => {
    await folderWith({ a: first, b: second }, { [first]: shards[first as keyof typeof shards] });
    await expect(readSafetensorsFolder(folder)).rejects.toThrow(
      `model.safetensors.index.json: expected the shard "${second}" beside the index, got none`,
    );
  });

  test("names a tensor that is in no shard, or in another than the index says", async () => {
    await folderWith({ a: first, x: second });
    await expect(readSafetensorsFolder(folder)).rejects.toThrow(`expected tensor "x" in ${second}, got it in no shard`);
    await folderWith({ a: second, b: second });
    await expect(readSafetensorsFolder(folder)).rejects.toThrow(/expected tensor "a" in .*, got it in no shard/);
    await folderWith({ a: first, b: first, c: second });
    await expect(readSafetensorsFolder(folder)).rejects.toThrow(`expected tensor "b" in ${first}, got it in ${second}`);
  });

  test("a tensor that the index leaves out is a finding", async () => {
    const checkpoint = await readSafetensorsFolder(await folderWith({ a: first, b: second }));
    expect(checkpoint!.tensors.has("c")).toBe(false);
    expect(checkpoint!.findings).toMatchObject([{ code: "tensor-outside-index", where: second, got: ["c"] }]);
  });

  test.each(["../outside.safetensors", "/etc/passwd", "a/b", "a\\b", "C:x", "..", ".", "", "a\u0000b", 7, null])(
    "refuses %j as a shard's name",
    async (name) => {
      const source = memorySource("model.safetensors.index.json", utf8(index({ a: name })));
      await expect(readSafetensorsIndex(source)).rejects.toThrow(/to be a plain file name in the same folder/);
    },
  );

  test.each([
    "[]",
    "{}",
    '{"weight_map": []}',
    '{"weight_map": {}}',
    '{"weight_map": {"a": "x", "a": "y"}}',
    "nonsense",
  ])("refuses the index %s", async (text) => {
    await expect(readSafetensorsIndex(memorySource("i.json", utf8(text)))).rejects.toThrow(FormatError);
  });

  test("opens no more shards at once than told, and closes each, in failure too", async () => {
    const names = Array.from({ length: 40 }, (_, i) => `s${i}.safetensors`);
    const map = Object.fromEntries(names.map((name, i) => [`t${i}`, name]));
    let open = 0;
    let most = 0;
    const opener =
      (broken: number) =>
      async (name: string): Promise<ByteSource> => {
        const i = names.indexOf(name);
        open++;
        most = Math.max(most, open);
        await new Promise((resolve) => setTimeout(resolve, 1));
        const bytes =
          i === broken ? new Uint8Array(3) : writeSafetensors([{ name: `t${i}`, dtype: "U8", shape: [1], bytes: 1 }]);
        const source = memorySource(name, bytes);
        return { ...source, close: async () => void open-- };
      };
    const parsed = await readSafetensorsIndex(memorySource("i.json", utf8(index(map))));
    expect((await readSafetensorsShards(parsed, opener(-1), 4)).numParameters).toBe(40);
    expect(most).toBe(4);
    expect(open).toBe(0);
    await expect(readSafetensorsShards(parsed, opener(5), 4)).rejects.toThrow(/^s5.safetensors: expected the length/);
    expect(open).toBe(0);
  });

  test("a folder with one model.safetensors is that file; one with neither is null", async () => {
    expect(await readSafetensorsFolder(folder)).toBeNull();
    await writeFile(join(folder, "model.safetensors"), shards[second as keyof typeof shards]);
    const checkpoint = await readSafetensorsFolder(folder);
    expect(checkpoint).toEqual(await readSafetensorsFile(join(folder, "model.safetensors")));
    expect(checkpoint!.numParameters).toBe(4);
  });
});
