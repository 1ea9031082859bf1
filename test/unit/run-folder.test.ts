import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { appendFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  canonicalJson,
  inShard,
  type Json,
  jsonDifferences,
  memoryRunFiles,
  mergeRuns,
  nodeRunFiles,
  openRun,
  parseShard,
  type RunFiles,
  RunLockedError,
  readRun,
  runDifferenceText,
  Sha256,
  sha256,
  sha256File,
} from "../../src/evaluation/index.ts";
import { random } from "../../src/tensor/index.ts";

let root: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "longhand-run-"));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

const squares = { kind: "squares", identity: { upTo: 9, text: { sha256: "ab" } } } as const;
const text = (files: { files: Map<string, Uint8Array> }, name: string) =>
  new TextDecoder().decode(files.files.get(name));

describe("sha256", () => {
  test("equals Node's for every length around the block's borders, in one piece and in several", () => {
    const stream = random(3);
    for (const length of [0, 1, 54, 55, 56, 57, 63, 64, 65, 119, 120, 127, 128, 1000]) {
      const bytes = Uint8Array.from({ length }, () => stream.integer(256));
      const expected = createHash("sha256").update(bytes).digest("hex");
      expect(sha256(bytes)).toBe(expected);
      const cut = stream.integer(length + 1);
      expect(new Sha256().update(bytes.subarray(0, cut)).update(bytes.subarray(cut)).hex()).toBe(expected);
    }
  });

  test("of a file is that of its bytes", async () => {
    const path = join(root, "bytes");
    writeFileSync(path, "長い文 long");
    expect(await sha256File(path)).toBe(sha256("長い文 long"));
  });
});

describe("canonical JSON", () => {
  test("does not depend on the order of keys", () => {
    expect(canonicalJson({ b: { d: 1, c: [2, { z: 0, y: 1 }] }, a: null })).toBe(
      '{"a":null,"b":{"c":[2,{"y":1,"z":0}],"d":1}}',
    );
  });

  test("refuses what JSON would change silently, naming the place", () => {
    expect(() => canonicalJson({ a: [0, Number.NaN] })).toThrow(/value\.a\[1\]: expected a finite number, got NaN/);
    expect(() => canonicalJson({ a: undefined } as never)).toThrow(/value\.a: expected JSON data/);
    expect(() => canonicalJson({ a: new Float32Array(2) } as never)).toThrow(/plain data, got Float32Array/);
  });

  test("differences name the place", () => {
    const differences = jsonDifferences({ a: { b: 1, c: 2 }, d: [1], f: "x" }, { a: { b: 1, c: 3 }, e: 0, d: [2] });
    expect(differences).toEqual([
      { code: "differs", values: { place: "a.c", there: "2", here: "3" }, message: "a.c: 2 there, 3 here" },
      { code: "differs", values: { place: "d[0]", there: "1", here: "2" }, message: "d[0]: 1 there, 2 here" },
      { code: "only-here", values: { place: "e", here: "0" }, message: "e: nothing there, 0 here" },
      { code: "only-there", values: { place: "f", there: '"x"' }, message: 'f: "x" there, nothing here' },
    ]);
    expect(differences.slice(2).map((one) => runDifferenceText(one, "zh-TW"))).toEqual([
      "e：前者沒有，後者是 0",
      'f：前者是 "x"，後者沒有',
    ]);
    // Of lists that are not alike, what is in one alone; in another order, item by item.
    const places = (x: Json, y: Json) =>
      jsonDifferences({ list: x }, { list: y }).map(({ code, values }) => [code, values.place]);
    const [a, b, c] = ["a", "b", "c"].map((name) => ({ name, size: 1 }));
    expect(places([a!, b!], [b!, c!, { ...a!, size: 2 }])).toEqual([
      ["differs", 'list["a"].size'],
      ["only-here", 'list["c"]'],
    ]);
    expect(places([a!, b!], [b!, a!])).toEqual([
      ["differs", "list[0].name"],
      ["differs", "list[1].name"],
    ]);
    expect(places([1, 2], [1, 2, 3])).toEqual([["differs", "list.length"]]);
    expect(places([], [a!])).toEqual([["only-here", 'list["a"]']]);
    // Words of a value are no words of the sentence.
    const [named] = jsonDifferences({ model: "over there" }, { model: "here" });
    expect(runDifferenceText(named!, "en")).toBe('model: "over there" in the first, "here" in the second');
    expect(runDifferenceText(named!, "zh-TW")).toBe('模型（model）：前者是 "over there"，後者是 "here"');
  });
});

