import { describe, expect, test } from "vitest";
import {
  chosenStrategies,
  defaultStrategies,
  factorFor,
  factorList,
  lossPasses,
  parseEvaluationStrategy,
  splitStrategies,
} from "../../src/evaluation/index.ts";
import { describeHuggingFace, openModel } from "../../src/formats/index.ts";
import { checkpoint } from "../support/checkpoints.ts";

const llama = describeHuggingFace({
  model_type: "llama",
  hidden_size: 64,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  max_position_embeddings: 512,
});
const lengths = { trainedLength: 512, target: 2048 };
const names = (set: { readonly strategies: readonly { readonly name: string }[] }) =>
  set.strategies.map(({ name }) => name);
const why = (set: ReturnType<typeof defaultStrategies>, name: string) =>
  set.leftOut.find((one) => one.name.split(", ").includes(name))?.why;

describe("the default strategies", () => {
  test("of a rotary model are the scalings at the factor of the target, and the baselines", () => {
    const set = defaultStrategies(llama, lengths);
    expect(names(set)).toEqual(["none", "linear:4", "ntk:4", "dynamic:4", "yarn:4", "window"]);
    expect(why(set, "self-extend")).toMatch(/a second time.*--strategies all/);
    expect(why(set, "longrope")).toMatch(/no long and short factors/);
    expect(why(set, "drop")).toMatch(/--strategies all/);
  });

  test("all of them, at several factors", () => {
    const set = defaultStrategies(llama, lengths, { all: true, factors: [2, 4] });
    expect(names(set)).toEqual([
      "none",
      ...[2, 4].flatMap((f) => [
        ...["linear", "ntk", "ntk-by-parts", "dynamic", "yarn", "llama3"].map((name) => `${name}:${f}`),
        `dynamic:${f}@growing`,
      ]),
      // (L − W)·G + W reaches 2 and 4 times L, with W = 128.
      "self-extend:3:128",
      "self-extend:5:128",
      "drop",
      "drop+temperature",
      "window",
    ]);
  });

  test("keep the file's own scaling beside the unscaled model, longrope too", () => {
    const phi = describeHuggingFace({
      model_type: "phi3",
      hidden_size: 64,
      num_hidden_layers: 2,
      num_attention_heads: 4,
      max_position_embeddings: 2048,
      original_max_position_embeddings: 512,
      rope_scaling: { type: "longrope", short_factor: [1, 1, 1, 1, 1, 1, 1, 1], long_factor: [1, 2, 3, 4, 5, 6, 7, 8] },
    });
    const set = defaultStrategies(phi, lengths);
    expect(names(set).slice(0, 2)).toEqual(["as-is", "none"]);
    expect(why(set, "longrope")).toBeUndefined();
  });

  test("within the trained length leave every extension out", () => {
    const set = defaultStrategies(llama, { trainedLength: 512, target: 512 });
    expect(names(set)).toEqual(["none"]);
    expect(why(set, "yarn")).toMatch(/within the trained length of 512/);
    expect(why(set, "window")).toMatch(/nothing to forget/);
  });

  test("of other sites are what applies to them, with the reason for the rest", async () => {
    const set = async (family: string, target: number) => {
      const model = await openModel(checkpoint(family).folder);
      return defaultStrategies(model, { trainedLength: model.trainedLength ?? 64, target }, { all: true });
    };
    const bloom = await set("bloom", 256);
    expect(names(bloom)).toEqual(["none", "drop", "drop+temperature", "window"]);
    expect(why(bloom, "yarn")).toBe("they scale rotary angles, and the model has ALiBi");
    expect(why(bloom, "self-extend")).toBe("it moves rotary positions, and the model has ALiBi");
    expect(why(await set("mistral", 256), "self-extend")).toMatch(/every rotary layer sees a window only/);
    const gpt2 = await set("gpt2", 4096);
    expect(names(gpt2)).not.toContain("none");
    expect(why(gpt2, "none")).toMatch(/learned positions and nothing to put at a later one/);
    const t5 = await openModel(checkpoint("t5").folder);
    expect(() => defaultStrategies(t5, lengths)).toThrow(/expected a decoder alone.*whose encoder reads one text/);
  });

  test("of proportional rotary positions are none and linear", () => {
    const gemma = describeHuggingFace({
      model_type: "llama",
      hidden_size: 64,
      num_hidden_layers: 2,
      num_attention_heads: 4,
      max_position_embeddings: 512,
      rope_parameters: { rope_type: "proportional", rope_theta: 10000, partial_rotary_factor: 0.5 },
    });
    const set = defaultStrategies(gemma, lengths);
    expect(names(set)).toEqual(["none", "linear:4", "window"]);
    expect(why(set, "yarn:4")).toMatch(/stood still in training/);
  });

  test.each([
    [8192, 12_288, 1.5],
    [8192, 32_768, 4],
    [8192, 10_000, 1.221],
    [512, 514, 1.004],
  ])("trained %d, target %d: a factor of %d reaches it", (trained, target, factor) => {
    expect(factorFor(trained, target)).toBe(factor);
    expect(factor * trained).toBeGreaterThanOrEqual(target);
  });
});

