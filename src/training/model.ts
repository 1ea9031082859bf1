// A decoder for training, from the same ModelSpec and with the same weight names as the one for inference
// (src/models/decoder.ts), so that what is trained here is run there. It differs in what training needs: batches, no
// cache, rows of tokens as one matrix [N, C] (N = B·T), and weights of RMS norms multiplied into the matrices that read
// them: (x̂ ∘ w)·Mᵀ = x̂·(M ∘ w)ᵀ, which spares passes over activations in both directions.

import type { GraphBuilder, Value } from "../graph/index.ts";
import { activate } from "../models/activation.ts";
import type { Activation, AttentionSpec, LayerSpec, MlpSpec, ModelSpec, NormSpec } from "../models/spec.ts";
import { type LayerPositions, type PositionParts, positionParts, type TrainingEncoding } from "./encodings.ts";
import type { Initial } from "./parameters.ts";

/** What training needs of a ModelSpec: layers name a group, and each group has an encoding of its own beside. */
export type TrainableSpec = Pick<ModelSpec, "vocabSize" | "hiddenSize" | "embedding" | "layers" | "finalNorm" | "head">;

export interface SmallDecoderOptions {
  readonly vocabSize: number;
  readonly hiddenSize: number;
  readonly numLayers: number;
  readonly numHeads: number;
  /** numHeads when absent. */
  readonly numKeyValueHeads?: number;
  /** hiddenSize / numHeads when absent. */
  readonly headDim?: number;
  readonly intermediateSize: number;
  /** gated when absent. */
  readonly mlp?: "gated" | "plain";
  /** silu when gated, gelu when plain. */
  readonly activation?: Activation;
  /** rms when absent. */
  readonly norm?: "rms" | "layer";
  /** 1e-5 when absent. */
  readonly normEpsilon?: number;
  /** Biases of every matrix and of layer norms; false when absent. */
  readonly bias?: boolean;
  /** Queries and keys of each head are normalised before they are turned; false when absent. */
  readonly queryKeyNorm?: boolean;
  /** True when absent. */
  readonly tied?: boolean;
  /** A norm of the embeddings, as the blocks' (BLOOM); false when absent. */
  readonly embeddingNorm?: boolean;
  /** Which group each layer belongs to; all to 0 when absent. */
  readonly groups?: readonly number[];
  /** Keys that a layer's queries see, null for all; one a layer. */
  readonly windows?: readonly (number | null)[];
  /** Multiplies the token embeddings; 1 when absent. */
  readonly embeddingScale?: number;
  /** Multiplies query · key: 1/√D when absent. T5 has 1. */
  readonly scale?: number;
}

/**
 * The spec of a small pre-norm decoder: Llama's blocks by default, GPT-2's with `norm: "layer"`, `mlp: "plain"` and
 * `bias`.
 *
 * @throws RangeError for heads that do not divide the width, or lists of another length than the layers
 */
export function smallDecoder(options: SmallDecoderOptions): TrainableSpec {
  const { vocabSize, hiddenSize, numLayers, numHeads, intermediateSize } = options;
  const { mlp = "gated", norm: kind = "rms", bias = false } = options;
  const headDim = options.headDim ?? hiddenSize / numHeads;
  if (!Number.isInteger(headDim)) {
    throw new RangeError(`smallDecoder: expected numHeads to divide hiddenSize, got ${numHeads} and ${hiddenSize}`);
  }
  for (const name of ["groups", "windows"] as const) {
    const list = options[name];
    if (list !== undefined && list.length !== numLayers) {
      throw new RangeError(`smallDecoder: expected ${name} to have ${numLayers} entries, got ${list.length}`);
    }
  }
  const norm: NormSpec = { kind, epsilon: options.normEpsilon ?? 1e-5, bias: kind === "layer" && bias };
  const layer = (index: number): LayerSpec => ({
    group: options.groups?.[index] ?? 0,
    attention: {
      numHeads,
      numKeyValueHeads: options.numKeyValueHeads ?? numHeads,
      headDim,
      inputBias: bias,
      outputBias: bias,
      queryKeyNorm: options.queryKeyNorm ? { over: "head", norm } : null,
      scale: options.scale ?? 1 / Math.sqrt(headDim),
      softcap: null,
      window: options.windows?.[index] ?? null,
      clip: null,
      sinks: false,
    },
    mlp: { kind: mlp, activation: options.activation ?? (mlp === "gated" ? "silu" : "gelu"), intermediateSize, bias },
    norm,
    inputNorm: true,
    outputNorm: false,
    parallel: "no",
    residualScale: 1,
    residualFromNorm: false,
  });
  return {
    vocabSize,
    hiddenSize,
    embedding: { scale: options.embeddingScale ?? 1, norm: options.embeddingNorm ? norm : null },
    layers: Array.from({ length: numLayers }, (_, index) => layer(index)),
    finalNorm: norm,
    head: { tied: options.tied ?? true, bias: false, scale: 1, softcap: null },
  };
}

