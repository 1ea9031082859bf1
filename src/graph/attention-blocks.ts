// Attention for training, from matrix products and softmaxes over blocks of queries: a causal block of rows r0 .. r1 − 1
// meets keys up to r1 alone, so about half of the products and of the memory traffic is left out, and a block's scores
// stay in the processor's cache. Forward and backward begin with the same nodes; a backend that writes equal nodes once
// therefore keeps the probabilities. The backward is that of FlashAttention (Dao et al. 2022, 2205.14135, appendix B.4):
// dS = P ∘ (dO · Vᵀ − d), d = Σ O ∘ dO; the −d enters the product as one more channel.

import { fromNumbers } from "../tensor/index.ts";
import type { GraphBuilder } from "./builder.ts";
import { decomposeRotary } from "./decompose.ts";
import { type Dim, subtractDims } from "./dims.ts";
import type { Attributes, Inputs, Value } from "./ops.ts";

/** What both directions need; of attention's inputs those that training has. */
type Given = Pick<Inputs<"attention", Value>, "query" | "key" | "value" | "cos" | "sin" | "bias">;

/** Queries r0 .. r1 − 1 against keys k0 .. k1 − 1. */
interface Block {
  readonly r0: number;
  readonly r1: Dim;
  readonly k0: number;
  readonly k1: Dim;
}

/** One block's probabilities [B, H, R, N], and tanh(score / c) where scores are capped. */
interface Weights {
  readonly probabilities: Value;
  readonly capped: Value | undefined;
}

/** Rows a block. A quarter of the length: fewer leave out more, more make larger products; 64 and 128 were fastest at
 *  256 and 512 tokens on two AVX-512 cores. */
function blockSize(tokens: number): number {
  return Math.min(128, Math.max(64, Math.ceil(tokens / 4)));
}

class Blocks {
  readonly g: GraphBuilder;
  readonly attributes: Attributes["attention"];
  readonly batch: Dim;
  readonly tokens: Dim;
  readonly keys: Dim;
  readonly headDim: number;
  /** [B, H, T, D], rotated and scaled. */
  readonly queries: Value;
  /** [B, K, S, D], rotated. */
  readonly rotatedKeys: Value;
  /** [B, K, S, D]. */
  readonly values: Value;
  readonly blocks: readonly Block[];
  readonly cos: Value | undefined;
  readonly sin: Value | undefined;
  readonly #bias: Value | undefined;

  constructor(g: GraphBuilder, inputs: Given, attributes: Attributes["attention"]) {
    const { numHeads, numKeyValueHeads } = attributes;
    this.g = g;
    this.attributes = attributes;
    this.#bias = inputs.bias;
    let { query, key, value } = inputs;
    [this.batch, this.tokens] = query.shape as [Dim, Dim];
    if (key === undefined || value === undefined) {
      const headDim = (query.shape[2] as number) / (numHeads + 2 * numKeyValueHeads);
      const sizes = [numHeads, numKeyValueHeads, numKeyValueHeads].map((heads) => heads * headDim);
      [query, key, value] = g.split(query, sizes, 2) as [Value, Value, Value];
    }
    this.headDim = (query.shape[2] as number) / numHeads;
    this.keys = key.shape[1]!;
    // Tables may be longer than the sequence.
    const table = (x: Value | undefined): Value | undefined => {
      if (x === undefined || x.shape[0] === this.tokens) return x;
      return g.dynamicSlice(x, 0, g.scalar("i64", 0), this.tokens);
    };
    this.cos = table(inputs.cos);
    this.sin = table(inputs.sin);
    this.queries = this.byHead(this.turnQueries(query), numHeads);
    this.rotatedKeys = this.byHead(this.turnKeys(key), numKeyValueHeads);
    this.values = this.byHead(value, numKeyValueHeads);
    this.blocks = this.#cut();
  }

  /** scale · rotation of [B, T, H·D]; back: of what comes back to the queries. Tables that turn whole heads scale them too:
   *  no pass of its own. */
  turnQueries(x: Value, back = false): Value {
    const { g, cos, sin } = this;
    const { numHeads, layout, scale } = this.attributes;
    if (cos === undefined || sin === undefined) return g.multiply(x, scale);
    const whole = 2 * (cos.shape[1] as number) === this.headDim;
    const table = (rows: Value): Value => (whole ? g.multiply(rows, scale) : rows);
    const turned = turn(g, x, table(cos), table(back ? g.negate(sin) : sin), { numHeads, layout });
    return whole ? turned : g.multiply(turned, scale);
  }

  /** Rotation of [B, N, K·D], or back. */
  turnKeys(x: Value, back = false): Value {
    const { g, cos, sin } = this;
    const { numKeyValueHeads, layout } = this.attributes;
    if (cos === undefined || sin === undefined) return x;
    return turn(g, x, cos, back ? g.negate(sin) : sin, { numHeads: numKeyValueHeads, layout });
  }

