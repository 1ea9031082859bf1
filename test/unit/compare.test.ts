import { describe, expect, test } from "vitest";
import { compareTable } from "../../src/cli/compare-table.ts";
import {
  byteCounts,
  type CompareIdentity,
  type CompareResult,
  compareCost,
  compareMemory,
  compareResult,
  compareRowOrder,
  compareSteps,
  compareVerdict,
  needsShort,
  parseEvaluationStrategy,
  passOperations,
  placeWindows,
  type RunRow,
  stepPasses,
  windowTokens,
} from "../../src/evaluation/index.ts";
import { byteTokenizer, describeHuggingFace } from "../../src/formats/index.ts";
import { random } from "../../src/tensor/index.ts";

const trainedLength = 64;
const target = 256;
const llama = describeHuggingFace({
  model_type: "llama",
  hidden_size: 64,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  max_position_embeddings: trainedLength,
});
const strategy = (name: string) => parseEvaluationStrategy(name, { trainedLength, target });

/** Rows of made-up losses: of each window a level of its own, of each strategy a function of the position. */
function made(
  losses: Record<string, (position: number) => number>,
  { windows = 4, noise = 0.01, needles = 0 }: { windows?: number; noise?: number; needles?: number } = {},
): { identity: CompareIdentity; rows: RunRow[]; result: CompareResult } {
  const names = Object.keys(losses);
  const identity: CompareIdentity = {
    protocol: 1,
    model: "made-up",
    trainedLength,
    target,
    bos: 1,
    texts: [{ name: "text", sha256: "", tokens: 10_000 }],
    windows: Array.from({ length: windows }, (_, i) => ({ text: 0, start: i * target })),
    strategies: names.map((name) => ({
      name,
      encoding: { scaling: { kind: "none" } },
      reading: { kind: name.startsWith("window") ? "windowed" : "whole" },
      short: "same-passes",
    })),
    needles,
    needleLengths: needles === 0 ? [] : [trainedLength, target],
    haystack: "generated",
    seed: 0,
  };
  const stream = random(5);
  const rows: RunRow[] = [];
  for (let window = 0; window < windows; window++) {
    const level = 0.5 * stream.normal();
    for (const name of names) {
      const list = Array.from(
        { length: target - 1 },
        (_, i) => 3 + level + losses[name]!(i + 1) + noise * stream.normal(),
      );
      rows.push({ key: `loss/${name}/${window}`, kind: "loss", strategy: name, window, length: target, losses: list });
    }
  }
  return { identity, rows, result: compareResult(identity, rows) };
}

const flat = () => 0;
const breaks = (position: number) => (position < trainedLength ? 0 : 2);
const forgets = (position: number) => (position < trainedLength ? 0 : 0.2);

