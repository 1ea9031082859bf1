// Published and recomputed numbers of the field, as tests: bases, YaRN and llama3 splits, attention factors, the cost of
// float32 and bfloat16 angles, and where papers and engines disagree on the same settings. Values were recomputed with
// mpmath; each is asserted to the digits it is printed with.

import { describe, expect, test } from "vitest";
import { logitTemperature } from "../../src/encodings/logit-temperature.ts";
import { applyRotary } from "../../src/encodings/rope/rotation.ts";
import { gradientBase } from "../../src/encodings/rope/scaling/gradient.ts";
import { computeRopeFrequencies } from "../../src/encodings/rope/scaling/index.ts";
import { ntkBase } from "../../src/encodings/rope/scaling/ntk.ts";
import type { RopeParameters } from "../../src/encodings/rope/scaling/parameters.ts";
import { yarnMagnitude } from "../../src/encodings/rope/scaling/scaling.ts";
import { yarnRange } from "../../src/encodings/rope/scaling/yarn.ts";
import { rotaryTables } from "../../src/encodings/rope/tables.ts";
import { deepseekSoftmaxFactor } from "../../src/encodings/softmax-factor.ts";
import { bfloat16Bits, bfloat16Value, float16Bits, float16Value } from "../../src/tensor/float16.ts";

/** Asserts a value to the digits that `digits` prints. */
function expectPrinted(value: number, digits: string): void {
  const significant = digits.replace(/e.*$/, "").replace(/^0\.0*|\./g, "").length;
  expect(Number(value.toPrecision(significant))).toBe(Number(digits));
}

function frequencies(headDim: number, maxPositionEmbeddings: number, rope: RopeParameters, length = 1): number[] {
  return Array.from(computeRopeFrequencies({ headDim, maxPositionEmbeddings, rope }, length).inverseFrequencies);
}
const unscaled = (headDim: number, ropeTheta: number) => frequencies(headDim, 1, { ropeType: "default", ropeTheta });

/** The base whose series has this second frequency. */
const baseOf = (values: number[]) => (1 / values[1]!) ** values.length;

describe("bases", () => {
  test.each([
    [128, 2, "20221.2617"],
    [128, 4, "40889.9424"],
    [128, 8, "82684.6226"],
    [64, 4, "41829.3659"],
  ])("NTK-aware, theta 1e4: %i channels, factor %i", (rotaryDim, factor, base) => {
    expectPrinted(ntkBase(10000, factor, rotaryDim), base);
    expectPrinted(baseOf(frequencies(rotaryDim, 1, { ropeType: "ntk", ropeTheta: 10000, factor })), base);
  });

  test("NTK-aware leaves the fastest pair alone and divides the slowest by the factor", () => {
    const plain = unscaled(128, 10000);
    const scaled = frequencies(128, 1, { ropeType: "ntk", ropeTheta: 10000, factor: 8 });
    expect(scaled[0]).toBe(1);
    expect(scaled[63]! / plain[63]!).toBeCloseTo(1 / 8, 14);
  });

  test.each([
    [4096, "30527.7367"],
    [8192, "72195.8601"],
  ])("dynamic NTK, theta 1e4, 128 channels, factor 2, trained on 2048: at %i", (length, base) => {
    expectPrinted(baseOf(frequencies(128, 2048, { ropeType: "dynamic", ropeTheta: 10000, factor: 2 }, length)), base);
  });

  test("dynamic NTK changes nothing up to the trained length", () => {
    for (const length of [1, 2047, 2048]) {
      expect(frequencies(128, 2048, { ropeType: "dynamic", ropeTheta: 10000, factor: 2 }, length)).toEqual(
        unscaled(128, 10000),
      );
    }
  });

  test("HunYuan's alpha is a fixed base, whatever the length", () => {
    const rope: RopeParameters = { ropeType: "dynamic", ropeTheta: 10000, factor: 1, alpha: 1000 };
    expect(frequencies(128, 32768, rope, 1)).toEqual(frequencies(128, 32768, rope, 131072));
    expect(baseOf(frequencies(128, 32768, rope))).toBeCloseTo(10000 * 1000 ** (128 / 126), 1);
  });

  test("the gradient rule reproduces KoboldCpp's table", () => {
    expect(Math.round(gradientBase(500000, 8192, 16384))).toBe(1776948);
    expect(Math.round(gradientBase(10000, 4096, 8192))).toBe(26784);
  });
});

