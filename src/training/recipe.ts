// A training run as plain data: whatever changes its numbers is a field, so that a recipe and a text give the same
// weights again. `trainingPlan` turns it into what a Trainer takes.

import { alibi, nope, type RopeParameters, rope, sinusoidal } from "../encodings/index.ts";
import { bloomBlocks, gpt2Blocks, llamaBlocks, mptBlocks } from "./blocks.ts";
import { isLearned, type TrainingEncoding } from "./encodings.ts";
import { smallDecoder, type TrainableSpec } from "./model.ts";
import { adamW, chain, clipByGlobalNorm, type Optimizer } from "./optimizer.ts";
import { type Schedule, warmupStableDecay } from "./schedule.ts";

/** The vocabulary of models of text: 256 bytes, and a BOS that begins every sequence. */
export const bytesWithBos = { vocabSize: 257, bosTokenId: 256 } as const;

/** What layers are made of: Llama's blocks (RMS norm, gated SiLU), GPT-2's, MPT's or BLOOM's. */
export type RecipeBlocks = "llama" | "gpt2" | "mpt" | "bloom";

const blockPresets = { llama: llamaBlocks, gpt2: gpt2Blocks, mpt: mptBlocks, bloom: bloomBlocks } as const;

/** What a layer can be trained with, by the name that a recipe uses. */
export const recipeEncodings = [
  "none",
  "sinusoidal",
  "learned",
  "t5",
  "alibi",
  "kerple-log",
  "kerple-power",
  "fire",
  "rope",
] as const;
export type RecipeEncoding = (typeof recipeEncodings)[number];

/** Those that a recipe may drop: their numbers are fixed, so that feeding nothing takes them away. */
const droppable: readonly RecipeEncoding[] = ["none", "sinusoidal", "alibi", "rope"];

/** Whether a recipe of these encodings may have `dropAt`. */
export function canDrop(encoding: readonly RecipeEncoding[]): boolean {
  return encoding.every((name) => droppable.includes(name));
}

export interface TrainingRecipe {
  /** One a layer, repeated from the start when there are more layers: ["rope", "rope", "rope", "none"] is SmolLM3's. */
  readonly encoding: readonly RecipeEncoding[];
  /** Base of RoPE's frequencies. */
  readonly ropeTheta: number;
  /** A rotary scaling to train under, as PI and YaRN fine-tune; null: none. */
  readonly scaling: RopeParameters | null;
  readonly blocks: RecipeBlocks;
  /** Ids: 256 is one a byte. */
  readonly vocabSize: number;
  /** Stands at the head of every sequence, in training and after; null: sequences begin anywhere in a text. Without an
   *  encoding it is what positions are found by: attention to it falls as the prefix grows (Kazemnejad et al. 2023,
   *  2305.19466, theorem 1). */
  readonly bosTokenId: number | null;
  readonly hiddenSize: number;
  readonly numLayers: number;
  readonly numHeads: number;
  /** Fewer than numHeads in Llama's blocks alone. */
  readonly numKeyValueHeads: number;
  /** Free in Llama's blocks alone; 4 times the width in the others. */
  readonly intermediateSize: number;
  /** In Llama's blocks alone: queries and keys of each head are normalised (Qwen 3). */
  readonly queryKeyNorm: boolean;
  /** Where matrices begin: with a deviation of 1/√inputs, or GPT-2's 0.02, which is too little for narrow models (see
   *  widthScaledWeights). */
  readonly initialization: "width-scaled" | "gpt2";
  /** Tokens of a training sequence. */
  readonly length: number;
  /** Sequences a step. */
  readonly batchSize: number;
  /** Steps of the run. */
  readonly steps: number;
  /** Of weights, and of the order of the data. */
  readonly seed: number;
  /** Highest learning rate. */
  readonly learningRate: number;
  /** Steps in which it rises. */
  readonly warmup: number;
  /** The last steps, in which it falls to 0. */
  readonly decay: number;
  readonly weightDecay: number;
  readonly beta2: number;
  /** Largest norm of the gradient. */
  readonly clip: number;
  /** From this step on the model has no position encoding any more (DroPE, 2512.12167); null: never. */
  readonly dropAt: number | null;
}

