import { describe, expect, test } from "vitest";
import { enginesText } from "../../src/advice/chart/engines-text.ts";
import { inspectionSvg } from "../../src/advice/chart/svg.ts";
import { inspectionText } from "../../src/advice/chart/text.ts";
import { compareEngines } from "../../src/advice/engines.ts";
import { inspectModel } from "../../src/advice/inspect.ts";
import { parseStrategy } from "../../src/advice/strategy.ts";
import { clockHands } from "../../src/encodings/rope/hands.ts";
import type { RopeParameters } from "../../src/encodings/rope/scaling/parameters.ts";
import { describedModel, ropeGroup } from "../support/descriptions.ts";

const base: RopeParameters = { ropeType: "default", ropeTheta: 10000 };
// Llama-2's clock: head dimension 128, base 10000, 4096 tokens.
const llama2 = describedModel(base, {
  headDim: 128,
  groups: [
    ropeGroup(base, { position: { site: "query-key", kind: "rope", headDim: 128, layout: "half", rope: base } }),
  ],
});

describe("clockHands", () => {
  test("a hand of exactly one turn in training has shown every angle", () => {
    const [hand] = clockHands([(2 * Math.PI) / 1024], [(2 * Math.PI) / 1024], {
      trainedLength: 1024,
      targetLength: 9999,
    });
    expect(hand!.turnsInTraining).toBeCloseTo(1, 12);
    expect(hand!.seen).toBe(true);
  });

  test("interpolation by the exact factor brings every hand back to what was seen", () => {
    const trained = Float64Array.from({ length: 64 }, (_, i) => 10000 ** (-i / 64));
    const used = trained.map((w) => w / 8);
    const hands = clockHands(trained, used, { trainedLength: 2048, targetLength: 16384 });
    expect(hands.every((hand) => hand.seen)).toBe(true);
    expect(hands.filter((hand) => !hand.seenUnscaled).length).toBeGreaterThan(0);
  });

  test("a window bounds what a hand can show, in training and after", () => {
    const slow = [1e-4];
    const hand = (window: number | null) =>
      clockHands(slow, slow, { trainedLength: 8192, targetLength: 131072, window })[0]!;
    expect(hand(null).seen).toBe(false);
    expect(hand(1024).seen).toBe(true);
    // Turns are told of the whole lengths all the same.
    expect(hand(1024).turnsAtTarget).toBeCloseTo((131072 * 1e-4) / (2 * Math.PI), 12);
  });

  test("a window longer than training lets new angles in", () => {
    expect(clockHands([1e-4], [1e-4], { trainedLength: 2048, targetLength: 8192, window: 4096 })[0]!.seen).toBe(false);
  });

  test("a hand that stands still has no wavelength and nothing unseen", () => {
    expect(clockHands([0], [0], { trainedLength: 8, targetLength: 16 })[0]).toMatchObject({
      wavelength: null,
      turnsAtTarget: 0,
      seen: true,
    });
  });

  test("lists that do not fit are an error naming both lengths", () => {
    expect(() => clockHands([1, 2], [1], { trainedLength: 8, targetLength: 8 })).toThrow(/\(2\), got 1/);
  });
});