  /** [B, N, H·D] to [B, H, N, D]. */
  byHead(x: Value, heads: number): Value {
    const split = this.g.reshape(x, [this.batch, x.shape[1]!, heads, this.headDim]);
    return this.g.transpose(split, [0, 2, 1, 3]);
  }

  /** [B, H, N, D] to [B, N, H·D]. */
  byToken(x: Value): Value {
    const [batch, heads, rows, headDim] = x.shape as [Dim, number, Dim, number];
    return this.g.reshape(this.g.transpose(x, [0, 2, 1, 3]), [batch, rows, heads * headDim]);
  }

  #cut(): Block[] {
    const { causal, window } = this.attributes;
    const { tokens } = this;
    if (!causal || typeof tokens !== "number") return [{ r0: 0, r1: tokens, k0: 0, k1: this.keys }];
    const size = blockSize(tokens);
    const out: Block[] = [];
    for (let r0 = 0; r0 < tokens; r0 += size) {
      const r1 = Math.min(tokens, r0 + size);
      out.push({ r0, r1, k0: window === null ? 0 : Math.max(0, r0 - window + 1), k1: r1 });
    }
    return out;
  }

  /** Rows from .. to of [.., .., N, ..]. */
  rows(x: Value, from: number, to: Dim): Value {
    return from === 0 && to === x.shape[2] ? x : this.g.slice(x, 2, from, to);
  }

  /** [B, H, R, ·] as [B, K, G·R, ·]: the queries that share a key head, one after the other. */
  grouped(x: Value): Value {
    const { numHeads, numKeyValueHeads } = this.attributes;
    if (numHeads === numKeyValueHeads) return x;
    return this.g.reshape(x, [this.batch, numKeyValueHeads, -1, x.shape[3]!]);
  }

  ungrouped(x: Value, rows: Dim): Value {
    const { numHeads, numKeyValueHeads } = this.attributes;
    if (numHeads === numKeyValueHeads) return x;
    return this.g.reshape(x, [this.batch, numHeads, rows, x.shape[3]!]);
  }

  weights(block: Block): Weights {
    const { g } = this;
    const { softcap } = this.attributes;
    const { r0, r1, k0, k1 } = block;
    const rows = subtractDims(r1, r0);
    const queries = this.grouped(this.rows(this.queries, r0, r1));
    const products = g.matmul(queries, this.rows(this.rotatedKeys, k0, k1), { transposeB: true });
    let scores = this.ungrouped(products, rows);
    let capped: Value | undefined;
    if (softcap > 0) {
      capped = g.tanh(g.divide(scores, softcap));
      scores = g.multiply(capped, softcap);
    }
    const added = this.#added(block);
    if (added !== undefined) scores = g.add(scores, added);
    return { probabilities: g.softmax(scores), capped };
  }

  /** Bias and mask of a block. */
  #added(block: Block): Value | undefined {
    const { r0, r1, k0, k1 } = block;
    const mask = this.#mask(block);
    if (this.#bias === undefined) return mask;
    let bias = this.rows(this.#bias, r0, r1);
    if (k0 !== 0 || k1 !== bias.shape[3]) bias = this.g.slice(bias, 3, k0, k1);
    return mask === undefined ? bias : this.g.add(bias, mask);
  }

  /** 0 where a query sees a key, −∞ where it does not, [R, N]. */
  #mask({ r0, r1, k0, k1 }: Block): Value | undefined {
    const { g } = this;
    const { causal, window } = this.attributes;
    if (!causal) return undefined;
    const { dtype } = this.queries;
    if (typeof r1 === "number" && typeof k1 === "number") {
      const [rows, columns] = [r1 - r0, k1 - k0];
      const values = new Float64Array(rows * columns);
      for (let i = 0; i < rows; i++) {
        for (let j = 0; j < columns; j++) {
          const distance = r0 + i - (k0 + j);
          const seen = distance >= 0 && (window === null || distance < window);
          if (!seen) values[i * columns + j] = Number.NEGATIVE_INFINITY;
        }
      }
      return g.constant(fromNumbers(dtype, [rows, columns], values));
    }
    const row = g.reshape(g.iota(this.queries, 2), [this.tokens, 1]);
    const column = g.reshape(g.iota(this.rotatedKeys, 2), [1, this.keys]);
    let seen = g.lessEqual(column, row);
    if (window !== null) seen = g.and(seen, g.less(g.subtract(row, window), column));
    return g.where(seen, g.scalar(dtype, 0), Number.NEGATIVE_INFINITY);
  }
}

/** rotary by its op where kernels have it (float32), from smaller ops elsewhere. */
function turn(g: GraphBuilder, x: Value, cos: Value, sin: Value, options: Attributes["rotary"]): Value {
  return x.dtype === "f32" ? g.rotary(x, cos, sin, options) : decomposeRotary(g, { x, cos, sin }, options);
}

/** Whether these functions compute an attention: no past, no sinks. */
export function isBlockAttention(inputs: Inputs<"attention", unknown>): boolean {
  return inputs.pastKey === undefined && inputs.pastLength === undefined && inputs.sinks === undefined;
}

