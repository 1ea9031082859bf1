import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  addDims,
  canonicalDim,
  type Dim,
  dimNames,
  divideDims,
  evaluateDim,
  isDimName,
  multiplyDims,
  productOfDims,
  subtractDims,
} from "../../src/graph/index.ts";

describe("sizes as text", () => {
  test("have one form each", () => {
    expect(canonicalDim("tokens + past")).toBe("past+tokens");
    expect(canonicalDim("tokens*2*batch")).toBe("2*batch*tokens");
    expect(canonicalDim("1 - tokens")).toBe("-tokens+1");
    expect(canonicalDim("tokens-1+past")).toBe("past+tokens-1");
    expect(canonicalDim("3*4")).toBe(12);
    expect(canonicalDim("tokens-tokens")).toBe(0);
  });

  test("are refused when they are not sums of products", () => {
    for (const text of ["", "a b*", "tokens/2", "(a+b)", "2tokens", "a**b", "1.5"]) {
      expect(() => canonicalDim(text), text).toThrow(/expected an integer, a name, or a sum/);
    }
    expect(() => addDims(0.5, "a")).toThrow(/expected an integer/);
  });

  test("know their names", () => {
    expect(dimNames("2*batch*tokens+past")).toEqual(["batch", "tokens", "past"]);
    expect([isDimName("tokens"), isDimName("2*tokens"), isDimName(3)]).toEqual([true, false, false]);
  });

  test("divide by one product, or not at all", () => {
    expect(divideDims("6*batch*tokens", "2*tokens")).toBe("3*batch");
    expect(divideDims("2*a+4", 2)).toBe("a+2");
    expect(divideDims("a+b", "a+b")).toBe(1);
    expect(divideDims("a+1", "a")).toBeUndefined();
    expect(divideDims("3*a", 2)).toBeUndefined();
  });
});

test("arithmetic on sizes is arithmetic on their values", () => {
  const name = fc.constantFrom<Dim>("a", "b", "c", 0, 1, 2, 5);
  const dim = fc
    .array(fc.array(name, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 3 })
    .map((terms) => terms.map((factors) => productOfDims(factors)).reduce(addDims));
  const bindings = new Map([
    ["a", 3],
    ["b", 7],
    ["c", 11],
  ]);
  const value = (x: Dim): number => evaluateDim(x, bindings);
  fc.assert(
    fc.property(dim, dim, (x, y) => {
      expect(value(addDims(x, y))).toBe(value(x) + value(y));
      expect(value(subtractDims(x, y))).toBe(value(x) - value(y));
      expect(value(multiplyDims(x, y))).toBe(value(x) * value(y));
      expect(addDims(x, y)).toBe(addDims(y, x));
      expect(subtractDims(addDims(x, y), y)).toBe(x);
      expect(canonicalDim(x)).toBe(x);
      const quotient = y === 0 ? undefined : divideDims(multiplyDims(x, y), y);
      if (quotient !== undefined) expect(quotient).toBe(x);
    }),
  );
});

test("an unbound name is an error that names it", () => {
  expect(() => evaluateDim("past+tokens", new Map([["tokens", 2]]))).toThrow(/expected "past" to be bound/);
});
