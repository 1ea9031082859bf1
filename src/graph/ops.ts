// The one list of ops. Five tables are total over it, so that a new line here does not compile until each has its rule:
// shapeRules (shapes.ts), gradientRules (gradients.ts), onnxLowering (onnx/lowering.ts), referenceKernels
// (engine/reference/kernels.ts) and the cases of test/conformance.
// Inputs are named; "name?" may be absent, "name..." is a list. Shape letters: B batch, T query length, N new keys,
// S all keys (past and new), H query heads, K key/value heads, D head dimension, P rotary pairs, V vocabulary.

import type { Dtype, Tensor } from "../tensor/index.ts";
import type { Dim } from "./dims.ts";

export const ops = {
  // Arithmetic, elementwise with broadcasting (NumPy's). Both sides have one dtype.
  add: { inputs: ["a", "b"] },
  subtract: { inputs: ["a", "b"] },
  multiply: { inputs: ["a", "b"] },
  divide: { inputs: ["a", "b"] }, // integers: towards zero
  power: { inputs: ["a", "b"] },
  minimum: { inputs: ["a", "b"] },
  maximum: { inputs: ["a", "b"] },

  // Elementwise functions of one float tensor.
  negate: { inputs: ["x"] },
  absolute: { inputs: ["x"] },
  sign: { inputs: ["x"] },
  floor: { inputs: ["x"] },
  exp: { inputs: ["x"] },
  log: { inputs: ["x"] },
  sqrt: { inputs: ["x"] },
  rsqrt: { inputs: ["x"] }, // 1 / √x
  reciprocal: { inputs: ["x"] },
  sin: { inputs: ["x"] },
  cos: { inputs: ["x"] },
  tanh: { inputs: ["x"] },
  erf: { inputs: ["x"] },
  relu: { inputs: ["x"] },
  sigmoid: { inputs: ["x"] },
  silu: { inputs: ["x"] }, // x · sigmoid(x)
  softplus: { inputs: ["x"] }, // ln(1 + e^x)
  gelu: { inputs: ["x"] }, // approximate "none": x·Φ(x); "tanh": the cubic approximation (gelu_new, gelu_pytorch_tanh)

  // Comparison and selection; comparisons give bool.
  equal: { inputs: ["a", "b"] },
  less: { inputs: ["a", "b"] },
  lessEqual: { inputs: ["a", "b"] },
  and: { inputs: ["a", "b"] },
  or: { inputs: ["a", "b"] },
  not: { inputs: ["x"] },
  where: { inputs: ["condition", "a", "b"] }, // a where condition holds, b elsewhere

  // Reductions over axes; cumulativeSum keeps the axis.
  reduceSum: { inputs: ["x"] },
  reduceMean: { inputs: ["x"] },
  reduceMax: { inputs: ["x"] },
  logSumExp: { inputs: ["x"] },
  argMax: { inputs: ["x"] }, // i64; the first of equal maxima
  cumulativeSum: { inputs: ["x"] },

  // Movement: the elements stay what they are.
  reshape: { inputs: ["x"] },
  transpose: { inputs: ["x"] },
  broadcast: { inputs: ["x"] },
  concat: { inputs: ["values..."] },
  slice: { inputs: ["x"] }, // fixed bounds
  dynamicSlice: { inputs: ["x", "start"] }, // `size` elements from a start that a run decides
  updateSlice: { inputs: ["x", "rows", "start"] }, // x with rows written over it from start on
  split: { inputs: ["x"] },
  pad: { inputs: ["x"] },
  gather: { inputs: ["x", "indices"] }, // whole slices of x along an axis: an embedding is axis 0
  gatherElements: { inputs: ["x", "indices"] }, // one element for each index (torch.gather)
  scatterAdd: { inputs: ["x", "indices", "rows"] }, // x[indices] += rows along axis 0, repeated indices add up
  dimension: { inputs: ["x"] }, // the size of an axis, as an i64 scalar
  iota: { inputs: ["x"] }, // 0, 1, 2, … as long as an axis of x, i64

  // Conversion.
  cast: { inputs: ["x"] },

  // Matrix products. quantizedMatmul: x · dequantize(blocks, scales, zeroPoints)ᵀ, the weight as rows of outputs.
  matmul: { inputs: ["a", "b"] },
  quantizedMatmul: { inputs: ["x", "blocks", "scales", "zeroPoints?"] },
  dequantize: { inputs: ["blocks", "scales", "zeroPoints?"] },

  // Normalisation over the last axis, and losses.
  layerNorm: { inputs: ["x", "weight", "bias?"] },
  rmsNorm: { inputs: ["x", "weight?"] },
  softmax: { inputs: ["x"] },
  logSoftmax: { inputs: ["x"] },
  crossEntropy: { inputs: ["logits", "targets"] }, // logSumExp(logits) − logits[target], a loss for each target

  // Attention. rotary turns [B, T, H·D] by tables [T, P]; attention is the whole of it, with its cache.
  rotary: { inputs: ["x", "cos", "sin"] },
  attention: {
    inputs: [
      "query", // [B, T, H·D]; or [B, T, (H + 2K)·D] with query, key and value packed in that order
      "key?", // [B, N, K·D]
      "value?", // [B, N, K·D]
      "pastKey?", // [B, K, P, D], rotated already
      "pastValue?", // [B, K, P, D]
      "pastLength?", // i64 []; how many rows of the past are valid, all of them when absent
      "cos?", // [R, P], R ≥ S: row pastLength + t turns query t and new key t; the past is turned already
      "sin?",
      "bias?", // [1 or B, 1 or H, T, S], added after scale and softcap, before the mask
      "sinks?", // [H]: a logit in each head's softmax that has no value
    ],
  },
  // The gradients of an attention without past and sinks: of query, key, value and bias, those that are given, in this
  // order.
  attentionGradient: {
    inputs: [
      "query", // as attention's
      "key?",
      "value?",
      "cos?",
      "sin?",
      "bias?",
      "output", // attention's
      "outputGradient", // [B, T, H·D]
    ],
  },
} as const;

