// Does attention notice order? Two sentences of the same tokens go through a small transformer with random weights, and
// what the last token has become is compared. Both get the same end mark, so that the last token is the same one.
//
// Without positions and without a mask attention is a sum over a set: the two are equal. A causal mask alone changes
// nothing for a last token that sees everything, until a second layer reads tokens that saw different beginnings (Haviv
// et al. 2022, 2203.16634; Kazemnejad et al. 2023, 2305.19466). Every encoding tells them apart at once.
//
// A layer is x + W_o · attention(rmsNorm(x)), two heads; no feed-forward, which looks at one token at a time. The graph
// runs in float64 and gives float32, so that the order of a sum's terms, which moves its last bit, is not seen.

import { alibi } from "../encodings/alibi.ts";
import { kerple } from "../encodings/kerple.ts";
import { learnedAbsolute } from "../encodings/learned-absolute.ts";
import { nope } from "../encodings/nope.ts";
import type { PositionEncoding } from "../encodings/position-encoding.ts";
import { rope } from "../encodings/rope/rope.ts";
import { sinusoidal } from "../encodings/sinusoidal.ts";
import { t5RelativeBias } from "../encodings/t5-relative-bias.ts";
import { referenceBackend } from "../engine/reference/index.ts";
import { decomposeRotary, type GraphBuilder, graphBuilder, type Value } from "../graph/index.ts";
import { fromNumbers, random, type Tensor, toNumbers } from "../tensor/index.ts";

export const orderEncodings = ["none", "sinusoidal", "learned", "rope", "alibi", "t5", "kerple"] as const;
export type OrderEncoding = (typeof orderEncodings)[number];

export interface OrderOptions {
  readonly encoding: OrderEncoding;
  /** Whether a token sees only itself and those before it. */
  readonly causal: boolean;
  /** 1 .. 4. */
  readonly numLayers: number;
  /** Of all weights; 0 when absent. */
  readonly seed?: number;
}

export interface OrderOutput {
  /** The sentence's tokens, the end mark last. */
  readonly tokens: readonly string[];
  /** What the last token has become, [C], each a float32. */
  readonly output: readonly number[];
  /** What the last token gave each token of its attention, by layer and head: [L][H][T]. */
  readonly weights: readonly (readonly (readonly number[])[])[];
}

export interface OrderComparison {
  readonly first: OrderOutput;
  readonly second: OrderOutput;
  /** Largest difference between the two outputs, channel by channel. */
  readonly largestDifference: number;
  /** Every channel has the same bits. */
  readonly identical: boolean;
  /** Whether both sentences hold the same tokens, however ordered. */
  readonly sameTokens: boolean;
}

/** The mark that both sentences end in. */
export const endMark = "⏎";

const numHeads = 2;
const headDim = 8;
const width = numHeads * headDim; // C
const maxTokens = 64;
const maxLayers = 4;

/**
 * Words where the text has spaces, else characters; the end mark follows.
 *
 * @throws RangeError for an empty text, or one of more than 64 tokens
 */
export function orderTokens(text: string): string[] {
  const trimmed = text.trim();
  const parts = /\s/.test(trimmed) ? trimmed.split(/\s+/) : Array.from(trimmed);
  if (trimmed === "" || parts.length > maxTokens) {
    throw new RangeError(
      `compareOrders: expected a sentence of 1 .. ${maxTokens} tokens, got ${trimmed ? parts.length : 0}`,
    );
  }
  return [...parts, endMark];
}

/**
 * What the last token becomes in either sentence.
 *
 * @throws RangeError for a sentence without or with too many tokens, an unknown encoding, or numLayers outside 1 .. 4
 */
export async function compareOrders(first: string, second: string, options: OrderOptions): Promise<OrderComparison> {
  const [a, b] = [await runSentence(orderTokens(first), options), await runSentence(orderTokens(second), options)];
  const differences = a.output.map((value, channel) => Math.abs(value - b.output[channel]!));
  return {
    first: a,
    second: b,
    largestDifference: Math.max(...differences),
    identical: a.output.every((value, channel) => Object.is(value, b.output[channel])),
    sameTokens: [...a.tokens].sort().join("\n") === [...b.tokens].sort().join("\n"),
  };
}

