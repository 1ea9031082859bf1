// One builder for every decoder: a ModelSpec becomes a graph. Positions are inputs, never part of the program: tables
// cos and sin for rotary groups, a bias by distance, rows added to the embeddings, a factor on each query. So one loaded
// graph runs every encoding at every length.
//
// A run takes a chunk of tokens after `pastLength` cached ones, and gives the loss of chosen rows and the logits of
// chosen rows; either choice may be empty, and then costs nothing. The head runs in chunks of the vocabulary, and only
// losses leave the graph: [T, V] never exists.

import { type Graph, type GraphBuilder, graphBuilder, type Value } from "../graph/index.ts";
import { activate } from "./activation.ts";
import { attendByViews, type ViewInputs, viewInputs } from "./attention-views.ts";
import { attendWithColumns, type BiasForm, biasColumns, biasForm, columnsHeadDim, spareRows } from "./bias-columns.ts";
import { Matrices, type MatrixOptions, type ParameterSource, vocabularyChunks } from "./matrices.ts";
import { rotaryPairs } from "./positions.ts";
import {
  type AttentionSpec,
  type LayerSpec,
  type MlpSpec,
  type ModelSpec,
  type NormSpec,
  positionKind,
} from "./spec.ts";

export interface DecoderOptions extends MatrixOptions {
  /** Adds an input "queryFactors.G" [tokens] to every group with attention: a factor on each query. */
  readonly queryFactors?: boolean;
  /** Gives every head a sink of −1e30, which adds exactly nothing to a softmax, and makes ONNX Runtime choose the kernel
   *  with scores in memory: faster for one query, and in WebAssembly for many; natively slower for many. */
  readonly neutralSinks?: boolean;
  /** How ALiBi enters: as channels of queries and keys when absent; "dense" takes any bias by distance in its place, and
   *  keeps [H, T, S] in memory. */
  readonly attentionBias?: BiasForm;
  /** Whether losses can be asked for (when absent, they can). Without them `rows` and `targets` are no inputs, the head
   *  is one product, and a step for a token has a fifth less to walk. */
  readonly losses?: boolean;
  /** Whether layers with a window keep only what it can see, in caches of their own (DecoderProgram.windows); false when
   *  absent. */
  readonly windowCaches?: boolean;
  /** Rotary groups whose cache keeps keys before their rotation; each run turns them in so many ways (attention-views.ts)
   *  by tables that it is fed. Groups without a window and without sinks. */
  readonly keyViews?: { readonly groups: readonly number[]; readonly count: number };
}

export interface DecoderProgram {
  readonly graph: Graph;
  /** By parameter name. */
  readonly parameters: ReadonlyMap<string, ParameterSource>;
  readonly queryFactors: boolean;
  /** Rows of the cache that a run writes past its tokens: the capacity must hold them. */
  readonly spareRows: number;
  /** The caches whose first row need not be position 0: with `windowCaches`, one a group of layers with a window. */
  readonly windows: readonly WindowCache[];
}

/** The cache of layers that see so many keys. Whoever runs the graph moves its rows to the front when it is full. */
export interface WindowCache {
  /** Keys that a query sees, itself included. */
  readonly window: number;
  /** The name of its size. */
  readonly capacity: string;
  /** The input that says how many of its rows are filled, in place of `pastLength`. */
  readonly pastLength: string;
  /** Its layers' group: row 0 of that group's tables is the position of the cache's row 0. */
  readonly group: number;
  /** Its states [1, K, ·, D]. */
  readonly states: readonly string[];
}

