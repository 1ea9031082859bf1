// Laws of rotary encodings, over random settings: what must hold whatever the scaling, the layout or the position.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { alibi } from "../../src/encodings/alibi.ts";
import type { RotaryLayout } from "../../src/encodings/position-encoding.ts";
import { halfFromInterleaved, interleavedFromHalf, permuteRows } from "../../src/encodings/rope/layouts.ts";
import { mropeAxes, mropeTables } from "../../src/encodings/rope/mrope.ts";
import { growingTables, rope } from "../../src/encodings/rope/rope.ts";
import { applyRotary, rotateHalf } from "../../src/encodings/rope/rotation.ts";
import {
  checkRopeParameters,
  computeRopeFrequencies,
  ropeDependsOnLength,
  ropeScalings,
  ropeTypes,
} from "../../src/encodings/rope/scaling/index.ts";
import type { RopeConfig, RopeParameters, RopeType } from "../../src/encodings/rope/scaling/parameters.ts";
import { rotaryTables } from "../../src/encodings/rope/tables.ts";

const layouts: readonly RotaryLayout[] = ["half", "interleaved"];
const theta = fc.constantFrom(10, 1e4, 150000, 5e5, 1e6, 1e8);
const factor = fc.double({ min: 1, max: 64, noNaN: true });
const original = fc.integer({ min: 64, max: 32768 });
const headDim = fc.integer({ min: 2, max: 64 }).map((half) => 2 * half);

/** Random settings of each type, for a head of `width` channels. */
function settings(ropeType: RopeType, width: number): fc.Arbitrary<RopeParameters> {
  const pairs = width / 2;
  const list = (min: number) =>
    fc.array(fc.double({ min, max: 64, noNaN: true }), { minLength: pairs, maxLength: pairs });
  const common = { ropeTheta: theta };
  const lengths = { ...common, originalMaxPositionEmbeddings: original };
  const ramp = {
    betaFast: fc.integer({ min: 8, max: 64 }),
    betaSlow: fc.integer({ min: 1, max: 4 }),
    truncate: fc.boolean(),
  };
  const by: { [T in RopeType]: fc.Arbitrary<Record<string, unknown>> } = {
    default: fc.record(common),
    linear: fc.record({ ...common, factor }),
    ntk: fc.record({ ...common, factor }),
    dynamic: fc.record({ ...common, factor }),
    yarn: fc.record({ ...lengths, ...ramp, factor }),
    "dynamic-linear": fc.record(lengths),
    "dynamic-yarn": fc.record({ ...lengths, ...ramp }),
    llama3: fc.record({
      ...lengths,
      factor,
      lowFreqFactor: fc.double({ min: 0.5, max: 2, noNaN: true }),
      highFreqFactor: fc.double({ min: 3, max: 16, noNaN: true }),
    }),
    "ntk-by-parts": fc.record({ ...lengths, factor }),
    longrope: fc.record({ ...lengths, shortFactor: list(1), longFactor: list(1) }),
    proportional: fc.record({ ...common, partialRotaryFactor: fc.constantFrom(0.25, 0.5, 1) }),
    gradient: fc.record({ ...lengths, factor }),
    table: fc.record({ ...common, inverseFrequencies: list(0) }),
  };
  return by[ropeType].map((keys) => ({ ropeType, ...keys }) as RopeParameters);
}

/** A whole configuration of any type. Two channels have no NTK base, so heads start at 4. */
const anyConfig: fc.Arbitrary<RopeConfig> = fc
  .record({
    ropeType: fc.constantFrom(...ropeTypes),
    headDim: fc.integer({ min: 2, max: 64 }).map((half) => 2 * half),
    maxPositionEmbeddings: original,
  })
  .chain(({ ropeType, ...rest }) =>
    settings(ropeType, rest.headDim).map((parameters) => ({ ...rest, rope: parameters })),
  );

// Without −0, which a sum with +0 turns into +0.
const vector = (size: number) =>
  fc.array(
    fc.double({ min: -4, max: 4, noNaN: true }).map((x) => x + 0),
    { minLength: size, maxLength: size },
  );
