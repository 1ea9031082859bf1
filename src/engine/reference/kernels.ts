// What each op means: one loop nest an op, float64 inside, rounded to the dtype at the end. Total over the op list.
// Nothing here is fast, and nothing is clever; other backends are compared with it, and it with torch.

import type { Attributes, BlockFormat, Inputs, OpName } from "../../graph/index.ts";
import { broadcastStrides, type Dtype, elementCount, isFloat, isInteger, strides } from "../../tensor/index.ts";
import { aroundAxis, eachBroadcast, type Numbers, numbers, type Operand } from "./arrays.ts";
import { attention, attentionGradient, rotary } from "./attention.ts";
import { erf, erfc } from "./erf.ts";

/** An output's dtype and shape in this run. */
export interface Target {
  readonly dtype: Dtype;
  readonly shape: readonly number[];
}

/** Computes an op's outputs, in order. May return an input's own storage where nothing changes. */
export type Kernel<O extends OpName> = (
  inputs: Inputs<O, Operand>,
  attributes: Attributes[O],
  targets: readonly Target[],
) => Numbers | readonly Numbers[];

function make(target: Target): Numbers {
  return numbers(target.dtype, elementCount(target.shape));
}

type Pair = { readonly a: Operand; readonly b: Operand };

function binary(fn: (a: number, b: number, dtype: Dtype) => number) {
  return ({ a, b }: Pair, _: unknown, [target]: readonly Target[]): Numbers => {
    const out = make(target!);
    const steps = [a, b].map((x) => broadcastStrides(x.shape, target!.shape));
    eachBroadcast(target!.shape, steps, (o, i, j) => {
      out[o] = fn(a.data[i]!, b.data[j]!, a.dtype);
    });
    return out;
  };
}

function unary(fn: (x: number) => number) {
  return ({ x }: { readonly x: Operand }, _: unknown, [target]: readonly Target[]): Numbers => {
    const out = make(target!);
    for (let i = 0; i < out.length; i++) out[i] = fn(x.data[i]!);
    return out;
  };
}

/** Folds the elements that share an output, in the order of x, and finishes each by how many there were. */
function reduction(
  start: number,
  fold: (total: number, x: number) => number,
  finish: (total: number, n: number) => number,
) {
  return (
    { x }: { readonly x: Operand },
    { axes }: { readonly axes: readonly number[] },
    [target]: readonly Target[],
  ): Numbers => {
    const totals = foldAxes(x, axes, start, fold);
    const count = axes.reduce((n, axis) => n * x.shape[axis]!, 1);
    const out = make(target!);
    for (let i = 0; i < out.length; i++) out[i] = finish(totals[i]!, count);
    return out;
  };
}

/** Steps of the reduced output for each axis of x: 0 along axes that vanish. */
function reducedSteps(shape: readonly number[], axes: readonly number[]): number[] {
  const kept = shape.map((size, axis) => (axes.includes(axis) ? 1 : size));
  return strides(kept).map((step, axis) => (axes.includes(axis) ? 0 : step));
}

function foldAxes(
  x: Operand,
  axes: readonly number[],
  start: number,
  fold: (total: number, x: number) => number,
): Float64Array {
  const count = elementCount(x.shape.filter((_, axis) => !axes.includes(axis)));
  const totals = new Float64Array(count).fill(start);
  eachBroadcast(x.shape, [reducedSteps(x.shape, axes)], (i, o) => {
    totals[o] = fold(totals[o]!, x.data[i]!);
  });
  return totals;
}

/** ln Σ e^x over axes, shifted by each maximum; −∞ when every element is. */
function logSumExp(x: Operand, axes: readonly number[]): Float64Array {
  const most = foldAxes(x, axes, -Infinity, Math.max);
  const totals = new Float64Array(most.length);
  eachBroadcast(x.shape, [reducedSteps(x.shape, axes)], (i, o) => {
    if (most[o] !== -Infinity) totals[o]! += Math.exp(x.data[i]! - most[o]!);
  });
  return totals.map((total, o) => (most[o] === -Infinity ? -Infinity : most[o]! + Math.log(total)));
}

function index(who: string, value: number, size: number): number {
  if (value < 0 || value >= size) throw new RangeError(`${who}: expected an index in 0 .. ${size - 1}, got ${value}`);
  return value;
}

/** x / √(var + ε) around a centre, for each row of the last axis. */
function normalize(
  x: Operand,
  epsilon: number,
  centred: boolean,
  store: (at: number, column: number, normal: number) => void,
): void {
  const width = x.shape.at(-1)!;
  for (let at = 0; at < x.data.length; at += width) {
    let mean = 0;
    if (centred) for (let i = 0; i < width; i++) mean += x.data[at + i]! / width;
    let variance = 0;
    for (let i = 0; i < width; i++) variance += (x.data[at + i]! - mean) ** 2 / width;
    const scale = 1 / Math.sqrt(variance + epsilon);
    for (let i = 0; i < width; i++) store(at + i, i, (x.data[at + i]! - mean) * scale);
  }
}

