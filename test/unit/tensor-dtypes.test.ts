import { describe, expect, test } from "vitest";
import {
  bfloat16Bits,
  bfloat16Value,
  byteLength,
  decodeBfloat16,
  decodeFloat16,
  encodeFloat16,
  float16Bits,
  float16Value,
  fromNumbers,
  random,
  roundTo,
  type Tensor,
  tensor,
  toNumbers,
  viewBytes,
} from "../../src/tensor/index.ts";

const float32Bits = (value: number): number => new Uint32Array(new Float32Array([value]).buffer)[0]!;

describe("float16", () => {
  test("every finite pattern decodes to a number that encodes to the same pattern", () => {
    for (let bits = 0; bits < 65536; bits++) {
      const value = float16Value(bits);
      if (Number.isNaN(value)) expect(float16Value(float16Bits(value))).toBeNaN();
      else if (float16Bits(value) !== bits)
        expect.fail(`${bits} decodes to ${value}, encodes to ${float16Bits(value)}`);
    }
  });

  test("anchors of IEEE 754: one, the largest, the smallest normal and subnormal, infinity, signed zero", () => {
    expect([1, 65504, 2 ** -14, 2 ** -24, Infinity, -Infinity, 0, -0].map(float16Bits)).toEqual([
      0x3c00, 0x7bff, 0x0400, 0x0001, 0x7c00, 0xfc00, 0x0000, 0x8000,
    ]);
    expect(float16Bits(Number.NaN)).toBe(0x7e00);
  });

  test("ties go to the even neighbour, and anything past a tie to the nearer", () => {
    for (let bits = 0; bits < 0x7bff; bits++) {
      const low = float16Value(bits);
      const middle = (low + float16Value(bits + 1)) / 2;
      const even = bits % 2 === 0 ? bits : bits + 1;
      const above = middle * (1 + 2 ** -50);
      if (float16Bits(middle) !== even || float16Bits(above) !== bits + 1 || float16Bits(-middle) !== (even | 0x8000)) {
        expect.fail(`between ${bits} and ${bits + 1}`);
      }
    }
    expect([65519.99, 65520, 65520.01, 1e300].map(float16Bits)).toEqual([0x7bff, 0x7c00, 0x7c00, 0x7c00]);
    expect([2 ** -25, 2 ** -25 * 1.0001, 1e-300].map(float16Bits)).toEqual([0, 1, 0]);
  });

  test("rounding happens once: going through float32 first would give the other neighbour", () => {
    const value = 1 + 2 ** -11 + 2 ** -40;
    expect(float16Bits(Math.fround(value))).toBe(0x3c00);
    expect(float16Bits(value)).toBe(0x3c01);
  });
});

describe("bfloat16", () => {
  test("a float32 rounds as adding 0x7fff and the last kept bit does", () => {
    const stream = random(11);
    for (let i = 0; i < 20000; i++) {
      const bits = stream.bits();
      const value = new Float32Array(new Uint32Array([bits]).buffer)[0]!;
      if (Number.isNaN(value)) continue;
      const expected = ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16) & 0xffff;
      if (bfloat16Bits(value) !== expected) expect.fail(`${value}: ${bfloat16Bits(value)}, not ${expected}`);
    }
  });

  test("its value is the float32 with the same upper bits", () => {
    for (let bits = 0; bits < 65536; bits += 7) {
      const value = bfloat16Value(bits);
      if (!Number.isNaN(value)) expect(float32Bits(value) >>> 0).toBe((bits << 16) >>> 0);
    }
    expect(bfloat16Value(0x0001)).toBe(2 ** -133);
  });
});

test("bulk decoders agree with the scalar ones", () => {
  const bits = Uint16Array.from({ length: 65536 }, (_, i) => i);
  expect(Array.from(decodeFloat16(bits))).toEqual(Array.from(bits, float16Value));
  expect(Array.from(decodeBfloat16(bits))).toEqual(Array.from(bits, bfloat16Value));
  expect(encodeFloat16(decodeFloat16(bits)).filter((b, i) => b !== i && (i & 0x7fff) <= 0x7c00)).toHaveLength(0);
});

describe("tensors", () => {
  test("numbers survive each dtype that can hold them", () => {
    const cases: [Tensor["dtype"], number[]][] = [
      ["f64", [0.1, -2]],
      ["f32", [0.5, -2]],
      ["f16", [0.5, -2]],
      ["bf16", [0.5, -2]],
      ["i64", [-(2 ** 52), 7]],
      ["i32", [-(2 ** 31), 7]],
      ["i8", [-128, 127]],
      ["u8", [0, 255]],
      ["u4", [3, 15]],
      ["bool", [0, 1]],
    ];
    for (const [dtype, values] of cases) {
      expect(Array.from(toNumbers(fromNumbers(dtype, [2], values)))).toEqual(values);
    }
  });

  test("an odd count of u4 takes a whole last byte, earlier elements in the low nibble", () => {
    const odd = fromNumbers("u4", [3], [1, 2, 3]);
    expect(Array.from(odd.data)).toEqual([0x21, 0x03]);
    expect(byteLength("u4", 3)).toBe(2);
    expect(Array.from(toNumbers(odd))).toEqual([1, 2, 3]);
  });

  test("wrong counts, ranges and fractions are errors", () => {
    expect(() => tensor("f32", [2, 2], new Float32Array(3))).toThrow(
      /expected 4 stored elements for f32\[2, 2\], got 3/,
    );
    expect(() => fromNumbers("u4", [1], [16])).toThrow(/0 \.\. 15 for u4, got 16/);
    expect(() => fromNumbers("i64", [1], [0.5])).toThrow(/integers/);
    expect(() => fromNumbers("f32", [2], [1])).toThrow(/expected 2 numbers/);
    expect(() => tensor("f32", [-1], new Float32Array(0))).toThrow(/at least 0/);
    const wide = tensor("i64", [1], BigInt64Array.of(2n ** 60n));
    expect(() => toNumbers(wide)).toThrow(/within 2\^53/);
  });

  test("bytes are viewed in place when aligned, copied when not", () => {
    const bytes = new Uint8Array(12);
    expect(viewBytes("f32", bytes.subarray(4)).buffer).toBe(bytes.buffer);
    expect(viewBytes("f32", bytes.subarray(1, 9)).buffer).not.toBe(bytes.buffer);
    expect(() => viewBytes("f32", bytes.subarray(0, 5))).toThrow(/multiple of 4/);
  });

  test("roundTo is idempotent and rounds to the dtype", () => {
    expect(roundTo("f16", 0.1)).toBe(0.0999755859375);
    expect(roundTo("bf16", 0.1)).toBe(0.10009765625);
    expect(roundTo("f32", 0.1)).toBe(Math.fround(0.1));
    expect(roundTo("f16", roundTo("f16", 0.1))).toBe(roundTo("f16", 0.1));
  });
});
