import { describe, expect, test } from "vitest";
import { alibi, alibiKeyBias, alibiSlopes } from "../../src/encodings/alibi.ts";
import { largestRelativeError, otherEncodings } from "../support/encodings-other.ts";

const fixture = otherEncodings.alibi;

describe("ALiBi slopes", () => {
  test("equal BLOOM's for every head count to 33 and some above, in order", () => {
    // BLOOM takes float32 powers of a rounded base: 7e-7 at 128 heads.
    expect(Object.keys(fixture.bloom).length).toBeGreaterThan(33);
    for (const [heads, slopes] of Object.entries(fixture.bloom)) {
      expect(largestRelativeError(alibiSlopes({ numHeads: Number(heads) }), slopes), heads).toBeLessThan(7e-7);
    }
  });

  test.each(fixture.mpt)("equal MPT's gen_slopes: $numHeads heads, maxBias $maxBias", ({ slopes, ...options }) => {
    expect(largestRelativeError(alibiSlopes(options), slopes)).toBeLessThan(2e-7);
  });

  test("are the correctly rounded powers of two", () => {
    for (const [heads, slopes] of Object.entries(fixture.exact)) {
      expect(Array.from(alibiSlopes({ numHeads: Number(heads) })), heads).toEqual(slopes);
    }
  });

  test("anchors: 8 heads, 12 heads out of order, 3, 1 and 16", () => {
    const eight = [0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625];
    expect(Array.from(alibiSlopes({ numHeads: 8 }))).toEqual(eight);
    const twelve = Array.from(alibiSlopes({ numHeads: 12 }));
    expect(twelve.slice(0, 8)).toEqual(eight);
    expect(largestRelativeError(twelve.slice(8), [0.70710678, 0.35355339, 0.1767767, 0.08838835])).toBeLessThan(1e-7);
    expect(Array.from(alibiSlopes({ numHeads: 3 }))).toEqual([0.0625, 0.00390625, 0.25]);
    expect(Array.from(alibiSlopes({ numHeads: 1 }))).toEqual([0.00390625]);
    expect(alibiSlopes({ numHeads: 16 })[0]).toBe(Math.SQRT1_2);
  });

  test("padded heads come last without a bias, and do not change the real ones", () => {
    const padded = alibiSlopes({ numHeads: 12, paddedHeads: 16 });
    expect(padded.slice(0, 12)).toEqual(alibiSlopes({ numHeads: 12 }));
    expect(Array.from(padded.slice(12))).toEqual([0, 0, 0, 0]);
    expect(padded[0]).not.toBe(alibiSlopes({ numHeads: 16 })[0]); // the mistake that padding first makes
    const encoding = alibi({ numHeads: 3, paddedHeads: 5 });
    expect(encoding.numHeads).toBe(5);
    expect(encoding.bias([2], [0, 1, 2]).slice(9)).toEqual(new Float64Array(6));
  });

  test("impossible counts are refused", () => {
    expect(() => alibiSlopes({ numHeads: 0 })).toThrow(/numHeads/);
    expect(() => alibiSlopes({ numHeads: 8, paddedHeads: 7 })).toThrow(/paddedHeads.*at least 8, got 7/);
    expect(() => alibiSlopes({ numHeads: 8, maxBias: 0 })).toThrow(/maxBias/);
  });
});

describe("ALiBi bias", () => {
  test("causal: −slope·(i − j), zero on the diagonal, and no bonus for a future key", () => {
    const bias = alibi({ numHeads: 1 }).bias([0, 1, 2], [0, 1, 2]);
    const s = 0.00390625;
    expect(bias).toEqual(Float64Array.of(0, 0, 0, -s, 0, 0, -2 * s, -s, 0));
  });

  test("bidirectional: −slope·|i − j|, symmetric", () => {
    const bias = alibi({ numHeads: 1, bidirectional: true }).bias([0, 1, 2], [0, 1, 2]);
    const s = 0.00390625;
    expect(bias).toEqual(Float64Array.of(0, -s, -2 * s, -s, 0, -s, -2 * s, -s, 0));
  });

  test("a cached decode has the last row of a full one", () => {
    const keys = Array.from({ length: 50 }, (_, j) => j);
    const { bias } = alibi({ numHeads: 1 });
    expect(bias([49], keys)).toEqual(bias(keys, keys).slice(49 * 50));
  });

  test("the key-only form differs by slope·i in row i", () => {
    const { slopes, bias } = alibi({ numHeads: 6 });
    const keyOnly = alibiKeyBias(slopes, [0, 1, 2, 3]);
    const distance = bias([3], [0, 1, 2, 3]);
    for (let h = 0; h < 6; h++) {
      for (let j = 0; j < 4; j++) expect(keyOnly[h * 4 + j]! - distance[h * 4 + j]!).toBeCloseTo(3 * slopes[h]!, 15);
    }
  });

  test("positions far from each other need no table of their range", () => {
    expect(alibi({ numHeads: 1 }).bias([2 ** 40], [0])[0]).toBe(-(2 ** 40) / 256);
  });
});
