import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type ByteSource,
  blobSource,
  FormatError,
  HeaderReader,
  memorySource,
  openFile,
  parseJson,
} from "../../src/formats/bytes/index.ts";
import { nearest } from "../../src/formats/nearest.ts";
import { ByteWriter, utf8 } from "../support/byte-writer.ts";

const bytes = Uint8Array.from({ length: 5000 }, (_, i) => (i * 7) & 255);
let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "longhand-bytes-"));
  await writeFile(join(folder, "data.bin"), bytes);
});
afterAll(() => rm(folder, { recursive: true }));

const sources: readonly [string, () => Promise<ByteSource>][] = [
  ["memory", async () => memorySource("data.bin", bytes)],
  ["Blob", async () => blobSource(new Blob([bytes]), "data.bin")],
  ["File", async () => blobSource(new File([bytes], "data.bin"))],
  ["file on disk", async () => openFile(join(folder, "data.bin"))],
];

describe.each(sources)("a source in %s", (_, open) => {
  test("gives exactly the range asked for, and its own name and size", async () => {
    const source = await open();
    expect(source.name).toBe("data.bin");
    expect(source.size).toBe(5000);
    expect([...(await source.read(4990, 10))]).toEqual([...bytes.subarray(4990)]);
    expect((await source.read(5000, 0)).length).toBe(0);
    await source.close();
  });

  test.each([
    [-1, 1],
    [0, 5001],
    [4999, 2],
    [0.5, 1],
    [0, Number.NaN],
    [Number.MAX_SAFE_INTEGER, 1],
  ])("refuses offset %d, length %d as the caller's mistake", async (offset, length) => {
    const source = await open();
    await expect(source.read(offset, length)).rejects.toThrow(RangeError);
    await source.close();
  });
});

test("a missing file and a folder are format errors that name what was found", async () => {
  await expect(openFile(join(folder, "none"))).rejects.toThrow(/expected a readable file, got ENOENT/);
  await expect(openFile(folder)).rejects.toThrow(/expected a regular file, got a folder/);
});

test("a file that shrinks after it was opened is a format error, not short data", async () => {
  const path = join(folder, "shrinks.bin");
  await writeFile(path, new Uint8Array(100));
  const source = await openFile(path);
  await writeFile(path, new Uint8Array(10));
  await expect(source.read(0, 100)).rejects.toThrow(/expected 100 bytes, got 10: the file was cut short \(byte 0\)/);
  await source.close();
});

describe("HeaderReader", () => {
  const written = new ByteWriter()
    .u8(200)
    .u8(200)
    .u16(65535)
    .u16(65535)
    .u32(4e9)
    .u32(4e9)
    .f32(1.5)
    .f64(Math.PI)
    .u64(2n ** 53n - 1n)
    .u64(2n ** 64n - 1n)
    .u8(1)
    .u64(3)
    .bytes(utf8("é!"))
    .done();

  // A window smaller than one number: every value crosses an edge.
  test.each([1, 3, 7, 1 << 20])("reads the same numbers through a window of %d bytes", async (windowBytes) => {
    const reader = new HeaderReader(memorySource("x", written), { windowBytes });
    expect(await reader.u8("a")).toBe(200);
    expect(await reader.i8("a")).toBe(-56);
    expect(await reader.u16("a")).toBe(65535);
    expect(await reader.i16("a")).toBe(-1);
    expect(await reader.u32("a")).toBe(4e9);
    expect(await reader.i32("a")).toBe(4e9 - 2 ** 32);
    expect(await reader.f32("a")).toBe(1.5);
    expect(await reader.f64("a")).toBe(Math.PI);
    expect(await reader.u64("a")).toBe(Number.MAX_SAFE_INTEGER);
    expect(await reader.bigI64("a")).toBe(-1n);
    expect(await reader.bool("a")).toBe(true);
    expect(await reader.string("a", 8, 100)).toBe("é!");
    expect(reader.remaining).toBe(0);
  });

  test("a 64-bit count of 2^53 or more is an error naming its byte and value", async () => {
    const reader = new HeaderReader(
      memorySource(
        "x",
        new ByteWriter()
          .u8(0)
          .u64(2n ** 53n)
          .done(),
      ),
    );
    await reader.u8("a");
    await expect(reader.u64("the count")).rejects.toThrow(
      "x: expected the count below 2^53, got 9007199254740992 (byte 1)",
    );
  });

  test("lengths past the file are refused before anything is allocated", async () => {
    const reader = new HeaderReader(memorySource("x", new ByteWriter().u64(2 ** 50).done()));
    await expect(reader.string("the key", 8, Number.MAX_SAFE_INTEGER)).rejects.toThrow(
      "x: expected the key (1125899906842624 bytes), got 0 bytes before the file's end (byte 8)",
    );
  });

  test("nothing is read past the limit", async () => {
    const reader = new HeaderReader(memorySource("x", new Uint8Array(100)), { limit: 10 });
    await reader.bytes(8, "a");
    await expect(reader.u32("the count")).rejects.toThrow(
      /got 2 bytes before the header's limit of 10 bytes \(byte 8\)/,
    );
  });

  test("a bool of 2 and text that is not UTF-8 are errors", async () => {
    const reader = new HeaderReader(memorySource("x", Uint8Array.of(2, 0xff, 0xfe)));
    await expect(reader.bool("the flag")).rejects.toThrow("x: expected the flag to be 0 or 1, got 2 (byte 0)");
    await expect(reader.text(2, "the name")).rejects.toThrow(/expected the name to be valid UTF-8, got .* \(byte 1\)/);
  });

  test.each([9, 64, 1 << 20])("skipping strings lands where reading them does (window %d)", async (windowBytes) => {
    const out = new ByteWriter();
    const lengths = [0, 1, 200, 3, 0, 17, 64, 8];
    for (const length of lengths) out.u64(length).zeros(length);
    out.u32(12345);
    const reader = new HeaderReader(memorySource("x", out.done()), { windowBytes });
    await reader.skipStrings(lengths.length, 8, "words");
    expect(await reader.u32("the next")).toBe(12345);
  });

  test.each([
    ["longer than the file", 1000n],
    ["of 2^63", 2n ** 63n],
  ])("skipping a string %s is an error at that string", async (_, length) => {
    const out = new ByteWriter().u64(1).u8(0).u64(length).zeros(4).done();
    await expect(new HeaderReader(memorySource("x", out)).skipStrings(2, 8, "words")).rejects.toThrow(/\(byte 9\)/);
  });

  test("a long vocabulary is skipped in a few reads", async () => {
    const out = new ByteWriter();
    for (let i = 0; i < 2e5; i++) out.u64(3).bytes(utf8("abc"));
    const data = out.done();
    let reads = 0;
    const source: ByteSource = {
      ...memorySource("x", data),
      read: async (offset, length) => {
        reads++;
        return data.subarray(offset, offset + length);
      },
    };
    const reader = new HeaderReader(source);
    await reader.skipStrings(2e5, 8, "words");
    expect(reader.position).toBe(22e5);
    expect(reads).toBeLessThan(5);
  });
});

