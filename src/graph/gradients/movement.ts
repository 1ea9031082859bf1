// Gradients of ops that move elements: the same elements moved back, summed where one went to several places.

import { isFloat } from "../../tensor/index.ts";
import type { GraphBuilder } from "../builder.ts";
import { addDims, productOfDims } from "../dims.ts";
import type { Value } from "../ops.ts";
import { type GradientRule, type GradientRules, unbroadcast, zerosLike } from "./rule.ts";

const reshape: GradientRule<"reshape"> = (g, { inputs: { x } }, [dy]) =>
  dy === undefined ? {} : { x: g.reshape(dy, x.shape) };

const transpose: GradientRule<"transpose"> = (g, { attributes: { permutation } }, [dy]) =>
  dy === undefined ? {} : { x: g.transpose(dy, inverse(permutation)) };

function inverse(permutation: readonly number[]): number[] {
  const out: number[] = [];
  permutation.forEach((axis, i) => {
    out[axis] = i;
  });
  return out;
}

const broadcast: GradientRule<"broadcast"> = (g, { inputs: { x } }, [dy]) =>
  dy === undefined ? {} : { x: unbroadcast(g, dy, x) };

const concat: GradientRule<"concat"> = (g, { inputs: { values }, attributes: { axis } }, [dy], { needs }) => {
  if (dy === undefined) return {};
  const sizes = values.map((value) => value.shape[axis]!);
  if (sizes.every((size) => typeof size === "number") && values.every(needs)) {
    return { values: g.split(dy, sizes as number[], axis) };
  }
  // Where a part begins may depend on sizes that the run decides.
  let start: Value = g.scalar("i64", 0);
  return {
    values: values.map((value) => {
      const part = needs(value) ? g.dynamicSlice(dy, axis, start, value.shape[axis]!) : undefined;
      start = g.add(start, g.dimension(value, axis));
      return part;
    }),
  };
};

const slice: GradientRule<"slice"> = (g, { inputs: { x }, attributes: { axis, start, end, step } }, [dy]) => {
  if (dy === undefined) return {};
  const size = x.shape[axis]!;
  const count = dy.shape[axis]!;
  if (step === 1 && typeof size === "number" && typeof end === "number") {
    return { x: g.pad(dy, axis, start, size - end) };
  }
  if (step === 1) return { x: g.updateSlice(zerosLike(g, x), dy, axis, g.scalar("i64", start)) };
  const indices = Array.from({ length: count as number }, (_, i) => start + i * step);
  return { x: scatterAlong(g, x, g.numbers("i64", [count as number], indices), dy, axis) };
};

const dynamicSlice: GradientRule<"dynamicSlice"> = (g, { inputs: { x, start }, attributes: { axis } }, [dy]) =>
  dy === undefined ? {} : { x: g.updateSlice(zerosLike(g, x), dy, axis, start) };

const updateSlice: GradientRule<"updateSlice"> = (
  g,
  { inputs: { x, rows, start }, attributes: { axis } },
  [dy],
  { needs },
) => {
  if (dy === undefined) return {};
  return {
    x: needs(x) ? g.updateSlice(dy, zerosLike(g, rows), axis, start) : undefined,
    rows: needs(rows) ? g.dynamicSlice(dy, axis, start, rows.shape[axis]!) : undefined,
  };
};

const split: GradientRule<"split"> = (g, { outputs, attributes: { axis } }, gradients) => {
  if (gradients.every((dy) => dy === undefined)) return {};
  return {
    x: g.concat(
      outputs.map((output, i) => gradients[i] ?? zerosLike(g, output)),
      axis,
    ),
  };
};

const pad: GradientRule<"pad"> = (g, { inputs: { x }, attributes: { axis, before } }, [dy]) =>
  dy === undefined ? {} : { x: g.slice(dy, axis, before, addDims(before, x.shape[axis]!)) };

