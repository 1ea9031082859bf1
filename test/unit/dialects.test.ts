// Where engines differ, case by case. Anchors are numbers from outside: computed from the papers' formulas by hand, or
// printed by the engines' maintainers. The engines' own values are in test/parity/dialects-engines.test.ts.

import { describe, expect, test } from "vitest";
import {
  compareDialects,
  computeDialect,
  type Dialect,
  type DialectContext,
  type DialectFrequencies,
  dialects,
  dropeFrequencies,
  ropeDialects,
  vllmMixedNtk,
} from "../../src/encodings/rope/dialects/index.ts";
import { computeRopeFrequencies } from "../../src/encodings/rope/scaling/index.ts";
import type { RopeConfig, RopeParameters } from "../../src/encodings/rope/scaling/parameters.ts";

const at = (headDim: number, maxPositionEmbeddings: number, rope: RopeParameters): RopeConfig => ({
  headDim,
  maxPositionEmbeddings,
  rope,
});

function of(dialect: Dialect, config: RopeConfig, context: Partial<DialectContext> = {}): DialectFrequencies {
  const result = computeDialect(dialect, config, { sequenceLength: 100, ...context });
  if (!result.supported) throw new Error(result.reason);
  return result;
}

const keys = (result: { notes: readonly { code: string; key: string | null }[] }, code: string) =>
  result.notes.filter((note) => note.code === code).map((note) => note.key);

const qwen = at(128, 131072, {
  ropeType: "yarn",
  ropeTheta: 1e6,
  factor: 4,
  originalMaxPositionEmbeddings: 32768,
});
const gptOss = at(64, 131072, {
  ropeType: "yarn",
  ropeTheta: 150000,
  factor: 32,
  originalMaxPositionEmbeddings: 4096,
  betaFast: 32,
  betaSlow: 1,
  truncate: false,
});
const deepseek = at(64, 163840, {
  ropeType: "yarn",
  ropeTheta: 1e4,
  factor: 40,
  originalMaxPositionEmbeddings: 4096,
  mscale: 1,
  mscaleAllDim: 1,
});
const phi = at(8, 131072, {
  ropeType: "longrope",
  ropeTheta: 1e4,
  originalMaxPositionEmbeddings: 4096,
  shortFactor: [1, 1, 1, 1],
  longFactor: [1, 2, 4, 8],
});
const dynamic = at(128, 2048, { ropeType: "dynamic", ropeTheta: 1e4, factor: 2 });

test("the table of dialects is total, and every one names what was read", () => {
  expect(Object.keys(ropeDialects)).toEqual([...dialects]);
  for (const dialect of dialects) {
    expect(ropeDialects[dialect].dialect).toBe(dialect);
    expect(ropeDialects[dialect].engine.length).toBeGreaterThan(5);
  }
});

test("every engine agrees where nothing is scaled", () => {
  const plain = at(64, 4096, { ropeType: "default", ropeTheta: 500000 });
  for (const row of compareDialects(plain, 4096)) {
    expect(row.supported, row.dialect).toBe(true);
    // llama.cpp's base and frequencies pass through no float32 here: 5e5 is one.
    expect(row.frequencyDifference, row.dialect).toBeLessThan(1e-14);
    expect(row.scoreFactor, row.dialect).toBe(1);
  }
});