export type OpName = keyof typeof ops;
export const opNames: readonly OpName[] = Object.keys(ops) as OpName[];

/** An op that takes no attributes. */
export type None = Record<never, never>;
interface Reduction {
  readonly axes: readonly number[];
  readonly keepDims: boolean;
}

/** How blocks of a row are stored: the layout of com.microsoft.MatMulNBits. A row of K elements is ⌈K/blockSize⌉
 *  blocks of blockSize·bits/8 bytes; with 4 bits the earlier element is in the low nibble. An element is
 *  (q − zeroPoint) · scale; without zero points, zeroPoint is 2^(bits − 1). */
export interface BlockFormat {
  readonly bits: 4 | 8;
  /** Elements a block: a power of two, at least 16. */
  readonly blockSize: number;
}

/** Attributes of every op, axes normalised (never negative). Angles, sizes and scales that a run may change are inputs,
 *  not attributes. */
export interface Attributes {
  add: None;
  subtract: None;
  multiply: None;
  divide: None;
  power: None;
  minimum: None;
  maximum: None;
  negate: None;
  absolute: None;
  sign: None;
  floor: None;
  exp: None;
  log: None;
  sqrt: None;
  rsqrt: None;
  reciprocal: None;
  sin: None;
  cos: None;
  tanh: None;
  erf: None;
  relu: None;
  sigmoid: None;
  silu: None;
  softplus: None;
  gelu: { readonly approximate: "none" | "tanh" };
  equal: None;
  less: None;
  lessEqual: None;
  and: None;
  or: None;
  not: None;
  where: None;
  reduceSum: Reduction;
  reduceMean: Reduction;
  reduceMax: Reduction;
  logSumExp: Reduction;
  argMax: { readonly axis: number; readonly keepDims: boolean };
  cumulativeSum: { readonly axis: number; readonly exclusive: boolean; readonly reverse: boolean };
  reshape: { readonly shape: readonly Dim[] };
  transpose: { readonly permutation: readonly number[] };
  broadcast: { readonly shape: readonly Dim[] };
  concat: { readonly axis: number };
  slice: { readonly axis: number; readonly start: number; readonly end: Dim; readonly step: number };
  dynamicSlice: { readonly axis: number; readonly size: Dim };
  updateSlice: { readonly axis: number };
  split: { readonly axis: number; readonly sizes: readonly number[] };
  pad: { readonly axis: number; readonly before: number; readonly after: number; readonly value: number };
  gather: { readonly axis: number };
  gatherElements: { readonly axis: number };
  scatterAdd: None;
  dimension: { readonly axis: number };
  iota: { readonly axis: number };
  cast: { readonly dtype: Dtype };
  matmul: { readonly transposeA: boolean; readonly transposeB: boolean };
  /** accuracyLevel 0 multiplies in float32; 4 allows activations rounded to int8 a block: faster, and off by some
   *  hundredths of a nat a token on a small model. */
  quantizedMatmul: BlockFormat & { readonly accuracyLevel: 0 | 4 };
  dequantize: BlockFormat;
  layerNorm: { readonly epsilon: number };
  rmsNorm: { readonly epsilon: number };
  softmax: { readonly axis: number };
  logSoftmax: { readonly axis: number };
  crossEntropy: None;
  rotary: { readonly numHeads: number; readonly layout: "half" | "interleaved" };
  attention: AttentionAttributes;
  attentionGradient: AttentionAttributes & {
    /** True: probabilities are worked out again from query and key. False: a backend may keep those of the forward
     *  attention of the same inputs, [B, H, T, S] a layer. */
    readonly recompute: boolean;
  };
}

