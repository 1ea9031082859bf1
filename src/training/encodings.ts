// How a training graph learns positions. A fixed encoding is an input, computed by src/encodings and cast once: the same
// program trains any of its site, and dropping one is feeding the rotation by nothing. A learned one is weights, and the
// part of the graph that makes a bias or rows of them; `learnedEncoding` gives it back as an encoding of src/encodings.

import {
  type AttentionBiasEncoding,
  fire,
  type KerpleKind,
  kerple,
  learnedAbsolute,
  type PositionEncoding,
  type RotaryLayout,
  t5BucketTable,
  t5RelativeBias,
} from "../encodings/index.ts";
import type { GraphBuilder, Value } from "../graph/index.ts";
import { fromNumbers, type Tensor, toNumbers } from "../tensor/index.ts";
import type { Initial } from "./parameters.ts";

/** An encoding whose numbers are trained. `everyLayer`: each layer has its own; otherwise all layers of the group share
 *  the first one's. */
export type LearnedEncoding =
  | { readonly site: "embedding"; readonly learned: "absolute"; readonly numPositions: number }
  | {
      readonly site: "attention-bias";
      readonly learned: "t5";
      /** 32 when absent. */
      readonly numBuckets?: number;
      /** 128 when absent. */
      readonly maxDistance?: number;
      /** false when absent, as T5 does. */
      readonly everyLayer?: boolean;
    }
  | {
      readonly site: "attention-bias";
      readonly learned: "kerple";
      readonly kind: KerpleKind;
      /** true when absent, as the authors' code does. */
      readonly everyLayer?: boolean;
    }
  | {
      readonly site: "attention-bias";
      readonly learned: "fire";
      /** 32 when absent. */
      readonly hiddenUnits?: number;
      /** Where the threshold L starts; 512 when absent. */
      readonly threshold?: number;
      /** true when absent. */
      readonly everyLayer?: boolean;
    };

/** What layers are trained with. */
export type TrainingEncoding = PositionEncoding | LearnedEncoding;

export function isLearned(encoding: TrainingEncoding): encoding is LearnedEncoding {
  return "learned" in encoding;
}

/** What one layer's attention gets. */
export interface LayerPositions {
  readonly cos?: Value;
  readonly sin?: Value;
  readonly layout?: RotaryLayout;
  /** [1, H, T, T]. */
  readonly bias?: Value;
}

/** What the model asks of an encoding while it is built. */
export interface PositionParts {
  /** Rows to add to the embeddings, [T, C]. */
  readonly rows?: Value;
  layer(index: number): LayerPositions;
}

/** The graph that positions are built in. */
export interface PositionScope {
  readonly g: GraphBuilder;
  readonly length: number;
  readonly hiddenSize: number;
  readonly numHeads: number;
  /** The first layer of the group: its name stands before shared weights. */
  readonly firstLayer: number;
  readonly parameter: (name: string, shape: readonly number[], initial: Initial) => Value;
}

/** ALiBi-like biases and tables have as many numbers as the run's length asks for. */
export function positionParts(encoding: TrainingEncoding, group: number, scope: PositionScope): PositionParts {
  const { g, length, hiddenSize, numHeads } = scope;
  if (!isLearned(encoding)) {
    switch (encoding.site) {
      case "none":
        return { layer: () => ({}) };
      case "embedding":
        return { rows: g.input(`positionRows.${group}`, "f32", [length, hiddenSize]), layer: () => ({}) };
      case "query-key": {
        const shape = [length, encoding.rotaryDim / 2];
        const cos = g.input(`cos.${group}`, "f32", shape);
        const sin = g.input(`sin.${group}`, "f32", shape);
        return { layer: () => ({ cos, sin, layout: encoding.layout }) };
      }
      case "attention-bias": {
        const bias = g.input(`bias.${group}`, "f32", [1, numHeads, length, length]);
        return { layer: () => ({ bias }) };
      }
    }
  }
  if (encoding.learned === "absolute") {
    const { numPositions } = encoding;
    if (length > numPositions) {
      throw new RangeError(`training: expected sequences within the ${numPositions} learned positions, got ${length}`);
    }
    const table = scope.parameter("positions.weight", [numPositions, hiddenSize], normal(0.02));
    return { rows: length === numPositions ? table : g.slice(table, 0, 0, length), layer: () => ({}) };
  }
  const build = (layer: number): Value => learnedBias(encoding, `layers.${layer}.`, scope);
  const everyLayer = encoding.everyLayer ?? encoding.learned !== "t5";
  if (everyLayer) return { layer: (index) => ({ bias: build(index) }) };
  const bias = build(scope.firstLayer);
  return { layer: () => ({ bias }) };
}