describe("YaRN", () => {
  test("exllamav2 computes the ramp's ends from the extended length: 30 and 47 instead of 23 and 40", () => {
    const theirs = of("exllamav2", qwen).inverseFrequencies;
    const right = of("transformers-5", qwen).inverseFrequencies;
    const plain = (i: number) => 1e6 ** (-i / 64);
    const touched = (w: Float64Array) => w.findIndex((x, i) => Math.abs(x / plain(i) - 1) > 1e-12);
    const whole = (w: Float64Array) => w.findIndex((x, i) => Math.abs((4 * x) / plain(i) - 1) < 1e-12);
    expect([touched(right), whole(right)]).toEqual([24, 40]);
    expect([touched(theirs), whole(theirs)]).toEqual([31, 47]);
    const [row] = compareDialects(qwen, 131072, { dialects: ["exllamav2"] });
    expect(row!.frequencyRatio).toBeGreaterThan(2.2);
    expect(keys(row!, "formula-differs")).toEqual(["originalMaxPositionEmbeddings"]);
  });

  test("exllamav2 leaves a model alone that is loaded for its original length, magnitude too", () => {
    const { inverseFrequencies, attentionFactor, notes } = of("exllamav2", qwen, { maxModelLen: 32768 });
    expect(inverseFrequencies[63]).toBeCloseTo(1e6 ** (-63 / 64), 15);
    expect(attentionFactor).toBe(1);
    expect(notes.map((note) => note.code)).toContain("fixed-at-start");
  });

  test("exllamav3 takes the factor from the lengths: Qwen3's 40960 / 32768 gives 1.25 where the file says 4", () => {
    const qwen3 = { ...qwen, maxPositionEmbeddings: 40960 };
    const theirs = of("exllamav3", qwen3);
    expect(theirs.inverseFrequencies[63]! * 1.25).toBeCloseTo(1e6 ** (-63 / 64), 15);
    expect(theirs.attentionFactor).toBeCloseTo(0.1 * Math.log(1.25) + 1, 15);
    expect(keys(theirs, "key-ignored")).toEqual(["factor"]);
    expect(keys(of("exllamav3", qwen), "key-ignored")).toEqual([]);
  });

  test("gpt-oss without truncate false, as llama.cpp, mlx-lm and exllamav2 have it, is 27 % off at pair 16", () => {
    expect(of("transformers-5", gptOss).inverseFrequencies[16]).toBeCloseTo(4.564839192e-4, 12);
    expect(of("vllm", gptOss).inverseFrequencies[16]).toBeCloseTo(4.564839192e-4, 12);
    for (const dialect of ["llama.cpp", "mlx-lm"] as const) {
      const result = of(dialect, gptOss);
      expect(result.inverseFrequencies[16]! / 5.809475019e-4).toBeCloseTo(1, 6);
      expect(keys(result, "key-ignored")).toContain("truncate");
    }
    expect(keys(of("exllamav2", gptOss), "key-ignored")).toContain("truncate");
    expect(keys(of("transformers-5", gptOss), "key-ignored")).toEqual([]);
  });

  test("truncate false under a layer type is not read by transformers 5", () => {
    const nested = of("transformers-5", gptOss, { nested: true });
    expect(nested.inverseFrequencies[16]).toBeCloseTo(5.809475019e-4, 12);
    expect(keys(nested, "key-ignored")).toEqual(["truncate"]);
  });

  test("mscale_all_dim alone: m(factor) in transformers, 1 / m in mlx-lm", () => {
    const { mscale: _, ...rope } = deepseek.rope as Extract<RopeParameters, { ropeType: "yarn" }>;
    const alone = { ...deepseek, rope };
    expect(of("transformers-5", alone).attentionFactor).toBeCloseTo(1.36888795, 8);
    expect(of("mlx-lm", alone).attentionFactor).toBe(1);
    expect(of("mlx-lm", { ...alone, rope: { ...rope, mscaleAllDim: 0 } }).attentionFactor).toBeCloseTo(1.36888795, 8);
  });

  test("a given attention_factor reaches transformers and vLLM, and is computed instead elsewhere", () => {
    const given = { ...qwen, rope: { ...qwen.rope, attentionFactor: 2 } as RopeParameters };
    for (const dialect of ["transformers-5", "transformers-4", "vllm", "exllamav3"] as const) {
      expect(of(dialect, given).attentionFactor, dialect).toBe(2);
    }
    for (const dialect of ["llama.cpp", "mlx-lm", "exllamav2", "papers", "yarn-repository"] as const) {
      const result = of(dialect, given);
      expect(result.attentionFactor, dialect).toBeCloseTo(1.13862944, 7);
      expect(keys(result, "key-ignored"), dialect).toContain("attentionFactor");
    }
  });

  test("llama.cpp overwrites --yarn-attn-factor while YaRN is on, and uses it while it is off", () => {
    const plain = at(64, 2048, { ropeType: "default", ropeTheta: 1e4 });
    const on = of("llama.cpp", plain, { llamaCpp: { ropeScaling: "yarn", ropeScale: 4, yarnAttnFactor: 2 } });
    expect(on.attentionFactor).toBeCloseTo(0.1 * Math.log(4) + 1, 12);
    expect(keys(on, "key-ignored")).toEqual(["attentionFactor"]);
    const off = of("llama.cpp", plain, { llamaCpp: { ropeScaling: "linear", ropeScale: 4, yarnAttnFactor: 2 } });
    expect(off.attentionFactor).toBe(2);
  });

  test("betas reach llama.cpp by flags alone", () => {
    const betas = { ...qwen, rope: { ...qwen.rope, betaFast: 64, betaSlow: 2 } as RopeParameters };
    const ignored = of("llama.cpp", betas, { modelType: "qwen3" });
    expect(keys(ignored, "key-ignored")).toEqual(["betaFast", "betaSlow"]);
    expect([...ignored.inverseFrequencies]).toEqual([...of("llama.cpp", qwen).inverseFrequencies]);
    const flagged = of("llama.cpp", qwen, { llamaCpp: { yarnBetaFast: 64, yarnBetaSlow: 2 } });
    const right = of("transformers-5", betas).inverseFrequencies;
    for (const [i, w] of flagged.inverseFrequencies.entries()) expect(w / right[i]!).toBeCloseTo(1, 12);
    expect(keys(of("llama.cpp", { ...betas }, { modelType: "ministral3" }), "key-ignored")).toEqual([]);
  });

  test("reversed betas: a step in llama.cpp, a ramp that runs backwards in the others", () => {
    const reversed = at(64, 16384, {
      ropeType: "yarn",
      ropeTheta: 1e4,
      factor: 4,
      originalMaxPositionEmbeddings: 4096,
      betaFast: 1,
      betaSlow: 32,
    });
    const backwards = of("transformers-5", reversed).inverseFrequencies;
    expect(backwards[0]).toBe(0.25);
    expect(backwards[31]).toBeCloseTo(1e4 ** (-31 / 32), 15);
    const step = of("llama.cpp", reversed, { llamaCpp: { yarnBetaFast: 1, yarnBetaSlow: 32 } });
    expect(step.inverseFrequencies[0]).toBe(1);
    expect(4 * step.inverseFrequencies[31]!).toBeCloseTo(1e4 ** (-31 / 32), 15);
    expect(keys(step, "formula-differs")).toEqual([null]);
  });

  test("a beta of 0 stays 0 in llama.cpp: no pair is interpolated for beta_fast 0; others divide by it or take 32", () => {
    const zero = { ...qwen, rope: { ...qwen.rope, betaFast: 0 } as RopeParameters };
    const flagged = of("llama.cpp", qwen, { llamaCpp: { yarnBetaFast: 0 } });
    expect(flagged.inverseFrequencies[63]).toBeCloseTo(1e6 ** (-63 / 64), 15);
    expect([...of("transformers-5", zero).inverseFrequencies]).toEqual([
      ...of("transformers-5", qwen).inverseFrequencies,
    ]);
    expect(computeDialect("vllm", zero, { sequenceLength: 1 }).supported).toBe(false);
  });

  test("the paper's ramp runs on turns: it leaves Llama 2's pair 32 at another frequency than the code's ramp", () => {
    const llama2 = at(128, 8192, {
      ropeType: "yarn",
      ropeTheta: 1e4,
      factor: 2,
      originalMaxPositionEmbeddings: 4096,
    });
    // 4096 · 0.01 / 2π = 6.519 turns: γ = 5.519 / 31 of the way from 1 to 32.
    const gamma = (40.96 / (2 * Math.PI) - 1) / 31;
    expect(of("papers", llama2).inverseFrequencies[32]).toBeCloseTo(0.01 * gamma + 0.005 * (1 - gamma), 15);
    expect(of("yarn-repository", llama2).inverseFrequencies[32]).toBeCloseTo(7.692307692e-3, 11);
  });

  test("factor null: transformers 5 takes the ratio, llama.cpp drops the scaling, the rest raise", () => {
    const missing = { ...qwen, rope: { ...qwen.rope, factor: null } as RopeParameters };
    expect(of("transformers-5", missing).attentionFactor).toBeCloseTo(1.13862944, 8);
    const dropped = of("llama.cpp", missing);
    expect(dropped.attentionFactor).toBe(1);
    expect(keys(dropped, "type-ignored")).toEqual(["factor"]);
    for (const dialect of ["transformers-4", "vllm", "mlx-lm", "exllamav2"] as const) {
      const result = computeDialect(dialect, missing, { sequenceLength: 100 });
      expect(result.supported, dialect).toBe(false);
      if (!result.supported) expect(result.reason).toMatch(/^TypeError/);
    }
  });
});

