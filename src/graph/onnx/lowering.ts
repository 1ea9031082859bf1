// What each op becomes in ONNX: opset 23 and com.microsoft version 1, as ONNX Runtime 1.30 runs them. Total over the op
// list. Where a fused kernel has limits, they stand beside the choice; the fallback is a decomposition.

import { fromNumbers, isFloat, scalar, type Tensor } from "../../tensor/index.ts";
import { blockAttention, blockAttentionGradient } from "../attention-blocks.ts";
import type { GraphBuilder } from "../builder.ts";
import { decomposeAttention } from "../decompose.ts";
import { type Dim, productOfDims } from "../dims.ts";
import type { BlockFormat, Inputs, NodeOf, OpName, Value } from "../ops.ts";
import { type OnnxAttribute, onnxTypes } from "./protobuf.ts";

/** What the program will run on. WASM runs the CPU's kernels. */
export type OnnxTarget = "cpu" | "wasm" | "webgpu";

export interface NodeOptions {
  readonly domain?: "" | "com.microsoft";
  /** How many outputs, or which ones are wanted; 1 when absent. */
  readonly outputs?: number | readonly boolean[];
}

/** Writes ONNX nodes. Equal nodes are written once, so that what layers share (lengths, masks) is computed once. */
export interface Emitter {
  readonly target: OnnxTarget;
  /** A node with one output. */
  node(
    op: string,
    inputs: readonly string[],
    attributes?: Readonly<Record<string, OnnxAttribute>>,
    options?: NodeOptions,
  ): string;
  /** A node with several outputs. */
  nodes(
    op: string,
    inputs: readonly string[],
    attributes: Readonly<Record<string, OnnxAttribute>>,
    options: NodeOptions,
  ): string[];
  constant(tensor: Tensor): string;
  /** An i64 vector of fixed numbers. */
  vector(values: readonly number[]): string;
  /** An i64 vector of sizes, computed in the run where they are symbolic. */
  dims(shape: readonly Dim[]): string;
  /** Whether an attention writes its cache itself: its new keys and values are then the whole buffers. */
  writesCache(node: NodeOf<"attention">): boolean;
  /** Whether a gradient of this attention wants its probabilities to be kept: both are then made from the same nodes. */
  keepsProbabilities(node: NodeOf<"attention">): boolean;
  /** Builds ops in a graph of its own over these values and lowers them in place. */
  inline(inputs: readonly Value[], build: (g: GraphBuilder, inputs: readonly Value[]) => readonly Value[]): string[];
}

export type Lowering<O extends OpName> = (
  emit: Emitter,
  inputs: Inputs<O, string>,
  node: NodeOf<O>,
) => string | readonly string[];

const microsoft: NodeOptions = { domain: "com.microsoft" };

/** Past every axis: what a Slice to the end says. */
const END = Number.MAX_SAFE_INTEGER;

function binary(op: string): (emit: Emitter, inputs: { a: string; b: string }) => string {
  return (emit, { a, b }) => emit.node(op, [a, b]);
}

function unary(op: string): (emit: Emitter, inputs: { x: string }) => string {
  return (emit, { x }) => emit.node(op, [x]);
}

function reduction(
  op: string,
): (
  emit: Emitter,
  inputs: { x: string },
  node: { attributes: { axes: readonly number[]; keepDims: boolean } },
) => string {
  return (emit, { x }, { attributes }) =>
    emit.node(op, [x, emit.vector(attributes.axes)], { keepdims: attributes.keepDims ? 1 : 0 });
}

/** A scalar i64 as a vector of one. */
function asVector(emit: Emitter, name: string): string {
  return emit.node("Reshape", [name, emit.vector([1])]);
}

/** Element counts of an axis as a scalar i64. */
function axisSize(emit: Emitter, name: string, axis: number): string {
  return emit.node("Shape", [name], { start: axis, end: axis + 1 });
}

function sliceAxis(emit: Emitter, x: string, axis: number, start: string, end: string): string {
  return emit.node("Slice", [x, start, end, emit.vector([axis])]);
}

/** Outputs of one Split on WebGPU: each is a storage buffer of the shader beside its input, and a device may have no more
 *  than 8. */