describe.each([
  ["memory", async () => memoryRunFiles()],
  ["a folder", async () => nodeRunFiles(join(root, `run-${Math.random().toString(36).slice(2)}`, "inner"))],
] as [string, () => Promise<RunFiles>][])("a run in %s", (_, create) => {
  test("keeps its rows, in order, and goes on with them", async () => {
    const files = await create();
    const first = await openRun(files, squares);
    expect(await first.append({ key: "2", square: 4 })).toBe(true);
    expect(await first.append({ key: "1", square: 1, measured: { seconds: 1 } })).toBe(true);
    await first.close();
    const again = await openRun(files, squares);
    expect(again.rows.map(({ key }) => key)).toEqual(["2", "1"]);
    expect([again.has("1"), again.has("3"), again.wants("3")]).toEqual([true, false, true]);
    expect(again.get("2")).toEqual({ key: "2", square: 4 });
    // Only what was measured may differ.
    expect(await again.append({ key: "1", square: 1, measured: { seconds: 9 } })).toBe(false);
    await expect(again.append({ key: "1", square: 2 })).rejects.toThrow(/"1" as it is there, got another; square: 1/);
    await expect(again.append({ key: "3", square: Number.NaN })).rejects.toThrow(/row\.square: expected a finite/);
    await again.append({ key: "3", square: 9 });
    await again.close();
    const { manifest, rows } = await readRun(files);
    expect(rows.length).toBe(3);
    expect(manifest.sessions.length).toBe(2);
    await expect(again.append({ key: "4", square: 16 })).rejects.toThrow(/closed/);
  });

  test("refuses another run, naming what differs", async () => {
    const files = await create();
    await (await openRun(files, squares)).close();
    const other = { ...squares, identity: { upTo: 10, text: { sha256: "cd" } } };
    await expect(openRun(files, other)).rejects.toThrow(
      /text\.sha256: "ab" there, "cd" here\n {2}upTo: 9 there, 10 here/,
    );
    await expect(openRun(files, { ...squares, kind: "cubes" })).rejects.toThrow(/kind: "squares" there, "cubes" here/);
    await expect(openRun(files, { ...squares, shard: { index: 1, count: 2 } })).rejects.toThrow(/got part 1\/2/);
    // And takes the right one afterwards: nothing was left locked.
    await (await openRun(files, squares)).close();
  });

  test("has one writer at a time, and any number of readers", async () => {
    const files = await create();
    const run = await openRun(files, squares);
    await run.append({ key: "1", square: 1 });
    await expect(openRun(files, squares)).rejects.toThrow(RunLockedError);
    expect((await readRun(files)).rows.length).toBe(1);
    await run.close();
    await (await openRun(files, squares)).close();
  });

  test("takes back rows past a point", async () => {
    const files = await create();
    const run = await openRun(files, squares);
    for (let step = 0; step < 5; step++) await run.append({ key: `${step}`, step });
    await run.cutFrom(({ step }) => (step as number) >= 3);
    expect(run.rows.map(({ key }) => key)).toEqual(["0", "1", "2"]);
    await run.append({ key: "3", step: 3, other: true });
    await run.close();
    expect((await readRun(files)).rows.map((row) => row.other ?? false)).toEqual([false, false, false, true]);
  });

  test("cut anywhere in its last row loses that row and nothing else", async () => {
    const files = await create();
    const run = await openRun(files, squares);
    const rows = [1, 2, 3].map((n) => ({ key: `${n}`, note: "平方\n", square: n * n }));
    for (const row of rows) await run.append(row);
    await run.close();
    const whole = (await files.read("rows.jsonl"))!;
    const start = whole.lastIndexOf(0x0a, whole.length - 2) + 1;
    for (let length = start; length < whole.length; length++) {
      const appender = await files.append("rows.jsonl", 0);
      await appender.write(whole.subarray(0, length));
      await appender.close();
      expect((await readRun(files)).rows.length).toBe(2);
      const again = await openRun(files, squares);
      expect(again.rows).toEqual(rows.slice(0, 2));
      await again.append(rows[2]!);
      await again.close();
      expect(await files.read("rows.jsonl")).toEqual(whole);
    }
  });
});