describe("DeepSeek's softmax factor", () => {
  test("is m(40, 1)² = 1.8739 in every engine that knows the model, and 1 in transformers 4's V2", () => {
    const v3 = { modelType: "deepseek_v3" };
    for (const dialect of ["transformers-5", "transformers-4", "llama.cpp", "vllm", "mlx-lm", "exllamav3"] as const) {
      const { softmaxFactor, attentionFactor } = of(dialect, deepseek, v3);
      expect(softmaxFactor, dialect).toBeCloseTo(1.8738542070926265, 6);
      expect(attentionFactor, dialect).toBeCloseTo(1, 7);
    }
    const v2 = of("transformers-4", deepseek, { modelType: "deepseek_v2" });
    expect(v2.softmaxFactor).toBe(1);
    expect(keys(v2, "key-ignored")).toEqual(["mscaleAllDim"]);
  });

  test("llama.cpp multiplies the softmax by (1 + 0.1 ln s)² even for linear scaling", () => {
    const linear = at(64, 16384, { ropeType: "linear", ropeTheta: 1e4, factor: 4 });
    const result = of("llama.cpp", linear, { modelType: "deepseek_v3" });
    expect(result.softmaxFactor).toBeCloseTo((1 + 0.1 * Math.log(4)) ** 2, 12);
    expect(result.attentionFactor).toBe(1);
    expect(keys(result, "formula-differs")).toEqual(["mscaleAllDim"]);
  });

  test("vLLM leaves the softmax alone where attention_factor is 1.0", () => {
    const mistral = { ...deepseek, rope: { ...deepseek.rope, attentionFactor: 1 } as RopeParameters };
    expect(of("vllm", mistral, { modelType: "deepseek_v3" }).softmaxFactor).toBe(1);
  });
});

