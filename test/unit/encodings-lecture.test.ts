// What a lecture on position encodings claims, computed: order blindness, the causal mask, NoPE on constant text, and
// what distance does to a weight under ALiBi and under rotation.

import { describe, expect, test } from "vitest";
import { alibi } from "../../src/encodings/alibi.ts";
import { rope } from "../../src/encodings/rope/rope.ts";
import { sinusoidalTable } from "../../src/encodings/sinusoidal.ts";
import { attention, dot, matrix, permuteRows, randomNumbers, rotate, row, softmax } from "../support/attention.ts";
import { largestError } from "../support/encodings-other.ts";

const T = 7;
const D = 4;
const order = [3, 0, 6, 2, 5, 1, 4];

/** Self-attention of one head with fixed random projections. */
function selfAttention(x: ReturnType<typeof matrix>, causal: boolean): ReturnType<typeof attention> {
  const random = randomNumbers(11);
  const [wq, wk, wv] = [0, 0, 0].map(() => matrix(D, D, () => random()));
  const project = (w: typeof x) =>
    matrix(x.rows, D, (t, d) =>
      Array.from({ length: D }, (_, c) => row(x, t)[c]! * w.data[c * D + d]!).reduce((a, b) => a + b),
    );
  return attention({ queries: project(wq!), keys: project(wk!), values: project(wv!), causal });
}

const random = randomNumbers(3);
const tokens = matrix(T, D, () => random());

describe("order blindness", () => {
  test("without encoding and mask, permuting the input permutes the output", () => {
    const plain = permuteRows(selfAttention(tokens, false).outputs, order);
    const permuted = selfAttention(permuteRows(tokens, order), false).outputs;
    expect(largestError(permuted.data, plain.data)).toBeLessThan(1e-14);
  });

  test("with a causal mask it does not: the mask alone shows the order", () => {
    const plain = permuteRows(selfAttention(tokens, true).outputs, order);
    const permuted = selfAttention(permuteRows(tokens, order), true).outputs;
    expect(largestError(permuted.data, plain.data)).toBeGreaterThan(0.01);
  });

  test("with positions added it does not, mask or not", () => {
    const positions = sinusoidalTable(
      Array.from({ length: T }, (_, t) => t),
      { hiddenSize: D },
    );
    const add = (x: typeof tokens) => matrix(T, D, (t, d) => x.data[t * D + d]! + positions[t * D + d]!);
    const plain = permuteRows(selfAttention(add(tokens), false).outputs, order);
    const permuted = selfAttention(add(permuteRows(tokens, order)), false).outputs;
    expect(largestError(permuted.data, plain.data)).toBeGreaterThan(0.01);
  });

  test("on constant text a causal NoPE head is uniform: weight 1/i (DroPE, proposition 3.2); ALiBi breaks it", () => {
    const constant = matrix(T, D, (_, d) => tokens.data[d]!);
    const { weights } = selfAttention(constant, true);
    for (let i = 0; i < T; i++) {
      for (let j = 0; j < T; j++) expect(weights.data[i * T + j]).toBeCloseTo(j <= i ? 1 / (i + 1) : 0, 14);
    }
    const positions = Array.from({ length: T }, (_, t) => t);
    const bias = alibi({ numHeads: 1 }).bias(positions, positions);
    const biased = attention({ queries: constant, keys: constant, values: constant, causal: true, bias }).weights;
    expect(biased.data[T * T - 1]).toBeGreaterThan(biased.data[T * T - T]! + 1e-3);
  });
});

describe("distance", () => {
  const far = Array.from({ length: 3000 }, (_, j) => j);

  test("under ALiBi, equal keys weigh less the further they are, in every head: weights never rise again", () => {
    const numHeads = 12;
    const bias = alibi({ numHeads }).bias([2999], far);
    for (let head = 0; head < numHeads; head++) {
      const weights = softmax(bias.subarray(head * 3000, (head + 1) * 3000));
      for (let j = 1; j < 3000; j++) {
        // Strictly, until float64 runs out of numbers.
        if (weights[j - 1]! > 1e-300) expect(weights[j]! > weights[j - 1]!).toBe(true);
      }
    }
  });

  const rotary = (factor: number) =>
    rope({ headDim: 64, maxPositionEmbeddings: 4096, rope: { ropeType: "linear", ropeTheta: 10000, factor } });
  const ones = new Float64Array(64).fill(1);
  const turned = (encoding: ReturnType<typeof rotary>, p: number) =>
    rotate(ones, encoding.queryTables([p], 4096), 0, 32, encoding.layout);

  test("under rotation, equal keys weigh less at first, but a far weight may rise again", () => {
    const encoding = rotary(1);
    const query = turned(encoding, 2999);
    const weights = softmax(far.map((j) => dot(query, turned(encoding, j)) / 8)).reverse(); // by distance
    expect(weights[0]).toBe(Math.max(...weights));
    const rises = Array.from(weights).flatMap((weight, d) => (d > 100 && weight > 1.2 * weights[d - 1]! ? [d] : []));
    expect(rises.length).toBeGreaterThan(0);
  });

  test("interpolation by 2 halves every index: position 2p is where p was", () => {
    for (const p of [1, 40, 1999]) expect(turned(rotary(2), 2 * p)).toEqual(turned(rotary(1), p));
  });

  test("the similarity of two sinusoidal positions depends on their offset alone, and may rise again", () => {
    const options = { hiddenSize: 128 };
    const at = (p: number) => sinusoidalTable([p], options);
    const similarity = (k: number, offset: number) => dot(at(k), at(k + offset));
    for (const offset of [0, 1, 17, 500]) {
      expect(similarity(3, offset)).toBeCloseTo(similarity(40_000, offset), 8);
      expect(similarity(0, offset)).toBeCloseTo(similarity(0, -offset), 8);
    }
    expect(similarity(0, 0)).toBeCloseTo(64, 10);
    const curve = Array.from({ length: 200 }, (_, offset) => similarity(0, offset));
    expect(curve.some((value, offset) => offset > 0 && value > curve[offset - 1]!)).toBe(true);
  });
});