const dot = (a: ArrayLike<number>, b: ArrayLike<number>) => {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
};
const norm = (a: ArrayLike<number>) => Math.sqrt(dot(a, a));

/** One row turned to a position. */
function turn(row: readonly number[], position: number, inverseFrequencies: ArrayLike<number>, layout: RotaryLayout) {
  const tables = rotaryTables({ inverseFrequencies, attentionFactor: 1 }, [position]);
  return applyRotary(row, tables, { headDim: row.length, layout });
}

/** Two vectors of a head, the frequencies of a random scaling, and a layout. */
const scene = anyConfig.chain((config) =>
  fc.record({
    inverseFrequencies: fc.constant(computeRopeFrequencies(config, 4096).inverseFrequencies),
    query: vector(config.headDim),
    key: vector(config.headDim),
    layout: fc.constantFrom(...layouts),
  }),
);
const position = fc.integer({ min: 0, max: 1 << 20 });

describe("the rotation", () => {
  test("keeps the norm of every vector", () => {
    fc.assert(
      fc.property(scene, position, ({ query, inverseFrequencies, layout }, p) => {
        expect(norm(turn(query, p, inverseFrequencies, layout))).toBeCloseTo(norm(query), 12);
      }),
    );
  });

  test("makes a score depend on the difference of the positions alone", () => {
    fc.assert(
      fc.property(scene, position, position, position, ({ query, key, inverseFrequencies, layout }, m, n, shift) => {
        const score = (at: number, of: number) =>
          dot(turn(query, at, inverseFrequencies, layout), turn(key, of, inverseFrequencies, layout));
        // An angle of up to 2^21·ω is right to 2^-33·ω.
        const tolerance = 1e-9 * (1 + Math.max(...inverseFrequencies)) * (1 + norm(query) * norm(key));
        expect(Math.abs(score(m + shift, n + shift) - score(m, n))).toBeLessThan(tolerance);
        expect(Math.abs(score(m - n, 0) - score(m, n))).toBeLessThan(tolerance);
      }),
    );
  });

  test("adds up: turning by a and then by b is turning by a + b (a shifted key/value cache)", () => {
    fc.assert(
      fc.property(
        scene,
        fc.nat(4096),
        fc.integer({ min: -4096, max: 4096 }),
        ({ key, inverseFrequencies, layout }, a, b) => {
          const twice = turn(Array.from(turn(key, a, inverseFrequencies, layout)), b, inverseFrequencies, layout);
          const once = turn(key, a + b, inverseFrequencies, layout);
          const tolerance = 1e-11 * (1 + Math.max(...inverseFrequencies));
          for (const [i, x] of once.entries()) expect(Math.abs(twice[i]! - x)).toBeLessThan(tolerance);
        },
      ),
    );
  });

  test("leaves the row of position 0 and the channels past rotaryDim as they are", () => {
    fc.assert(
      fc.property(
        vector(16),
        fc.constantFrom(2, 4, 6, 8),
        position,
        fc.constantFrom(...layouts),
        (row, pairs, p, layout) => {
          const inverseFrequencies = Array.from({ length: pairs }, (_, i) => 10 ** -i);
          expect(Array.from(turn(row, 0, inverseFrequencies, layout))).toEqual(row);
          expect(Array.from(turn(row, p, inverseFrequencies, layout)).slice(2 * pairs)).toEqual(row.slice(2 * pairs));
        },
      ),
    );
  });

  test("is rows·cos + rotateHalf(rows)·sin in the half layout", () => {
    fc.assert(
      fc.property(vector(8), position, (row, p) => {
        const { cos, sin } = rotaryTables({ inverseFrequencies: [1, 0.1, 0.01, 0.001], attentionFactor: 1 }, [p]);
        const turned = rotateHalf(row, 8);
        const rotated = applyRotary(row, { cos, sin }, { headDim: 8, layout: "half" });
        for (let i = 0; i < 8; i++) {
          expect(rotated[i]).toBeCloseTo(row[i]! * cos[i % 4]! + turned[i]! * sin[i % 4]!, 14);
        }
      }),
    );
  });
});