describe("longrope", () => {
  const list = (result: DialectFrequencies) => (result.inverseFrequencies[3] === 1e-3 / 8 ? "long" : "short");
  const near = (result: DialectFrequencies) =>
    Math.abs(result.inverseFrequencies[3]! * 8000 - 1) < 1e-6 ? "long" : "short";

  test("transformers chooses by the sequence, vLLM and llama.cpp by the start, mlx-lm not at all", () => {
    expect(near(of("transformers-5", phi, { sequenceLength: 4096 }))).toBe("short");
    expect(near(of("transformers-5", phi, { sequenceLength: 4097 }))).toBe("long");
    for (const dialect of ["vllm", "llama.cpp", "exllamav2", "exllamav3"] as const) {
      expect(near(of(dialect, phi, { sequenceLength: 10, maxModelLen: 131072 })), dialect).toBe("long");
      expect(near(of(dialect, phi, { sequenceLength: 10, maxModelLen: 4096 })), dialect).toBe("short");
    }
    expect(near(of("mlx-lm", phi, { sequenceLength: 10 }))).toBe("long");
    expect(list(of("transformers-5", phi))).toBe("short");
  });

  test("started without a length, vLLM uses the short list and llama.cpp the long one", () => {
    expect(near(of("vllm", phi))).toBe("short");
    expect(near(of("llama.cpp", phi))).toBe("long");
  });

  test("the magnitude is √(1 + ln 32 / ln 4096) for both lists, but 1 with exllamav2's short list", () => {
    for (const dialect of ["transformers-5", "transformers-4", "vllm", "llama.cpp", "exllamav3"] as const) {
      const short = of(dialect, phi, { sequenceLength: 10, maxModelLen: 4096 });
      expect(short.attentionFactor, dialect).toBeCloseTo(1.1902380714, 6);
    }
    expect(of("exllamav2", phi, { maxModelLen: 4096 }).attentionFactor).toBe(1);
    expect(of("exllamav2", phi, { maxModelLen: 131072 }).attentionFactor).toBeCloseTo(1.1902380714, 9);
    expect(of("exllamav2", phi, { maxModelLen: 16384 }).attentionFactor).toBeCloseTo(Math.sqrt(1 + 2 / 12), 9);
  });

  test("transformers 4 reads the original length at the top level alone", () => {
    const inside = { originalLengthAtTopLevel: false, sequenceLength: 5000 };
    expect(computeDialect("transformers-4", phi, inside).supported).toBe(false);
    const withFactor = { ...phi, rope: { ...phi.rope, factor: 32 } as RopeParameters };
    expect(near(of("transformers-4", withFactor, inside))).toBe("short");
    expect(near(of("transformers-5", withFactor, inside))).toBe("long");
  });

  test("transformers 5 computes PhiMoE with the short list at every length", () => {
    const own = { ...phi, rope: { ...phi.rope, shortMscale: 1.25, longMscale: 1.5 } as RopeParameters };
    const five = of("transformers-5", own, { modelType: "phimoe", sequenceLength: 4097 });
    expect([near(five), five.attentionFactor]).toEqual(["short", 1.5]);
    const four = of("transformers-4", own, { modelType: "phimoe", sequenceLength: 4097 });
    expect([near(four), four.attentionFactor]).toEqual(["long", 1.5]);
  });

  test("a converter without lists leaves the model unscaled in llama.cpp", () => {
    const result = of("llama.cpp", phi, { modelType: "qwen2" });
    expect(result.inverseFrequencies[3]).toBeCloseTo(1e-3, 12);
    expect(keys(result, "type-ignored")).toEqual([null]);
  });
});

