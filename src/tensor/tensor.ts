// A tensor is plain data: dtype, shape, and the typed array that stores it row by row. Nothing here computes.

import { allocate, type Dtype, isFloat, type Storage, storageLength } from "./dtype.ts";
import {
  bfloat16Bits,
  bfloat16Value,
  decodeBfloat16,
  decodeFloat16,
  encodeBfloat16,
  encodeFloat16,
  float16Bits,
  float16Value,
} from "./float16.ts";
import { elementCount, formatShape, type Shape } from "./shape.ts";

/** A tensor; `data` is the storage of its dtype (dtype.ts). A union by dtype, so checking dtype narrows data. */
export type Tensor<D extends Dtype = Dtype> = {
  [K in D]: { readonly dtype: K; readonly shape: Shape; readonly data: Storage[K] };
}[D];

/**
 * A tensor around existing storage; nothing is copied.
 * @throws RangeError when the storage's length is not the shape's
 */
export function tensor<D extends Dtype>(dtype: D, shape: Shape, data: Storage[D]): Tensor<D> {
  for (const size of shape) {
    if (!Number.isInteger(size) || size < 0) {
      throw new RangeError(`tensor: expected sizes that are integers of at least 0, got ${formatShape(shape)}`);
    }
  }
  const expected = storageLength(dtype, elementCount(shape));
  if (data.length !== expected) {
    throw new RangeError(
      `tensor: expected ${expected} stored elements for ${dtype}${formatShape(shape)}, got ${data.length}`,
    );
  }
  return { dtype, shape, data } as unknown as Tensor<D>;
}

/** A tensor of zeros. */
export function zeros<D extends Dtype>(dtype: D, shape: Shape): Tensor<D> {
  return tensor(dtype, shape, allocate(dtype, elementCount(shape)));
}

/**
 * A tensor from numbers, cast once: floats round to nearest even, integers must be integers in range.
 * @throws RangeError for a count that is not the shape's, or a number that an integer dtype cannot hold
 * @example
 * ```ts
 * import { fromNumbers } from "longhand/tensor";
 * fromNumbers("u4", [3], [1, 2, 15]).data; // => new Uint8Array([33, 15])
 * ```
 */
export function fromNumbers<D extends Dtype>(dtype: D, shape: Shape, values: ArrayLike<number>): Tensor<D> {
  const count = elementCount(shape);
  if (values.length !== count) {
    throw new RangeError(
      `fromNumbers: expected ${count} numbers for ${dtype}${formatShape(shape)}, got ${values.length}`,
    );
  }
  return tensor(dtype, shape, encodeNumbers(dtype, values) as Storage[D]);
}

/** A scalar, shape []. */
export function scalar<D extends Dtype>(dtype: D, value: number): Tensor<D> {
  return fromNumbers(dtype, [], [value]);
}

const ranges = {
  i64: [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
  i32: [-(2 ** 31), 2 ** 31 - 1],
  i8: [-128, 127],
  u8: [0, 255],
  u4: [0, 15],
  bool: [0, 1],
} as const;

/** Numbers as a dtype's storage. Throws RangeError for a number that an integer dtype cannot hold. */
export function encodeNumbers(dtype: Dtype, values: ArrayLike<number>): Storage[Dtype] {
  switch (dtype) {
    case "f64":
      return Float64Array.from(values);
    case "f32":
      return Float32Array.from(values);
    case "f16":
      return encodeFloat16(values);
    case "bf16":
      return encodeBfloat16(values);
  }
  const [low, high] = ranges[dtype];
  const out = allocate(dtype, values.length);
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    if (!Number.isInteger(value) || value < low || value > high) {
      throw new RangeError(`fromNumbers: expected integers in ${low} .. ${high} for ${dtype}, got ${value} at ${i}`);
    }
    if (dtype === "i64") (out as BigInt64Array)[i] = BigInt(value);
    else if (dtype === "u4") (out as Uint8Array)[i >> 1]! |= value << (4 * (i & 1));
    else (out as Int32Array)[i] = value;
  }
  return out;
}

/**
 * A tensor's elements as numbers: the storage itself where it already holds numbers, else a decoded copy
 * (f16, bf16, u4, i64).
 * @throws RangeError for an i64 past 2^53, which a number cannot hold
 */
export function toNumbers(value: Tensor): Float64Array | Float32Array | Int32Array | Int8Array | Uint8Array {
  switch (value.dtype) {
    case "f16":
      return decodeFloat16(value.data);
    case "bf16":
      return decodeBfloat16(value.data);
    case "i64": {
      const out = new Float64Array(value.data.length);
      for (let i = 0; i < out.length; i++) {
        const number = Number(value.data[i]!);
        if (!Number.isSafeInteger(number)) {
          throw new RangeError(`toNumbers: expected i64 within 2^53, got ${value.data[i]} at ${i}`);
        }
        out[i] = number;
      }
      return out;
    }
    case "u4": {
      const out = new Uint8Array(elementCount(value.shape));
      for (let i = 0; i < out.length; i++) out[i] = (value.data[i >> 1]! >> (4 * (i & 1))) & 15;
      return out;
    }
    default:
      return value.data;
  }
}

/** A number as a float dtype holds it: rounded to nearest, ties to even. */
export function roundTo(dtype: Dtype, value: number): number {
  switch (dtype) {
    case "f32":
      return Math.fround(value);
    case "f16":
      return float16Value(float16Bits(value));
    case "bf16":
      return bfloat16Value(bfloat16Bits(value));
    default:
      return isFloat(dtype) ? value : Math.trunc(value);
  }
}

/** A tensor's bytes, without a copy. */
export function tensorBytes(value: Tensor): Uint8Array {
  return new Uint8Array(value.data.buffer as ArrayBuffer, value.data.byteOffset, value.data.byteLength);
}