/** The value of element i of a row of blocks. */
function blockReader(
  { bits, blockSize }: BlockFormat,
  { blocks, scales, zeroPoints }: { blocks: Operand; scales: Operand; zeroPoints?: Operand | undefined },
): (row: number, i: number) => number {
  const numBlocks = blocks.shape.at(-2)!;
  const bytes = blocks.shape.at(-1)!;
  const zeroBytes = zeroPoints?.shape.at(-1) ?? 0;
  const nibble = (byte: number, i: number): number => (i % 2 === 0 ? byte & 15 : byte >> 4);
  const zero = (row: number, block: number): number => {
    if (zeroPoints === undefined) return 2 ** (bits - 1);
    if (isFloat(zeroPoints.dtype)) return zeroPoints.data[row * numBlocks + block]!;
    if (bits === 8) return zeroPoints.data[row * zeroBytes + block]!;
    return nibble(zeroPoints.data[row * zeroBytes + (block >> 1)]!, block);
  };
  return (row, i) => {
    const block = Math.floor(i / blockSize);
    const within = i % blockSize;
    const at = (row * numBlocks + block) * bytes;
    const q = bits === 8 ? blocks.data[at + within]! : nibble(blocks.data[at + (within >> 1)]!, within);
    return (q - zero(row, block)) * scales.data[row * numBlocks + block]!;
  };
}

const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));

