// Cases of every op, total over the op list: random seeded inputs, several shapes, sizes known and symbolic, dtypes.
// ops.test.ts runs them on each backend against the reference kernels; test/fixtures/ops.json checks those against torch.

import type { Attributes, Dim, GraphBuilder, Inputs, OpName, Value } from "../../src/graph/index.ts";
import { type Dtype, fromNumbers, isFloat, type Random, random, type Tensor } from "../../src/tensor/index.ts";

export type BackendName = "onnxruntime-node" | "onnxruntime-wasm" | "onnxruntime-webgpu";

export interface InputSpec {
  readonly dtype: Dtype;
  readonly shape: readonly Dim[];
  /** One element; standard normal for floats and 0 .. 9 for integers when absent. */
  readonly fill?: (stream: Random, index: number) => number;
  /** Given as a weight, not fed. */
  readonly weight?: boolean;
}

export interface OpCase {
  readonly name: string;
  /** Sizes of the names in shapes. */
  readonly sizes?: Readonly<Record<string, number>>;
  readonly inputs: Readonly<Record<string, InputSpec>>;
  readonly build: (g: GraphBuilder, x: Readonly<Record<string, Value>>) => Value | readonly Value[];
  /** Why a backend does not run it. */
  readonly skip?: Partial<Record<BackendName, string>>;
}

const noKernels = { "onnxruntime-webgpu": "the package's build for WebGPU has no kernels for f64 and bf16" } as const;
const noF16 = { "onnxruntime-webgpu": "f16 in shaders is a feature that not every adapter has" } as const;

const f32 = (...shape: Dim[]): InputSpec => ({ dtype: "f32", shape });
const i64 = (...shape: Dim[]): InputSpec => ({ dtype: "i64", shape });
const below = (bound: number, ...shape: Dim[]): InputSpec => ({
  dtype: "i64",
  shape,
  fill: (stream) => stream.integer(bound),
});
const exactly = (value: number): InputSpec => ({ dtype: "i64", shape: [], fill: () => value });
const positive = (...shape: Dim[]): InputSpec => ({
  dtype: "f32",
  shape,
  fill: (stream) => Math.abs(stream.normal()) + 0.01,
});
const weight = (spec: InputSpec): InputSpec => ({ ...spec, weight: true });

type Binary =
  | "add"
  | "subtract"
  | "multiply"
  | "divide"
  | "power"
  | "minimum"
  | "maximum"
  | "equal"
  | "less"
  | "lessEqual";
type Unary = keyof { [K in keyof GraphBuilder as GraphBuilder[K] extends (x: Value) => Value ? K : never]: true };

function binary(op: Binary, extra: readonly OpCase[] = []): OpCase[] {
  const base = op === "power" ? positive : f32;
  return [
    { name: "same shape", inputs: { a: base(3, 5), b: f32(3, 5) }, build: (g, { a, b }) => g[op](a!, b!) },
    {
      name: "broadcast, symbolic",
      sizes: { tokens: 4 },
      inputs: { a: base("tokens", 1, 6), b: f32(3, 1) },
      build: (g, { a, b }) => g[op](a!, b!),
    },
    { name: "a number", inputs: { a: base(7) }, build: (g, { a }) => g[op](a!, 0.5) },
    { name: "no elements", sizes: { tokens: 0 }, inputs: { a: base("tokens", 3) }, build: (g, { a }) => g[op](a!, a!) },
    ...extra,
  ];
}

const integers: (op: Binary) => OpCase = (op) => ({
  name: "i64",
  inputs: {
    a: { ...i64(4, 3), fill: (stream) => stream.integer(41) - 20 },
    b: { ...i64(3), fill: (stream) => stream.integer(9) + 1 },
  },
  build: (g, { a, b }) => g[op](a!, b!),
});

const float64: (op: Binary) => OpCase = (op) => ({
  name: "f64",
  inputs: { a: { dtype: "f64", shape: [4, 3] }, b: { dtype: "f64", shape: [3] } },
  build: (g, { a, b }) => g[op](a!, b!),
  skip: noKernels,
});

function unary(op: Unary, input: (...shape: Dim[]) => InputSpec = f32): OpCase[] {
  return [
    { name: "vector", inputs: { x: input(33) }, build: (g, { x }) => g[op](x!) },
    { name: "symbolic", sizes: { tokens: 3 }, inputs: { x: input("tokens", 2, 5) }, build: (g, { x }) => g[op](x!) },
    { name: "scalar", inputs: { x: input() }, build: (g, { x }) => g[op](x!) },
  ];
}

