// Losses by position, the windowed baseline, growing tables and perplexity against transformers: reference/evaluation.py.

import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type LanguageModel, loadLanguageModel } from "../../src/engine/index.ts";
import {
  type CompareIdentity,
  type CompareJob,
  compareIdentity,
  compareResult,
  generatedHaystack,
  logBins,
  lossByPosition,
  meanOverWindows,
  memoryRunFiles,
  openRun,
  pairedDifference,
  parseEvaluationStrategy,
  perplexityOf,
  perplexityWindows,
  placeWindows,
  readRun,
  runCompare,
  scorePerplexityWindow,
  sumBin,
  windowTokens,
} from "../../src/evaluation/index.ts";
import { byteTokenizer } from "../../src/formats/index.ts";
import { checkpoint } from "../support/checkpoints.ts";

type Interval = [mean: number, low: number, high: number];
const golden: {
  trainedLength: number;
  target: number;
  bos: number;
  text: number[];
  edges: number[];
  rows: { strategy: string; position: [number, number]; mean: Interval; againstNone: Interval | null }[];
  shortCost: Record<string, Interval>;
  perplexity: { maxLength: number; stride: number; perplexity: number; tokens: number; plain: number }[];
  perplexityWithBos: { tokens: number; perplexity: number };
} = JSON.parse(readFileSync(new URL("../fixtures/evaluation.json", import.meta.url), "utf8"));

const { trainedLength, target, bos } = golden;
const bins = logBins({ length: target, trainedLength });
const places = placeWindows([golden.text.length], target - 1, 1000);
const windows = places.map(({ start }) => windowTokens(golden.text, start, target, bos));

let model: LanguageModel;
beforeAll(async () => {
  model = await loadLanguageModel(checkpoint("llama").folder);
});
afterAll(() => model.dispose());

/** float32 on both sides: losses near 7 agree to 2e-5. */
const tolerance = 2e-4;
const close = (got: { mean: number; low: number | null; high: number | null }, expected: Interval): void => {
  // An interval of four windows is 3.2 standard errors wide on each side.
  for (const [i, x] of [got.mean, got.low!, got.high!].entries()) {
    expect(Math.abs(x - expected[i]!)).toBeLessThan(i === 0 ? tolerance : 5 * tolerance);
  }
};

const cache = new Map<string, Promise<Float64Array[]>>();
/** Losses of every window. */
function losses(name: string): Promise<Float64Array[]> {
  let known = cache.get(name);
  if (known === undefined) {
    const strategy = parseEvaluationStrategy(name, { trainedLength, target });
    known = (async () => {
      const out: Float64Array[] = [];
      for (const tokens of windows) out.push(await lossByPosition(model, tokens, strategy, { bos, trainedLength }));
      return out;
    })();
    cache.set(name, known);
  }
  return known;
}

test("bins and windows are the reference's", () => {
  expect([bins[0]!.from, ...bins.map(({ to }) => to)]).toEqual(golden.edges);
  expect(windows.length).toBe(4);
});

test.each([...new Set(golden.rows.map(({ strategy }) => strategy))])(
  "%s: every bin's mean, interval and paired difference are transformers'",
  async (name) => {
    const [own, none] = [await losses(name), await losses("none")];
    const rows = golden.rows.filter(({ strategy }) => strategy === name);
    expect(rows.length).toBe(bins.length);
    for (const [i, bin] of bins.entries()) {
      const sums = own.map((window) => sumBin(window, bin));
      close(meanOverWindows(sums), rows[i]!.mean);
      const { againstNone } = rows[i]!;
      if (againstNone !== null)
        close(
          pairedDifference(
            sums,
            none.map((window) => sumBin(window, bin)),
          ),
          againstNone,
        );
    }
  },
);

test("the short cost is transformers' on sequences of the trained length, and nothing for dynamic", async () => {
  const short = async (name: string) => {
    const strategy = parseEvaluationStrategy(name, { trainedLength, target });
    const out = [];
    for (const tokens of windows) {
      const window = await lossByPosition(model, tokens.slice(0, trainedLength), strategy, { bos, trainedLength });
      out.push(sumBin(window, { from: 1, to: trainedLength }));
    }
    return out;
  };
  const none = await short("none");
  for (const [name, expected] of Object.entries(golden.shortCost))
    close(pairedDifference(await short(name), none), expected);
  expect(pairedDifference(await short("dynamic:3"), none)).toMatchObject({ mean: 0, low: 0, high: 0, verdict: "tie" });
});

