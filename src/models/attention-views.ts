// Attention in which a key is turned in several ways, for near and for far queries (position maps: Self-Extend). Every
// pair of a query and a key belongs to one view, so the softmax goes over the views' scores side by side. The cache
// keeps keys before any rotation. Scores [H, T, S] exist in memory: chunks are small.

import type { AttentionAttributes, GraphBuilder, Value } from "../graph/index.ts";

/** What one view is fed with; n keys are seen through it. */
export interface ViewInputs {
  /** [T, P] */
  readonly queryCos: Value;
  readonly querySin: Value;
  /** [n, P] */
  readonly keyCos: Value;
  readonly keySin: Value;
  /** i64 []: the first of its keys. */
  readonly first: Value;
  /** [T, n]: added to scores. */
  readonly mask: Value;
}

/** The inputs of a view of a group. */
export function viewInputs(g: GraphBuilder, group: number, view: number, pairs: number): ViewInputs {
  const name = (what: string): string => `${what}.${group}.${view}`;
  const keys = `viewKeys${group}_${view}`;
  return {
    queryCos: g.input(name("queryCos"), "f32", ["tokens", pairs]),
    querySin: g.input(name("querySin"), "f32", ["tokens", pairs]),
    keyCos: g.input(name("keyCos"), "f32", [keys, pairs]),
    keySin: g.input(name("keySin"), "f32", [keys, pairs]),
    first: g.input(name("viewFirst"), "i64", []),
    mask: g.input(name("viewMask"), "f32", ["tokens", keys]),
  };
}

/**
 * Attention over views.
 *
 * @param inputs query [1, T, H·D], key and value [1, T, K·D], none of them turned; the past [1, K, capacity, D], its first
 *   pastLength rows valid
 * @returns output [1, T, H·D] and the rows for the cache [1, K, T, D]
 */
export function attendByViews(
  g: GraphBuilder,
  inputs: {
    readonly query: Value;
    readonly key: Value;
    readonly value: Value;
    readonly pastKey: Value;
    readonly pastValue: Value;
    readonly pastLength: Value;
  },
  attributes: Pick<AttentionAttributes, "numHeads" | "numKeyValueHeads" | "scale" | "softcap" | "layout">,
  views: readonly ViewInputs[],
): { output: Value; newKey: Value; newValue: Value } {
  const { numHeads, numKeyValueHeads, scale, softcap, layout } = attributes;
  const { query, key, value, pastKey, pastValue, pastLength } = inputs;
  const [, tokens, width] = query.shape as [number, string, number];
  const headDim = width / numHeads;
  const groups = numHeads / numKeyValueHeads;
  const byHead = (x: Value): Value => g.transpose(g.reshape(x, [1, tokens, numKeyValueHeads, headDim]), [0, 2, 1, 3]); // [1, K, T, D]
  const newKey = byHead(key);
  const newValue = byHead(value);
  const keys = g.updateSlice(pastKey, newKey, 2, pastLength);
  const values = g.updateSlice(pastValue, newValue, 2, pastLength);
  // Here and not on the scores: T·D numbers, not T·S.
  const scaled = g.multiply(query, scale);
  const seen = views.map(({ queryCos, querySin, keyCos, keySin, first, mask }) => {
    const count = keyCos.shape[0]!; // n
    const rows = (cache: Value): Value =>
      g.reshape(g.dynamicSlice(cache, 2, first, count), [numKeyValueHeads, count, headDim]);
    const turnedKeys = g.rotary(rows(keys), keyCos, keySin, { numHeads: 1, layout });
    const turned = g.rotary(scaled, queryCos, querySin, { numHeads, layout });
    // [K, G, T, D] · [K, 1, n, D]ᵀ
    const queries = g.transpose(g.reshape(turned, [tokens, numKeyValueHeads, groups, headDim]), [1, 2, 0, 3]);
    const others = g.reshape(turnedKeys, [numKeyValueHeads, 1, count, headDim]);
    let scores = g.matmul(queries, others, { transposeB: true });
    if (softcap > 0) scores = g.multiply(g.tanh(g.divide(scores, softcap)), softcap);
    return { scores: g.add(scores, mask), values: rows(values) };
  });
  const weights = g.softmax(
    g.concat(
      seen.map(({ scores }) => scores),
      3,
    ),
  );
  const all = g.concat(
    seen.map((one) => one.values),
    1,
  );
  const count = all.shape[1]!;
  const mixed = g.matmul(weights, g.reshape(all, [numKeyValueHeads, 1, count, headDim])); // [K, G, T, D]
  return { output: g.reshape(g.transpose(mixed, [2, 0, 1, 3]), [1, tokens, width]), newKey, newValue };
}