/** attention without past and sinks; the same inputs, attributes and outputs as the op. */
export function blockAttention(
  g: GraphBuilder,
  inputs: Given,
  attributes: Attributes["attention"],
): { output: Value; newKey: Value; newValue: Value } {
  const all = new Blocks(g, inputs, attributes);
  const parts = all.blocks.map((block) => {
    const { probabilities } = all.weights(block);
    const mixed = g.matmul(all.grouped(probabilities), all.rows(all.values, block.k0, block.k1));
    return all.ungrouped(mixed, subtractDims(block.r1, block.r0));
  });
  const output = all.byToken(parts.length === 1 ? parts[0]! : g.concat(parts, 2));
  return { output, newKey: all.rotatedKeys, newValue: all.values };
}

/** attentionGradient; the same inputs, attributes and outputs as the op. */
export function blockAttentionGradient(
  g: GraphBuilder,
  inputs: Inputs<"attentionGradient", Value>,
  attributes: Attributes["attentionGradient"],
): Value[] {
  const { numHeads, numKeyValueHeads } = attributes;
  const { output, outputGradient, bias } = inputs;
  const all = new Blocks(g, inputs, attributes);
  const { batch, tokens, keys, headDim } = all;
  const { dtype } = output;

  const gradient = all.byHead(outputGradient, numHeads);
  const products = g.reshape(g.multiply(output, outputGradient), [batch, tokens, numHeads, headDim]);
  const sums = g.reshape(g.transpose(g.sum(products, -1), [0, 2, 1]), [batch, numHeads, tokens, 1]);
  const widened = g.concat([gradient, g.negate(sums)], 3);
  const ones = g.broadcast(g.scalar(dtype, 1), [batch, numKeyValueHeads, keys, 1]);
  const widenedValues = g.concat([all.values, ones], 3);

  const ofQueries: Value[] = [];
  const ofKeys: Part[] = [];
  const ofValues: Part[] = [];
  const ofBias: Value[] = [];
  for (const block of all.blocks) {
    const { r0, r1, k0, k1 } = block;
    const rows = subtractDims(r1, r0);
    const { probabilities, capped } = all.weights(block);
    const differences = g.matmul(all.grouped(all.rows(widened, r0, r1)), all.rows(widenedValues, k0, k1), {
      transposeB: true,
    });
    let ofScores = g.multiply(probabilities, all.ungrouped(differences, rows));
    if (bias !== undefined) ofBias.push(biasPart(g, ofScores, bias, k0, subtractDims(keys, k1)));
    if (capped !== undefined) {
      ofScores = g.multiply(ofScores, g.subtract(1, g.multiply(capped, capped)));
    }
    const grouped = all.grouped(ofScores);
    ofQueries.push(all.ungrouped(g.matmul(grouped, all.rows(all.rotatedKeys, k0, k1)), rows));
    const queries = all.grouped(all.rows(all.queries, r0, r1));
    ofKeys.push({ k0, k1, rows: g.matmul(grouped, queries, { transposeA: true }) });
    const mixed = all.grouped(all.rows(gradient, r0, r1));
    ofValues.push({ k0, k1, rows: g.matmul(all.grouped(probabilities), mixed, { transposeA: true }) });
  }

  const queries = ofQueries.length === 1 ? ofQueries[0]! : g.concat(ofQueries, 2);
  const parts = [
    all.turnQueries(all.byToken(queries), true),
    all.turnKeys(all.byToken(addParts(g, ofKeys)), true),
    all.byToken(addParts(g, ofValues)),
  ];
  const grads = inputs.key === undefined ? [g.concat(parts, 2)] : parts;
  if (bias !== undefined) grads.push(ofBias.length === 1 ? ofBias[0]! : g.concat(ofBias, 2));
  return grads;
}

/** Rows k0 .. k1 − 1 of a sum over blocks. */
interface Part {
  readonly k0: number;
  readonly k1: Dim;
  readonly rows: Value;
}

/** The sum of parts, each of which begins no later and ends later than what came before. */
function addParts(g: GraphBuilder, parts: readonly Part[]): Value {
  const pad = (x: Value, before: number, after: number): Value =>
    before === 0 && after === 0 ? x : g.pad(x, 2, before, after);
  let sum = parts[0]!.rows;
  for (let i = 1; i < parts.length; i++) {
    const { k0, k1, rows } = parts[i]!;
    sum = g.add(pad(rows, k0, 0), pad(sum, 0, (k1 as number) - (parts[i - 1]!.k1 as number)));
  }
  return sum;
}

/** A block's rows of the bias's gradient: scores' gradients summed over what the bias was stretched over. */
function biasPart(g: GraphBuilder, ofScores: Value, bias: Value, k0: number, after: Dim): Value {
  const axes = [0, 1].filter((axis) => bias.shape[axis] === 1 && ofScores.shape[axis] !== 1);
  const summed = axes.length === 0 ? ofScores : g.sum(ofScores, axes, { keepDims: true });
  return k0 === 0 && after === 0 ? summed : g.pad(summed, 3, k0, after as number);
}
