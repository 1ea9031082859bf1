// What each op becomes in ONNX: opset 23 and com.microsoft version 1, as ONNX Runtime 1.30 runs them. Total over the op
// list. Where a fused kernel has limits, they stand beside the choice; the fallback is a decomposition.

import { fromNumbers, isFloat, scalar } from "../../tensor/index.ts";
import { type Dim, productOfDims } from "../dims.ts";
import type { BlockFormat, Inputs, OpName, Value } from "../ops.ts";
import { attentionLowering } from "./attention.ts";
import { asVector, axisSize, type Emitter, type Lowering, microsoft, sliceAxis } from "./emitter.ts";
import { onnxTypes } from "./protobuf.ts";

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

  ...attentionLowering,
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
