// Shape and dtype rules: what an op's outputs are, given its inputs. Every rule throws RangeError or TypeError with
// "expected …, got …"; the builder puts the path in front. Sizes may be symbolic (dims.ts); equal means the same text.

import { type Dtype, formatShape, isFloat } from "../tensor/index.ts";
import { addDims, type Dim, divideDims, productOfDims, subtractDims } from "./dims.ts";
import type { Attributes, BlockFormat, Inputs, OpName, ValueType } from "./ops.ts";

export type ShapeRule<O extends OpName> = (inputs: Inputs<O, ValueType>, attributes: Attributes[O]) => ValueType[];

/** A value's type as messages print it: "f32[tokens, 64]". */
export function formatType(type: ValueType): string {
  return `${type.dtype}${formatShape(type.shape)}`;
}

function expectFloat(name: string, x: ValueType): void {
  if (!isFloat(x.dtype)) throw new TypeError(`expected ${name} to be a float, got ${formatType(x)}`);
}

function expectDtype(name: string, x: ValueType, dtype: Dtype): void {
  if (x.dtype !== dtype) throw new TypeError(`expected ${name} to be ${dtype}, got ${formatType(x)}`);
}

function expectSame(a: ValueType, b: ValueType): void {
  if (a.dtype !== b.dtype) {
    throw new TypeError(`expected one dtype on both sides, got ${formatType(a)} and ${formatType(b)}; cast one`);
  }
}

function expectExactly(name: string, x: ValueType, shape: readonly Dim[]): void {
  if (x.shape.length !== shape.length || x.shape.some((dim, axis) => dim !== shape[axis])) {
    throw new RangeError(`expected ${name} to be ${formatShape(shape)}, got ${formatType(x)}`);
  }
}

function expectScalar(name: string, x: ValueType): void {
  expectDtype(name, x, "i64");
  expectExactly(name, x, []);
}

function expectRank(name: string, x: ValueType, rank: number): void {
  if (x.shape.length !== rank) throw new RangeError(`expected ${name} to have ${rank} axes, got ${formatType(x)}`);
}

function expectAxis(axis: number, x: ValueType): void {
  if (!Number.isInteger(axis) || axis < 0 || axis >= x.shape.length) {
    throw new RangeError(`expected an axis of ${formatType(x)}, got ${axis}`);
  }
}

/** A size that must be a number here. */
function known(name: string, dim: Dim | undefined): number {
  if (typeof dim !== "number") throw new RangeError(`expected ${name} to be a fixed size, got ${dim}`);
  return dim;
}

/** The shape that both broadcast to; a symbolic size stretches only from a literal 1. */
export function broadcastDims(a: readonly Dim[], b: readonly Dim[]): Dim[] {
  const rank = Math.max(a.length, b.length);
  const out = new Array<Dim>(rank);
  for (let i = 1; i <= rank; i++) {
    const x = a[a.length - i] ?? 1;
    const y = b[b.length - i] ?? 1;
    if (x !== y && x !== 1 && y !== 1) {
      throw new RangeError(`expected sizes that agree or are 1, got ${formatShape(a)} and ${formatShape(b)}`);
    }
    out[rank - i] = x === 1 ? y : x;
  }
  return out;
}

const arithmetic = ({ a, b }: { a: ValueType; b: ValueType }): ValueType[] => {
  expectSame(a, b);
  if (a.dtype === "bool" || a.dtype === "u4") throw new TypeError(`expected numbers, got ${formatType(a)}`);
  return [{ dtype: a.dtype, shape: broadcastDims(a.shape, b.shape) }];
};

const floatArithmetic = ({ a, b }: { a: ValueType; b: ValueType }): ValueType[] => {
  expectFloat("a", a);
  return arithmetic({ a, b });
};

const comparison = ({ a, b }: { a: ValueType; b: ValueType }): ValueType[] => {
  expectSame(a, b);
  return [{ dtype: "bool", shape: broadcastDims(a.shape, b.shape) }];
};

