// ALiBi as channels of queries and keys: the fused attention's output against plain loops in float64 that add the bias as
// numbers. At large positions, where −s·i + s·j keeps nothing of a small distance unless it is summed with care; for one
// token and for chunks that leave one row in a kernel's last block; for heads that are no multiple of 8; grouped keys.

import { describe, expect, test } from "vitest";
import { alibiSlopes } from "../../src/encodings/index.ts";
import { type Backend, onnxRuntimeBackend, referenceBackend } from "../../src/engine/index.ts";
import { graphBuilder } from "../../src/graph/index.ts";
import {
  attendWithColumns,
  biasColumns,
  columnsHeadDim,
  keyColumns,
  queryColumns,
  spareRows,
} from "../../src/models/bias-columns.ts";
import { random, tensor } from "../../src/tensor/index.ts";

interface Sizes {
  readonly numHeads: number;
  readonly numKeyValueHeads: number;
  readonly headDim: number;
  readonly past: number;
  readonly tokens: number;
  readonly slopes: Float64Array;
}

/** The largest distance of outputs of the last rows from float64. */
async function distance(backend: Backend, sizes: Sizes): Promise<number> {
  const { numHeads, numKeyValueHeads, headDim, past, tokens, slopes } = sizes;
  const wide = columnsHeadDim(headDim);
  const scale = 1 / Math.sqrt(headDim);
  const g = graphBuilder("alibi");
  const rows = (name: string, heads: number) => g.input(name, "f32", [1, "tokens", heads * headDim]);
  const cache = (name: string) => g.state(name, "f32", [1, numKeyValueHeads, "capacity", wide]);
  const pastLength = g.input("pastLength", "i64", []);
  const [pastKey, pastValue] = [cache("pastKey"), cache("pastValue")];
  const { output, newKey, newValue } = attendWithColumns(
    g,
    {
      query: rows("query", numHeads),
      key: rows("key", numKeyValueHeads),
      value: rows("value", numKeyValueHeads),
      pastKey,
      pastValue,
      pastLength,
    },
    { numHeads, numKeyValueHeads, scale, window: null },
    {
      queries: g.input("queryColumns", "f32", ["tokens", numHeads, biasColumns]),
      keys: g.input("keyColumns", "f32", ["tokens", biasColumns]),
    },
  );
  g.assignRows(pastKey, newKey, 2, pastLength);
  g.assignRows(pastValue, newValue, 2, pastLength);
  g.output("output", output);

  const draw = random(7);
  const drawn = (length: number): Float32Array => Float32Array.from({ length }, () => 4 * draw.uniform() - 2);
  const query = drawn(tokens * numHeads * headDim);
  const key = drawn(tokens * numKeyValueHeads * headDim);
  const value = drawn(tokens * numKeyValueHeads * headDim);
  const capacity = past + tokens + spareRows;
  const keys = new Float32Array(numKeyValueHeads * capacity * wide);
  const values = new Float32Array(keys.length);
  const columns = keyColumns(0, past);
  for (let h = 0; h < numKeyValueHeads; h++) {
    for (let s = 0; s < past; s++) {
      const at = (h * capacity + s) * wide;
      keys.set(columns.subarray(s * biasColumns, (s + 1) * biasColumns), at);
      for (let d = 0; d < headDim; d++) {
        keys[at + biasColumns + d] = 4 * draw.uniform() - 2;
        values[at + d] = 4 * draw.uniform() - 2;
      }
    }
  }
  await using session = await backend.load(g.build(), new Map(), { sizes: { capacity } });
  await session.writeState("pastKey", tensor("f32", [1, numKeyValueHeads, capacity, wide], keys));
  await session.writeState("pastValue", tensor("f32", [1, numKeyValueHeads, capacity, wide], values));
  const got = await session.run({
    query: tensor("f32", [1, tokens, numHeads * headDim], query),
    key: tensor("f32", [1, tokens, numKeyValueHeads * headDim], key),
    value: tensor("f32", [1, tokens, numKeyValueHeads * headDim], value),
    pastLength: tensor("i64", [], BigInt64Array.of(BigInt(past))),
    queryColumns: tensor("f32", [tokens, numHeads, biasColumns], queryColumns(slopes, past, tokens)),
    keyColumns: tensor("f32", [tokens, biasColumns], keyColumns(past, tokens)),
  });
  const data = got.output!.data as Float32Array;

  let worst = 0;
  for (let t = Math.max(0, tokens - 2); t < tokens; t++) {
    for (let h = 0; h < numHeads; h++) {
      const own = Math.floor((h * numKeyValueHeads) / numHeads);
      const i = past + t;
      const at = (t * numHeads + h) * headDim;
      const keyAt = (s: number, d: number): number =>
        s < past
          ? keys[(own * capacity + s) * wide + biasColumns + d]!
          : key[((s - past) * numKeyValueHeads + own) * headDim + d]!;
      const valueAt = (s: number, d: number): number =>
        s < past
          ? values[(own * capacity + s) * wide + d]!
          : value[((s - past) * numKeyValueHeads + own) * headDim + d]!;
      const scores = Float64Array.from({ length: i + 1 }, (_, s) => {
        let dot = 0;
        for (let d = 0; d < headDim; d++) dot += query[at + d]! * keyAt(s, d);
        return dot * scale - slopes[h]! * (i - s);
      });
      const most = scores.reduce((a, b) => Math.max(a, b));
      let total = 0;
      const mixed = new Float64Array(headDim);
      scores.forEach((score, s) => {
        const weight = Math.exp(score - most);
        total += weight;
        if (weight > 0) for (let d = 0; d < headDim; d++) mixed[d]! += weight * valueAt(s, d);
      });
      mixed.forEach((sum, d) => {
        worst = Math.max(worst, Math.abs(sum / total - data[at + d]!));
      });
    }
  }
  return worst;
}

