// A checkpoint as a model: its description, its spec, and its weights under our names. Opening reads headers only;
// weights are read when they are asked for.

import { FormatError } from "../formats/bytes/format-error.ts";
import { parseJson } from "../formats/bytes/json.ts";
import type { Finding } from "../formats/finding.ts";
import { readGguf } from "../formats/gguf/index.ts";
import { findTextModel } from "../formats/huggingface/text-model.ts";
import { readLlama2cHeader } from "../formats/llama2c/index.ts";
import type { ModelDescription } from "../formats/model-description.ts";
import { type ModelFiles, type ModelSource, modelFilesOf, opened } from "../formats/model-files.ts";
import { openModel } from "../formats/open-model.ts";
import { openWeights, type QuantizedMatrix, type Weights } from "../formats/weights/index.ts";
import { MissingWeightError } from "../graph/index.ts";
import { familyOf } from "./families/index.ts";
import type { ModelFamily } from "./family.ts";
import type { WeightForm } from "./matrices.ts";
import { type NameMap, placedNames, type RowRange, ruleFor, type WeightRule } from "./names.ts";
import { ggufSettings, huggingFaceSettings, llama2cSettings, type Settings } from "./settings.ts";
import type { ModelSpec } from "./spec.ts";

/** A weight that a session may map where it lies. */
export interface WeightFile {
  readonly file: string;
  readonly offset: number;
  readonly length: number;
}

export interface Checkpoint {
  readonly path: string;
  readonly description: ModelDescription;
  readonly family: ModelFamily;
  readonly spec: ModelSpec;
  /** On tensors that no weight of the family is read from. */
  readonly findings: readonly Finding[];
  /** Whether any matrix is stored in quantised blocks. */
  readonly isQuantized: boolean;
  has(weight: string): boolean;
  /** How a matrix can be given to a graph without rounding it anew. */
  form(weight: string): WeightForm;
  /** @throws MissingWeightError naming the checkpoint's tensor; RangeError for another number of elements than the
   *  shape's; FormatError for NaN or infinity */
  readFloat32(weight: string, shape: readonly number[]): Promise<Float32Array>;
  readQuantized(weight: string, shape: readonly [rows: number, columns: number]): Promise<QuantizedMatrix>;
  /** Where a weight lies on disk as row-major float32 that needs nothing done to it; null otherwise. */
  file(weight: string): WeightFile | null;
  /** A finding on tensors of the files that are none of these weights; empty when there are none. */
  unusedTensors(read: Iterable<string>): readonly Finding[];
  close(): Promise<void>;
}

/**
 * Opens a model that can be run: a folder with config.json and safetensors, a .gguf, or a llama2.c .bin; or its files.
 *
 * @throws FormatError for what is no model or a family that cannot be run, naming the nearest that can
 */
export async function openCheckpoint(model: ModelSource): Promise<Checkpoint> {
  const files = await modelFilesOf(model, "a folder with config.json and safetensors, a .gguf, or a llama2.c .bin");
  const description = await openModel(files);
  const weights = await openWeights(files);
  try {
    const { modelType, make } = await settingsOf(files, description);
    const family = familyOf(description, modelType);
    return createCheckpoint({
      path: files.path,
      description,
      weights,
      family,
      settings: make,
      onDisk: files.locate !== undefined,
    });
  } catch (error) {
    await weights.close();
    throw error;
  }
}

/** Where the settings come from, by format. */
async function settingsOf(
  files: ModelFiles,
  description: ModelDescription,
): Promise<{ readonly modelType: string; readonly make: (has: (weight: string) => boolean) => Settings }> {
  switch (description.format) {
    case "gguf": {
      const header = await opened(files, files.file!, (source) => readGguf(source, files.open));
      return { modelType: description.modelType, make: (has) => ggufSettings(header, has) };
    }
    case "llama2.c": {
      const header = await opened(files, files.file!, (source) => readLlama2cHeader(source));
      return { modelType: "llama", make: (has) => llama2cSettings(header, has) };
    }
    case "huggingface":
      return opened(files, "config.json", async (source) => {
        const text = new TextDecoder().decode(await source.read(0, source.size));
        const config = parseJson(text, "config.json") as Record<string, unknown>;
        const model = findTextModel(config, description.modelType, []);
        const { record } = model.source;
        // Whether the head is tied is a fact of the whole model: a wrapper says it outside its text part.
        const tied = record.tie_word_embeddings ?? config.tie_word_embeddings;
        const merged = tied === undefined ? record : { ...record, tie_word_embeddings: tied };
        return {
          modelType: model.familyName,
          make: (has) => huggingFaceSettings(merged, model.familyName, has),
        };
      });
  }
}

