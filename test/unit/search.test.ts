import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { computeRopeFrequencies } from "../../src/encodings/index.ts";
import type { ScoreOptions } from "../../src/engine/index.ts";
import {
  type Candidate,
  evolve,
  type Generation,
  longRopeOf,
  memoryRunFiles,
  openRun,
  runSearch,
  type ScoringModel,
  type SearchJob,
  searchCost,
  searchSpace,
  searchWindows,
} from "../../src/evaluation/index.ts";
import { describeHuggingFace } from "../../src/formats/index.ts";
import { random } from "../../src/tensor/index.ts";
import { longhand } from "../support/cli.ts";
import { writeTinyModel } from "../support/tiny-model.ts";
import { plainWords } from "../support/words.ts";

const config = {
  model_type: "llama",
  hidden_size: 64,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  max_position_embeddings: 128,
  rope_theta: 10000,
};
const description = describeHuggingFace(config);
const lengths = { trainedLength: 128, target: 512 };

/** Loss: how far a candidate's hands are from 1, 1.5, 2, … turns of slowness, and from a factor of 1.1. */
function distance({ stretch, attentionFactor }: Candidate): number {
  const wanted = stretch.map((_, i) => 1 + i / 2);
  return stretch.reduce((sum, x, i) => sum + Math.log(x / wanted[i]!) ** 2, (attentionFactor - 1.1) ** 2);
}

describe("evolve", () => {
  const starts = [
    { stretch: [1, 1, 1, 1, 1, 1], attentionFactor: 1 },
    { stretch: [4, 4, 4, 4, 4, 4], attentionFactor: 1 },
  ];

  test("comes near the best there is, with candidates that are in order, in their limits and never tried twice", async () => {
    const tried: Candidate[] = [];
    const generations: Generation[] = [];
    const { best } = await evolve(
      { starts, mostStretch: 4.5, generations: 40, seed: 3 },
      async (candidate) => {
        tried.push(candidate);
        return distance(candidate);
      },
      (generation) => generations.push(generation),
    );
    expect(best.loss).toBeLessThan(0.02);
    expect(best.loss).toBe(distance(best.candidate));
    expect(Math.min(...tried.map(distance))).toBe(best.loss);
    expect(new Set(tried.map((one) => JSON.stringify(one))).size).toBe(tried.length);
    for (const { stretch, attentionFactor } of tried) {
      expect([...stretch].sort((a, b) => a - b)).toEqual(stretch);
      for (const x of [...stretch, attentionFactor]) expect(Math.round(100 * x) / 100).toBe(x);
      expect(stretch[0]).toBeGreaterThanOrEqual(1);
      expect(stretch.at(-1)).toBeLessThanOrEqual(4.5);
    }
    expect(generations.map(({ generation }) => generation)).toEqual(Array.from({ length: 41 }, (_, i) => i));
    const losses = generations.map((one) => one.best.loss);
    expect([...losses].sort((a, b) => b - a)).toEqual(losses);
    expect(generations.at(-1)!.tried).toBe(tried.length);
  });

  test("draws the same candidates for the same seed, others for another, and more generations go on with the same", async () => {
    const of = async (seed: number, generations: number): Promise<string[]> => {
      const keys: string[] = [];
      await evolve({ starts, mostStretch: 5, generations, seed }, async (candidate) => {
        keys.push(JSON.stringify(candidate));
        return distance(candidate);
      });
      return keys;
    };
    const short = await of(1, 3);
    expect(await of(1, 3)).toEqual(short);
    expect((await of(1, 5)).slice(0, short.length)).toEqual(short);
    expect(await of(2, 3)).not.toEqual(short);
  });

  test("refuses starts that are none, out of order, unlike or past the limit", async () => {
    const run = (list: Candidate[]) => evolve({ starts: list, mostStretch: 5 }, async () => 0);
    const start = (...stretch: number[]) => ({ stretch, attentionFactor: 1 });
    await expect(run([])).rejects.toThrow("evolve: expected at least one start of at least one pair, got none");
    await expect(run([start(1, 2), start(1)])).rejects.toThrow("evolve: expected starts of 2 pairs, got 1 in start 1");
    await expect(run([start(2, 1)])).rejects.toThrow("got 1 at pair 1 of start 0");
    await expect(run([start(1, 6)])).rejects.toThrow("evolve: expected stretches from 1 to 5 that never fall, got 6");
    await expect(evolve({ starts: [start(1)], mostStretch: 2, parents: 0 }, async () => 0)).rejects.toThrow(
      "evolve: expected parents that is an integer of at least 1, got 0",
    );
  });
});