describe("the layouts", () => {
  const partial = fc
    .record({
      rotaryHalf: fc.integer({ min: 1, max: 8 }),
      rest: fc.integer({ min: 0, max: 8 }),
      numHeads: fc.integer({ min: 1, max: 3 }),
    })
    .chain(({ rotaryHalf, rest, numHeads }) => {
      const width = 2 * rotaryHalf + rest;
      return fc.record({
        rotaryDim: fc.constant(2 * rotaryHalf),
        width: fc.constant(width),
        numHeads: fc.constant(numHeads),
        rows: vector(numHeads * width),
        p: position,
      });
    });

  test("give the same numbers in permuted channels, partial rotation too", () => {
    fc.assert(
      fc.property(partial, ({ rotaryDim, width, numHeads, rows, p }) => {
        const inverseFrequencies = Array.from({ length: rotaryDim / 2 }, (_, i) => 0.3 ** i);
        const tables = rotaryTables({ inverseFrequencies, attentionFactor: 1.25 }, new Array<number>(numHeads).fill(p));
        const options = { numHeads, columns: 1 };
        const half = Float64Array.from(rows);
        const interleaved = permuteRows(half, options, interleavedFromHalf(width, rotaryDim));
        expect(applyRotary(interleaved, tables, { headDim: width, layout: "interleaved" })).toEqual(
          permuteRows(
            applyRotary(half, tables, { headDim: width, layout: "half" }),
            options,
            interleavedFromHalf(width, rotaryDim),
          ),
        );
      }),
    );
  });

  test("permute there and back to where they started", () => {
    fc.assert(
      fc.property(partial, ({ rotaryDim, width, numHeads, rows }) => {
        const matrix = Float64Array.from(rows);
        const options = { numHeads, columns: 1 };
        const there = permuteRows(matrix, options, interleavedFromHalf(width, rotaryDim));
        expect(permuteRows(there, options, halfFromInterleaved(width, rotaryDim))).toEqual(matrix);
      }),
    );
  });

  test("are not the same rotation: the wrong one changes scores", () => {
    const inverseFrequencies = [1, 0.1];
    const score = (layout: RotaryLayout) =>
      dot(turn([1, 2, 3, 4], 5, inverseFrequencies, layout), turn([4, 1, 2, 3], 2, inverseFrequencies, layout));
    expect(Math.abs(score("half") - score("interleaved"))).toBeGreaterThan(0.1);
  });
});

