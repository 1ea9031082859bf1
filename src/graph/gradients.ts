// Reverse mode: from the gradients of a node's outputs to those of its inputs, as new nodes of the same graph, so that
// forward, backward and update are one program. The table of rules is total over the op list; an op without a rule says
// why. Values may be of any float dtype; gradients have the dtype of what they belong to.

import { isFloat } from "../tensor/index.ts";
import { isBlockAttention } from "./attention-blocks.ts";
import type { GraphBuilder } from "./builder.ts";
import { decomposeAttention, decomposeRotary } from "./decompose.ts";
import { UnsupportedOpError } from "./errors.ts";
import { elementwise } from "./gradients/elementwise.ts";
import { movement } from "./gradients/movement.ts";
import { products } from "./gradients/products.ts";
import { reductions } from "./gradients/reductions.ts";
import {
  type Constant,
  type GradientContext,
  type GradientOptions,
  type GradientRule,
  type Unsupported,
  zerosLike,
} from "./gradients/rule.ts";
import { inputEntries, type Node, nodeInputs, type OpName, type Value } from "./ops.ts";
import { formatType } from "./shapes.ts";

export type { GradientContext, GradientOptions, GradientRule } from "./gradients/rule.ts";

const steps: Constant = { constant: "it is constant almost everywhere" };
const bools: Constant = { constant: "its outputs are true or false" };
const integers: Constant = { constant: "its outputs are integers" };

const rotary: GradientRule<"rotary"> = (g, { inputs, attributes, outputs }, [dy], context) => {
  if (dy === undefined) return {};
  const { x, cos, sin } = inputs;
  if (context.needs(cos) || context.needs(sin)) {
    const build = (): Value[] => [decomposeRotary(g, inputs, attributes)];
    const [ofX, ofCos, ofSin] = through(g, build, outputs, [dy], [x, cos, sin], context);
    return { x: ofX, cos: ofCos, sin: ofSin };
  }
  // A rotation turned back.
  return { x: g.rotary(dy, cos, g.negate(sin), attributes) };
};

const attention: GradientRule<"attention"> = (g, { inputs, attributes, outputs }, gradients, context) => {
  const [dy, ofNewKey, ofNewValue] = gradients;
  const { query, key, value, cos, sin, bias, pastKey, pastValue, sinks } = inputs;
  const onlyOutput = ofNewKey === undefined && ofNewValue === undefined;
  const fixed = !context.needs(cos) && !context.needs(sin);
  if (dy !== undefined && onlyOutput && fixed && isBlockAttention(inputs)) {
    const given = g.apply(
      "attentionGradient",
      { query, key, value, cos, sin, bias, output: outputs[0]!, outputGradient: dy },
      { ...attributes, recompute: context.recomputeAttention ?? false },
    );
    const [ofQuery, ofKey, ofValue] = key === undefined ? [given[0]!] : given;
    return { query: ofQuery, key: ofKey, value: ofValue, bias: bias === undefined ? undefined : given.at(-1) };
  }
  const wanted = [query, key, value, cos, sin, bias, pastKey, pastValue, sinks];
  const build = (): Value[] => {
    const out = decomposeAttention(g, inputs, attributes);
    return [out.output, out.newKey, out.newValue];
  };
  const given = through(g, build, outputs, gradients, wanted, context);
  const [ofQuery, ofKey, ofValue, ofCos, ofSin, ofBias, ofPastKey, ofPastValue, ofSinks] = given;
  return {
    query: ofQuery,
    key: ofKey,
    value: ofValue,
    cos: ofCos,
    sin: ofSin,
    bias: ofBias,
    pastKey: ofPastKey,
    pastValue: ofPastValue,
    sinks: ofSinks,
  };
};

/** Gradients of an op's inputs through its decomposition, which is built anew. */
function through(
  g: GraphBuilder,
  build: () => Value[],
  outputs: readonly Value[],
  gradients: readonly (Value | undefined)[],
  inputs: readonly (Value | undefined)[],
  context: GradientContext,
): (Value | undefined)[] {
  const first = g.nodes.length;
  const results = build();
  const seeds = new Map<Value, Value>();
  outputs.forEach((_, i) => {
    if (gradients[i] !== undefined) addTo(g, seeds, results[i]!, gradients[i]);
  });
  const wanted = inputs.map((input) => (context.needs(input) ? input : undefined));
  const found = reverse(g, g.nodes.slice(first), seeds, wanted, context);
  return wanted.map((input) => (input === undefined ? undefined : found.get(input)));
}

export const gradientRules: { readonly [O in OpName]: GradientRule<O> | Constant | Unsupported } = {
  ...elementwise,
  ...reductions,
  ...movement,
  ...products,
  rotary,
  attention,
  attentionGradient: { unsupported: "second derivatives of attention go through its decomposition, not through it" },

  sign: steps,
  floor: steps,
  equal: bools,
  less: bools,
  lessEqual: bools,
  and: bools,
  or: bools,
  not: bools,
  argMax: integers,
  dimension: integers,
  iota: integers,
};

