import { describe, expect, test } from "vitest";
import { fope, fopeFrequencies } from "../../src/encodings/fope.ts";
import { xpos, xposScales } from "../../src/encodings/xpos.ts";
import { dot, rotate } from "../support/attention.ts";
import { largestError, largestRelativeError, otherEncodings } from "../support/encodings-other.ts";

describe("xPos", () => {
  test.each(otherEncodings.xpos)(
    "headDim $headDim, length $length, centre $centre: tables are those of exact arithmetic",
    (c) => {
      const { headDim, length, rows } = c;
      const encoding = xpos(c.centre === undefined ? { headDim } : { headDim, centre: c.centre });
      for (const [p, pair, ...expected] of rows) {
        const [q, k] = [encoding.queryTables([p], length), encoding.keyTables([p], length)];
        const got = [q.cos[pair]!, q.sin[pair]!, k.cos[pair]!, k.sin[pair]!];
        expect(largestError(got, expected)).toBeLessThan(2e-15 + p * 5e-16);
      }
    },
  );

  /** q·k of one pair of ones, query at p and key at j, each from the tables of its own length. */
  function score(
    encoding: ReturnType<typeof xpos>,
    p: number,
    j: number,
    queryLength: number,
    keyLength = queryLength,
  ): number {
    const ones = new Float64Array(encoding.headDim).fill(1);
    const pairs = encoding.headDim / 2;
    return dot(
      rotate(ones, encoding.queryTables([p], queryLength), 0, pairs, encoding.layout),
      rotate(ones, encoding.keyTables([j], keyLength), 0, pairs, encoding.layout),
    );
  }

  test("a score holds ζ^(difference/512) · cos, whatever the positions, the length or the centre", () => {
    for (const encoding of [
      xpos({ headDim: 8 }),
      xpos({ headDim: 8, centre: 0 }),
      xpos({ headDim: 8, layout: "half" }),
    ]) {
      const expected = xposScales(8).reduce(
        (sum, zeta, i) => sum + 2 * zeta ** (300 / 512) * Math.cos(300 * 10000 ** (-i / 4)),
        0,
      );
      for (const [start, length] of [
        [0, 301],
        [55, 400],
        [1700, 2001],
      ] as const) {
        expect(score(encoding, start + 300, start, length)).toBeCloseTo(expected, 10);
      }
    }
  });

  test("the cache trap: keys of one length and queries of another no longer cancel", () => {
    const moving = xpos({ headDim: 8 });
    expect(moving.dependsOnLength).toBe(true);
    expect(Math.abs(score(moving, 100, 50, 1000) - score(moving, 100, 50, 1000, 200))).toBeGreaterThan(0.1);
    const fixed = xpos({ headDim: 8, centre: 64 });
    expect(fixed.dependsOnLength).toBe(false);
    expect(score(fixed, 100, 50, 1000, 200)).toBe(score(fixed, 100, 50, 1000));
  });

  test("scales grow from 2/7 towards 1", () => {
    expect(xposScales(128)[0]).toBeCloseTo(0.4 / 1.4, 15);
    expect(xposScales(128)[63]).toBeLessThan(1);
  });

  test("impossible settings are refused", () => {
    expect(() => xpos({ headDim: 7 })).toThrow(/headDim/);
    expect(() => xpos({ headDim: 8, layout: "neox" as "half" })).toThrow(/"neox"/);
    expect(() => xpos({ headDim: 8 }).queryTables([0], 0)).toThrow(/sequenceLength/);
    expect(() => xpos({ headDim: 8, scaleBase: -1 })).toThrow(/scaleBase/);
  });
});

describe("FoPE", () => {
  test.each(otherEncodings.fope)("headDim $headDim, $padding: tables are those of exact arithmetic", (c) => {
    const encoding = fope(c);
    expect(largestRelativeError(encoding.inverseFrequencies, c.kept)).toBeLessThan(1e-15);
    const tables = encoding.queryTables(c.positions, 1);
    expect(largestError(tables.cos, c.cos)).toBeLessThan(1e-12);
    expect(largestError(tables.sin, c.sin)).toBeLessThan(1e-12);
    expect(encoding.keyTables(c.positions, 1)).toEqual(tables);
  });

  const kept = fopeFrequencies({ headDim: 16, trainedLength: 512 });
  const identity = Float64Array.from({ length: kept.length ** 2 }, (_, i) => (i % (kept.length + 1) === 0 ? 1 : 0));

  test("it keeps exactly the pairs that turn in training", () => {
    const all = Array.from({ length: 8 }, (_, i) => 10000 ** (-i / 8));
    expect(kept.length).toBe(all.filter((omega) => (2 * Math.PI) / omega < 512).length);
    expect(fopeFrequencies({ headDim: 16, numInverseFrequencies: 3 })).toEqual(kept.slice(0, 3));
  });

  test("with the identity it is RoPE on the kept pairs; the padding decides what happens to the rest", () => {
    const vector = Float64Array.from({ length: 16 }, (_, i) => i + 1);
    const options = { headDim: 16, trainedLength: 512, cosCoefficients: identity, sinCoefficients: identity };
    const passed = rotate(vector, fope({ ...options, padding: "zero-frequency" }).queryTables([77], 1), 0, 8, "half");
    const mixed = rotate(vector, fope({ ...options, padding: "ones" }).queryTables([77], 1), 0, 8, "half");
    for (let i = 0; i < 8; i++) {
      if (i < kept.length) {
        const [c, s] = [Math.cos(77 * kept[i]!), Math.sin(77 * kept[i]!)];
        expect(passed[i]).toBeCloseTo(vector[i]! * c - vector[i + 8]! * s, 12);
        expect(mixed[i]).toBe(passed[i]);
      } else {
        expect(passed[i]).toBe(vector[i]);
        expect(mixed[i]).toBe(vector[i]! - vector[i + 8]!);
      }
    }
  });

  test("the padding must be chosen, and coefficients must fit", () => {
    const options = { headDim: 16, trainedLength: 512, cosCoefficients: identity, sinCoefficients: identity };
    expect(() => fope(options as unknown as Parameters<typeof fope>[0])).toThrow(/padding.*undefined/);
    expect(() => fope({ ...options, padding: "ones", sinCoefficients: [1] })).toThrow(/sinCoefficients/);
    expect(() => fope({ ...options, padding: "ones", trainedLength: 6 })).toThrow(/above 2π/);
    expect(() => fopeFrequencies({ headDim: 16 })).toThrow(/neither/);
    expect(() => fopeFrequencies({ headDim: 16, trainedLength: 9, numInverseFrequencies: 2 })).toThrow(/both/);
  });
});
