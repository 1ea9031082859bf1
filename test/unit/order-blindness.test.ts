// Attention without positions is blind to order; what makes it see.

import { describe, expect, test } from "vitest";
import { compareOrders, orderEncodings, orderTokens } from "../../src/evaluation/order-blindness.ts";

const [first, second] = ["你打我", "我打你"];

describe("the last token of two orders", () => {
  test("without encoding and mask is the same to the last bit, however many layers and whatever the weights", async () => {
    for (const numLayers of [1, 2, 4]) {
      for (const seed of [0, 1, 7]) {
        const options = { encoding: "none", causal: false, numLayers, seed } as const;
        const { identical, largestDifference, first: a } = await compareOrders(first, second, options);
        expect({ identical, largestDifference }).toEqual({ identical: true, largestDifference: 0 });
        expect(a.output).toHaveLength(16);
        expect(a.output.every((value) => Number.isFinite(value) && Math.fround(value) === value)).toBe(true);
      }
    }
  });

  test("under a causal mask alone differs from the second layer on, and not before", async () => {
    const under = (numLayers: number) => compareOrders(first, second, { encoding: "none", causal: true, numLayers });
    expect((await under(1)).identical).toBe(true);
    expect((await under(2)).largestDifference).toBeGreaterThan(1e-3);
  });

  test.each(orderEncodings.filter((name) => name !== "none"))(
    "under %s differs in the first layer",
    async (encoding) => {
      for (const causal of [false, true]) {
        const { identical, largestDifference } = await compareOrders(first, second, { encoding, causal, numLayers: 1 });
        expect(identical).toBe(false);
        expect(largestDifference).toBeGreaterThan(1e-4);
      }
    },
  );

  test("under ALiBi weighs equal tokens less the further back they are, head by head", async () => {
    const { first: repeated } = await compareOrders("哈哈哈哈", "哈哈哈哈", {
      encoding: "alibi",
      causal: true,
      numLayers: 1,
    });
    for (const weights of repeated.weights[0]!) {
      expect(weights.reduce((a, b) => a + b)).toBeCloseTo(1, 12);
      // ALiBi of two heads: slopes 2^-4 and 2^-8, and equal keys otherwise.
      const slope = repeated.weights[0]!.indexOf(weights) === 0 ? 2 ** -4 : 2 ** -8;
      for (let t = 1; t < 4; t++) expect(Math.log(weights[t]! / weights[t - 1]!)).toBeCloseTo(slope, 12);
    }
  });

  test("of sentences that hold other tokens says so", async () => {
    const options = { encoding: "none", causal: false, numLayers: 1 } as const;
    expect((await compareOrders("dog bites man", "man bites dog", options)).sameTokens).toBe(true);
    const { sameTokens, identical } = await compareOrders("dog bites man", "dog bites men", options);
    expect({ sameTokens, identical }).toEqual({ sameTokens: false, identical: false });
  });

  test("needs a sentence, a known encoding and a few layers", async () => {
    expect(orderTokens(" dog  bites man ")).toEqual(["dog", "bites", "man", "⏎"]);
    const options = { encoding: "none", causal: false, numLayers: 1 } as const;
    await expect(compareOrders(" ", "a", options)).rejects.toThrow(/expected a sentence of 1 .. 64 tokens, got 0/);
    await expect(compareOrders("a", "哈".repeat(65), options)).rejects.toThrow(/got 65/);
    await expect(compareOrders("a", "b", { ...options, numLayers: 5 })).rejects.toThrow(/1 .. 4, got 5/);
    await expect(compareOrders("a", "b", { ...options, encoding: "x" as never })).rejects.toThrow(/got "x"/);
  });
});
