// What engines compute, against the engines: each row of the fixture is a run of one engine's own code
// (reference/dialects.py, dialects_lineage.py). llama.cpp ran whole, on small models, so its rows are its cos and sin.

import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { DialectContext, DialectFrequencies } from "../../src/encodings/rope/dialects/index.ts";
import { computeDialect, type Dialect, dialects, ropeDialects } from "../../src/encodings/rope/dialects/index.ts";
import { honoursPartialRotary, scalesSoftmax } from "../../src/encodings/rope/dialects/transformers-5.ts";
import type { RopeConfig } from "../../src/encodings/rope/scaling/parameters.ts";

interface Row {
  dialect: Dialect;
  name: string;
  config: RopeConfig;
  context: DialectContext;
  error?: string;
  inverseFrequencies?: number[];
  /** ω where it is below π, from cos and sin at position 1. */
  turnedAtPosition1?: number[];
  attentionFactor?: number;
  softmaxFactor?: number;
  tableLength?: number;
  positions?: number[];
  cos?: number[];
  sin?: number[];
}

interface Fixture {
  rows: Row[];
  engines: Record<string, string>;
  honoursPartialRotary: string[];
  scalesSoftmax: string[];
  vllm: { linearWithIntegerFactor: string };
}

const read = (name: string) => JSON.parse(readFileSync(new URL(`../fixtures/${name}`, import.meta.url), "utf8"));
const most: Fixture = read("dialects.json");
const lineage: Pick<Fixture, "rows" | "engines"> = read("dialects-lineage.json");
const fixture: Fixture = {
  ...most,
  rows: [...most.rows, ...lineage.rows],
  engines: { ...most.engines, ...lineage.engines },
};

/** Relative, float32 against float32: two ulps, for torch's pow is not correctly rounded; seen 2.1e-7. */
const FLOAT32 = 2.4e-7;
/** Relative, the formula in float64 against the engine's float32; seen 3.3e-7. */
const FLOAT64 = 4e-7;

/** Largest difference of cos and sin with the engine's own roundings. An ulp of an angle near 4095 is 2.4e-4, and one
 *  ulp of ω may pass into it; llama.cpp's angles are the same bits, to position 30000. Seen 9.2e-8, 1.2e-4 and 2.2e-4. */
const TABLES: Partial<Record<Dialect, number>> = {
  "llama.cpp": 1.5e-7,
  vllm: 2.5e-4,
  "vllm-0.11": 2.5e-4,
  sglang: 2.5e-4,
  "mlx-lm": 2.5e-4,
};
/** bfloat16 steps below 2 are 2^-7: one step, where the float32 values straddle a boundary. */
const BFLOAT16_STEP = 2 ** -7;

function worstRatio(values: ArrayLike<number>, expected: ArrayLike<number>): number {
  expect(values.length).toBe(expected.length);
  let worst = 0;
  for (let i = 0; i < expected.length; i++) {
    if (expected[i] === 0) expect(values[i]).toBe(0);
    else worst = Math.max(worst, Math.abs(values[i]! / expected[i]! - 1));
  }
  return worst;
}

function worstDifference(values: ArrayLike<number>, expected: ArrayLike<number>): number {
  expect(values.length).toBe(expected.length);
  let worst = 0;
  for (let i = 0; i < expected.length; i++) worst = Math.max(worst, Math.abs(values[i]! - expected[i]!));
  return worst;
}

function equalShare(values: ArrayLike<number>, expected: ArrayLike<number>): number {
  let equal = 0;
  for (let i = 0; i < expected.length; i++) equal += values[i] === Math.fround(expected[i]!) ? 1 : 0;
  return equal / expected.length;
}

function supported(row: Row, float32: boolean): DialectFrequencies {
  const result = computeDialect(row.dialect, row.config, { ...row.context, float32 });
  if (!result.supported) throw new Error(`not supported: ${result.reason}`);
  return result;
}

test("rows of every engine that runs, at the versions that the dialects name", () => {
  for (const dialect of dialects) {
    if (dialect === "papers") continue;
    expect(fixture.rows.filter((row) => row.dialect === dialect).length, dialect).toBeGreaterThanOrEqual(13);
    expect(ropeDialects[dialect].engine).toContain(fixture.engines[dialect]!.match(/\d[\w.]*/)![0]);
  }
});

const title = (row: Row) => `${row.dialect}: ${row.name} ${JSON.stringify(row.context)}`;
const computed = fixture.rows.filter((row) => row.error === undefined);