export interface CheckpointParts {
  readonly path: string;
  readonly description: ModelDescription;
  readonly weights: Weights;
  readonly family: ModelFamily;
  readonly settings: (has: (weight: string) => boolean) => Settings;
  /** Whether the weights' locations are paths; when absent they are not. */
  readonly onDisk?: boolean;
}

/** A checkpoint from its parts. */
export function createCheckpoint({
  path,
  description,
  weights,
  family,
  settings,
  onDisk,
}: CheckpointParts): Checkpoint {
  const map = placedNames(nameMapOf(family, description, path), (tensor) => weights.has(tensor));
  const has = (weight: string): boolean => {
    const rule = ruleFor(map, weight);
    return rule !== undefined && weights.has(rule.tensor);
  };
  const spec = family.spec(settings(has), description);
  const where = description.name;

  const resolve = (weight: string): { rule: WeightRule; rows: readonly RowRange[] | null } => {
    const rule = ruleFor(map, weight);
    if (rule === undefined) {
      throw new MissingWeightError(
        weight,
        `${where}: expected a name for ${weight} in a ${family.name} checkpoint, got none`,
      );
    }
    const layer = /^layers\.(\d+)\./.exec(weight);
    return { rule, rows: rule.rows?.(spec, layer === null ? -1 : Number(layer[1])) ?? null };
  };
  const misshapen = (weight: string, tensor: string, shape: readonly number[], got: readonly number[]): RangeError =>
    new RangeError(
      `${where}: expected ${tensor} (${weight}) to give [${shape.join(", ")}], got [${got.join(", ")}]; ` +
        "the configuration and the weights are of different models",
    );
  /** The shape that a tensor has once its rule is applied. */
  const shapeOf = (weight: string): readonly number[] => {
    const { rule, rows } = resolve(weight);
    const { shape } = weights.info(rule.tensor);
    const turned = rule.transpose ? [...shape].reverse() : shape;
    if (rows === null) return turned;
    return [rows.reduce((sum, [from, to]) => sum + to - from, 0), ...turned.slice(1)];
  };
  const expectShape = (weight: string, shape: readonly number[]): void => {
    const { rule, rows } = resolve(weight);
    const info = weights.info(rule.tensor);
    const got = shapeOf(weight);
    // An embedding may have rows that the vocabulary does not use: they are logits like any other, so sizes must agree.
    const wanted = shape.join();
    const outer = rule.transpose ? info.shape.at(-1)! : info.shape[0]!;
    const inside = rows === null || rows.every(([, to]) => to <= outer);
    if (got.join() !== wanted || !inside) throw misshapen(weight, rule.tensor, shape, inside ? got : info.shape);
  };

  const checkpoint: Checkpoint = {
    path,
    description,
    family,
    spec,
    findings: unusedTensors(knownWeights()),
    unusedTensors,
    isQuantized: weights.names.some((name) => !/^(F32|F16|BF16|F64)$/i.test(weights.info(name).dtype)),
    has,
    form(weight) {
      const { rule } = resolve(weight);
      if (!weights.has(rule.tensor) || rule.transpose) return { kind: "float32" };
      return formOf(weights, rule.tensor);
    },
    async readFloat32(weight, shape) {
      const { rule, rows } = resolve(weight);
      expectShape(weight, shape);
      let data = await weights.readFloat32(rule.tensor);
      const info = weights.info(rule.tensor);
      let columns = info.shape.slice(1).reduce((product, size) => product * size, 1);
      if (rule.transpose) {
        data = transposed(data, info.shape as [number, number]);
        columns = info.shape[0]!;
      }
      if (rows !== null) data = chosenRows(data, rows, columns);
      const { add } = rule;
      return add === undefined ? data : data.map((x) => x + add);
    },
    async readQuantized(weight, shape) {
      const { rule, rows } = resolve(weight);
      expectShape(weight, shape);
      const matrix = await weights.readQuantized(rule.tensor);
      if (matrix === null) throw new RangeError(`${where}: expected ${rule.tensor} in quantised blocks, got floats`);
      return rows === null ? matrix : matrixRows(matrix, rows);
    },
    file(weight) {
      const { rule, rows } = resolve(weight);
      if (!onDisk || rows !== null || rule.transpose || rule.add !== undefined) return null;
      const { dtype, location, byteLength } = weights.info(rule.tensor);
      if (dtype !== "F32") return null;
      return { file: location.source, offset: location.offset, length: byteLength };
    },
    close: () => weights.close(),
  };
  return checkpoint;

  /** Our names of everything that the maps know. */
  function knownWeights(): string[] {
    const layered = (prefix: string, layer: object, count: number): string[] =>
      Array.from({ length: count }, (_, i) => Object.keys(layer).map((key) => `${prefix}layers.${i}.${key}`)).flat();
    return [
      ...Object.keys(map.model),
      ...layered("", map.layer, spec.layers.length),
      ...Object.keys(map.encoder?.model ?? {}).map((key) => `encoder.${key}`),
      ...layered("encoder.", map.encoder?.layer ?? {}, spec.encoder?.layers.length ?? 0),
    ];
  }

  /** Tensors that nothing reads would change the result in the model's own code: say so. */
  function unusedTensors(read: Iterable<string>): Finding[] {
    const used = new Set(Array.from(read, (weight) => ruleFor(map, weight)?.tensor));
    const unused = weights.names.filter((name) => !used.has(name) && !map.ignored?.test(name));
    if (unused.length === 0) return [];
    return [
      {
        code: "unused-tensors",
        severity: "warning",
        where: description.name,
        got: `${unused.slice(0, 3).join(", ")}${unused.length > 3 ? ` and ${unused.length - 3} more` : ""}`,
        expected: `only tensors that this ${family.name} model reads`,
        why: "nothing reads them here; if the model's own code does, its losses differ",
        fix: "",
      },
    ];
  }
}