describe("inspectModel", () => {
  test("counts 18 of Llama-2's 64 hands as never finishing a turn", () => {
    const group = inspectModel(llama2, { target: 8192 }).groups[0]!;
    expect(group.summary).toEqual({ turning: 64, unfinishedInTraining: 18, unseenUnscaled: 18, unseen: 18 });
    expect(group.hands[0]!.wavelength).toBeCloseTo(2 * Math.PI, 12);
  });

  test("the target defaults to what the file claims", () => {
    expect(inspectModel(llama2).targetLength).toBe(4096);
    expect(inspectModel(llama2).groups[0]!.summary!.unseen).toBe(0);
  });

  test("linear:2 at twice the length leaves nothing unseen, yarn:2 neither", () => {
    for (const form of ["linear:2", "yarn:2"]) {
      const { summary } = inspectModel(llama2, { target: 8192, strategy: parseStrategy(form) }).groups[0]!;
      expect(summary).toMatchObject({ unseenUnscaled: 18, unseen: 0 });
    }
  });

  test("a scaling changes what is used, never what was trained", () => {
    const plain = inspectModel(llama2, { target: 8192 }).groups[0]!;
    const scaled = inspectModel(llama2, { target: 8192, strategy: parseStrategy("linear:2") }).groups[0]!;
    expect(scaled.hands.map((h) => h.turnsInTraining)).toEqual(plain.hands.map((h) => h.turnsInTraining));
    expect(scaled.hands[10]!.wavelength! / plain.hands[10]!.wavelength!).toBeCloseTo(2, 12);
    expect(scaled.inverseFrequencies[10]).toBeCloseTo(plain.inverseFrequencies[10]! / 2, 15);
  });

  test("the target defaults to what a scaling's factor reaches, where that is more than the file's maximum", () => {
    const rope: RopeParameters = {
      ropeType: "yarn",
      ropeTheta: 1e6,
      factor: 4,
      originalMaxPositionEmbeddings: 32768,
    };
    // Qwen 3 with opt-in YaRN: the file's maximum stays at 40960.
    const model = describedModel(rope, { maxPositionEmbeddings: 40960, trainedLength: 32768 });
    expect(inspectModel(model).targetLength).toBe(131072);
  });

  test("a trained length past the scaling's original one means training under the scaling", () => {
    const rope: RopeParameters = {
      ropeType: "llama3",
      ropeTheta: 500000,
      factor: 8,
      originalMaxPositionEmbeddings: 8192,
      lowFreqFactor: 1,
      highFreqFactor: 4,
    };
    const model = describedModel(rope, { maxPositionEmbeddings: 131072, trainedLength: 8192 });
    const first = inspectModel(model).groups[0]!;
    expect(first.summary!.unseen).toBeGreaterThan(0);
    const again = inspectModel(model, { trainedLength: 131072 }).groups[0]!;
    expect(again.summary!.unseen).toBe(0);
    expect(again.hands.map((h) => h.trainedWavelength)).toEqual(first.hands.map((h) => h.wavelength));
  });

  test("drop stops every hand", () => {
    const group = inspectModel(llama2, { target: 65536, strategy: { kind: "drop" } }).groups[0]!;
    expect(group.ropeType).toBe("drop");
    expect(new Set(group.inverseFrequencies)).toEqual(new Set([0]));
    expect(group.hands.every((h) => h.wavelength === null && h.turnsInTraining > 0)).toBe(true);
  });

  test("length is what a dynamic table sees; the target is where angles are asked for", () => {
    const rope: RopeParameters = { ropeType: "dynamic", ropeTheta: 10000, factor: 2 };
    const dynamic = describedModel(rope);
    const slow = (length?: number) =>
      inspectModel(dynamic, { target: 16384, ...(length === undefined ? {} : { length }) }).groups[0]!
        .inverseFrequencies[31]!;
    expect(slow(4096)).toBeGreaterThan(slow(16384));
    expect(slow()).toBe(slow(16384));
  });

  test("a scaling leaves windowed layers with settings of their own alone, and says so", () => {
    const model = describedModel(base, {
      modelType: "gemma3_text",
      groups: [
        ropeGroup(base, { layers: [0], layerType: "sliding_attention", slidingWindow: 512 }),
        ropeGroup(base, { layers: [1], layerType: "full_attention" }),
      ],
    });
    const inspection = inspectModel(model, { target: 8192, strategy: parseStrategy("linear:2") });
    expect(inspection.groups.map((g) => g.ropeType)).toEqual(["default", "linear"]);
    expect(inspection.findings.map((f) => f.code)).toEqual(["scaling-left-out"]);
    // Where one rope_parameters serves both, as in Qwen 2 and Gemma 2, both are scaled.
    const shared = inspectModel(
      { ...model, modelType: "qwen2" },
      { target: 8192, strategy: parseStrategy("linear:2") },
    );
    expect(shared.groups.map((g) => g.ropeType)).toEqual(["linear", "linear"]);
    const byType = { kind: "parameters", value: { sliding_attention: { rope_type: "linear", factor: 2 } } } as const;
    expect(inspectModel(model, { target: 8192, strategy: byType }).groups.map((g) => g.ropeType)).toEqual([
      "linear",
      "default",
    ]);
  });

  test("replacing a linear scaling that was trained with is a warning", () => {
    const rope: RopeParameters = { ropeType: "linear", ropeTheta: 1e6, factor: 8 };
    const codes = (form: string) =>
      inspectModel(describedModel(rope), { strategy: parseStrategy(form) }).findings.map((f) => f.code);
    expect(codes("yarn:4")).toEqual(["scaling-replaces-trained"]);
    expect(codes("none")).toEqual([]);
  });

  test("ALiBi shows slopes by head, T5 buckets from −N to N", () => {
    const rest = { slidingWindow: null, attentionChunkSize: null, logitTemperature: null, softmaxFactor: 1 };
    const model = describedModel(base, {
      trainedLength: null,
      maxPositionEmbeddings: null,
      groups: [
        { layers: [0], position: { site: "attention-bias", kind: "alibi", numHeads: 8, maxBias: 8 }, ...rest },
        {
          layers: [1],
          position: {
            site: "attention-bias",
            kind: "t5",
            numHeads: 4,
            numBuckets: 32,
            maxDistance: 128,
            bidirectional: true,
          },
          ...rest,
        },
      ],
    });
    const [alibi, t5] = inspectModel(model, { length: 64 }).groups;
    expect(alibi!.slopes).toEqual([0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625]);
    // field.md: bidirectional ±64 → 14/30, ±8 → 8/24, −1 → 1, +1 → 17.
    expect(t5!.buckets!.firstDistance).toBe(-64);
    const at = (distance: number) => t5!.buckets!.values[distance + 64];
    expect([at(-64), at(64), at(-8), at(8), at(-1), at(0), at(1)]).toEqual([14, 30, 8, 24, 1, 0, 17]);
    expect(t5!.buckets!.values).toHaveLength(129);
  });

  test("slopes carry the scale of a model that adds its bias before the softmax scale", () => {
    const alibi = (slopeScale?: number) =>
      inspectModel(
        describedModel(base, {
          groups: [
            {
              ...ropeGroup(base),
              position: {
                site: "attention-bias",
                kind: "alibi",
                numHeads: 8,
                maxBias: 8,
                ...(slopeScale === undefined ? {} : { slopeScale }),
              },
            },
          ],
        }),
      ).groups[0]!.slopes!;
    expect(alibi(1 / 8)).toEqual(alibi().map((slope) => slope / 8));
  });

  test("a target past a learned table is an error finding that names both numbers", () => {
    const model = describedModel(base, {
      trainedLength: 1024,
      maxPositionEmbeddings: 1024,
      groups: [
        {
          ...ropeGroup(base),
          position: { site: "embedding", kind: "learned", hiddenSize: 8, numPositions: 1024, offset: 0 },
        },
      ],
    });
    expect(inspectModel(model).findings).toEqual([]);
    expect(inspectModel(model, { target: 2048 }).findings[0]).toMatchObject({
      severity: "error",
      got: 2048,
      expected: expect.stringContaining("1024"),
    });
  });

  test("a scaling for a model without rotary layers is an error", () => {
    const model = describedModel(base, { groups: [{ ...ropeGroup(base), position: { site: "none", kind: "nope" } }] });
    expect(() => inspectModel(model, { strategy: parseStrategy("yarn:2") })).toThrow(/rotary layers/);
  });

  test.each([0, -1, 1.5, Number.NaN, Infinity])("a target of %s is an error", (target) => {
    expect(() => inspectModel(llama2, { target })).toThrow(/target/);
  });

  test("JSON carries no NaN, infinity or typed array", () => {
    const inspection = inspectModel(llama2, { target: 8192, strategy: { kind: "drop" } });
    expect(JSON.parse(JSON.stringify(inspection))).toEqual(inspection);
  });
});