describe("perplexity", () => {
  const tokens = golden.text.slice(0, 300);
  const none = parseEvaluationStrategy("none", { trainedLength, target });
  const run = async (options: { length: number; stride?: number; bos: number | null }) => {
    const cut = perplexityWindows(tokens.length, options);
    const sums = [];
    for (const window of cut) {
      const loss = await scorePerplexityWindow(model, tokens, window, none, options);
      sums.push({ ...loss, bytes: 2 * loss.count });
    }
    return perplexityOf(cut, sums, options);
  };
  const relative = (got: number, expected: number) => Math.abs(Math.log(got / expected));

  test.each(golden.perplexity)("of windows of $maxLength, stride $stride, is the guide's", async (row) => {
    const got = await run({ length: row.maxLength, stride: row.stride, bos: null });
    expect(got.protocol).toBe(row.stride < row.maxLength ? "sliding-window" : "non-overlapping");
    expect(got.tokens).toBe(row.tokens);
    expect(relative(got.perplexity, row.plain)).toBeLessThan(tolerance);
    expect(relative(got.guidePerplexity, row.perplexity)).toBeLessThan(tolerance);
    expect(got.bitsPerByte).toBeCloseTo(got.mean / Math.LN2 / 2, 10);
  });

  test("with BOS at the head of every window scores every token of the text", async () => {
    const got = await run({ length: 64, bos });
    expect(got).toMatchObject({ bos: "every-window", stride: 63, tokens: golden.perplexityWithBos.tokens });
    expect(relative(got.perplexity, golden.perplexityWithBos.perplexity)).toBeLessThan(tolerance);
    expect(relative(got.guidePerplexity, got.perplexity)).toBeLessThan(1e-12);
  });

  test("refuses a stride that would leave tokens out", () => {
    expect(() => perplexityWindows(100, { length: 64, stride: 65, bos: null })).toThrow(/stride from 1 to 64/);
    expect(() => perplexityWindows(100, { length: 64, stride: 64, bos })).toThrow(/stride from 1 to 63/);
    expect(() => perplexityWindows(1, { length: 64, bos })).toThrow(/at least 2 tokens/);
  });
});

test("a compare's rows, read back from its run, are transformers' bin for bin", async () => {
  const own = golden.rows.map(({ strategy }) => strategy);
  const strategies = [...new Set(own)].map((name) => parseEvaluationStrategy(name, { trainedLength, target }));
  const tokenizer = byteTokenizer();
  const texts = [{ name: "text", sha256: "", tokens: golden.text }];
  const job: CompareJob = {
    model: model.description,
    settings: { target, trainedLength, bos, strategies, places, needles: 0, needleLengths: [] },
    texts,
    tokenizer,
    haystack: generatedHaystack(tokenizer),
    seed: 0,
  };
  const files = memoryRunFiles();
  const identity = compareIdentity(job);
  const run = await openRun(files, { kind: "compare", identity });
  await runCompare(model, job, run);
  await run.close();
  const { manifest, rows } = await readRun(files);
  const result = compareResult(manifest.identity as CompareIdentity, rows);
  expect(result).toMatchObject({ complete: true, windows: 4, unscaled: "none", forgetting: "window" });
  expect(result.rows.length).toBe(golden.rows.length);
  for (const [i, row] of result.rows.entries()) {
    const expected = golden.rows[i]!;
    expect([row.strategy, row.position]).toEqual([expected.strategy, expected.position]);
    expect(row.tokens).toBe(4 * (expected.position[1] - expected.position[0]));
    close({ ...row, mean: row.meanNegativeLogLikelihood }, expected.mean);
    if (expected.againstNone !== null) close(row.againstUnscaled!, expected.againstNone);
  }
  // Strategies whose table depends on the length run short sequences of their own; the others' are their first tokens.
  const short = identity.strategies.filter((one) => one.short === "own-passes").map(({ name }) => name);
  expect(short).toEqual(["dynamic:3"]);
  for (const { strategy, shortCost } of result.strategies) {
    const expected = golden.shortCost[strategy];
    if (expected !== undefined) close(shortCost!, expected);
  }
});
