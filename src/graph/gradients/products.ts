// Gradients of matrix products and of normalisation.

import type { GraphBuilder } from "../builder.ts";
import type { Dim } from "../dims.ts";
import type { BlockFormat, Inputs, Value } from "../ops.ts";
import { type GradientRule, type GradientRules, unbroadcast } from "./rule.ts";

/** [.., N] as a matrix of rows. */
function asRows(g: GraphBuilder, x: Value): Value {
  return x.shape.length === 2 ? x : g.reshape(x, [-1, x.shape.at(-1)!]);
}

const matmul: GradientRule<"matmul"> = (
  g,
  { inputs: { a, b }, attributes: { transposeA, transposeB } },
  [dy],
  { needs },
) => {
  if (dy === undefined) return {};
  let ofA: Value | undefined;
  let ofB: Value | undefined;
  if (needs(a)) {
    ofA = transposeA
      ? g.matmul(b, dy, { transposeA: transposeB, transposeB: true })
      : g.matmul(dy, b, { transposeB: !transposeB });
    ofA = unbroadcast(g, ofA, a);
  }
  if (needs(b)) {
    // A weight under many rows: one product of all rows instead of a sum over products.
    const isWeight = b.shape.length === 2 && !transposeA;
    const [x, y] = isWeight ? [asRows(g, a), asRows(g, dy)] : [a, dy];
    ofB = transposeB
      ? g.matmul(y, x, { transposeA: true, transposeB: transposeA })
      : g.matmul(x, y, { transposeA: !transposeA });
    ofB = unbroadcast(g, ofB, b);
  }
  return { a: ofA, b: ofB };
};

type Blocks = Inputs<"dequantize", Value>;

/** Gradients of scales and zero points from that of the numbers [.., K]: (q − z)·s. */
function ofBlocks(
  g: GraphBuilder,
  { blocks, scales, zeroPoints }: Blocks,
  { bits, blockSize }: BlockFormat,
  dy: Value,
  needs: (value: Value | undefined) => boolean,
): { scales?: Value; zeroPoints?: Value } {
  const byBlock: Dim[] = [...scales.shape, blockSize];
  const out: { scales?: Value; zeroPoints?: Value } = {};
  if (needs(scales)) {
    const ones = g.broadcast(g.scalar(scales.dtype, 1), scales.shape);
    const centred = g.dequantize({ blocks, scales: ones, zeroPoints }, { bits, blockSize });
    out.scales = g.sum(g.reshape(g.multiply(dy, centred), byBlock), -1);
  }
  if (zeroPoints !== undefined && needs(zeroPoints)) {
    out.zeroPoints = g.negate(g.multiply(g.sum(g.reshape(dy, byBlock), -1), scales));
  }
  return out;
}

const dequantize: GradientRule<"dequantize"> = (g, { inputs, attributes }, [dy], { needs }) =>
  dy === undefined ? {} : ofBlocks(g, inputs, attributes, dy, needs);

const quantizedMatmul: GradientRule<"quantizedMatmul"> = (g, { inputs, attributes }, [dy], { needs }) => {
  if (dy === undefined) return {};
  const { x, ...weight } = inputs;
  const { bits, blockSize } = attributes;
  const ofX = needs(x) ? g.matmul(dy, g.dequantize(weight, { bits, blockSize })) : undefined;
  if (!needs(weight.scales) && !needs(weight.zeroPoints)) return { x: ofX };
  const ofWeight = g.matmul(asRows(g, dy), asRows(g, x), { transposeA: true });
  return { x: ofX, ...ofBlocks(g, weight, attributes, ofWeight, needs) };
};

/** Σ over every row of [.., C], as [C]. */
function sumOfRows(g: GraphBuilder, x: Value): Value {
  return unbroadcast(g, x, { dtype: x.dtype, shape: x.shape.slice(-1) });
}

/** With r = 1/√(mean(x²) + ε), n = x·r: dx = r·(dn − n·mean(dn·n)). */
const rmsNorm: GradientRule<"rmsNorm"> = (
  g,
  { inputs: { x, weight }, outputs: [y], attributes: { epsilon } },
  [dy],
  { needs },
) => {
  if (dy === undefined) return {};
  const scale = g.rsqrt(g.add(g.mean(g.multiply(x, x), -1, { keepDims: true }), epsilon));
  const normal = weight === undefined ? y! : g.multiply(x, scale);
  const ofNormal = weight === undefined ? dy : g.multiply(dy, weight);
  return {
    x: needs(x) ? throughScale(g, ofNormal, normal, scale) : undefined,
    weight: needs(weight) ? sumOfRows(g, g.multiply(dy, normal)) : undefined,
  };
};

/** r·(dn − n·mean(dn·n)). */
function throughScale(g: GraphBuilder, ofNormal: Value, normal: Value, scale: Value): Value {
  const mean = g.mean(g.multiply(ofNormal, normal), -1, { keepDims: true });
  return g.multiply(g.subtract(ofNormal, g.multiply(normal, mean)), scale);
}

/** The same after the mean of dn is taken off: what a shift of a row does is lost in the mean. */
const layerNorm: GradientRule<"layerNorm"> = (
  g,
  { inputs: { x, weight, bias }, attributes: { epsilon } },
  [dy],
  { needs },
) => {
  if (dy === undefined) return {};
  const centred = g.subtract(x, g.mean(x, -1, { keepDims: true }));
  const scale = g.rsqrt(g.add(g.mean(g.multiply(centred, centred), -1, { keepDims: true }), epsilon));
  const normal = g.multiply(centred, scale);
  const ofNormal = g.multiply(dy, weight);
  return {
    x: needs(x)
      ? throughScale(g, g.subtract(ofNormal, g.mean(ofNormal, -1, { keepDims: true })), normal, scale)
      : undefined,
    weight: needs(weight) ? sumOfRows(g, g.multiply(dy, normal)) : undefined,
    bias: needs(bias) ? sumOfRows(g, dy) : undefined,
  };
};

export const products: GradientRules<"matmul" | "dequantize" | "quantizedMatmul" | "rmsNorm" | "layerNorm"> = {
  matmul,
  dequantize,
  quantizedMatmul,
  rmsNorm,
  layerNorm,
};