const GPU_PARTS = 7;

function splitAxis(emit: Emitter, x: string, axis: number, sizes: readonly number[]): string[] {
  if (emit.target !== "webgpu" || sizes.length <= GPU_PARTS) {
    return emit.nodes("Split", [x, emit.vector(sizes)], { axis }, { outputs: sizes.length });
  }
  const each = Math.ceil(sizes.length / GPU_PARTS);
  const groups = Array.from({ length: Math.ceil(sizes.length / each) }, (_, i) =>
    sizes.slice(i * each, (i + 1) * each),
  );
  const totals = groups.map((group) => group.reduce((sum, size) => sum + size, 0));
  return splitAxis(emit, x, axis, totals).flatMap((part, i) =>
    groups[i]!.length === 1 ? [part] : splitAxis(emit, part, axis, groups[i]!),
  );
}

/** The target of a Reshape: 0 keeps an axis, one −1 is worked out, and only what is left is computed in the run. */
function reshapeTarget(emit: Emitter, from: readonly Dim[], to: readonly Dim[]): string {
  if (to.some((dim) => dim === 0)) return emit.dims(to);
  const unknown = to.filter((dim, axis) => typeof dim === "string" && dim !== from[axis]).length;
  if (unknown > 1) return emit.dims(to);
  return emit.vector(to.map((dim, axis) => (typeof dim === "number" ? dim : dim === from[axis] ? 0 : -1)));
}

/** Zero points that MatMulNBits takes when there are none: 2^(bits − 1). */
function implicitZero({ bits }: BlockFormat): number {
  return 2 ** (bits - 1);
}

/** log Σ exp along the last axis, kept. On WebGPU LogSoftmax has no kernel, so that all logits would travel to the CPU,
 *  and kernels that reduce refuse to have no rows: where their number is not known there is one more, cut off after. */
function logSumExpOnGpu(emit: Emitter, x: string, shape: readonly Dim[]): string {
  const last = shape.length - 1;
  const width = shape[last]!;
  const mayBeEmpty = typeof width === "number" && shape.some((dim) => typeof dim !== "number" || dim === 0);
  let rows = x;
  if (mayBeEmpty) {
    const one = emit.constant(fromNumbers("f32", [1, width], new Float64Array(width)));
    rows = emit.node("Concat", [emit.node("Reshape", [x, emit.vector([-1, width])]), one], { axis: 0 });
  }
  const axes = emit.vector([-1]);
  const most = emit.node("ReduceMax", [rows, axes], { keepdims: 1 });
  // A row of nothing but −∞ stays −∞.
  const none = emit.node("Equal", [most, emit.constant(scalar("f32", Number.NEGATIVE_INFINITY))]);
  const sum = emit.node("ReduceSum", [emit.node("Exp", [emit.node("Sub", [rows, most])]), axes], { keepdims: 1 });
  const all = emit.node("Where", [none, most, emit.node("Add", [most, emit.node("Log", [sum])])]);
  if (!mayBeEmpty) return all;
  const real = sliceAxis(emit, all, 0, emit.vector([0]), emit.vector([-1]));
  return emit.node("Reshape", [real, emit.dims([...shape.slice(0, -1), 1])]);
}

/** Blocks of u8 as float elements [.., nBlocks, blockSize]. */
function unpack(emit: Emitter, blocks: string, bits: 4 | 8, shape: readonly Dim[], float: number): string {
  if (bits === 8) return emit.node("Cast", [blocks], { to: float });
  const low = emit.node("BitwiseAnd", [blocks, emit.constant(scalar("u8", 15))]);
  const high = emit.node("BitShift", [blocks, emit.constant(scalar("u8", 4))], { direction: "RIGHT" });
  const last = emit.vector([-1]);
  const lanes = [low, high].map((lane) => emit.node("Unsqueeze", [emit.node("Cast", [lane], { to: float }), last]));
  // The earlier element is in the low nibble: [.., bytes, 2] read in order.
  const pairs = emit.node("Concat", lanes, { axis: -1 });
  const flat: Dim[] = [...shape.slice(0, -1), 2 * (shape.at(-1) as number)];
  return emit.node("Reshape", [pairs, reshapeTarget(emit, shape, flat)]);
}