describe("the verdict", () => {
  test("names the extension that reads to the target, and its price", () => {
    const { result } = made({ none: breaks, "yarn:4": () => 0.05, window: forgets });
    expect(result.best).toBe("yarn:4");
    const [first, ...rest] = compareVerdict(result);
    expect(first).toMatch(/^yarn:4 reads to 256 tokens; it costs 0\.05\d nats \(0\.0[45]\d to 0\.05\d\) within 64\.$/);
    expect(rest.join(" ")).toMatch(
      /Unscaled, the model does not read past 64; beyond 64 it loses to forgetting by 1\.80/,
    );
  });

  test("prefers, among those that no interval tells apart, the one that costs nothing", () => {
    const { result } = made({
      none: breaks,
      "yarn:4": (position) => (position < trainedLength ? 0.05 : 0),
      "dynamic:4": flat,
      "linear:4": (position) => (position < trainedLength ? 0 : 0.1),
      window: forgets,
    });
    const verdict = compareVerdict(result);
    expect(verdict[0]).toMatch(/^dynamic:4 reads to 256 tokens; what it costs within 64 is a tie with nothing\.$/);
    expect(verdict[1]).toMatch(/^yarn:4 ties with the best beyond 64; it costs 0\.05/);
    expect(verdict[2]).toMatch(/^linear:4 .* is 0\.1\d nats behind (dynamic|yarn):4 beyond 64\.$/);
  });

  test("calls an extension that loses to simply forgetting that, and says what to do when nothing beats it", () => {
    const { result } = made({ none: breaks, "linear:4": () => 0.6, "ntk:4": forgets, window: forgets });
    const verdict = compareVerdict(result).join("\n");
    expect(verdict).toMatch(
      /Nothing beats simply forgetting \(the last 64 tokens\); ntk:4 ties with it: keep the last 64/,
    );
    expect(verdict).toMatch(/linear:4 loses to simply forgetting \(the last 64 tokens\) by 0\.40 nats/);
  });

  test("says how far a strategy reads that breaks on the way", () => {
    const { result } = made({ none: breaks, "yarn:2": (position) => (position < 128 ? 0 : 3), window: forgets });
    const yarn = result.strategies.find((one) => one.strategy === "yarn:2")!;
    expect(yarn.effectiveLength).toEqual({ definition: "loss", length: 128, atLeast: false });
    expect(yarn.beatsForgettingTo).toMatchObject({ length: 128 });
  });

  test("of one window claims nothing", () => {
    const { result } = made({ none: breaks, "yarn:4": flat, window: forgets }, { windows: 1 });
    const verdict = compareVerdict(result);
    expect(verdict[0]).toMatch(/One window gives no interval/);
    expect(verdict.join(" ")).not.toMatch(/loses|beats|reads/);
  });

  test("of equal strategies is a tie", () => {
    const { result } = made({ none: flat, "yarn:4": flat, window: flat });
    const verdict = compareVerdict(result).join(" ");
    expect(verdict).toMatch(/yarn:4 ties with it/);
    expect(verdict).toMatch(/Unscaled, the model does no better than forgetting \(a tie\)/);
  });

  test("says which passkeys were found, and that none can be when none is", () => {
    const { identity, rows } = made({ none: breaks, "yarn:4": flat, window: forgets }, { needles: 2 });
    const asked = (exact: (strategy: string, length: number) => number): RunRow[] =>
      ["none", "yarn:4", "window"].flatMap((name) =>
        [trainedLength, target].flatMap((length) =>
          [0, 1].map((needle) => ({
            key: `passkey/${name}/${length}/${needle}`,
            kind: "passkey",
            strategy: name,
            needle,
            length,
            exact: exact(name, length),
            rank: 1,
            candidates: 10,
          })),
        ),
      );
    const some = compareResult(identity, [
      ...rows,
      ...asked((name, length) => (name === "yarn:4" || length === 64 ? 1 : 0)),
    ]);
    expect(some.complete).toBe(true);
    expect(compareVerdict(some).join(" ")).toContain(
      "Passkeys found at 256: none 0 of 2, yarn:4 2 of 2, window 0 of 2.",
    );
    const never = compareResult(identity, [...rows, ...asked(() => 0)]);
    expect(compareVerdict(never).join(" ")).toContain("this model does not answer such questions");
  });

  test("reports a strategy whose losses were no numbers, and compares the rest", () => {
    const { identity, rows } = made({ none: breaks, "yarn:4": flat, window: forgets });
    const broken = rows.map((row) =>
      row.strategy === "yarn:4"
        ? { key: row.key, kind: "loss", strategy: "yarn:4", error: "expected every loss" }
        : row,
    );
    const result = compareResult(identity, broken);
    expect(result.complete).toBe(true);
    expect(compareVerdict(result).join(" ")).toMatch(/yarn:4 gave losses that are no numbers: expected every loss/);
    expect(result.rows.some((row) => row.strategy === "yarn:4")).toBe(false);
  });
});

