// longhand diff's mathematics: the divergences of engines that are known from their sources, each with its numbers.
// Anchors are from outside: the papers' formulas by hand, maintainers' printed values, engines' own code.

import { describe, expect, test } from "vitest";
import { diffText } from "../../src/advice/chart/diff-text.ts";
import { diffDialects, diffEngines, type EngineDiff } from "../../src/advice/diff.ts";
import { alibiKeyBias, alibiSlopes } from "../../src/encodings/alibi.ts";
import { fope } from "../../src/encodings/fope.ts";
import { computeDialect, type Dialect } from "../../src/encodings/rope/dialects/index.ts";
import { xposScales } from "../../src/encodings/xpos.ts";
import { describeHuggingFace } from "../../src/formats/huggingface/describe.ts";
import type { JsonObject } from "../../src/formats/huggingface/values.ts";

const shape = { hidden_size: 4096, num_hidden_layers: 2, num_attention_heads: 32, num_key_value_heads: 8 };
const qwen = (dict: JsonObject, more: JsonObject = {}): JsonObject => ({
  ...shape,
  model_type: "qwen3",
  head_dim: 128,
  max_position_embeddings: 131072,
  rope_theta: 1000000,
  rope_scaling: dict,
  ...more,
});
const yarn = (more: JsonObject = {}): JsonObject => ({
  rope_type: "yarn",
  factor: 4,
  original_max_position_embeddings: 32768,
  ...more,
});
const gptOss: JsonObject = {
  ...shape,
  model_type: "gpt_oss",
  head_dim: 64,
  max_position_embeddings: 131072,
  rope_theta: 150000,
  sliding_window: 128,
  rope_scaling: {
    ...yarn({ factor: 32, original_max_position_embeddings: 4096, beta_fast: 32, beta_slow: 1 }),
    truncate: false,
  },
};
const phi: JsonObject = {
  model_type: "phi3",
  hidden_size: 128,
  num_hidden_layers: 2,
  num_attention_heads: 8,
  max_position_embeddings: 131072,
  original_max_position_embeddings: 4096,
  rope_theta: 10000,
  rope_scaling: { type: "longrope", short_factor: [1, 1, 1, 1, 1, 1, 1, 1], long_factor: [1, 1, 2, 4, 8, 16, 32, 64] },
};

function of(
  config: JsonObject,
  between: readonly Dialect[],
  options: { target?: number; float32?: boolean } = {},
): EngineDiff {
  return diffEngines(describeHuggingFace(config), { between, ...options })[0]!;
}
const first = (diff: EngineDiff) => diff.disagreements[0]!;
const ours = "transformers-5" as const;

