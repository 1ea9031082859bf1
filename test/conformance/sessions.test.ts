// What every session promises: states that stay, caches that grow in place, checks before any work, one run at a time.

import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { type Backend, DisposedError, onnxRuntimeBackend, referenceBackend } from "../../src/engine/index.ts";
import { importRuntime } from "../../src/engine/onnxruntime/runtime.ts";
import { type Graph, graphBuilder, MissingWeightError } from "../../src/graph/index.ts";
import { fromNumbers, random, scalar, type Tensor, tensor, toNumbers } from "../../src/tensor/index.ts";

const backends: { readonly name: string; readonly backend: Backend }[] = [
  { name: "reference", backend: referenceBackend },
  { name: "onnxruntime-node", backend: onnxRuntimeBackend({ provider: "node" }) },
  { name: "onnxruntime-wasm", backend: onnxRuntimeBackend({ provider: "wasm" }) },
];

const [H, K, D, P] = [4, 2, 16, 8];
const stream = random(77);
const normals = (...shape: number[]): Tensor<"f32"> =>
  tensor("f32", shape, stream.normals(shape.reduce((a, b) => a * b, 1))) as Tensor<"f32">;

/** Two layers of attention over a cache of `capacity` rows. */
function cachedAttention(window: number | null, kept: boolean): Graph {
  const g = graphBuilder("cached");
  const query = g.input("qkv", "f32", [1, "tokens", (H + 2 * K) * D]);
  const pastLength = g.input("past", "i64", []);
  const cos = g.input("cos", "f32", ["positions", P]);
  const sin = g.input("sin", "f32", ["positions", P]);
  let x = query;
  for (let layer = 0; layer < 2; layer++) {
    g.scope(`layers[${layer}]`, () => {
      const pastKey = g.state(`key${layer}`, "f32", [1, K, "capacity", D]);
      const pastValue = g.state(`value${layer}`, "f32", [1, K, "capacity", D]);
      const out = g.attention(
        { query: x, pastKey, pastValue, pastLength, cos, sin },
        { numHeads: H, numKeyValueHeads: K, scale: 0.25, window },
      );
      g.assignRows(pastKey, out.newKey, 2, pastLength);
      g.assignRows(pastValue, out.newValue, 2, pastLength);
      // A second reader of the new rows keeps a program from writing them in place.
      if (kept) g.output(`rows${layer}`, out.newKey);
      x = g.concat([out.output, g.slice(query, 2, H * D, (H + 2 * K) * D)], 2);
    });
  }
  g.output("out", g.slice(x, 2, 0, H * D));
  return g.build();
}

const LENGTH = 14;
const tokens = normals(1, LENGTH, (H + 2 * K) * D);
const cos = tensor(
  "f32",
  [40, P],
  Float32Array.from({ length: 40 * P }, (_, i) => Math.cos(Math.floor(i / P) / 4 ** (i % P))),
);
const sin = tensor(
  "f32",
  [40, P],
  Float32Array.from({ length: 40 * P }, (_, i) => Math.sin(Math.floor(i / P) / 4 ** (i % P))),
);
const part = (from: number, to: number): Tensor => {
  const width = (H + 2 * K) * D;
  return tensor("f32", [1, to - from, width], tokens.data.slice(from * width, to * width)) as Tensor;
};
const feed = (from: number, to: number): Record<string, Tensor> => ({
  qkv: part(from, to),
  past: scalar("i64", from),
  cos,
  sin,
});