export interface AttentionAttributes {
  readonly numHeads: number;
  readonly numKeyValueHeads: number;
  /** Multiplies query · key; 1/√D by custom, but models differ. */
  readonly scale: number;
  /** c in c · tanh(score / c); 0: none. */
  readonly softcap: number;
  /** Query t sits at position pastLength + t and sees no key after it. */
  readonly causal: boolean;
  /** Keys that a query sees, itself included; null: all. Only with `causal`. */
  readonly window: number | null;
  /** How cos and sin pair channels; partial rotary leaves channels from 2P on alone. */
  readonly layout: "half" | "interleaved";
}

/** What is known of a value before a run. */
export interface ValueType {
  readonly dtype: Dtype;
  readonly shape: readonly Dim[];
}

/** A value in a graph: an input, a parameter, a constant, a state, or an output of a node. Handles are compared by
 *  identity and belong to one builder. */
export interface Value extends ValueType {
  readonly name: string;
}

type InputNames<O extends OpName> = (typeof ops)[O]["inputs"][number];
/** The inputs of an op by name, each a T. */
export type Inputs<O extends OpName, T> = {
  readonly [N in InputNames<O> as N extends `${string}?` | `${string}...` ? never : N]: T;
} & {
  readonly [N in InputNames<O> as N extends `${infer K}?` ? K : never]?: T | undefined;
} & {
  readonly [N in InputNames<O> as N extends `${infer K}...` ? K : never]: readonly T[];
};

/** One use of an op. `path` is where: scopes from the outside in. */
export interface NodeOf<O extends OpName> {
  readonly op: O;
  readonly path: string;
  readonly inputs: Inputs<O, Value>;
  readonly attributes: Attributes[O];
  readonly outputs: readonly Value[];
}
export type Node = { [O in OpName]: NodeOf<O> }[OpName];

/** What a run leaves in a state: a new value, or rows written over it from `start` on along an axis. */
export type StateUpdate =
  | { readonly kind: "replace"; readonly state: Value; readonly value: Value }
  | {
      readonly kind: "rows";
      readonly state: Value;
      readonly rows: Value;
      readonly axis: number;
      /** i64 [] */
      readonly start: Value;
    };

/** A finished program: plain data. Nodes stand in an order in which they can run, and each is used. */
export interface Graph {
  readonly name: string;
  readonly inputs: readonly Value[];
  /** Weights, given by name when a backend loads the graph. */
  readonly parameters: readonly Value[];
  /** Tensors that live as long as the session: every run reads them, `updates` say what it leaves in them. */
  readonly states: readonly Value[];
  readonly constants: readonly { readonly value: Value; readonly tensor: Tensor }[];
  readonly nodes: readonly Node[];
  readonly outputs: readonly { readonly name: string; readonly value: Value }[];
  readonly updates: readonly StateUpdate[];
}

/** The values that a node reads, in the order of the op's list, absent ones left out. */
export function nodeInputs(node: Node): Value[] {
  return inputEntries(node).map(([, value]) => value);
}

/** The same, with the input's name: "values[0]" for members of a list. */
export function inputEntries(node: Node): [string, Value][] {
  const inputs = node.inputs as Readonly<Record<string, Value | readonly Value[] | undefined>>;
  const out: [string, Value][] = [];
  for (const entry of ops[node.op].inputs) {
    const name = entry.replace(/\?$|\.\.\.$/, "");
    const got = inputs[name];
    if (got === undefined) continue;
    if (Array.isArray(got)) got.forEach((value, i) => void out.push([`${name}[${i}]`, value]));
    else out.push([name, got as Value]);
  }
  return out;
}

/** Calls fn on each input by name: Inputs<O, A> to Inputs<O, B>. */
export function mapInputs<O extends OpName, A, B>(op: O, inputs: Inputs<O, A>, fn: (input: A) => B): Inputs<O, B> {
  const given = inputs as Readonly<Record<string, A | readonly A[] | undefined>>;
  const out: Record<string, B | B[]> = {};
  for (const entry of ops[op].inputs) {
    const name = entry.replace(/\?$|\.\.\.$/, "");
    const got = given[name];
    if (got === undefined) continue;
    out[name] = entry.endsWith("...") ? (got as readonly A[]).map(fn) : fn(got as A);
  }
  return out as unknown as Inputs<O, B>;
}