describe("parseJson", () => {
  test.each([
    '{"a": [1, -2.5e3, 0.1, true, false, null], "b": {"c": "d\\n\\u00e9\\"\\\\"}, "": []}',
    " [ ] ",
    '"\\ud83d\\ude00"',
    "-0",
    '{"\\u0061b": {}}',
  ])("agrees with JSON.parse on %s", (text) => {
    expect(JSON.stringify(parseJson(text, "x"))).toBe(JSON.stringify(JSON.parse(text)));
  });

  test.each([
    "",
    "{",
    "[1,]",
    '{"a":1,}',
    "{a:1}",
    "01",
    "1.",
    ".5",
    "+1",
    "NaN",
    "'a'",
    '"a',
    '"\\x"',
    '"\u0001"',
    "1 2",
    "tru",
    '{"a" 1}',
    "[1 2]",
    "﻿1",
    "1e",
    '"\\"',
    "nul",
  ])("refuses %j, as JSON.parse does", (text) => {
    expect(() => JSON.parse(text)).toThrow();
    expect(() => parseJson(text, "x")).toThrow(FormatError);
  });

  test("a key that occurs twice is an error at its second place", () => {
    expect(() => parseJson('{"a": 1, "\\u0061": 2}', "x", 8)).toThrow(
      'x: expected the key "a" once in its object, got "\\"\\\\u0061\\": 2}" (byte 17)',
    );
  });

  test("__proto__, constructor and toString are keys like any other", () => {
    const value = parseJson('{"__proto__": {"polluted": 1}, "constructor": 2, "toString": 3}', "x");
    expect(Object.entries(value as object).map(([key]) => key)).toEqual(["__proto__", "constructor", "toString"]);
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });

  test("nesting is bounded", () => {
    expect(() => parseJson("[".repeat(1e5), "x")).toThrow(/expected nesting of at most 64/);
  });
});

describe("nearest", () => {
  const known = ["llama", "llama4", "gemma3", "gemma3n", "qwen2", "qwen2moe", "smollm3", "command-r", "t5", "gpt2"];
  test.each([
    ["lama", "llama"],
    ["Qwen2_MoE", "qwen2moe"],
    ["smolm3", "smollm3"],
    ["commandr", "command-r"],
    ["gmema3", "gemma3"],
  ])("%s is nearest to %s", (name, expected) => {
    expect(nearest(name, known)[0]).toBe(expected);
  });

  test("a name like none of them has no neighbour, nor has one of a megabyte", () => {
    expect(nearest("wavtokenizer", known)).toEqual([]);
    expect(nearest("l".repeat(1e6), known)).toEqual([]);
  });
});

test("a named pipe is refused at once, not waited for", async () => {
  const { spawnSync } = await import("node:child_process");
  const path = join(folder, "pipe");
  if (spawnSync("mkfifo", [path]).status !== 0) return console.info("skipped: this system has no mkfifo");
  await expect(openFile(path)).rejects.toThrow(/expected a regular file, got a special file/);
});