function rotaryNode(
  emit: Emitter,
  x: string,
  cos: string,
  sin: string,
  batch: Dim,
  options: { numHeads: number; layout: "half" | "interleaved"; pairs: number; headDim: number },
): string {
  // The standard op wants a table for each batch row, [B, T, P].
  const rows = (table: string): string => {
    const one = emit.node("Unsqueeze", [table, emit.vector([0])]);
    return batch === 1 ? one : emit.node("Expand", [one, emit.dims([batch, 1, 1])]);
  };
  return emit.node("RotaryEmbedding", [x, rows(cos), rows(sin)], {
    num_heads: options.numHeads,
    interleaved: options.layout === "interleaved" ? 1 : 0,
    rotary_embedding_dim: 2 * options.pairs === options.headDim ? 0 : 2 * options.pairs,
  });
}

export const onnxLowering: { readonly [O in OpName]: Lowering<O> } = {
  add: binary("Add"),
  subtract: binary("Sub"),
  multiply: binary("Mul"),
  divide: binary("Div"),
  power: binary("Pow"),
  minimum: binary("Min"),
  maximum: binary("Max"),

  negate: unary("Neg"),
  absolute: unary("Abs"),
  sign: unary("Sign"),
  floor: unary("Floor"),
  exp: unary("Exp"),
  log: unary("Log"),
  sqrt: unary("Sqrt"),
  rsqrt: (emit, { x }) => emit.node("Reciprocal", [emit.node("Sqrt", [x])]),
  reciprocal: unary("Reciprocal"),
  sin: unary("Sin"),
  cos: unary("Cos"),
  tanh: unary("Tanh"),
  erf: unary("Erf"),
  relu: unary("Relu"),
  sigmoid: unary("Sigmoid"),
  // One kernel, x · sigmoid(alpha · x); its default alpha is 1.702.
  silu: (emit, { x }, { outputs: [out] }) =>
    out!.dtype === "f32"
      ? emit.node("QuickGelu", [x], { alpha: { float: 1 } }, microsoft)
      : emit.node("Mul", [x, emit.node("Sigmoid", [x])]),
  softplus: unary("Softplus"),
  gelu: (emit, { x }, { attributes }) => emit.node("Gelu", [x], { approximate: attributes.approximate }),

  equal: binary("Equal"),
  less: binary("Less"),
  lessEqual: binary("LessOrEqual"),
  and: binary("And"),
  or: binary("Or"),
  not: unary("Not"),
  where: (emit, { condition, a, b }) => emit.node("Where", [condition, a, b]),

  reduceSum: reduction("ReduceSum"),
  reduceMean: reduction("ReduceMean"),
  reduceMax: reduction("ReduceMax"),
  logSumExp: (emit, { x }, { inputs, attributes: { axes, keepDims } }) => {
    const keepdims = keepDims ? 1 : 0;
    const last = inputs.x.shape.length - 1;
    if (axes.length > 1 || axes[0] !== last || inputs.x.dtype !== "f32") {
      return emit.node("ReduceLogSumExp", [x, emit.vector(axes)], { keepdims });
    }
    if (emit.target === "webgpu") {
      const kept = logSumExpOnGpu(emit, x, inputs.x.shape);
      return keepDims ? kept : emit.node("Squeeze", [kept, emit.vector([-1])]);
    }
    // The softmax of the largest element is e^(max − logSumExp), at least 1/n, so its logarithm loses nothing; and
    // Softmax is vectorised, ReduceLogSumExp is not (three times the time). A row of nothing but −∞ stays −∞.
    const most = emit.node("ReduceMax", [x, emit.vector(axes)], { keepdims });
    const share = emit.node("ReduceMax", [emit.node("Softmax", [x], { axis: last }), emit.vector(axes)], { keepdims });
    const none = emit.node("Equal", [most, emit.constant(scalar("f32", Number.NEGATIVE_INFINITY))]);
    return emit.node("Where", [none, most, emit.node("Sub", [most, emit.node("Log", [share])])]);
  },
  argMax: (emit, { x }, { attributes }) =>
    emit.node("ArgMax", [x], { axis: attributes.axis, keepdims: attributes.keepDims ? 1 : 0 }),
  cumulativeSum: (emit, { x }, { attributes }) =>
    emit.node("CumSum", [x, emit.constant(scalar("i64", attributes.axis))], {
      exclusive: attributes.exclusive ? 1 : 0,
      reverse: attributes.reverse ? 1 : 0,
    }),

  reshape: (emit, { x }, { inputs, attributes }) => {
    const target = reshapeTarget(emit, inputs.x.shape, attributes.shape);
    return emit.node("Reshape", [x, target], { allowzero: attributes.shape.includes(0) ? 1 : 0 });
  },
  transpose: (emit, { x }, { attributes }) => emit.node("Transpose", [x], { perm: attributes.permutation }),
  broadcast: (emit, { x }, { attributes }) => emit.node("Expand", [x, emit.dims(attributes.shape)]),
  concat: (emit, { values }, { attributes }) => emit.node("Concat", values, { axis: attributes.axis }),
  slice: (emit, { x }, { inputs, attributes: { axis, start, end, step } }) => {
    const to = end === inputs.x.shape[axis] ? emit.vector([END]) : emit.dims([end]);
    return emit.node("Slice", [x, emit.vector([start]), to, emit.vector([axis]), emit.vector([step])]);
  },
  dynamicSlice: (emit, { x, start }, { attributes: { axis, size } }) => {
    const from = asVector(emit, start);
    return sliceAxis(emit, x, axis, from, emit.node("Add", [from, emit.dims([size])]));
  },
  updateSlice: (emit, { x, rows, start }, { attributes: { axis } }) => {
    const from = asVector(emit, start);
    const to = emit.node("Add", [from, axisSize(emit, rows, axis)]);
    const before = sliceAxis(emit, x, axis, emit.vector([0]), from);
    return emit.node("Concat", [before, rows, sliceAxis(emit, x, axis, to, emit.vector([END]))], { axis });
  },
  split: (emit, { x }, { attributes: { axis, sizes } }) => splitAxis(emit, x, axis, sizes),
  pad: (emit, { x }, { outputs: [out], attributes: { axis, before, after, value } }) =>
    emit.node("Pad", [
      x,
      emit.vector([before, after]),
      emit.constant(fromNumbers(out!.dtype, [], [value])),
      emit.vector([axis]),
    ]),
  gather: (emit, { x, indices }, { attributes }) => emit.node("Gather", [x, indices], { axis: attributes.axis }),
  gatherElements: (emit, { x, indices }, { attributes }) =>
    emit.node("GatherElements", [x, indices], { axis: attributes.axis }),
  // ScatterElements goes through its updates in order; ScatterND adds them from several threads at once, and loses some
  // where an index comes twice (onnxruntime-node 1.30.0: errors of 0.3, other ones in each run).
  scatterAdd: (emit, { x, indices, rows }, { inputs }) => {
    const inner = inputs.x.shape.slice(1);
    const flat = emit.node("Reshape", [indices, emit.vector([-1, ...inner.map(() => 1)])]);
    const updates = emit.node("Reshape", [rows, emit.dims([productOfDims(inputs.indices.shape), ...inner])]);
    const each = inner.length === 0 ? flat : emit.node("Expand", [flat, emit.node("Shape", [updates])]);
    return emit.node("ScatterElements", [x, each, updates], { axis: 0, reduction: "add" });
  },
  dimension: (emit, { x }, { attributes: { axis } }) =>
    emit.node("Squeeze", [axisSize(emit, x, axis), emit.vector([0])]),
  iota: (emit, { x }, { attributes: { axis } }) => {
    const size = emit.node("Squeeze", [axisSize(emit, x, axis), emit.vector([0])]);
    return emit.node("Range", [emit.constant(scalar("i64", 0)), size, emit.constant(scalar("i64", 1))]);
  },

  cast: (emit, { x }, { attributes }) => emit.node("Cast", [x], { to: onnxTypes[attributes.dtype] }),

  matmul: (emit, { a, b }, { inputs, attributes: { transposeA, transposeB } }) => {
    if (!transposeA && !transposeB) return emit.node("MatMul", [a, b]);
    // Transposes inside the kernel, so that a weight stored [out, in] is packed as it is and never copied. float32 on
    // the CPU alone.
    if (inputs.a.dtype === "f32" && emit.target !== "webgpu") {
      const turned = transposeA && !transposeB ? turnedProduct(emit, { a, b }, inputs) : undefined;
      if (turned !== undefined) return turned;
      const flags = { transA: transposeA ? 1 : 0, transB: transposeB ? 1 : 0 };
      return emit.node("FusedMatMul", [a, b], flags, microsoft);
    }
    const flip = (x: string, rank: number): string => {
      const perm = Array.from({ length: rank }, (_, axis) => axis);
      [perm[rank - 1], perm[rank - 2]] = [rank - 2, rank - 1];
      return emit.node("Transpose", [x], { perm });
    };
    return emit.node("MatMul", [
      transposeA ? flip(a, inputs.a.shape.length) : a,
      transposeB ? flip(b, inputs.b.shape.length) : b,
    ]);
  },
  quantizedMatmul: (emit, { x, blocks, scales, zeroPoints }, { inputs, attributes }) => {
    const [rows, numBlocks] = inputs.blocks.shape as [number, number];
    return emit.node(
      "MatMulNBits",
      zeroPoints === undefined ? [x, blocks, scales] : [x, blocks, scales, zeroPoints],
      {
        K: numBlocks * attributes.blockSize,
        N: rows,
        bits: attributes.bits,
        block_size: attributes.blockSize,
        accuracy_level: attributes.accuracyLevel,
      },
      microsoft,
    );
  },
  dequantize: (emit, { blocks, scales, zeroPoints }, { inputs, outputs: [out], attributes }) => {
    const float = onnxTypes[out!.dtype];
    const shape = inputs.blocks.shape;
    const last = emit.vector([-1]);
    const elements = unpack(emit, blocks, attributes.bits, shape, float);
    let zero: string;
    if (zeroPoints === undefined) {
      zero = emit.constant(scalar(out!.dtype, implicitZero(attributes)));
    } else if (isFloat(inputs.zeroPoints!.dtype)) {
      zero = emit.node("Unsqueeze", [zeroPoints, last]);
    } else {
      const packed = unpack(emit, zeroPoints, attributes.bits, inputs.zeroPoints!.shape, float);
      // An odd count of blocks leaves a nibble over.
      const used = sliceAxis(emit, packed, shape.length - 2, emit.vector([0]), emit.dims([shape.at(-2)!]));
      zero = emit.node("Unsqueeze", [used, last]);
    }
    const centred = emit.node("Sub", [elements, zero]);
    const scaled = emit.node("Mul", [centred, emit.node("Unsqueeze", [scales, last])]);
    const grouped = [...shape.slice(0, -1), attributes.blockSize];
    return emit.node("Reshape", [scaled, reshapeTarget(emit, grouped, out!.shape)]);
  },

  layerNorm: (emit, { x, weight, bias }, { attributes }) =>
    emit.node("LayerNormalization", bias === undefined ? [x, weight] : [x, weight, bias], {
      axis: -1,
      epsilon: { float: attributes.epsilon },
    }),
  // ONNX Runtime's own name for it: older than RMSNormalization (opset 23), on every device, and fused with the
  // residual sum before it.
  rmsNorm: (emit, { x, weight }, { inputs, attributes }) => {
    let scale = weight;
    if (scale === undefined) {
      const { dtype, shape } = inputs.x;
      const width = shape.at(-1) as number;
      scale = emit.constant(fromNumbers(dtype, [width], new Float64Array(width).fill(1)));
    }
    return emit.node("SimplifiedLayerNormalization", [x, scale], {
      axis: -1,
      epsilon: { float: attributes.epsilon },
    });
  },
  softmax: (emit, { x }, { attributes }) => emit.node("Softmax", [x], { axis: attributes.axis }),
  logSoftmax: (emit, { x }, { inputs, attributes: { axis } }) =>
    emit.target === "webgpu" && axis === inputs.x.shape.length - 1
      ? emit.node("Sub", [x, logSumExpOnGpu(emit, x, inputs.x.shape)])
      : emit.node("LogSoftmax", [x], { axis }),
  // LogSoftmax is vectorised and ReduceLogSumExp is not: a fifth of the time at a vocabulary of 49,152, for one more
  // [.., V] in memory.
  crossEntropy: (emit, { logits, targets }, { inputs }) => {
    const axis = inputs.logits.shape.length - 1;
    const last = emit.vector([axis]);
    const ids = emit.node("Unsqueeze", [targets, last]);
    if (emit.target === "webgpu") {
      const chosen = emit.node("GatherElements", [logits, ids], { axis });
      const sum = logSumExpOnGpu(emit, logits, inputs.logits.shape);
      return emit.node("Squeeze", [emit.node("Sub", [sum, chosen]), last]);
    }
    const logs = emit.node("LogSoftmax", [logits], { axis });
    const chosen = emit.node("GatherElements", [logs, ids], { axis });
    return emit.node("Neg", [emit.node("Squeeze", [chosen, last])]);
  },

  rotary: (emit, { x, cos, sin }, { inputs, attributes: { numHeads, layout } }) =>
    rotaryNode(emit, x, cos, sin, inputs.x.shape[0]!, {
      numHeads,
      layout,
      pairs: inputs.cos.shape[1] as number,
      headDim: (inputs.x.shape[2] as number) / numHeads,
    }),
  attention: (emit, inputs, node) => {
    if (emit.keepsProbabilities(node)) return fromBlocks(emit, node);
    if (attendsElsewhere(emit.target, node)) return attentionElsewhere(emit, inputs, node);
    return hasFusedAttention(emit.target, node) ? fusedAttention(emit, inputs, node) : plainAttention(emit, node);
  },
  attentionGradient: (emit, _, node) =>
    inlined(emit, node.inputs, (g, inputs) => blockAttentionGradient(g, inputs, node.attributes)),
};