describe("a run folder", () => {
  test("says which line is no row, and does not touch it", async () => {
    const folder = join(root, "broken");
    const run = await openRun(folder, squares);
    await run.append({ key: "1", square: 1 });
    await run.close();
    const rows = join(folder, "rows.jsonl");
    appendFileSync(rows, '{"square": 4}\n');
    await expect(openRun(folder, squares)).rejects.toThrow(/rows\.jsonl, line 2: expected an object with a key/);
    writeFileSync(rows, '{"key":"1"}\n{"key":"1"}\n');
    await expect(openRun(folder, squares)).rejects.toThrow(/line 2: expected the key "1" once/);
    expect(readFileSync(rows, "utf8")).toBe('{"key":"1"}\n{"key":"1"}\n');
    expect(existsSync(join(folder, "lock"))).toBe(false);
  });

  test("whose manifest was changed by hand is refused", async () => {
    const files = memoryRunFiles();
    await (await openRun(files, squares)).close();
    await files.replace(
      "manifest.json",
      new TextEncoder().encode(text(files, "manifest.json").replace('"upTo": 9', '"upTo": 8')),
    );
    await expect(readRun(files)).rejects.toThrow(/changed by hand/);
    await files.replace("manifest.json", new TextEncoder().encode("{}"));
    await expect(readRun(files)).rejects.toThrow(/expected the manifest of a run/);
  });

  test("is never made of a folder with other files, nor of a file", async () => {
    const folder = mkdtempSync(join(root, "mine-"));
    writeFileSync(join(folder, "thesis.tex"), "");
    await expect(openRun(folder, squares)).rejects.toThrow(
      /new or empty folder, or a run, got a folder with thesis\.tex/,
    );
    expect(readdirSync(folder)).toEqual(["thesis.tex"]);
    await expect(openRun(join(folder, "thesis.tex"), squares)).rejects.toThrow(
      /expected a folder for a run, got a file/,
    );
  });

  test("left locked by a process that is gone is taken over; by one on another host, only when it is old", async () => {
    const folder = join(root, "left");
    await (await openRun(folder, squares)).close();
    const lock = join(folder, "lock");
    const child = spawn(process.execPath, ["-e", ""]);
    await once(child, "exit");
    const { hostname } = await import("node:os");
    const holder = { host: hostname(), started: "1", token: "t", since: "then" };
    for (const pid of [child.pid, process.pid]) {
      writeFileSync(lock, JSON.stringify({ ...holder, pid }));
      await (await openRun(folder, squares)).close();
    }
    // Alive, but begun at another time: the number was given to another process.
    writeFileSync(lock, JSON.stringify({ ...holder, pid: process.ppid }));
    if (existsSync("/proc/self/stat")) await (await openRun(folder, squares)).close();
    writeFileSync(lock, JSON.stringify({ ...holder, pid: 1, host: "elsewhere" }));
    await expect(openRun(folder, squares)).rejects.toThrow(/process 1 on elsewhere, since then; wait for it, or/);
    const { utimesSync } = await import("node:fs");
    utimesSync(lock, new Date(0), new Date(0));
    await (await openRun(folder, squares)).close();
    expect(readdirSync(folder).sort()).toEqual(["manifest.json", "rows.jsonl"]);
  });

  test("is gone on with after kill -9, again and again, and ends as if nothing had happened", async () => {
    const count = 200;
    const script = join(root, "writer.mjs");
    const source = resolve(import.meta.dirname, "../../src/evaluation/run-folder/index.ts");
    writeFileSync(
      script,
      `const { openRun } = await import(${JSON.stringify(source)});
      const run = await openRun(process.argv[2], { kind: "squares", identity: { upTo: ${count} } });
      for (let n = 0; n < ${count}; n++) {
        const key = String(n);
        if (!run.wants(key)) continue;
        await run.append({ key, square: n * n, filler: "x".repeat(2000) });
        await new Promise((done) => setTimeout(done, 1));
      }
      await run.close();`,
    );
    const hook = resolve(import.meta.dirname, "../../scripts/ts-hook.mjs");
    const start = (folder: string) =>
      spawn(process.execPath, ["--import", hook, script, folder], { stdio: ["ignore", "ignore", "inherit"] });
    const folder = join(root, "killed");
    const rows = join(folder, "rows.jsonl");
    const stream = random(11);
    let kills = 0;
    for (;;) {
      const child = start(folder);
      const exit = once(child, "exit");
      const before = existsSync(rows) ? readFileSync(rows).length : 0;
      const wait = async () => {
        // Some rows further on than the last time, so that every kill falls into the writing.
        const goal = before + 2000 * (30 + stream.integer(50));
        while (child.exitCode === null && !(existsSync(rows) && readFileSync(rows).length > goal)) {
          await new Promise((done) => setTimeout(done, stream.integer(4)));
        }
      };
      await Promise.race([exit, wait()]);
      if (child.exitCode !== null) break;
      child.kill("SIGKILL");
      await exit;
      kills++;
    }
    expect(kills).toBeGreaterThan(2);
    const whole = join(root, "whole");
    await once(start(whole), "exit");
    expect(readFileSync(rows, "utf8")).toBe(readFileSync(join(whole, "rows.jsonl"), "utf8"));
    expect(readdirSync(folder).sort()).toEqual(["manifest.json", "rows.jsonl"]);
  });
});

