// IEEE binary16 (f16) and bfloat16 as bits. Numbers become bits by rounding to nearest, ties to even, in one step from
// float64 (going through float32 would round twice). Subnormals, infinities and signed zero are kept; a NaN becomes
// the quiet NaN of its sign.

const word = new DataView(new ArrayBuffer(8));

/** Rounds a float64 to a binary format of `exponentBits` and `mantissaBits`, ties to even. */
function encode(value: number, exponentBits: number, mantissaBits: number): number {
  word.setFloat64(0, value);
  const high = word.getUint32(0);
  const sign = (high >>> 31) << (exponentBits + mantissaBits);
  const bias = 2 ** (exponentBits - 1) - 1;
  const infinity = (2 ** exponentBits - 1) << mantissaBits;
  if (Number.isNaN(value)) return sign | infinity | (1 << (mantissaBits - 1));
  const magnitude = Math.abs(value);
  if (magnitude === Infinity) return sign | infinity;
  const exponent = ((high >>> 20) & 0x7ff) - 1023;
  // One unit in the last place: constant below the smallest normal number, which is where subnormals live.
  const unitExponent = Math.max(exponent, 1 - bias) - mantissaBits;
  // Dividing by a power of two is exact here: the quotient is below 2^(mantissaBits + 1), and what is lost below
  // float64's own subnormals is far under half a unit.
  const scaled = magnitude / 2 ** unitExponent;
  let units = Math.floor(scaled);
  const rest = scaled - units;
  if (rest > 0.5 || (rest === 0.5 && units % 2 === 1)) units++;
  // `units` carries the implicit bit of a normal number, so adding it to (biased exponent − 1) also carries a
  // rounding up into the next exponent, and past the largest number into infinity.
  const bits = ((unitExponent + mantissaBits + bias - 1) << mantissaBits) + units;
  return sign | Math.min(bits, infinity);
}

/** The value of bits in a format of `exponentBits` and `mantissaBits`; exact. */
function decode(bits: number, exponentBits: number, mantissaBits: number): number {
  const sign = (bits >>> (exponentBits + mantissaBits)) & 1 ? -1 : 1;
  const exponent = (bits >>> mantissaBits) & (2 ** exponentBits - 1);
  const mantissa = bits & (2 ** mantissaBits - 1);
  const bias = 2 ** (exponentBits - 1) - 1;
  if (exponent === 2 ** exponentBits - 1) return mantissa === 0 ? sign * Infinity : Number.NaN;
  if (exponent === 0) return sign * mantissa * 2 ** (1 - bias - mantissaBits);
  return sign * (1 + mantissa / 2 ** mantissaBits) * 2 ** (exponent - bias);
}

/** Bits of the binary16 nearest to value, ties to even; from 65520 on, infinity. */
export function float16Bits(value: number): number {
  return encode(value, 5, 10);
}

/** The number that 16 bits of binary16 stand for; exact. */
export function float16Value(bits: number): number {
  return decode(bits, 5, 10);
}

/** Bits of the bfloat16 nearest to value, ties to even. */
export function bfloat16Bits(value: number): number {
  return encode(value, 8, 7);
}

/** The number that 16 bits of bfloat16 stand for; exact. */
export function bfloat16Value(bits: number): number {
  return decode(bits, 8, 7);
}

/**
 * The binary16 bits of many numbers.
 * @example
 * ```ts
 * import { encodeFloat16 } from "longhand/tensor";
 * Array.from(encodeFloat16([1, -2, 65504, 65520])); // => [15360, 49152, 31743, 31744]
 * ```
 */
export function encodeFloat16(values: ArrayLike<number>): Uint16Array {
  const out = new Uint16Array(values.length);
  for (let i = 0; i < out.length; i++) out[i] = float16Bits(values[i]!);
  return out;
}

/** The bfloat16 bits of many numbers. */
export function encodeBfloat16(values: ArrayLike<number>): Uint16Array {
  const out = new Uint16Array(values.length);
  for (let i = 0; i < out.length; i++) out[i] = bfloat16Bits(values[i]!);
  return out;
}

/** The float32 values of binary16 bits, by a table of all 65,536 built at the first call. */
export function decodeFloat16(bits: ArrayLike<number>): Float32Array {
  float16Table ??= Float32Array.from({ length: 65536 }, (_, i) => float16Value(i));
  const out = new Float32Array(bits.length);
  for (let i = 0; i < out.length; i++) out[i] = float16Table[bits[i]!]!;
  return out;
}
let float16Table: Float32Array | undefined;

/** The float32 values of bfloat16 bits: the same bits, moved up by 16. */
export function decodeBfloat16(bits: ArrayLike<number>): Float32Array {
  const out = new Uint32Array(bits.length);
  for (let i = 0; i < out.length; i++) out[i] = bits[i]! << 16;
  return new Float32Array(out.buffer);
}