type LearnedBias = Exclude<LearnedEncoding, { learned: "absolute" }>;

const normal = (standardDeviation: number): Initial => ({ kind: "normal", standardDeviation });
const uniform = (high: number): Initial => ({ kind: "uniform", low: 0, high });
const constant = (value: number): Initial => ({ kind: "constant", value });

/** What keeps KERPLE's numbers positive in the authors' code. */
const KERPLE_LEAST = 0.01;
const FIRE_EPSILON = 1e-6;

function buckets({ numBuckets = 32, maxDistance = 128 }: { numBuckets?: number; maxDistance?: number }): {
  bidirectional: false;
  numBuckets: number;
  maxDistance: number;
} {
  return { bidirectional: false, numBuckets, maxDistance };
}

/** [1, H, T, T]; entries above the diagonal are masked by who uses it. */
function learnedBias(encoding: LearnedBias, prefix: string, { g, length, numHeads, parameter }: PositionScope): Value {
  const positions = Float64Array.from({ length }, (_, p) => p);
  const square = [1, 1, length, length];
  switch (encoding.learned) {
    case "t5": {
      const options = buckets(encoding);
      const table = parameter(`${prefix}relativeBias.weight`, [options.numBuckets, numHeads], normal(0.02));
      const index = g.numbers("i64", [length, length], t5BucketTable(positions, positions, options));
      return g.reshape(g.transpose(g.gather(table, index), [2, 0, 1]), [1, numHeads, length, length]);
    }
    case "kerple": {
      const power = encoding.kind === "power";
      const heads = (name: string, initial: Initial): Value =>
        g.reshape(g.maximum(parameter(`${prefix}kerple.${name}`, [numHeads], initial), KERPLE_LEAST), [
          1,
          numHeads,
          1,
          1,
        ]);
      const r1 = heads("r1", uniform(power ? 1 : 2));
      let r2 = heads("r2", uniform(power ? 2 : 1));
      const distances = g.numbers(
        "f32",
        square,
        grid(length, (t, s) => Math.max(t - s, 0)),
      );
      if (power) {
        r2 = g.minimum(r2, 2);
        return g.negate(g.multiply(r1, g.power(distances, r2)));
      }
      return g.negate(g.multiply(r1, g.log(g.add(g.multiply(r2, distances), 1))));
    }
    case "fire": {
      const { hiddenUnits = 32, threshold: start = 512 } = encoding;
      const c = g.absolute(parameter(`${prefix}fire.c`, [], constant(0.1)));
      const threshold = g.absolute(parameter(`${prefix}fire.threshold`, [], constant(start)));
      const psi = (x: Value): Value => g.log(g.add(g.multiply(c, x), 1));
      const distances = g.numbers(
        "f32",
        [length, length],
        grid(length, (t, s) => Math.abs(t - s)),
      );
      const rows = g.numbers("f32", [length, 1], positions);
      const share = g.divide(psi(distances), g.add(psi(g.maximum(rows, threshold)), FIRE_EPSILON));
      const layer = (x: Value, name: string, outputs: number, inputs: number): Value => {
        const weight = parameter(
          `${prefix}fire.layers.${name}.weight`,
          [outputs, inputs],
          normal(1 / Math.sqrt(inputs)),
        );
        const bias = parameter(`${prefix}fire.layers.${name}.bias`, [outputs], constant(0));
        return g.add(g.matmul(x, weight, { transposeB: true }), bias);
      };
      const hidden = g.relu(layer(g.reshape(share, [length * length, 1]), "0", hiddenUnits, 1));
      const bias = layer(hidden, "1", numHeads, hiddenUnits);
      return g.reshape(g.transpose(bias, [1, 0]), [1, numHeads, length, length]);
    }
  }
}

function grid(length: number, value: (t: number, s: number) => number): Float64Array {
  const out = new Float64Array(length * length);
  for (let t = 0; t < length; t++) for (let s = 0; s < length; s++) out[t * length + s] = value(t, s);
  return out;
}

/**
 * A fixed encoding's inputs at a length, as `positionParts` names them. Another encoding may be fed to the same program
 * if it acts at the same site with the same sizes; "none" may be fed to any, as the rotation by nothing, or zeros.
 *
 * @param encoding what is fed
 * @param built what the program was built with
 * @throws RangeError when they do not fit, or queries and keys turn differently (xPos)
 */