/** The gradient rule of an op; undefined where no gradient passes. Throws UnsupportedOpError when it has none. */
export function gradientRule<O extends OpName>(op: O, path = ""): GradientRule<O> | undefined {
  const rule: GradientRule<O> | Constant | Unsupported = gradientRules[op];
  if (typeof rule === "function") return rule;
  if ("constant" in rule) return undefined;
  const where = path === "" ? op : `${path} > ${op}`;
  throw new UnsupportedOpError(op, `${where}: expected an op with a gradient rule, got ${op}: ${rule.unsupported}`);
}

/**
 * Gradients of a scalar with respect to values, as new nodes of the same graph.
 *
 * @param output what is differentiated: a float of shape []
 * @param wanted values of this graph that it may depend on: parameters, states, inputs, or outputs of nodes
 * @returns a gradient for each of `wanted`, of its dtype and shape; zeros where the output does not depend on it
 * @throws RangeError when output is not a scalar; TypeError when one of them is not a float; UnsupportedOpError for an
 *   op on the way that has no rule
 * @example
 * ```ts
 * import { referenceBackend } from "longhand/engine";
 * import { gradients, graphBuilder } from "longhand/graph";
 * import { fromNumbers } from "longhand/tensor";
 * const g = graphBuilder("cube");
 * const x = g.input("x", "f64", [3]);
 * const y = g.sum(g.multiply(x, g.multiply(x, x)), 0);
 * g.output("dx", gradients(g, y, [x])[0]);
 * const session = await referenceBackend.load(g.build());
 * const { dx } = await session.run({ x: fromNumbers("f64", [3], [1, 2, -3]) });
 * Array.from(dx.data); // => [3, 12, 27]
 * ```
 */
export function gradients(
  g: GraphBuilder,
  output: Value,
  wanted: readonly Value[],
  options: GradientOptions = {},
): Value[] {
  if (output.shape.length > 0) {
    throw new RangeError(`gradients: expected a scalar to differentiate, got ${formatType(output)}; sum or average it`);
  }
  for (const value of [output, ...wanted]) {
    if (!isFloat(value.dtype))
      throw new TypeError(`gradients: expected floats, got ${value.name}: ${formatType(value)}`);
  }
  const nodes = [...g.nodes];
  return g.scope("gradients", () => {
    const seeds = new Map([[output, g.scalar(output.dtype, 1)]]);
    const found = reverse(g, nodes, seeds, wanted, options);
    return wanted.map((value) => found.get(value) ?? zerosLike(g, value));
  });
}

/** Goes through nodes backwards. `seeds`: gradients of values to begin with. */
function reverse(
  g: GraphBuilder,
  nodes: readonly Node[],
  seeds: ReadonlyMap<Value, Value>,
  wanted: readonly (Value | undefined)[],
  options: GradientOptions,
): Map<Value, Value> {
  // Only what depends on a wanted value carries a gradient.
  const depends = new Set<Value>(wanted.filter((value) => value !== undefined));
  for (const node of nodes) {
    if (!nodeInputs(node).some((input) => depends.has(input))) continue;
    for (const output of node.outputs) if (isFloat(output.dtype)) depends.add(output);
  }
  const context: GradientContext = { ...options, needs: (input) => input !== undefined && depends.has(input) };
  const found = new Map(seeds);
  for (let i = nodes.length - 1; i >= 0; i--) {
    const node = nodes[i]!;
    const given = node.outputs.map((output) => found.get(output));
    if (given.every((gradient) => gradient === undefined)) continue;
    if (!nodeInputs(node).some((input) => depends.has(input))) continue;
    const rule = gradientRule(node.op, node.path) as GradientRule<OpName> | undefined;
    if (rule === undefined) continue;
    const scopes = node.path === "" ? [] : node.path.split(" > ");
    const results = inScopes(g, scopes, () => rule(g, node as never, given, context));
    const byName = results as Readonly<Record<string, Value | readonly (Value | undefined)[] | undefined>>;
    for (const [name, input] of inputEntries(node)) {
      if (!depends.has(input)) continue;
      const [list, at] = name.split(/[[\]]/);
      const gradient = at === undefined ? byName[name] : (byName[list!] as (Value | undefined)[] | undefined)?.[+at];
      if (gradient !== undefined) addTo(g, found, input, gradient as Value);
    }
  }
  return found;
}

function addTo(g: GraphBuilder, sums: Map<Value, Value>, value: Value, gradient: Value): void {
  const known = sums.get(value);
  sums.set(value, known === undefined ? gradient : g.add(known, gradient));
}

function inScopes<T>(g: GraphBuilder, scopes: readonly string[], build: () => T): T {
  const [first, ...rest] = scopes;
  return first === undefined ? build() : g.scope(first, () => inScopes(g, rest, build));
}
