// From a graph to an ONNX program: lowers each node, keeps the names by which a session is fed and fetched, and
// describes weights as bytes inside the model or as external data that a session is given.

import { type Tensor, tensorBytes } from "../../tensor/index.ts";
import { isBlockAttention } from "../attention-blocks.ts";
import { GraphBuilder } from "../builder.ts";
import { type Dim, dimTerms, isDimName } from "../dims.ts";
import {
  type AttentionAttributes,
  type Graph,
  type Inputs,
  mapInputs,
  type Node,
  type NodeOf,
  nodeInputs,
  type OpName,
  type StateUpdate,
  type Value,
} from "../ops.ts";
import { hasFusedAttention } from "./attention.ts";
import type { Emitter, Lowering, NodeOptions, OnnxTarget } from "./emitter.ts";
import { findFusions } from "./fusion.ts";
import { onnxLowering } from "./lowering.ts";
import {
  type ExternalBytes,
  encodeOnnx,
  type OnnxAttribute,
  type OnnxInitializer,
  type OnnxModel,
  type OnnxNode,
  type OnnxValue,
} from "./protobuf.ts";

export interface OnnxOptions {
  readonly target?: OnnxTarget;
  /** The bytes of each parameter, or where a session finds them. */
  readonly weights?: ReadonlyMap<string, Uint8Array | ExternalBytes>;
  /** For a session that gives every output its buffer: attention may write its new rows into the cache that it reads,
   *  and a first output is added that ends the run before results are copied (see engine/onnxruntime/session.ts). */
  readonly ownBuffers?: boolean;
}

/** How a state's update leaves the program. */
export interface OnnxUpdate {
  /** replace: the new value. rows: rows to write, and where. inPlace: the state's own buffer, rows already written. */
  readonly kind: "replace" | "rows" | "inPlace";
  readonly value: string;
  readonly start?: string;
}

/** A lowered graph. Inputs and states are fed under their own names. */
export interface OnnxProgram {
  readonly model: OnnxModel;
  /** The ONNX output of each graph output, by name. */
  readonly outputs: ReadonlyMap<string, string>;
  /** The ONNX outputs of each state's update. */
  readonly updates: ReadonlyMap<string, OnnxUpdate>;
  /** The output that ends a run, where one was asked for. */
  readonly stop?: string;
}

/** The attentions that can write their new keys and values straight into the states that hold their past: the update is
 *  of exactly those rows, and nobody else reads the states or the rows. */
function cacheWriters(graph: Graph, target: OnnxTarget): Set<Node> {
  const uses = new Map<Value, number>();
  const use = (value: Value): void => void uses.set(value, (uses.get(value) ?? 0) + 1);
  for (const node of graph.nodes) for (const value of nodeInputs(node)) use(value);
  for (const { value } of graph.outputs) use(value);
  const updates = new Map<Value, StateUpdate>();
  for (const update of graph.updates) {
    use(update.kind === "replace" ? update.value : update.rows);
    updates.set(update.state, update);
  }
  const out = new Set<Node>();
  for (const node of graph.nodes) {
    if (node.op !== "attention" || !hasFusedAttention(target, node)) continue;
    const { query, key, pastKey, pastValue, pastLength } = node.inputs;
    // The start must be known before the run, to check that the rows fit.
    if (pastKey === undefined || pastValue === undefined || pastLength === undefined) continue;
    if (!graph.inputs.includes(pastLength) || (key !== undefined && key.shape[1] !== query.shape[1])) continue;
    const writes = (past: Value, rows: Value): boolean => {
      const update = updates.get(past);
      const same = update?.kind === "rows" && update.rows === rows && update.axis === 2 && update.start === pastLength;
      return same && uses.get(past) === 1 && uses.get(rows) === 1;
    };
    if (writes(pastKey, node.outputs[1]!) && writes(pastValue, node.outputs[2]!)) out.add(node);
  }
  return out;
}

/** The attentions with a gradient of the same inputs that wants their probabilities to be kept, or works them out again. */
function attentionsWithGradient(graph: Graph, recompute: boolean): Set<Node> {
  const shared = ["query", "key", "value", "cos", "sin", "bias"] as const;
  const gradients = graph.nodes.filter(
    (node) => node.op === "attentionGradient" && node.attributes.recompute === recompute,
  );
  const out = new Set<Node>();
  for (const node of graph.nodes) {
    if (node.op !== "attention" || !isBlockAttention(node.inputs)) continue;
    const same = (other: Node): boolean =>
      other.op === "attentionGradient" &&
      shared.every((name) => node.inputs[name] === other.inputs[name]) &&
      Object.entries(node.attributes).every(
        ([name, value]) => other.attributes[name as keyof AttentionAttributes] === value,
      );
    if (gradients.some(same)) out.add(node);
  }
  return out;
}