export const referenceKernels: { readonly [O in OpName]: Kernel<O> } = {
  add: binary((a, b) => a + b),
  subtract: binary((a, b) => a - b),
  multiply: binary((a, b) => a * b),
  divide: binary((a, b, dtype) => (isInteger(dtype) ? Math.trunc(a / b) : a / b)),
  power: binary((a, b) => a ** b),
  minimum: binary((a, b) => Math.min(a, b)),
  maximum: binary((a, b) => Math.max(a, b)),

  negate: unary((x) => -x),
  absolute: unary(Math.abs),
  sign: unary(Math.sign),
  floor: unary(Math.floor),
  exp: unary(Math.exp),
  log: unary(Math.log),
  sqrt: unary(Math.sqrt),
  rsqrt: unary((x) => 1 / Math.sqrt(x)),
  reciprocal: unary((x) => 1 / x),
  sin: unary(Math.sin),
  cos: unary(Math.cos),
  tanh: unary(Math.tanh),
  erf: unary(erf),
  relu: unary((x) => Math.max(x, 0)),
  sigmoid: unary(sigmoid),
  silu: unary((x) => x * sigmoid(x)),
  softplus: unary((x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)))),
  gelu({ x }, { approximate }, [target]) {
    const exact = (v: number): number => (v * erfc(-v / Math.SQRT2)) / 2;
    const cubic = (v: number): number => (v * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (v + 0.044715 * v ** 3)))) / 2;
    return unary(approximate === "tanh" ? cubic : exact)({ x }, undefined, [target!]);
  },

  equal: binary((a, b) => (a === b ? 1 : 0)),
  less: binary((a, b) => (a < b ? 1 : 0)),
  lessEqual: binary((a, b) => (a <= b ? 1 : 0)),
  and: binary((a, b) => a & b),
  or: binary((a, b) => a | b),
  not: unary((x) => 1 - x),
  where({ condition, a, b }, _, [target]) {
    const out = make(target!);
    const steps = [condition, a, b].map((x) => broadcastStrides(x.shape, target!.shape));
    eachBroadcast(target!.shape, steps, (o, c, i, j) => {
      out[o] = condition.data[c] !== 0 ? a.data[i]! : b.data[j]!;
    });
    return out;
  },

  reduceSum: reduction(
    0,
    (total, x) => total + x,
    (total) => total,
  ),
  reduceMean: reduction(
    0,
    (total, x) => total + x,
    (total, n) => total / n,
  ),
  reduceMax: reduction(-Infinity, Math.max, (total) => total),
  logSumExp({ x }, { axes }, [target]) {
    const out = make(target!);
    out.set(logSumExp(x, axes));
    return out;
  },
  argMax({ x }, { axis }, [target]) {
    const out = make(target!);
    const { outer, size, inner } = aroundAxis(x.shape, axis);
    for (let o = 0; o < outer; o++) {
      for (let i = 0; i < inner; i++) {
        let best = 0;
        for (let j = 1; j < size; j++) {
          if (x.data[(o * size + j) * inner + i]! > x.data[(o * size + best) * inner + i]!) best = j;
        }
        out[o * inner + i] = best;
      }
    }
    return out;
  },
  cumulativeSum({ x }, { axis, exclusive, reverse }, [target]) {
    const out = make(target!);
    const { outer, size, inner } = aroundAxis(x.shape, axis);
    for (let o = 0; o < outer; o++) {
      for (let i = 0; i < inner; i++) {
        let total = 0;
        for (let step = 0; step < size; step++) {
          const at = (o * size + (reverse ? size - 1 - step : step)) * inner + i;
          const before = total;
          total += x.data[at]!;
          out[at] = exclusive ? before : total;
        }
      }
    }
    return out;
  },

  reshape: ({ x }) => x.data,
  transpose({ x }, { permutation }, [target]) {
    const out = make(target!);
    const own = strides(x.shape);
    eachBroadcast(target!.shape, [permutation.map((axis) => own[axis]!)], (o, i) => {
      out[o] = x.data[i]!;
    });
    return out;
  },
  broadcast({ x }, _, [target]) {
    const out = make(target!);
    eachBroadcast(target!.shape, [broadcastStrides(x.shape, target!.shape)], (o, i) => {
      out[o] = x.data[i]!;
    });
    return out;
  },
  concat({ values }, { axis }, [target]) {
    const out = make(target!);
    const whole = aroundAxis(target!.shape, axis);
    let first = 0;
    for (const value of values) {
      const { outer, size, inner } = aroundAxis(value.shape, axis);
      for (let o = 0; o < outer; o++) {
        const block = value.data.subarray(o * size * inner, (o + 1) * size * inner);
        out.set(block, (o * whole.size + first) * inner);
      }
      first += size;
    }
    return out;
  },
  slice: ({ x }, { axis, start, step }, [target]) => takeRows(x, axis, start, step, target!),
  dynamicSlice({ x, start }, { axis }, [target]) {
    const first = start.data[0]!;
    const size = target!.shape[axis]!;
    if (first < 0 || first + size > x.shape[axis]!) {
      throw new RangeError(
        `dynamicSlice: expected elements within ${x.shape[axis]}, got ${first} .. ${first + size - 1}`,
      );
    }
    return takeRows(x, axis, first, 1, target!);
  },
  updateSlice({ x, rows, start }, { axis }, [target]) {
    const out = make(target!);
    out.set(x.data);
    const { outer, size, inner } = aroundAxis(x.shape, axis);
    const count = rows.shape[axis]!;
    const first = start.data[0]!;
    if (first < 0 || first + count > size) {
      throw new RangeError(`updateSlice: expected rows within ${size}, got ${first} .. ${first + count - 1}`);
    }
    for (let o = 0; o < outer; o++) {
      out.set(rows.data.subarray(o * count * inner, (o + 1) * count * inner), (o * size + first) * inner);
    }
    return out;
  },
  split({ x }, { axis, sizes }, targets) {
    let first = 0;
    return sizes.map((size, i) => {
      const part = takeRows(x, axis, first, 1, targets[i]!);
      first += size;
      return part;
    });
  },
  pad({ x }, { axis, before, value }, [target]) {
    const out = make(target!).fill(value);
    const { outer, size, inner } = aroundAxis(x.shape, axis);
    const wide = target!.shape[axis]!;
    for (let o = 0; o < outer; o++) {
      out.set(x.data.subarray(o * size * inner, (o + 1) * size * inner), (o * wide + before) * inner);
    }
    return out;
  },
  gather({ x, indices }, { axis }, [target]) {
    const out = make(target!);
    const { outer, size, inner } = aroundAxis(x.shape, axis);
    const count = indices.data.length;
    for (let o = 0; o < outer; o++) {
      for (let i = 0; i < count; i++) {
        const from = (o * size + index("gather", indices.data[i]!, size)) * inner;
        out.set(x.data.subarray(from, from + inner), (o * count + i) * inner);
      }
    }
    return out;
  },
  gatherElements({ x, indices }, { axis }, [target]) {
    const out = make(target!);
    const { size, inner } = aroundAxis(x.shape, axis);
    const count = indices.shape[axis]!;
    for (let i = 0; i < out.length; i++) {
      const o = Math.floor(i / (count * inner));
      out[i] = x.data[(o * size + index("gatherElements", indices.data[i]!, size)) * inner + (i % inner)]!;
    }
    return out;
  },
  scatterAdd({ x, indices, rows }, _, [target]) {
    const totals = Float64Array.from(x.data);
    const { size, inner } = aroundAxis(x.shape, 0);
    for (let i = 0; i < indices.data.length; i++) {
      const to = index("scatterAdd", indices.data[i]!, size) * inner;
      for (let j = 0; j < inner; j++) totals[to + j]! += rows.data[i * inner + j]!;
    }
    const out = make(target!);
    out.set(totals);
    return out;
  },
  dimension({ x }, { axis }, [target]) {
    return make(target!).fill(x.shape[axis]!);
  },
  iota(_, __, [target]) {
    return make(target!).map((_zero, i) => i);
  },

  cast({ x }, { dtype }, [target]) {
    const out = make(target!);
    const fn = (v: number): number => (dtype === "bool" ? (v !== 0 ? 1 : 0) : isFloat(dtype) ? v : Math.trunc(v));
    for (let i = 0; i < out.length; i++) out[i] = fn(x.data[i]!);
    return out;
  },

  matmul({ a, b }, { transposeA, transposeB }, [target]) {
    const out = make(target!);
    const [n, m] = target!.shape.slice(-2) as [number, number];
    const k = a.shape.at(transposeA ? -2 : -1)!;
    const batch = target!.shape.slice(0, -2);
    const steps = [a, b].map((x) => {
      const matrix = x.shape.at(-1)! * x.shape.at(-2)!;
      return broadcastStrides(x.shape.slice(0, -2), batch).map((step) => step * matrix);
    });
    const [rowA, stepA] = transposeA ? [1, n] : [k, 1];
    const [stepB, columnB] = transposeB ? [1, k] : [m, 1];
    eachBroadcast(batch, steps, (o, atA, atB) => {
      for (let i = 0; i < n; i++) {
        for (let j = 0; j < m; j++) {
          let sum = 0;
          for (let l = 0; l < k; l++)
            sum += a.data[atA + i * rowA + l * stepA]! * b.data[atB + l * stepB + j * columnB]!;
          out[(o * n + i) * m + j] = sum;
        }
      }
    });
    return out;
  },
  quantizedMatmul({ x, blocks, scales, zeroPoints }, attributes, [target]) {
    const out = make(target!);
    const read = blockReader(attributes, { blocks, scales, zeroPoints });
    const width = x.shape.at(-1)!;
    const rows = blocks.shape[0]!;
    for (let row = 0; row < rows; row++) {
      for (let at = 0; at * width < x.data.length; at++) {
        let sum = 0;
        for (let i = 0; i < width; i++) sum += x.data[at * width + i]! * read(row, i);
        out[at * rows + row] = sum;
      }
    }
    return out;
  },
  dequantize({ blocks, scales, zeroPoints }, attributes, [target]) {
    const out = make(target!);
    const read = blockReader(attributes, { blocks, scales, zeroPoints });
    const width = target!.shape.at(-1)!;
    for (let i = 0; i < out.length; i++) out[i] = read(Math.floor(i / width), i % width);
    return out;
  },

  layerNorm({ x, weight, bias }, { epsilon }, [target]) {
    const out = make(target!);
    normalize(x, epsilon, true, (at, column, normal) => {
      out[at] = normal * weight.data[column]! + (bias?.data[column] ?? 0);
    });
    return out;
  },
  rmsNorm({ x, weight }, { epsilon }, [target]) {
    const out = make(target!);
    normalize(x, epsilon, false, (at, column, normal) => {
      out[at] = normal * (weight?.data[column] ?? 1);
    });
    return out;
  },
  softmax: ({ x }, { axis }, [target]) => overNormalizer(x, axis, target!, (v, total) => Math.exp(v - total)),
  logSoftmax: ({ x }, { axis }, [target]) => overNormalizer(x, axis, target!, (v, total) => v - total),
  crossEntropy({ logits, targets }, _, [target]) {
    const out = make(target!);
    const width = logits.shape.at(-1)!;
    const totals = logSumExp(logits, [logits.shape.length - 1]);
    for (let i = 0; i < out.length; i++) {
      out[i] = totals[i]! - logits.data[i * width + index("crossEntropy", targets.data[i]!, width)]!;
    }
    return out;
  },

  rotary({ x, cos, sin }, attributes, [target]) {
    const out = make(target!);
    out.set(rotary(x, cos, sin, attributes));
    return out;
  },
  attention: (inputs, attributes) => attention(inputs, attributes),
  attentionGradient: (inputs, attributes) => attentionGradient(inputs, attributes),
};

function takeRows(x: Operand, axis: number, start: number, step: number, target: Target): Numbers {
  const out = make(target);
  const { outer, size, inner } = aroundAxis(x.shape, axis);
  const count = target.shape[axis]!;
  for (let o = 0; o < outer; o++) {
    for (let i = 0; i < count; i++) {
      const from = (o * size + start + i * step) * inner;
      out.set(x.data.subarray(from, from + inner), (o * count + i) * inner);
    }
  }
  return out;
}

/** fn(element, ln Σ e^x of its row) along an axis. */
function overNormalizer(x: Operand, axis: number, target: Target, fn: (x: number, total: number) => number): Numbers {
  const out = make(target);
  const totals = logSumExp(x, [axis]);
  eachBroadcast(x.shape, [reducedSteps(x.shape, [axis])], (i, o) => {
    out[i] = fn(x.data[i]!, totals[o]!);
  });
  return out;
}
