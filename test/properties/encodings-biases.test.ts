import fc from "fast-check";
import { expect, test } from "vitest";
import { alibi, alibiKeyBias, alibiSlopes } from "../../src/encodings/alibi.ts";
import { copePositions } from "../../src/encodings/cope.ts";
import { kerpleBias } from "../../src/encodings/kerple.ts";
import { t5Bucket, t5BucketTable } from "../../src/encodings/t5-relative-bias.ts";
import { randomNumbers, softmax } from "../support/attention.ts";
import { largestError } from "../support/encodings-other.ts";

const heads = fc.integer({ min: 1, max: 40 });

test("ALiBi: slopes are positive, distinct, at most 1, and a power of two halves into its double", () => {
  fc.assert(
    fc.property(heads, (numHeads) => {
      const slopes = alibiSlopes({ numHeads });
      expect(slopes.every((slope) => slope > 0 && slope < 1)).toBe(true);
      expect(new Set(slopes).size).toBe(numHeads);
      expect(Math.min(...slopes)).toBe(2 ** -8);
    }),
  );
});

test("ALiBi: the key-only form has the same softmax under a causal mask", () => {
  fc.assert(
    fc.property(heads, fc.integer({ min: 0, max: 60 }), fc.integer(), (numHeads, query, seed) => {
      const random = randomNumbers(seed);
      const keys = Array.from({ length: query + 1 }, (_, j) => j);
      const { slopes, bias } = alibi({ numHeads });
      const [distance, keyOnly] = [bias([query], keys), alibiKeyBias(slopes, keys)];
      for (let h = 0; h < numHeads; h++) {
        const scores = keys.map(() => 4 * random());
        const row = (b: Float64Array) => softmax(scores.map((score, j) => score + b[h * keys.length + j]!));
        expect(largestError(row(distance), row(keyOnly))).toBeLessThan(1e-13);
      }
    }),
  );
});

const t5 = fc
  .record({
    bidirectional: fc.boolean(),
    numBuckets: fc.integer({ min: 4, max: 80 }),
    beyond: fc.integer({ min: 1, max: 900 }),
  })
  .map(({ bidirectional, numBuckets, beyond }) => ({ bidirectional, numBuckets, maxDistance: numBuckets + beyond }));

test("T5: buckets never fall with distance, cover their range and end at maxDistance", () => {
  fc.assert(
    fc.property(t5, fc.constantFrom("float32" as const, "exact" as const), (settings, arithmetic) => {
      const options = { ...settings, arithmetic };
      const size = options.bidirectional ? Math.floor(options.numBuckets / 2) : options.numBuckets;
      const positions = Array.from({ length: options.maxDistance + 50 }, (_, i) => i);
      const past = t5BucketTable([positions.length - 1], positions, options).reverse();
      expect(past.every((bucket, n) => n === 0 || bucket >= past[n - 1]!)).toBe(true);
      expect(past[0]).toBe(0);
      expect(past[options.maxDistance]).toBe(size - 1);
      expect(past.every((bucket) => bucket < size)).toBe(true);
    }),
    { numRuns: 60 },
  );
});

test("T5: float32 is never further than one bucket from exact", () => {
  fc.assert(
    fc.property(t5, fc.integer({ min: 0, max: 2000 }), (options, n) => {
      const difference = t5Bucket(-n, options) - t5Bucket(-n, { ...options, arithmetic: "exact" });
      expect(Math.abs(difference)).toBeLessThanOrEqual(1);
    }),
  );
});

test("KERPLE: the bias is 0 at distance 0 and falls with distance", () => {
  const kernel = fc.record({
    kind: fc.constantFrom("logarithmic" as const, "power" as const),
    r1: fc.double({ min: 0.01, max: 4, noNaN: true }),
    r2: fc.double({ min: 0.01, max: 2, noNaN: true }),
  });
  fc.assert(
    fc.property(kernel, fc.integer({ min: 0, max: 100_000 }), (options, distance) => {
      expect(kerpleBias(0, options)).toBe(0);
      expect(kerpleBias(distance + 1, options)).toBeLessThan(kerpleBias(distance, options));
    }),
  );
});

test("CoPE: positions grow towards the past, stay in range, and a decode step has the last row of a prefill", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 12 }),
      fc.integer({ min: 1, max: 8 }),
      fc.integer(),
      (n, maxPositions, seed) => {
        const random = randomNumbers(seed);
        const logits = Float64Array.from({ length: n * n }, () => 6 * random());
        const full = copePositions(logits, { numHeads: 1, numQueries: n, numKeys: n, maxPositions });
        const last = copePositions(logits.slice((n - 1) * n), { numHeads: 1, numQueries: 1, numKeys: n, maxPositions });
        expect(last).toEqual(full.slice((n - 1) * n));
        expect(last.every((p, j) => p >= 0 && p <= maxPositions - 1 && (j === 0 || p <= last[j - 1]!))).toBe(true);
      },
    ),
  );
});