function reduction(op: "sum" | "mean" | "max" | "logSumExp"): OpCase[] {
  return [
    { name: "last axis", sizes: { n: 3 }, inputs: { x: f32("n", 4, 50) }, build: (g, { x }) => g[op](x!) },
    {
      name: "two axes, kept",
      inputs: { x: f32(3, 4, 5) },
      build: (g, { x }) => g[op](x!, [0, -1], { keepDims: true }),
    },
    { name: "all axes", inputs: { x: f32(3, 4) }, build: (g, { x }) => g[op](x!, [0, 1]) },
  ];
}

const turns = (rows: Dim, pairs: Dim, kind: "cos" | "sin"): InputSpec => ({
  dtype: "f32",
  shape: [rows, pairs],
  // A table of row · pair angles, so that cos and sin belong together.
  fill: (_, i) => Math[kind](Math.floor(i / (pairs as number)) * 10 ** -(i % (pairs as number))),
});

/** Attention on named inputs, with every output compared. */
function attention(
  name: string,
  sizes: Readonly<Record<string, number>>,
  inputs: Readonly<Record<string, InputSpec>>,
  options: Partial<Parameters<GraphBuilder["attention"]>[1]> & { numHeads: number },
  skip: NonNullable<OpCase["skip"]> = {},
): OpCase {
  return {
    name,
    sizes,
    inputs,
    skip,
    build: (g, x) => {
      const out = g.attention(x as unknown as Parameters<GraphBuilder["attention"]>[0], { scale: 0.3, ...options });
      return [out.output, out.newKey, out.newValue];
    },
  };
}

const cache = (batch: Dim, heads: number, headDim: number): Record<string, InputSpec> => ({
  pastKey: f32(batch, heads, "capacity", headDim),
  pastValue: f32(batch, heads, "capacity", headDim),
});

const bytes = (...shape: Dim[]): InputSpec => ({ dtype: "u8", shape, fill: (stream) => stream.integer(256) });

function quantized(
  bits: 4 | 8,
  blockSize: number,
  zero: "none" | "u8" | "f32",
  numBlocks = 3,
): Record<string, InputSpec> {
  const zeroPoints: Record<string, InputSpec> = {
    none: f32(),
    u8: bytes(8, Math.ceil((numBlocks * bits) / 8)),
    f32: { ...positive(8, numBlocks), fill: (stream) => stream.uniform() * 2 ** bits },
  };
  return {
    blocks: weight(bytes(8, numBlocks, (blockSize * bits) / 8)),
    scales: weight({ ...f32(8, numBlocks), fill: (stream) => 0.01 + stream.uniform() / 20 }),
    ...(zero === "none" ? {} : { zeroPoints: weight(zeroPoints[zero]!) }),
  };
}

function quantizedCases(op: "quantizedMatmul" | "dequantize"): OpCase[] {
  const formats: [4 | 8, number, "none" | "u8" | "f32", number][] = [
    [4, 32, "none", 3],
    [4, 32, "u8", 3],
    [4, 16, "u8", 4],
    [4, 128, "f32", 2],
    [8, 32, "none", 3],
    [8, 64, "u8", 2],
  ];
  return formats.map(([bits, blockSize, zero, numBlocks]) => ({
    name: `${bits} bits, blocks of ${blockSize}, zero points ${zero}`,
    sizes: { tokens: 5 },
    inputs: {
      ...quantized(bits, blockSize, zero, numBlocks),
      ...(op === "dequantize" ? {} : { x: f32(1, "tokens", numBlocks * blockSize) }),
    },
    build: (g, { x, blocks, scales, zeroPoints }) => {
      const parts = { blocks: blocks!, scales: scales!, zeroPoints };
      return op === "dequantize"
        ? g.dequantize(parts, { bits, blockSize })
        : g.quantizedMatmul(x!, parts, { bits, blockSize });
    },
  }));
}