describe("engines disagree", () => {
  test("D1: exllamav2 ramps from the extended length: Qwen2.5's pair 40 turns 2.24 times too fast", () => {
    const diff = of(qwen(yarn()), ["exllamav2", ours], { target: 131072 });
    const [a, b] = (["exllamav2", ours] as const).map((dialect) => {
      const config = {
        headDim: 128,
        maxPositionEmbeddings: 131072,
        rope: { ropeType: "yarn", ropeTheta: 1e6, factor: 4, originalMaxPositionEmbeddings: 32768 },
      } as const;
      const made = computeDialect(dialect, config, { sequenceLength: 131072, maxModelLen: 131072 });
      return made.supported ? made.inverseFrequencies : new Float64Array();
    });
    expect(a![40]! / b![40]!).toBeCloseTo(2.24, 2);
    // By hand: up to pair 30 exllamav2 does not interpolate at all, so Δ = ω · 0.75 · (i − 23)/17, largest at 28.
    const { pair, position, pairs } = first(diff).frequencies!;
    expect(pair).toBe(28);
    expect(position).toBe(Math.floor(0.1 / (1e6 ** (-28 / 64) * 0.75 * (5 / 17))) + 1);
    // 24 … 39 of the true ramp, and those of 30 … 46 of the other: pairs 24 to 46.
    expect(pairs).toBe(23);
    expect(first(diff).scoreRatio).toBeNull();
  });

  test("D2: mlx-lm without attention_factor, without truncate, and with mscale_all_dim alone", () => {
    const given = of(qwen(yarn({ attention_factor: 1.5 })), ["mlx-lm", ours]);
    expect(first(given).scoreRatio).toBeCloseTo((0.1 * Math.log(4) + 1) ** 2 / 1.5 ** 2, 9);
    expect(first(of(gptOss, ["mlx-lm", ours])).frequencies!.pairs).toBe(9);
    const alone = of(qwen(yarn({ mscale_all_dim: 1 })), ["mlx-lm", ours]);
    expect(first(alone).scoreRatio).toBeCloseTo(1 / (0.1 * Math.log(4) + 1) ** 2, 9);
  });

  test("D3: longrope goes by the sequence, by the server, or not at all", () => {
    // Short input: transformers short, mlx-lm long; a server started for it (vLLM, llama.cpp) short.
    const short = of(phi, [ours, "mlx-lm", "vllm", "llama.cpp", "exllamav2"], { target: 1000 });
    expect(short.alike[0]).toEqual([ours, "vllm", "llama.cpp"]);
    // exllamav2 multiplies by 1 with the short list; the others by √(1 + ln 32 / ln 4096) on cos and sin.
    const exllama = short.engines.find(({ dialect }) => dialect === "exllamav2")!;
    expect([exllama.attentionFactor, short.engines[0]!.attentionFactor]).toEqual([1, expect.closeTo(1.1902380714, 9)]);
    expect(short.disagreements.find(({ between }) => between[1] === "mlx-lm")!.frequencies!.pairs).toBe(6);
    expect(of(phi, [ours, "mlx-lm", "vllm", "llama.cpp"], { target: 131072 }).disagreements).toEqual([]);
  });

  test("D4: ggml has no truncate false: gpt-oss's ramp is rounded, 27 % at pair 16", () => {
    const { frequencies } = first(of(gptOss, ["llama.cpp", ours]));
    expect(frequencies!.pairs).toBe(9);
    expect(frequencies!.position).toBeLessThan(1000);
  });

  test("D5: where the ramp has no width ggml makes a step, others a slope of a thousandth", () => {
    // beta_fast = beta_slow: low = floor, high = ceil of one number, and equal where it is whole.
    const reversed = qwen(yarn({ beta_fast: 1, beta_slow: 32 }));
    const flags = { ropeScaling: "yarn", ropeScale: 4, yarnOrigCtx: 32768, yarnBetaFast: 1, yarnBetaSlow: 32 } as const;
    const model = describeHuggingFace(reversed);
    const position = model.groups[0]!.position;
    if (position.kind !== "rope") throw new Error("test: expected a rotary group");
    const config = { headDim: 128, maxPositionEmbeddings: 131072, rope: position.rope };
    const theirs = computeDialect("llama.cpp", config, { sequenceLength: 1, llamaCpp: flags });
    const plain = computeDialect(ours, config, { sequenceLength: 1 });
    if (!theirs.supported || !plain.supported) throw new Error("test: expected both to compute");
    // Pair 0 is kept in ggml's step and divided by 4 on transformers' reversed slope.
    expect(theirs.inverseFrequencies[0]! / plain.inverseFrequencies[0]!).toBeCloseTo(4, 9);
  });

  test("D6: ggml's iterated float32 angles: cosines off by a hundredth at 131,071, as float32's own are not", () => {
    const rope = { ropeType: "default", ropeTheta: 1e4 } as const;
    const config = { headDim: 128, maxPositionEmbeddings: 131072, rope };
    const worst = (dialect: Dialect) => {
      const made = computeDialect(dialect, config, { sequenceLength: 131072, float32: true });
      const exact = computeDialect(dialect, config, { sequenceLength: 131072 });
      if (!made.supported || !exact.supported) throw new Error("test: expected both to compute");
      const [a, b] = [made.tables([131071]).cos, exact.tables([131071]).cos];
      return Math.max(...Array.from(a, (x, i) => Math.abs(x - b[i]!)));
    };
    expect(worst("llama.cpp")).toBeGreaterThan(5e-3);
    expect(worst("llama.cpp")).toBeLessThan(5e-2);
    expect(worst(ours)).toBeLessThan(5e-3);
  });

  test("D7: llama.cpp overwrites a given attention factor under YaRN", () => {
    const { scoreRatio } = first(of(qwen(yarn({ attention_factor: 2 })), ["llama.cpp", ours]));
    expect(scoreRatio).toBeCloseTo((0.1 * Math.log(4) + 1) ** 2 / 4, 6);
  });

  test("D8: vLLM's ntk slows the fastest pair too, and its dynamic stands still", () => {
    const ntk = of(
      {
        ...shape,
        model_type: "llama",
        max_position_embeddings: 4096,
        rope_scaling: { rope_type: "ntk", factor: 4 },
        rope_theta: 10000,
      },
      ["vllm", "exllamav2"],
    );
    // 4^(−2/128) at pair 0: off by 0.1 rad from position 5 on.
    expect(first(ntk).frequencies).toMatchObject({ pair: 0, position: 5 });
    expect(first(ntk).frequencies!.ratio).toBeCloseTo(4 ** (-2 / 128), 9);
    const dynamic = {
      ...shape,
      model_type: "llama",
      max_position_embeddings: 2048,
      rope_theta: 10000,
      rope_scaling: { rope_type: "dynamic", factor: 2 },
    };
    const diff = of(dynamic, [ours, "vllm", "vllm-0.11", "sglang", "mlx-lm", "exllamav3"], { target: 4096 });
    expect(diff.alike).toEqual([[ours, "vllm-0.11", "sglang", "mlx-lm"], ["vllm"]]);
    expect(diff.engines.find(({ dialect }) => dialect === "exllamav3")!.reason).toMatch(/Unknown rope_type/);
    // A short sequence: transformers does not stretch, vLLM 0.11 and SGLang do.
    expect(of(dynamic, [ours, "vllm", "vllm-0.11", "sglang"], { target: 1000 }).alike).toEqual([
      [ours, "vllm"],
      ["vllm-0.11", "sglang"],
    ]);
  });

  test("D9: the paper's ramp runs on turns, the code's on the index of a pair", () => {
    const { frequencies } = first(of(qwen(yarn()), ["papers", "yarn-repository"]));
    expect(frequencies!.pairs).toBeGreaterThan(10);
    expect(frequencies!.position).toBeLessThan(2000);
  });

  test("D10: FoPE's padding, xPos's centre, ALiBi by key or by distance: what changes, and what does not", () => {
    const identity = [1, 0, 0, 1];
    const padded = (padding: "zero-frequency" | "ones") =>
      fope({
        headDim: 8,
        trainedLength: 512,
        cosCoefficients: identity,
        sinCoefficients: identity,
        padding,
      }).queryTables([1], 1);
    // The authors' code pads sines with 1 too: channels past the mixed ones turn by 45 degrees and grow by √2.
    expect([...padded("zero-frequency").sin].slice(2)).toEqual([0, 0]);
    expect([...padded("ones").sin].slice(2)).toEqual([1, 1]);
    // xPos: q's scale at p − c times k's inverse at p' − c does not know the centre c.
    const scale = xposScales(64)[5]!;
    const score = (c: number) => scale ** ((100 - c) / 512) * scale ** (-(40 - c) / 512);
    expect(score(0)).toBeCloseTo(score(2048), 12);
    // ALiBi by key position is the bias by distance and a constant a query, which softmax takes away.
    const slopes = alibiSlopes({ numHeads: 4 });
    const byKey = alibiKeyBias(slopes, [0, 1, 2, 3]);
    const byDistance = [0, 1, 2, 3].map((key) => -slopes[1]! * (3 - key));
    const differences = byDistance.map((bias, key) => byKey[4 + key]! - bias);
    for (const difference of differences) expect(difference).toBeCloseTo(differences[0]!, 12);
  });

  test("D11: DeepSeek's softmax factor 1.8739 is there in every engine but transformers 4's V2", () => {
    const deepseek = (modelType: string): JsonObject => ({
      model_type: modelType,
      hidden_size: 7168,
      num_hidden_layers: 2,
      num_attention_heads: 128,
      qk_nope_head_dim: 128,
      qk_rope_head_dim: 64,
      v_head_dim: 128,
      max_position_embeddings: 163840,
      rope_theta: 10000,
      rope_scaling: {
        type: "yarn",
        factor: 40,
        original_max_position_embeddings: 4096,
        mscale: 1,
        mscale_all_dim: 1,
        beta_fast: 32,
        beta_slow: 1,
      },
    });
    const v3 = of(deepseek("deepseek_v3"), [
      ours,
      "transformers-4",
      "vllm",
      "vllm-0.11",
      "sglang",
      "llama.cpp",
      "mlx-lm",
    ]);
    expect(v3.disagreements).toEqual([]);
    for (const { dialect, softmaxFactor } of v3.engines) expect(softmaxFactor, dialect).toBeCloseTo(1.8738542, 6);
    const v2 = of(deepseek("deepseek_v2"), [ours, "transformers-4"]);
    expect(first(v2).frequencies).toBeNull();
    expect(first(v2).scoreRatio).toBeCloseTo(1.8738542, 6);
  });

  test("D12: an attention factor on cos and sin enters a score twice", () => {
    const [row] = of(qwen(yarn()), [ours, "vllm"]).engines;
    expect(row!.attentionFactor).toBeCloseTo(1.13862944, 8);
    expect(row!.scoreFactor).toBeCloseTo(1.13862944 ** 2, 7);
  });
});