interface YarnShape {
  name: string;
  headDim: number;
  theta: number;
  original: number;
  factor: number;
  truncate?: boolean;
  share?: number;
  raw: [string, string];
  range: [number, number] | null;
  magnitude: string;
  unchanged: number;
  full: number;
  samples: [number, string][];
  neverTurned: number;
}

const yarnShapes: YarnShape[] = [
  {
    name: "Llama-2 ×2",
    headDim: 128,
    theta: 1e4,
    original: 4096,
    factor: 2,
    raw: ["20.9445", "45.0269"],
    range: [20, 46],
    magnitude: "1.06931472",
    unchanged: 21,
    full: 18,
    samples: [[32, "7.692307692e-3"]],
    neverTurned: 18,
  },
  {
    name: "Llama-2 ×16",
    headDim: 128,
    theta: 1e4,
    original: 4096,
    factor: 16,
    raw: ["20.9445", "45.0269"],
    range: [20, 46],
    magnitude: "1.27725887",
    unchanged: 21,
    full: 18,
    samples: [
      [32, "5.673076923e-3"],
      [63, "7.217387404e-6"],
    ],
    neverTurned: 18,
  },
  {
    name: "Qwen2.5 and Qwen3 ×4",
    headDim: 128,
    theta: 1e6,
    original: 32768,
    factor: 4,
    raw: ["23.5959", "39.6509"],
    range: [23, 40],
    magnitude: "1.13862944",
    unchanged: 24,
    full: 24,
    samples: [[32, "6.029411765e-4"]],
    neverTurned: 24,
  },
  {
    name: "gpt-oss, ends not rounded",
    headDim: 64,
    theta: 150000,
    original: 4096,
    factor: 32,
    truncate: false,
    raw: ["8.0927791155", "17.3980245016"],
    range: null,
    magnitude: "1.34657359",
    unchanged: 9,
    full: 14,
    samples: [[16, "4.564839192e-4"]],
    neverTurned: 14,
  },
  {
    name: "gpt-oss, ends rounded",
    headDim: 64,
    theta: 150000,
    original: 4096,
    factor: 32,
    raw: ["8.0927791155", "17.3980245016"],
    range: [8, 18],
    magnitude: "1.34657359",
    unchanged: 9,
    full: 14,
    samples: [[16, "5.809475019e-4"]],
    neverTurned: 14,
  },
  {
    name: "DeepSeek-V3 ×40",
    headDim: 64,
    theta: 1e4,
    original: 4096,
    factor: 40,
    raw: ["10.4722", "22.5134"],
    range: [10, 23],
    magnitude: "1.36888795",
    unchanged: 11,
    full: 9,
    samples: [[16, "5.5e-3"]],
    neverTurned: 9,
  },
  {
    name: "Kimi K2.5 ×64",
    headDim: 64,
    theta: 5e4,
    original: 4096,
    factor: 64,
    raw: ["8.9145", "19.1646"],
    range: [8, 20],
    magnitude: "1.41588831",
    unchanged: 9,
    full: 12,
    samples: [[16, "1.537296735e-3"]],
    neverTurned: 12,
  },
  {
    name: "Devstral-2 and Ministral ×48",
    headDim: 128,
    theta: 1e8,
    original: 8192,
    factor: 48,
    raw: ["12.8805", "24.9217"],
    range: [12, 25],
    magnitude: "1.3871201",
    unchanged: 13,
    full: 39,
    samples: [],
    neverTurned: 39,
  },
  {
    name: "Qwen3.8 ×4, a quarter of 256 channels",
    headDim: 256,
    theta: 1e7,
    original: 262144,
    factor: 4,
    share: 0.25,
    raw: ["14.2410", "21.1216"],
    range: [14, 22],
    magnitude: "1.13862944",
    unchanged: 15,
    full: 10,
    samples: [],
    neverTurned: 10,
  },
];