export const opCases: { readonly [O in OpName]: readonly OpCase[] } = {
  add: binary("add", [integers("add"), float64("add")]),
  subtract: binary("subtract", [integers("subtract")]),
  multiply: binary("multiply", [integers("multiply")]),
  divide: binary("divide", [integers("divide")]),
  power: binary("power"),
  minimum: binary("minimum", [integers("minimum")]),
  maximum: binary("maximum"),

  negate: unary("negate"),
  absolute: unary("absolute"),
  sign: unary("sign"),
  floor: unary("floor"),
  exp: unary("exp"),
  log: unary("log", positive),
  sqrt: unary("sqrt", positive),
  rsqrt: unary("rsqrt", positive),
  reciprocal: unary("reciprocal", positive),
  sin: unary("sin"),
  cos: unary("cos"),
  tanh: unary("tanh"),
  erf: unary("erf"),
  relu: unary("relu"),
  sigmoid: unary("sigmoid"),
  silu: unary("silu"),
  softplus: unary("softplus"),
  gelu: [
    ...unary("gelu"),
    { name: "tanh", inputs: { x: f32(40) }, build: (g, { x }) => g.gelu(x!, "tanh") },
    {
      name: "bf16",
      inputs: { x: f32(40) },
      build: (g, { x }) => g.gelu(g.cast(g.cast(x!, "bf16"), "f32")),
      skip: noKernels,
    },
  ],

  equal: binary("equal", [integers("equal")]),
  less: binary("less", [integers("less")]),
  lessEqual: binary("lessEqual", [integers("lessEqual")]),
  and: [
    { name: "bits", inputs: { a: f32(9), b: f32(3, 1) }, build: (g, { a, b }) => g.and(g.less(a!, 0), g.less(b!, 0)) },
  ],
  or: [
    { name: "bits", inputs: { a: f32(9), b: f32(3, 1) }, build: (g, { a, b }) => g.or(g.less(a!, 0), g.less(b!, 0)) },
  ],
  not: [{ name: "bits", inputs: { a: f32(9) }, build: (g, { a }) => g.not(g.less(a!, 0)) }],
  where: [
    {
      name: "broadcast",
      sizes: { n: 4 },
      inputs: { a: f32("n", 3), b: f32(3) },
      build: (g, { a, b }) => g.where(g.less(a!, b!), a!, b!),
    },
    { name: "minus infinity", inputs: { a: f32(9) }, build: (g, { a }) => g.where(g.less(a!, 0), a!, -Infinity) },
    { name: "i64", inputs: { a: i64(9) }, build: (g, { a }) => g.where(g.less(a!, 4), a!, -1) },
  ],

  reduceSum: reduction("sum"),
  reduceMean: reduction("mean"),
  reduceMax: reduction("max"),
  logSumExp: [
    ...reduction("logSumExp"),
    {
      name: "far from zero",
      inputs: { x: { ...f32(3, 20), fill: (stream) => stream.normal() * 400 } },
      build: (g, { x }) => g.logSumExp(x!),
    },
    {
      name: "a row of nothing but minus infinity",
      inputs: { x: { ...f32(3, 20), fill: (stream, i) => (i < 20 ? -Infinity : stream.normal()) } },
      build: (g, { x }) => [g.logSumExp(x!), g.logSumExp(x!, -1, { keepDims: true })],
    },
    {
      name: "no rows",
      sizes: { n: 0 },
      inputs: { x: f32("n", 20) },
      build: (g, { x }) => g.logSumExp(x!),
    },
  ],
  argMax: [
    { name: "last axis", sizes: { n: 3 }, inputs: { x: f32("n", 20) }, build: (g, { x }) => g.argMax(x!) },
    {
      name: "the first of equals, kept",
      inputs: { x: { ...f32(5, 8), fill: (stream) => stream.integer(3) } },
      build: (g, { x }) => g.argMax(x!, 0, { keepDims: true }),
    },
  ],
  cumulativeSum: [
    { name: "last axis", inputs: { x: f32(3, 7) }, build: (g, { x }) => g.cumulativeSum(x!) },
    {
      name: "reverse, exclusive",
      sizes: { n: 4 },
      inputs: { x: f32("n", 5) },
      build: (g, { x }) => g.cumulativeSum(x!, 0, { reverse: true, exclusive: true }),
    },
  ],

  reshape: [
    { name: "known", inputs: { x: f32(4, 6) }, build: (g, { x }) => g.reshape(x!, [2, -1, 3]) },
    {
      name: "heads of symbolic tokens",
      sizes: { batch: 2, tokens: 3 },
      inputs: { x: f32("batch", "tokens", 8) },
      build: (g, { x }) => [
        g.reshape(x!, ["batch", "tokens", 2, 4]),
        g.reshape(x!, ["batch*tokens", 8]),
        g.reshape(g.reshape(x!, ["batch*tokens", 8]), ["batch", "tokens", 8]),
        g.reshape(g.transpose(x!, [1, 0, 2]), ["tokens", 4, "2*batch"]),
      ],
    },
    {
      name: "no elements",
      sizes: { tokens: 0 },
      inputs: { x: f32("tokens", 6) },
      build: (g, { x }) => g.reshape(x!, ["tokens", 2, 3]),
    },
  ],
  transpose: [
    { name: "last two", sizes: { n: 3 }, inputs: { x: f32(2, "n", 4) }, build: (g, { x }) => g.transpose(x!) },
    { name: "four axes", inputs: { x: f32(2, 3, 4, 5) }, build: (g, { x }) => g.transpose(x!, [0, 2, 1, 3]) },
    { name: "i64", inputs: { x: i64(2, 3) }, build: (g, { x }) => g.transpose(x!) },
  ],
  broadcast: [
    {
      name: "symbolic",
      sizes: { n: 3 },
      inputs: { x: f32("n", 1), y: f32(2) },
      build: (g, { x, y }) => [g.broadcast(x!, [4, "n", 5]), g.broadcast(y!, ["2*n", 2])],
    },
  ],
  concat: [
    {
      name: "symbolic",
      sizes: { past: 2, tokens: 3 },
      inputs: { a: f32(2, "past", 4), b: f32(2, "tokens", 4) },
      build: (g, { a, b }) => g.concat([a!, b!, a!], 1),
    },
    { name: "u8", inputs: { a: bytes(2, 2), b: bytes(1, 2) }, build: (g, { a, b }) => g.concat([a!, b!], 0) },
  ],
  slice: [
    { name: "middle, every second", inputs: { x: f32(3, 9) }, build: (g, { x }) => g.slice(x!, 1, 2, 8, 2) },
    {
      name: "to a symbolic end",
      sizes: { n: 6 },
      inputs: { x: f32("n", 2) },
      build: (g, { x }) => [g.slice(x!, 0, 1, "n"), g.slice(x!, 0, 0, "n-1")],
    },
  ],
  dynamicSlice: [
    {
      name: "rows of a table",
      sizes: { n: 9, tokens: 3 },
      inputs: { x: f32("n", 4), y: f32("tokens"), start: exactly(5) },
      build: (g, { x, start }) => g.dynamicSlice(x!, 0, start!, "tokens"),
    },
  ],
  updateSlice: [
    {
      name: "rows of a cache",
      sizes: { n: 9 },
      inputs: { x: f32(2, "n", 4), rows: f32(2, 3, 4), start: exactly(5) },
      build: (g, { x, rows, start }) => g.updateSlice(x!, rows!, 1, start!),
    },
    {
      name: "from the start to the end",
      inputs: { x: f32(4, 2), rows: f32(4, 2), start: exactly(0) },
      build: (g, { x, rows, start }) => g.updateSlice(x!, rows!, 0, start!),
    },
  ],
  split: [
    { name: "uneven", sizes: { n: 2 }, inputs: { x: f32("n", 10) }, build: (g, { x }) => g.split(x!, [5, 2, 3]) },
    { name: "even, first axis", inputs: { x: f32(6, 2) }, build: (g, { x }) => g.split(x!, 3, 0) },
  ],
  pad: [
    { name: "symbolic", sizes: { n: 2 }, inputs: { x: f32("n", 3) }, build: (g, { x }) => g.pad(x!, 0, 1, 2, -1.5) },
    { name: "head channels", inputs: { x: f32(2, 3, 4) }, build: (g, { x }) => g.pad(x!, -1, 0, 2) },
  ],
  gather: [
    {
      name: "embedding",
      sizes: { tokens: 6 },
      inputs: { x: weight(f32(20, 8)), ids: below(20, 1, "tokens") },
      build: (g, { x, ids }) => g.gather(x!, ids!),
    },
    {
      name: "embedding in bf16",
      sizes: { tokens: 6 },
      inputs: { x: weight({ dtype: "bf16", shape: [20, 8] }), ids: below(20, "tokens") },
      build: (g, { x, ids }) => g.cast(g.gather(x!, ids!), "f32"),
      skip: noKernels,
    },
    {
      name: "rows of blocks",
      sizes: { tokens: 6 },
      inputs: { x: weight(bytes(20, 2, 16)), ids: below(20, "tokens") },
      build: (g, { x, ids }) => g.gather(x!, ids!),
    },
    {
      name: "last axis",
      inputs: { x: f32(3, 7), ids: below(7, 2, 2) },
      build: (g, { x, ids }) => g.gather(x!, ids!, -1),
    },
  ],
  gatherElements: [
    {
      name: "targets",
      sizes: { n: 5 },
      inputs: { x: f32("n", 9), ids: below(9, "n", 1) },
      build: (g, { x, ids }) => g.gatherElements(x!, ids!),
    },
    {
      name: "first axis",
      inputs: { x: f32(4, 3), ids: below(4, 6, 3) },
      build: (g, { x, ids }) => g.gatherElements(x!, ids!, 0),
    },
  ],
  scatterAdd: [
    {
      name: "embedding gradient",
      sizes: { n: 12 },
      inputs: { x: f32(5, 4), ids: below(5, "n"), rows: f32("n", 4) },
      build: (g, { x, ids, rows }) => g.scatterAdd(x!, ids!, rows!),
    },
    {
      name: "two axes of indices",
      inputs: { x: f32(5, 4), ids: below(5, 2, 3), rows: f32(2, 3, 4) },
      build: (g, { x, ids, rows }) => g.scatterAdd(x!, ids!, rows!),
    },
    {
      // Enough rows for a kernel to share them out between threads.
      name: "many rows of few indices",
      sizes: { n: 3000 },
      inputs: { x: f32(7, 64), ids: below(7, "n"), rows: { ...f32("n", 64), fill: (s) => s.normal() / 50 } },
      build: (g, { x, ids, rows }) => g.scatterAdd(x!, ids!, rows!),
    },
    {
      name: "single elements",
      inputs: { x: f32(7), ids: below(7, 20), rows: f32(20) },
      build: (g, { x, ids, rows }) => g.scatterAdd(x!, ids!, rows!),
    },
  ],
  dimension: [
    { name: "symbolic", sizes: { n: 7 }, inputs: { x: f32(2, "n") }, build: (g, { x }) => g.dimension(x!, 1) },
  ],
  iota: [{ name: "symbolic", sizes: { n: 7 }, inputs: { x: f32(2, "n") }, build: (g, { x }) => g.iota(x!, 1) }],

  cast: [
    ...(["f64", "f16", "bf16"] as const).map(
      (dtype): OpCase => ({
        name: `f32 through ${dtype}`,
        inputs: { x: f32(200) },
        build: (g, { x }) => g.cast(g.cast(x!, dtype), "f32"),
        skip: dtype === "f16" ? noF16 : noKernels,
      }),
    ),
    {
      name: "to integers and back",
      inputs: { x: { ...f32(50), fill: (stream) => stream.normal() * 20 } },
      build: (g, { x }) => [g.cast(x!, "i64"), g.cast(x!, "i32"), g.cast(g.cast(x!, "i64"), "f32")],
    },
    { name: "to bool", inputs: { x: i64(9) }, build: (g, { x }) => g.cast(g.cast(x!, "bool"), "f32") },
    {
      name: "a bf16 weight",
      inputs: { x: weight({ dtype: "bf16", shape: [3, 5] }) },
      build: (g, { x }) => g.cast(x!, "f32"),
      skip: noKernels,
    },
    {
      name: "a f16 weight",
      inputs: { x: weight({ dtype: "f16", shape: [3, 5] }) },
      build: (g, { x }) => g.cast(x!, "f32"),
    },
    {
      name: "a f16 input",
      inputs: { x: { dtype: "f16", shape: [9] } },
      build: (g, { x }) => [x!, g.cast(x!, "f32")],
      skip: noF16,
    },
  ],

  matmul: [
    { name: "matrices", inputs: { a: f32(5, 16), b: f32(16, 7) }, build: (g, { a, b }) => g.matmul(a!, b!) },
    {
      name: "a weight as it is stored",
      sizes: { batch: 2, tokens: 3 },
      inputs: { a: f32("batch", "tokens", 16), b: weight(f32(24, 16)) },
      build: (g, { a, b }) => g.matmul(a!, b!, { transposeB: true }),
    },
    {
      name: "batched, broadcast, transposed",
      sizes: { tokens: 3 },
      inputs: { a: f32(2, 1, "tokens", 8), b: f32(4, 5, 8) },
      build: (g, { a, b }) => g.matmul(a!, b!, { transposeB: true }),
    },
    {
      name: "left transposed",
      inputs: { a: f32(2, 6, 3), b: f32(2, 6, 4) },
      build: (g, { a, b }) => g.matmul(a!, b!, { transposeA: true }),
    },
    {
      name: "f64, both transposed",
      inputs: { a: { dtype: "f64", shape: [6, 3] }, b: { dtype: "f64", shape: [4, 6] } },
      build: (g, { a, b }) => g.matmul(a!, b!, { transposeA: true, transposeB: true }),
      skip: noKernels,
    },
    {
      name: "no rows",
      sizes: { tokens: 0 },
      inputs: { a: f32("tokens", 8), b: f32(8, 4) },
      build: (g, { a, b }) => g.matmul(a!, b!),
    },
  ],
  quantizedMatmul: quantizedCases("quantizedMatmul"),
  dequantize: quantizedCases("dequantize"),

  layerNorm: [
    {
      name: "bias",
      sizes: { n: 3 },
      inputs: { x: f32(2, "n", 48), w: weight(f32(48)), b: weight(f32(48)) },
      build: (g, { x, w, b }) => g.layerNorm(x!, w!, b!, 1e-5),
    },
    {
      name: "no bias",
      inputs: { x: f32(3, 48), w: weight(f32(48)) },
      build: (g, { x, w }) => g.layerNorm(x!, w!, undefined, 1e-6),
    },
  ],
  rmsNorm: [
    {
      name: "tokens",
      sizes: { n: 3 },
      inputs: { x: f32(1, "n", 48), w: weight(f32(48)) },
      build: (g, { x, w }) => g.rmsNorm(x!, w!, 1e-6),
    },
    {
      name: "heads",
      sizes: { n: 3 },
      inputs: { x: f32(1, "n", 4, 16), w: weight(f32(16)) },
      build: (g, { x, w }) => g.rmsNorm(x!, w!, 1e-5),
    },
    {
      name: "no weight",
      sizes: { n: 3 },
      inputs: { x: f32(1, "n", 48) },
      build: (g, { x }) => g.rmsNorm(x!, undefined, 1e-5),
    },
    {
      name: "after a residual sum that is used twice",
      sizes: { n: 3 },
      inputs: { x: f32(1, "n", 48), y: f32(1, "n", 48), w: weight(f32(48)) },
      build: (g, { x, y, w }) => {
        const sum = g.add(x!, y!);
        return [sum, g.rmsNorm(sum, w!, 1e-6)];
      },
    },
  ],
  softmax: [
    { name: "last axis", sizes: { n: 3 }, inputs: { x: f32("n", 30) }, build: (g, { x }) => g.softmax(x!) },
    { name: "middle axis", inputs: { x: f32(2, 5, 3) }, build: (g, { x }) => g.softmax(x!, 1) },
    {
      name: "masked with minus infinity",
      inputs: { x: f32(4, 8) },
      build: (g, { x }) => g.softmax(g.where(g.less(x!, 0.5), x!, -Infinity)),
    },
  ],
  logSoftmax: [
    { name: "last axis", sizes: { n: 3 }, inputs: { x: f32("n", 30) }, build: (g, { x }) => g.logSoftmax(x!) },
  ],
  crossEntropy: [
    {
      name: "tokens",
      sizes: { n: 6 },
      inputs: { x: { ...f32(1, "n", 50), fill: (stream) => stream.normal() * 8 }, targets: below(50, 1, "n") },
      build: (g, { x, targets }) => g.crossEntropy(x!, targets!),
    },
    {
      name: "no tokens",
      sizes: { n: 0 },
      inputs: { x: f32("n", 50), targets: below(50, "n") },
      build: (g, { x, targets }) => g.crossEntropy(x!, targets!),
    },
  ],

  rotary: (["half", "interleaved"] as const).flatMap((layout) => [
    {
      name: `${layout}, whole head`,
      sizes: { tokens: 5 },
      inputs: { x: f32(1, "tokens", 64), cos: turns("tokens", 8, "cos"), sin: turns("tokens", 8, "sin") },
      build: (g, { x, cos, sin }) => g.rotary(x!, cos!, sin!, { numHeads: 4, layout }),
    },
    {
      name: `${layout}, part of the head, batch of 2`,
      sizes: { batch: 2, tokens: 5 },
      inputs: { x: f32("batch", "tokens", 48), cos: turns("tokens", 4, "cos"), sin: turns("tokens", 4, "sin") },
      build: (g, { x, cos, sin }) => g.rotary(x!, cos!, sin!, { numHeads: 3, layout }),
    },
  ]),
  attention: [
    attention(
      "a whole model's: cache, rotation, groups",
      { tokens: 5, capacity: 12, rows: 16 },
      {
        query: f32(1, "tokens", 64),
        key: f32(1, "tokens", 32),
        value: f32(1, "tokens", 32),
        ...cache(1, 2, 16),
        pastLength: exactly(6),
        cos: turns("rows", 8, "cos"),
        sin: turns("rows", 8, "sin"),
      },
      { numHeads: 4, numKeyValueHeads: 2 },
    ),
    attention(
      "one token after a past, packed, window, soft cap",
      { tokens: 1, capacity: 12, rows: 12 },
      {
        query: f32(1, "tokens", 128),
        ...cache(1, 2, 16),
        pastLength: exactly(9),
        cos: turns("rows", 8, "cos"),
        sin: turns("rows", 8, "sin"),
      },
      { numHeads: 4, numKeyValueHeads: 2, window: 4, softcap: 3 },
    ),
    attention(
      "many queries after a past: blocks of a flash kernel that are not whole",
      { tokens: 43, capacity: 80, rows: 80 },
      {
        query: f32(1, "tokens", 128),
        ...cache(1, 2, 16),
        pastLength: exactly(21),
        cos: turns("rows", 8, "cos"),
        sin: turns("rows", 8, "sin"),
      },
      { numHeads: 4, numKeyValueHeads: 2 },
    ),
    attention(
      "sinks",
      { tokens: 5, capacity: 12 },
      {
        query: f32(1, "tokens", 64),
        key: f32(1, "tokens", 32),
        value: f32(1, "tokens", 32),
        ...cache(1, 2, 16),
        pastLength: exactly(6),
        sinks: f32(4),
      },
      { numHeads: 4, numKeyValueHeads: 2 },
    ),
    attention(
      "symbolic batch, no past",
      { batch: 3, tokens: 4 },
      { query: f32("batch", "tokens", 32), key: f32("batch", "tokens", 32), value: f32("batch", "tokens", 32) },
      { numHeads: 4 },
    ),
    attention(
      "a bias over all keys, after a past in a longer buffer",
      { tokens: 3, capacity: 8, total: 7 },
      {
        query: f32(1, "tokens", 64),
        key: f32(1, "tokens", 64),
        value: f32(1, "tokens", 64),
        ...cache(1, 4, 16),
        pastLength: exactly(4),
        bias: f32(1, 4, "tokens", "total"),
      },
      { numHeads: 4 },
    ),
    attention(
      "a bias without a mask (T5's encoder)",
      { tokens: 6 },
      {
        query: f32(1, "tokens", 64),
        key: f32(1, "tokens", 64),
        value: f32(1, "tokens", 64),
        bias: f32(1, 4, "tokens", "tokens"),
      },
      { numHeads: 4, causal: false, scale: 1 },
    ),
    attention(
      "keys of an encoder",
      { tokens: 3, source: 9, batch: 2 },
      { query: f32("batch", "tokens", 64), key: f32("batch", "source", 64), value: f32("batch", "source", 64) },
      { numHeads: 4, causal: false },
    ),
    attention(
      "heads of 12: no fused kernel, cache, rotation, window",
      { tokens: 3, capacity: 8, rows: 9 },
      {
        query: f32(2, "tokens", 48),
        key: f32(2, "tokens", 24),
        value: f32(2, "tokens", 24),
        ...cache(2, 2, 12),
        pastLength: exactly(4),
        cos: turns("rows", 3, "cos"),
        sin: turns("rows", 3, "sin"),
      },
      { numHeads: 4, numKeyValueHeads: 2, window: 3, layout: "interleaved" },
    ),
    attention(
      "f64: no fused kernel",
      { tokens: 4 },
      Object.fromEntries(
        ["query", "key", "value"].map((name) => [name, { dtype: "f64", shape: [1, "tokens", 32] } as InputSpec]),
      ),
      { numHeads: 2, softcap: 2 },
      noKernels,
    ),
    attention(
      "long: many blocks of a flash kernel",
      { tokens: 300, capacity: 700, rows: 900 },
      {
        query: f32(1, "tokens", 64),
        key: f32(1, "tokens", 32),
        value: f32(1, "tokens", 32),
        ...cache(1, 1, 32),
        pastLength: exactly(600),
        cos: turns("rows", 16, "cos"),
        sin: turns("rows", 16, "sin"),
      },
      { numHeads: 2, numKeyValueHeads: 1, window: 100 },
    ),
  ],
  attentionGradient: [
    attentionGradientCase(
      "packed, rotated, groups, blocks of queries",
      { rows: 170 },
      {
        query: f32(2, 150, 128),
        cos: turns("rows", 8, "cos"),
        sin: turns("rows", 8, "sin"),
        dy: f32(2, 150, 64),
      },
      { numHeads: 4, numKeyValueHeads: 2 },
    ),
    attentionGradientCase(
      "a window, probabilities worked out again",
      {},
      { query: f32(2, 140, 96), dy: f32(2, 140, 32) },
      { numHeads: 2, window: 20, recompute: true },
    ),
    attentionGradientCase(
      "a bias for each head, groups, a window",
      {},
      {
        query: f32(2, 130, 64),
        key: f32(2, 130, 32),
        value: f32(2, 130, 32),
        bias: f32(1, 4, 130, 130),
        dy: f32(2, 130, 64),
      },
      { numHeads: 4, numKeyValueHeads: 2, window: 70 },
    ),
    attentionGradientCase(
      "one bias for a batch's row, soft cap, symbolic sizes",
      { batch: 2, tokens: 9 },
      {
        query: f32("batch", "tokens", 32),
        key: f32("batch", "tokens", 32),
        value: f32("batch", "tokens", 32),
        bias: f32("batch", 1, "tokens", "tokens"),
        dy: f32("batch", "tokens", 32),
      },
      { numHeads: 4, softcap: 2 },
    ),
    attentionGradientCase(
      "keys of an encoder",
      { tokens: 3, source: 9, batch: 2 },
      {
        query: f32("batch", "tokens", 64),
        key: f32("batch", "source", 64),
        value: f32("batch", "source", 64),
        dy: f32("batch", "tokens", 64),
      },
      { numHeads: 4, causal: false },
    ),
    attentionGradientCase(
      "f64, heads of 12, interleaved",
      {},
      Object.fromEntries([
        ...["query", "key", "value", "dy"].map((name) => [name, { dtype: "f64", shape: [2, 7, 24] } as InputSpec]),
        ["cos", { ...turns(7, 3, "cos"), dtype: "f64" }],
        ["sin", { ...turns(7, 3, "sin"), dtype: "f64" }],
      ]),
      { numHeads: 2, layout: "interleaved" },
      noKernels,
    ),
  ],
};