/** xᵀ · y for many rows and a narrower x: as (yᵀ · x)ᵀ, which takes half the time (4,096 rows, widths of 128 and 352,
 *  AVX-512): the gradient of a weight that widens. undefined elsewhere. */
function turnedProduct(
  emit: Emitter,
  { a, b }: Inputs<"matmul", string>,
  inputs: Inputs<"matmul", Value>,
): string | undefined {
  const shapes = [inputs.a.shape, inputs.b.shape];
  if (shapes.some((shape) => shape.length !== 2 || shape.some((dim) => typeof dim !== "number"))) return undefined;
  const [[rows, narrow], [, wide]] = shapes as [[number, number], [number, number]];
  if (narrow >= wide || rows < 4 * wide) return undefined;
  const product = emit.node("FusedMatMul", [b, a], { transA: 1, transB: 0 }, microsoft);
  return emit.node("Transpose", [product], { perm: [1, 0] });
}

/** D. */
function headDimOf({ inputs, attributes }: NodeOf<"attention">): number {
  const packed = inputs.key === undefined;
  const heads = attributes.numHeads + (packed ? 2 * attributes.numKeyValueHeads : 0);
  return (inputs.query.shape[2] as number) / heads;
}

/** Whether GroupQueryAttention computes this node: heads of a multiple of 8 channels in float32; with a past, or with
 *  keys that are not the queries' own, one batch row or one query; on WebGPU, causal ones without a soft cap, which its
 *  kernel leaves out without an error (onnxruntime-web 1.30). */
