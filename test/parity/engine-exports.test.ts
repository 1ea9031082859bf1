// Exported configurations as transformers 5.24.0 computes them (reference/exports.py): the same files, and frequencies
// and factors equal to those asked for.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { engineExportCases } from "../support/engine-export-cases.ts";

interface Row {
  readonly name: string;
  readonly sha256: string;
  readonly tables: readonly {
    readonly layerType: string | null;
    readonly inverseFrequencies: readonly number[];
    readonly attentionFactor: number;
  }[];
}

const { rows, versions }: { rows: Row[]; versions: { transformers: string } } = JSON.parse(
  readFileSync(new URL("../fixtures/engine-exports.json", import.meta.url), "utf8"),
);
const cases = engineExportCases();

test("the fixture is of transformers 5.24.0, and of at least 30 configurations", () => {
  expect(versions.transformers).toBe("5.24.0");
  expect(rows.length).toBeGreaterThanOrEqual(30);
  expect(cases.map(({ name }) => name)).toEqual(rows.map(({ name }) => name));
});

test.each(cases)("$name: the file that was run", ({ name, made }) => {
  const row = rows.find((one) => one.name === name)!;
  const content = made.files[0]!.content!;
  expect(createHash("sha256").update(content).digest("hex"), "run reference/exports.py again").toBe(row.sha256);
});

test.each(cases)("$name: transformers computes what was asked for", ({ name, made }) => {
  const row = rows.find((one) => one.name === name)!;
  for (const group of made.groups) {
    const theirs = row.tables.find(({ layerType }) => layerType === null || layerType === group.layerType)!;
    expect(group.unsupported).toBeNull();
    expect(group.exact).toBe(true);
    expect(theirs.inverseFrequencies.length).toBe(group.inverseFrequencies.length);
    group.inverseFrequencies.forEach((frequency, i) => {
      // float32 there; a blend of two frequencies loses a few bits. 1e-15 and less turns nothing.
      const difference = Math.abs(theirs.inverseFrequencies[i]! - frequency);
      expect(difference, `pair ${i}`).toBeLessThanOrEqual(3e-6 * frequency + 1e-15);
    });
    expect(theirs.attentionFactor / group.attentionFactor!).toBeCloseTo(1, 6);
  }
});