/** Widths and depths by name. Parameters are those of Llama's blocks over bytes. */
export const recipeSizes = {
  /** 0.2 million parameters. */
  tiny: { hiddenSize: 64, numLayers: 4, numHeads: 4, intermediateSize: 176 },
  /** 1.0 million. */
  small: { hiddenSize: 128, numLayers: 5, numHeads: 4, intermediateSize: 352 },
  /** 4.8 million. */
  medium: { hiddenSize: 256, numLayers: 6, numHeads: 8, intermediateSize: 704 },
} as const;
export type RecipeSize = keyof typeof recipeSizes;

export interface RecipeOptions extends Partial<TrainingRecipe> {
  readonly encoding: readonly RecipeEncoding[];
  /** small when absent; single sizes count more. */
  readonly size?: RecipeSize;
  /** In place of `steps`: the tokens to train on, rounded up to whole steps. */
  readonly tokens?: number;
}

const who = "trainingRecipe";

/**
 * A whole recipe from the parts that are given.
 *
 * @throws RangeError for an unknown name, a number out of range, or parts that contradict each other
 * @example
 * ```ts
 * import { trainingRecipe } from "longhand/training";
 * const { steps, batchSize, length } = trainingRecipe({ encoding: ["rope"], tokens: 1_000_000 });
 * [steps, batchSize, length]; // => [489, 8, 256]
 * ```
 */
export function trainingRecipe(options: RecipeOptions): TrainingRecipe {
  const { size = "small", tokens, ...given } = options;
  if (!Object.hasOwn(recipeSizes, size)) {
    throw new RangeError(`${who}: expected a size of ${Object.keys(recipeSizes).join(", ")}, got ${size}`);
  }
  if (tokens !== undefined && given.steps !== undefined) {
    throw new RangeError(`${who}: expected steps or tokens, got both`);
  }
  const sizes = { ...recipeSizes[size], ...given };
  const length = given.length ?? 256;
  const batchSize = given.batchSize ?? Math.max(1, Math.round(2048 / length));
  const steps = given.steps ?? Math.ceil((tokens ?? 4_000_000) / (batchSize * length));
  const block = given.blocks ?? "llama";
  const recipe: TrainingRecipe = {
    encoding: given.encoding,
    ropeTheta: given.ropeTheta ?? 10000,
    scaling: given.scaling ?? null,
    blocks: block,
    vocabSize: given.vocabSize ?? 256,
    bosTokenId: given.bosTokenId ?? null,
    hiddenSize: sizes.hiddenSize,
    numLayers: sizes.numLayers,
    numHeads: sizes.numHeads,
    numKeyValueHeads: given.numKeyValueHeads ?? sizes.numHeads,
    // As many weights in a plain MLP of 4 C as in a gated one of 8/3 C.
    intermediateSize: given.intermediateSize ?? (block === "llama" ? sizes.intermediateSize : 4 * sizes.hiddenSize),
    queryKeyNorm: given.queryKeyNorm ?? false,
    initialization: given.initialization ?? "width-scaled",
    length,
    batchSize,
    steps,
    seed: given.seed ?? 0,
    learningRate: given.learningRate ?? (sizes.hiddenSize <= 128 ? 3e-3 : 1.5e-3),
    warmup: given.warmup ?? Math.min(100, Math.floor(steps / 10)),
    decay: given.decay ?? Math.floor(steps / 5),
    weightDecay: given.weightDecay ?? 0.1,
    beta2: given.beta2 ?? 0.99,
    clip: given.clip ?? 1,
    dropAt: given.dropAt ?? null,
  };
  expectRecipe(recipe, Object.keys(given));
  return recipe;
}

