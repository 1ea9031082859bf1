// Dtypes whose unit is one number: floats of 64 to 8 bits and integers. 16- and 8-bit floats become float32 exactly (bits
// of NaN included for the 16-bit ones); float64 and integers past 2^24 round to the nearest.

import type { Dtype, Storage } from "../../tensor/index.ts";
import { viewBytes } from "../../tensor/index.ts";
import type { Codec, Decode } from "./codec.ts";
import { float16Table } from "./float16-table.ts";

function codec(name: string, unitBytes: number, decode: Decode): Codec {
  return { name, unitElements: 1, unitBytes, finiteStride: 1, decode };
}

/** The first elements seen through the typed array of a dtype; copied only when they are not aligned. */
function view<D extends Dtype>(dtype: D, bytes: Uint8Array, byteLength: number): Storage[D] {
  return viewBytes(dtype, bytes.subarray(0, byteLength));
}

const bitsOf = (out: Float32Array): Int32Array => new Int32Array(out.buffer, out.byteOffset, out.length);

const f32: Codec = {
  ...codec("F32", 4, (bytes, units, out) => {
    // As bytes: a float32 set through numbers may lose the bits of a NaN.
    new Uint8Array(out.buffer, out.byteOffset, 4 * units).set(bytes.subarray(0, 4 * units));
  }),
  identity: true,
};

// The 16-bit floats in pairs: half as many reads.
const f16 = codec("F16", 2, (bytes, units, out) => {
  const half = bitsOf(float16Table());
  const pairs = view("i32", bytes, 2 * units - 2 * (units % 2));
  const target = bitsOf(out);
  for (let i = 0, o = 0; i < pairs.length; i++, o += 2) {
    const pair = pairs[i]!;
    target[o] = half[pair & 0xffff]!;
    target[o + 1] = half[pair >>> 16]!;
  }
  if (units % 2 === 1) target[units - 1] = half[bytes[2 * units - 2]! | (bytes[2 * units - 1]! << 8)]!;
});

const bf16 = codec("BF16", 2, (bytes, units, out) => {
  const pairs = view("i32", bytes, 2 * units - 2 * (units % 2));
  const target = bitsOf(out);
  for (let i = 0, o = 0; i < pairs.length; i++, o += 2) {
    const pair = pairs[i]!;
    target[o] = pair << 16;
    target[o + 1] = pair & 0xffff0000;
  }
  if (units % 2 === 1) target[units - 1] = (bytes[2 * units - 2]! << 16) | (bytes[2 * units - 1]! << 24);
});

const f64 = codec("F64", 8, (bytes, units, out) => out.set(view("f64", bytes, 8 * units)));

const i64 = codec("I64", 8, (bytes, units, out) => {
  const source = view("i64", bytes, 8 * units);
  for (let i = 0; i < units; i++) out[i] = Number(source[i]!);
});

const u64 = codec("U64", 8, (bytes, units, out) => {
  const source = view("i64", bytes, 8 * units);
  for (let i = 0; i < units; i++) out[i] = Number(BigInt.asUintN(64, source[i]!));
});

const i32 = codec("I32", 4, (bytes, units, out) => out.set(view("i32", bytes, 4 * units)));

const u32 = codec("U32", 4, (bytes, units, out) => {
  const source = view("i32", bytes, 4 * units);
  for (let i = 0; i < units; i++) out[i] = source[i]! >>> 0;
});

// "f16" is stored as its bits: a Uint16Array.
const i16 = codec("I16", 2, (bytes, units, out) => {
  const source = view("f16", bytes, 2 * units);
  for (let i = 0; i < units; i++) out[i] = (source[i]! << 16) >> 16;
});

const u16 = codec("U16", 2, (bytes, units, out) => out.set(view("f16", bytes, 2 * units)));

const i8 = codec("I8", 1, (bytes, units, out) => out.set(view("i8", bytes, units)));

const u8 = codec("U8", 1, (bytes, units, out) => out.set(bytes.subarray(0, units)));

const bool = codec("BOOL", 1, (bytes, units, out) => {
  for (let i = 0; i < units; i++) out[i] = bytes[i] === 0 ? 0 : 1;
});

/** An 8-bit float by a table of its 256 values. */
function float8(name: string, value: (byte: number) => number): Codec {
  const table = Float32Array.from({ length: 256 }, (_, byte) => value(byte));
  return codec(name, 1, (bytes, units, out) => {
    for (let i = 0; i < units; i++) out[i] = table[bytes[i]!]!;
  });
}

/** Sign, exponent and mantissa of an 8-bit float; subnormals where the exponent is 0. */
function minifloat(byte: number, mantissaBits: number, bias: number): number {
  const sign = byte & 0x80 ? -1 : 1;
  const exponent = (byte & 0x7f) >> mantissaBits;
  const mantissa = byte & ((1 << mantissaBits) - 1);
  return exponent === 0
    ? sign * mantissa * 2 ** (1 - bias - mantissaBits)
    : sign * (1 + mantissa / 2 ** mantissaBits) * 2 ** (exponent - bias);
}

// E4M3 ("fn": no infinity) keeps only all ones for NaN; E5M2 is IEEE's form. The FNUZ forms have a bias more by one, no
// infinity and no negative zero, whose bits are their NaN. E8M0 is a bare exponent.
const f8E4m3 = float8("F8_E4M3", (byte) => ((byte & 0x7f) === 0x7f ? Number.NaN : minifloat(byte, 3, 7)));
const f8E5m2 = float8("F8_E5M2", (byte) => {
  if ((byte & 0x7f) < 0x7c) return minifloat(byte, 2, 15);
  return (byte & 3) !== 0 ? Number.NaN : byte & 0x80 ? -Infinity : Infinity;
});
const f8E4m3fnuz = float8("F8_E4M3FNUZ", (byte) => (byte === 0x80 ? Number.NaN : minifloat(byte, 3, 8)));
const f8E5m2fnuz = float8("F8_E5M2FNUZ", (byte) => (byte === 0x80 ? Number.NaN : minifloat(byte, 2, 16)));
const f8E8m0 = float8("F8_E8M0", (byte) => (byte === 255 ? Number.NaN : 2 ** (byte - 127)));

/** Of safetensors. */
export const plainCodecs: readonly Codec[] = [
  ...[f64, f32, f16, bf16, f8E4m3, f8E5m2, f8E4m3fnuz, f8E5m2fnuz, f8E8m0],
  ...[i64, u64, i32, u32, i16, u16, i8, u8, bool],
];

/** Of GGUF, which has no more than these. */
export const plainGgmlCodecs: readonly Codec[] = [f32, f16, bf16, f64, i64, i32, i16, i8];
