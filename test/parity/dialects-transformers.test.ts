// The dialect transformers-5 against transformers' recorded float32 values (reference/rope_fixtures.py): in float32
// arithmetic they are the same bits but for an ulp here and there, and in float64 they are the canonical formulas.

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { computeDialect } from "../../src/encodings/rope/dialects/index.ts";
import { computeRopeFrequencies } from "../../src/encodings/rope/scaling/index.ts";
import type { RopeParameters } from "../../src/encodings/rope/scaling/parameters.ts";

interface Row {
  name: string;
  headDim: number;
  maxPositionEmbeddings: number;
  rope: Record<string, unknown>;
  sequenceLength: number;
  inverseFrequencies: number[];
  attentionFactor: number;
}

const { rows }: { rows: Row[] } = JSON.parse(
  readFileSync(new URL("../fixtures/rope-transformers.json", import.meta.url), "utf8"),
);

function configOf(row: Row) {
  const entries = Object.entries(row.rope).map(([key, value]) => [
    key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
    value,
  ]);
  const rope = Object.fromEntries(entries) as RopeParameters;
  return { headDim: row.headDim, maxPositionEmbeddings: row.maxPositionEmbeddings, rope };
}

function compute(row: Row, float32: boolean) {
  const result = computeDialect("transformers-5", configOf(row), { sequenceLength: row.sequenceLength, float32 });
  if (!result.supported) throw new Error(`${row.name}: ${result.reason}`);
  return result;
}

test("in float32: nine of ten values the same bits, the others within the row's own error and 4 ulps", () => {
  let equal = 0;
  let all = 0;
  for (const row of rows) {
    const theirs = row.inverseFrequencies.map(Math.fround);
    const ours = compute(row, true).inverseFrequencies;
    expect(ours.length).toBe(theirs.length);
    theirs.forEach((w, i) => {
      all++;
      if (ours[i] === w) equal++;
      else expect(Math.abs(ours[i]! / w - 1), `${row.name}, pair ${i}`).toBeLessThanOrEqual(4 * 2 ** -23);
    });
  }
  expect(equal / all).toBeGreaterThan(0.9);
});

test("in float64: the canonical formulas", () => {
  for (const row of rows) {
    const config = configOf(row);
    const canonical = computeRopeFrequencies(config, row.sequenceLength);
    const ours = compute(row, false);
    canonical.inverseFrequencies.forEach((w, i) => {
      const difference = w === 0 ? ours.inverseFrequencies[i]! : ours.inverseFrequencies[i]! / w - 1;
      expect(Math.abs(difference), `${row.name}, pair ${i}`).toBeLessThanOrEqual(4e-15);
    });
    expect(ours.attentionFactor).toBeCloseTo(canonical.attentionFactor, 14);
    expect(ours.notes.filter((note) => note.code === "key-ignored")).toEqual([]);
  }
});
