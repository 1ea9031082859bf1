import { describe, expect, test } from "vitest";
import { relativeMatrix, sinusoidal, sinusoidalHands, sinusoidalTable } from "../../src/encodings/sinusoidal.ts";
import { largestError, largestRelativeError, otherEncodings } from "../support/encodings-other.ts";

describe("sinusoidal", () => {
  test.each(otherEncodings.sinusoidal.modules)("$source has this table at width $hiddenSize", (module) => {
    // float32 angles at positions below 64: the errors of their modules, 5e-6 at most.
    expect(largestError(sinusoidalTable(module.rows, module), module.table)).toBeLessThan(5e-6);
  });

  test.each(otherEncodings.sinusoidal.exact)(
    "width $hiddenSize, theta $theta, $exponent: sines, cosines and wavelengths are those of exact arithmetic",
    ({ hiddenSize, theta, exponent, points, wavelengths }) => {
      const hands = sinusoidalHands(hiddenSize, theta, exponent);
      expect(
        largestRelativeError(
          hands.map((hand) => hand.wavelength),
          wavelengths,
        ),
      ).toBeLessThan(1e-15);
      for (const [position, hand, sin, cos] of points) {
        const row = sinusoidalTable([position], { hiddenSize, theta, exponent });
        // The angle is a rounded product of a rounded frequency: two roundings of 2^-53 relative.
        const slack = 4e-16 + position * hands[hand]!.inverseFrequency * 2.5e-16;
        expect(Math.abs(row[2 * hand]! - sin)).toBeLessThan(slack);
        expect(Math.abs(row[2 * hand + 1]! - cos)).toBeLessThan(slack);
      }
    },
  );

  test("128 channels are 64 hands, from 6.283 to 54,410 tokens a turn", () => {
    const hands = sinusoidalHands(128);
    expect(hands).toHaveLength(64);
    expect(hands[0]!.wavelength).toBeCloseTo(6.283, 3);
    expect(Math.round(hands[63]!.wavelength)).toBe(54410);
    expect(hands.every(({ wavelength }, j) => j === 0 || wavelength > hands[j - 1]!.wavelength)).toBe(true);
  });

  test("the two exponents are two clocks: fairseq's last hand turns by exactly 1/theta", () => {
    expect(sinusoidalHands(128, 10000, "fairseq")[63]!.inverseFrequency).toBe(1e-4);
    expect(sinusoidalHands(128)[63]!.inverseFrequency).toBeGreaterThan(1.15e-4);
  });

  test("concatenated is interleaved with its channels reordered", () => {
    const options = { hiddenSize: 10, theta: 321 };
    const interleaved = sinusoidalTable([5, 900], { ...options, layout: "interleaved" });
    const concatenated = sinusoidalTable([5, 900], { ...options, layout: "concatenated" });
    for (let t = 0; t < 2; t++) {
      for (let j = 0; j < 5; j++) {
        expect(concatenated[t * 10 + j]).toBe(interleaved[t * 10 + 2 * j]);
        expect(concatenated[t * 10 + 5 + j]).toBe(interleaved[t * 10 + 2 * j + 1]);
      }
    }
  });

  test("a limit, where a checkpoint has one, is an error that names both numbers", () => {
    expect(() => sinusoidal({ hiddenSize: 4, maxPositions: 512 }).rows([3, 512])).toThrow(/512, got 512/);
  });

  test("impossible settings are refused", () => {
    expect(() => sinusoidalTable([0], { hiddenSize: 5 })).toThrow(/hiddenSize to be an even integer.*got 5/);
    expect(() => sinusoidalTable([Number.NaN], { hiddenSize: 4 })).toThrow(/positions/);
    expect(() => sinusoidalTable([0], { hiddenSize: 4, theta: 0 })).toThrow(/theta/);
    expect(() => sinusoidalTable([0], { hiddenSize: 2, exponent: "fairseq" })).toThrow(/at least 4/);
    expect(() => relativeMatrix(1, { hiddenSize: 4, layout: "half" as "interleaved" })).toThrow(/"half"/);
    expect(() => sinusoidalHands(4, 10000, "tensor2tensor" as "fairseq")).toThrow(/"tensor2tensor"/);
  });
});