describe("the result", () => {
  test("pairs on the windows that both have, while a run goes on", () => {
    const { identity, rows } = made({ none: flat, "yarn:4": () => 0.1, window: forgets });
    const some = rows.filter((row) => row.strategy !== "yarn:4" || (row.window as number) < 2);
    const result = compareResult(identity, some);
    expect(result).toMatchObject({ windows: 2, plannedWindows: 4, complete: false });
    const yarn = result.strategies.find((one) => one.strategy === "yarn:4")!;
    expect(yarn.againstUnscaled).toMatchObject({ windows: 2 });
    expect(yarn.againstUnscaled!.mean).toBeCloseTo(0.1, 2);
    expect(compareResult(identity, []).strategies[0]).toMatchObject({ windows: 0, beyond: null });
    expect(compareVerdict(compareResult(identity, []))).toEqual([]);
  });

  test("as a table has a line a strategy, marks ties, and columns that cover every position once", () => {
    const { result } = made({ none: breaks, "yarn:4": () => 0.05, window: forgets });
    const paint = (text: string) => text;
    const palette = { bold: paint, dim: paint, good: paint, bad: paint, warn: paint, mark: paint };
    const lines = compareTable(result, palette).split("\n");
    expect(lines[0]).toMatch(/^loss in nats at +1–63 +–90 +–127 +–180 +–255 +short cost +forgetting +reads to$/);
    expect(lines[2]).toMatch(/^yarn:4 .* \+0\.05\d +−0\.1\d\d +256$/);
    expect(lines[3]).toMatch(/^window .* tie /);
  });
});