describe.each(yarnShapes)("YaRN: $name", (shape) => {
  const rotaryDim = shape.headDim * (shape.share ?? 1);
  const ramp = { ropeTheta: shape.theta, originalMaxPositionEmbeddings: shape.original };
  const rope: RopeParameters = {
    ropeType: "yarn",
    ...ramp,
    factor: shape.factor,
    ...(shape.truncate === undefined ? {} : { truncate: shape.truncate }),
    ...(shape.share === undefined ? {} : { partialRotaryFactor: shape.share }),
  };
  const config = { headDim: shape.headDim, maxPositionEmbeddings: shape.original * shape.factor, rope };
  const { inverseFrequencies, attentionFactor } = computeRopeFrequencies(config, 1);
  const plain = unscaled(rotaryDim, shape.theta);

  test("ends of the ramp", () => {
    const raw = yarnRange({ ...ramp, truncate: false }, rotaryDim);
    expectPrinted(raw.low, shape.raw[0]);
    expectPrinted(raw.high, shape.raw[1]);
    if (shape.range) {
      expect(yarnRange(ramp, rotaryDim)).toEqual({ low: shape.range[0], high: shape.range[1] });
    }
  });

  test("multiplier of cos and sin", () => {
    expectPrinted(attentionFactor, shape.magnitude);
  });

  test("pairs unchanged, pairs divided by the factor, and samples", () => {
    expect(inverseFrequencies.length).toBe(rotaryDim / 2);
    expect(plain.filter((w, i) => inverseFrequencies[i] === w).length).toBe(shape.unchanged);
    expect(plain.filter((w, i) => inverseFrequencies[i] === w / shape.factor).length).toBe(shape.full);
    for (const [i, digits] of shape.samples) expectPrinted(inverseFrequencies[i]!, digits);
  });

  test("pairs that never saw a full turn in the original length", () => {
    expect(plain.filter((w) => (2 * Math.PI) / w > shape.original).length).toBe(shape.neverTurned);
  });
});

describe("YaRN's settings", () => {
  test("rounding the ends changes a frequency of gpt-oss by 27 %", () => {
    const settings = { ropeTheta: 150000, factor: 32, originalMaxPositionEmbeddings: 4096 };
    const rounded = frequencies(64, 131072, { ropeType: "yarn", ...settings, truncate: true });
    const exact = frequencies(64, 131072, { ropeType: "yarn", ...settings, truncate: false });
    expectPrinted(rounded[16]! / exact[16]!, "1.27");
  });

  test("DeepSeek's equal mscale and mscale_all_dim cancel in cos and sin and return squared in the softmax scale", () => {
    for (const [mscale, softmaxFactor] of [
      [0.707, "1.5896"],
      [1, "1.8739"],
    ] as const) {
      const rope: RopeParameters = {
        ropeType: "yarn",
        ropeTheta: 10000,
        factor: 40,
        originalMaxPositionEmbeddings: 4096,
        mscale,
        mscaleAllDim: mscale,
      };
      const config = { headDim: 64, maxPositionEmbeddings: 163840, rope };
      expect(computeRopeFrequencies(config, 1).attentionFactor).toBe(1);
      expectPrinted(deepseekSoftmaxFactor(40, mscale), softmaxFactor);
    }
  });

  test("a magnitude on q and on k enters the score squared (D12)", () => {
    const { inverseFrequencies } = computeRopeFrequencies(
      { headDim: 8, maxPositionEmbeddings: 64, rope: { ropeType: "default", ropeTheta: 10000 } },
      64,
    );
    const query = [0.3, -1, 0.5, 2, 0.1, 0.7, -0.4, 1];
    const key = [1, 0.2, -0.6, 0.4, 0.9, -1.1, 0.8, 0.3];
    const score = (attentionFactor: number) => {
      const at = (vector: number[], position: number) =>
        applyRotary(vector, rotaryTables({ inverseFrequencies, attentionFactor }, [position]), {
          headDim: 8,
          layout: "half",
        });
      const k = at(key, 3);
      return at(query, 10).reduce((sum, x, i) => sum + x * k[i]!, 0);
    };
    expect(score(yarnMagnitude(4)) / score(1)).toBeCloseTo(yarnMagnitude(4) ** 2, 13);
  });
});