/** Lowers a graph. Throws RangeError for a parameter without weights. */
export function lowerToOnnx(graph: Graph, options: OnnxOptions = {}): OnnxProgram {
  const nodes: OnnxNode[] = [];
  const initializers: OnnxInitializer[] = [];
  const names = new Map<Value, string>();
  const known = new Map<string, string[]>();
  let path = "";
  let counter = 0;

  for (const value of [...graph.inputs, ...graph.states]) names.set(value, value.name);
  for (const value of graph.parameters) {
    names.set(value, value.name);
    const data = options.weights?.get(value.name);
    if (data === undefined) throw new RangeError(`onnx: expected weights for the parameter ${value.name}, got none`);
    initializers.push({ name: value.name, dtype: value.dtype, shape: value.shape as number[], data });
  }
  const addConstant = (name: string, tensor: Tensor): void => {
    initializers.push({ name, dtype: tensor.dtype, shape: [...tensor.shape], data: tensorBytes(tensor) });
  };
  for (const { value, tensor } of graph.constants) {
    names.set(value, value.name);
    addConstant(value.name, tensor);
  }

  const target = options.target ?? "cpu";
  const writers = options.ownBuffers === true ? cacheWriters(graph, target) : new Set<Node>();
  const kept = attentionsWithGradient(graph, false);
  const recomputed = attentionsWithGradient(graph, true);
  const fusions = findFusions(graph, target);
  const emit: Emitter = {
    target,
    keepsProbabilities: (node) => kept.has(node),
    recomputesProbabilities: (node) => recomputed.has(node),
    writesCache: (node) => writers.has(node),
    node: (op, inputs, attributes = {}, nodeOptions = {}) => emit.nodes(op, inputs, attributes, nodeOptions)[0]!,
    nodes(op, inputs, attributes, { domain = "", outputs = 1 }: NodeOptions) {
      const key = JSON.stringify([op, domain, inputs, attributes]);
      const same = known.get(key);
      if (same !== undefined) return same;
      const name = `${path}${op}_${counter++}`;
      const wanted = typeof outputs === "number" ? Array.from({ length: outputs }, () => true) : outputs;
      const out = wanted.map((isWanted, i) => (isWanted ? (outputs === 1 ? name : `${name}:${i}`) : ""));
      nodes.push({ op, domain, name, inputs, outputs: out, attributes });
      known.set(key, out);
      return out;
    },
    constant(tensor) {
      const key = `constant ${tensor.dtype} ${tensor.shape} ${Array.from(tensor.data as ArrayLike<unknown>).map((x) => (Object.is(x, -0) ? "-0" : x))}`;
      const same = known.get(key);
      if (same !== undefined) return same[0]!;
      const name = `constant_${counter++}`;
      addConstant(name, tensor);
      known.set(key, [name]);
      return name;
    },
    vector: (values) =>
      emit.constant({ dtype: "i64", shape: [values.length], data: BigInt64Array.from(values, BigInt) }),
    dims(shape) {
      if (shape.every((dim) => typeof dim === "number")) return emit.vector(shape as number[]);
      const parts: string[] = [];
      let fixed: number[] = [];
      const flush = (): void => {
        if (fixed.length > 0) parts.push(emit.vector(fixed));
        fixed = [];
      };
      for (const dim of shape) {
        if (typeof dim === "number") fixed.push(dim);
        else {
          flush();
          parts.push(sizeOf(dim));
        }
      }
      flush();
      return parts.length === 1 ? parts[0]! : emit.node("Concat", parts, { axis: 0 });
    },
    inline(values, build) {
      const inner = new GraphBuilder("inline");
      const inputs = values.map((value, i) => inner.input(`inline${i}`, value.dtype, value.shape));
      const results = build(inner, inputs);
      results.forEach((value, i) => void inner.output(`result${i}`, value));
      const part = inner.build({ boundElsewhere: true });
      part.inputs.forEach((value, i) => void names.set(value, nameOf(values[i]!)));
      for (const { value, tensor } of part.constants) names.set(value, emit.constant(tensor));
      for (const node of part.nodes) lower(node);
      return results.map(nameOf);
    },
  };

  /** A symbolic size as a vector of one, read off the inputs that have it as an axis. */
  function sizeOf(dim: Dim): string {
    if (typeof dim === "number") return emit.vector([dim]);
    if (isDimName(dim)) {
      for (const value of [...graph.inputs, ...graph.states]) {
        const axis = value.shape.indexOf(dim);
        if (axis >= 0) return emit.node("Shape", [value.name], { start: axis, end: axis + 1 });
      }
      throw new RangeError(`onnx: expected an input or state with an axis ${JSON.stringify(dim)}, got none`);
    }
    let sum: string | undefined;
    for (const [coefficient, factors] of dimTerms(dim)) {
      let product = coefficient === 1 && factors.length > 0 ? undefined : emit.vector([coefficient]);
      for (const factor of factors) {
        const size = sizeOf(factor);
        product = product === undefined ? size : emit.node("Mul", [product, size]);
      }
      sum = sum === undefined ? product : emit.node("Add", [sum, product!]);
    }
    return sum ?? emit.vector([0]);
  }

  function nameOf(value: Value): string {
    const name = names.get(value);
    if (name === undefined) throw new Error(`internal: ${value.name} was not lowered before its use`);
    return name;
  }

  function lower(node: Node): void {
    const outer = path;
    if (node.path !== "") path = `${node.path.replaceAll(" > ", "/")}/`;
    const fused = fusions.get(node);
    if (fused === undefined) lowerOne(node.op, node as NodeOf<typeof node.op>);
    else fused?.(emit, nameOf).forEach((name, i) => void names.set(node.outputs[i]!, name));
    path = outer;
  }

  function lowerOne<O extends OpName>(op: O, node: NodeOf<O>): void {
    const inputs = mapInputs(op, node.inputs as Inputs<O, Value>, nameOf);
    const got = (onnxLowering[op] as unknown as Lowering<O>)(emit, inputs, node);
    const list = typeof got === "string" ? [got] : got;
    node.outputs.forEach((value, i) => void names.set(value, list[i]!));
  }

  for (const node of graph.nodes) lower(node);

  // An ONNX output must come from a node, and have a name that no input has.
  const produced = new Map<string, OnnxValue>();
  const passedThrough = new Set([...graph.inputs, ...graph.states].map((value) => value.name));
  const stored = new Set(initializers.map((initializer) => initializer.name));
  const fetch = (value: Value): string => {
    let name = nameOf(value);
    if (passedThrough.has(name) || stored.has(name)) name = emit.node("Identity", [name]);
    if (!produced.has(name)) produced.set(name, { name, dtype: value.dtype, shape: value.shape });
    return name;
  };
  const outputs = new Map(graph.outputs.map(({ name, value }) => [name, fetch(value)]));
  const updates = new Map<string, OnnxUpdate>();
  const written = new Set([...writers].flatMap((node) => node.outputs.slice(1)));
  for (const update of graph.updates) {
    if (update.kind === "replace") {
      updates.set(update.state.name, { kind: "replace", value: fetch(update.value) });
    } else if (written.has(update.rows)) {
      const value = nameOf(update.rows);
      produced.set(value, { name: value, dtype: update.state.dtype, shape: update.state.shape });
      updates.set(update.state.name, { kind: "inPlace", value });
    } else {
      updates.set(update.state.name, { kind: "rows", value: fetch(update.rows), start: fetch(update.start) });
    }
  }
  const stop = options.ownBuffers === true ? emit.node("SequenceConstruct", [emit.vector([0])]) : undefined;
  // Lowering may prepare what it then does not use.
  const needed = new Set([...produced.keys(), ...(stop === undefined ? [] : [stop])]);
  const used = nodes.reverse().filter((node) => {
    if (!node.outputs.some((output) => output !== "" && needed.has(output))) return false;
    for (const input of node.inputs) needed.add(input);
    return true;
  });
  const model: OnnxModel = {
    name: graph.name,
    opsets: { "": 23, "com.microsoft": 1 },
    irVersion: 11,
    inputs: [...graph.inputs, ...graph.states].map(({ name, dtype, shape }) => ({ name, dtype, shape })),
    outputs: [
      ...(stop === undefined ? [] : [{ name: stop, dtype: "i64", shape: [1], sequence: true } as const]),
      ...produced.values(),
    ],
    initializers: initializers.filter(({ name }) => needed.has(name)),
    nodes: used.reverse(),
  };
  return { model, outputs, updates, ...(stop === undefined ? {} : { stop }) };
}