describe("dynamic", () => {
  test("grows in transformers and mlx-lm, stands still in vLLM, llama.cpp and exllamav2, and is refused by exllamav3", () => {
    const base = (result: DialectFrequencies) => result.inverseFrequencies[63]! ** (-128 / 126);
    const context = { sequenceLength: 4096, maxModelLen: 4096 };
    for (const dialect of ["transformers-5", "transformers-4", "mlx-lm", "yarn-repository"] as const) {
      expect(base(of(dialect, dynamic, context)), dialect).toBeCloseTo(30527.7367, 3);
    }
    for (const dialect of ["vllm", "llama.cpp", "exllamav2"] as const) {
      expect(base(of(dialect, dynamic, context)), dialect).toBeCloseTo(10000, 6);
      expect(keys(of(dialect, dynamic, context), dialect === "vllm" ? "fixed-at-start" : "type-ignored")).toEqual([
        null,
      ]);
    }
    expect(computeDialect("exllamav3", dynamic, context).supported).toBe(false);
    // The paper's factor is ℓ/L = 2: 10000 · 2^(128/126).
    expect(base(of("papers", dynamic, context))).toBeCloseTo(20221.2617, 3);
  });

  test("vLLM's table ends at the trained length", () => {
    const result = of("vllm", dynamic, { sequenceLength: 4096, maxModelLen: 4096 });
    expect(result.tableLength).toBe(2048);
    expect(result.notes.find((note) => note.code === "table-too-short")!.message).toContain("2048 positions, 4096");
    expect(keys(of("vllm", dynamic, { sequenceLength: 2048, maxModelLen: 2048 }), "table-too-short")).toEqual([]);
    // Started without a length it admits 2 · 2048 tokens all the same.
    expect(keys(of("vllm", dynamic), "table-too-short")).toEqual([null]);
    expect(keys(of("vllm", phi), "table-too-short")).toEqual([]);
    const linear = at(64, 2048, { ropeType: "linear", ropeTheta: 1e4, factor: 4 });
    expect(of("vllm", linear).tableLength).toBe(8192);
    expect(keys(of("vllm", linear), "table-too-short")).toEqual([]);
    const qwen3 = { ...qwen, maxPositionEmbeddings: 40960 };
    expect(keys(of("vllm", qwen3, { maxModelLen: 131072 }), "assumed")).toEqual(["maxPositionEmbeddings"]);
    expect(of("vllm", qwen).tableLength).toBe(131072);
  });

  test("transformers keeps the table of a longer call until one below the trained length comes", () => {
    const afterLong = (sequenceLength: number) =>
      of("transformers-5", at(64, 32, { ropeType: "dynamic", ropeTheta: 1e4, factor: 4 }), {
        sequenceLength,
        previousLength: 64,
      });
    const fresh = (sequenceLength: number) =>
      of("transformers-5", at(64, 32, { ropeType: "dynamic", ropeTheta: 1e4, factor: 4 }), { sequenceLength });
    for (const length of [32, 33, 48, 64]) {
      expect([...afterLong(length).inverseFrequencies], `${length}`).toEqual([...fresh(64).inverseFrequencies]);
    }
    expect([...afterLong(31).inverseFrequencies]).toEqual([...fresh(1).inverseFrequencies]);
    expect(keys(afterLong(32), "history")).toEqual([null]);
    expect(keys(afterLong(31), "history")).toEqual([]);
    expect(keys(afterLong(64), "history")).toEqual([]);
  });

  test("alpha is HunYuan's: elsewhere transformers ignores it", () => {
    const alpha = at(128, 32768, { ropeType: "dynamic", ropeTheta: 1e4, factor: 1, alpha: 1000 });
    const base = (result: DialectFrequencies) => result.inverseFrequencies[63]! ** (-128 / 126);
    expect(base(of("transformers-5", alpha, { modelType: "hunyuan_v1_dense" }))).toBeCloseTo(11158839.9251, 1);
    expect(base(of("transformers-5", alpha, { modelType: "llama" }))).toBeCloseTo(10000, 6);
    expect(base(of("vllm", alpha))).toBeCloseTo(11158839.9251, 1);
    expect(base(of("mlx-lm", alpha, { modelType: "hunyuan_v1_dense" }))).toBeCloseTo(11158839.9251, 1);
    expect(base(of("mlx-lm", alpha, { modelType: "llama" }))).toBeCloseTo(10000, 6);
  });
});