describe("names of strategies", () => {
  const parse = (text: string) => parseEvaluationStrategy(text, lengths);

  test("are those of --scaling, and those that say how a window is read", () => {
    expect(parse("yarn:4")).toEqual({
      name: "yarn:4",
      encoding: { scaling: { kind: "short", name: "yarn", factor: 4 } },
      reading: { kind: "whole" },
    });
    expect(parse('{"rope_type":"yarn","factor":4}').encoding.scaling).toMatchObject({ kind: "parameters" });
    expect(parse("dynamic:4@growing:64").reading).toEqual({ kind: "growing", block: 64 });
    expect(parse("window:100:10").reading).toEqual({ kind: "windowed", window: 100, stride: 10 });
    expect(parse("drop").encoding).toEqual({ scaling: { kind: "drop" } });
    expect(parse("drop+temperature").encoding).toEqual({ drop: true });
    expect(parse("drop+temperature:0.4").encoding).toEqual({ drop: { coefficient: 0.4 } });
  });

  test.each([
    ["yarm:4", /nearest: yarn/],
    ["yarn", /yarn:FACTOR/],
    ["window:4:4", /stride from 1 to below it/],
    ["window:1", /at least 2 tokens/],
    ["dynamic:4@growing:0", /block of at least 1/],
    ["dynamic:4@whole", /factor above 0/],
    ["drop+heat", /expected one of/],
  ])("%s is refused", (text, message) => {
    expect(() => parse(text)).toThrow(message);
  });

  test("without a trained length windows and growing tables are refused", () => {
    const none = { trainedLength: null, target: 100 };
    expect(() => parseEvaluationStrategy("window", none)).toThrow(/give --trained-length/);
    expect(() => parseEvaluationStrategy("dynamic:2@growing", none)).toThrow(/give --trained-length/);
    expect(parseEvaluationStrategy("window:10", none).reading).toMatchObject({ window: 10 });
  });

  test("are split at commas outside objects", () => {
    expect(splitStrategies(' none,{"a":"}, {","b":[1,2]} , yarn:4,')).toEqual([
      "none",
      '{"a":"}, {","b":[1,2]}',
      "yarn:4",
    ]);
    expect(splitStrategies('{"a":"\\"}"},x')).toEqual(['{"a":"\\"}"}', "x"]);
    expect(splitStrategies("")).toEqual([]);
  });
});

describe("passes over a window", () => {
  test.each(["none", "window", "window:100:7", "dynamic:4@growing", "dynamic:4@growing:100"])(
    "of %s score every position once, from what stands before it",
    (name) => {
      const strategy = parseEvaluationStrategy(name, lengths);
      for (const length of [2, 100, 512, 513, 2048]) {
        const scored = lossPasses(strategy, length, lengths).flatMap(({ from, to, scored }) => {
          expect(scored).toBeGreaterThan(from);
          return Array.from({ length: to - scored }, (_, i) => scored + i);
        });
        expect(scored).toEqual(Array.from({ length: length - 1 }, (_, i) => i + 1));
      }
    },
  );

  test("of the windowed baseline show at least window − stride tokens and never more than the window", () => {
    const passes = lossPasses(parseEvaluationStrategy("window:100:30", lengths), 1000, lengths);
    for (const { from, to, scored } of passes.slice(1)) {
      expect(scored - from).toBeGreaterThanOrEqual(70);
      expect(to - from).toBe(100);
    }
  });
});

describe("a list of strategies", () => {
  const chosen = (list: string, factors?: number[]) => names(chosenStrategies(llama, lengths, list, factors));

  test("sweeps lists and ranges of factors, and has the baselines in it", () => {
    expect(chosen("yarn:2,4,8,ntk:3")).toEqual(["none", "yarn:2", "yarn:4", "yarn:8", "ntk:3", "window"]);
    // Of Self-Extend a number is a group's tokens; a factor is what the groups have to reach.
    expect(chosen("self-extend:4,8,self-extend:4:64")).toEqual([
      ...["none", "self-extend:4", "self-extend:8", "self-extend:4:64", "window"],
    ]);
    expect(chosen("self-extend")).toEqual(["none", "self-extend:5:128", "window"]);
    expect(chosen("self-extend", [2, 4])).toEqual(["none", "self-extend:3:128", "self-extend:5:128", "window"]);
    expect(chosen("yarn:2..8, linear")).toEqual(["none", "yarn:2", "yarn:4", "yarn:8", "linear:4", "window"]);
    expect(chosen("dynamic:2@growing:64,4@growing:64")).toEqual([
      "none",
      "dynamic:2@growing:64",
      "dynamic:4@growing:64",
      "window",
    ]);
    expect(chosen("yarn,ntk:8", [2, 4])).toEqual(["none", "yarn:2", "yarn:4", "ntk:8", "window"]);
  });

  test("refuses a factor without a name, and what is none", () => {
    expect(() => chosen("2,4")).toThrow(/--strategies: expected a name before a factor, as yarn:2,4,8, got "2"/);
    expect(() => chosen("window:128,256")).toThrow(/expected a name before a factor.* got "256"/);
    expect(() => chosen("yarn:4,none,8")).toThrow(/got "8"/);
    expect(() => chosen("yarn:8..2")).toThrow(/--strategies: expected factors above 0, as 2,4,8 or 2..16, got "8..2"/);
    expect(() => chosen("yarn:0")).toThrow(/expected factors above 0/);
    expect(() => factorList("0..8")).toThrow(/--factor: expected factors above 0/);
  });
});
