// A checkpoint's weights in a graph: which parameter is which part of which weight, in the form that the file has it, and
// the products, rows and norms that are made of them. Matrices that a file keeps alike may be one.

import type { GraphBuilder, Value } from "../graph/index.ts";
import type { AttentionSpec, ModelSpec, NormSpec } from "./spec.ts";

/** How a matrix is stored in the graph. quantized: as QuantizedMatrix (formats/weights) has it. */
export type WeightForm =
  | { readonly kind: "float32" }
  | {
      readonly kind: "quantized";
      readonly bits: 4 | 8;
      readonly blockSize: number;
      readonly hasZeroPoints: boolean;
      readonly hasMinimum: boolean;
    };

/** Which part of which weight a graph's parameter is. */
export interface ParameterSource {
  /** Our name: "layers.3.query.weight". */
  readonly weight: string;
  readonly part: "float32" | "blocks" | "scales" | "zeroPoints" | "minimum";
  /** Of the whole weight, as numbers: [out, in] or [length]. */
  readonly shape: readonly number[];
  /** Rows of the matrix; all when absent. */
  readonly rows?: readonly [from: number, to: number];
  /** Where it is several weights one below the other: those. */
  readonly joined?: readonly JoinedWeight[];
}

export interface JoinedWeight {
  readonly weight: string;
  readonly shape: readonly number[];
}

/** The checkpoint's weights that a parameter is read from, in order. */
export function readFrom({ weight, shape, joined }: ParameterSource): readonly JoinedWeight[] {
  return joined ?? [{ weight, shape }];
}

export interface MatrixOptions {
  /** The form of each matrix by our name; float32 when absent. Vectors are always float32. */
  readonly form?: (weight: string) => WeightForm;
  /** Of quantised products: 0 exact in float32, 4 with activations rounded to int8 (faster for one token). */
  readonly accuracyLevel?: 0 | 4;
  /** Whether losses can be asked for (when absent, they can). Without them the head is one product. */
  readonly losses?: boolean;
  /** Columns of the logits that exist at once; 8192 when absent. */
  readonly vocabularyChunk?: number;
}

const float32: WeightForm = { kind: "float32" };

/** The parts of the vocabulary in which the head runs, and in which its matrix is held. */
export function vocabularyChunks(
  vocabSize: number,
  { losses, vocabularyChunk }: MatrixOptions,
): (readonly [from: number, to: number])[] {
  const most = losses === false ? vocabSize : 8192;
  const count = Math.ceil(vocabSize / (vocabularyChunk ?? most));
  const size = Math.ceil(vocabSize / count);
  return Array.from({ length: count }, (_, i) => [i * size, Math.min(vocabSize, (i + 1) * size)] as const);
}

/** Weights of a graph that is being built. Names are `ParameterSource`'s, without ".weight" and ".bias". */
export class Matrices {
  readonly #g: GraphBuilder;
  readonly #spec: ModelSpec;
  readonly #options: MatrixOptions;
  /** What the graph's parameters are, as far as they are named. */
  readonly parameters: Map<string, ParameterSource> = new Map();
  /** Weights that are several of a checkpoint's, one below the other. */
  readonly #joined = new Map<string, readonly JoinedWeight[]>();

  constructor(g: GraphBuilder, spec: ModelSpec, options: MatrixOptions) {
    this.#g = g;
    this.#spec = spec;
    this.#options = options;
  }

  norm(x: Value, spec: NormSpec, name: string): Value {
    const g = this.#g;
    const width = x.shape.at(-1) as number;
    const weight = this.vector(`${name}.weight`, width);
    if (spec.kind === "rms") return g.rmsNorm(x, weight, spec.epsilon);
    return g.layerNorm(x, weight, spec.bias ? this.vector(`${name}.bias`, width) : undefined, spec.epsilon);
  }

  headNorm(
    x: Value,
    { over, norm }: NonNullable<AttentionSpec["queryKeyNorm"]>,
    heads: number,
    headDim: number,
    name: string,
  ): Value {
    const g = this.#g;
    if (over === "width") return this.norm(x, norm, name);
    const split = g.reshape(x, ["tokens", heads, headDim]);
    const out = over === "head" ? this.norm(split, norm, name) : this.#eachHeadNorm(split, norm, name);
    return g.reshape(out, ["tokens", heads * headDim]);
  }