const logic = ({ a, b }: { a: ValueType; b: ValueType }): ValueType[] => {
  expectDtype("a", a, "bool");
  expectDtype("b", b, "bool");
  return [{ dtype: "bool", shape: broadcastDims(a.shape, b.shape) }];
};

const unary = ({ x }: { x: ValueType }): ValueType[] => {
  expectFloat("x", x);
  return [{ dtype: x.dtype, shape: x.shape }];
};

/** Also on signed integers. */
const signed = ({ x }: { x: ValueType }): ValueType[] => {
  if (x.dtype === "bool" || x.dtype === "u8" || x.dtype === "u4") {
    throw new TypeError(`expected a float or a signed integer, got ${formatType(x)}`);
  }
  return [{ dtype: x.dtype, shape: x.shape }];
};

function reduced(x: ValueType, axes: readonly number[], keepDims: boolean): Dim[] {
  if (axes.length === 0) throw new RangeError("expected at least one axis");
  for (const axis of axes) expectAxis(axis, x);
  if (new Set(axes).size !== axes.length) throw new RangeError(`expected each axis once, got ${formatShape(axes)}`);
  if (keepDims) return x.shape.map((dim, axis) => (axes.includes(axis) ? 1 : dim));
  return x.shape.filter((_, axis) => !axes.includes(axis));
}

const reduction = (
  { x }: { x: ValueType },
  { axes, keepDims }: { axes: readonly number[]; keepDims: boolean },
): ValueType[] => {
  expectFloat("x", x);
  return [{ dtype: x.dtype, shape: reduced(x, axes, keepDims) }];
};

const alongAxis = ({ x }: { x: ValueType }, { axis }: { axis: number }): ValueType[] => {
  expectFloat("x", x);
  expectAxis(axis, x);
  return [{ dtype: x.dtype, shape: x.shape }];
};

/** Checks blocks [.., rows, nBlocks, bytes], scales [.., rows, nBlocks] and zero points; returns [..rows] and the row's
 *  width in elements. */
function blockRows(
  format: BlockFormat,
  blocks: ValueType,
  scales: ValueType,
  zeroPoints: ValueType | undefined,
): { rows: readonly Dim[]; width: number } {
  const { bits, blockSize } = format;
  if (bits !== 4 && bits !== 8) throw new RangeError(`expected bits to be 4 or 8, got ${bits}`);
  if (!Number.isInteger(Math.log2(blockSize)) || blockSize < 16) {
    throw new RangeError(`expected blockSize to be a power of two of at least 16, got ${blockSize}`);
  }
  expectDtype("blocks", blocks, "u8");
  const bytes = (blockSize * bits) / 8;
  if (blocks.shape.length < 2 || blocks.shape.at(-1) !== bytes) {
    throw new RangeError(`expected blocks [rows, blocks a row, ${bytes} bytes], got ${formatType(blocks)}`);
  }
  const numBlocks = known("the count of blocks", blocks.shape.at(-2));
  const rows = blocks.shape.slice(0, -2);
  expectFloat("scales", scales);
  expectExactly("scales", scales, [...rows, numBlocks]);
  if (zeroPoints !== undefined) {
    if (zeroPoints.dtype === "u8") {
      expectExactly("zeroPoints (u8, packed as the weights)", zeroPoints, [...rows, Math.ceil((numBlocks * bits) / 8)]);
    } else {
      expectSame(zeroPoints, scales);
      expectExactly("zeroPoints", zeroPoints, [...rows, numBlocks]);
    }
  }
  return { rows, width: numBlocks * blockSize };
}

function expectHeads(name: string, x: ValueType, heads: number): number {
  const width = known(`the last axis of ${name}`, x.shape.at(-1));
  if (!Number.isInteger(heads) || heads < 1 || width % heads !== 0) {
    throw new RangeError(`expected ${name} to be a whole number of channels for ${heads} heads, got ${formatType(x)}`);
  }
  return width / heads;
}

