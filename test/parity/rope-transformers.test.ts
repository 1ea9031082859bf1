// Rotary frequencies against transformers 5.24: each row of the fixture is one forward call of a real rotary class
// (reference/rope_fixtures.py). transformers computes in float32; where that is farther than 3e-7 from the exact formula,
// the row carries the exact values and why, and both distances are asserted.

import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { computeRopeFrequencies, ropeTypes } from "../../src/encodings/rope/scaling/index.ts";
import type { RopeParameters } from "../../src/encodings/rope/scaling/parameters.ts";

interface Row {
  name: string;
  class: string;
  headDim: number;
  maxPositionEmbeddings: number;
  rope: Record<string, unknown>;
  sequenceLength: number;
  inverseFrequencies: number[];
  attentionFactor: number;
  exact?: number[];
  float32Error?: number;
  why?: "exponent" | "blend";
}

const { rows, transformers }: { rows: Row[]; transformers: string } = JSON.parse(
  readFileSync(new URL("../fixtures/rope-transformers.json", import.meta.url), "utf8"),
);

/** float32 against float64, relative: six roundings of 2^-24 at most. */
const PARITY = 3e-7;
/** Our float64 against the exact formula, relative; seen 1.8e-15. */
const EXACT = 5e-15;

function camelCase(rope: Record<string, unknown>): RopeParameters {
  const entries = Object.entries(rope).map(([key, value]) => [
    key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
    value,
  ]);
  return Object.fromEntries(entries) as RopeParameters;
}

/** max |a / b − 1|, with zeros required to coincide. */
function worstRatio(values: ArrayLike<number>, expected: ArrayLike<number>): number {
  expect(values.length).toBe(expected.length);
  let worst = 0;
  for (let i = 0; i < expected.length; i++) {
    if (expected[i] === 0) expect(values[i]).toBe(0);
    else worst = Math.max(worst, Math.abs(values[i]! / expected[i]! - 1));
  }
  return worst;
}

test("the fixture holds at least 200 rows, of every type that transformers knows", () => {
  expect(transformers).toBe("5.24.0");
  expect(rows.length).toBeGreaterThanOrEqual(200);
  const types = new Set(rows.map((row) => row.rope.rope_type));
  expect([...types].sort()).toEqual(["default", "dynamic", "linear", "llama3", "longrope", "proportional", "yarn"]);
  for (const type of types) expect(ropeTypes).toContain(type);
  expect(new Set(rows.map((row) => row.class)).size).toBeGreaterThanOrEqual(30);
});

describe.each(rows)("$name", (row) => {
  const compute = () =>
    computeRopeFrequencies(
      { headDim: row.headDim, maxPositionEmbeddings: row.maxPositionEmbeddings, rope: camelCase(row.rope) },
      row.sequenceLength,
    );
  const theirs = row.inverseFrequencies.map(Math.fround);

  test("inverse frequencies match transformers", () => {
    const { inverseFrequencies } = compute();
    expect(worstRatio(theirs, inverseFrequencies)).toBeLessThanOrEqual(row.float32Error ?? PARITY);
    if (row.exact) expect(worstRatio(inverseFrequencies, row.exact)).toBeLessThanOrEqual(EXACT);
  });

  test("attention factor matches transformers", () => {
    const { attentionFactor } = compute();
    expect(Math.abs(attentionFactor - row.attentionFactor)).toBeLessThanOrEqual(1e-12 * row.attentionFactor);
  });
});

describe("rows beyond 3e-7", () => {
  const beyond = rows.filter((row) => row.exact);

  test("are transformers' rounding: never more than 2e-6 from the exact formula", () => {
    expect(beyond.length).toBeGreaterThan(0);
    expect(beyond.length).toBeLessThan(rows.length / 5);
    for (const row of beyond) {
      expect(row.float32Error).toBeLessThanOrEqual(2e-6);
      expect(worstRatio(row.inverseFrequencies.map(Math.fround), row.exact!)).toBeLessThanOrEqual(row.float32Error!);
      expect(worstRatio(row.inverseFrequencies.map(Math.fround), row.exact!)).toBeGreaterThan(0.95 * PARITY);
    }
  });

  test("have an exponent 2i/d that float32 cannot hold, or a blend in which it cancels", () => {
    for (const row of beyond) {
      if (row.why === "exponent") {
        // ω = b^(−x): an error of half an ulp in x < 1 is ln(b)·2^−25 in ω. Dynamic's base is larger than ropeTheta, and
        // llama3's blend multiplies an error of ω by up to 1 + low·(factor − 1)/(high − low).
        const rotaryDim = 2 * row.exact!.length;
        expect(Math.fround(2 / rotaryDim)).not.toBe(2 / rotaryDim);
        const base = row.exact!.at(-1)! ** (-rotaryDim / (rotaryDim - 2));
        const largest = row.rope.rope_type === "dynamic" ? base : (row.rope.rope_theta as number);
        const { factor, low_freq_factor: low, high_freq_factor: high } = row.rope as Record<string, number>;
        const amplified = row.rope.rope_type === "llama3" ? 1 + (low! * (factor! - 1)) / (high! - low!) : 1;
        expect(row.float32Error).toBeLessThanOrEqual((Math.log(largest) * 2 ** -25 + PARITY) * amplified);
      } else {
        expect(row.why).toBe("blend");
        expect(["yarn", "llama3"]).toContain(row.rope.rope_type);
      }
    }
  });
});