describe("ntk and tables", () => {
  const ntk = at(128, 2048, { ropeType: "ntk", ropeTheta: 1e4, factor: 4 });

  test("vLLM's ntk is s^(−2(i+1)/d): it slows the fastest pair, where bloc97's leaves it", () => {
    const theirs = of("vllm", ntk).inverseFrequencies;
    const bloc97 = computeRopeFrequencies(ntk, 1).inverseFrequencies;
    expect(bloc97[0]).toBe(1);
    expect(theirs[0]).toBeCloseTo(4 ** (-2 / 128), 15);
    expect(theirs[63]).toBeCloseTo(bloc97[63]!, 15);
    expect(theirs[31]).toBeCloseTo(1e4 ** (-62 / 128) * 4 ** (-64 / 128), 15);
  });

  test("vLLM's mixed_b ends where its plain rule ends: the last pair is divided by the factor", () => {
    const mixed = vllmMixedNtk(1e4, 128, 4, 0.625);
    expect(mixed[63]! * 4).toBeCloseTo(1e4 ** (-126 / 128), 14);
    expect(mixed[0]).toBeCloseTo(Math.exp(-Math.log(4) / 64 ** 0.625), 14);
  });

  test("exllamav2 reaches bloc97's rule by its alpha, llama.cpp by --rope-freq-base", () => {
    const right = computeRopeFrequencies(ntk, 1).inverseFrequencies;
    for (const dialect of ["exllamav2", "llama.cpp", "yarn-repository"] as const) {
      for (const [i, w] of of(dialect, ntk).inverseFrequencies.entries())
        expect(w / right[i]!, dialect).toBeCloseTo(1, 7);
    }
    const flag = of("llama.cpp", ntk).notes.find((note) => note.code === "reached-by")!;
    expect(flag.message).toMatch(/^--rope-freq-base 40889\.94/);
  });

  test("any table reaches llama.cpp as divisors, a standing pair as 1e30", () => {
    const inverseFrequencies = [0.9, 0.02, 0.003, 0];
    const table = at(8, 2048, { ropeType: "table", ropeTheta: 1e4, inverseFrequencies, attentionFactor: 1.25 });
    const result = of("llama.cpp", table);
    for (const [i, w] of result.inverseFrequencies.entries()) expect(w).toBeCloseTo(inverseFrequencies[i]!, 7);
    expect(result.inverseFrequencies[3]).toBeLessThan(1e-29);
    expect(result.attentionFactor).toBe(1.25);
    for (const dialect of [
      "transformers-5",
      "transformers-4",
      "vllm",
      "mlx-lm",
      "exllamav2",
      "exllamav3",
      "papers",
    ] as const) {
      expect(computeDialect(dialect, table, { sequenceLength: 1 }).supported, dialect).toBe(false);
    }
  });
});

describe("partial rotary", () => {
  const half = at(64, 2048, { ropeType: "default", ropeTheta: 1e4, partialRotaryFactor: 0.5 });

  test("a llama with partial_rotary_factor: whole heads in transformers, half of one in vLLM", () => {
    const five = of("transformers-5", half, { modelType: "llama" });
    expect(five.inverseFrequencies).toHaveLength(32);
    expect(keys(five, "key-ignored")).toEqual(["partialRotaryFactor"]);
    expect(of("transformers-5", half, { modelType: "glm4" }).inverseFrequencies).toHaveLength(16);
    expect(of("vllm", half, { modelType: "llama" }).inverseFrequencies).toHaveLength(16);
    expect(of("mlx-lm", half, { modelType: "llama" }).inverseFrequencies).toHaveLength(32);
    expect(of("llama.cpp", half, { modelType: "llama" }).inverseFrequencies).toHaveLength(32);
  });

  test("a scaled type over part of a head fails where the class rotates whole ones", () => {
    const scaled = at(64, 2048, { ropeType: "linear", ropeTheta: 1e4, factor: 2, partialRotaryFactor: 0.5 });
    expect(computeDialect("transformers-5", scaled, { sequenceLength: 1, modelType: "llama" }).supported).toBe(false);
    expect(computeDialect("transformers-5", scaled, { sequenceLength: 1, modelType: "glm4" }).supported).toBe(true);
  });

  test("proportional over an odd number of channels turns one pair more in mlx-lm", () => {
    const odd = at(32, 2048, { ropeType: "proportional", ropeTheta: 1e4, partialRotaryFactor: 0.3 });
    const turning = (dialect: Dialect) => of(dialect, odd).inverseFrequencies.filter((w) => w > 1e-20).length;
    expect(turning("transformers-5")).toBe(4);
    expect(turning("vllm")).toBe(4);
    expect(turning("llama.cpp")).toBe(4);
    expect(turning("mlx-lm")).toBe(5);
  });
});