function nameMapOf(family: ModelFamily, description: ModelDescription, path: string): NameMap {
  const { huggingFace, gguf, llama2c } = family.names;
  const map = description.format === "huggingface" ? huggingFace : description.format === "gguf" ? gguf : llama2c;
  if (map === undefined) {
    throw new FormatError(
      path,
      `expected a format in which ${family.name} models are known, got ${description.format}`,
    );
  }
  return map;
}

/** The form of a tensor's blocks, without reading them: read off one row would cost the whole tensor, so by its kind. */
function formOf(weights: Weights, tensor: string): WeightForm {
  const layout = weights.quantizedLayout(tensor);
  return layout === null ? { kind: "float32" } : { kind: "quantized", ...layout };
}

function transposed(data: Float32Array, [rows, columns]: readonly [number, number]): Float32Array {
  const out = new Float32Array(data.length);
  // In squares, so that neither side jumps through memory for long.
  const size = 32;
  for (let i0 = 0; i0 < rows; i0 += size) {
    for (let j0 = 0; j0 < columns; j0 += size) {
      const [i1, j1] = [Math.min(rows, i0 + size), Math.min(columns, j0 + size)];
      for (let i = i0; i < i1; i++) for (let j = j0; j < j1; j++) out[j * rows + i] = data[i * columns + j]!;
    }
  }
  return out;
}

function chosenRows<A extends Float32Array | Uint8Array>(data: A, rows: readonly RowRange[], columns: number): A {
  if (rows.length === 1) return data.subarray(rows[0]![0] * columns, rows[0]![1] * columns) as A;
  const count = rows.reduce((sum, [from, to]) => sum + to - from, 0);
  const out = new (data.constructor as new (length: number) => A)(count * columns);
  let at = 0;
  for (const [from, to] of rows) {
    out.set(data.subarray(from * columns, to * columns) as never, at);
    at += (to - from) * columns;
  }
  return out;
}

/** Some rows of a quantised matrix. */
export function matrixRows(matrix: QuantizedMatrix, rows: readonly RowRange[]): QuantizedMatrix {
  const blocks = matrix.columns / matrix.blockSize;
  const bytes = (matrix.columns * matrix.bits) / 8;
  const packed = Math.ceil((blocks * matrix.bits) / 8);
  return {
    ...matrix,
    rows: rows.reduce((sum, [from, to]) => sum + to - from, 0),
    blocks: chosenRows(matrix.blocks, rows, bytes),
    scales: chosenRows(matrix.scales, rows, blocks),
    zeroPoints: matrix.zeroPoints === null ? null : chosenRows(matrix.zeroPoints, rows, packed),
    blockMinimum: matrix.blockMinimum === null ? null : chosenRows(matrix.blockMinimum, rows, blocks),
  };
}
