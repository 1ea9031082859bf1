// Neighbours that ONNX Runtime has one kernel for. Its own optimiser finds them only where it can see shapes, which it
// cannot past MatMulNBits. On the CPU's kernels, in float32:
//
//   a·b + c          Gemm, which begins with c: no pass over the product to add
//   rmsNorm(a + b)   SkipSimplifiedLayerNormalization, which gives the sum as well: the residual, then the norm
//   1/√(mean(x²) + ε) of a norm's own x and ε, as its gradient asks for: the norm's second output

import { fromNumbers, type Tensor } from "../../tensor/index.ts";
import { type Graph, type Node, type NodeOf, nodeInputs, type Value } from "../ops.ts";
import type { Emitter, OnnxTarget } from "./emitter.ts";

/** How a node is lowered in place of its own rule. */
export type FusedLowering = (emit: Emitter, nameOf: (value: Value) => string) => readonly string[];

/** By node; null: nothing is written for it, another node computes it. */
export type Fusions = ReadonlyMap<Node, FusedLowering | null>;

export function findFusions(graph: Graph, target: OnnxTarget): Fusions {
  const out = new Map<Node, FusedLowering | null>();
  if (target === "webgpu") return out;
  const makers = new Map<Value, Node>();
  const constants = new Map(graph.constants.map(({ value, tensor }) => [value, tensor]));
  const uses = new Map<Value, number>();
  const use = (value: Value): void => void uses.set(value, (uses.get(value) ?? 0) + 1);
  for (const node of graph.nodes) {
    for (const value of node.outputs) makers.set(value, node);
    for (const value of nodeInputs(node)) use(value);
  }
  for (const { value } of graph.outputs) use(value);
  for (const update of graph.updates) use(update.kind === "replace" ? update.value : update.rows);

  const norms = new Map<Value, NodeOf<"rmsNorm">[]>();
  for (const node of graph.nodes) {
    if (node.op === "rmsNorm" && node.outputs[0]!.dtype === "f32") {
      norms.set(node.inputs.x, [...(norms.get(node.inputs.x) ?? []), node]);
    }
    const scaled = node.op === "rsqrt" ? rootMeanSquare(node, makers, constants) : undefined;
    const norm =
      scaled && norms.get(scaled.x)?.find(({ attributes }) => Math.fround(attributes.epsilon) === scaled.epsilon);
    if (norm === undefined) continue;
    out.set(norm, (emit, nameOf) => scaledNorm(emit, nameOf, norm).slice(0, 1));
    out.set(node, (emit, nameOf) => scaledNorm(emit, nameOf, norm).slice(1));
  }
  for (const node of graph.nodes) {
    if (node.op !== "rmsNorm" || node.outputs[0]!.dtype !== "f32" || out.has(node)) continue;
    const { x, weight } = node.inputs;
    // The norm is written where the sum stands: its weight must be known there.
    if (weight !== undefined && makers.has(weight)) continue;
    const sum = makers.get(x);
    if (sum?.op !== "add" || out.has(sum)) continue;
    const { a, b } = sum.inputs;
    const isPlain = [a, b].every(({ shape }) => shape.join() === x.shape.join());
    // The kernel takes rows, or a batch of them.
    if (!isPlain || x.shape.length < 2 || x.shape.length > 3) continue;
    const norm = node as NodeOf<"rmsNorm">;
    out.set(sum, (emit, nameOf) => residualNorm(emit, nameOf, norm, a, b).slice(1));
    out.set(norm, (emit, nameOf) => residualNorm(emit, nameOf, norm, a, b).slice(0, 1));
  }
  for (const node of graph.nodes) {
    if (node.op !== "add" || out.has(node)) continue;
    const { a, b } = node.inputs;
    const isProduct = (value: Value): boolean => {
      const maker = makers.get(value);
      const isMatrix = value.shape.length === 2 && value.dtype === "f32";
      return maker?.op === "matmul" && isMatrix && uses.get(value) === 1 && !out.has(maker);
    };
    const product = isProduct(b) ? b : isProduct(a) ? a : undefined;
    if (product === undefined) continue;
    const other = product === b ? a : b;
    if (other.shape.join() !== product.shape.join() && other.shape.join() !== String(product.shape[1])) continue;
    const matmul = makers.get(product) as NodeOf<"matmul">;
    if (matmul.inputs.a.shape.length !== 2 || matmul.inputs.b.shape.length !== 2) continue;
    out.set(matmul, null);
    out.set(node, (emit, nameOf) => {
      const { transposeA, transposeB } = matmul.attributes;
      const inputs = [matmul.inputs.a, matmul.inputs.b, other].map(nameOf);
      return [emit.node("Gemm", inputs, { transA: transposeA ? 1 : 0, transB: transposeB ? 1 : 0 })];
    });
  }
  return out;
}

/** The x and ε (as a float32) of an rsqrt that is 1/√(mean(x²) + ε) over the last axis, which is kept. */
function rootMeanSquare(
  { inputs }: NodeOf<"rsqrt">,
  makers: ReadonlyMap<Value, Node>,
  constants: ReadonlyMap<Value, Tensor>,
): { x: Value; epsilon: number } | undefined {
  const sum = makers.get(inputs.x);
  if (sum?.op !== "add") return undefined;
  const [mean, epsilon] = [makers.get(sum.inputs.a), constants.get(sum.inputs.b)];
  if (mean?.op !== "reduceMean" || epsilon === undefined || epsilon.shape.length > 0) return undefined;
  const square = makers.get(mean.inputs.x);
  if (square?.op !== "multiply" || square.inputs.a !== square.inputs.b) return undefined;
  const { axes, keepDims } = mean.attributes;
  if (!keepDims || axes.length !== 1 || axes[0] !== square.outputs[0]!.shape.length - 1) return undefined;
  return { x: square.inputs.a, epsilon: Number(epsilon.data[0]) };
}

/** The norm and its 1/√(mean(x²) + ε): written once, whoever asks first. */
function scaledNorm(
  emit: Emitter,
  nameOf: (value: Value) => string,
  { inputs: { x, weight }, attributes: { epsilon } }: NodeOf<"rmsNorm">,
): string[] {
  const scale = weight === undefined ? emit.constant(ones(x.shape.at(-1) as number)) : nameOf(weight);
  const attributes = { axis: -1, epsilon: { float: epsilon } };
  return emit.nodes("SimplifiedLayerNormalization", [nameOf(x), scale], attributes, { outputs: 2 });
}

/** The norm and the sum: written once, whoever asks first. */
function residualNorm(
  emit: Emitter,
  nameOf: (value: Value) => string,
  { inputs: { x, weight }, attributes: { epsilon } }: NodeOf<"rmsNorm">,
  a: Value,
  b: Value,
): string[] {
  const width = x.shape.at(-1) as number;
  const scale = weight === undefined ? emit.constant(ones(width)) : nameOf(weight);
  const inputs = [nameOf(a), nameOf(b), scale];
  const outputs = [true, false, false, true];
  const attributes = { epsilon: { float: epsilon } };
  const [norm, , , sum] = emit.nodes("SkipSimplifiedLayerNormalization", inputs, attributes, {
    domain: "com.microsoft",
    outputs,
  });
  return [norm!, sum!];
}

function ones(width: number): ReturnType<typeof fromNumbers> {
  return fromNumbers("f32", [width], new Float64Array(width).fill(1));
}