async function runSentence(tokens: readonly string[], options: OrderOptions): Promise<OrderOutput> {
  const { causal, numLayers, seed = 0 } = options;
  if (!Number.isInteger(numLayers) || numLayers < 1 || numLayers > maxLayers) {
    throw new RangeError(`compareOrders: expected numLayers to be an integer in 1 .. ${maxLayers}, got ${numLayers}`);
  }
  const length = tokens.length;
  const positions = Array.from({ length }, (_, t) => t);
  const encoding = encodingOf(options.encoding, causal, seed);
  const rows = encoding.site === "embedding" ? encoding.rows(positions) : null;
  const x = tokens.flatMap((token, t) =>
    Array.from(embedding(token, seed), (value, channel) => value + (rows?.[t * width + channel] ?? 0)),
  );
  const feeds: Record<string, Tensor> = {
    x: fromNumbers("f64", [1, length, width], x),
    added: fromNumbers("f64", [1, numHeads, length, length], addedToScores(encoding, positions, causal)),
  };
  const pairs = encoding.site === "query-key" ? encoding.rotaryDim / 2 : 0;
  if (encoding.site === "query-key") {
    const { cos, sin } = encoding.queryTables(positions, length);
    feeds.cos = fromNumbers("f64", [length, pairs], cos);
    feeds.sin = fromNumbers("f64", [length, pairs], sin);
  }
  const session = await referenceBackend.load(transformer(numLayers, pairs, seed));
  const values = await session.run(feeds).finally(() => session.dispose());
  const last = (tensor: Tensor, from: number, count: number): number[] =>
    Array.from({ length: count }, (_, i) => toNumbers(tensor)[from + i]!);
  return {
    tokens,
    output: last(values.output!, (length - 1) * width, width),
    weights: Array.from({ length: numLayers }, (_, layer) =>
      Array.from({ length: numHeads }, (_, head) =>
        last(values[`weights${layer}`]!, (head * length + length - 1) * length, length),
      ),
    ),
  };
}

function encodingOf(name: OrderEncoding, causal: boolean, seed: number): PositionEncoding {
  const bidirectional = !causal;
  switch (name) {
    case "none":
      return nope();
    case "sinusoidal":
      return sinusoidal({ hiddenSize: width });
    case "learned":
      return learnedAbsolute({ hiddenSize: width, table: random(seed + 1).normals((maxTokens + 1) * width) });
    case "rope":
      return rope({
        headDim,
        maxPositionEmbeddings: maxTokens + 1,
        rope: { ropeType: "default", ropeTheta: 10000 },
      });
    case "alibi":
      return alibi({ numHeads, bidirectional });
    case "t5":
      return t5RelativeBias({ numHeads, weights: random(seed + 2).normals(32 * numHeads), bidirectional });
    case "kerple":
      return kerple({ kind: "logarithmic", r1: [1, 0.5], r2: [1, 0.5], bidirectional });
    default:
      throw new RangeError(
        `compareOrders: expected encoding to be one of ${orderEncodings.join(", ")}, got ${JSON.stringify(name)}`,
      );
  }
}

/** A token's own vector [C]: the same wherever it stands. */
function embedding(token: string, seed: number): Float32Array {
  // FNV-1a of the UTF-16 units: any token has a vector, without a vocabulary.
  let hash = 0x811c9dc5;
  for (let i = 0; i < token.length; i++) hash = Math.imul(hash ^ token.charCodeAt(i), 0x01000193) >>> 0;
  return random(seed * 0x1_0000_0000 + hash).normals(width);
}

/** Bias and mask of the scores [1, H, T, T]. */
function addedToScores(encoding: PositionEncoding, positions: readonly number[], causal: boolean): Float64Array {
  const length = positions.length;
  const bias = encoding.site === "attention-bias" ? encoding.bias(positions, positions) : null;
  return Float64Array.from({ length: numHeads * length * length }, (_, at) => {
    const key = at % length;
    const query = Math.floor(at / length) % length;
    return causal && key > query ? Number.NEGATIVE_INFINITY : (bias?.[at] ?? 0);
  });
}

function transformer(numLayers: number, pairs: number, seed: number) {
  const g = graphBuilder("order");
  const stream = random(seed + 3);
  const matrix = (): Value => g.numbers("f64", [width, width], stream.normals(width * width, 1 / Math.sqrt(width)));
  let x = g.input("x", "f64", [1, "T", width]);
  const added = g.input("added", "f64", [1, numHeads, "T", "T"]);
  const tables =
    pairs === 0 ? null : { cos: g.input("cos", "f64", ["T", pairs]), sin: g.input("sin", "f64", ["T", pairs]) };
  for (let layer = 0; layer < numLayers; layer++) {
    const normed = g.rmsNorm(x, undefined, 1e-6);
    const turned = (y: Value): Value =>
      tables === null ? y : decomposeRotary(g, { x: y, ...tables }, { numHeads, layout: "half" });
    const [query, key, value] = [0, 1, 2].map(() => g.matmul(normed, matrix())) as [Value, Value, Value];
    const products = g.matmul(byHead(g, turned(query)), byHead(g, turned(key)), { transposeB: true });
    const weights = g.softmax(g.add(g.multiply(products, 1 / Math.sqrt(headDim)), added)); // [1, H, T, T]
    g.output(`weights${layer}`, weights);
    const mixed = g.transpose(g.matmul(weights, byHead(g, value)), [0, 2, 1, 3]);
    x = g.add(x, g.matmul(g.reshape(mixed, [1, "T", width]), matrix()));
  }
  g.output("output", g.cast(x, "f32"));
  return g.build();
}

/** [1, T, C] to [1, H, T, D]. */
function byHead(g: GraphBuilder, x: Value): Value {
  return g.transpose(g.reshape(x, [1, "T", numHeads, headDim]), [0, 2, 1, 3]);
}
