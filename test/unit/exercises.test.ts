// The lecture's exercises against numbers of the field that were computed elsewhere, and the parts that they stand on.

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { type Idea, ideas, judgeAnswer, measuredLosses } from "../../src/advice/exercises.ts";
import { scalingByHand } from "../../src/advice/scaling-by-hand.ts";
import {
  alibi,
  learnedAbsolute,
  nope,
  rope,
  rowSimilarities,
  scoreByDistance,
  vectorScores,
} from "../../src/encodings/index.ts";
import { lossByPositionOfCard } from "../../src/formats/model-card.ts";

/** Of a card's table, the first number of each row and its mean, by its bars. */
const meansOf = (name: string): readonly (readonly [from: number, mean: number])[] =>
  readFileSync(resolve(import.meta.dirname, `../../models/${name}/README.md`), "utf8")
    .split("\n")
    .filter((line) => /^\| \d/.test(line))
    .map((line) => line.split("|"))
    .map(([, range, mean]) => [Number.parseInt(range!, 10), Number.parseFloat(mean!)]);
const dropped = meansOf("longhand-drope");
const betterFrom = meansOf("longhand-rope").find(([, mean], row) => dropped[row]![1] < mean)![0];

/** T5's last bucket: transformers' own buckets. Llama 2: 2π·10000^(i/64) > 4096 for 18 hands. NTK: 10000 · 4^(128/126) in
 *  50 digits. YaRN: hands up to index 20 of its authors' code. The rest is arithmetic that the comment says. */
const known: Readonly<Record<Idea, number>> = {
  order: 2, // Haviv et al. 2022: a second layer reads tokens that saw other beginnings
  absolute: 256, // num_positions of the model's config.json
  clock: 628, // 2π · 100 = 628.3
  relative: 44, // 44 rad = 7 turns + 0.018
  t5: 113,
  alibi: 1024, // 4 · 2^8
  rope: 18,
  interpolation: 8, // 32768 / 4096
  ntk: 40_890,
  yarn: 21,
  dynamic: 5, // 4 · 2 − 3
  none: betterFrom,
};

describe("an exercise of the lecture", () => {
  test.each(ideas)("%s: the known answer is right, others say on which side they lie", async (idea) => {
    expect(await judgeAnswer(idea, known[idea])).toMatchObject({ right: true, side: "on" });
    expect(await judgeAnswer(idea, known[idea] - 1)).toMatchObject({ right: false, side: "below" });
    expect(await judgeAnswer(idea, known[idea] + 1)).toMatchObject({ right: false, side: "above" });
  });

  test("an answer that is no number is refused", async () => {
    await expect(judgeAnswer("rope", Number.NaN)).rejects.toThrow(RangeError);
  });
});

describe("a scaling by hand", () => {
  const of = { headDim: 128, trainedLength: 4096, targetLength: 16_384 } as const;
  test("NTK leaves the fastest hand and slows the slowest by the factor; linear slows all alike", () => {
    const ntk = scalingByHand({ ...of, rope: { ropeType: "ntk", ropeTheta: 10000, factor: 4 } });
    expect(ntk.slowDown[0]).toBe(1);
    expect(ntk.slowDown[63]).toBeCloseTo(4, 10);
    const linear = scalingByHand({ ...of, rope: { ropeType: "linear", ropeTheta: 10000, factor: 4 } });
    expect(linear.slowDown.every((times) => Math.abs(times - 4) < 1e-12)).toBe(true);
    expect([linear.unchanged, linear.unseen, linear.unfinished]).toEqual([0, 0, 18]);
  });

  test("YaRN's factor stands on a score twice", () => {
    const yarn = scalingByHand({
      ...of,
      rope: { ropeType: "yarn", ropeTheta: 10000, factor: 4, originalMaxPositionEmbeddings: 4096 },
    });
    expect(yarn.attentionFactor).toBeCloseTo(1.13862944, 8);
    expect(yarn.scoreFactor).toBeCloseTo(1.29647699, 7);
  });
});

describe("scores of vectors", () => {
  const rotary = rope({ headDim: 8, maxPositionEmbeddings: 64, rope: { ropeType: "default", ropeTheta: 10000 } });
  const q = [0.3, -1.2, 0.7, 2, -0.4, 0.1, 1.5, -0.9];
  const k = [1.1, 0.2, -0.6, 0.5, 0.8, -1.3, 0.4, 0.7];

  test("of ideal vectors equal scores by distance", () => {
    const ones = new Array<number>(8).fill(1);
    const places = { queryPosition: 50, keyPositions: [50, 49, 30, 0], scale: 1 / 8 };
    const scores = vectorScores(rotary, ones, ones, places);
    scoreByDistance(rotary, [0, 1, 20, 50]).forEach((score, i) => {
      expect(scores[i]).toBeCloseTo(score, 12);
    });
  });

  test("know the distance alone under RoPE, and nothing without a position", () => {
    const [near] = vectorScores(rotary, q, k, { queryPosition: 9, keyPositions: [2] });
    const [far] = vectorScores(rotary, q, k, { queryPosition: 1009, keyPositions: [1002] });
    expect(far).toBeCloseTo(near!, 11);
    const plain = q.reduce((sum, value, i) => sum + value * k[i]!, 0) / Math.sqrt(8);
    const still = vectorScores(nope(), q, k, { queryPosition: 9, keyPositions: [2, 7] });
    expect([...still]).toEqual([plain, plain]);
    const biased = vectorScores(alibi({ numHeads: 2 }), q, k, { queryPosition: 16, keyPositions: [0], head: 1 });
    expect(biased[0]).toBeCloseTo(plain - 16 / 256, 12);
  });

  test("unfitting vectors and heads are refused", () => {
    const places = { queryPosition: 1, keyPositions: [0] };
    expect(() => vectorScores(rotary, [1, 2], [1, 2], places)).toThrow(
      "expected query and key of 8 numbers, got 2 and 2",
    );
    expect(() => vectorScores(alibi({ numHeads: 2 }), q, k, { ...places, head: 2 })).toThrow(
      "expected head below 2, got 2",
    );
  });
});

test("rows are as alike as their angle says", () => {
  const table = learnedAbsolute({ hiddenSize: 2, table: Float64Array.of(1, 0, 3, 3, 0, 2, 0, 0) });
  const [same, eighth, quarter, zero] = rowSimilarities(table, 0, [0, 1, 2, 3]);
  expect([same, quarter, zero]).toEqual([1, 0, 0]);
  expect(eighth).toBeCloseTo(Math.SQRT1_2, 12);
});

describe("a model's card", () => {
  test("gives its losses by position", async () => {
    const losses = await measuredLosses("longhand-rope");
    expect(losses.map(({ from, to }) => [from, to])).toEqual([
      [1, 256],
      [257, 512],
      [513, 1024],
      [1025, 2048],
      [2049, 4096],
    ]);
    const card = readFileSync(resolve(import.meta.dirname, "../../models/longhand-rope/README.md"), "utf8");
    for (const { mean, low, high } of losses) {
      expect(card).toContain(`${mean.toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)})`);
    }
    expect(await measuredLosses("longhand-learned")).toEqual([]);
  });

  test("with a broken row is an error that shows it", () => {
    const card = "| positions | nats |\n| --- | --- |\n| 1 to many | 3 |\n";
    expect(() => lossByPositionOfCard(card)).toThrow(
      'expected a row "| 1 to 256 | 1.2 (1.1 to 1.3) |", got | 1 to many | 3 |',
    );
  });
});