describe("angles and tables", () => {
  const plain = at(128, 131072, { ropeType: "default", ropeTheta: 1e4 });

  test("llama.cpp's repeated float32 product drifts further than one product", () => {
    const exact = of("transformers-5", plain).angles([131071]);
    const drift = (dialect: Dialect) => {
      const angles = of(dialect, plain, { float32: true }).angles([131071]);
      return Math.max(...angles.map((x, i) => Math.abs(x - exact[i]!)));
    };
    // Largest cosine errors at 131071 over 64 pairs: 1.5e-3 and 1.2e-2.
    expect(drift("transformers-5")).toBeGreaterThan(1e-3);
    expect(drift("transformers-5")).toBeLessThan(1.5e-2);
    expect(drift("llama.cpp")).toBeGreaterThan(drift("transformers-5"));
  });

  test("vLLM holds cos and sin in the model's dtype", () => {
    const steps = (values: Float64Array, bits: number) =>
      values.every((x) => Number.isInteger((x * 2 ** bits) / 2 ** Math.floor(Math.log2(Math.abs(x)))));
    const context = { float32: true };
    expect(steps(of("vllm", plain, context).tables([1, 5, 77]).cos, 7)).toBe(true);
    expect(steps(of("vllm", plain, { ...context, modelDtype: "float32" }).tables([1, 5, 77]).cos, 7)).toBe(false);
    expect(steps(of("exllamav2", plain, context).tables([1, 5, 77]).cos, 10)).toBe(true);
    expect(steps(of("vllm", plain).tables([1, 5, 77]).cos, 23)).toBe(false);
  });

  test("tables carry the attention factor once in cos and once in sin", () => {
    const { cos, sin } = of("transformers-5", qwen).tables([0, 3]);
    expect(cos[0]).toBeCloseTo(1.13862944, 8);
    expect(sin[0]).toBe(0);
    expect(Math.hypot(cos[70]!, sin[70]!)).toBeCloseTo(1.13862944, 8);
  });
});

describe("the comparison", () => {
  test("holds one row a dialect, in order, with numbers or nulls and never NaN", () => {
    const configs = [qwen, gptOss, deepseek, phi, dynamic];
    for (const config of configs) {
      for (const float32 of [false, true]) {
        const rows = compareDialects(config, 8192, { float32, maxModelLen: 131072 });
        expect(rows.map((row) => row.dialect)).toEqual([...dialects]);
        for (const row of rows) {
          expect(row.supported).toBe(row.reason === null);
          for (const value of Object.values(row)) {
            if (typeof value === "number") expect(Number.isFinite(value), row.dialect).toBe(true);
          }
          expect(JSON.parse(JSON.stringify(row))).toEqual(row);
          if (row.supported) expect(row.scoreFactor).toBeCloseTo(row.attentionFactor! ** 2 * row.softmaxFactor!, 12);
        }
        expect(rows[0]).toMatchObject({ frequencyDifference: 0, angleDifference: 0 });
      }
    }
  });

  test("measures angles at the last position, not reduced", () => {
    const [row] = compareDialects(qwen, 131072, { dialects: ["exllamav2"], maxModelLen: 131072 });
    const theirs = of("exllamav2", qwen).inverseFrequencies;
    const right = of("transformers-5", qwen).inverseFrequencies;
    const expected = Math.max(...theirs.map((w, i) => 131071 * Math.abs(w - right[i]!)));
    expect(row!.angleDifference! / expected).toBeCloseTo(1, 9);
    expect(row!.angleDifference).toBeGreaterThan(Math.PI);
  });

  test("compares with the canonical formula where transformers 5 does not know the type", () => {
    const parts = at(128, 8192, {
      ropeType: "ntk-by-parts",
      ropeTheta: 1e4,
      factor: 2,
      originalMaxPositionEmbeddings: 4096,
    });
    const rows = compareDialects(parts, 8192, {
      dialects: ["transformers-5", "papers", "yarn-repository", "llama.cpp"],
    });
    expect(rows[0]!.supported).toBe(false);
    expect(rows[1]!.frequencyDifference).toBe(0);
    expect(rows[2]!.frequencyDifference).toBeGreaterThan(0.1);
    expect(rows[3]!.frequencyDifference).toBeLessThan(1e-6);
  });
});

test("DroPE is no rotation and one factor on the logits: 1 + 0.412 ln 4", () => {
  const dropped = dropeFrequencies({ headDim: 8, trainedLength: 2048, length: 8192, coefficient: 0.412 });
  expect([...dropped.inverseFrequencies]).toEqual([0, 0, 0, 0]);
  expect(dropped.attentionFactor).toBe(1);
  expect(dropped.softmaxFactor).toBeCloseTo(1.5711532768, 9);
});

describe("arguments", () => {
  test("a wrong dialect, length or setting is named", () => {
    expect(() => computeDialect("tensorrt" as Dialect, qwen, { sequenceLength: 1 })).toThrow(
      /expected one of .*vllm.*got "tensorrt"/,
    );
    expect(() => computeDialect("vllm", qwen, { sequenceLength: 0 })).toThrow(/sequenceLength/);
    expect(() => computeDialect("vllm", qwen, { sequenceLength: 1, maxModelLen: 1.5 })).toThrow(/maxModelLen/);
    const wrong = { ...qwen, rope: { ...qwen.rope, factr: 2 } as unknown as RopeParameters };
    expect(() => computeDialect("vllm", wrong, { sequenceLength: 1 })).toThrow(/factr/);
    const short = { ...phi, rope: { ...phi.rope, longFactor: [1, 2] } as RopeParameters };
    expect(() => computeDialect("mlx-lm", short, { sequenceLength: 1 })).toThrow(/longFactor/);
    expect(() => of("papers", qwen).angles([-1])).toThrow(/positions/);
  });
});

