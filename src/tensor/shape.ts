// Shapes of concrete tensors: row-major, as lists of sizes. Broadcasting is NumPy's: aligned at the last axis, a size
// of 1 stretches. Shape letters (B batch, T query length, S key length, H query heads, K key/value heads, D head
// dimension, C width, V vocabulary, L layers) are bound by expectShape.

export type Shape = readonly number[];

/** How many elements a shape has; 1 for a scalar's []. */
export function elementCount(shape: Shape): number {
  let count = 1;
  for (const size of shape) count *= size;
  return count;
}

/**
 * Row-major strides, in elements.
 * @example
 * ```ts
 * import { strides } from "longhand/tensor";
 * strides([2, 3, 4]); // => [12, 4, 1]
 * ```
 */
export function strides(shape: Shape): number[] {
  const out = new Array<number>(shape.length);
  let stride = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    out[axis] = stride;
    stride *= shape[axis]!;
  }
  return out;
}

/** A shape as errors print it: "[2, 3]". */
export function formatShape(shape: readonly (number | string)[]): string {
  return `[${shape.join(", ")}]`;
}

/** An axis counted from the front; −1 is the last. Throws RangeError when there is no such axis. */
export function normalizeAxis(who: string, axis: number, rank: number): number {
  const out = axis < 0 ? axis + rank : axis;
  if (!Number.isInteger(axis) || out < 0 || out >= rank) {
    throw new RangeError(`${who}: expected an axis in -${rank} .. ${rank - 1}, got ${axis}`);
  }
  return out;
}

/**
 * The shape that both broadcast to.
 * @throws RangeError when two sizes differ and neither is 1
 * @example
 * ```ts
 * import { broadcastShapes } from "longhand/tensor";
 * broadcastShapes([4, 1, 3], [2, 1]); // => [4, 2, 3]
 * ```
 */
export function broadcastShapes(a: Shape, b: Shape): number[] {
  const rank = Math.max(a.length, b.length);
  const out = new Array<number>(rank);
  for (let i = 1; i <= rank; i++) {
    const x = a[a.length - i] ?? 1;
    const y = b[b.length - i] ?? 1;
    if (x !== y && x !== 1 && y !== 1) {
      throw new RangeError(
        `broadcast: expected sizes that agree or are 1, got ${formatShape(a)} and ${formatShape(b)}`,
      );
    }
    out[rank - i] = x === 1 ? y : x;
  }
  return out;
}

/** Strides with which a tensor of `shape` is read as `target`: 0 along the axes that stretch. */
export function broadcastStrides(shape: Shape, target: Shape): number[] {
  const own = strides(shape);
  const lead = target.length - shape.length;
  return target.map((size, axis) => {
    if (axis < lead || (shape[axis - lead] === 1 && size !== 1)) return 0;
    return own[axis - lead]!;
  });
}

/**
 * Asserts a shape against letters and numbers, and binds letters that are not bound yet.
 *
 * @param name what the error calls it
 * @param got a shape, or anything that has one
 * @param pattern letters or numbers, one an axis, separated by spaces: "B T H D"
 * @param dims sizes of letters; letters that it lacks are added to it, so that one record checks several tensors
 * @throws RangeError naming the pattern, the bound sizes and the shape
 * @example
 * ```ts
 * import { expectShape } from "longhand/tensor";
 * const dims = { H: 4, D: 8 };
 * expectShape("q", [1, 5, 4, 8], "B T H D", dims);
 * dims; // => { H: 4, D: 8, B: 1, T: 5 }
 * ```
 */
export function expectShape(
  name: string,
  got: Shape | { readonly shape: Shape },
  pattern: string,
  dims: Record<string, number> = {},
): void {
  const shape = "shape" in got ? got.shape : got;
  const letters = pattern.split(/\s+/).filter((letter) => letter !== "");
  const bound: Record<string, number> = {};
  const fits =
    letters.length === shape.length &&
    letters.every((letter, axis) => {
      const size = /^\d+$/.test(letter) ? Number(letter) : (dims[letter] ?? bound[letter]);
      if (size === undefined) bound[letter] = shape[axis]!;
      return size === undefined || size === shape[axis];
    });
  if (!fits) {
    const known = letters.map((letter) => (dims[letter] === undefined ? letter : `${letter}=${dims[letter]}`));
    throw new RangeError(`${name}: expected [${known.join(", ")}], got ${formatShape(shape)}`);
  }
  Object.assign(dims, bound);
}