/**
 * The graph of a decoder.
 *
 * Inputs: `tokens` [tokens], `pastLength` []; `rows` and `targets` [rows] (rows of this chunk whose loss is wanted, and
 * the token that follows each; both but with `losses: false`); `logitRows` [logitRows]. For a rotary group G `cos.G`, `sin.G` [positions, P], row p
 * position p; for an ALiBi group `queryColumns.G` [tokens, H, 8] and `keyColumns.G` [tokens, 8] (bias-columns.ts); for
 * another bias `bias.G` [H, distances], column d what is added at distance d, and `keys` [keys], the positions 0, 1, … of
 * all keys; for one that the distance does not decide `bias.G` [1, H, tokens, keys]; where positions are embedded, `positionRows` [tokens, E]; with queryFactors `queryFactors.G` [tokens].
 * With `keyViews`, its groups have the inputs of `viewInputs` in place of `cos.G` and `sin.G`.
 * With `windowCaches`, a group of layers with a window has `pastLength.G` [] besides, and tables of its own length.
 * Outputs: `losses` [rows]; of the rows that `logitRows` chooses `logits` [logitRows, V], or of each the index and the sum
 * of them alone, `likeliest` and `logitSums` [logitRows]. States: `key.L`, `value.L` [1, K, capacity, D], wider with columns.
 *
 * @throws RangeError when the spec's sizes contradict each other, naming the layer
 */
export function buildDecoder(spec: ModelSpec, options: DecoderOptions = {}): DecoderProgram {
  const g = graphBuilder(spec.family);
  const builder = new Builder(g, spec, options);
  builder.build();
  const hasColumns = spec.groups.some((group) => biasForm(group.position, options.attentionBias) === "columns");
  return {
    graph: g.build(),
    parameters: builder.parameters,
    queryFactors: options.queryFactors ?? false,
    spareRows: hasColumns ? spareRows : 0,
    windows: builder.windows,
  };
}

/** What graphs of a checkpoint's weights are made of. Weights are named as in `ParameterSource`. */
export interface Blocks {
  readonly g: GraphBuilder;
  norm(x: Value, spec: NormSpec, name: string): Value;
  /** x · Wᵀ + b for W [outputs, inputs]. */
  linear(x: Value, name: string, outputs: number, inputs: number, bias: boolean): Value;
  mlp(x: Value, spec: MlpSpec, name: (weight: string) => string): Value;
  /** Rows of the matrix [count, width] by index. */
  rows(weight: string, count: number, width: number, indices: Value): Value;
  /** A sink for each head, where the options want one. */
  sinks(spec: AttentionSpec, name: string): Value | undefined;
  /** A decoder's outputs after hidden [tokens, E]; without `asked` no losses. */
  outputs(hidden: Value, asked: AskedLosses | undefined, logitRows: Value): void;
}

/** The rows whose loss is wanted, and the token that follows each. */
export interface AskedLosses {
  readonly rows: Value;
  readonly targets: Value;
}

/** A graph of a model's weights, made by `body` from the blocks that decoders are made of. */
export function buildProgram(
  name: string,
  spec: ModelSpec,
  options: DecoderOptions,
  body: (blocks: Blocks) => void,
): DecoderProgram {
  const g = graphBuilder(name);
  const builder = new Builder(g, spec, options);
  body(builder.blocks);
  return { graph: g.build(), parameters: builder.parameters, queryFactors: false, spareRows: 0, windows: [] };
}

class Builder {
  readonly #g: GraphBuilder;
  readonly #spec: ModelSpec;
  readonly #options: DecoderOptions;
  readonly #matrices: Matrices;
  #keys: Value | undefined;
  readonly #windows = new Map<number, WindowCache & { readonly states: string[] }>();

  constructor(g: GraphBuilder, spec: ModelSpec, options: DecoderOptions) {
    this.#g = g;
    this.#spec = spec;
    this.#options = options;
    this.#matrices = new Matrices(g, spec, options);
  }

  get blocks(): Blocks {
    return {
      g: this.#g,
      norm: (x, spec, name) => this.#matrices.norm(x, spec, name),
      linear: (x, name, outputs, inputs, bias) => this.#matrices.linear(x, name, outputs, inputs, bias),
      mlp: (x, spec, name) => this.#mlp(x, spec, name),
      rows: (weight, count, width, indices) => this.#matrices.rows(weight, count, width, indices),
      sinks: (spec, name) => this.#sinks(spec, name),
      outputs: (hidden, asked, logitRows) => this.#outputs(hidden, asked, logitRows),
    };
  }

  get parameters(): ReadonlyMap<string, ParameterSource> {
    return this.#matrices.parameters;
  }

