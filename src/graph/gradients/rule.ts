// What a gradient rule is, and what rules share. Conventions: `dy` is the gradient of an output, `dx` of an input x;
// where a function has a kink, torch's choice is ours.

import type { GraphBuilder } from "../builder.ts";
import type { Inputs, NodeOf, OpName, Value, ValueType } from "../ops.ts";

export interface GradientOptions {
  /** Attention works its probabilities out again in the backward instead of keeping them: less memory, one product
   *  more. false when absent. */
  readonly recomputeAttention?: boolean;
}

export interface GradientContext extends GradientOptions {
  /** Whether anybody wants the gradient of this input. */
  readonly needs: (input: Value | undefined) => boolean;
}

/** Gives the gradient of each input that has one, by the input's name. Gradients of outputs that nothing reads are
 *  undefined. */
export type GradientRule<O extends OpName> = (
  builder: GraphBuilder,
  node: NodeOf<O>,
  outputGradients: readonly (Value | undefined)[],
  context: GradientContext,
) => Partial<Inputs<O, Value | undefined>>;

/** Rules of some ops. */
export type GradientRules<O extends OpName> = { readonly [K in O]: GradientRule<K> };

/** An op that no gradient passes: its outputs are integers or bools, or constant almost everywhere. */
export interface Constant {
  readonly constant: string;
}
/** An op that has a gradient which is not written. */
export interface Unsupported {
  readonly unsupported: string;
}

/** Sums a gradient over the axes along which an input of this type was stretched. */
export function unbroadcast(g: GraphBuilder, gradient: Value, to: ValueType): Value {
  const lead = gradient.shape.length - to.shape.length;
  const axes = gradient.shape.flatMap((dim, axis) =>
    axis < lead || (to.shape[axis - lead] === 1 && dim !== 1) ? [axis] : [],
  );
  if (axes.length === 0) return gradient;
  return g.reshape(g.sum(gradient, axes, { keepDims: true }), to.shape);
}

export function zerosLike(g: GraphBuilder, { dtype, shape }: ValueType): Value {
  return g.broadcast(g.scalar(dtype, 0), shape);
}

/** How many elements of x share an element of what a reduction over these axes leaves, as a scalar of x's dtype. */
export function countOver(g: GraphBuilder, x: Value, axes: readonly number[]): Value {
  let known = 1;
  let count: Value | undefined;
  for (const axis of axes) {
    const dim = x.shape[axis]!;
    if (typeof dim === "number") {
      known *= dim;
    } else {
      const size = g.cast(g.dimension(x, axis), x.dtype);
      count = count === undefined ? size : g.multiply(count, size);
    }
  }
  return count === undefined ? g.scalar(x.dtype, known) : g.multiply(count, known);
}

/** What a reduction without kept axes leaves, with its axes as ones again. */
export function keepAxes(g: GraphBuilder, reduced: Value, x: Value, axes: readonly number[]): Value {
  return g.reshape(
    reduced,
    x.shape.map((dim, axis) => (axes.includes(axis) ? 1 : dim)),
  );
}
