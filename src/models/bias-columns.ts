// ALiBi at O(n) memory. A bias that is linear in the distance, −s·(i − j), is a product of a few more channels of queries
// and keys, so the fused attention computes it with the scores and no [H, T, S] ever exists. They hold for causal
// attention, where i ≥ j.
//
// Products are summed channel by channel, in float32: −s·i + s·j would keep little of a small distance at large
// positions. So positions are cut into J = 16·⌊j/16⌋ and r = j mod 16, and slopes into parts of 8 bits: every part's
// product with J is exact up to 2^20 positions, the pair s₁·(J_j − J_i) too, and what is left, s·(r_j − r_i), is small.
// These channels stand first, where the sum is still small, and the attention's own factor is a power of two.
//
// One row alone is what ONNX Runtime sums in lanes, channel by channel no more (errors of 1e-3 at 16k positions): so a row
// of zeros follows the new ones. It lands in the cache behind them, where the next run writes.

import type { PositionSettings } from "../formats/model-description.ts";
import type { AttentionAttributes, GraphBuilder, Inputs, Value } from "../graph/index.ts";

/** columns: as channels, for a bias that is linear in the distance. dense: as numbers by distance. */
export type BiasForm = "columns" | "dense";

/** How a group's bias enters: ALiBi by channels where nothing else is asked for. rows: as it is at every query and key,
 *  where the distance alone does not decide it (FIRE). */
export function biasForm(position: PositionSettings, asked: BiasForm = "columns"): BiasForm | "rows" {
  if (position.kind === "fire") return "rows";
  return position.kind === "alibi" ? asked : "dense";
}

/** Channels that a bias takes; heads of a multiple of 8 channels stay so. */
export const biasColumns = 8;

/** What the fused attention multiplies scores by here: a power of two keeps the parts exact. */
const factor = 0.5;

const block = 16;

/** The channels of queries at positions first … first + count − 1, [count, H, 8]. */
export function queryColumns(slopes: ArrayLike<number>, first: number, count: number): Float32Array {
  const out = new Float32Array(count * slopes.length * biasColumns);
  const parts = Array.from(slopes, (slope) => cut(slope / factor));
  let at = 0;
  for (let t = 0; t < count; t++) {
    const rest = (first + t) % block;
    const base = first + t - rest;
    for (const [a, b, c] of parts) {
      const whole = a + b + c;
      out.set([-a * base, a, -b * base, b, -c * base, c, -whole * rest, whole], at);
      at += biasColumns;
    }
  }
  return out;
}

/** The channels of keys at these positions, [count, 8]: the same for every head. */
export function keyColumns(first: number, count: number): Float32Array {
  const out = new Float32Array(count * biasColumns);
  for (let t = 0; t < count; t++) {
    const rest = (first + t) % block;
    const base = first + t - rest;
    out.set([1, base, 1, base, 1, base, 1, rest], t * biasColumns);
  }
  return out;
}

/** A number as a sum of three of 8 significant bits each: float32's 24. */
function cut(x: number): [number, number, number] {
  const top = (y: number): number => {
    if (y === 0) return 0;
    const unit = 2 ** (Math.floor(Math.log2(Math.abs(y))) - 7);
    return Math.round(y / unit) * unit;
  };
  const a = top(x);
  const b = top(x - a);
  return [a, b, top(x - a - b)];
}

/** Rows of the cache that a run writes past its tokens. */
export const spareRows = 1;

/** Channels of a head with the bias's, as the cache keeps them: a multiple of 8. */
export function columnsHeadDim(headDim: number): number {
  return 8 * Math.ceil((headDim + biasColumns) / 8);
}

/**
 * attention, with a bias as channels. The past is as wide as `columnsHeadDim` says; there is one more new row than there
 * are tokens.
 *
 * @param columns queries [T, H, 8] and keys [T, 8] of the tokens
 */
export function attendWithColumns(
  g: GraphBuilder,
  inputs: Pick<Inputs<"attention", Value>, "query" | "pastKey" | "pastValue" | "pastLength" | "sinks"> & {
    readonly key: Value;
    readonly value: Value;
  },
  attributes: Pick<AttentionAttributes, "numHeads" | "numKeyValueHeads" | "scale" | "window">,
  columns: { readonly queries: Value; readonly keys: Value },
): { output: Value; newKey: Value; newValue: Value } {
  const { numHeads, numKeyValueHeads, scale, window } = attributes;
  const [batch, tokens, width] = inputs.query.shape as [number, string, number];
  const headDim = width / numHeads;
  const wide = columnsHeadDim(headDim);
  const heads = (x: Value, count: number): Value => g.reshape(x, [batch, tokens, count, headDim]);
  const joined = (first: Value | undefined, x: Value, count: number): Value => {
    const split = heads(x, count);
    const all = first === undefined ? split : g.concat([first, split], 3);
    const missing = wide - (all.shape[3] as number);
    const padded = g.pad(missing === 0 ? all : g.pad(all, 3, 0, missing), 1, 0, spareRows);
    return g.reshape(padded, [batch, padded.shape[1]!, count * wide]);
  };
  const ofQueries = g.reshape(columns.queries, [batch, tokens, numHeads, biasColumns]);
  const ofKeys = g.broadcast(g.reshape(columns.keys, [batch, tokens, 1, biasColumns]), [
    batch,
    tokens,
    numKeyValueHeads,
    biasColumns,
  ]);
  const { output, newKey, newValue } = g.attention(
    {
      ...inputs,
      query: joined(ofQueries, g.multiply(inputs.query, scale / factor), numHeads),
      key: joined(ofKeys, inputs.key, numKeyValueHeads),
      value: joined(undefined, inputs.value, numKeyValueHeads),
    },
    { numHeads, numKeyValueHeads, scale: factor, window },
  );
  const split = g.reshape(g.slice(output, 1, 0, tokens), [batch, tokens, numHeads, wide]);
  return { output: g.reshape(g.slice(split, 3, 0, headDim), inputs.query.shape), newKey, newValue };
}
