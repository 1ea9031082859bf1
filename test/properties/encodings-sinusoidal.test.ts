import fc from "fast-check";
import { expect, test } from "vitest";
import { relativeMatrix, type SinusoidalOptions, sinusoidalTable } from "../../src/encodings/sinusoidal.ts";
import { largestError } from "../support/encodings-other.ts";

const options: fc.Arbitrary<SinusoidalOptions> = fc.record({
  hiddenSize: fc.integer({ min: 2, max: 16 }).map((half) => 2 * half),
  theta: fc.constantFrom(10, 500, 10000, 1e6),
  layout: fc.constantFrom("interleaved", "concatenated"),
  exponent: fc.constantFrom("vaswani", "fairseq"),
});
const position = fc.integer({ min: 0, max: 100_000 });
const offset = fc.integer({ min: -100_000, max: 100_000 });

/** [C, C] times [C, N]. */
function multiply(a: Float64Array, b: Float64Array, size: number): Float64Array {
  const columns = b.length / size;
  return Float64Array.from({ length: b.length }, (_, at) => {
    let sum = 0;
    for (let i = 0; i < size; i++) sum += a[Math.floor(at / columns) * size + i]! * b[i * columns + (at % columns)]!;
    return sum;
  });
}

// Angles reach 2e5 radians, known to 2^-53 relative: 5e-11.
const slack = 1e-10;

test("P(k + R) = M_R · P(k), in both layouts", () => {
  fc.assert(
    fc.property(options, position, offset, (o, k, r) => {
      const moved = multiply(relativeMatrix(r, o), sinusoidalTable([k], o), o.hiddenSize);
      expect(largestError(moved, sinusoidalTable([k + r], o))).toBeLessThan(slack);
    }),
  );
});

test("M_R · M_S = M_(R+S), and M_(−R) is the transpose of M_R", () => {
  fc.assert(
    fc.property(options, offset, offset, (o, r, s) => {
      const size = o.hiddenSize;
      const m = relativeMatrix(r, o);
      expect(largestError(multiply(m, relativeMatrix(s, o), size), relativeMatrix(r + s, o))).toBeLessThan(slack);
      const transposed = Float64Array.from(
        { length: size * size },
        (_, at) => m[(at % size) * size + Math.floor(at / size)]!,
      );
      expect(largestError(relativeMatrix(-r, o), transposed)).toBe(0);
    }),
  );
});

test("every row has the length √(C/2): positions differ in direction only", () => {
  fc.assert(
    fc.property(options, position, (o, k) => {
      expect(sinusoidalTable([k], o).reduce((sum, x) => sum + x * x, 0)).toBeCloseTo(o.hiddenSize / 2, 10);
    }),
  );
});