describe("every scaling", () => {
  test("gives finite frequencies of at least 0, one a pair, and a finite attention factor", () => {
    fc.assert(
      fc.property(anyConfig, fc.integer({ min: 1, max: 1 << 20 }), (config, length) => {
        const { inverseFrequencies, attentionFactor } = computeRopeFrequencies(config, length);
        expect(inverseFrequencies.length).toBe(config.headDim / 2);
        expect(inverseFrequencies.every((w) => Number.isFinite(w) && w >= 0)).toBe(true);
        expect(Number.isFinite(attentionFactor) && attentionFactor > 0).toBe(true);
      }),
    );
  });

  test("is a function of its arguments: no call changes a later one", () => {
    fc.assert(
      fc.property(anyConfig, original, original, (config, first, second) => {
        const before = computeRopeFrequencies(config, first);
        computeRopeFrequencies(config, second).inverseFrequencies.fill(0);
        expect(computeRopeFrequencies(config, first)).toEqual(before);
      }),
    );
  });

  test("changes with the length only if it says so", () => {
    fc.assert(
      fc.property(anyConfig, fc.integer({ min: 1, max: 1 << 20 }), (config, length) => {
        fc.pre(!ropeDependsOnLength(config.rope));
        expect(computeRopeFrequencies(config, length)).toEqual(computeRopeFrequencies(config, 1));
      }),
    );
    for (const ropeType of ["dynamic", "dynamic-linear", "dynamic-yarn", "longrope"] as const) {
      const [sample] = fc.sample(settings(ropeType, 8), { numRuns: 1, seed: 1 });
      const config = { headDim: 8, maxPositionEmbeddings: 64, rope: { factor: 2, ...sample! } as RopeParameters };
      if (ropeType !== "dynamic") Reflect.deleteProperty(config.rope, "factor");
      expect(ropeDependsOnLength(config.rope)).toBe(true);
      expect(computeRopeFrequencies(config, 1 << 20).inverseFrequencies).not.toEqual(
        computeRopeFrequencies(config, 1).inverseFrequencies,
      );
    }
  });

  test("keeps cos² + sin² at the square of its attention factor", () => {
    fc.assert(
      fc.property(anyConfig, position, (config, p) => {
        const frequencies = computeRopeFrequencies(config, p + 1);
        const { cos, sin } = rotaryTables(frequencies, [p]);
        for (const [i, c] of cos.entries()) {
          expect((c * c + sin[i]! * sin[i]!) / frequencies.attentionFactor ** 2).toBeCloseTo(1, 13);
        }
      }),
    );
  });

  test("refuses settings with a required key missing, a key unknown, or a number that is none", () => {
    fc.assert(
      fc.property(anyConfig, (config) => {
        const keys = ropeScalings[config.rope.ropeType].keys as Record<string, { required: boolean; kind: string }>;
        for (const [key, rule] of Object.entries(keys)) {
          const without = { ...config.rope } as Record<string, unknown>;
          delete without[key];
          if (rule.required) {
            expect(() => checkRopeParameters(without as unknown as RopeParameters)).toThrow(key);
          }
          const broken = { ...config.rope, [key]: Number.NaN } as RopeParameters;
          expect(() => checkRopeParameters(broken)).toThrow(RangeError);
        }
        expect(() => checkRopeParameters({ ...config.rope, factr: 2 } as unknown as RopeParameters)).toThrow("factr");
      }),
    );
  });
});

describe("no stretch is no change", () => {
  /** Settings whose factor is 1, or whose sequence is not longer than the original. */
  const neutral: { [T in Exclude<RopeType, "default" | "table">]: (base: number) => RopeParameters } = {
    linear: (ropeTheta) => ({ ropeType: "linear", ropeTheta, factor: 1 }),
    ntk: (ropeTheta) => ({ ropeType: "ntk", ropeTheta, factor: 1 }),
    dynamic: (ropeTheta) => ({ ropeType: "dynamic", ropeTheta, factor: 8 }),
    yarn: (ropeTheta) => ({ ropeType: "yarn", ropeTheta, factor: 1, originalMaxPositionEmbeddings: 4096 }),
    "dynamic-linear": (ropeTheta) => ({ ropeType: "dynamic-linear", ropeTheta, originalMaxPositionEmbeddings: 4096 }),
    "dynamic-yarn": (ropeTheta) => ({ ropeType: "dynamic-yarn", ropeTheta, originalMaxPositionEmbeddings: 4096 }),
    llama3: (ropeTheta) => ({
      ropeType: "llama3",
      ropeTheta,
      factor: 1,
      originalMaxPositionEmbeddings: 4096,
      lowFreqFactor: 1,
      highFreqFactor: 4,
    }),
    "ntk-by-parts": (ropeTheta) => ({
      ropeType: "ntk-by-parts",
      ropeTheta,
      factor: 1,
      originalMaxPositionEmbeddings: 4096,
    }),
    gradient: (ropeTheta) => ({ ropeType: "gradient", ropeTheta, factor: 1, originalMaxPositionEmbeddings: 4096 }),
    proportional: (ropeTheta) => ({ ropeType: "proportional", ropeTheta, partialRotaryFactor: 1 }),
    longrope: (ropeTheta) => ({
      ropeType: "longrope",
      ropeTheta,
      originalMaxPositionEmbeddings: 4096,
      shortFactor: new Array<number>(64).fill(1),
      longFactor: new Array<number>(64).fill(7),
    }),
  };

  test.each(Object.entries(neutral))("%s", (_, parameters) => {
    fc.assert(
      fc.property(theta, fc.integer({ min: 1, max: 4096 }), (base, length) => {
        const config = { headDim: 128, maxPositionEmbeddings: 4096 };
        const plain = computeRopeFrequencies({ ...config, rope: { ropeType: "default", ropeTheta: base } }, length);
        const scaled = computeRopeFrequencies({ ...config, rope: parameters(base) }, length);
        expect(scaled.attentionFactor).toBe(1);
        for (const [i, w] of plain.inverseFrequencies.entries()) {
          // A blend of ω with itself may lose an ulp.
          expect(Math.abs(scaled.inverseFrequencies[i]! / w - 1)).toBeLessThanOrEqual(2 ** -52);
        }
      }),
      { numRuns: 30 },
    );
  });
});