describe("searchSpace", () => {
  test("has the rules' frequencies: a rule as a candidate turns as the rule does", () => {
    const space = searchSpace(description, lengths);
    expect(space.rules.map(({ name }) => name)).toEqual(["none", "linear:4", "ntk:4", "dynamic:4", "yarn:4"]);
    const rope = {
      none: { ropeType: "default", ropeTheta: 10000 },
      "linear:4": { ropeType: "linear", ropeTheta: 10000, factor: 4 },
      "ntk:4": { ropeType: "ntk", ropeTheta: 10000, factor: 4 },
      "dynamic:4": { ropeType: "dynamic", ropeTheta: 10000, factor: 4 },
      "yarn:4": { ropeType: "yarn", ropeTheta: 10000, factor: 4, originalMaxPositionEmbeddings: 128 },
    } as const;
    for (const { name, candidate } of space.rules) {
      const own = { headDim: 16, maxPositionEmbeddings: 128, rope: rope[name as keyof typeof rope] };
      const wanted = computeRopeFrequencies(own, 512);
      const got = computeRopeFrequencies({ ...own, rope: longRopeOf(candidate, space) }, 512);
      expect(got.attentionFactor).toBe(wanted.attentionFactor);
      got.inverseFrequencies.forEach((w, i) => {
        expect(Math.abs(w / wanted.inverseFrequencies[i]! - 1)).toBeLessThan(1e-12);
      });
      // At the trained length nothing is stretched.
      const short = computeRopeFrequencies({ ...own, rope: longRopeOf(candidate, space) }, 128).inverseFrequencies;
      expect(short).toEqual(computeRopeFrequencies({ ...own, rope: rope.none }, 128).inverseFrequencies);
    }
    // dynamic's base at four times the length has NTK's factor 13: what it does to the last hand, and a quarter more.
    expect(space.mostStretch).toBeCloseTo(1.25 * 13, 10);
  });

  test("says what it cannot search", () => {
    const of = (more: object, target = 512) =>
      searchSpace(describeHuggingFace({ ...config, ...more }), { ...lengths, target });
    expect(() => of({}, 128)).toThrow("search: expected a target past the trained length of 128, got 128");
    expect(() => of({ model_type: "gpt2", n_embd: 64, n_layer: 2, n_head: 4, n_positions: 128 })).toThrow(
      "search: expected a model with rotary positions, got gpt2",
    );
    const factors = Array.from({ length: 8 }, () => 1);
    const longrope = {
      rope_type: "longrope",
      short_factor: factors,
      long_factor: factors,
      factor: 4,
      original_max_position_embeddings: 128,
    };
    expect(() => of({ rope_scaling: longrope })).toThrow(
      "expected frequencies that were trained as RoPE's own series, got longrope",
    );
  });
});

/** A model whose loss within the trained length is 1 and beyond it 1 and the distance of its hands from the wanted ones. */
function modelOf(asked: { count: number }): ScoringModel {
  return {
    async score(tokens: ArrayLike<number>, options: ScoreOptions = {}) {
      asked.count++;
      const { kind, value } = options.scaling as { kind: string; value: Record<string, unknown> };
      expect(kind).toBe("parameters");
      expect(value.rope_type).toBe("longrope");
      const off = distance({
        stretch: value.long_factor as number[],
        attentionFactor: value.attention_factor as number,
      });
      const noise = (i: number): number => ((tokens[i]! * 7919) % 13) / 100;
      return {
        negativeLogLikelihood: Float64Array.from({ length: tokens.length - 1 }, (_, i) =>
          i + 1 < lengths.trainedLength ? 1 + off / 10 : 1 + off + noise(i),
        ),
      };
    },
    async loglikelihood() {
      throw new Error("not asked for");
    },
  };
}

