// The reference backend's values: numbers in typed arrays that hold a dtype's values exactly. i64 is kept as float64
// (exact to 2^53), f16 and bf16 as float32 that is rounded after each op. Kernels accumulate in float64.

import {
  type Dtype,
  elementCount,
  encodeNumbers,
  roundTo,
  type Tensor,
  tensor,
  toNumbers,
} from "../../tensor/index.ts";

export type Numbers = Float64Array | Float32Array | Int32Array | Int8Array | Uint8Array;

/** A tensor in a run. */
export interface Operand {
  readonly dtype: Dtype;
  readonly shape: readonly number[];
  readonly data: Numbers;
}

/** Zeroed storage for a result. */
export function numbers(dtype: Dtype, count: number): Numbers {
  switch (dtype) {
    case "f64":
    case "i64":
      return new Float64Array(count);
    case "f32":
    case "f16":
    case "bf16":
      return new Float32Array(count);
    case "i32":
      return new Int32Array(count);
    case "i8":
      return new Int8Array(count);
    default:
      return new Uint8Array(count);
  }
}

/** Rounds results that were computed in a wider type to their own. */
export function settle(dtype: Dtype, data: Numbers): Numbers {
  if (dtype === "f16" || dtype === "bf16") for (let i = 0; i < data.length; i++) data[i] = roundTo(dtype, data[i]!);
  return data;
}

export function fromTensor(value: Tensor): Operand {
  return { dtype: value.dtype, shape: value.shape, data: toNumbers(value) };
}

/** A tensor with storage of its own. */
export function toTensor({ dtype, shape, data }: Operand): Tensor {
  // Int32Array and its like hold exactly their dtype's values, so nothing is out of range here.
  const stored =
    dtype === "f64" || dtype === "f32" || dtype === "i32" || dtype === "i8" || dtype === "u8" || dtype === "bool";
  return tensor(dtype, shape, (stored ? data.slice() : encodeNumbers(dtype, data)) as never) as Tensor;
}

/** Calls fn(output index, …input offsets) for each element of a broadcast. */
export function eachBroadcast(
  shape: readonly number[],
  stepsOf: readonly (readonly number[])[],
  fn: (out: number, a: number, b: number, c: number) => void,
): void {
  const count = elementCount(shape);
  const rank = shape.length;
  const index = new Array<number>(rank).fill(0);
  const [sa, sb, sc] = [stepsOf[0] ?? [], stepsOf[1] ?? [], stepsOf[2] ?? []];
  let [a, b, c] = [0, 0, 0];
  for (let out = 0; out < count; out++) {
    fn(out, a, b, c);
    for (let axis = rank - 1; axis >= 0; axis--) {
      a += sa[axis] ?? 0;
      b += sb[axis] ?? 0;
      c += sc[axis] ?? 0;
      index[axis]!++;
      if (index[axis]! < shape[axis]!) break;
      a -= (sa[axis] ?? 0) * shape[axis]!;
      b -= (sb[axis] ?? 0) * shape[axis]!;
      c -= (sc[axis] ?? 0) * shape[axis]!;
      index[axis] = 0;
    }
  }
}

/** An axis as a triple loop: outer · size · inner. */
export function aroundAxis(shape: readonly number[], axis: number): { outer: number; size: number; inner: number } {
  return {
    outer: elementCount(shape.slice(0, axis)),
    size: shape[axis]!,
    inner: elementCount(shape.slice(axis + 1)),
  };
}