/** Gives a weight's value in the graph; the same for the same name. */
export type ParameterSource = (name: string, shape: readonly number[], initial: Initial) => Value;

export interface DecoderInputs {
  /** i64 [B, T]. */
  readonly tokens: Value;
  /** i64 [B, T]; below 0: does not count. */
  readonly targets: Value;
}

const ones: Initial = { kind: "constant", value: 1 };
const zeros: Initial = { kind: "constant", value: 0 };
const STANDARD_DEVIATION = 0.02;

/** A value that a weight of a norm still has to multiply. */
interface Scaled {
  readonly value: Value;
  readonly weight?: Value;
}

/** Positions of each group, made once a program. */
export function decoderPositions(
  g: GraphBuilder,
  spec: TrainableSpec,
  encodings: readonly TrainingEncoding[],
  length: number,
  parameter: ParameterSource,
): PositionParts[] {
  return encodings.map((encoding, group) => {
    const firstLayer = spec.layers.findIndex((layer) => layer.group === group);
    const { numHeads, headDim } = spec.layers[Math.max(0, firstLayer)]!.attention;
    if (!("learned" in encoding)) {
      const fits =
        (encoding.site !== "embedding" || encoding.hiddenSize === spec.hiddenSize) &&
        (encoding.site !== "query-key" || encoding.headDim === headDim) &&
        (encoding.site !== "attention-bias" || encoding.numHeads === numHeads);
      if (!fits) {
        throw new RangeError(
          `training: expected an encoding of width ${spec.hiddenSize}, ${numHeads} heads of ${headDim}, got ${encoding.name} of other sizes`,
        );
      }
    }
    const scope = { g, length, hiddenSize: spec.hiddenSize, numHeads, firstLayer, parameter };
    return g.scope(`positions[${group}]`, () => positionParts(encoding, group, scope));
  });
}

/** Logits of every token, [N, V]. */
export function decoderLogits(
  g: GraphBuilder,
  spec: TrainableSpec,
  positions: readonly PositionParts[],
  tokens: Value,
  parameter: ParameterSource,
): Value {
  const [batch, length] = tokens.shape as [number, number];
  const build = new Decoder(g, spec, batch, length, parameter);
  let x = g.scope("embedding", () => build.embed(tokens, positions));
  spec.layers.forEach((layer, index) => {
    const group = positions[layer.group];
    if (group === undefined) {
      throw new RangeError(
        `training: expected an encoding for group ${layer.group}, got ${positions.length} encodings`,
      );
    }
    x = g.scope(`layers[${index}]`, () => build.layer(x, layer, index, group.layer(index)));
  });
  return g.scope("head", () => build.logits(x));
}

/** The loss of every token, [N], 0 where the target does not count. */
export function decoderLosses(
  g: GraphBuilder,
  spec: TrainableSpec,
  positions: readonly PositionParts[],
  { tokens, targets }: DecoderInputs,
  parameter: ParameterSource,
): Value {
  return targetLosses(g, decoderLogits(g, spec, positions, tokens, parameter), targets);
}

/** Losses [N] of targets [B, T] under logits [N, V], 0 where a target does not count. */
export function targetLosses(g: GraphBuilder, logits: Value, targets: Value): Value {
  return g.scope("head", () => {
    const flat = g.reshape(targets, [logits.shape[0] as number]);
    const losses = g.crossEntropy(logits, g.maximum(flat, 0));
    return g.where(g.less(flat, 0), 0, losses);
  });
}