describe("shards", () => {
  const keys = Array.from({ length: 1000 }, (_, i) => `loss/yarn:4/${i}`);

  test("part the rows: each row is of one part, and no part is far from its share", () => {
    const sizes = [1, 2, 3, 4].map((index) => keys.filter((key) => inShard(key, { index, count: 4 })).length);
    expect(sizes.reduce((a, b) => a + b)).toBe(1000);
    // Binomial(1000, 1/4) has a standard deviation of 13.7.
    for (const size of sizes) expect(Math.abs(size - 250)).toBeLessThan(55);
  });

  test("depend on the key's SHA-256 alone", () => {
    const key = "loss/none/3";
    const part = Number(BigInt(`0x${createHash("sha256").update(key).digest("hex")}`) % 7n) + 1;
    for (let index = 1; index <= 7; index++) expect(inShard(key, { index, count: 7 })).toBe(index === part);
  });

  test.each(["0/2", "3/2", "1", "1/0", "a/b", "1.5/2", "-1/2"])("%s is no shard", (text) => {
    expect(() => parseShard(text)).toThrow(/expected INDEX\/COUNT/);
  });

  test("are written apart and merged: as one run would be", async () => {
    const row = (n: number) => ({ key: `${n}`, n, square: n * n });
    const parts = await Promise.all(
      [1, 2, 3].map(async (index) => {
        const files = memoryRunFiles(`part ${index}`);
        const run = await openRun(files, { ...squares, shard: { index, count: 3 } });
        for (let n = 0; n < 30; n++) if (run.wants(`${n}`)) await run.append(row(n));
        const foreign = Array.from({ length: 30 }, (_, n) => n).find((n) => !run.has(`${n}`))!;
        await expect(run.append(row(foreign))).rejects.toThrow(/expected rows of part/);
        await run.close();
        return files;
      }),
    );
    const target = memoryRunFiles("all");
    const { rows, missing } = await mergeRuns(parts, target, { order: (a, b) => (a.n as number) - (b.n as number) });
    expect(rows).toEqual(Array.from({ length: 30 }, (_, n) => row(n)));
    expect(missing).toEqual([]);
    expect((await mergeRuns([parts[0]!, parts[2]!], memoryRunFiles())).missing).toEqual(["2/3"]);

    const other = memoryRunFiles("other");
    await (await openRun(other, { kind: "squares", identity: { upTo: 8 } })).close();
    await expect(mergeRuns([parts[0]!, other], memoryRunFiles())).rejects.toThrow(
      /other: expected the run.*\n {2}text/s,
    );
    const twice = memoryRunFiles("twice");
    const run = await openRun(twice, squares);
    for (let n = 0; n < 30; n++) await run.append({ ...row(n), ...(n === 7 ? { square: 50 } : {}) });
    await run.close();
    await expect(mergeRuns([...parts, twice], memoryRunFiles())).rejects.toThrow(
      /"7" to be equal in .* square: 49 there, 50/,
    );
  });
});
