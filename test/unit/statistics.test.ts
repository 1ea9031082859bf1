import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import {
  bitsPerByte,
  expandedTail,
  linearBins,
  logBins,
  meanOverWindows,
  normalCdf,
  pairedDifference,
  proportion,
  studentQuantile,
  sumBin,
  type WindowSum,
} from "../../src/evaluation/index.ts";
import { random } from "../../src/tensor/index.ts";

const golden: {
  student: [number, number, number][];
  normal: [number, number][];
  wilson: [number, number, number, number][];
  bootstrap: {
    values: number[];
    confidence: number;
    tail: number;
    mean: number;
    low: number;
    high: number;
    standardError: number;
  }[];
  few: { sums: number[]; counts: number[]; mean: number; low: number; high: number }[];
} = JSON.parse(readFileSync(new URL("../fixtures/intervals.json", import.meta.url), "utf8"));

const relative = (got: number, expected: number) => Math.abs(got - expected) / Math.max(1e-300, Math.abs(expected));
const of = (values: readonly number[], count = 1): WindowSum[] => values.map((v) => ({ sum: v * count, count }));

describe("quantiles", () => {
  test.each(golden.student)("Student's t at %d with %d degrees of freedom is scipy's", (p, df, expected) => {
    expect(relative(studentQuantile(p, df), expected)).toBeLessThan(2e-11);
    expect(relative(studentQuantile(1 - p, df), -expected)).toBeLessThan(1e-9);
  });

  test("the normal distribution is scipy's", () => {
    for (const [z, expected] of golden.normal) expect(relative(normalCdf(z), expected)).toBeLessThan(1e-13);
  });
});

describe("the mean over windows", () => {
  test.each(golden.bootstrap)("has the exact bootstrap's interval at $confidence", (row) => {
    expect(relative(expandedTail(row.values.length, row.confidence), row.tail)).toBeLessThan(1e-10);
    const estimate = meanOverWindows(of(row.values), { confidence: row.confidence, resamples: 200_000, seed: 5 });
    expect(estimate.mean).toBeCloseTo(row.mean, 12);
    expect(estimate.method).toBe("percentile-bootstrap");
    // 200,000 draws of the exact distribution, at tails of 0.5 and 2 percent.
    expect(Math.abs(estimate.low! - row.low)).toBeLessThan(0.03 * row.standardError);
    expect(Math.abs(estimate.high! - row.high)).toBeLessThan(0.03 * row.standardError);
  });

  test.each(golden.few)("of few windows has Student's interval, windows of different counts too", (row) => {
    const estimate = meanOverWindows(row.sums.map((sum, i) => ({ sum, count: row.counts[i]! })));
    expect(estimate.method).toBe("student-t");
    expect(relative(estimate.mean, row.mean)).toBeLessThan(1e-14);
    expect(relative(estimate.low!, row.low)).toBeLessThan(1e-10);
    expect(relative(estimate.high!, row.high)).toBeLessThan(1e-10);
  });

  test("is stable: the same seed gives the same digits, another seed nearly the same", () => {
    const windows = of(Array.from({ length: 20 }, (_, i) => Math.sin(i) + 3));
    expect(meanOverWindows(windows)).toEqual(meanOverWindows(windows));
    const [a, b] = [meanOverWindows(windows), meanOverWindows(windows, { seed: 1 })];
    expect(a.low).not.toBe(b.low);
    expect(Math.abs(a.low! - b.low!)).toBeLessThan(0.1 * (a.high! - a.low!));
  });

  test("counts each token once, and knows no interval of one window", () => {
    expect(meanOverWindows([{ sum: 6, count: 2 }])).toEqual({
      mean: 3,
      low: null,
      high: null,
      method: null,
      windows: 1,
      tokens: 2,
    });
    expect(
      meanOverWindows([
        { sum: 1, count: 1 },
        { sum: 9, count: 4 },
      ]).mean,
    ).toBe(2);
    expect(() => meanOverWindows([])).toThrow(/at least one window/);
  });

  test.each([3, 16])("of %d windows: 95 percent intervals hold the truth in 93 to 97 percent of 2,000 cases", (n) => {
    const stream = random(17);
    // A loss of a window: a mean of eight skewed parts, as losses of tokens are skewed.
    const draw = () => {
      let sum = 0;
      for (let i = 0; i < 8; i++) sum += -Math.log(1 - stream.uniform());
      return sum / 8;
    };
    let holds = 0;
    for (let i = 0; i < 2000; i++) {
      const { low, high } = meanOverWindows(of(Array.from({ length: n }, draw)), { resamples: 2000, seed: i % 3 });
      if (low! <= 1 && 1 <= high!) holds++;
    }
    expect(holds / 2000).toBeGreaterThan(0.93);
    expect(holds / 2000).toBeLessThan(0.97);
  });
});

