import { describe, expect, test } from "vitest";
import { applyStrategy, parseStrategy, trainedConfig } from "../../src/advice/strategy.ts";
import { computeRopeFrequencies } from "../../src/encodings/rope/scaling/index.ts";
import type { RopeParameters } from "../../src/encodings/rope/scaling/parameters.ts";
import { describedModel, ropeGroup } from "../support/descriptions.ts";

describe("parseStrategy", () => {
  test("reads the short forms", () => {
    expect(parseStrategy("none")).toEqual({ kind: "none" });
    expect(parseStrategy(" drop ")).toEqual({ kind: "drop" });
    expect(parseStrategy("linear:2.5")).toEqual({ kind: "short", name: "linear", factor: 2.5 });
    expect(parseStrategy("dynamic-yarn")).toEqual({ kind: "short", name: "dynamic-yarn", factor: 1 });
    expect(parseStrategy("self-extend:8")).toEqual({ kind: "self-extend", groupSize: 8 });
    expect(parseStrategy("self-extend:8:1024")).toEqual({
      kind: "self-extend",
      groupSize: 8,
      neighborWindow: 1024,
    });
  });

  test("reads a JSON object", () => {
    expect(parseStrategy('{"rope_type":"linear","factor":2}')).toEqual({
      kind: "parameters",
      value: { rope_type: "linear", factor: 2 },
    });
  });

  test.each([
    ["yarm:4", /nearest: yarn/],
    ["self-extent:4", /nearest: self-extend/],
    ["zzz:4", /got "zzz:4"$/],
    ["yarn", /yarn:FACTOR/],
    ["yarn:", /factor above 0/],
    ["yarn:0", /factor above 0/],
    ["yarn:-1", /factor above 0/],
    ["yarn:4:5", /factor above 0/],
    ["yarn:1e999", /factor above 0/],
    ["none:2", /without a number/],
    ["dynamic-yarn:2", /without a number/],
    ["longrope:4", /JSON object for longrope/],
    ["{bad", /JSON object/],
    ["", /expected one of/],
  ])("%j is an error that says what was expected", (text, message) => {
    expect(() => parseStrategy(text)).toThrow(message);
  });
});

describe("applyStrategy", () => {
  const base: RopeParameters = { ropeType: "default", ropeTheta: 10000 };
  const model = describedModel(base);

  test("yarn:F takes the trained length as the original", () => {
    expect(applyStrategy(parseStrategy("yarn:4"), ropeGroup(base), model)).toEqual({
      headDim: 64,
      maxPositionEmbeddings: 4096,
      rope: { ropeType: "yarn", ropeTheta: 10000, factor: 4, originalMaxPositionEmbeddings: 4096 },
    });
  });

  test("what moves positions is no scaling, and is refused where frequencies are asked for", () => {
    expect(() => applyStrategy(parseStrategy("self-extend:8"), ropeGroup(base), model)).toThrow(
      /expected a scaling.*got self-extend.*keeps them; score, generate/,
    );
  });

  test("a JSON object may leave out what the model knows", () => {
    expect(applyStrategy(parseStrategy('{"type":"yarn","factor":2}'), ropeGroup(base), model)).toMatchObject({
      rope: { ropeType: "yarn", ropeTheta: 10000, factor: 2, originalMaxPositionEmbeddings: 4096 },
    });
  });

  test("a JSON object's own theta wins", () => {
    expect(
      applyStrategy(parseStrategy('{"rope_type":"default","rope_theta":500000}'), ropeGroup(base), model),
    ).toMatchObject({ rope: { ropeType: "default", ropeTheta: 500000 } });
  });

  test("an unknown key in a JSON object is an error naming the nearest", () => {
    expect(() => applyStrategy(parseStrategy('{"rope_type":"yarn","faktor":4}'), ropeGroup(base), model)).toThrow(
      /faktor.*factor/,
    );
  });

  test("none gives the unscaled frequencies of a scaled file", () => {
    const yarn: RopeParameters = {
      ropeType: "yarn",
      ropeTheta: 10000,
      factor: 4,
      originalMaxPositionEmbeddings: 1024,
      partialRotaryFactor: 0.5,
    };
    const config = applyStrategy({ kind: "none" }, ropeGroup(yarn), describedModel(yarn));
    expect(config).toMatchObject({ rope: { ropeType: "default", ropeTheta: 10000, partialRotaryFactor: 0.5 } });
  });

  test("a strategy on a model that is already extended starts from its first trained length", () => {
    const yarn: RopeParameters = {
      ropeType: "yarn",
      ropeTheta: 10000,
      factor: 4,
      originalMaxPositionEmbeddings: 1024,
    };
    const extended = describedModel(yarn, { trainedLength: 1024 });
    expect(applyStrategy(parseStrategy("dynamic:8"), ropeGroup(yarn), extended)).toMatchObject({
      maxPositionEmbeddings: 1024,
      rope: { ropeType: "dynamic", factor: 8 },
    });
  });

  test("on a proportional encoding linear divides the hands that turn, and other rules are refused", () => {
    const rope: RopeParameters = { ropeType: "proportional", ropeTheta: 1e6, partialRotaryFactor: 0.25 };
    const group = ropeGroup(rope);
    expect(applyStrategy(parseStrategy("linear:4"), group, describedModel(rope))).toMatchObject({
      rope: { ropeType: "proportional", partialRotaryFactor: 0.25, factor: 4 },
    });
    expect(() => applyStrategy(parseStrategy("yarn:4"), group, describedModel(rope))).toThrow(
      /stood still in training/,
    );
  });

  test("without any trained length a factor has nothing to start from", () => {
    const unknown = describedModel(base, { trainedLength: null, maxPositionEmbeddings: null });
    expect(() => applyStrategy(parseStrategy("yarn:4"), ropeGroup(base), unknown)).toThrow(/--trained-length/);
  });
});

describe("trainedConfig", () => {
  test("of longrope is its short list at every length", () => {
    const rope: RopeParameters = {
      ropeType: "longrope",
      ropeTheta: 10000,
      originalMaxPositionEmbeddings: 4096,
      shortFactor: Array.from({ length: 32 }, () => 1),
      longFactor: Array.from({ length: 32 }, () => 30),
    };
    const config = trainedConfig(ropeGroup(rope).position, describedModel(rope, { maxPositionEmbeddings: 131072 }));
    const at = (length: number) => computeRopeFrequencies(config, length).inverseFrequencies[31]!;
    expect(at(131072)).toBe(at(16));
  });

  test("of dynamic does not grow", () => {
    const rope: RopeParameters = { ropeType: "dynamic", ropeTheta: 10000, factor: 4 };
    const config = trainedConfig(ropeGroup(rope).position, describedModel(rope));
    const at = (length: number) => computeRopeFrequencies(config, length).inverseFrequencies[31]!;
    expect(at(65536)).toBe(at(16));
  });
});
