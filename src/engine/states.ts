// Writing into tensors that live in a session: rows along an axis, and moving contents into another size.

import { allocate, elementCount, formatShape, type Shape, type Tensor, tensor } from "../tensor/index.ts";

/** Throws RangeError when rows would pass the end of an axis. */
export function expectRows(shape: Shape, count: number, axis: number, start: number, who: string): void {
  const size = shape[axis]!;
  if (!Number.isInteger(start) || start < 0 || start + count > size) {
    throw new RangeError(
      `${who}: expected rows within ${size} along axis ${axis}, got ${start} .. ${start + count - 1}; resize the state`,
    );
  }
}

/**
 * Writes rows over a target along an axis, from row `start` on; the target's storage changes in place.
 * @throws RangeError when the rows would pass the end
 */
export function writeRows(target: Tensor, rows: Tensor, axis: number, start: number, who = "state"): void {
  const count = rows.shape[axis]!;
  const size = target.shape[axis]!;
  expectRows(target.shape, count, axis, start, who);
  const inner = elementCount(target.shape.slice(axis + 1));
  const outer = elementCount(target.shape.slice(0, axis));
  const to = target.data as Float32Array;
  const from = rows.data as Float32Array;
  for (let i = 0; i < outer; i++) {
    const block = from.subarray(i * count * inner, (i + 1) * count * inner);
    to.set(block, (i * size + start) * inner);
  }
}

/** A zeroed tensor of another shape with what fits of the old contents in its lowest corner. */
export function resized(old: Tensor, shape: Shape): Tensor {
  if (old.shape.length !== shape.length) {
    throw new RangeError(`resize: expected ${old.shape.length} axes, got ${formatShape(shape)}`);
  }
  const data = allocate(old.dtype, elementCount(shape)) as Float32Array;
  const from = old.data as Float32Array;
  // Rows of the last axes are contiguous in both; copy them one by one.
  const kept = shape.map((size, axis) => Math.min(size, old.shape[axis]!));
  const copy = (axis: number, to: number, at: number): void => {
    if (axis === shape.length) {
      data[to] = from[at]!;
      return;
    }
    const [toStride, fromStride] = [elementCount(shape.slice(axis + 1)), elementCount(old.shape.slice(axis + 1))];
    if (toStride === fromStride) {
      const length = kept[axis]! * toStride;
      data.set(from.subarray(at, at + length), to);
      return;
    }
    for (let i = 0; i < kept[axis]!; i++) copy(axis + 1, to + i * toStride, at + i * fromStride);
  };
  if (data.length > 0 && from.length > 0) copy(0, 0, 0);
  return tensor(old.dtype, shape, data as never) as Tensor;
}
