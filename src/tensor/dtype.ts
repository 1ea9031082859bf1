// The element types, with the names that graphs print and files use, their width in bits, and the typed array that
// stores each. f16 and bf16 are stored as their bits (Uint16Array), u4 as two a byte with the earlier element in the
// low nibble, bool as a byte of 0 or 1, i64 as BigInt64Array.

/** Every element type, floats first. */
export const dtypes = ["f64", "f32", "f16", "bf16", "i64", "i32", "i8", "u8", "u4", "bool"] as const;

export type Dtype = (typeof dtypes)[number];
export type FloatDtype = "f64" | "f32" | "f16" | "bf16";
export type IntegerDtype = "i64" | "i32" | "i8" | "u8" | "u4";

/** The typed array that holds a dtype's elements. */
export interface Storage {
  f64: Float64Array;
  f32: Float32Array;
  f16: Uint16Array;
  bf16: Uint16Array;
  i64: BigInt64Array;
  i32: Int32Array;
  i8: Int8Array;
  u8: Uint8Array;
  u4: Uint8Array;
  bool: Uint8Array;
}
export type TensorData = Storage[Dtype];

interface ArrayConstructor<T> {
  new (length: number): T;
  new (buffer: ArrayBufferLike, byteOffset?: number, length?: number): T;
  readonly BYTES_PER_ELEMENT: number;
}

interface DtypeFacts<D extends Dtype> {
  readonly bits: number;
  readonly kind: "float" | "integer" | "bool";
  readonly array: ArrayConstructor<Storage[D]>;
}

export const dtypeFacts: { readonly [D in Dtype]: DtypeFacts<D> } = {
  f64: { bits: 64, kind: "float", array: Float64Array },
  f32: { bits: 32, kind: "float", array: Float32Array },
  f16: { bits: 16, kind: "float", array: Uint16Array },
  bf16: { bits: 16, kind: "float", array: Uint16Array },
  i64: { bits: 64, kind: "integer", array: BigInt64Array },
  i32: { bits: 32, kind: "integer", array: Int32Array },
  i8: { bits: 8, kind: "integer", array: Int8Array },
  u8: { bits: 8, kind: "integer", array: Uint8Array },
  u4: { bits: 4, kind: "integer", array: Uint8Array },
  bool: { bits: 8, kind: "bool", array: Uint8Array },
};

/** True for f64, f32, f16 and bf16. */
export function isFloat(dtype: Dtype): dtype is FloatDtype {
  return dtypeFacts[dtype].kind === "float";
}

/** True for i64, i32, i8, u8 and u4. */
export function isInteger(dtype: Dtype): dtype is IntegerDtype {
  return dtypeFacts[dtype].kind === "integer";
}

/**
 * Bytes that `count` elements take; an odd count of u4 rounds up to a whole byte.
 * @example
 * ```ts
 * import { byteLength } from "longhand/tensor";
 * [byteLength("f32", 3), byteLength("bf16", 3), byteLength("u4", 3)]; // => [12, 6, 2]
 * ```
 */
export function byteLength(dtype: Dtype, count: number): number {
  return Math.ceil((dtypeFacts[dtype].bits * count) / 8);
}

/** Elements of the typed array that stores `count` elements: half of them, rounded up, for u4. */
export function storageLength(dtype: Dtype, count: number): number {
  return dtype === "u4" ? Math.ceil(count / 2) : count;
}

/** A zero-filled typed array for `count` elements. */
export function allocate<D extends Dtype>(dtype: D, count: number): Storage[D] {
  return new dtypeFacts[dtype].array(storageLength(dtype, count));
}

/**
 * Bytes seen as elements: a view where the alignment allows it, else a copy. Little-endian, as every checkpoint is.
 * @throws RangeError when the bytes are not a whole number of elements
 */
export function viewBytes<D extends Dtype>(dtype: D, bytes: Uint8Array): Storage[D] {
  const array = dtypeFacts[dtype].array;
  const width = array.BYTES_PER_ELEMENT;
  if (bytes.byteLength % width !== 0) {
    throw new RangeError(`viewBytes: expected a multiple of ${width} bytes for ${dtype}, got ${bytes.byteLength}`);
  }
  const aligned = bytes.byteOffset % width === 0 ? bytes : bytes.slice();
  return new array(aligned.buffer, aligned.byteOffset, aligned.byteLength / width);
}