const folder = mkdtempSync(join(tmpdir(), "longhand-sessions-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function linear(): Graph {
  const g = graphBuilder("linear");
  const x = g.input("x", "f32", ["n", 20]);
  const w = g.parameter("w", "f32", [30, 20]);
  const b = g.parameter("b", "bf16", [30]);
  g.output("y", g.add(g.matmul(x, w, { transposeB: true }), g.cast(b, "f32")));
  g.output("z", g.matmul(x, w, { transposeB: true }));
  return g.build();
}
const w = normals(30, 20);
const b = fromNumbers("bf16", [30], stream.normals(30));

describe.each(backends)("$name", ({ backend }) => {
  describe.each([
    ["rows written in place", null, false],
    ["rows read again", null, true],
    ["a window", 5, false],
  ] as const)("a cache: %s", (_, window, kept) => {
    test("chunks and single tokens give what one pass gives", async () => {
      const graph = cachedAttention(window, kept);
      await using whole = await backend.load(graph, {}, { sizes: { capacity: LENGTH } });
      const expected = toNumbers((await whole.run(feed(0, LENGTH))).out!);
      await using session = await backend.load(graph, {}, { sizes: { capacity: 6 } });
      const got: number[] = [];
      for (const [from, to] of [
        [0, 1],
        [1, 5],
        [5, 6],
        [6, 12],
        [12, 13],
        [13, 14],
      ] as const) {
        if (to === 12) await session.resize({ capacity: 20 });
        got.push(...toNumbers((await session.run(feed(from, to))).out!));
      }
      got.forEach((x, i) => void expect(Math.abs(x - expected[i]!)).toBeLessThan(2e-6));
      const [a, c] = [await whole.readState("key1"), await session.readState("key1")];
      expect(c.shape).toEqual([1, K, 20, D]);
      const [narrow, wide] = [toNumbers(a), toNumbers(c)];
      for (let head = 0; head < K; head++) {
        for (let i = 0; i < LENGTH * D; i++) {
          expect(Math.abs(wide[head * 20 * D + i]! - narrow[head * LENGTH * D + i]!)).toBeLessThan(2e-6);
        }
        expect(wide.slice((head * 20 + LENGTH) * D, (head + 1) * 20 * D).every((x) => x === 0)).toBe(true);
      }
    });

    test("two sessions share a cache: each goes on where the other stopped", async () => {
      const graph = cachedAttention(window, kept);
      await using whole = await backend.load(graph, {}, { sizes: { capacity: LENGTH } });
      const expected = toNumbers((await whole.run(feed(0, LENGTH))).out!);
      const first = await backend.load(graph, {}, { sizes: { capacity: 6 } });
      await using second = await backend.load(graph, {}, { shareStates: first });
      const got = [...toNumbers((await first.run(feed(0, 5))).out!)];
      got.push(...toNumbers((await second.run(feed(5, 6))).out!));
      await second.resize({ capacity: LENGTH });
      got.push(...toNumbers((await first.run(feed(6, 12))).out!));
      // What is shared lives as long as its last user.
      await first.dispose();
      got.push(...toNumbers((await second.run(feed(12, LENGTH))).out!));
      got.forEach((x, i) => void expect(Math.abs(x - expected[i]!)).toBeLessThan(2e-6));
      const other = graphBuilder("other");
      other.assign(other.state("key0", "f32", [3]), other.numbers("f32", [3], [1, 2, 3]));
      await expect(backend.load(other.build(), {}, { shareStates: second })).rejects.toThrow(/shared state key0 to be/);
    });

    test("going back writes over what was there", async () => {
      const graph = cachedAttention(window, kept);
      await using session = await backend.load(graph, {}, { sizes: { capacity: LENGTH } });
      const first = await session.run(feed(0, LENGTH));
      await session.run({ ...feed(3, 5), qkv: normals(1, 2, (H + 2 * K) * D) });
      const again = await session.run(feed(3, LENGTH));
      const width = H * D;
      const [expected, got] = [toNumbers(first.out!).slice(3 * width), toNumbers(again.out!)];
      got.forEach((x, i) => void expect(Math.abs(x - expected[i]!)).toBeLessThan(2e-6));
    });

    test("rows past the capacity are an error, and the state stays", async () => {
      await using session = await backend.load(cachedAttention(window, kept), {}, { sizes: { capacity: 6 } });
      await session.run(feed(0, 4));
      const before = await session.readState("value0");
      await expect(session.run(feed(4, 7))).rejects.toThrow(/expected rows within 6 along axis 2, got 4 \.\. 6/);
      expect(await session.readState("value0")).toEqual(before);
    });
  });

  test("a replaced state is what the next run reads, and an output of it is a copy", async () => {
    const g = graphBuilder("fibonacci");
    const [a, c] = [g.state("a", "f32", [2]), g.state("b", "f32", [2])];
    const sum = g.add(a, c);
    g.assign(a, c);
    g.assign(c, sum);
    g.output("sum", sum);
    await using session = await backend.load(g.build());
    await session.writeState("b", fromNumbers("f32", [2], [1, 10]));
    const sums: number[][] = [];
    const held: Tensor[] = [];
    for (let i = 0; i < 6; i++) {
      const { sum: got } = await session.run();
      held.push(got!);
      sums.push(Array.from(toNumbers(got!)));
    }
    expect(sums.map(([x]) => x)).toEqual([1, 2, 3, 5, 8, 13]);
    expect(sums.map(([, y]) => y)).toEqual([10, 20, 30, 50, 80, 130]);
    expect(held.map((got) => Array.from(toNumbers(got)))).toEqual(sums);
    const state = await session.readState("b");
    (state.data as Float32Array)[0] = -1;
    expect(Array.from(toNumbers(await session.readState("b")))).toEqual([13, 130]);
  });

  test("gradient descent in a state: runs without outputs", async () => {
    const g = graphBuilder("descent");
    const x = g.state("x", "f32", [3]);
    g.assign(x, g.subtract(x, g.multiply(g.subtract(x, 4), 0.5)));
    await using session = await backend.load(g.build());
    for (let i = 0; i < 4; i++) expect(await session.run()).toEqual({});
    expect(Array.from(toNumbers(await session.readState("x")))).toEqual([3.75, 3.75, 3.75]);
  });

  test("runs that were not awaited go one after the other", async () => {
    const g = graphBuilder("count");
    const n = g.state("n", "i64", []);
    const next = g.add(n, 1);
    g.assign(n, next);
    g.output("n", next);
    await using session = await backend.load(g.build());
    const got = await Promise.all(Array.from({ length: 5 }, () => session.run()));
    expect(got.map((out) => Number(out.n!.data[0]))).toEqual([1, 2, 3, 4, 5]);
  });

  test("fetches choose outputs", async () => {
    await using session = await backend.load(linear(), { w, b });
    const all = await session.run({ x: normals(2, 20) });
    expect(Object.keys(all).sort()).toEqual(["y", "z"]);
    expect(Object.keys(await session.run({ x: normals(2, 20) }, ["z"]))).toEqual(["z"]);
    await expect(session.run({ x: normals(2, 20) }, ["zz"])).rejects.toThrow(
      /outputs of linear, got "zz"; did you mean "z"/,
    );
  });

  test("a parameter or an input may itself be an output", async () => {
    const g = graphBuilder("through");
    const x = g.input("x", "f32", [2]);
    g.output("x again", x);
    g.output("c", g.numbers("f32", [2], [5, 6]));
    g.output("one", g.add(x, 1));
    g.output("two", g.add(x, 1));
    await using session = await backend.load(g.build());
    const got = await session.run({ x: fromNumbers("f32", [2], [1, 2]) });
    expect(Object.entries(got).map(([name, value]) => [name, ...toNumbers(value)])).toEqual([
      ["x again", 1, 2],
      ["c", 5, 6],
      ["one", 2, 3],
      ["two", 2, 3],
    ]);
  });

  test("feeds are checked before any work", async () => {
    await using session = await backend.load(linear(), { w, b });
    await expect(session.run({})).rejects.toThrow(/expected a feed for x: f32\[n, 20\], got none/);
    await expect(session.run({ x: normals(2, 20), xs: normals(1) })).rejects.toThrow(/got "xs"; did you mean "x"/);
    await expect(session.run({ x: fromNumbers("i64", [1, 20], new Array(20).fill(0)) })).rejects.toThrow(TypeError);
    await expect(session.run({ x: normals(2, 21) })).rejects.toThrow(
      /expected x to be f32\[n, 20\] \(\[2, 20\] in this run\), got f32\[2, 21\]/,
    );
    await expect(session.run({ x: normals(20) })).rejects.toThrow(/expected x to be f32\[n, 20\], got f32\[20\]/);
  });

  test("weights are checked when the graph is loaded", async () => {
    const graph = linear();
    await expect(backend.load(graph, { W: w, b })).rejects.toThrow(MissingWeightError);
    await expect(backend.load(graph, { W: w, b })).rejects.toThrow(
      /expected a weight "w" of f32\[30, 20\], got none; .*"W"/,
    );
    await expect(backend.load(graph, { w: normals(20, 30), b })).rejects.toThrow(/expected w to be f32\[30, 20\]/);
    await expect(backend.load(graph, { w, b: normals(30) })).rejects.toThrow(
      /expected b to be bf16\[30\], got f32\[30\]/,
    );
  });

  test("states need sizes, and only those", async () => {
    const graph = cachedAttention(null, false);
    await expect(backend.load(graph)).rejects.toThrow(/expected a size for "capacity" of the state key0/);
    await expect(backend.load(graph, {}, { sizes: { capacity: 4, width: 2 } })).rejects.toThrow(/got "width"/);
    await using session = await backend.load(graph, {}, { sizes: { capacity: 4 } });
    await expect(session.readState("key")).rejects.toThrow(/expected a state of cached \(key0\), got "key"/);
    await expect(session.writeState("key0", normals(1))).rejects.toThrow(/expected key0 to be/);
  });

  test("a disposed session says so", async () => {
    const session = await backend.load(linear(), { w, b });
    await session.dispose();
    await session.dispose();
    await expect(session.run({ x: normals(1, 20) })).rejects.toThrow(DisposedError);
  });

  test.skipIf(!backend.capabilities.fileWeights)(
    "weights stay in their files, behind a link too, alone or beside others in memory",
    async () => {
      const file = join(folder, `weights-${backend.name}.bin`);
      const bytes = new Uint8Array(64 + 2400 + 60);
      bytes.set(new Uint8Array(w.data.buffer), 64);
      bytes.set(new Uint8Array(b.data.buffer as ArrayBuffer, b.data.byteOffset, 60), 64 + 2400);
      writeFileSync(file, bytes);
      const link = join(mkdtempSync(join(folder, "link-")), "weights.bin");
      symlinkSync(file, link);
      const inFile = { dtype: "f32", shape: [30, 20], file, offset: 64, length: 2400 } as const;
      const biasInFile = { dtype: "bf16", shape: [30], file: link, offset: 2464, length: 60 } as const;
      const x = normals(3, 20);
      await using plain = await backend.load(linear(), { w, b });
      const expected = await plain.run({ x });
      for (const weights of [
        { w: inFile, b },
        { w: { ...inFile, file: link }, b: biasInFile },
      ]) {
        await using session = await backend.load(linear(), weights);
        expect(await session.run({ x })).toEqual(expected);
      }
      await expect(backend.load(linear(), { w: { ...inFile, offset: 200 }, b })).rejects.toThrow(
        /expected 2400 bytes at 200 of .* for w, got/,
      );
      await expect(backend.load(linear(), { w: { ...inFile, length: 2399 }, b })).rejects.toThrow(
        /expected 2400 bytes for w/,
      );
    },
  );
});

test("a package that is missing is named, with what installs it", async () => {
  const missing = (): Promise<object> => Promise.reject(new Error("Cannot find package 'onnxruntime-node'"));
  await expect(importRuntime("node", missing)).rejects.toThrow(
    /expected the package onnxruntime-node .*Cannot find package.*npm install onnxruntime-node/,
  );
});
