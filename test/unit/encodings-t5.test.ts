import { describe, expect, test } from "vitest";
import { t5Bucket, t5BucketTable, t5RelativeBias } from "../../src/encodings/t5-relative-bias.ts";
import { otherEncodings } from "../support/encodings-other.ts";

const { cases, limit, modules } = otherEncodings.t5;

describe("T5 buckets", () => {
  test.each(cases)(
    "equal transformers' for every distance to 100,000: $numBuckets buckets, maxDistance $maxDistance, bidirectional $bidirectional",
    ({ firstDistances, ...options }) => {
      const ahead = options.bidirectional ? Math.floor(options.numBuckets / 2) : 0;
      const positions = Float64Array.from({ length: limit + 1 }, (_, i) => i);
      const past = t5BucketTable([limit], positions, options); // distances limit .. 0
      const future = t5BucketTable([0], positions, options); // distances 0 .. limit
      let wrong = 0;
      let bucket = 0;
      for (let distance = 0; distance <= limit; distance++) {
        while (firstDistances[bucket + 1] && firstDistances[bucket + 1]![1] <= distance) bucket++;
        const want = firstDistances[bucket]![0];
        if (past[limit - distance] !== want) wrong++;
        if (future[distance] !== (options.bidirectional ? want + (distance > 0 ? ahead : 0) : 0)) wrong++;
      }
      expect(wrong).toBe(0);
    },
  );

  test("float32 and exact arithmetic part only at borders, and only for unusual settings", () => {
    for (const { firstDistances, differFromExact, ...options } of cases) {
      const query = [options.maxDistance];
      const keys = Float64Array.from({ length: options.maxDistance + 1 }, (_, j) => j);
      const float32 = t5BucketTable(query, keys, options).reverse(); // by distance
      const exact = t5BucketTable(query, keys, { ...options, arithmetic: "exact" }).reverse();
      const differ = Array.from(float32, (bucket, distance) => [distance, bucket, exact[distance]!]).filter(
        ([, a, b]) => a !== b,
      );
      expect(differ).toEqual(differFromExact);
    }
    const shipped = cases.filter((c) => c.numBuckets === 32 && c.maxDistance === 128);
    expect(shipped.map((c) => c.differFromExact)).toEqual([[], []]);
    expect(cases.some((c) => c.differFromExact.length > 0)).toBe(true);
  });

  test("48 causal buckets, maxDistance 81: distance 36 is a border that float32 misses", () => {
    // (36/24)^24 = (81/24)^8 exactly, so step 8 is reached at 36.
    const options = { bidirectional: false, numBuckets: 48, maxDistance: 81 };
    expect(t5Bucket(-36, options)).toBe(31);
    expect(t5Bucket(-36, { ...options, arithmetic: "exact" })).toBe(32);
  });

  test("anchors of the causal default", () => {
    const anchors: [number, number][] = [
      [0, 0], [15, 15], [16, 16], [18, 16], [19, 17], [24, 19], [31, 21], [64, 26], [90, 29], [100, 30], [113, 31],
      [127, 31], [128, 31], [1e9, 31],
    ]; // biome-ignore format: pairs
    for (const [distance, bucket] of anchors) expect(t5Bucket(-distance, { bidirectional: false })).toBe(bucket);
    expect(t5Bucket(-112, { bidirectional: false })).toBe(30);
  });

  test("anchors of the bidirectional default", () => {
    const anchors: [number, number][] = [
      [-1, 1], [0, 0], [1, 17], [-8, 8], [8, 24], [-64, 14], [64, 30], [-128, 15], [128, 31], [-5000, 15], [5000, 31],
    ]; // biome-ignore format: pairs
    for (const [relative, bucket] of anchors) expect(t5Bucket(relative, { bidirectional: true })).toBe(bucket);
  });

  test("causal: every key ahead is in bucket 0", () => {
    expect(t5Bucket(1, { bidirectional: false })).toBe(0);
    expect(t5Bucket(500, { bidirectional: false })).toBe(0);
  });

  test("rows are taken at absolute query positions: a cached decode has the last row of a full one", () => {
    const keys = Array.from({ length: 200 }, (_, j) => j);
    const full = t5BucketTable(keys, keys, { bidirectional: false });
    expect(t5BucketTable([199], keys, { bidirectional: false })).toEqual(full.slice(199 * 200));
    expect(t5BucketTable([0], keys, { bidirectional: false })).not.toEqual(full.slice(199 * 200));
  });

  test("the table is the bucket of each pair", () => {
    const options = { bidirectional: true, numBuckets: 10, maxDistance: 40 };
    const queries = [0, 3, 77, 1000];
    const keys = [5, 0, 90, 1000, 3];
    expect(Array.from(t5BucketTable(queries, keys, options))).toEqual(
      queries.flatMap((i) => keys.map((j) => t5Bucket(j - i, options))),
    );
  });

  test("absurd settings of a hostile file cost nothing: the table is as large as the distances asked for", () => {
    const options = { bidirectional: true, numBuckets: 2 ** 31, maxDistance: 2 ** 50 };
    expect(Array.from(t5BucketTable([3, 4], [0, 9], options))).toEqual([3, 6 + 2 ** 30, 4, 5 + 2 ** 30]);
    const far = { bidirectional: false, numBuckets: 32, maxDistance: 2 ** 50 };
    expect(Array.from(t5BucketTable([2 ** 20], [0, 2 ** 20 - 1], far))).toEqual([t5Bucket(-(2 ** 20), far), 1]);
  });

  test("settings that leave no logarithmic part are refused", () => {
    expect(() => t5Bucket(-1, { bidirectional: false, maxDistance: 16 })).toThrow(/maxDistance.*at least 17, got 16/);
    expect(() => t5Bucket(-1, { bidirectional: true, numBuckets: 3 })).toThrow(/numBuckets.*at least 4, got 3/);
    expect(() => t5Bucket(-1, {} as { bidirectional: boolean })).toThrow(/bidirectional/);
    expect(() => t5Bucket(0.5, { bidirectional: false })).toThrow(/relativePosition/);
    expect(() => t5Bucket(1, { bidirectional: false, arithmetic: "float64" as "exact" })).toThrow(/"float64"/);
  });
});

describe("T5 bias", () => {
  test.each(modules)("equals transformers' module: bidirectional $bidirectional", (module) => {
    const { rows, numKeys, queryPositions, bias, ...options } = module;
    const encoding = t5RelativeBias(options);
    const keys = Array.from({ length: numKeys }, (_, j) => j);
    const got = encoding.bias(
      rows.map((row) => queryPositions[row]!),
      keys,
    );
    expect(Array.from(got)).toEqual(bias);
  });

  test("weights of another shape are refused", () => {
    expect(() => t5RelativeBias({ numHeads: 2, weights: new Float64Array(32), bidirectional: false })).toThrow(
      /32 · 2 numbers, got 32/,
    );
  });
});