  /** A norm of x [tokens, H, D] over D, with a weight [H, D]. */
  #eachHeadNorm(x: Value, { kind, epsilon, bias }: NormSpec, name: string): Value {
    const g = this.#g;
    const shape = x.shape.slice(1) as number[];
    const part = (which: string): Value => this.parameter(`${name}.${which}`, "float32", shape, shape);
    const ones = g.numbers("f32", [shape[1]!], new Float32Array(shape[1]!).fill(1));
    const normal = kind === "rms" ? g.rmsNorm(x, undefined, epsilon) : g.layerNorm(x, ones, undefined, epsilon);
    const scaled = g.multiply(normal, part("weight"));
    return bias ? g.add(scaled, part("bias")) : scaled;
  }

  /** x · Wᵀ + b for W [outputs, inputs]. */
  linear(
    x: Value,
    name: string,
    outputs: number,
    inputs: number,
    bias: boolean,
    rows?: readonly [number, number],
  ): Value {
    const g = this.#g;
    const weight = `${name}.weight`;
    // Rows are a chunk of the vocabulary, the only matrix that is ever taken in parts.
    const whole = [rows === undefined ? outputs : this.#spec.vocabSize, inputs];
    const form = this.#form(weight);
    let y: Value;
    if (form.kind === "float32") {
      y = g.matmul(x, this.parameter(weight, "float32", [outputs, inputs], whole, rows), { transposeB: true });
    } else {
      const { bits, blockSize } = form;
      const { minimum, ...parts } = this.#quantized(weight, form, outputs, whole, rows);
      y = g.quantizedMatmul(x, parts, { bits, blockSize, accuracyLevel: this.#options.accuracyLevel ?? 0 });
      if (minimum !== undefined) {
        // Σ over a block of x, times what the whole block is raised by.
        const blocks = inputs / blockSize;
        const sums = g.sum(g.reshape(x, [...x.shape.slice(0, -1), blocks, blockSize]), -1);
        y = g.add(y, g.matmul(sums, minimum, { transposeB: true }));
      }
    }
    return bias ? g.add(y, this.vector(`${name}.bias`, outputs)) : y;
  }

  /** Lets matrices be one, one below the other, where the file keeps them alike in quantised blocks: false where not. */
  join(joined: string, names: readonly string[], outputs: readonly number[], inputs: number): boolean {
    const forms = names.map((one) => this.#form(`${one}.weight`));
    const isAlike = forms.every((form) => JSON.stringify(form) === JSON.stringify(forms[0]));
    if (!isAlike || forms[0]!.kind === "float32") return false;
    const parts = (what: string, width: readonly number[]): JoinedWeight[] =>
      names.map((one, i) => ({ weight: `${one}.${what}`, shape: [outputs[i]!, ...width] }));
    this.#joined.set(`${joined}.weight`, parts("weight", [inputs]));
    this.#joined.set(`${joined}.bias`, parts("bias", []));
    return true;
  }

  #form(weight: string): WeightForm {
    return this.#options.form?.(this.#joined.get(weight)?.at(0)?.weight ?? weight) ?? float32;
  }

  /** Rows of a matrix [count, width] by index, as float32. */
  rows(weight: string, count: number, width: number, indices: Value): Value {
    const g = this.#g;
    const form = this.#form(weight);
    if (form.kind === "float32") {
      return g.gather(this.parameter(weight, "float32", [count, width], [count, width]), indices);
    }
    // In the head's chunks where it has the same matrix, so that one copy of it is held.
    const tied = this.#spec.head.tied && weight === "embedding.weight";
    const chunks = tied ? vocabularyChunks(this.#spec.vocabSize, this.#options) : [[0, count] as const];
    const whole = [count, width];
    if (chunks.length === 1) return this.#chosenRows(this.#quantized(weight, form, count, whole), form, indices);
    let out: Value | undefined;
    for (const [from, to] of chunks) {
      const matrix = this.#quantized(weight, form, to - from, whole, [from, to]);
      const here = this.#chosenRows(matrix, form, g.minimum(g.maximum(g.subtract(indices, from), 0), to - from - 1));
      const inside = g.reshape(g.lessEqual(g.scalar("i64", from), indices), [...indices.shape, 1]);
      out = out === undefined ? here : g.where(inside, here, out);
    }
    return out!;
  }

  #chosenRows(
    matrix: QuantizedValues,
    { bits, blockSize }: Extract<WeightForm, { kind: "quantized" }>,
    indices: Value,
  ): Value {
    const g = this.#g;
    const chosen = {
      blocks: g.gather(matrix.blocks, indices),
      scales: g.gather(matrix.scales, indices),
      zeroPoints: matrix.zeroPoints === undefined ? undefined : g.gather(matrix.zeroPoints, indices),
    };
    const x = g.dequantize(chosen, { bits, blockSize });
    if (matrix.minimum === undefined) return x;
    const blocks = matrix.minimum.shape[1]!;
    const raise = g.reshape(g.gather(matrix.minimum, indices), [...indices.shape, blocks, 1]);
    return g.reshape(g.add(g.reshape(x, [...indices.shape, blocks, blockSize]), raise), x.shape);
  }

  #quantized(
    weight: string,
    form: Extract<WeightForm, { kind: "quantized" }>,
    outputs: number,
    whole: readonly number[],
    rows?: readonly [number, number],
  ): QuantizedValues {
    const { bits, blockSize } = form;
    const blocks = whole[1]! / blockSize;
    const packed = Math.ceil((blocks * bits) / 8);
    return {
      blocks: this.parameter(weight, "blocks", [outputs, blocks, (blockSize * bits) / 8], whole, rows),
      scales: this.parameter(weight, "scales", [outputs, blocks], whole, rows),
      ...(form.hasZeroPoints
        ? { zeroPoints: this.parameter(weight, "zeroPoints", [outputs, packed], whole, rows) }
        : {}),
      ...(form.hasMinimum ? { minimum: this.parameter(weight, "minimum", [outputs, blocks], whole, rows) } : {}),
    };
  }

  vector(name: string, length: number): Value {
    return this.parameter(name, "float32", [length], [length]);
  }

  parameter(
    weight: string,
    part: ParameterSource["part"],
    stored: readonly number[],
    shape: readonly number[],
    rows?: readonly [number, number],
  ): Value {
    const base = part === "float32" ? weight : `${weight}:${part}`;
    const name = rows === undefined ? base : `${base}[${rows[0]}:${rows[1]}]`;
    const joined = this.#joined.get(weight);
    this.parameters.set(name, {
      weight,
      part,
      shape,
      ...(rows === undefined ? {} : { rows }),
      ...(joined === undefined ? {} : { joined }),
    });
    return this.#g.parameter(name, part === "blocks" || part === "zeroPoints" ? "u8" : "f32", stored);
  }
}

interface QuantizedValues {
  readonly blocks: Value;
  readonly scales: Value;
  readonly zeroPoints?: Value;
  readonly minimum?: Value;
}