describe("llama3", () => {
  const split = (headDim: number, factor: number) => {
    const scaled = frequencies(headDim, 131072, {
      ropeType: "llama3",
      ropeTheta: 500000,
      factor,
      originalMaxPositionEmbeddings: 8192,
      lowFreqFactor: 1,
      highFreqFactor: 4,
    });
    const plain = unscaled(headDim, 500000);
    const unchanged = plain.filter((w, i) => scaled[i] === w).length;
    const divided = plain.filter((w, i) => scaled[i] === w / factor).length;
    return { scaled, plain, regions: [unchanged, plain.length - unchanged - divided, divided] };
  };

  test("Llama 3.1 8B: 29 pairs unchanged, 6 blended, 29 divided by 8", () => {
    const { scaled, regions } = split(128, 8);
    expect(regions).toEqual([29, 6, 29]);
    expectPrinted(scaled[29]!, "2.166570764e-3");
    expectPrinted(scaled[34]!, "1.785078128e-4");
  });

  test("Llama 3.2 1B: 15, 3 and 14 pairs at factor 32", () => {
    const { scaled, regions } = split(64, 32);
    expect(regions).toEqual([15, 3, 14]);
    expectPrinted(scaled[15]!, "1.290547928e-3");
    expectPrinted(scaled[16]!, "4.295567966e-4");
    expectPrinted(scaled[17]!, "9.708287803e-5");
  });

  test("as GGUF's divisors: 1, 1 / ((1 − t) / s + t), s", () => {
    const { scaled, plain } = split(128, 8);
    for (const [i, w] of plain.entries()) {
      const t = ((8192 * w) / (2 * Math.PI) - 1) / 3;
      const divisor = t > 1 ? 1 : t < 0 ? 8 : 1 / ((1 - t) / 8 + t);
      expect(w / scaled[i]!).toBeCloseTo(divisor, 12);
    }
  });
});

describe("longrope", () => {
  test.each([
    [4096, "1.1902380714"],
    [8192, "1.1435437498"],
  ])("attention factor of 131072 over %i, for the short and the long list alike", (original, digits) => {
    const rope: RopeParameters = {
      ropeType: "longrope",
      ropeTheta: 10000,
      originalMaxPositionEmbeddings: original,
      shortFactor: [1, 1],
      longFactor: [2, 4],
    };
    for (const length of [1, original, original + 1, 131072]) {
      const config = { headDim: 4, maxPositionEmbeddings: 131072, rope };
      expectPrinted(computeRopeFrequencies(config, length).attentionFactor, digits);
    }
  });
});