class Decoder {
  readonly #g: GraphBuilder;
  readonly #spec: TrainableSpec;
  readonly #batch: number;
  readonly #length: number;
  readonly #parameter: ParameterSource;

  constructor(g: GraphBuilder, spec: TrainableSpec, batch: number, length: number, parameter: ParameterSource) {
    this.#g = g;
    this.#spec = spec;
    this.#batch = batch;
    this.#length = length;
    this.#parameter = parameter;
  }

  get #rows(): number {
    return this.#batch * this.#length;
  }

  embed(tokens: Value, positions: readonly PositionParts[]): Value {
    const g = this.#g;
    const { hiddenSize, embedding } = this.#spec;
    let x = g.gather(this.#embedding(), g.reshape(tokens, [this.#rows]));
    if (embedding.scale !== 1) x = g.multiply(x, embedding.scale);
    for (const { rows } of positions) {
      if (rows === undefined) continue;
      const byBatch = g.reshape(x, [this.#batch, this.#length, hiddenSize]);
      x = g.reshape(g.add(byBatch, rows), [this.#rows, hiddenSize]);
    }
    return embedding.norm === null ? x : this.#whole(this.#norm(x, embedding.norm, "embeddingNorm"));
  }

  layer(x: Value, layer: LayerSpec, index: number, positions: LayerPositions): Value {
    const g = this.#g;
    const name = (weight: string): string => `layers.${index}.${weight}`;
    const { norm, inputNorm, outputNorm, parallel, residualFromNorm } = layer;
    const before = (y: Value, weight: string): Scaled => (inputNorm ? this.#norm(y, norm, name(weight)) : { value: y });
    const after = (y: Value, weight: string): Value => {
      const out = outputNorm ? this.#whole(this.#norm(y, norm, name(weight))) : y;
      return layer.residualScale === 1 ? out : g.multiply(out, layer.residualScale);
    };
    const attend = (y: Scaled): Value =>
      after(
        g.scope("attention", () => this.#attention(y, layer.attention, index, positions)),
        "attentionPostNorm",
      );
    const mlp = (y: Scaled): Value =>
      after(
        g.scope("mlp", () => this.#mlp(y, layer.mlp, name)),
        "mlpPostNorm",
      );

    const read = before(x, "attentionNorm");
    const base = residualFromNorm ? this.#whole(read) : x;
    const middle = g.add(base, attend(read));
    if (parallel === "one-norm") return g.add(middle, mlp(read));
    if (parallel === "two-norms") return g.add(middle, mlp(before(x, "mlpNorm")));
    const second = before(middle, "mlpNorm");
    return g.add(residualFromNorm ? this.#whole(second) : middle, mlp(second));
  }

  #attention(x: Scaled, spec: AttentionSpec, index: number, positions: LayerPositions): Value {
    const g = this.#g;
    const { numHeads, numKeyValueHeads, headDim } = spec;
    const name = (weight: string): string => `layers.${index}.${weight}`;
    const byBatch = (y: Value): Value => g.reshape(y, [this.#batch, this.#length, y.shape[1]!]);
    const project = (weight: string, heads: number): Value => {
      const y = this.#linear(x, name(weight), heads * headDim, spec.inputBias);
      return spec.clip === null ? y : g.maximum(g.minimum(y, spec.clip), -spec.clip);
    };
    const normed = (y: Value, heads: number, weight: string): Value =>
      spec.queryKeyNorm === null ? y : this.#headNorm(y, spec.queryKeyNorm, heads, headDim, name(weight));
    const { output } = g.attention(
      {
        query: byBatch(normed(project("query", numHeads), numHeads, "queryNorm")),
        key: byBatch(normed(project("key", numKeyValueHeads), numKeyValueHeads, "keyNorm")),
        value: byBatch(project("value", numKeyValueHeads)),
        cos: positions.cos,
        sin: positions.sin,
        bias: positions.bias,
        sinks: spec.sinks ? this.#parameter(name("sinks"), [numHeads], zeros) : undefined,
      },
      {
        numHeads,
        numKeyValueHeads,
        scale: spec.scale,
        softcap: spec.softcap ?? 0,
        window: spec.window,
        layout: positions.layout ?? "half",
      },
    );
    const rows = g.reshape(output, [this.#rows, numHeads * headDim]);
    return this.#linear({ value: rows }, name("attentionOutput"), this.#spec.hiddenSize, spec.outputBias, true);
  }

  #mlp(x: Scaled, spec: MlpSpec, name: (weight: string) => string): Value {
    const g = this.#g;
    const { intermediateSize, bias } = spec;
    const up = this.#linear(x, name("up"), intermediateSize, bias);
    const middle =
      spec.kind === "plain"
        ? activate(g, up, spec.activation)
        : g.multiply(activate(g, this.#linear(x, name("gate"), intermediateSize, bias), spec.activation), up);
    return this.#linear({ value: middle }, name("down"), this.#spec.hiddenSize, bias, true);
  }

  /** [N, V]. */
  logits(x: Value): Value {
    const g = this.#g;
    const { vocabSize, hiddenSize, finalNorm, head } = this.#spec;
    const read = finalNorm === null ? { value: x } : this.#norm(x, finalNorm, "finalNorm");
    const weight = head.tied
      ? this.#embedding()
      : this.#parameter("head.weight", [vocabSize, hiddenSize], normal(STANDARD_DEVIATION));
    let logits = this.#product(read, weight);
    if (head.bias) logits = g.add(logits, this.#parameter("head.bias", [vocabSize], zeros));
    if (head.scale !== 1) logits = g.multiply(logits, head.scale);
    if (head.softcap !== null) logits = g.multiply(g.tanh(g.divide(logits, head.softcap)), head.softcap);
    return logits;
  }

  #embedding(): Value {
    const { vocabSize, hiddenSize } = this.#spec;
    return this.#parameter("embedding.weight", [vocabSize, hiddenSize], normal(STANDARD_DEVIATION));
  }

  #norm(x: Value, spec: NormSpec, name: string): Scaled {
    const g = this.#g;
    const width = x.shape.at(-1) as number;
    const weight = this.#parameter(`${name}.weight`, [width], ones);
    if (spec.kind === "rms") return { value: g.rmsNorm(x, undefined, spec.epsilon), weight };
    const bias = spec.bias ? this.#parameter(`${name}.bias`, [width], zeros) : undefined;
    return { value: g.layerNorm(x, weight, bias, spec.epsilon) };
  }

  #whole({ value, weight }: Scaled): Value {
    return weight === undefined ? value : this.#g.multiply(value, weight);
  }

  #headNorm(
    x: Value,
    { over, norm }: NonNullable<AttentionSpec["queryKeyNorm"]>,
    heads: number,
    headDim: number,
    name: string,
  ): Value {
    const g = this.#g;
    if (over === "width") return this.#whole(this.#norm(x, norm, name));
    if (over === "each-head") {
      throw new RangeError("training: expected one weight for every head's norm, got one for each head");
    }
    const split = g.reshape(x, [this.#rows, heads, headDim]);
    return g.reshape(this.#whole(this.#norm(split, norm, name)), [this.#rows, heads * headDim]);
  }

  /** x · Wᵀ + b for W [outputs, inputs]. What writes to the residual stream begins smaller by √(2L) (GPT-2). */
  #linear(x: Scaled, name: string, outputs: number, bias: boolean, writes = false): Value {
    const inputs = x.value.shape[1] as number;
    const deviation = writes ? STANDARD_DEVIATION / Math.sqrt(2 * this.#spec.layers.length) : STANDARD_DEVIATION;
    const y = this.#product(x, this.#parameter(`${name}.weight`, [outputs, inputs], normal(deviation)));
    return bias ? this.#g.add(y, this.#parameter(`${name}.bias`, [outputs], zeros)) : y;
  }

  #product({ value, weight: scale }: Scaled, weight: Value): Value {
    const g = this.#g;
    return g.matmul(value, scale === undefined ? weight : g.multiply(weight, scale), { transposeB: true });
  }
}

function normal(standardDeviation: number): Initial {
  return { kind: "normal", standardDeviation };
}
