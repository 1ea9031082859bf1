import { expect, test } from "vitest";
import {
  broadcastShapes,
  broadcastStrides,
  elementCount,
  expectShape,
  normalizeAxis,
  strides,
} from "../../src/tensor/index.ts";

test("strides step over the axes after them", () => {
  expect(strides([2, 3, 4])).toEqual([12, 4, 1]);
  expect(strides([])).toEqual([]);
  expect(elementCount([])).toBe(1);
  expect(elementCount([3, 0, 2])).toBe(0);
});

test("broadcasting aligns at the last axis and stretches ones", () => {
  expect(broadcastShapes([4, 1, 3], [2, 1])).toEqual([4, 2, 3]);
  expect(broadcastShapes([], [5])).toEqual([5]);
  expect(broadcastShapes([0], [1])).toEqual([0]);
  expect(() => broadcastShapes([2, 3], [4, 3])).toThrow(/got \[2, 3\] and \[4, 3\]/);
  expect(broadcastStrides([2, 1], [4, 2, 3])).toEqual([0, 1, 0]);
});

test("expectShape binds letters across tensors and reports what was bound", () => {
  const dims = { H: 4, D: 8 };
  expectShape("q", [1, 5, 4, 8], "B T H D", dims);
  expect(dims).toEqual({ H: 4, D: 8, B: 1, T: 5 });
  expectShape("k", { shape: [1, 5, 4, 8] }, "B T H D", dims);
  expect(() => expectShape("v", [1, 6, 4, 8], "B T H D", dims)).toThrow(
    "v: expected [B=1, T=5, H=4, D=8], got [1, 6, 4, 8]",
  );
  expect(() => expectShape("m", [2, 3], "N N")).toThrow("m: expected [N, N], got [2, 3]");
  expect(() => expectShape("m", [2], "N 1")).toThrow("m: expected [N, 1], got [2]");
  expectShape("m", [2, 1], "N 1");
});

test("a failed expectShape binds nothing", () => {
  const dims: Record<string, number> = {};
  expect(() => expectShape("m", [2, 3, 4], "A B 9", dims)).toThrow();
  expect(dims).toEqual({});
});

test("axes count from either end", () => {
  expect(normalizeAxis("x", -1, 3)).toBe(2);
  expect(() => normalizeAxis("softmax", 3, 3)).toThrow("softmax: expected an axis in -3 .. 2, got 3");
});