describe("interpolation", () => {
  test("by 2 halves every index: the angles of 2p at factor 2 are those of p, exactly", () => {
    fc.assert(
      fc.property(headDim, theta, position, (width, ropeTheta, p) => {
        const config = { headDim: width, maxPositionEmbeddings: 4096 };
        const plain = computeRopeFrequencies({ ...config, rope: { ropeType: "default", ropeTheta } }, 1);
        const halved = computeRopeFrequencies({ ...config, rope: { ropeType: "linear", ropeTheta, factor: 2 } }, 1);
        expect(rotaryTables(halved, [2 * p])).toEqual(rotaryTables(plain, [p]));
        // The other way to write it: the position itself is halved.
        expect(rotaryTables(halved, [p])).toEqual(rotaryTables(plain, [p / 2]));
      }),
    );
  });

  test("never leaves ω / factor … ω: linear, yarn, llama3, ntk and ntk-by-parts", () => {
    fc.assert(
      fc.property(
        anyConfig.filter(({ rope }) => ["linear", "yarn", "llama3", "ntk", "ntk-by-parts"].includes(rope.ropeType)),
        (config) => {
          const { ropeTheta, factor: s } = config.rope as { ropeTheta: number; factor: number } & RopeParameters;
          const plain = computeRopeFrequencies({ ...config, rope: { ropeType: "default", ropeTheta } }, 1);
          const scaled = computeRopeFrequencies(config, 1);
          for (const [i, w] of plain.inverseFrequencies.entries()) {
            expect(scaled.inverseFrequencies[i]! / w).toBeLessThanOrEqual(1 + 1e-14);
            expect((scaled.inverseFrequencies[i]! * s) / w).toBeGreaterThanOrEqual(1 - 1e-14);
          }
        },
      ),
    );
  });

  test("by YaRN leaves the fastest pair alone and divides the slowest by the factor, at usual head dims", () => {
    const usual = fc.record({
      headDim: fc.constantFrom(64, 80, 96, 128, 256),
      ropeTheta: fc.constantFrom(1e4, 150000, 5e5, 1e6, 1e7),
      original: fc.constantFrom(2048, 4096, 8192, 32768),
      factor,
      truncate: fc.boolean(),
    });
    fc.assert(
      fc.property(usual, ({ headDim: width, ropeTheta, original: length, factor: s, truncate }) => {
        const config = { headDim: width, maxPositionEmbeddings: length };
        const plain = computeRopeFrequencies(
          { ...config, rope: { ropeType: "default", ropeTheta } },
          1,
        ).inverseFrequencies;
        const yarn = computeRopeFrequencies(
          {
            ...config,
            rope: { ropeType: "yarn", ropeTheta, factor: s, originalMaxPositionEmbeddings: length, truncate },
          },
          1,
        ).inverseFrequencies;
        // At theta 1e4 and 32768 tokens the slowest pair turns half a time; beyond, none would be fully interpolated.
        fc.pre(length * plain.at(-1)! < 2 * Math.PI);
        expect(yarn[0]).toBe(plain[0]);
        // Rounding up may put the end of the ramp on the last pair's far side.
        const end = (width * Math.log(length / (2 * Math.PI))) / (2 * Math.log(ropeTheta));
        fc.pre((truncate ? Math.ceil(end) : end) <= width / 2 - 1);
        expect(yarn.at(-1)).toBe(plain.at(-1)! / s);
      }),
    );
  });
});

