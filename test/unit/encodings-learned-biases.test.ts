import { describe, expect, test } from "vitest";
import { alibi } from "../../src/encodings/alibi.ts";
import { copeBias, copePositions } from "../../src/encodings/cope.ts";
import { fire, fireDistance } from "../../src/encodings/fire.ts";
import { kerple, kerpleBias } from "../../src/encodings/kerple.ts";
import { largestError, largestRelativeError, otherEncodings } from "../support/encodings-other.ts";

describe("KERPLE", () => {
  test("both kernels are those of exact arithmetic", () => {
    const got = otherEncodings.kerple.map((c) => kerpleBias(c.distance, c));
    expect(
      largestRelativeError(
        got,
        otherEncodings.kerple.map((c) => c.bias),
      ),
    ).toBeLessThan(1e-15);
  });

  test("the power kernel with r2 = 1 is ALiBi", () => {
    const { slopes, bias } = alibi({ numHeads: 4 });
    const positions = [0, 1, 2, 3, 4, 5, 6];
    expect(kerple({ kind: "power", r1: slopes, r2: [1, 1, 1, 1] }).bias(positions, positions)).toEqual(
      bias(positions, positions),
    );
  });

  test("a cached row, bidirectional or causal, is that row of the whole", () => {
    const keys = [0, 1, 2, 3, 4];
    for (const bidirectional of [false, true]) {
      const { bias } = kerple({ kind: "logarithmic", r1: [1.5], r2: [0.4], bidirectional });
      expect(bias([2], keys)).toEqual(bias(keys, keys).slice(10, 15));
      expect(bias([2], keys)[4]).toBe(bidirectional ? kerpleBias(2, { kind: "logarithmic", r1: 1.5, r2: 0.4 }) : 0);
    }
  });

  test("parameters outside the kernel's domain are refused", () => {
    expect(() => kerpleBias(1, { kind: "power", r1: 1, r2: 2.1 })).toThrow(/at most 2.*got 2.1/);
    expect(() => kerpleBias(1, { kind: "logarithmic", r1: 0, r2: 1 })).toThrow(/r1/);
    expect(() => kerpleBias(-1, { kind: "power", r1: 1, r2: 1 })).toThrow(/distance/);
    expect(() => kerple({ kind: "power", r1: [1, 1], r2: [1] })).toThrow(/2 and 1/);
    expect(() => kerple({ kind: "log" as "power", r1: [1], r2: [1] })).toThrow(/"log"/);
  });
});

describe("FIRE", () => {
  const { queryPositions, keyPositions, bias, ...options } = otherEncodings.fire;

  test("the network over normalised distances equals exact arithmetic", () => {
    expect(largestError(fire(options).bias(queryPositions, keyPositions), bias)).toBeLessThan(1e-13);
  });

  test("its lines between kinks are the network, layer by layer", () => {
    // Units without a kink, with equal kinks, with kinks far away, and ordinary ones.
    const hidden = {
      weight: [0, 0, 2, -4, 1e-300, 1e-12, -3, 5, 0.7],
      bias: [0.5, -1, -1, 2, 1, -2, 0.9, -1.1, 0.2],
    };
    const last = { weight: Array.from({ length: 18 }, (_, i) => Math.sin(3 * i + 1)), bias: [0.3, -0.2] };
    // y = relu(y) − relu(−y), so that a third layer changes nothing.
    const twice = { weight: [...last.weight, ...last.weight.map((x) => -x)], bias: [0.3, -0.2, -0.3, 0.2] };
    const back = { weight: [1, 0, -1, 0, 0, 1, 0, -1], bias: [0, 0] };
    const [queries, keys] = [[0, 3, 900, 901], Array.from({ length: 902 }, (_, j) => j)];
    const shape = { c: 0.4, threshold: 50 };
    const lines = fire({ layers: [hidden, last], ...shape }).bias(queries, keys);
    const deep = fire({ layers: [hidden, twice, back], ...shape }).bias(queries, keys);
    expect(largestError(lines, Array.from(deep))).toBeLessThan(1e-13);
  });

  test("progressive interpolation: the first key is at share 1 for every query past the threshold", () => {
    const shape = { c: 0.3, threshold: 100, epsilon: 0 };
    for (const i of [100, 101, 5000, 1e6]) expect(fireDistance(i, 0, shape)).toBe(1);
    expect(fireDistance(50, 0, shape)).toBeLessThan(1);
    expect(fireDistance(70, 70, shape)).toBe(0);
  });

  test("it depends on the query's position, not on the distance alone", () => {
    const shape = { c: 0.3, threshold: 100 };
    expect(fireDistance(1000, 900, shape)).not.toBeCloseTo(fireDistance(500, 400, shape), 3);
    expect(fireDistance(90, 80, shape)).toBe(fireDistance(20, 10, shape)); // below the threshold it does
  });

  test("layers that do not fit are refused, naming the layer", () => {
    const layers = [
      { weight: [1, 1], bias: [0, 0] },
      { weight: [1, 1, 1], bias: [0] },
    ];
    expect(() => fire({ layers, c: 0.1, threshold: 8 })).toThrow(/layers\[1\].*\[1, 2\].*got 3 numbers/);
    expect(() => fire({ layers: [], c: 0.1, threshold: 8 })).toThrow(/at least one layer/);
    expect(() => fire({ layers: [{ weight: [1], bias: [0] }], c: 0, threshold: 8 })).toThrow(/\bc\b/);
  });
});

describe("CoPE", () => {
  test.each(otherEncodings.cope)(
    "equals the listing's tensor operations: $numQueries of $numKeys, $maxPositions positions",
    (c) => {
      const positions = copePositions(c.logits, c);
      const bias = copeBias(c.logits, c.positionLogits, c);
      expect(largestError(positions, c.positions)).toBeLessThan(1e-14);
      expect(largestError(bias, c.bias)).toBeLessThan(1e-13);
    },
  );

  test("with every gate open, a contextual position is the distance, counted from 1", () => {
    const shape = { numHeads: 1, numQueries: 1, numKeys: 5, maxPositions: 100 };
    expect(copePositions([99, 99, 99, 99, 99], shape)).toEqual(Float64Array.of(5, 4, 3, 2, 1));
  });

  test("a future key's logit is not read", () => {
    const shape = { numHeads: 1, numQueries: 2, numKeys: 2, maxPositions: 4 };
    expect(copeBias([1, Number.NaN, 2, 3], [1, 2, 3, 4, 5, 6, 7, 8], shape)).toEqual(
      copeBias([1, 50, 2, 3], [1, 2, 3, 4, 5, 6, 7, 8], shape),
    );
  });

  test("arrays of another shape are refused", () => {
    const shape = { numHeads: 1, numQueries: 3, numKeys: 2, maxPositions: 4 };
    expect(() => copePositions([0], shape)).toThrow(/numKeys.*at least 3, got 2/);
    expect(() => copeBias([0, 0], [0], { ...shape, numQueries: 1 })).toThrow(/positionLogits.* of 4 numbers, got 1/);
    expect(() => copeBias([0], [0], { ...shape, numQueries: 1 })).toThrow(/logits.* of 2 numbers, got 1/);
  });
});
