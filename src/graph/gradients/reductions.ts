// Gradients of reductions, softmaxes and losses.

import { type Dim, productOfDims } from "../dims.ts";
import { countOver, type GradientRule, type GradientRules, keepAxes } from "./rule.ts";

const reduceSum: GradientRule<"reduceSum"> = (g, { inputs: { x }, attributes: { axes } }, [dy]) =>
  dy === undefined ? {} : { x: g.broadcast(keepAxes(g, dy, x, axes), x.shape) };

const reduceMean: GradientRule<"reduceMean"> = (g, { inputs: { x }, attributes: { axes } }, [dy]) => {
  if (dy === undefined) return {};
  const share = g.divide(keepAxes(g, dy, x, axes), countOver(g, x, axes));
  return { x: g.broadcast(share, x.shape) };
};

/** Equal largest elements share the gradient. */
const reduceMax: GradientRule<"reduceMax"> = (g, { inputs: { x }, outputs: [y], attributes: { axes } }, [dy]) => {
  if (dy === undefined) return {};
  const isMost = g.cast(g.equal(x, keepAxes(g, y!, x, axes)), x.dtype);
  const share = g.divide(keepAxes(g, dy, x, axes), g.sum(isMost, axes, { keepDims: true }));
  return { x: g.multiply(isMost, share) };
};

/** The softmax; 0 where a whole row is −∞. */
const logSumExp: GradientRule<"logSumExp"> = (g, { inputs: { x }, outputs: [y], attributes: { axes } }, [dy]) => {
  if (dy === undefined) return {};
  const total = keepAxes(g, y!, x, axes);
  const shift = g.where(g.equal(total, Number.NEGATIVE_INFINITY), 0, total);
  return { x: g.multiply(keepAxes(g, dy, x, axes), g.exp(g.subtract(x, shift))) };
};

const cumulativeSum: GradientRule<"cumulativeSum"> = (g, { attributes: { axis, exclusive, reverse } }, [dy]) =>
  dy === undefined ? {} : { x: g.cumulativeSum(dy, axis, { exclusive, reverse: !reverse }) };

const softmax: GradientRule<"softmax"> = (g, { outputs: [y], attributes: { axis } }, [dy]) => {
  if (dy === undefined) return {};
  const mean = g.sum(g.multiply(dy, y!), axis, { keepDims: true });
  return { x: g.multiply(y!, g.subtract(dy, mean)) };
};

const logSoftmax: GradientRule<"logSoftmax"> = (g, { outputs: [y], attributes: { axis } }, [dy]) => {
  if (dy === undefined) return {};
  return { x: g.subtract(dy, g.multiply(g.exp(y!), g.sum(dy, axis, { keepDims: true }))) };
};

/** softmax · dy, less dy at each target. The log-softmax is the one that the loss was made of. */
const crossEntropy: GradientRule<"crossEntropy"> = (g, { inputs: { logits, targets } }, [dy]) => {
  if (dy === undefined) return {};
  const vocabulary = logits.shape.at(-1)!;
  const count: Dim = productOfDims(targets.shape);
  const size = g.dimension(logits, logits.shape.length - 1);
  const scaled = g.multiply(g.exp(g.logSoftmax(logits)), g.reshape(dy, [...targets.shape, 1]));
  const flatTargets = g.reshape(targets, [count]);
  const at = g.add(g.multiply(g.iota(flatTargets, 0), size), flatTargets);
  const flat = g.reshape(scaled, [productOfDims([count, vocabulary])]);
  const out = g.scatterAdd(flat, at, g.reshape(g.negate(dy), [count]));
  return { logits: g.reshape(out, logits.shape) };
};

export const reductions: GradientRules<
  "reduceSum" | "reduceMean" | "reduceMax" | "logSumExp" | "cumulativeSum" | "softmax" | "logSoftmax" | "crossEntropy"
> = {
  reduceSum,
  reduceMean,
  reduceMax,
  logSumExp,
  cumulativeSum,
  softmax,
  logSoftmax,
  crossEntropy,
};
