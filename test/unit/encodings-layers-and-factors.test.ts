import { describe, expect, test } from "vitest";
import { everyNthLayer, ropeLayers, ropeOnLocalLayers, slidingPattern } from "../../src/encodings/layer-patterns.ts";
import { type LogitTemperature, logitTemperature } from "../../src/encodings/logit-temperature.ts";
import { nope } from "../../src/encodings/nope.ts";
import { deepseekSoftmaxFactor } from "../../src/encodings/softmax-factor.ts";
import { largestRelativeError, otherEncodings } from "../support/encodings-other.ts";

const { layers, factors } = otherEncodings;

describe("layer patterns", () => {
  test("equal the configurations of Gemma 2, Gemma 3 and Cohere2", () => {
    expect(slidingPattern(7, 2)).toEqual(layers.gemma2);
    expect(slidingPattern(13, 6)).toEqual(layers.gemma3);
    expect(slidingPattern(9, 4)).toEqual(layers.cohere2);
  });

  test("no_rope_layers says 1 for RoPE: SmolLM3 and Llama 4 have none on every 4th layer", () => {
    const flags = (rotates: boolean[]) => rotates.map(Number);
    expect(flags(ropeLayers({ numLayers: 9 }))).toEqual(layers.smollm3);
    expect(flags(ropeLayers({ numLayers: 9, noRopeLayerInterval: 4 }))).toEqual(layers.llama4);
    expect(flags(ropeLayers({ numLayers: 5, noRopeLayerInterval: 2 }))).toEqual(layers.smollm3Interval2);
    // Read back, the list gives the layers it came from, and wins over an interval.
    expect(ropeLayers({ numLayers: 9, noRopeLayers: layers.smollm3, noRopeLayerInterval: 2 })).toEqual(
      ropeLayers({ numLayers: 9 }),
    );
    expect(ropeLayers({ numLayers: 36 }).flatMap((rotates, i) => (rotates ? [] : [i]))).toEqual([
      3, 7, 11, 15, 19, 23, 27, 31, 35,
    ]);
  });

  test("only local layers rotate: Llama 4's types agree with its own list", () => {
    expect(ropeOnLocalLayers(layers.llama4Types as Parameters<typeof ropeOnLocalLayers>[0]).map(Number)).toEqual(
      layers.llama4,
    );
  });

  test("lists that do not fit are refused", () => {
    expect(() => ropeLayers({ numLayers: 4, noRopeLayers: [] })).toThrow(/4, got 0; leave it out/);
    expect(() => ropeLayers({ numLayers: 2, noRopeLayers: [1] })).toThrow(/2, got 1/);
    expect(() => ropeLayers({ numLayers: 2, noRopeLayers: [1, 2] })).toThrow(/noRopeLayers\[1\].*got 2/);
    expect(() => everyNthLayer(4, 0)).toThrow(/interval/);
    expect(() => ropeOnLocalLayers(["global" as "full_attention"])).toThrow(/layerTypes\[0\].*"global"/);
  });
});

describe("factors", () => {
  test("DeepSeek's m² equals the softmax scale that transformers builds, times √D", () => {
    for (const [factor, mscaleAllDim, expected] of factors.deepseek) {
      expect(Math.abs(deepseekSoftmaxFactor(factor, mscaleAllDim) / expected - 1)).toBeLessThan(1e-15);
    }
  });

  test("anchors: V2-Lite 1.5896, V3 1.8739, none for mscale_all_dim 0 or a factor of at most 1", () => {
    expect(deepseekSoftmaxFactor(40, 0.707)).toBeCloseTo(1.5896, 4);
    expect(deepseekSoftmaxFactor(40, 1)).toBeCloseTo(1.8739, 4);
    expect(deepseekSoftmaxFactor(40, 0)).toBe(1);
    expect(deepseekSoftmaxFactor(0.5, 1)).toBe(1);
    expect(() => deepseekSoftmaxFactor(0, 1)).toThrow(/factor/);
  });

  const at = (temperature: LogitTemperature, length = 1) =>
    logitTemperature(temperature, factors.temperaturePositions, length);

  test("temperatures by position equal transformers' functions", () => {
    const llama4 = at({ kind: "llama4", scale: 0.1, floorScale: 16 });
    const ministral3 = at({ kind: "ministral3", beta: 0.1, originalMaxPositionEmbeddings: 16 });
    expect(largestRelativeError(llama4, factors.llama4)).toBeLessThan(1e-15);
    expect(largestRelativeError(ministral3, factors.ministral3)).toBeLessThan(1e-15);
    expect(largestRelativeError(at({ kind: "logn", trainedLength: 4096 }), factors.logn4096)).toBeLessThan(1e-15);
  });

  test("Llama 4 steps one position before Ministral 3 at the same period", () => {
    const llama4 = logitTemperature({ kind: "llama4", scale: 0.1, floorScale: 16 }, [14, 15, 16], 17);
    const ministral3 = logitTemperature(
      { kind: "ministral3", beta: 0.1, originalMaxPositionEmbeddings: 16 },
      [14, 15, 16],
      17,
    );
    expect([llama4[0], ministral3[0], ministral3[1]]).toEqual([1, 1, 1]);
    expect(llama4[1]).toBe(ministral3[2]);
    expect(llama4[1]).toBeGreaterThan(1);
  });

  test("DroPE's temperature depends on the length alone, and is 1 up to the trained one", () => {
    for (const [coefficient, ratio, expected] of factors.drope) {
      const got = logitTemperature({ kind: "drope", coefficient, trainedLength: 1024 }, [0, 5], 1024 * ratio);
      expect(got[0]).toBe(got[1]);
      expect(Math.abs(got[0]! / expected - 1)).toBeLessThan(1e-15);
    }
    expect(at({ kind: "drope", coefficient: 0.4, trainedLength: 4096 }, 100)[0]).toBe(1);
  });

  test("constants and positions that make no sense are refused, and so is an unknown kind", () => {
    expect(() => at({ kind: "llama4", scale: Number.NaN, floorScale: 16 })).toThrow(/scale/);
    expect(() => at({ kind: "llama4", scale: 0.1, floorScale: 0 })).toThrow(/floorScale/);
    expect(() => at({ kind: "ministral3", beta: Number.POSITIVE_INFINITY, originalMaxPositionEmbeddings: 1 })).toThrow(
      /beta/,
    );
    expect(() => at({ kind: "drope", coefficient: 1, trainedLength: 10 }, 0)).toThrow(/sequenceLength/);
    expect(() => at({ kind: "logn", trainedLength: 1 })).toThrow(/trainedLength/);
    expect(() => logitTemperature({ kind: "logn", trainedLength: 10 }, [-1], 1)).toThrow(/positions/);
    expect(() => logitTemperature({ kind: "drope", coefficient: 1, trainedLength: 10 }, [0.5], 1)).toThrow(/positions/);
    expect(() => at({ kind: "llama5" } as unknown as LogitTemperature)).toThrow(/"llama5"/);
  });

  test("NoPE adds nothing", () => {
    expect(nope()).toEqual({ site: "none", name: "nope" });
  });
});