/** The bytes of a graph as an ONNX file. Weights that are given as bytes are inside, external ones are referred to. */
export function toOnnx(graph: Graph, options: OnnxOptions = {}): Uint8Array {
  return encodeOnnx(lowerToOnnx(graph, options).model);
}

/** An ONNX program as text, one node a line, for reading and for snapshots. */
export function printOnnx({ model }: OnnxProgram): string {
  const value = ({ name, dtype, shape }: OnnxValue): string => `${name}: ${dtype}[${shape.join(", ")}]`;
  const attribute = (x: OnnxAttribute): string => {
    if (typeof x === "number" || typeof x === "string") return String(x);
    if ("float" in x) return `${x.float}f`;
    return "tensor" in x ? "tensor" : `[${x.join(", ")}]`;
  };
  const lines = [`onnx ${model.name}`];
  for (const input of model.inputs) lines.push(`  input ${value(input)}`);
  for (const node of model.nodes) {
    const attributes = Object.entries(node.attributes).map(([key, x]) => `${key}=${attribute(x)}`);
    const domain = node.domain === "" ? "" : `${node.domain}.`;
    const braces = attributes.length > 0 ? ` {${attributes.join(" ")}}` : "";
    lines.push(`  ${node.outputs.join(", ")} = ${domain}${node.op}(${node.inputs.join(", ")})${braces}`);
  }
  for (const output of model.outputs) lines.push(`  output ${value(output)}`);
  return `${lines.join("\n")}\n`;
}
