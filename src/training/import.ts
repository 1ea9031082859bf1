// A model's folder as something to train on with: its recipe's sizes and encodings, and its weights by our names. Only
// what a recipe can say: anything else would be trained as another model than it is.

import type { ModelDescription, PositionGroup } from "../formats/model-description.ts";
import { type ModelFiles, type ModelSource, modelFilesOf } from "../formats/model-files.ts";
import { openTokenizer } from "../formats/tokenizers/index.ts";
import { openCheckpoint } from "../models/index.ts";
import { type Tensor, tensor } from "../tensor/index.ts";
import type { TrainableSpec } from "./model.ts";
import { modelLayout } from "./program.ts";
import {
  type RecipeBlocks,
  type RecipeEncoding,
  type RecipeOptions,
  type TrainingRecipe,
  trainingPlan,
  trainingRecipe,
} from "./recipe.ts";

/** The fields of a recipe that say what the model is. */
export type ModelRecipe = Pick<
  TrainingRecipe,
  | "encoding"
  | "ropeTheta"
  | "scaling"
  | "blocks"
  | "vocabSize"
  | "bosTokenId"
  | "hiddenSize"
  | "numLayers"
  | "numHeads"
  | "numKeyValueHeads"
  | "intermediateSize"
  | "queryKeyNorm"
>;

export interface TrainableModel {
  readonly name: string;
  readonly model: ModelRecipe;
  /** Tokens of a sequence in its training. */
  readonly trainedLength: number;
  /** float32, by our names. */
  readonly weights: ReadonlyMap<string, Tensor<"f32">>;
}

const who = "readTrainable";

/**
 * Reads a model to train on with.
 *
 * @throws RangeError for a model that no recipe describes, naming what differs; and what opening a checkpoint throws
 */
export async function readTrainable(source: ModelSource): Promise<TrainableModel> {
  const files = await modelFilesOf(source, "a model's folder");
  const checkpoint = await openCheckpoint(files);
  try {
    const { description, spec } = checkpoint;
    const { name } = description;
    const trainedLength = description.trainedLength ?? description.maxPositionEmbeddings;
    if (trainedLength === null) throw new RangeError(`${who}: expected ${name} to say its trained length, got none`);
    const model = modelRecipe(description, spec, await bosTokenId(files));
    const { encodings, spec: own } = trainingPlan(trainingRecipe({ ...model, length: trainedLength, steps: 10 }));
    expectSameSpec(name, own, spec);
    const weights = new Map<string, Tensor<"f32">>();
    for (const { name: weight, shape } of modelLayout({ spec: own, encodings, length: trainedLength }).parameters) {
      weights.set(weight, tensor("f32", shape, await checkpoint.readFloat32(weight, shape)) as Tensor<"f32">);
    }
    return { name, model, trainedLength, weights };
  } finally {
    await checkpoint.close();
  }
}

/** What its tokenizer puts in front of a text; null without a tokenizer. */
async function bosTokenId(files: ModelFiles): Promise<number | null> {
  if (!(await files.list()).includes("tokenizer.json")) return null;
  const { addsBos, bosToken } = await openTokenizer(files);
  return addsBos ? bosToken : null;
}

function modelRecipe(description: ModelDescription, spec: TrainableSpec, bosTokenId: number | null): ModelRecipe {
  const { attention, mlp, norm } = spec.layers[0]!;
  const encoding: RecipeEncoding[] = [];
  let rope: Extract<PositionGroup["position"], { site: "query-key" }>["rope"] | null = null;
  for (const { layers, position } of description.groups) {
    for (const layer of layers) encoding[layer] = encodingName(position);
    if (position.site === "query-key") rope = position.rope;
  }
  const shared = encoding.every((one) => one === encoding[0]) ? encoding.slice(0, 1) : encoding;
  return {
    encoding: shared,
    ropeTheta: rope?.ropeTheta ?? 10000,
    scaling: rope === null || rope.ropeType === "default" ? null : rope,
    blocks: blocksOf(spec, norm.kind, mlp.bias),
    vocabSize: spec.vocabSize,
    bosTokenId,
    hiddenSize: spec.hiddenSize,
    numLayers: spec.layers.length,
    numHeads: attention.numHeads,
    numKeyValueHeads: attention.numKeyValueHeads,
    intermediateSize: mlp.intermediateSize,
    queryKeyNorm: attention.queryKeyNorm !== null,
  };
}

function encodingName(position: PositionGroup["position"]): RecipeEncoding {
  switch (position.kind) {
    case "nope":
      return "none";
    case "kerple":
      return position.variant === "power" ? "kerple-power" : "kerple-log";
    default:
      return position.kind;
  }
}

function blocksOf({ embedding }: TrainableSpec, norm: "rms" | "layer", bias: boolean): RecipeBlocks {
  if (norm === "rms") return "llama";
  if (!bias) return "mpt";
  return embedding.norm === null ? "gpt2" : "bloom";
}

/** Throws RangeError, naming the first place where two specs differ. */
function expectSameSpec(name: string, own: TrainableSpec, theirs: TrainableSpec): void {
  const compare = (a: unknown, b: unknown, path: string): void => {
    if (typeof a === "object" && a !== null && typeof b === "object" && b !== null) {
      for (const key of Object.keys(a)) {
        // Groups may be numbered otherwise.
        if (key !== "group") compare(a[key as never], b[key as never], path === "" ? key : `${path}.${key}`);
      }
      return;
    }
    if (a === b) return;
    throw new RangeError(
      `${who}: expected a model that a training recipe describes, got ${name}, whose ${path} is ${JSON.stringify(b)} ` +
        `where a recipe's is ${JSON.stringify(a)}`,
    );
  };
  compare(own, theirs, "");
}

/** A whole recipe that trains this model on: what the model is cannot be changed, except by `changes`. */
export function recipeFrom({ model, trainedLength }: TrainableModel, changes: Partial<RecipeOptions>): TrainingRecipe {
  return trainingRecipe({ length: trainedLength, ...model, ...changes });
}