describe("proportional", () => {
  test("Gemma 4's full layers turn 64 of 256 pairs, with exponents over the whole head of 512", () => {
    const values = frequencies(512, 262144, { ropeType: "proportional", ropeTheta: 1e6, partialRotaryFactor: 0.25 });
    expect(values.length).toBe(256);
    expect(values.filter((w) => w > 0).length).toBe(64);
    expect(values.slice(0, 64)).toEqual(unscaled(512, 1e6).slice(0, 64));
    expect(values.slice(64).every((w) => w === 0)).toBe(true);
  });

  test("is another model than partial rotary: it drops the slow pairs, partial rotary keeps the spectrum", () => {
    const dropped = frequencies(128, 1, { ropeType: "proportional", ropeTheta: 1e4, partialRotaryFactor: 0.25 });
    const squeezed = frequencies(128, 1, { ropeType: "default", ropeTheta: 1e4, partialRotaryFactor: 0.25 });
    const slowest = (values: number[]) => Math.min(...values.filter((w) => w > 0));
    expect(dropped.filter((w) => w > 0).length).toBe(squeezed.length);
    expect(slowest(dropped)).toBeCloseTo(10000 ** (-30 / 128), 12);
    expect(slowest(squeezed)).toBeCloseTo(10000 ** (-30 / 32), 12);
  });
});

describe("logit temperature", () => {
  test("Llama 4: 1 up to position 8190, then 1.06931472, and 1.28332133 at 131071", () => {
    const values = logitTemperature({ kind: "llama4", scale: 0.1, floorScale: 8192 }, [0, 8190, 8191, 131071], 131072);
    expect(values[0]).toBe(1);
    expect(values[1]).toBe(1);
    expectPrinted(values[2]!, "1.06931472");
    expectPrinted(values[3]!, "1.28332133");
  });

  test("Ministral 3 steps one position later: at 16 where Llama 4 steps at 15", () => {
    const at = (positions: number[]) => ({
      llama4: logitTemperature({ kind: "llama4", scale: 0.1, floorScale: 16 }, positions, 32),
      ministral3: logitTemperature({ kind: "ministral3", beta: 0.1, originalMaxPositionEmbeddings: 16 }, positions, 32),
    });
    const { llama4, ministral3 } = at([14, 15, 16]);
    const step = 1 + 0.1 * Math.log(2);
    expect(Array.from(llama4)).toEqual([1, step, step]);
    expect(Array.from(ministral3)).toEqual([1, 1, step]);
  });

  test("DroPE: 1 + c ln(L / trained), c 0.412 from scratch and 0.103 for SmolLM", () => {
    for (const coefficient of [0.412, 0.103]) {
      const factors = logitTemperature({ kind: "drope", coefficient, trainedLength: 1024 }, [0, 5], 2048);
      expect(Array.from(factors)).toEqual([1 + coefficient * Math.log(2), 1 + coefficient * Math.log(2)]);
      expect(logitTemperature({ kind: "drope", coefficient, trainedLength: 1024 }, [0], 1024)[0]).toBe(1);
    }
  });
});