/** Outputs are at most 2; 5e-7 to 1.1e-6 was seen. */
const tolerance = 3e-6;

describe("on ONNX Runtime", () => {
  const backend = onnxRuntimeBackend();
  test.each([
    { past: 0, tokens: 1 },
    { past: 40, tokens: 24 },
    { past: 16383, tokens: 1 },
    { past: 16384, tokens: 65 },
    { past: 16384, tokens: 129 },
    { past: 131071, tokens: 1 },
  ])("tokens: $tokens, after: $past, of slopes that float32 has to round", async ({ past, tokens }) => {
    const slopes = past > 1e5 ? Float64Array.of(2 ** -0.5) : Float64Array.of(2 ** -0.5, 2 ** -1.5);
    const numHeads = slopes.length;
    const sizes = { numHeads, numKeyValueHeads: numHeads, headDim: 64, past, tokens, slopes };
    expect(await distance(backend, sizes)).toBeLessThan(tolerance);
  });

  test("grouped heads of 20 channels", async () => {
    const slopes = alibiSlopes({ numHeads: 12 });
    const sizes = { numHeads: 12, numKeyValueHeads: 4, headDim: 20, past: 4095, tokens: 3, slopes };
    expect(await distance(backend, sizes)).toBeLessThan(tolerance);
  });
});

test("on the reference backend", async () => {
  const slopes = alibiSlopes({ numHeads: 4 });
  const sizes = { numHeads: 4, numKeyValueHeads: 2, headDim: 12, past: 1000, tokens: 5, slopes };
  expect(await distance(referenceBackend, sizes)).toBeLessThan(tolerance);
});

test("queries' channels times keys' channels are the bias, exactly for slopes of 24 bits", () => {
  const slopes = Float64Array.of(Math.fround(2 ** -0.5), 0.25, 0);
  for (const [i, j] of [
    [0, 0],
    [17, 3],
    [65535, 65520],
    [1048575, 17],
  ] as const) {
    const q = queryColumns(slopes, i, 1);
    const k = keyColumns(j, 1);
    slopes.forEach((slope, h) => {
      let sum = 0;
      for (let c = 0; c < biasColumns; c++) sum += q[h * biasColumns + c]! * k[c]!;
      // The last pair's first channel is rounded; the attention multiplies by 1/2.
      expect(Math.abs(sum / 2 + slope * (i - j))).toBeLessThanOrEqual(1e-6);
    });
  }
});
