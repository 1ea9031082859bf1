// Attention and rotation from smaller ops, as nodes of the same graph: what a backend without a fused kernel runs, and
// what gradients go through. Memory is quadratic: scores [B, H, T, S] exist. The fused op's meaning is the reference
// kernel's; the conformance suite compares both.

import type { GraphBuilder } from "./builder.ts";
import { addDims, type Dim, subtractDims } from "./dims.ts";
import type { AttentionAttributes, Attributes, Inputs, Value } from "./ops.ts";

/** rotary from slices and products: (a, b) → (a·cos − b·sin, b·cos + a·sin), the channels from 2P on unchanged. */
export function decomposeRotary(
  g: GraphBuilder,
  { x, cos, sin }: Inputs<"rotary", Value>,
  { numHeads, layout }: Attributes["rotary"],
): Value {
  const [batch, tokens, width] = x.shape as [Dim, Dim, number];
  const headDim = width / numHeads;
  const pairs = cos.shape[1] as number;
  const heads = g.reshape(x, [batch, tokens, numHeads, headDim]);
  const turned = 2 * pairs === headDim ? heads : g.slice(heads, 3, 0, 2 * pairs);
  // A table row serves every head: [T, 1, P].
  const c = g.reshape(cos, [tokens, 1, pairs]);
  const s = g.reshape(sin, [tokens, 1, pairs]);
  const turn = (a: Value, b: Value): [Value, Value] => [
    g.subtract(g.multiply(a, c), g.multiply(b, s)),
    g.add(g.multiply(b, c), g.multiply(a, s)),
  ];
  let out: Value;
  if (layout === "half") {
    const [a, b] = g.split(turned, [pairs, pairs], 3) as [Value, Value];
    out = g.concat(turn(a, b), 3);
  } else {
    const [a, b] = [g.slice(turned, 3, 0, 2 * pairs, 2), g.slice(turned, 3, 1, 2 * pairs, 2)];
    const lanes = turn(a, b).map((lane) => g.reshape(lane, [batch, tokens, numHeads, pairs, 1]));
    out = g.reshape(g.concat(lanes, 4), [batch, tokens, numHeads, 2 * pairs]);
  }
  if (turned !== heads) out = g.concat([out, g.slice(heads, 3, 2 * pairs, headDim)], 3);
  return g.reshape(out, x.shape);
}

/** attention from matrix products and a softmax; the same inputs, attributes and outputs as the op. */
export function decomposeAttention(
  g: GraphBuilder,
  inputs: Inputs<"attention", Value>,
  attributes: AttentionAttributes,
): { output: Value; newKey: Value; newValue: Value } {
  const { numHeads, numKeyValueHeads, scale, softcap, causal, window, layout } = attributes;
  const { pastKey, pastValue, pastLength, cos, sin, bias, sinks } = inputs;
  const [batch, tokens] = inputs.query.shape as [Dim, Dim, number];
  const groups = numHeads / numKeyValueHeads;
  let { query, key, value } = inputs;
  if (key === undefined || value === undefined) {
    const headDim = (query.shape[2] as number) / (numHeads + 2 * numKeyValueHeads);
    const sizes = [numHeads * headDim, numKeyValueHeads * headDim, numKeyValueHeads * headDim];
    [query, key, value] = g.split(query, sizes, 2) as [Value, Value, Value];
  }
  const headDim = (query.shape[2] as number) / numHeads;
  const newKeys = key.shape[1]!;

  if (cos !== undefined && sin !== undefined) {
    const start = pastLength ?? (pastKey === undefined ? g.scalar("i64", 0) : g.dimension(pastKey, 2));
    const rows = { cos: g.dynamicSlice(cos, 0, start, tokens), sin: g.dynamicSlice(sin, 0, start, tokens) };
    query = decomposeRotary(g, { x: query, ...rows }, { numHeads, layout });
    key = decomposeRotary(g, { x: key, ...rows }, { numHeads: numKeyValueHeads, layout });
  }
  const byHead = (x: Value): Value =>
    g.transpose(g.reshape(x, [batch, newKeys, numKeyValueHeads, headDim]), [0, 2, 1, 3]); // [B, K, N, D]
  const newKey = byHead(key);
  const newValue = byHead(value);

  let [keys, values] = [newKey, newValue];
  let past: Dim = 0;
  if (pastKey !== undefined && pastValue !== undefined) {
    // With a bias the count of keys is its last axis; else all rows of the past stay, and a mask hides invalid ones.
    past = bias === undefined ? pastKey.shape[2]! : subtractDims(bias.shape[3]!, newKeys);
    const valid = (cache: Value): Value =>
      bias === undefined || past === pastKey.shape[2] ? cache : g.dynamicSlice(cache, 2, g.scalar("i64", 0), past);
    keys = g.concat([valid(pastKey), newKey], 2);
    values = g.concat([valid(pastValue), newValue], 2);
  }
  const all = addDims(past, newKeys); // S

  // [B, K, G, T, D] · [B, K, 1, S, D]ᵀ
  const byGroup = g.reshape(query, [batch, tokens, numKeyValueHeads, groups, headDim]);
  const queries = g.transpose(byGroup, [0, 2, 3, 1, 4]);
  const spread = (x: Value): Value => g.reshape(x, [batch, numKeyValueHeads, 1, all, headDim]);
  let scores = g.multiply(g.matmul(queries, spread(keys), { transposeB: true }), scale);
  if (softcap > 0) scores = g.multiply(g.tanh(g.divide(scores, softcap)), softcap);
  if (bias !== undefined) {
    const [biasBatch, biasHeads] = bias.shape as [Dim, number];
    const heads = biasHeads === 1 ? [1, 1] : [numKeyValueHeads, groups];
    scores = g.add(scores, g.reshape(bias, [biasBatch, ...heads, tokens, all]));
  }
  let seen: Value | undefined;
  const both = (a: Value | undefined, b: Value): Value => (a === undefined ? b : g.and(a, b));
  const masked = bias === undefined && pastLength !== undefined;
  if (causal || masked) {
    // Where column j stands: rows of the past at j, new ones from the valid length on.
    const validLength = pastLength ?? (pastKey === undefined ? g.scalar("i64", 0) : g.dimension(pastKey, 2));
    const column = g.reshape(g.iota(keys, 2), [1, all]);
    let position = column;
    if (masked) {
      const stored = g.dimension(pastKey!, 2);
      const isNew = g.lessEqual(stored, column);
      seen = g.or(isNew, g.less(column, validLength));
      position = g.where(isNew, g.add(g.subtract(column, stored), validLength), column);
    }
    if (causal) {
      const row = g.add(g.reshape(g.iota(query, 1), [tokens, 1]), validLength);
      seen = both(seen, g.lessEqual(position, row));
      if (window !== null) seen = both(seen, g.less(g.subtract(row, window), position));
    }
  }
  if (seen !== undefined) scores = g.where(seen, scores, Number.NEGATIVE_INFINITY);
  let weights: Value;
  if (sinks === undefined) {
    weights = g.softmax(scores);
  } else {
    const column = g.reshape(sinks, [1, numKeyValueHeads, groups, 1, 1]);
    const sink = g.broadcast(column, [batch, numKeyValueHeads, groups, tokens, 1]);
    weights = g.slice(g.softmax(g.concat([scores, sink], 4)), 4, 0, all);
  }
  const mixed = g.transpose(g.matmul(weights, spread(values)), [0, 3, 1, 2, 4]); // [B, T, K, G, D]
  return { output: g.reshape(mixed, [batch, tokens, numHeads * headDim]), newKey, newValue };
}
