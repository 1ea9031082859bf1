// The rotation and its two layouts against the models' own functions (reference/rope_fixtures.py), and the row permutation
// between the layouts against transformers' and llama.cpp's conversions (reference/permutation.py).

import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { RotaryLayout } from "../../src/encodings/position-encoding.ts";
import { halfFromInterleaved, interleavedFromHalf, permuteRows } from "../../src/encodings/rope/layouts.ts";
import { applyRotary } from "../../src/encodings/rope/rotation.ts";
import { computeRopeFrequencies } from "../../src/encodings/rope/scaling/index.ts";
import { rotaryTables } from "../../src/encodings/rope/tables.ts";

interface Rotation {
  positions: number[];
  rows: {
    name: string;
    layout: RotaryLayout;
    outputLayout: RotaryLayout;
    headDim: number;
    rotaryDim: number;
    ropeTheta: number;
    vectors: number[][];
    rotated: number[][];
  }[];
  phimoe: {
    headDim: number;
    maxPositionEmbeddings: number;
    ropeTheta: number;
    originalMaxPositionEmbeddings: number;
    shortFactor: number[];
    longFactor: number[];
    shortMscale: number;
    longMscale: number;
    calls: { sequenceLength: number; turnedAtPosition1: number[]; magnitude: number }[];
  };
}
interface Permutation {
  rows: {
    which: "q" | "k";
    numHeads: number;
    headDim: number;
    columns: number;
    matrix: number[];
    halfFromInterleaved: number[];
    interleavedFromHalf: number[];
  }[];
}

function load<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(`../fixtures/${name}`, import.meta.url), "utf8")) as T;
}
const { positions, rows, phimoe } = load<Rotation>("rope-rotation.json");
const permutation = load<Permutation>("permutation.json");

describe("rotated vectors match the model's own function", () => {
  test.each(rows)("$name, $layout, $rotaryDim of $headDim channels", (row) => {
    const { headDim, rotaryDim, ropeTheta, layout } = row;
    const frequencies = computeRopeFrequencies(
      { headDim: rotaryDim, maxPositionEmbeddings: 4096, rope: { ropeType: "default", ropeTheta } },
      4096,
    );
    const rotated = applyRotary(row.vectors.flat(), rotaryTables(frequencies, positions), { headDim, layout });
    // DeepSeek rotates interleaved pairs and writes them as halves.
    const order = row.outputLayout === layout ? null : halfFromInterleaved(headDim, rotaryDim);
    const expected = row.rotated.flat();
    expect(rotated.length).toBe(expected.length);
    for (const [at, value] of expected.entries()) {
      const channel = at % headDim;
      const ours = rotated[order ? at - channel + order[channel]! : at]!;
      // numpy's frequencies may be an ulp off ours: at position 4095 and vectors of at most 2, seen 3.4e-15.
      expect(Math.abs(ours - value)).toBeLessThanOrEqual(1e-13);
    }
  });

  test("both layouts and partial rotation occur", () => {
    expect(new Set(rows.map((row) => row.layout)).size).toBe(2);
    expect(
      rows
        .filter((row) => row.rotaryDim < row.headDim)
        .map((row) => row.layout)
        .sort(),
    ).toEqual(["half", "interleaved"]);
  });
});

describe("the row permutation between layouts is the converters', exactly", () => {
  test.each(permutation.rows)("$which, $numHeads heads of $headDim, $columns columns", (row) => {
    const matrix = Float64Array.from(row.matrix);
    const toHalf = permuteRows(matrix, row, halfFromInterleaved(row.headDim));
    const toInterleaved = permuteRows(matrix, row, interleavedFromHalf(row.headDim));
    expect(Array.from(toHalf)).toEqual(row.halfFromInterleaved);
    expect(Array.from(toInterleaved)).toEqual(row.interleavedFromHalf);
    expect(permuteRows(toHalf, row, interleavedFromHalf(row.headDim))).toEqual(matrix);
  });
});

describe("PhiMoE's longrope", () => {
  const { headDim, maxPositionEmbeddings, calls, ...settings } = phimoe;
  const ours = (sequenceLength: number) =>
    computeRopeFrequencies(
      { headDim, maxPositionEmbeddings, rope: { ropeType: "longrope", ...settings } },
      sequenceLength,
    );

  test("has one attention factor a list, as transformers computes it", () => {
    for (const call of calls) {
      expect(Math.abs(ours(call.sequenceLength).attentionFactor - call.magnitude)).toBeLessThanOrEqual(1e-6);
    }
  });

  test("uses its long list past the original length, where transformers 5.24 keeps the short one", () => {
    const [before, after] = calls as [Rotation["phimoe"]["calls"][number], Rotation["phimoe"]["calls"][number]];
    expect([before.sequenceLength, after.sequenceLength]).toEqual([4096, 4097]);
    expect(after.magnitude).toBeGreaterThan(before.magnitude);
    const short = ours(4096).inverseFrequencies;
    const long = ours(4097).inverseFrequencies;
    for (const [i, turned] of after.turnedAtPosition1.entries()) {
      expect(Math.abs(turned - short[i]!)).toBeLessThanOrEqual(3e-7);
      expect(long[i]! / short[i]!).toBeCloseTo(settings.shortFactor[i]! / settings.longFactor[i]!, 12);
    }
  });
});
