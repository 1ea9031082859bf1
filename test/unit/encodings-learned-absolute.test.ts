import { expect, test } from "vitest";
import { learnedAbsolute } from "../../src/encodings/learned-absolute.ts";

const table = Float64Array.from({ length: 12 }, (_, i) => i + 0.5); // 4 rows of 3

test("row p is row p of the table", () => {
  expect(learnedAbsolute({ table, hiddenSize: 3 }).rows([3, 0, 3])).toEqual(
    Float64Array.of(9.5, 10.5, 11.5, 0.5, 1.5, 2.5, 9.5, 10.5, 11.5),
  );
});

test("rows before position 0 are an offset, and shorten the limit (OPT keeps 2)", () => {
  const encoding = learnedAbsolute({ table, hiddenSize: 3, offset: 2 });
  expect(encoding.maxPositions).toBe(2);
  expect(encoding.rows([0])).toEqual(Float64Array.of(6.5, 7.5, 8.5));
  expect(() => encoding.rows([2])).toThrow(RangeError);
});

test("a position past the table is an error that names both numbers", () => {
  const encoding = learnedAbsolute({ table, hiddenSize: 3 });
  expect(() => encoding.rows([0, 7])).toThrow(/positions below 4, .*got 7/);
  expect(() => encoding.rows([-1])).toThrow(RangeError);
  expect(() => encoding.rows([1.5])).toThrow(RangeError);
});

test("a caller cannot change the table through its rows", () => {
  const encoding = learnedAbsolute({ table, hiddenSize: 3 });
  encoding.rows([0]).fill(99);
  expect(encoding.rows([0])[0]).toBe(0.5);
});

test("a float32 table is read as it is", () => {
  const encoding = learnedAbsolute({ table: Float32Array.of(0.1, 0.2), hiddenSize: 2 });
  expect(encoding.rows([0])[0]).toBe(Math.fround(0.1));
});

test("a table that is not whole rows, or holds the offset alone, is refused", () => {
  expect(() => learnedAbsolute({ table, hiddenSize: 5 })).toThrow(/whole rows of hiddenSize 5, got 12/);
  expect(() => learnedAbsolute({ table, hiddenSize: 3, offset: 4 })).toThrow(/more than 4 rows/);
});