describe("vLLM before 0.12, and SGLang", () => {
  test("vLLM 0.11 rounds gpt-oss's ramp: pair 16 is 27 % fast; 0.33 and SGLang read truncate", () => {
    const at16 = (dialect: Dialect) => of(dialect, gptOss, { modelType: "gpt_oss" }).inverseFrequencies[16]!;
    expect(at16("vllm-0.11")).toBeCloseTo(5.809475019e-4, 13);
    expect(at16("vllm")).toBeCloseTo(4.564839192e-4, 13);
    expect(at16("sglang")).toBeCloseTo(4.564839192e-4, 13);
    expect(keys(of("vllm-0.11", gptOss), "key-ignored")).toEqual(["truncate"]);
  });

  test("Ministral 3's pair of mscale gives 1 in vLLM 0.33 and SGLang, 1.2773 in vLLM 0.11 (vllm #48621)", () => {
    const ministral = at(128, 262144, {
      ropeType: "yarn",
      ropeTheta: 1e6,
      factor: 16,
      originalMaxPositionEmbeddings: 16384,
      mscale: 1,
      mscaleAllDim: 1,
    });
    expect(of("vllm-0.11", ministral).attentionFactor).toBeCloseTo(1.2773, 4);
    for (const dialect of ["vllm", "sglang"] as const) expect(of(dialect, ministral).attentionFactor, dialect).toBe(1);
  });

  test("attention_factor reaches neither", () => {
    const given = { ...qwen, rope: { ...qwen.rope, attentionFactor: 2 } as RopeParameters };
    for (const dialect of ["vllm-0.11", "sglang"] as const) {
      expect(of(dialect, given).attentionFactor, dialect).toBeCloseTo(1.13862944, 7);
      expect(keys(of(dialect, given), "key-ignored"), dialect).toEqual(["attentionFactor"]);
    }
  });

  test("dynamic is one table, stretched for factor · L tokens: base 10000 · 3^(128/126) at factor 2", () => {
    for (const dialect of ["vllm-0.11", "sglang"] as const) {
      const { inverseFrequencies } = of(dialect, dynamic, { sequenceLength: 10 });
      expect(inverseFrequencies[63]! ** (-128 / 126), dialect).toBeCloseTo(1e4 * 3 ** (128 / 126), 6);
      expect(keys(of(dialect, dynamic), "fixed-at-start"), dialect).toEqual([null]);
    }
    expect(of("vllm-0.11", dynamic).tableLength).toBe(4096);
    expect(of("sglang", dynamic).tableLength).toBe(null);
  });

  test("longrope goes by the positions of the batch, one position later than transformers", () => {
    const near = (dialect: Dialect, sequenceLength: number) =>
      Math.abs(of(dialect, phi, { sequenceLength }).inverseFrequencies[3]! * 8000 - 1) < 1e-6 ? "long" : "short";
    expect([near("transformers-5", 4097), near("sglang", 4097), near("sglang", 4098)]).toEqual([
      "long",
      "short",
      "long",
    ]);
    expect(keys(of("vllm-0.11", phi), "history")).toEqual([null]);
  });

  test("ntk is unknown to SGLang, proportional to vLLM 0.11", () => {
    const ntk = at(64, 2048, { ropeType: "ntk", ropeTheta: 1e4, factor: 4 });
    const proportional = at(64, 2048, { ropeType: "proportional", ropeTheta: 1e4, partialRotaryFactor: 0.5 });
    expect(computeDialect("sglang", ntk, { sequenceLength: 1 }).supported).toBe(false);
    expect(computeDialect("vllm-0.11", ntk, { sequenceLength: 1 }).supported).toBe(true);
    expect(computeDialect("vllm-0.11", proportional, { sequenceLength: 1 }).supported).toBe(false);
    expect(computeDialect("sglang", proportional, { sequenceLength: 1 }).supported).toBe(true);
  });

  test("what length a configuration admits: Qwen 3 under YaRN 4 at 131,072 is refused since factor no longer counts", () => {
    const qwen3 = { ...qwen, maxPositionEmbeddings: 40960 };
    const asked = { maxModelLen: 131072 };
    expect(keys(of("vllm-0.11", qwen3, asked), "assumed")).toEqual([]);
    expect(keys(of("vllm", qwen3, asked), "assumed")).toEqual(["maxPositionEmbeddings"]);
    expect(keys(of("sglang", qwen3, asked), "assumed")).toEqual(["maxPositionEmbeddings"]);
  });
});
