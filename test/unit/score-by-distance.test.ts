// Scores by distance, against rotation and dot products in plain loops.

import { describe, expect, test } from "vitest";
import {
  alibi,
  applyRotary,
  kerple,
  kerpleBias,
  nope,
  rope,
  scoreByDistance,
  sinusoidal,
  t5Bucket,
  t5RelativeBias,
} from "../../src/encodings/index.ts";
import { dot } from "../support/attention.ts";

const distances = [0, 1, 2, 17, 500, 4095, 4096, 65_537, 1_048_576];

describe("scores by distance", () => {
  test("of a rotary encoding are dot products of rotated ones, wherever the query stands", () => {
    const headDim = 64;
    const parameters = {
      headDim,
      maxPositionEmbeddings: 4096,
      rope: { ropeType: "yarn", ropeTheta: 10000, factor: 4, originalMaxPositionEmbeddings: 4096 },
    } as const;
    for (const layout of ["half", "interleaved"] as const) {
      const encoding = rope({ ...parameters, layout });
      const scores = scoreByDistance(encoding, distances);
      const turned = (position: number) =>
        applyRotary(new Float64Array(headDim).fill(1), encoding.queryTables([position], 1), { headDim, layout });
      for (const key of [0, 333]) {
        distances.forEach((distance, i) => {
          expect(scores[i]).toBeCloseTo(dot(turned(key + distance), turned(key)) / headDim, 8);
        });
      }
      // YaRN's factor enters twice.
      expect(scores[0]).toBeCloseTo((0.1 * Math.log(4) + 1) ** 2, 12);
    }
  });

  test("of biases are the biases, head by head; of sinusoidal rows their dot product; of NoPE nothing", () => {
    const numHeads = 3;
    const slopes = scoreByDistance(alibi({ numHeads }), distances);
    const weights = Float64Array.from({ length: 32 * numHeads }, (_, at) => Math.sin(at));
    const buckets = scoreByDistance(t5RelativeBias({ numHeads, weights, bidirectional: false }), distances);
    const kernels = scoreByDistance(kerple({ kind: "logarithmic", r1: [1, 2, 3], r2: [1, 0.5, 0.1] }), distances);
    distances.forEach((distance, i) => {
      [0.0625, 0.00390625, 0.25].forEach((slope, head) => {
        const at = head * distances.length + i;
        expect(slopes[at]).toBe(0 - slope * distance);
        expect(buckets[at]).toBe(weights[t5Bucket(-distance, { bidirectional: false }) * numHeads + head]);
        expect(kernels[at]).toBe(kerpleBias(distance, { kind: "logarithmic", r1: head + 1, r2: [1, 0.5, 0.1][head]! }));
      });
    });
    const encoding = sinusoidal({ hiddenSize: 32 });
    const rows = scoreByDistance(encoding, distances);
    expect(rows[0]).toBeCloseTo(0.5, 14);
    distances.forEach((distance, i) => {
      expect(rows[i]).toBeCloseTo(dot(encoding.rows([100]), encoding.rows([100 + distance])) / 32, 8);
    });
    expect(Array.from(scoreByDistance(nope(), [0, 5]))).toEqual([0, 0]);
  });

  test("of many distances are those of few", () => {
    const many = Array.from({ length: 10_000 }, (_, d) => d);
    for (const encoding of [alibi({ numHeads: 2 }), sinusoidal({ hiddenSize: 8 })]) {
      const scores = scoreByDistance(encoding, many);
      const heads = scores.length / many.length;
      for (const distance of [0, 4095, 4096, 9999]) {
        const one = scoreByDistance(encoding, [distance]);
        for (let head = 0; head < heads; head++) expect(scores[head * many.length + distance]).toBe(one[head]);
      }
    }
  });

  test("refuse distances that are no count of tokens", () => {
    expect(() => scoreByDistance(nope(), [-1])).toThrow(/expected distances to be an integer of at least 0, got -1/);
    expect(() => scoreByDistance(nope(), [0.5])).toThrow(/got 0.5/);
  });
});