describe("what an engine computed", () => {
  test.each(computed.map((row) => [title(row), row] as const))("%s", (_, row) => {
    const exact = supported(row, false);
    const rounded = supported(row, true);
    if (row.inverseFrequencies !== undefined) {
      const theirs = row.inverseFrequencies.map(Math.fround);
      expect(worstRatio(exact.inverseFrequencies, theirs)).toBeLessThanOrEqual(FLOAT64);
      expect(worstRatio(rounded.inverseFrequencies, theirs)).toBeLessThanOrEqual(FLOAT32);
    } else if (row.turnedAtPosition1 !== undefined) {
      expect(worstDifference(exact.inverseFrequencies, row.turnedAtPosition1)).toBeLessThanOrEqual(5e-7);
    }
    // Read off float32 tables where there is no attribute to read.
    const read = row.inverseFrequencies === undefined || row.context.modelType === "phimoe";
    expect(Math.abs(exact.attentionFactor / row.attentionFactor! - 1)).toBeLessThanOrEqual(read ? 5e-7 : 1e-15);
    if (row.softmaxFactor !== undefined) {
      expect(Math.abs(exact.softmaxFactor / row.softmaxFactor - 1)).toBeLessThanOrEqual(read ? 5e-7 : 1e-12);
    }
    if (row.tableLength !== undefined) expect(exact.tableLength).toBe(row.tableLength);
    if (row.positions === undefined) return;
    const { cos, sin } = rounded.tables(row.positions);
    const isVllm = row.dialect === "vllm" || row.dialect === "vllm-0.11";
    // SGLang keeps its tables in float32, but for longrope's.
    const takesDtype = isVllm || (row.dialect === "sglang" && row.config.rope.ropeType === "longrope");
    const bfloat16 = takesDtype && row.context.modelDtype !== "float32";
    const allowed = bfloat16 ? BFLOAT16_STEP : TABLES[row.dialect]!;
    expect(worstDifference(cos, row.cos!)).toBeLessThanOrEqual(allowed);
    expect(worstDifference(sin, row.sin!)).toBeLessThanOrEqual(allowed);
    // The same bits almost always; but mlx has its own polynomials for exp, cos and sin, and SGLang keeps what torch's
    // float32 cos and sin give, which are an ulp off now and then (seen 0.906 equal).
    const same = Math.min(equalShare(cos, row.cos!), equalShare(sin, row.sin!));
    if (row.dialect !== "mlx-lm") expect(same).toBeGreaterThan(row.dialect === "sglang" ? 0.9 : 0.93);
  });

  test("float32 frequencies are the engine's bits in 97 of 100", () => {
    for (const dialect of dialects) {
      const rows = computed.filter((row) => row.dialect === dialect && row.inverseFrequencies !== undefined);
      if (rows.length === 0) continue;
      const ours = rows.flatMap((row) => [...supported(row, true).inverseFrequencies]);
      const theirs = rows.flatMap((row) => row.inverseFrequencies!);
      expect(equalShare(ours, theirs), dialect).toBeGreaterThan(0.97);
    }
  });
});

describe("what an engine refused", () => {
  const failing = fixture.rows.filter((row) => row.error !== undefined);

  test.each(failing.map((row) => [title(row), row] as const))("%s", (_, row) => {
    const result = computeDialect(row.dialect, row.config, row.context);
    if (row.dialect === "llama.cpp") {
      // Architecture llama takes whole heads alone; its converter never writes less.
      expect(result.notes.map((note) => note.key)).toContain("partialRotaryFactor");
      return;
    }
    expect(result.supported).toBe(false);
    if (!result.supported) expect(result.reason).toContain(row.error!.split(":")[0]!);
  });

  test("vLLM's linear class takes no integer", () => {
    expect(fixture.vllm.linearWithIntegerFactor).toContain("TypeError");
    const config: RopeConfig = {
      headDim: 64,
      maxPositionEmbeddings: 2048,
      rope: { ropeType: "linear", ropeTheta: 1e4, factor: 4 },
    };
    const { notes } = computeDialect("vllm", config, { sequenceLength: 10 });
    expect(notes.map((note) => [note.code, note.key])).toContainEqual(["assumed", "factor"]);
  });
});

test("the classes that honour partial_rotary_factor or scale the softmax are transformers'", () => {
  expect([...honoursPartialRotary].sort()).toEqual(fixture.honoursPartialRotary);
  expect([...scalesSoftmax].sort()).toEqual(fixture.scalesSoftmax);
});