describe("the precision of angles: max |cos error| over 64 pairs, theta 1e4", () => {
  const bfloat16 = (x: number) => bfloat16Value(bfloat16Bits(x));
  const omega = unscaled(128, 10000);
  const omega32 = omega.map(Math.fround);

  const worst = (position: number, angles: ArrayLike<number>) => {
    const exact = rotaryTables({ inverseFrequencies: omega, attentionFactor: 1 }, [position]).cos;
    return Math.max(...exact.map((x, i) => Math.abs(Math.cos(angles[i]!) - x)));
  };
  /** θ ← θ·b^(−2/d), all in float32, as ggml builds its angles. */
  const iterative = (position: number) => {
    const ratio = Math.fround(10000 ** (-2 / 128));
    const angles = [position];
    while (angles.length < 64) angles.push(Math.fround(angles.at(-1)! * ratio));
    return angles;
  };

  test.each([
    [257, "6e-6", "3e-5", "0.11", "0.86"],
    [4095, "1.4e-4", "4e-4", "1.68", "0.87"],
    // 2.247e-3: the 2.3e-3 that is quoted for it was rounded twice.
    [32767, "5e-4", "2.247e-3", "2.00", "0.72"],
    [131071, "1.5e-3", "1.2e-2", "1.93", "0.86"],
    [1048575, "2.5e-2", "8.5e-2", "1.94", "0.80"],
  ])("position %i", (position, direct, stepwise, coarseFrequency, coarsePosition) => {
    expectPrinted(
      worst(
        position,
        omega32.map((w) => Math.fround(position * w)),
      ),
      direct,
    );
    expectPrinted(worst(position, iterative(position)), stepwise);
    expectPrinted(
      worst(
        position,
        omega.map((w) => Math.fround(position * bfloat16(w))),
      ),
      coarseFrequency,
    );
    expectPrinted(
      worst(
        position,
        omega.map((w) => bfloat16(position) * w),
      ),
      coarsePosition,
    );
  });

  test("bfloat16 holds integers up to 256, float16 up to 2048", () => {
    const float16 = (x: number) => float16Value(float16Bits(x));
    for (let n = 0; n <= 256; n++) expect(bfloat16(n)).toBe(n);
    expect(bfloat16(257)).toBe(256);
    for (let n = 0; n <= 2048; n++) expect(float16(n)).toBe(n);
    expect(float16(2049)).toBe(2048);
  });
});

