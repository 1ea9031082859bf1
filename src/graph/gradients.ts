// Reverse mode as a table of rules: from the gradients of a node's outputs to those of its inputs, as new nodes of the
// same graph. Partial: an op without a rule cannot be trained through, and says so.

import type { GraphBuilder } from "./builder.ts";
import { UnsupportedOpError } from "./errors.ts";
import type { Inputs, NodeOf, OpName, Value } from "./ops.ts";

/** Gives the gradient of each input that has one, by the input's name. Gradients of outputs that nothing reads are
 *  undefined. */
export type GradientRule<O extends OpName> = (
  builder: GraphBuilder,
  node: NodeOf<O>,
  outputGradients: readonly (Value | undefined)[],
) => Partial<Inputs<O, Value | undefined>>;

export const gradientRules: { readonly [O in OpName]?: GradientRule<O> } = {};

/** The gradient rule of an op. Throws UnsupportedOpError when it has none. */
export function gradientRule<O extends OpName>(op: O, path = ""): GradientRule<O> {
  const rule = gradientRules[op];
  if (rule === undefined) {
    const where = path === "" ? op : `${path} > ${op}`;
    throw new UnsupportedOpError(
      op,
      `${where}: expected an op with a gradient rule, got ${op}; add one to gradients.ts`,
    );
  }
  return rule as GradientRule<O>;
}