describe("far weights", () => {
  const distances = Array.from({ length: 64 }, (_, d) => d);

  test("may rise again under RoPE: equal vectors attend more at distance 6 than at 3", () => {
    const { inverseFrequencies } = computeRopeFrequencies(
      { headDim: 4, maxPositionEmbeddings: 64, rope: { ropeType: "default", ropeTheta: 10000 } },
      64,
    );
    const ones = [1, 1, 1, 1];
    const scores = distances.map((d) =>
      dot(turn(ones, 63, inverseFrequencies, "half"), turn(ones, 63 - d, inverseFrequencies, "half")),
    );
    expect(scores[6]!).toBeGreaterThan(scores[3]! + 3.8);
    // 2 cos d + 2 cos(d / 100), in closed form.
    for (const d of distances) expect(scores[d]).toBeCloseTo(2 * Math.cos(d) + 2 * Math.cos(d / 100), 12);
  });

  test("never rise under ALiBi, whatever the head", () => {
    const encoding = alibi({ numHeads: 12 });
    const bias = encoding.bias(
      [63],
      distances.map((d) => 63 - d),
    ); // [H, 1, S], nearest key first
    for (let head = 0; head < 12; head++) {
      const row = bias.subarray(64 * head, 64 * (head + 1));
      for (const d of distances.slice(1)) expect(row[d]!).toBeLessThan(row[d - 1]!);
    }
  });
});

describe("M-RoPE", () => {
  test("with three equal ids is plain RoPE, sectioned or interleaved", () => {
    const sections = fc.tuple(fc.nat(12), fc.nat(12), fc.nat(12)).filter((s) => s[0] + s[1] + s[2] > 0);
    fc.assert(
      fc.property(
        sections,
        fc.boolean(),
        fc.array(position, { minLength: 1, maxLength: 5 }),
        (counts, interleaved, ids) => {
          const pairs = counts[0] + counts[1] + counts[2];
          const frequencies = {
            inverseFrequencies: Array.from({ length: pairs }, (_, i) => 0.8 ** i),
            attentionFactor: 1.1,
          };
          expect(mropeTables(frequencies, [ids, ids, ids], mropeAxes(counts, interleaved))).toEqual(
            rotaryTables(frequencies, ids),
          );
        },
      ),
    );
  });

  test("deals every pair to one axis, in the number that the sections say", () => {
    // Qwen3-VL's 24, 20, 20: interleaved as [THW THW … T T T T].
    for (const interleaved of [false, true]) {
      const axes = mropeAxes([24, 20, 20], interleaved);
      expect([0, 1, 2].map((axis) => axes.filter((a) => a === axis).length)).toEqual([24, 20, 20]);
    }
    expect(mropeAxes([24, 20, 20], true).slice(57)).toEqual([0, 1, 2, 0, 0, 0, 0]);
    expect(mropeAxes([11, 11, 10], true).filter((a) => a === 1).length).toBe(11);
  });
});

describe("a table that grows with the prefix", () => {
  test("holds in row t what the table of t + 1 tokens holds in its last row", () => {
    fc.assert(
      fc.property(anyConfig, fc.integer({ min: 1, max: 12 }), (random, length) => {
        const config = { ...random, maxPositionEmbeddings: 4 };
        const growing = growingTables(config, length);
        const encoding = rope(config);
        const pairs = config.headDim / 2;
        for (let t = 0; t < length; t++) {
          const row = encoding.queryTables([t], t + 1);
          expect(growing.cos.slice(t * pairs, (t + 1) * pairs)).toEqual(row.cos);
          expect(growing.sin.slice(t * pairs, (t + 1) * pairs)).toEqual(row.sin);
        }
      }),
      { numRuns: 50 },
    );
  });
});