/** Zeros like x with rows added at indices along an axis; rows have the indices' axes in its place. */
function scatterAlong(g: GraphBuilder, x: Value, indices: Value, rows: Value, axis: number): Value {
  if (axis === 0) return g.scatterAdd(zerosLike(g, x), indices, rows);
  // Index axes to the front: [I.., before.., after..].
  const ranks = { indices: indices.shape.length, x: x.shape.length };
  const range = (from: number, count: number): number[] => Array.from({ length: count }, (_, i) => from + i);
  const after = range(axis + ranks.indices, ranks.x - 1 - axis);
  const front = g.transpose(rows, [...range(axis, ranks.indices), ...range(0, axis), ...after]);
  const order = [axis, ...range(0, axis), ...range(axis + 1, ranks.x - 1 - axis)];
  const zeros = zerosLike(g, { dtype: x.dtype, shape: order.map((i) => x.shape[i]!) });
  return g.transpose(g.scatterAdd(zeros, indices, front), inverse(order));
}

const gather: GradientRule<"gather"> = (g, { inputs: { x, indices }, attributes: { axis } }, [dy]) => {
  if (dy === undefined) return {};
  const [rows, width] = x.shape;
  const isSmallTable = x.shape.length === 2 && axis === 0 && typeof rows === "number" && typeof width === "number";
  if (isSmallTable && rows <= SMALL_TABLE && width >= WIDE_ROW) {
    const columns = g.numbers(
      "i64",
      [1, rows],
      Array.from({ length: rows }, (_, row) => row),
    );
    const chosen = g.cast(g.equal(g.reshape(indices, [-1, 1]), columns), x.dtype);
    return { x: g.matmul(chosen, g.reshape(dy, [-1, width]), { transposeA: true }) };
  }
  return { x: scatterAlong(g, x, indices, dy, axis) };
};

/** Adding rows at indices is one thread's work; for few rows a product with ones and zeros is faster (a vocabulary of
 *  bytes: by half on one core, more on several). */
const SMALL_TABLE = 512;
const WIDE_ROW = 32;

const gatherElements: GradientRule<"gatherElements"> = (g, { inputs: { x, indices }, attributes: { axis } }, [dy]) => {
  if (dy === undefined) return {};
  // Where each element was in x laid out flat.
  const rank = x.shape.length;
  let at: Value | undefined;
  for (let i = 0; i < rank; i++) {
    const own = g.reshape(g.iota(indices, i), [indices.shape[i]!, ...new Array<number>(rank - 1 - i).fill(1)]);
    const coordinate = i === axis ? indices : own;
    at = at === undefined ? coordinate : g.add(g.multiply(at, g.dimension(x, i)), coordinate);
  }
  const flat = zerosLike(g, { dtype: x.dtype, shape: [productOfDims(x.shape)] });
  const count = productOfDims(indices.shape);
  const full = g.reshape(g.broadcast(at!, indices.shape), [count]);
  return { x: g.reshape(g.scatterAdd(flat, full, g.reshape(dy, [count])), x.shape) };
};

const scatterAdd: GradientRule<"scatterAdd"> = (g, { inputs: { rows, indices } }, [dy], { needs }) =>
  dy === undefined ? {} : { x: dy, rows: needs(rows) ? g.gather(dy, indices, 0) : undefined };

const cast: GradientRule<"cast"> = (g, { inputs: { x }, attributes: { dtype } }, [dy]) =>
  dy === undefined || !isFloat(dtype) ? {} : { x: g.cast(dy, x.dtype) };

export const movement: GradientRules<
  | "reshape"
  | "transpose"
  | "broadcast"
  | "concat"
  | "slice"
  | "dynamicSlice"
  | "updateSlice"
  | "split"
  | "pad"
  | "gather"
  | "gatherElements"
  | "scatterAdd"
  | "cast"
> = {
  reshape,
  transpose,
  broadcast,
  concat,
  slice,
  dynamicSlice,
  updateSlice,
  split,
  pad,
  gather,
  gatherElements,
  scatterAdd,
  cast,
};