describe("paired differences", () => {
  test.each([4, 16])("of %d windows: no difference, no claim in at least 94 percent of 2,000 cases", (n) => {
    const stream = random(23);
    let claims = 0;
    for (let i = 0; i < 2000; i++) {
      // Windows differ by 0.5 nats, strategies by noise of 0.01.
      const base = Array.from({ length: n }, () => 3 + 0.5 * stream.normal());
      const [a, b] = [0, 1].map(() =>
        of(
          base.map((x) => x + 0.01 * stream.normal()),
          512,
        ),
      );
      if (pairedDifference(a!, b!, { resamples: 2000, seed: i % 3 }).verdict !== "tie") claims++;
    }
    expect(claims / 2000).toBeLessThan(0.06);
  });

  test("find 0.01 nats among windows that differ by 0.5, where unpaired intervals do not", () => {
    const stream = random(4);
    const base = Array.from({ length: 8 }, () => 3 + 0.5 * stream.normal());
    const [a, b] = [of(base.map((x) => x + 0.002 * stream.normal())), of(base.map((x) => x + 0.01))];
    expect(pairedDifference(a, b).verdict).toBe("lower");
    expect(pairedDifference(b, a).verdict).toBe("higher");
    expect(meanOverWindows(a).high!).toBeGreaterThan(meanOverWindows(b).low!);
  });

  test("equal losses tie, one window tells nothing, other tokens are refused", () => {
    expect(pairedDifference(of([1, 2]), of([1, 2]))).toMatchObject({ mean: 0, low: 0, high: 0, verdict: "tie" });
    expect(pairedDifference(of([1]), of([2])).verdict).toBe("unknown");
    expect(() => pairedDifference(of([1, 2]), of([1, 2], 3))).toThrow(/same tokens in window 0, got 1 and 3/);
    expect(() => pairedDifference(of([1, 2]), of([1]))).toThrow(/as many windows/);
  });
});

test.each(golden.wilson)("Wilson's interval of %d of %d is scipy's", (k, n, low, high) => {
  const got = proportion(k, n);
  expect(got.low).toBeCloseTo(low, 12);
  expect(got.high).toBeCloseTo(high, 12);
});

describe("bins", () => {
  const edges = (bins: readonly { from: number; to: number }[]) => [bins[0]!.from, ...bins.map(({ to }) => to)];

  test("double twice an octave from the trained length down and up, which is an edge", () => {
    expect(edges(logBins({ length: 512, trainedLength: 128 }))).toEqual([
      1, 16, 23, 32, 45, 64, 91, 128, 181, 256, 362, 512,
    ]);
  });

  test("beyond the trained length are finer where few would be there, and the same within it", () => {
    const fine = (length: number, trainedLength: number) => edges(logBins({ length, trainedLength, leastBeyond: 3 }));
    expect(fine(512, 128)).toEqual(edges(logBins({ length: 512, trainedLength: 128 })));
    // 8 an octave, by hand: 8192 · 2^(k/8).
    expect(fine(12_288, 8192).slice(-6)).toEqual([8192, 8933, 9742, 10_624, 11_585, 12_288]);
    expect(fine(12_288, 8192).slice(0, -6)).toEqual(edges(logBins({ length: 8192, trainedLength: 8192 })).slice(0, -1));
    expect(fine(1024, 512).slice(-5)).toEqual([512, 609, 724, 861, 1024]);
    // Eight an octave would be bins of 12 positions.
    expect(fine(160, 128).slice(-2)).toEqual([128, 160]);
    expect(fine(8193, 8192).slice(-2)).toEqual([8192, 8193]);
    expect(fine(64, 256)).toEqual(edges(logBins({ length: 64, trainedLength: 256 })));
  });

  test.each([
    [2, null],
    [3, 8192],
    [20, 512],
    [100, 64],
    [12_288, 8192],
    [1 << 20, 4096],
    [8193, 8192],
  ])("of %d tokens, trained at %s, hold every position once", (length, trainedLength) => {
    const bins = logBins({ length, trainedLength });
    const all = edges(bins);
    expect([all[0], all.at(-1)]).toEqual([1, length]);
    for (const [i, bin] of bins.entries()) {
      expect(bin.to).toBeGreaterThan(bin.from);
      if (i > 0) expect(bin.from).toBe(bins[i - 1]!.to);
    }
    if (trainedLength !== null && trainedLength < length && trainedLength > 16) expect(all).toContain(trainedLength);
  });

  test("sum the losses of their positions", () => {
    const losses = [10, 20, 30, 40];
    expect(sumBin(losses, { from: 1, to: 3 })).toEqual({ sum: 30, count: 2 });
    expect(sumBin(losses, { from: 3, to: 5 })).toEqual({ sum: 70, count: 2 });
    expect(() => sumBin(losses, { from: 3, to: 6 })).toThrow(/positions from 1 to 4, got 3 to 5/);
    expect(linearBins({ length: 12_288, width: 1024 }).length).toBe(12);
  });
});

test("bits per byte", () => {
  expect(bitsPerByte(Math.log(256), 1)).toBeCloseTo(8, 12);
  expect(() => bitsPerByte(1, 0)).toThrow(/at least one byte/);
});