describe("runSearch", () => {
  const stream = random(5);
  const tokens = Int32Array.from({ length: 4000 }, () => stream.integer(1000));
  const job: SearchJob = {
    space: searchSpace(description, lengths),
    bos: null,
    ...searchWindows([{ tokens }], 512, null, { search: 2, check: 3 }),
    evolution: { generations: 6, children: 8 },
  };

  test("windows of the two kinds are apart, and shared out where the text is short", () => {
    const of = (length: number, search: number, check: number) => {
      const text = Int32Array.from({ length }, (_, i) => i);
      const { windows, checks } = searchWindows([{ tokens: text }], 100, null, { search, check });
      const begins = [...windows, ...checks].map((one) => one[0]!);
      expect(new Set(begins).size).toBe(begins.length);
      for (const one of [...windows, ...checks]) expect(one[99]).toBe(one[0]! + 99);
      return [windows.length, checks.length];
    };
    expect(of(1200, 4, 8)).toEqual([4, 8]);
    expect(of(600, 4, 8)).toEqual([2, 4]);
    expect(of(200, 4, 1)).toEqual([1, 1]);
    expect(() => of(199, 4, 8)).toThrow("search: expected text for at least 2 windows of 100 tokens");
    const { windows, checks } = searchWindows([{ tokens }], 512, 7, { search: 1, check: 1 });
    expect([windows[0]![0], checks[0]![0], windows[0]![1]]).toEqual([7, 7, tokens[0]]);
  });

  test("finds better hands than the rules', says so on the other windows, and measures nothing again", async () => {
    const files = memoryRunFiles();
    const asked = { count: 0 };
    const once = async () => {
      const run = await openRun(files, { kind: "search", identity: {} });
      try {
        const shares: number[] = [];
        const result = await runSearch(modelOf(asked), job, run, {
          onProgress: ({ done, total }) => shares.push(done / total),
        });
        expect(Math.max(...shares)).toBeLessThanOrEqual(1);
        return result;
      } finally {
        await run.close();
      }
    };
    const first = await once();
    expect(asked.count).toBeLessThanOrEqual(searchCost(job));
    const { check, rules, bestRule, rope, generations } = first;
    const losses = new Map(rules.map(({ name, loss }) => [name, loss]));
    expect(losses.get(bestRule)).toBe(Math.min(...losses.values()));
    expect(generations.at(-1)!.loss).toBeLessThan(losses.get(bestRule)!);
    expect(check.beyond.verdict).toBe("lower");
    const off = distance({ stretch: rope.longFactor, attentionFactor: rope.attentionFactor! });
    const rule = job.space.rules.find(({ name }) => name === bestRule)!;
    expect(check.beyond.mean).toBeCloseTo(off - distance(rule.candidate), 10);
    const none = job.space.rules[0]!;
    expect(check.within.mean).toBeCloseTo((off - distance(none.candidate)) / 10, 10);
    expect(check.losses.map(({ name }) => name)).toEqual([...losses.keys(), "searched"]);
    const before = asked.count;
    expect(await once()).toEqual(first);
    expect(asked.count).toBe(before);
  });

  test("stops when it is told to, and goes on from there", async () => {
    const files = memoryRunFiles();
    const open = () => openRun(files, { kind: "search", identity: {} });
    const asked = { count: 0 };
    const controller = new AbortController();
    const run = await open();
    const stopped = runSearch(modelOf(asked), job, run, {
      signal: controller.signal,
      onProgress: ({ done }) => done >= 20 && controller.abort(new Error("enough")),
    });
    await expect(stopped).rejects.toThrow("enough");
    const kept = run.rows.length;
    expect(kept).toBeGreaterThan(0);
    await run.close();
    const again = await open();
    const resumed = await runSearch(modelOf({ count: 0 }), job, again);
    await again.close();
    const whole = await openRun(memoryRunFiles(), { kind: "search", identity: {} });
    expect(resumed).toEqual(await runSearch(modelOf({ count: 0 }), job, whole));
    await whole.close();
  });
});

describe("longhand search", () => {
  let root: string;
  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), "longhand-search-"));
    writeFileSync(join(root, "text.txt"), plainWords(600));
    writeTinyModel(join(root, "tiny"));
  });
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  test("prints one document, and settings that score takes and that lose what the search says", () => {
    const text = join(root, "text.txt");
    const out = join(root, "run");
    const sizes = ["--windows", "1", "--check", "2", "--generations", "2", "--children", "4"];
    const words = [
      "search",
      join(root, "tiny"),
      "--text",
      text,
      "--target",
      "128",
      ...sizes,
      "--threads",
      "1",
      "--out",
      out,
    ];
    const { status, stdout, stderr } = longhand([...words, "--json"]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const document = JSON.parse(stdout);
    expect(document.trainedLength).toBe(64);
    expect(document.check.windows).toBe(2);
    const parameters = readFileSync(join(out, "rope_parameters.json"), "utf8");
    expect(JSON.parse(parameters)).toEqual(document.ropeParameters);
    const lossUnder = (scaling: string): number => {
      const options = ["--text", text, "--length", "128", "--scaling", scaling, "--threads", "1", "--json"];
      const scored = longhand(["score", join(root, "tiny"), ...options]);
      expect(scored.status).toBe(0);
      return JSON.parse(scored.stdout).meanNegativeLogLikelihood;
    };
    // The window that was searched on is the first of the text.
    expect(lossUnder(parameters.trim())).toBeCloseTo(document.generations.at(-1).loss, 5);
    // A rule's candidate is that rule.
    const rule = document.rules.find(({ name }: { name: string }) => name === "yarn:2");
    expect(lossUnder("yarn:2")).toBeCloseTo(rule.loss, 5);
    // Again: everything is there.
    const again = longhand(words);
    expect(again.status).toBe(0);
    expect(again.stdout).toContain("windows that the search did not see");
  });

  test("says what it wants of a model and a text", () => {
    const text = join(root, "text.txt");
    const { status, stderr } = longhand(["search", join(root, "tiny"), "--text", text, "--target", "64"]);
    expect({ status, stderr }).toEqual({
      status: 2,
      stderr: "longhand search: expected a target past the trained length of 64, got 64; nothing is to be stretched\n",
    });
    const long = longhand(["search", join(root, "tiny"), "--text", text, "--target", "100000"]);
    expect(long.stderr).toContain("for one window of the target length");
  });
});