export function hasFusedAttention(target: OnnxTarget, node: NodeOf<"attention">): boolean {
  const { query, key, pastKey } = node.inputs;
  if (query.dtype !== "f32" || headDimOf(node) % 8 !== 0) return false;
  const [batch, tokens] = query.shape;
  const hasPast = pastKey !== undefined || (key !== undefined && key.shape[1] !== tokens);
  if (hasPast && batch !== 1 && tokens !== 1) return false;
  return target !== "webgpu" || (node.attributes.causal && node.attributes.softcap === 0);
}

/** Whether every query sees all of a past and there are no new keys, as when a decoder attends to an encoder. */
function attendsElsewhere(target: OnnxTarget, { inputs, attributes }: NodeOf<"attention">): boolean {
  const { query, key, pastKey, pastLength, cos, bias, sinks } = inputs;
  const { causal, softcap, numHeads, numKeyValueHeads } = attributes;
  if (target === "webgpu" || query.dtype !== "f32" || key?.shape[1] !== 0 || pastKey === undefined) return false;
  const isPlain = pastLength === undefined && cos === undefined && bias === undefined && sinks === undefined;
  return isPlain && !causal && softcap === 0 && numHeads === numKeyValueHeads;
}

/** com.microsoft.MultiHeadAttention over keys and values by head: read where they are, without scores in memory, and
 *  with any number of queries. GroupQueryAttention copies its past, and wants no more queries than keys. */