const recipeKeys = [
  "encoding",
  "ropeTheta",
  "scaling",
  "blocks",
  "vocabSize",
  "bosTokenId",
  "hiddenSize",
  "numLayers",
  "numHeads",
  "numKeyValueHeads",
  "intermediateSize",
  "queryKeyNorm",
  "initialization",
  "length",
  "batchSize",
  "steps",
  "seed",
  "learningRate",
  "warmup",
  "decay",
  "weightDecay",
  "beta2",
  "clip",
  "dropAt",
] as const satisfies readonly (keyof TrainingRecipe)[];

function expectRecipe(recipe: TrainingRecipe, given: readonly string[]): void {
  const unknown = given.find((key) => !(recipeKeys as readonly string[]).includes(key));
  if (unknown !== undefined) throw new RangeError(`${who}: expected keys of a recipe, got ${unknown}`);
  const { encoding, scaling, blocks: block, dropAt, steps } = recipe;
  if (encoding.length === 0 || encoding.length > recipe.numLayers) {
    throw new RangeError(`${who}: expected 1 to ${recipe.numLayers} encodings, got ${encoding.length}`);
  }
  for (const name of encoding) {
    if (!(recipeEncodings as readonly string[]).includes(name)) {
      throw new RangeError(`${who}: expected an encoding of ${recipeEncodings.join(", ")}, got ${name}`);
    }
  }
  if (!Object.hasOwn(blockPresets, block)) {
    throw new RangeError(`${who}: expected blocks of ${Object.keys(blockPresets).join(", ")}, got ${block}`);
  }
  if (recipe.initialization !== "width-scaled" && recipe.initialization !== "gpt2") {
    throw new RangeError(
      `${who}: expected initialization to be width-scaled or gpt2, got ${String(recipe.initialization)}`,
    );
  }
  const whole = { vocabSize: 1, hiddenSize: 1, numLayers: 1, numHeads: 1, numKeyValueHeads: 1, intermediateSize: 1 };
  const run = { length: 1, batchSize: 1, steps: 1, seed: 0, warmup: 0, decay: 0 };
  for (const [key, least] of Object.entries({ ...whole, ...run })) {
    const value = recipe[key as keyof typeof whole];
    if (!Number.isSafeInteger(value) || value < least) {
      throw new RangeError(`${who}: expected ${key} to be an integer of at least ${least}, got ${value}`);
    }
  }
  for (const key of ["ropeTheta", "learningRate", "clip"] as const) {
    if (!(recipe[key] > 0 && Number.isFinite(recipe[key]))) {
      throw new RangeError(`${who}: expected ${key} above 0, got ${recipe[key]}`);
    }
  }
  if (!(recipe.weightDecay >= 0)) {
    throw new RangeError(`${who}: expected weightDecay of at least 0, got ${recipe.weightDecay}`);
  }
  if (!(recipe.beta2 > 0 && recipe.beta2 < 1)) {
    throw new RangeError(`${who}: expected beta2 between 0 and 1, got ${recipe.beta2}`);
  }
  if (recipe.warmup + recipe.decay > steps) {
    throw new RangeError(
      `${who}: expected warmup and decay within ${steps} steps, got ${recipe.warmup} and ${recipe.decay}`,
    );
  }
  if (block !== "llama") {
    const { hiddenSize, numHeads, numKeyValueHeads, intermediateSize, queryKeyNorm } = recipe;
    if (numKeyValueHeads !== numHeads || intermediateSize !== 4 * hiddenSize || queryKeyNorm) {
      throw new RangeError(
        `${who}: expected ${block}'s blocks to have as many key as query heads, an MLP of ${4 * hiddenSize} and no norm of ` +
          `queries and keys, got ${numKeyValueHeads} of ${numHeads} heads, ${intermediateSize} and ${queryKeyNorm}`,
      );
    }
  }
  const { bosTokenId, vocabSize } = recipe;
  if (bosTokenId !== null && !(Number.isSafeInteger(bosTokenId) && bosTokenId >= 0 && bosTokenId < vocabSize)) {
    throw new RangeError(`${who}: expected bosTokenId to be an id below ${vocabSize}, got ${bosTokenId}`);
  }
  if (scaling !== null && !encoding.includes("rope")) {
    throw new RangeError(`${who}: expected RoPE in a recipe with a scaling, got ${encoding.join(", ")}`);
  }
  if (dropAt === null) return;
  if (!Number.isSafeInteger(dropAt) || dropAt < 0 || dropAt > steps) {
    throw new RangeError(`${who}: expected dropAt to be a step of 0 .. ${steps}, got ${dropAt}`);
  }
  const learned = encoding.find((name) => !droppable.includes(name));
  if (learned !== undefined) {
    throw new RangeError(`${who}: expected a fixed encoding to drop, got ${learned}, whose numbers are trained`);
  }
}