describe("diffEngines", () => {
  test("a plain model is computed alike by all", () => {
    const [diff] = diffEngines(describeHuggingFace(qwen({ rope_type: "default" })));
    expect(diff!.alike).toEqual([diffDialects]);
    expect(diff!.disagreements).toEqual([]);
  });

  test("a pair that one engine does not turn is told as such, and the text says it", () => {
    const proportional: JsonObject = {
      ...shape,
      model_type: "gemma4_text",
      head_dim: 64,
      global_head_dim: 128,
      max_position_embeddings: 8192,
      sliding_window: 512,
      layer_types: ["sliding_attention", "full_attention"],
      rope_parameters: {
        sliding_attention: { rope_type: "default", rope_theta: 10000 },
        full_attention: { rope_type: "proportional", rope_theta: 1000000, partial_rotary_factor: 0.25 },
      },
    };
    const model = describeHuggingFace(proportional);
    const diffs = diffEngines(model, { between: [ours, "exllamav2"] });
    expect(diffs.map(({ layerType }) => layerType)).toEqual(["sliding_attention", "full_attention"]);
    expect(diffs[0]!.disagreements).toEqual([]);
    expect(diffs[1]!.disagreements[0]!.frequencies!.pairs).toBeGreaterThan(0);
    const text = diffText(model, diffs);
    expect(text).toContain("They agree.");
    expect(text).toMatch(/A and B: \d+ pairs differ, pair \d+ most/);
    for (const line of text.split("\n")) expect(line.length).toBeLessThanOrEqual(80);
  });

  test("models without rotation have nothing to compare, and wrong words are named", () => {
    const gpt2 = describeHuggingFace({ model_type: "gpt2", n_embd: 64, n_layer: 2, n_head: 2, n_positions: 128 });
    expect(diffEngines(gpt2)).toEqual([]);
    expect(diffText(gpt2, [])).toContain("No layer rotates");
    expect(() => diffEngines(gpt2, { between: [ours] })).toThrow(/two engines or more, got transformers-5/);
    expect(() => diffEngines(gpt2, { between: [ours, "tgi" as Dialect] })).toThrow(/got "tgi"/);
    expect(() => diffEngines(gpt2, { target: 1.5 })).toThrow(/target/);
  });
});