  get windows(): readonly WindowCache[] {
    return [...this.#windows.values()];
  }

  build(): void {
    const g = this.#g;
    const spec = this.#spec;
    const tokens = g.input("tokens", "i64", ["tokens"]);
    const pastLength = g.input("pastLength", "i64", []);
    const asked =
      this.#options.losses === false
        ? undefined
        : { rows: g.input("rows", "i64", ["rows"]), targets: g.input("targets", "i64", ["rows"]) };
    const logitRows = g.input("logitRows", "i64", ["logitRows"]);
    const positions = this.#positionInputs(tokens, pastLength);
    let x = g.scope("embedding", () => this.#embed(tokens, positions.embedding));
    spec.layers.forEach((layer, index) => {
      x = g.scope(`layers[${index}]`, () => this.#layer(x, layer, index, positions, pastLength));
    });
    g.scope("head", () => {
      const hidden = spec.finalNorm === null ? x : this.#matrices.norm(x, spec.finalNorm, "finalNorm");
      this.#outputs(hidden, asked, logitRows);
    });
  }

  // Positions.

  #positionInputs(tokens: Value, pastLength: Value): Positions {
    const g = this.#g;
    const groups = this.#spec.groups.map((group, index): GroupInputs => {
      const factors = this.#options.queryFactors
        ? g.reshape(g.input(`queryFactors.${index}`, "f32", ["tokens"]), ["tokens", 1])
        : undefined;
      switch (group.position.site) {
        case "query-key": {
          const pairs = rotaryPairs(group.position);
          const { keyViews } = this.#options;
          if (keyViews?.groups.includes(index) === true) {
            const views = Array.from({ length: keyViews.count }, (_, view) => viewInputs(g, index, view, pairs));
            return { views, layout: group.position.layout, factors };
          }
          const cache = this.#windowCache(index);
          const rows = cache === undefined ? "positions" : `positions${index}`;
          return {
            cos: g.input(`cos.${index}`, "f32", [rows, pairs]),
            sin: g.input(`sin.${index}`, "f32", [rows, pairs]),
            layout: group.position.layout,
            factors,
            cache,
          };
        }
        case "attention-bias": {
          const { numHeads } = group.position;
          const form = biasForm(group.position, this.#options.attentionBias);
          if (form === "rows") {
            return { bias: g.input(`bias.${index}`, "f32", [1, numHeads, "tokens", "keys"]), factors };
          }
          if (form === "columns") {
            const queries = g.input(`queryColumns.${index}`, "f32", ["tokens", numHeads, biasColumns]);
            const keys = g.input(`keyColumns.${index}`, "f32", ["tokens", biasColumns]);
            return { columns: { queries, keys }, factors };
          }
          const byDistance = g.input(`bias.${index}`, "f32", [numHeads, "distances"]);
          return { bias: this.#bias(byDistance, tokens, pastLength), factors };
        }
        case "none":
          return { factors, cache: this.#windowCache(index) };
        default:
          return { factors };
      }
    });
    const embeds = this.#spec.groups.some((group) => positionKind(group) === "embedding");
    const embedding = embeds ? g.input("positionRows", "f32", ["tokens", this.#spec.hiddenSize]) : undefined;
    return { groups, embedding };
  }

  /** A cache of its own for a group whose layers all see the same number of keys. */
  #windowCache(index: number): GroupCache | undefined {
    if (this.#options.windowCaches !== true) return undefined;
    const [window, ...others] = new Set(
      this.#spec.layers.filter(({ group }) => group === index).map(({ attention }) => attention.window),
    );
    if (window === null || window === undefined || others.length > 0) return undefined;
    const pastLength = this.#g.input(`pastLength.${index}`, "i64", []);
    const cache = { window, capacity: `capacity${index}`, pastLength: pastLength.name, group: index, states: [] };
    this.#windows.set(index, cache);
    return { ...cache, pastLength };
  }

  /** bias[h, t, s] = byDistance[h, pastLength + t − s]; what lies after the query is masked, so 0 serves there. */
  #bias(byDistance: Value, tokens: Value, pastLength: Value): Value {
    const g = this.#g;
    this.#keys ??= g.input("keys", "i64", ["keys"]);
    const keys = this.#keys;
    const row = g.add(g.reshape(g.iota(tokens, 0), ["tokens", 1]), pastLength);
    const distance = g.maximum(g.subtract(row, g.reshape(keys, [1, "keys"])), 0);
    const heads = byDistance.shape[0] as number;
    return g.reshape(g.gather(byDistance, distance, 1), [1, heads, "tokens", "keys"]);
  }

  // Blocks.

  #embed(tokens: Value, positionRows: Value | undefined): Value {
    const g = this.#g;
    const { hiddenSize, embedding } = this.#spec;
    let x = this.#matrices.rows("embedding.weight", this.#spec.vocabSize, hiddenSize, tokens);
    if (embedding.scale !== 1) x = g.multiply(x, embedding.scale);
    if (positionRows !== undefined) x = g.add(x, positionRows);
    return embedding.norm === null ? x : this.#matrices.norm(x, embedding.norm, "embeddingNorm");
  }

  #layer(x: Value, layer: LayerSpec, index: number, positions: Positions, pastLength: Value): Value {
    const g = this.#g;
    const name = (weight: string): string => `layers.${index}.${weight}`;
    const { norm, inputNorm, outputNorm, parallel } = layer;
    const before = (y: Value, weight: string): Value => (inputNorm ? this.#matrices.norm(y, norm, name(weight)) : y);
    const after = (y: Value, weight: string): Value => {
      const out = outputNorm ? this.#matrices.norm(y, norm, name(weight)) : y;
      return layer.residualScale === 1 ? out : g.multiply(out, layer.residualScale);
    };
    const attend = (y: Value): Value =>
      g.scope("attention", () =>
        this.#attention(y, layer.attention, index, positions.groups[layer.group]!, pastLength),
      );
    const mlp = (y: Value): Value => g.scope("mlp", () => this.#mlp(y, layer.mlp, name));

    const read = before(x, "attentionNorm");
    const attended = after(attend(read), "attentionPostNorm");
    if (parallel === "no") {
      const middle = g.add(layer.residualFromNorm ? read : x, attended);
      const other = before(middle, "mlpNorm");
      return g.add(layer.residualFromNorm ? other : middle, after(mlp(other), "mlpPostNorm"));
    }
    const other = parallel === "one-norm" ? read : before(x, "mlpNorm");
    return g.add(g.add(x, attended), after(mlp(other), "mlpPostNorm"));
  }

  #attention(x: Value, spec: AttentionSpec, index: number, position: GroupInputs, wholeLength: Value): Value {
    const g = this.#g;
    const { hiddenSize } = this.#spec;
    const { numHeads, numKeyValueHeads, headDim } = spec;
    const name = (weight: string): string => `layers.${index}.${weight}`;
    const clipped = (y: Value): Value => (spec.clip === null ? y : g.maximum(g.minimum(y, spec.clip), -spec.clip));
    const project = (weight: string, heads: number): Value =>
      clipped(this.#matrices.linear(x, name(weight), heads * headDim, hiddenSize, spec.inputBias));
    const packed = this.#packedProjection(x, spec, index, position);
    let query = packed === undefined ? project("query", numHeads) : clipped(packed);
    let key = packed === undefined ? project("key", numKeyValueHeads) : undefined;
    let value = packed === undefined ? project("value", numKeyValueHeads) : undefined;
    if (spec.queryKeyNorm !== null && key !== undefined) {
      query = this.#matrices.headNorm(query, spec.queryKeyNorm, numHeads, headDim, name("queryNorm"));
      key = this.#matrices.headNorm(key, spec.queryKeyNorm, numKeyValueHeads, headDim, name("keyNorm"));
    }
    if (position.factors !== undefined && packed === undefined) query = g.multiply(query, position.factors);
    const { columns } = position;
    const stored = columns === undefined ? headDim : columnsHeadDim(headDim);
    const { cache } = position;
    const shape = [1, numKeyValueHeads, cache?.capacity ?? "capacity", stored] as const;
    const pastKey = g.state(`key.${index}`, "f32", shape);
    const pastValue = g.state(`value.${index}`, "f32", shape);
    cache?.states.push(pastKey.name, pastValue.name);
    const pastLength = cache?.pastLength ?? wholeLength;
    const sinks = this.#sinks(spec, name("sinks"));
    const batched = (y: Value): Value => g.reshape(y, [1, "tokens", y.shape[1]!]);
    query = batched(query);
    key = key === undefined ? undefined : batched(key);
    value = value === undefined ? undefined : batched(value);
    const inputs = { query, key, value, pastKey, pastValue, pastLength, sinks };
    const { scale, window } = spec;
    if (position.views !== undefined && (window !== null || sinks !== undefined)) {
      throw new RangeError(
        `layers[${index}]: expected attention to every key and without sinks for keyViews, got ` +
          `${window === null ? "sinks" : `a window of ${window}`}`,
      );
    }
    const attributes = { numHeads, numKeyValueHeads, scale, window };
    if (columns !== undefined && spec.softcap !== null) {
      throw new RangeError(
        `layers[${index}]: expected no softcap with ALiBi as columns, got ${spec.softcap}; build with attentionBias "dense"`,
      );
    }
    const rotation = { softcap: spec.softcap ?? 0, layout: position.layout ?? "half" } as const;
    const { output, newKey, newValue } =
      key !== undefined && value !== undefined && columns !== undefined
        ? attendWithColumns(g, { ...inputs, key, value }, attributes, columns)
        : key !== undefined && value !== undefined && position.views !== undefined
          ? attendByViews(g, { ...inputs, key, value }, { ...attributes, ...rotation }, position.views)
          : g.attention(
              { ...inputs, cos: position.cos, sin: position.sin, bias: position.bias },
              { ...attributes, ...rotation },
            );
    g.assignRows(pastKey, newKey, 2, pastLength);
    g.assignRows(pastValue, newValue, 2, pastLength);
    const width = numHeads * headDim;
    const rows = g.reshape(output, ["tokens", width]);
    return this.#matrices.linear(rows, name("attentionOutput"), hiddenSize, width, spec.outputBias);
  }

  /** Query, key and value in one product [tokens, (H + 2K)·D], where the file keeps all three alike in quantised
   *  blocks: one weight for a kernel to walk, and half the nodes. Queries come multiplied by their factors. */
  #packedProjection(x: Value, spec: AttentionSpec, index: number, position: GroupInputs): Value | undefined {
    const g = this.#g;
    const { numHeads, numKeyValueHeads, headDim } = spec;
    const names = ["query", "key", "value"].map((one) => `layers.${index}.${one}`);
    if (spec.queryKeyNorm !== null || position.columns !== undefined || position.views !== undefined) return undefined;
    const { hiddenSize } = this.#spec;
    const heads = numHeads + 2 * numKeyValueHeads;
    const widths = [numHeads, numKeyValueHeads, numKeyValueHeads].map((count) => count * headDim);
    const joined = `layers.${index}.queryKeyValue`;
    if (!this.#matrices.join(joined, names, widths, hiddenSize)) return undefined;
    const y = this.#matrices.linear(x, joined, heads * headDim, hiddenSize, spec.inputBias);
    if (position.factors === undefined) return y;
    // Keys and values have the factor 1. As wide as the product, and once for all layers: nothing is broadcast in each.
    const tokens = x.shape[0]!;
    const others = g.numbers("f32", [1, 1], [1]);
    const parts = [g.broadcast(position.factors, [tokens, widths[0]!]), g.broadcast(others, [tokens, 2 * widths[1]!])];
    return g.multiply(y, g.concat(parts, 1));
  }

  #sinks({ sinks, numHeads }: AttentionSpec, name: string): Value | undefined {
    if (sinks) return this.#matrices.vector(name, numHeads);
    if (this.#options.neutralSinks !== true) return undefined;
    return this.#g.numbers("f32", [numHeads], new Float32Array(numHeads).fill(-1e30));
  }

  #mlp(x: Value, spec: MlpSpec, name: (weight: string) => string): Value {
    const g = this.#g;
    const { hiddenSize } = this.#spec;
    const { intermediateSize, bias } = spec;
    let middle: Value;
    if (spec.kind === "plain") {
      middle = activate(g, this.#matrices.linear(x, name("up"), intermediateSize, hiddenSize, bias), spec.activation);
    } else {
      const names = [name("gate"), name("up")];
      const joined = this.#matrices.join(name("gateUp"), names, [intermediateSize, intermediateSize], hiddenSize);
      const [gate, up] = joined
        ? g.split(this.#matrices.linear(x, name("gateUp"), 2 * intermediateSize, hiddenSize, bias), 2)
        : names.map((one) => this.#matrices.linear(x, one, intermediateSize, hiddenSize, bias));
      middle = g.multiply(activate(g, gate!, spec.activation), up!);
    }
    return this.#matrices.linear(middle, name("down"), hiddenSize, intermediateSize, bias);
  }

  // The head.

  #outputs(hidden: Value, asked: AskedLosses | undefined, logitRows: Value): void {
    const g = this.#g;
    if (asked !== undefined) g.output("losses", this.#losses(g.gather(hidden, asked.rows), asked.targets));
    const logits = this.#logits(g.gather(hidden, logitRows));
    g.output("logits", logits);
    // For greedy decoding one id leaves in place of a row, and a sum that is finite where every logit is.
    g.output("likeliest", g.argMax(logits, 1));
    g.output("logitSums", g.sum(logits, 1));
  }

  /** ln Σ e^logit − logit[target], chunk by chunk. */
  #losses(hidden: Value, targets: Value): Value {
    const g = this.#g;
    const chunks = vocabularyChunks(this.#spec.vocabSize, this.#options);
    if (chunks.length === 1) return g.crossEntropy(this.#chunkLogits(hidden, chunks[0]!), targets);
    // Both numbers of a chunk leave it as one value: ONNX Runtime goes through a graph input by input, and would keep the
    // logits of every chunk until all sums are done if the targets' were read apart from them.
    const parts = chunks.map(([from, to]) => {
      const logits = this.#chunkLogits(hidden, [from, to]);
      const total = g.logSumExp(logits, 1, { keepDims: true });
      const at = g.minimum(g.maximum(g.subtract(targets, from), 0), to - from - 1);
      const here = g.gatherElements(logits, g.reshape(at, ["rows", 1]), 1);
      const inside = g.and(g.lessEqual(g.scalar("i64", from), targets), g.less(targets, to));
      return g.concat([total, g.where(g.reshape(inside, ["rows", 1]), here, 0)], 1);
    });
    const all = g.reshape(g.concat(parts, 1), ["rows", chunks.length, 2]);
    const column = (index: number): Value => g.reshape(g.slice(all, 2, index, index + 1), ["rows", chunks.length]);
    return g.subtract(g.logSumExp(column(0), 1), g.sum(column(1), 1));
  }

  #logits(hidden: Value): Value {
    const parts = vocabularyChunks(this.#spec.vocabSize, this.#options).map((chunk) =>
      this.#chunkLogits(hidden, chunk),
    );
    return parts.length === 1 ? parts[0]! : this.#g.concat(parts, 1);
  }

  #chunkLogits(hidden: Value, rows: readonly [number, number]): Value {
    const g = this.#g;
    const { hiddenSize, vocabSize, head } = this.#spec;
    const whole = rows[0] === 0 && rows[1] === vocabSize;
    const weight = head.tied ? "embedding" : "head";
    let logits = this.#matrices.linear(hidden, weight, rows[1] - rows[0], hiddenSize, false, whole ? undefined : rows);
    if (head.bias) {
      const bias = this.#matrices.vector("head.bias", vocabSize);
      logits = g.add(logits, whole ? bias : g.slice(bias, 0, rows[0], rows[1]));
    }
    if (head.scale !== 1) logits = g.multiply(logits, head.scale);
    if (head.softcap !== null) logits = g.multiply(g.tanh(g.divide(logits, head.softcap)), head.softcap);
    return logits;
  }
}

interface GroupInputs {
  readonly cos?: Value;
  readonly sin?: Value;
  readonly layout?: "half" | "interleaved";
  readonly bias?: Value;
  readonly columns?: { readonly queries: Value; readonly keys: Value };
  readonly views?: readonly ViewInputs[];
  readonly factors: Value | undefined;
  readonly cache?: GroupCache | undefined;
}

interface GroupCache extends Omit<WindowCache, "pastLength"> {
  readonly pastLength: Value;
  readonly states: string[];
}

interface Positions {
  readonly groups: readonly GroupInputs[];
  readonly embedding: Value | undefined;
}