describe("charts", () => {
  const inspection = inspectModel(llama2, { target: 16384, strategy: parseStrategy("yarn:4") });

  test("the text says the counts, and no line is wider than asked", () => {
    const text = inspectionText(inspection, undefined, 80);
    const flowing = text.replace(/\s+/g, " ");
    expect(flowing).toContain("18 of 64 hands never finish a turn in 4,096 tokens");
    expect(flowing).toContain("18 hands reach unseen angles without scaling, no hand reaches them with it");
    expect(flowing).toContain("Attention factor 1.13862944");
    for (const line of text.split("\n")) expect([...line].length).toBeLessThanOrEqual(80);
  });

  test("every hand is one circle of the SVG in each row, and names are escaped", () => {
    const svg = inspectionSvg({ ...inspection, model: { ...inspection.model, name: "<script>&" } });
    expect(svg.match(/<circle/g)).toHaveLength(2 * 64 + 2);
    expect(svg).not.toContain("<script>");
    expect(svg).toContain("&#60;script&#62;&#38;");
  });
});

describe("engines", () => {
  // gpt-oss: field.md's pair 16 is 27 % higher where truncate is not read.
  const rope: RopeParameters = {
    ropeType: "yarn",
    ropeTheta: 150000,
    factor: 32,
    originalMaxPositionEmbeddings: 4096,
    truncate: false,
  };
  const model = describedModel(rope, { modelType: "gpt_oss", maxPositionEmbeddings: 131072, trainedLength: 4096 });
  const comparisons = compareEngines(inspectModel(model), model);

  test("llama.cpp rounds gpt-oss's ramp, vLLM does not", () => {
    const of = (dialect: string) => comparisons[0]!.engines.find((engine) => engine.dialect === dialect)!;
    expect(of("vllm").frequencyDifference).toBeLessThan(1e-12);
    expect(of("llama.cpp").frequencyDifference).toBeGreaterThan(0.2);
    expect(of("llama.cpp").notes.map((note) => note.key)).toContain("truncate");
  });

  test("SGLang keeps gpt-oss's ramp, reads no attention_factor, and makes one table of dynamic", () => {
    const row = (parameters: RopeParameters, trainedLength: number, target: number) => {
      const given = describedModel(parameters, { maxPositionEmbeddings: trainedLength, trainedLength });
      return compareEngines(inspectModel(given, { target, length: target }), given)[0]!.engines.find(
        ({ dialect }) => dialect === "sglang",
      )!;
    };
    const read = comparisons[0]!.engines.find(({ dialect }) => dialect === "sglang")!;
    expect(read.engine).toBe("SGLang 0.5.23");
    expect(read.frequencyDifference).toBeLessThan(1e-12);
    // m(4) in place of what the file says.
    const yarn = { ropeType: "yarn", ropeTheta: 1e6, factor: 4, originalMaxPositionEmbeddings: 32768 } as const;
    const given = row({ ...yarn, attentionFactor: 2 }, 32768, 131072);
    expect(given.scoreFactor).toBeCloseTo(1.13862944 ** 2, 7);
    expect(given.notes.map(({ key, code }) => [key, code])).toContainEqual(["attentionFactor", "key-ignored"]);
    // vLLM-project issue 3488: static, though the sequence is short.
    const dynamic = row({ ropeType: "dynamic", ropeTheta: 10000, factor: 2 }, 2048, 1024);
    expect(dynamic.frequencyDifference).toBeGreaterThan(0.5);
    expect(dynamic.notes.map(({ code }) => code)).toContain("fixed-at-start");
  });

  test("the table names every engine, and fits its width", () => {
    const text = enginesText(comparisons, undefined, 80);
    for (const name of ["transformers-5", "llama.cpp", "vllm", "sglang", "mlx-lm", "exllamav2"]) {
      expect(text).toContain(name);
    }
    for (const line of text.split("\n")) expect([...line].length).toBeLessThanOrEqual(80);
  });

  test("a dropped or absent rotation has nothing to compare", () => {
    expect(compareEngines(inspectModel(model, { strategy: { kind: "drop" } }), model)).toEqual([]);
    expect(enginesText([])).toContain("No layer rotates");
  });
});