describe("the plan", () => {
  test("spreads windows over texts, each giving its share", () => {
    expect(placeWindows([1000], 100, 4).map(({ start }) => start)).toEqual([0, 200, 500, 700]);
    expect(placeWindows([1000, 150, 40], 100, 4)).toEqual([
      { text: 0, start: 0 },
      { text: 1, start: 0 },
      { text: 0, start: 300 },
      { text: 0, start: 600 },
    ]);
    expect(placeWindows([250], 100, 8).length).toBe(2);
    expect(() => placeWindows([99, 20], 100, 8)).toThrow(/at least 100 tokens, for one window.*got 99; give more text/);
  });

  test("puts BOS in the place of a text token", () => {
    expect([...windowTokens([5, 6, 7, 8], 1, 3, 1)]).toEqual([1, 6, 7]);
    expect([...windowTokens([5, 6, 7, 8], 1, 3, null)]).toEqual([6, 7, 8]);
  });

  const settings = {
    target,
    trainedLength,
    bos: 1,
    strategies: ["none", "dynamic:4", "yarn:4", "dynamic:4@growing", "drop+temperature", "window"].map(strategy),
    places: placeWindows([10_000], 255, 3),
    needles: 2,
    needleLengths: [trainedLength, target],
  };

  test("has a step for each row, every strategy of a window before the next window", () => {
    const steps = compareSteps(settings, llama);
    expect(new Set(steps.map(({ key }) => key)).size).toBe(steps.length);
    const kinds = steps.map(({ kind }) => kind);
    // 6 strategies, 2 with short sequences of their own, on 3 windows; 5 strategies, 2 lengths, 2 needles.
    expect([kinds.filter((k) => k === "loss").length, kinds.filter((k) => k === "short").length]).toEqual([18, 6]);
    expect(kinds.filter((k) => k === "passkey").length).toBe(20);
    expect(steps.slice(0, 8).map(({ key }) => key)).toEqual([
      "loss/none/0",
      "loss/dynamic:4/0",
      "loss/yarn:4/0",
      "loss/dynamic:4@growing/0",
      "loss/drop+temperature/0",
      "loss/window/0",
      "short/dynamic:4/0",
      "short/drop+temperature/0",
    ]);
  });

  test("runs short sequences where the table depends on the length, and nowhere else", () => {
    const own = settings.strategies.filter((one) => needsShort(one, settings, llama)).map(({ name }) => name);
    expect(own).toEqual(["dynamic:4", "drop+temperature"]);
    expect(needsShort(strategy("self-extend:4"), settings, llama)).toBe(false);
    expect(needsShort(strategy("dynamic:4"), { target: 64, trainedLength: 64 }, llama)).toBe(false);
  });

  test("counts what is fed: twice for the windowed baseline, each block's prefix for growing tables", () => {
    const tokens = (name: string) =>
      stepPasses({ kind: "loss", key: "", strategy: strategy(name), window: 0 }, settings).reduce((a, b) => a + b, 0);
    expect(tokens("yarn:4")).toBe(256);
    expect(tokens("window")).toBe(64 * 7);
    expect(tokens("dynamic:4@growing:96")).toBe(64 + 160 + 256);
  });

  test("estimates work that grows with the square of the length, less under a sliding window", () => {
    const [short, long] = [1000, 100_000].map((n) => passOperations(llama, n));
    expect(long! / short!).toBeGreaterThan(1000);
    const sliding = { ...llama, groups: llama.groups.map((group) => ({ ...group, slidingWindow: 128 })) };
    expect(passOperations(sliding, 100_000)).toBeLessThan(long! / 10);
  });

  // Seconds on one thread of a Xeon with AVX-512, measured in turns, the least of three.
  test.each([
    ["longhand-rope", { layers: 5, heads: 4, headDim: 32, parameters: 1.04e6 }, 1024, 0.271 / 0.122],
    ["longhand-rope", { layers: 5, heads: 4, headDim: 32, parameters: 1.04e6 }, 2048, 0.633 / 0.3],
    ["longhand-rope", { layers: 5, heads: 4, headDim: 32, parameters: 1.04e6 }, 4096, 1.709 / 0.732],
    ["SmolLM2-135M", { layers: 30, heads: 9, headDim: 64, parameters: 134.5e6 }, 1024, 5.185 / 4.544],
    ["SmolLM2-135M", { layers: 30, heads: 9, headDim: 64, parameters: 134.5e6 }, 2048, 12.543 / 10.348],
  ])("knows that Self-Extend is slower by about what was measured: %s, %o, %i tokens", (_, sizes, tokens, measured) => {
    const model = describeHuggingFace({
      model_type: "llama",
      hidden_size: sizes.heads * sizes.headDim,
      num_hidden_layers: sizes.layers,
      num_attention_heads: sizes.heads,
      max_position_embeddings: 256,
    });
    const known = { ...model, numParameters: sizes.parameters };
    const own = passOperations(known, tokens);
    expect(passOperations(known, tokens, strategy("yarn:4"))).toBe(own);
    const ratio = passOperations(known, tokens, strategy("self-extend:4")) / own;
    expect(ratio / measured).toBeGreaterThan(0.8);
    expect(ratio / measured).toBeLessThan(1.25);
  });

  test("counts Self-Extend's work in a job's cost, and not in layers that see a window only", () => {
    const steps = (name: string) => ({ ...settings, strategies: [strategy(name)], needles: 0 });
    const cost = (name: string, of = llama) => compareCost({ settings: steps(name), model: of }, 1);
    expect(cost("self-extend:4").tokens).toBe(cost("none").tokens);
    expect(cost("self-extend:4").seconds).toBeGreaterThan(cost("none").seconds);
    const sliding = { ...llama, groups: llama.groups.map((group) => ({ ...group, slidingWindow: 32 })) };
    expect(cost("self-extend:4", sliding).seconds).toBe(cost("none", sliding).seconds);
  });

  test("estimates memory: weights and cache, and both once more for Self-Extend's program", () => {
    const [weights, cache] = [1e9, 2 * 2 * 64 * 4 * target];
    const plain = compareMemory(llama, weights, settings);
    const moved = { target, strategies: [...settings.strategies, strategy("self-extend:4")] };
    expect(plain).toBe(weights + cache + 250e6);
    expect(compareMemory(llama, weights, moved)).toBe(plain + weights + cache + 64 * 2 ** 20);
  });

  test("is the order in which rows of parts are merged", () => {
    const { identity } = made({ none: flat, "dynamic:4": flat, "yarn:4": flat, window: flat }, { windows: 3 });
    const fields = (key: string): RunRow => {
      const [kind, name, ...rest] = key.split("/");
      const numbers = rest.map(Number);
      return kind === "passkey"
        ? { key, kind, strategy: name!, length: numbers[0]!, needle: numbers[1]! }
        : { key, kind: kind!, strategy: name!, window: numbers[0]! };
    };
    const four = { ...settings, strategies: ["none", "dynamic:4", "yarn:4", "window"].map(strategy) };
    const rows = compareSteps(four, llama).map(({ key }) => fields(key));
    const shuffled = random(1)
      .shuffle([...rows])
      .sort(compareRowOrder(identity));
    expect(shuffled.map(({ key }) => key)).toEqual(rows.map(({ key }) => key));
  });
});

test("bytes of tokens are those of the text", () => {
  const tokenizer = byteTokenizer();
  const counts = byteCounts(tokenizer, tokenizer.encode("長い text", { addSpecial: false }));
  expect(counts.reduce((a, b) => a + b, 0)).toBe(11);
});