describe("where papers and engines disagree on the same settings", () => {
  test("D9: the paper's ramp on turns and the code's ramp on the index are not the same curve", () => {
    const settings = { ropeTheta: 10000, factor: 16, originalMaxPositionEmbeddings: 4096 };
    const paper = frequencies(128, 65536, { ropeType: "ntk-by-parts", ...settings });
    const code = frequencies(128, 65536, { ropeType: "yarn", ...settings });
    const plain = unscaled(128, 10000);
    // They agree at both ends, exactly ...
    for (const i of [0, 10, 20]) expect(paper[i]).toBe(code[i]);
    for (const i of [46, 63]) {
      expect(code[i]).toBe(plain[i]! / 16);
      expect(paper[i]).toBe(code[i]);
    }
    // ... and differ between them by up to 3: turns fall geometrically with the index, so the paper interpolates slow
    // pairs earlier.
    const ratios = code.map((w, i) => w / paper[i]!);
    const [most, least] = [Math.max(...ratios), Math.min(...ratios)];
    expect([ratios.indexOf(most), ratios.indexOf(least)]).toEqual([38, 21]);
    expectPrinted(most, "3.041414887");
    expectPrinted(least, "0.971423431");
  });

  test("D8: vLLM's ntk shrinks the fastest pair too, by s^(2/d); bloc97's leaves it alone", () => {
    const [d, theta, s] = [128, 10000, 4];
    const bloc97 = frequencies(d, 1, { ropeType: "ntk", ropeTheta: theta, factor: s });
    // ω_i·s^(−2(i+1)/d): the base times s, and the whole series divided by s^(2/d).
    const vllm = unscaled(d, theta * s).map((w) => w / s ** (2 / d));
    for (const [i, w] of unscaled(d, theta).entries()) {
      expect(vllm[i]! / (w * s ** ((-2 * (i + 1)) / d))).toBeCloseTo(1, 13);
      // kexue's mixed_b with exponent 1 is the same rule.
      const a = Math.log(s) / (d / 2);
      expect(vllm[i]! / (w / Math.exp(a * (i + 1)))).toBeCloseTo(1, 13);
    }
    expect(bloc97[0]).toBe(1);
    expectPrinted(vllm[0]!, "0.97857");
    // Both divide the slowest pair by s.
    expect(bloc97[63]! / vllm[63]!).toBeCloseTo(1, 13);
    // vLLM's dynamic, written with max_len / L for the stretched length s·L, has a bracket of 1: no scaling at all.
    expect((s * 2048) / 2048 - (s - 1)).toBe(1);
    const whole = frequencies(d, 2048, { ropeType: "dynamic", ropeTheta: theta, factor: s }, s * 2048);
    expect(baseOf(whole)).toBeCloseTo(theta * (s * s - (s - 1)) ** (d / (d - 2)), 5);
  });

  test("D5: ggml widens a ramp of less than 0.001, transformers only one of exactly 0", () => {
    const ggmlShare = (i: number, low: number, high: number) =>
      Math.min(Math.max((i - low) / Math.max(0.001, high - low), 0), 1);
    const ours = (betaFast: number, betaSlow: number) => {
      const rope = { ropeTheta: 10000, factor: 8, originalMaxPositionEmbeddings: 4096, betaFast, betaSlow };
      const scaled = frequencies(128, 32768, { ropeType: "yarn", ...rope });
      return {
        range: yarnRange(rope, 128),
        share: unscaled(128, 10000).map((w, i) => (1 - scaled[i]! / w) / (1 - 1 / 8)),
      };
    };
    // The usual betas: the same ramp.
    const usual = ours(32, 1);
    for (const [i, share] of usual.share.entries()) {
      expect(share).toBeCloseTo(ggmlShare(i, usual.range.low, usual.range.high), 13);
    }
    // Reversed betas: high below low. transformers ramps downwards, ggml steps up at low.
    const reversed = ours(1, 32);
    expect(reversed.range.high).toBeLessThan(reversed.range.low);
    expect([reversed.share[0], reversed.share[63]].map((x) => Math.round(x!))).toEqual([1, 0]);
    expect([0, 63].map((i) => ggmlShare(i, reversed.range.low, reversed.range.high))).toEqual([0, 1]);
  });

  test("a ramp without width is 0.001 wide", () => {
    const ramp = { ropeTheta: 1e6, originalMaxPositionEmbeddings: 32768, betaFast: 8, betaSlow: 8 };
    const { low, high } = yarnRange({ ...ramp, truncate: false }, 128);
    expect(low).toBeCloseTo((128 * Math.log(32768 / (16 * Math.PI))) / (2 * Math.log(1e6)), 12);
    expect(high - low).toBeCloseTo(0.001, 12);
    expect(yarnRange({ ropeTheta: 1e4, originalMaxPositionEmbeddings: 6 }, 64)).toEqual({ low: 0, high: 0.001 });
  });

  test("D1: taking the extended length for the ramp, as exllamav2 does, moves Qwen2.5's ends from 23, 40 to 30, 47", () => {
    const settings = { ropeTheta: 1e6, factor: 4 };
    expect(yarnRange({ ...settings, originalMaxPositionEmbeddings: 32768 }, 128)).toEqual({ low: 23, high: 40 });
    expect(yarnRange({ ...settings, originalMaxPositionEmbeddings: 131072 }, 128)).toEqual({ low: 30, high: 47 });
    const right = frequencies(128, 131072, { ropeType: "yarn", ...settings, originalMaxPositionEmbeddings: 32768 });
    const wrong = frequencies(128, 131072, { ropeType: "yarn", ...settings, originalMaxPositionEmbeddings: 131072 });
    expectPrinted(Math.max(...wrong.map((w, i) => w / right[i]!)), "2.2");
  });

  test("D2: with mscale_all_dim alone transformers multiplies by 0.1 ln s + 1, mlx-lm by 1", () => {
    const rope: RopeParameters = {
      ropeType: "yarn",
      ropeTheta: 10000,
      factor: 40,
      originalMaxPositionEmbeddings: 4096,
      mscaleAllDim: 1,
    };
    const config = { headDim: 64, maxPositionEmbeddings: 163840, rope };
    expectPrinted(computeRopeFrequencies(config, 1).attentionFactor, "1.36888795");
    // mlx-lm reads a missing mscale as 1: m(40, 1) / m(40, 1).
    expect(yarnMagnitude(40, 1) / yarnMagnitude(40, 1)).toBe(1);
  });
});