/** What a run is made of. */
export interface TrainingPlan {
  readonly spec: TrainableSpec;
  /** One a group; layers name theirs. */
  readonly encodings: readonly TrainingEncoding[];
  readonly optimizer: Optimizer;
  readonly rate: Schedule;
}

/** The spec, encodings and optimiser of a recipe. */
export function trainingPlan(recipe: TrainingRecipe): TrainingPlan {
  const names = [...new Set(recipe.encoding)];
  const groups = Array.from({ length: recipe.numLayers }, (_, layer) =>
    names.indexOf(recipe.encoding[layer % recipe.encoding.length]!),
  );
  const { vocabSize, hiddenSize, numLayers, numHeads, numKeyValueHeads, intermediateSize, queryKeyNorm } = recipe;
  const sizes = { vocabSize, hiddenSize, numLayers, numHeads, groups };
  const options =
    recipe.blocks === "llama"
      ? llamaBlocks({ ...sizes, numKeyValueHeads, intermediateSize, queryKeyNorm })
      : blockPresets[recipe.blocks](sizes);
  // Rows of sines have elements of about 1: beside them the embeddings are made as large (Vaswani et al. 2017, 3.4).
  const embeddingScale = recipe.encoding.includes("sinusoidal") ? Math.sqrt(hiddenSize) : 1;
  const spec = smallDecoder({ ...options, embeddingScale });
  const { steps, warmup, decay, learningRate, weightDecay, beta2, clip } = recipe;
  const rate = warmupStableDecay({ peak: learningRate, steps, warmup, decay });
  return {
    spec,
    encodings: names.map((name) => recipeEncoding(name, recipe)),
    optimizer: chain(clipByGlobalNorm(clip), adamW({ learningRate: rate, weightDecay, beta2 })),
    rate,
  };
}

/**
 * The encodings that a recipe's model has after so many steps: those of its plan, and from `dropAt` on none, but for those
 * whose numbers are trained.
 */
export function encodingsAt(
  { dropAt }: Pick<TrainingRecipe, "dropAt">,
  encodings: readonly TrainingEncoding[],
  step: number,
): readonly TrainingEncoding[] {
  if (dropAt === null || step < dropAt) return encodings;
  return encodings.map((encoding) => (isLearned(encoding) ? encoding : nope()));
}

function recipeEncoding(name: RecipeEncoding, recipe: TrainingRecipe): TrainingEncoding {
  const { hiddenSize, numHeads, length } = recipe;
  switch (name) {
    case "none":
      return nope();
    case "sinusoidal":
      return sinusoidal({ hiddenSize });
    case "learned":
      return { site: "embedding", learned: "absolute", numPositions: length };
    case "t5":
      return { site: "attention-bias", learned: "t5" };
    case "alibi":
      return alibi({ numHeads });
    case "kerple-log":
      return { site: "attention-bias", learned: "kerple", kind: "logarithmic" };
    case "kerple-power":
      return { site: "attention-bias", learned: "kerple", kind: "power" };
    case "fire":
      return { site: "attention-bias", learned: "fire", threshold: length };
    case "rope":
      return rope({
        headDim: hiddenSize / numHeads,
        maxPositionEmbeddings: length,
        rope: recipe.scaling ?? { ropeType: "default", ropeTheta: recipe.ropeTheta },
      });
  }
}