export function positionFeeds(
  encoding: PositionEncoding,
  built: PositionEncoding,
  group: number,
  { length, hiddenSize, numHeads }: { length: number; hiddenSize: number; numHeads: number },
): Record<string, Tensor> {
  const positions = Float64Array.from({ length }, (_, p) => p);
  const who = "positionFeeds";
  if (encoding.site !== "none" && encoding.site !== built.site) {
    throw new RangeError(
      `${who}: expected an encoding at ${built.site} or none, got ${encoding.name} at ${encoding.site}`,
    );
  }
  switch (built.site) {
    case "none":
      return {};
    case "embedding": {
      const rows = encoding.site === "embedding" ? encoding.rows(positions) : new Float64Array(length * hiddenSize);
      return { [`positionRows.${group}`]: fromNumbers("f32", [length, hiddenSize], rows) };
    }
    case "query-key": {
      const pairs = built.rotaryDim / 2;
      let cos = new Float64Array(length * pairs).fill(1);
      let sin = new Float64Array(length * pairs);
      if (encoding.site === "query-key") {
        if (encoding.rotaryDim !== built.rotaryDim || encoding.layout !== built.layout) {
          throw new RangeError(
            `${who}: expected ${built.rotaryDim} channels rotated in layout ${built.layout}, got ${encoding.rotaryDim} in ${encoding.layout}`,
          );
        }
        const queries = encoding.queryTables(positions, length);
        const keys = encoding.keyTables(positions, length);
        if (queries.cos.some((x, i) => x !== keys.cos[i] || queries.sin[i] !== keys.sin[i])) {
          throw new RangeError(
            `${who}: expected queries and keys to turn alike, got ${encoding.name}, which scales keys`,
          );
        }
        cos = Float64Array.from(queries.cos);
        sin = Float64Array.from(queries.sin);
      }
      return {
        [`cos.${group}`]: fromNumbers("f32", [length, pairs], cos),
        [`sin.${group}`]: fromNumbers("f32", [length, pairs], sin),
      };
    }
    case "attention-bias": {
      const size = numHeads * length * length;
      const bias = encoding.site === "attention-bias" ? encoding.bias(positions, positions) : new Float64Array(size);
      if (bias.length !== size) {
        throw new RangeError(
          `${who}: expected a bias of ${numHeads} heads, got one of ${bias.length / length / length}`,
        );
      }
      return { [`bias.${group}`]: fromNumbers("f32", [1, numHeads, length, length], bias) };
    }
  }
}

/**
 * A learned encoding with its trained numbers, as src/encodings has it.
 *
 * @param weights by name, as the trainer gives them
 * @param layer whose numbers, where layers have their own; the first of the group where they share
 */
export function learnedEncoding(
  encoding: LearnedEncoding,
  weights: ReadonlyMap<string, Tensor>,
  layer: number,
): PositionEncoding {
  const weight = (name: string): Float64Array => {
    const found = weights.get(name);
    if (found === undefined) throw new RangeError(`learnedEncoding: expected a weight ${name}, got none`);
    return Float64Array.from(toNumbers(found));
  };
  const own = (name: string): Float64Array => weight(`layers.${layer}.${name}`);
  const atLeast = (values: Float64Array): Float64Array => values.map((x) => Math.max(x, Math.fround(KERPLE_LEAST)));
  switch (encoding.learned) {
    case "absolute": {
      const table = weight("positions.weight");
      return learnedAbsolute({ table, hiddenSize: table.length / encoding.numPositions });
    }
    case "t5": {
      const options = buckets(encoding);
      const table = own("relativeBias.weight");
      return t5RelativeBias({ ...options, numHeads: table.length / options.numBuckets, weights: table });
    }
    case "kerple": {
      const { kind } = encoding;
      const r2 = atLeast(own("kerple.r2"));
      const limited = kind === "power" ? r2.map((x) => Math.min(x, 2)) : r2;
      return kerple({ kind, r1: atLeast(own("kerple.r1")), r2: limited }) satisfies AttentionBiasEncoding;
    }
    case "fire":
      return fire({
        layers: ["0", "1"].map((name) => ({
          weight: own(`fire.layers.${name}.weight`),
          bias: own(`fire.layers.${name}.bias`),
        })),
        c: Math.abs(own("fire.c")[0]!),
        threshold: Math.abs(own("fire.threshold")[0]!),
        epsilon: FIRE_EPSILON,
      });
  }
}