function expectTables(cos: ValueType, sin: ValueType, headDim: number, like: ValueType): void {
  expectRank("cos", cos, 2);
  expectSame(cos, like);
  expectSame(sin, like);
  expectExactly("sin (as cos)", sin, cos.shape);
  const pairs = known("the pairs of cos", cos.shape[1]);
  if (pairs < 1 || 2 * pairs > headDim) {
    throw new RangeError(`expected cos to have 1 .. ${headDim / 2} pairs for a head of ${headDim}, got ${pairs}`);
  }
}

export const shapeRules: { readonly [O in OpName]: ShapeRule<O> } = {
  add: arithmetic,
  subtract: arithmetic,
  multiply: arithmetic,
  divide: arithmetic,
  power: floatArithmetic,
  minimum: arithmetic,
  maximum: arithmetic,

  negate: signed,
  absolute: signed,
  sign: signed,
  floor: unary,
  exp: unary,
  log: unary,
  sqrt: unary,
  rsqrt: unary,
  reciprocal: unary,
  sin: unary,
  cos: unary,
  tanh: unary,
  erf: unary,
  relu: unary,
  sigmoid: unary,
  silu: unary,
  softplus: unary,
  gelu: unary,

  equal: comparison,
  less: comparison,
  lessEqual: comparison,
  and: logic,
  or: logic,
  not({ x }) {
    expectDtype("x", x, "bool");
    return [x];
  },
  where({ condition, a, b }) {
    expectDtype("condition", condition, "bool");
    expectSame(a, b);
    return [{ dtype: a.dtype, shape: broadcastDims(condition.shape, broadcastDims(a.shape, b.shape)) }];
  },

  reduceSum: reduction,
  reduceMean: reduction,
  reduceMax: reduction,
  logSumExp: reduction,
  argMax({ x }, { axis, keepDims }) {
    expectFloat("x", x);
    return [{ dtype: "i64", shape: reduced(x, [axis], keepDims) }];
  },
  cumulativeSum: alongAxis,

  reshape({ x }, { shape }) {
    const [had, wanted] = [productOfDims(x.shape), productOfDims(shape)];
    if (had !== wanted) {
      throw new RangeError(
        `expected a shape of ${had} elements for ${formatType(x)}, got ${formatShape(shape)} of ${wanted}`,
      );
    }
    return [{ dtype: x.dtype, shape }];
  },
  transpose({ x }, { permutation }) {
    const sorted = [...permutation].sort((a, b) => a - b);
    if (permutation.length !== x.shape.length || sorted.some((axis, i) => axis !== i)) {
      throw new RangeError(`expected a permutation of the axes of ${formatType(x)}, got ${formatShape(permutation)}`);
    }
    return [{ dtype: x.dtype, shape: permutation.map((axis) => x.shape[axis]!) }];
  },
  broadcast({ x }, { shape }) {
    const out = broadcastDims(x.shape, shape);
    if (out.length !== shape.length || out.some((dim, axis) => dim !== shape[axis])) {
      throw new RangeError(`expected a shape that ${formatType(x)} stretches to, got ${formatShape(shape)}`);
    }
    return [{ dtype: x.dtype, shape }];
  },
  concat({ values }, { axis }) {
    const first = values[0];
    if (first === undefined) throw new RangeError("expected at least one value");
    expectAxis(axis, first);
    let size: Dim = 0;
    for (const value of values) {
      expectSame(first, value);
      expectExactly(
        "every value alike but along the axis",
        value,
        first.shape.map((dim, i) => (i === axis ? (value.shape[axis] ?? dim) : dim)),
      );
      size = addDims(size, value.shape[axis]!);
    }
    return [{ dtype: first.dtype, shape: first.shape.map((dim, i) => (i === axis ? size : dim)) }];
  },
  slice({ x }, { axis, start, end, step }) {
    expectAxis(axis, x);
    const size = x.shape[axis]!;
    const outside = typeof size === "number" && typeof end === "number" && (end > size || start > end);
    if (!Number.isInteger(start) || start < 0 || !Number.isInteger(step) || step < 1 || outside) {
      throw new RangeError(
        `expected 0 ≤ start ≤ end ≤ ${size} and a step of at least 1, got ${start} .. ${end} by ${step}`,
      );
    }
    const span = subtractDims(end, start);
    const out = step === 1 ? span : Math.ceil(known("a slice with a step", span) / step);
    return [{ dtype: x.dtype, shape: x.shape.map((dim, i) => (i === axis ? out : dim)) }];
  },
  dynamicSlice({ x, start }, { axis, size }) {
    expectAxis(axis, x);
    expectScalar("start", start);
    return [{ dtype: x.dtype, shape: x.shape.map((dim, i) => (i === axis ? size : dim)) }];
  },
  updateSlice({ x, rows, start }, { axis }) {
    expectAxis(axis, x);
    expectScalar("start", start);
    expectSame(x, rows);
    expectExactly(
      "rows like x but along the axis",
      rows,
      x.shape.map((dim, i) => (i === axis ? (rows.shape[axis] ?? dim) : dim)),
    );
    return [x];
  },
  split({ x }, { axis, sizes }) {
    expectAxis(axis, x);
    const sum = sizes.reduce((total, size) => total + size, 0);
    if (sum !== x.shape[axis] || sizes.some((size) => !Number.isInteger(size) || size < 0)) {
      throw new RangeError(`expected sizes that add up to ${x.shape[axis]}, got ${formatShape(sizes)}`);
    }
    return sizes.map((size) => ({ dtype: x.dtype, shape: x.shape.map((dim, i) => (i === axis ? size : dim)) }));
  },
  pad({ x }, { axis, before, after }) {
    expectFloat("x", x);
    expectAxis(axis, x);
    if (![before, after].every((count) => Number.isInteger(count) && count >= 0)) {
      throw new RangeError(`expected counts of at least 0, got ${before} and ${after}`);
    }
    return [{ dtype: x.dtype, shape: x.shape.map((dim, i) => (i === axis ? addDims(dim, before + after) : dim)) }];
  },
  gather({ x, indices }, { axis }) {
    expectAxis(axis, x);
    expectDtype("indices", indices, "i64");
    return [{ dtype: x.dtype, shape: [...x.shape.slice(0, axis), ...indices.shape, ...x.shape.slice(axis + 1)] }];
  },
  gatherElements({ x, indices }, { axis }) {
    expectAxis(axis, x);
    expectDtype("indices", indices, "i64");
    expectExactly(
      "indices like x but along the axis",
      indices,
      x.shape.map((dim, i) => (i === axis ? (indices.shape[axis] ?? dim) : dim)),
    );
    return [{ dtype: x.dtype, shape: indices.shape }];
  },
  scatterAdd({ x, indices, rows }) {
    expectFloat("x", x);
    expectSame(x, rows);
    expectDtype("indices", indices, "i64");
    if (x.shape.length === 0) throw new RangeError("expected x to have an axis, got a scalar");
    expectExactly("rows (a slice of x for each index)", rows, [...indices.shape, ...x.shape.slice(1)]);
    return [x];
  },
  dimension({ x }, { axis }) {
    expectAxis(axis, x);
    return [{ dtype: "i64", shape: [] }];
  },
  iota({ x }, { axis }) {
    expectAxis(axis, x);
    return [{ dtype: "i64", shape: [x.shape[axis]!] }];
  },

  cast({ x }, { dtype }) {
    if (dtype === "u4" || x.dtype === "u4") throw new TypeError("expected dtypes of whole bytes, got u4");
    return [{ dtype, shape: x.shape }];
  },

  matmul({ a, b }, { transposeA, transposeB }) {
    expectFloat("a", a);
    expectSame(a, b);
    if (a.shape.length < 2 || b.shape.length < 2) {
      throw new RangeError(`expected two axes or more on each side, got ${formatType(a)} and ${formatType(b)}`);
    }
    const [n, k] = [a.shape.at(transposeA ? -1 : -2)!, a.shape.at(transposeA ? -2 : -1)!];
    const [k2, m] = [b.shape.at(transposeB ? -1 : -2)!, b.shape.at(transposeB ? -2 : -1)!];
    if (k !== k2) {
      const marks = `${formatType(a)}${transposeA ? "ᵀ" : ""} and ${formatType(b)}${transposeB ? "ᵀ" : ""}`;
      throw new RangeError(`expected inner sizes that agree, got ${k} and ${k2} of ${marks}`);
    }
    return [{ dtype: a.dtype, shape: [...broadcastDims(a.shape.slice(0, -2), b.shape.slice(0, -2)), n, m] }];
  },
  quantizedMatmul({ x, blocks, scales, zeroPoints }, attributes) {
    expectFloat("x", x);
    expectRank("blocks", blocks, 3);
    const { rows, width } = blockRows(attributes, blocks, scales, zeroPoints);
    expectSame(scales, x);
    if (x.shape.length < 2 || x.shape.at(-1) !== width) {
      throw new RangeError(`expected x to have two axes or more, the last of ${width}, got ${formatType(x)}`);
    }
    return [{ dtype: x.dtype, shape: [...x.shape.slice(0, -1), rows[0]!] }];
  },
  dequantize({ blocks, scales, zeroPoints }, attributes) {
    const { rows, width } = blockRows(attributes, blocks, scales, zeroPoints);
    return [{ dtype: scales.dtype, shape: [...rows, width] }];
  },

  layerNorm({ x, weight, bias }) {
    expectFloat("x", x);
    expectSame(x, weight);
    expectExactly("weight", weight, x.shape.slice(-1));
    if (bias !== undefined) {
      expectSame(x, bias);
      expectExactly("bias", bias, x.shape.slice(-1));
    }
    return [x];
  },
  rmsNorm({ x, weight }) {
    expectFloat("x", x);
    if (x.shape.length === 0) throw new RangeError("expected x to have an axis, got a scalar");
    if (weight !== undefined) {
      expectSame(x, weight);
      expectExactly("weight", weight, x.shape.slice(-1));
    }
    return [x];
  },
  softmax: alongAxis,
  logSoftmax: alongAxis,
  crossEntropy({ logits, targets }) {
    expectFloat("logits", logits);
    expectDtype("targets", targets, "i64");
    expectExactly("targets", targets, logits.shape.slice(0, -1));
    return [{ dtype: logits.dtype, shape: targets.shape }];
  },

  rotary({ x, cos, sin }, { numHeads }) {
    expectFloat("x", x);
    expectRank("x", x, 3);
    expectTables(cos, sin, expectHeads("x", x, numHeads), x);
    if (cos.shape[0] !== x.shape[1]) {
      throw new RangeError(`expected cos to have a row for each of ${x.shape[1]} tokens, got ${formatType(cos)}`);
    }
    return [x];
  },
  attention({ query, key, value, pastKey, pastValue, pastLength, cos, sin, bias, sinks }, attributes) {
    const { numHeads, numKeyValueHeads, causal, window, softcap, scale } = attributes;
    expectFloat("query", query);
    expectRank("query", query, 3);
    if (!Number.isInteger(numKeyValueHeads) || numKeyValueHeads < 1 || numHeads % numKeyValueHeads !== 0) {
      throw new RangeError(
        `expected numHeads to be a multiple of numKeyValueHeads, got ${numHeads} and ${numKeyValueHeads}`,
      );
    }
    if (!Number.isFinite(scale) || !Number.isFinite(softcap) || softcap < 0) {
      throw new RangeError(`expected a finite scale and a softcap of at least 0, got ${scale} and ${softcap}`);
    }
    if (window !== null && (!causal || !Number.isInteger(window) || window < 1)) {
      throw new RangeError(`expected a window of at least 1 key, with causal attention, got ${window}`);
    }
    if ((key === undefined) !== (value === undefined)) throw new RangeError("expected key and value together");
    const packed = key === undefined;
    const headDim = expectHeads("query", query, packed ? numHeads + 2 * numKeyValueHeads : numHeads);
    const [batch, tokens] = query.shape as [Dim, Dim];
    let newKeys = tokens;
    if (key !== undefined && value !== undefined) {
      expectSame(query, key);
      expectSame(query, value);
      newKeys = key.shape[1] ?? 0;
      expectExactly("key", key, [batch, newKeys, numKeyValueHeads * headDim]);
      expectExactly("value", value, key.shape);
    }
    if (newKeys !== tokens && (causal || cos !== undefined)) {
      throw new RangeError(
        `expected as many keys as queries with causal or rotary attention, got ${newKeys} and ${tokens}`,
      );
    }
    if ((pastKey === undefined) !== (pastValue === undefined)) {
      throw new RangeError("expected pastKey and pastValue together");
    }
    if (pastLength !== undefined && pastKey === undefined) {
      throw new RangeError("expected pastLength only with pastKey and pastValue");
    }
    let past: Dim = 0;
    if (pastKey !== undefined && pastValue !== undefined) {
      past = pastKey.shape[2] ?? 0;
      for (const [name, cache] of [
        ["pastKey", pastKey],
        ["pastValue", pastValue],
      ] as const) {
        expectSame(query, cache);
        expectExactly(name, cache, [batch, numKeyValueHeads, past, headDim]);
      }
    }
    if (pastLength !== undefined) expectScalar("pastLength", pastLength);
    if ((cos === undefined) !== (sin === undefined)) throw new RangeError("expected cos and sin together");
    if (cos !== undefined && sin !== undefined) {
      expectTables(cos, sin, headDim, query);
      const [rows] = cos.shape;
      const least = pastLength === undefined ? addDims(past, newKeys) : newKeys;
      if (typeof rows === "number" && typeof least === "number" && rows < least) {
        throw new RangeError(`expected cos to have a row for each of ${least} positions, got ${formatType(cos)}`);
      }
    }
    if (bias !== undefined) {
      expectSame(query, bias);
      expectRank("bias", bias, 4);
      const fits =
        (bias.shape[0] === 1 || bias.shape[0] === batch) &&
        (bias.shape[1] === 1 || bias.shape[1] === numHeads) &&
        bias.shape[2] === tokens &&
        // With pastLength the count of keys is known to the run alone.
        (pastLength !== undefined || bias.shape[3] === addDims(past, newKeys));
      if (!fits) {
        const keys = pastLength !== undefined ? "pastLength + new keys" : addDims(past, newKeys);
        throw new RangeError(
          `expected bias [1 or ${batch}, 1 or ${numHeads}, ${tokens}, ${keys}], got ${formatType(bias)}`,
        );
      }
    }
    if (sinks !== undefined) {
      expectSame(query, sinks);
      expectExactly("sinks", sinks, [numHeads]);
    }
    const rows: ValueType = { dtype: query.dtype, shape: [batch, numKeyValueHeads, newKeys, headDim] };
    return [{ dtype: query.dtype, shape: [batch, tokens, numHeads * headDim] }, rows, rows];
  },
  attentionGradient({ output, outputGradient, ...inputs }, attributes) {
    const [forward] = shapeRules.attention(inputs, attributes);
    for (const [name, value] of [
      ["output", output],
      ["outputGradient", outputGradient],
    ] as const) {
      expectSame(inputs.query, value);
      expectExactly(name, value, forward!.shape);
    }
    return [inputs.query, inputs.key, inputs.value, inputs.bias].filter((value) => value !== undefined);
  },
};

/** The dims of a shape with one −1 replaced by what is left over. */
export function inferReshape(x: ValueType, shape: readonly Dim[]): Dim[] {
  const at = shape.indexOf(-1);
  if (at < 0) return [...shape];
  const rest = divideDims(productOfDims(x.shape), productOfDims(shape.filter((_, axis) => axis !== at)));
  if (rest === undefined) {
    throw new RangeError(`expected sizes that divide those of ${formatType(x)}, got ${formatShape(shape)}`);
  }
  return shape.map((dim, axis) => (axis === at ? rest : dim));
}
