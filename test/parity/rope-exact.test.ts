// Rotary frequencies and tables against exact arithmetic (reference/rope_exact.py, mpmath at 50 digits).

import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { power } from "../../src/encodings/numerics/power.ts";
import { sinCos } from "../../src/encodings/numerics/sincos.ts";
import { computeRopeFrequencies, ropeTypes } from "../../src/encodings/rope/scaling/index.ts";
import type { RopeParameters } from "../../src/encodings/rope/scaling/parameters.ts";
import { rotaryTables } from "../../src/encodings/rope/tables.ts";

interface Frequencies {
  chain: { ropeTheta: number; rotaryDim: number; inverseFrequencies: number[] }[];
  exact: {
    name: string;
    headDim: number;
    maxPositionEmbeddings: number;
    rope: RopeParameters;
    sequenceLength: number;
    inverseFrequencies: number[];
    attentionFactor: number;
  }[];
  powers: [number, number, number][];
}
interface Tables {
  positions: number[];
  tables: { ropeTheta: number; rotaryDim: number; cos: number[][]; sin: number[][] }[];
  angles: [number, number, number][];
}

function load<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(`../fixtures/${name}`, import.meta.url), "utf8")) as T;
}
const { chain, exact, powers } = load<Frequencies>("rope-exact-frequencies.json");
const { positions, tables, angles } = load<Tables>("rope-exact-tables.json");

/** Of a float64 computation against the formula rounded once, relative; seen 3.4e-15 (gpt-oss, unrounded ramp). */
const RELATIVE = 5e-15;
/** Of cos and sin against the correctly rounded value, absolute; seen 1.2e-16, one ulp below 1. */
const TABLE = 2e-16;

describe("unscaled inverse frequencies", () => {
  test.each(chain)("are the correctly rounded chain, bit for bit: theta $ropeTheta, $rotaryDim channels", (row) => {
    const rope: RopeParameters = { ropeType: "default", ropeTheta: row.ropeTheta };
    const config = { headDim: row.rotaryDim, maxPositionEmbeddings: 4096, rope };
    expect(Array.from(computeRopeFrequencies(config, 1).inverseFrequencies)).toEqual(row.inverseFrequencies);
  });

  test("powers nearest to the middle of two float64 round to the right one", () => {
    for (const [base, exponent, expected] of powers) expect(power(base, exponent)).toBe(expected);
  });
});

describe("scaled inverse frequencies equal the exact formula", () => {
  test.each(exact)("$name", ({ rope, headDim, maxPositionEmbeddings, sequenceLength, ...row }) => {
    const ours = computeRopeFrequencies({ rope, headDim, maxPositionEmbeddings }, sequenceLength);
    expect(ours.inverseFrequencies.length).toBe(row.inverseFrequencies.length);
    for (const [i, expected] of row.inverseFrequencies.entries()) {
      expect(Math.abs(ours.inverseFrequencies[i]! - expected)).toBeLessThanOrEqual(RELATIVE * expected);
    }
    expect(Math.abs(ours.attentionFactor - row.attentionFactor)).toBeLessThanOrEqual(4e-16 * row.attentionFactor);
  });

  test("for every type but the arbitrary table", () => {
    expect([...new Set(exact.map((row) => row.rope.ropeType))].sort()).toEqual(
      ropeTypes.filter((type) => type !== "table").sort(),
    );
  });
});

describe("cos and sin of positions up to 2^20 + 1", () => {
  test.each(tables)("theta $ropeTheta, $rotaryDim channels", ({ ropeTheta, rotaryDim, cos, sin }) => {
    const config = {
      headDim: rotaryDim,
      maxPositionEmbeddings: 4096,
      rope: { ropeType: "default", ropeTheta } as RopeParameters,
    };
    const ours = rotaryTables(computeRopeFrequencies(config, 1), positions);
    for (const [name, values, expected] of [
      ["cos", ours.cos, cos.flat()],
      ["sin", ours.sin, sin.flat()],
    ] as const) {
      expect(values.length).toBe(expected.length);
      const worst = expected.reduce((most, x, at) => Math.max(most, Math.abs(values[at]! - x)), 0);
      expect(worst, name).toBeLessThanOrEqual(TABLE);
    }
  });
});

describe("sinCos", () => {
  test("is right to 2e-16 for angles up to 2^45, those next to quarter turns too", () => {
    for (const [x, cos, sin] of angles) {
      const ours = sinCos(x);
      expect(Math.abs(ours.cos - cos), `cos ${x}`).toBeLessThanOrEqual(TABLE);
      expect(Math.abs(ours.sin - sin), `sin ${x}`).toBeLessThanOrEqual(TABLE);
    }
    expect(Math.max(...angles.map(([x]) => x))).toBe(2 ** 45);
  });

  test("is even in cos and odd in sin, exactly", () => {
    for (const [x] of angles.filter(([x]) => x > 0)) {
      const plus = sinCos(x);
      expect(sinCos(-x)).toEqual({ cos: plus.cos, sin: -plus.sin });
    }
  });

  test("keeps the relative size of a small angle", () => {
    for (const [x, , sin] of angles.filter(([x]) => x < 1e-3)) {
      expect(Math.abs(sinCos(x).sin - sin)).toBeLessThanOrEqual(2e-16 * sin);
    }
  });

  test("refuses angles that have no meaning as float64", () => {
    for (const x of [Number.NaN, Infinity, -Infinity, 2 ** 54]) expect(() => sinCos(x)).toThrow(RangeError);
  });
});