/** attentionGradient of seeded inputs; `output` is what attention gives. */
function attentionGradientCase(
  name: string,
  sizes: Readonly<Record<string, number>>,
  inputs: Readonly<Record<string, InputSpec>>,
  attributes: Partial<Attributes["attentionGradient"]> & { numHeads: number },
  skip: NonNullable<OpCase["skip"]> = {},
): OpCase {
  return {
    name,
    sizes,
    inputs,
    skip,
    build: (g, { dy, ...x }) => {
      const full = {
        numKeyValueHeads: attributes.numHeads,
        scale: 0.3,
        softcap: 0,
        causal: true,
        window: null,
        layout: "half" as const,
        ...attributes,
      };
      const { recompute = false, ...options } = full;
      const given = x as unknown as Inputs<"attention", Value>;
      const { output } = g.attention(given, options);
      const all = { ...given, output, outputGradient: dy! };
      return [output, ...g.apply("attentionGradient", all, { ...options, recompute })];
    },
  };
}

/** The tensors of a case, the same for each seed. */
export function caseTensors(opCase: OpCase, seed: number): Record<string, Tensor> {
  const stream = random(seed);
  const out: Record<string, Tensor> = {};
  for (const [name, spec] of Object.entries(opCase.inputs)) {
    const shape = spec.shape.map((dim) => (typeof dim === "number" ? dim : opCase.sizes![dim]!));
    const count = shape.reduce((product, size) => product * size, 1);
    const fill = spec.fill ?? ((s: Random) => (isFloat(spec.dtype) ? s.normal() : s.integer(10)));
    out[name] = fromNumbers(
      spec.dtype,
      shape,
      Float64Array.from({ length: count }, (_, i) => fill(stream, i)),
    );
  }
  return out;
}