function attentionElsewhere(emit: Emitter, inputs: Inputs<"attention", string>, node: NodeOf<"attention">): string[] {
  const { numHeads, scale } = node.attributes;
  const attributes = { num_heads: numHeads, scale: { float: scale } };
  const output = emit.node(
    "MultiHeadAttention",
    [inputs.query, inputs.pastKey!, inputs.pastValue!],
    attributes,
    microsoft,
  );
  const none = (past: string): string => sliceAxis(emit, past, 2, emit.vector([0]), emit.vector([0]));
  return [output, none(inputs.pastKey!), none(inputs.pastValue!)];
}

/** Whether GroupQueryAttention turns by these tables itself: heads of a multiple of 16 channels, pairs of 8. */
function hasFusedRotary(node: NodeOf<"attention">): boolean {
  const { cos } = node.inputs;
  return cos !== undefined && headDimOf(node) % 16 === 0 && (cos.shape[1] as number) % 8 === 0;
}

/** com.microsoft.GroupQueryAttention: no scores in memory. Its past may be longer than what is valid. */
function fusedAttention(emit: Emitter, inputs: Inputs<"attention", string>, node: NodeOf<"attention">): string[] {
  const { numHeads, numKeyValueHeads, scale, softcap, causal, window, layout } = node.attributes;
  const [batch, tokens] = node.inputs.query.shape as [Dim, Dim];
  const headDim = headDimOf(node);
  const newKeys = node.inputs.key?.shape[1] ?? tokens;
  const i32 = { to: onnxTypes.i32 };

  const past = inputs.pastLength !== undefined ? asVector(emit, inputs.pastLength) : undefined;
  const stored = inputs.pastKey !== undefined ? axisSize(emit, inputs.pastKey, 2) : emit.vector([0]);
  const start = past ?? stored;
  const counted = emit.dims([newKeys]);
  const total = inputs.pastKey === undefined ? counted : emit.node("Add", [start, counted]); // [1]
  // Shape inference takes the present for as long as the past unless it can see the total.
  const storedSize = node.inputs.pastKey?.shape[2] ?? 0;
  const isKnown = past === undefined && typeof storedSize === "number" && typeof newKeys === "number";
  const knownTotal = isKnown ? storedSize + newKeys : undefined;

  let { query, key, value, pastKey, pastValue } = inputs;
  let cos = "";
  let sin = "";
  let turns = inputs.cos !== undefined && inputs.sin !== undefined;
  if (turns && !hasFusedRotary(node)) {
    // Turn first, then attend.
    const pairs = node.inputs.cos!.shape[1] as number;
    if (key === undefined || value === undefined) {
      const sizes = [numHeads, numKeyValueHeads, numKeyValueHeads].map((heads) => heads * headDim);
      [query, key, value] = emit.nodes("Split", [query, emit.vector(sizes)], { axis: 2 }, { outputs: 3 }) as [
        string,
        string,
        string,
      ];
    }
    const rows = (table: string): string =>
      sliceAxis(emit, table, 0, start, emit.node("Add", [start, emit.dims([tokens])]));
    const [c, s] = [rows(inputs.cos!), rows(inputs.sin!)];
    query = rotaryNode(emit, query, c, s, batch, { numHeads, layout, pairs, headDim });
    key = rotaryNode(emit, key, c, s, batch, { numHeads: numKeyValueHeads, layout, pairs, headDim });
    turns = false;
  } else if (turns) {
    [cos, sin] = [inputs.cos!, inputs.sin!];
  }
  if (newKeys !== tokens) {
    // More keys than queries: the keys go in as a full past, and there are no new ones.
    const byHead = (x: string): string => {
      const split = emit.node("Reshape", [x, emit.vector([0, -1, numKeyValueHeads, headDim])]);
      return emit.node("Transpose", [split], { perm: [0, 2, 1, 3] });
    };
    const none = (x: string): string => sliceAxis(emit, x, 1, emit.vector([0]), emit.vector([0]));
    const [newKey, newValue] = [byHead(key!), byHead(value!)];
    const join = (old: string | undefined, rows: string): string => {
      if (old === undefined) return rows;
      const valid = past === undefined ? old : sliceAxis(emit, old, 2, emit.vector([0]), past);
      return emit.node("Concat", [valid, rows], { axis: 2 });
    };
    [pastKey, pastValue] = [join(pastKey, newKey), join(pastValue, newValue)];
    [key, value] = [none(key!), none(value!)];
    return [attend()[0]!, newKey, newValue];
  }

  function attend(): string[] {
    const scalarTotal =
      knownTotal !== undefined
        ? emit.constant(scalar("i32", knownTotal))
        : // On WebGPU i64 stays on the CPU, where this is wanted; i32 would not.
          emit.node("Cast", [emit.node("Squeeze", [total, emit.vector([0])])], i32);
    const one = emit.vector([1]);
    const lengths = emit.node("Cast", [emit.node("Sub", [total, one])], i32);
    const attributes: Record<string, OnnxAttribute> = {
      num_heads: numHeads,
      kv_num_heads: numKeyValueHeads,
      scale: { float: scale },
      causal: causal ? 1 : 0,
      local_window_size: window ?? -1,
    };
    if (softcap > 0) attributes.softcap = { float: softcap };
    if (turns) {
      attributes.do_rotary = 1;
      attributes.rotary_interleaved = layout === "interleaved" ? 1 : 0;
    }
    const all = [
      query,
      key ?? "",
      value ?? "",
      pastKey ?? "",
      pastValue ?? "",
      batch === 1 ? lengths : emit.node("Expand", [lengths, emit.dims([batch])]),
      scalarTotal,
      cos,
      sin,
      "", // position_ids: counted from the past's length
      inputs.bias ?? "",
      inputs.sinks ?? "",
    ];
    while (all.at(-1) === "") all.pop();
    // Without all three outputs the flash kernel refuses, and shared keys crash.
    return emit.nodes("GroupQueryAttention", all, attributes, { ...microsoft, outputs: 3 });
  }

  const [output, presentKey, presentValue] = attend();
  // present = past and new in one buffer, as long as the longer of past's capacity and the total.
  const whole = inputs.pastKey === undefined || emit.writesCache(node);
  const fresh = (present: string): string => (whole ? present : sliceAxis(emit, present, 2, start, total));
  return [output!, fresh(presentKey!), fresh(presentValue!)];
}

/** Builds ops over a node's inputs by name and lowers them in its place. */
function inlined<I extends object>(
  emit: Emitter,
  inputs: I,
  build: (g: GraphBuilder, inputs: I) => readonly Value[],
): string[] {
  const entries = Object.entries(inputs) as [string, Value | undefined][];
  const given = entries.filter((entry): entry is [string, Value] => entry[1] !== undefined);
  return emit.inline(
    given.map(([, value]) => value),
    (g, values) => build(g, Object.fromEntries(given.map(([name], i) => [name, values[i]!])) as unknown as I),
  );
}

function plainAttention(emit: Emitter, node: NodeOf<"attention">): string[] {
  return inlined(emit, node.inputs, (g, inputs) => {
    const out = decomposeAttention(g, inputs, node.attributes);
    return [out.output, out.newKey, out.newValue];
  });
}

function fromBlocks(emit: Emitter, node: NodeOf<"attention">): string[] {
  return inlined(emit, node.inputs, (g, inputs) => {
    const out = blockAttention(g, inputs, node.attributes);
    return [out.output, out.newKey, out.newValue];
  });
}
