// Gradients of arithmetic, elementwise functions and selection.

import type { GraphBuilder } from "../builder.ts";
import type { Value } from "../ops.ts";
import { type GradientContext, type GradientRules, unbroadcast } from "./rule.ts";

type Unary = (
  g: GraphBuilder,
  node: { readonly inputs: { readonly x: Value }; readonly outputs: readonly Value[] },
  outputGradients: readonly (Value | undefined)[],
) => { readonly x?: Value };

/** A rule of one input from dy, x and y. */
function unary(derive: (g: GraphBuilder, dy: Value, x: Value, y: Value) => Value): Unary {
  return (g, { inputs: { x }, outputs: [y] }, [dy]) => (dy === undefined ? {} : { x: derive(g, dy, x, y!) });
}

type Binary = (
  g: GraphBuilder,
  node: { readonly inputs: { readonly a: Value; readonly b: Value }; readonly outputs: readonly Value[] },
  outputGradients: readonly (Value | undefined)[],
  context: GradientContext,
) => { readonly a?: Value | undefined; readonly b?: Value | undefined };

type Side = (g: GraphBuilder, dy: Value, a: Value, b: Value, y: Value) => Value;

/** A rule of two inputs that broadcast. Each side is made only where it is wanted. */
function binary(ofA: Side, ofB: Side): Binary {
  return (g, { inputs: { a, b }, outputs: [y] }, [dy], { needs }) => {
    if (dy === undefined) return {};
    return {
      a: needs(a) ? unbroadcast(g, ofA(g, dy, a, b, y!), a) : undefined,
      b: needs(b) ? unbroadcast(g, ofB(g, dy, a, b, y!), b) : undefined,
    };
  };
}

/** Equal elements share the gradient. */
function extreme(chosen: (g: GraphBuilder, x: Value, other: Value) => Value): Binary {
  const part = (g: GraphBuilder, dy: Value, x: Value, other: Value): Value =>
    g.where(g.equal(x, other), g.multiply(dy, 0.5), g.where(chosen(g, x, other), dy, 0));
  return binary(
    (g, dy, a, b) => part(g, dy, a, b),
    (g, dy, a, b) => part(g, dy, b, a),
  );
}

const TWO_OVER_ROOT_PI = 2 / Math.sqrt(Math.PI);

export const elementwise: GradientRules<
  | "add"
  | "subtract"
  | "multiply"
  | "divide"
  | "power"
  | "minimum"
  | "maximum"
  | "negate"
  | "absolute"
  | "exp"
  | "log"
  | "sqrt"
  | "rsqrt"
  | "reciprocal"
  | "sin"
  | "cos"
  | "tanh"
  | "erf"
  | "relu"
  | "sigmoid"
  | "silu"
  | "softplus"
  | "gelu"
  | "where"
> = {
  add: binary(
    (_, dy) => dy,
    (_, dy) => dy,
  ),
  subtract: binary(
    (_, dy) => dy,
    (g, dy) => g.negate(dy),
  ),
  multiply: binary(
    (g, dy, _, b) => g.multiply(dy, b),
    (g, dy, a) => g.multiply(dy, a),
  ),
  divide: binary(
    (g, dy, _, b) => g.divide(dy, b),
    (g, dy, _, b, y) => g.negate(g.divide(g.multiply(dy, y), b)),
  ),
  // d a^b = b · a^(b−1) da + a^b · ln a db; 0 · ln 0 is 0.
  power: binary(
    (g, dy, a, b) => {
      const slope = g.multiply(b, g.power(a, g.subtract(b, 1)));
      return g.multiply(dy, g.where(g.equal(b, 0), 0, slope));
    },
    (g, dy, a, b, y) => {
      const vanishes = g.and(g.equal(a, 0), g.lessEqual(g.scalar(b.dtype, 0), b));
      return g.multiply(dy, g.where(vanishes, 0, g.multiply(y, g.log(a))));
    },
  ),
  minimum: extreme((g, x, other) => g.less(x, other)),
  maximum: extreme((g, x, other) => g.less(other, x)),

  negate: unary((g, dy) => g.negate(dy)),
  absolute: unary((g, dy, x) => g.multiply(dy, g.sign(x))),
  exp: unary((g, dy, _, y) => g.multiply(dy, y)),
  log: unary((g, dy, x) => g.divide(dy, x)),
  sqrt: unary((g, dy, _, y) => g.divide(g.multiply(dy, 0.5), y)),
  // −½ x^(−3/2)
  rsqrt: unary((g, dy, _, y) => g.multiply(g.multiply(dy, -0.5), g.multiply(y, g.multiply(y, y)))),
  reciprocal: unary((g, dy, _, y) => g.negate(g.multiply(dy, g.multiply(y, y)))),
  sin: unary((g, dy, x) => g.multiply(dy, g.cos(x))),
  cos: unary((g, dy, x) => g.negate(g.multiply(dy, g.sin(x)))),
  tanh: unary((g, dy, _, y) => g.multiply(dy, g.subtract(1, g.multiply(y, y)))),
  erf: unary((g, dy, x) => g.multiply(dy, g.multiply(g.exp(g.negate(g.multiply(x, x))), TWO_OVER_ROOT_PI))),
  relu: unary((g, dy, x) => g.where(g.less(g.scalar(x.dtype, 0), x), dy, 0)),
  sigmoid: unary((g, dy, _, y) => g.multiply(dy, g.multiply(y, g.subtract(1, y)))),
  // With s = sigmoid(x) and y = x·s: s + y·(1 − s), as y + s·(1 − y).
  silu: unary((g, dy, x, y) => g.multiply(dy, g.add(y, g.multiply(g.sigmoid(x), g.subtract(1, y))))),
  softplus: unary((g, dy, x) => g.multiply(dy, g.sigmoid(x))),

  gelu: (g, { inputs: { x }, attributes: { approximate } }, [dy]) => {
    if (dy === undefined) return {};
    if (approximate === "none") {
      // Φ(x) + x·φ(x)
      const normal = g.multiply(g.add(g.erf(g.multiply(x, Math.SQRT1_2)), 1), 0.5);
      const exponent = g.subtract(g.multiply(g.multiply(x, x), -0.5), 0.5 * Math.log(2 * Math.PI));
      return { x: g.multiply(dy, g.add(normal, g.multiply(x, g.exp(exponent)))) };
    }
    // With u = √(2/π)·(x + 0.044715·x³), t = tanh u: ½(1 + t) + ½·x·(1 − t²)·u′.
    const root = Math.sqrt(2 / Math.PI);
    const square = g.multiply(x, x);
    const t = g.tanh(g.multiply(x, g.add(g.multiply(square, root * 0.044715), root)));
    const slope = g.multiply(x, g.add(g.multiply(square, 3 * root * 0.044715), root));
    const curve = g.multiply(g.subtract(1, g.multiply(t, t)), slope);
    return { x: g.multiply(dy, g.multiply(g.add(g.add(t, 1), curve), 0.5)) };
  },

  where: (g, { inputs: { condition, a, b } }, [dy], { needs }) => {
    if (dy === undefined) return {};
    return {
      a: needs(a) ? unbroadcast(g, g.where(condition, dy, 0), a) : undefined,
      b: needs(b) ? unbroadcast(g, g.where(condition, 0, dy), b) : undefined,
    };
  },
};
