// Small models in every form that training exports, with weights drawn from a seed: what the round trip and the proof
// against transformers (reference/training_exports.py) both begin with.

import { alibi, droppedRope, nope, type RopeParameters, rope, sinusoidal } from "../../src/encodings/index.ts";
import { onnxRuntimeBackend } from "../../src/engine/index.ts";
import { type ByteTokenizerOptions, type ModelFiles, memorySource, modelFiles } from "../../src/formats/index.ts";
import { fromNumbers, random, type Tensor, toNumbers } from "../../src/tensor/index.ts";
import {
  adamW,
  bloomBlocks,
  type ExportForm,
  type ExportOptions,
  gpt2Blocks,
  isLearned,
  llamaBlocks,
  lossProgram,
  modelLayout,
  mptBlocks,
  packWeights,
  positionFeeds,
  type SmallDecoderOptions,
  smallDecoder,
  type TrainableSpec,
  Trainer,
  type TrainingEncoding,
} from "../../src/training/index.ts";

export const exportSizes = { vocabSize: 64, hiddenSize: 32, numLayers: 3, numHeads: 4 } as const;
export const exportLength = 24;

export interface ExportCase {
  readonly name: string;
  readonly form: ExportForm;
  readonly spec: TrainableSpec;
  readonly encodings: readonly TrainingEncoding[];
  readonly logitTemperature?: ExportOptions["logitTemperature"];
  /** Whether some steps of training are taken to transformers too. */
  readonly trained?: true;
}

const headDim = exportSizes.hiddenSize / exportSizes.numHeads;
const llama = (more: Partial<SmallDecoderOptions> = {}): TrainableSpec =>
  smallDecoder({ ...llamaBlocks({ ...exportSizes, intermediateSize: 48 }), ...more });
const rotary = (
  parameters: RopeParameters,
  maxPositionEmbeddings = exportLength,
  layout: "half" | "interleaved" = "half",
) => rope({ headDim, maxPositionEmbeddings, rope: parameters, layout });
const plain = rotary({ ropeType: "default", ropeTheta: 100 });
const learned: TrainingEncoding = { site: "embedding", learned: "absolute", numPositions: exportLength };
const t5: TrainingEncoding = { site: "attention-bias", learned: "t5", numBuckets: 8, maxDistance: 16 };
const kerple = (kind: "logarithmic" | "power"): TrainingEncoding => ({
  site: "attention-bias",
  learned: "kerple",
  kind,
});
const fire: TrainingEncoding = { site: "attention-bias", learned: "fire", hiddenUnits: 6, threshold: 10 };
const original = { originalMaxPositionEmbeddings: exportLength / 2 };
const scalings: readonly RopeParameters[] = [
  { ropeType: "linear", ropeTheta: 100, factor: 2 },
  { ropeType: "dynamic", ropeTheta: 100, factor: 2 },
  { ropeType: "yarn", ropeTheta: 100, factor: 2, ...original },
  { ropeType: "llama3", ropeTheta: 100, factor: 2, lowFreqFactor: 1, highFreqFactor: 4, ...original },
  {
    ropeType: "longrope",
    ropeTheta: 100,
    factor: 2,
    shortFactor: [1, 1, 1, 1],
    longFactor: [1, 1.5, 2, 3],
    ...original,
  },
];

const one = (
  name: string,
  form: ExportForm,
  spec: TrainableSpec,
  encodings: readonly TrainingEncoding[],
  more: Partial<ExportCase> = {},
): ExportCase => ({ name, form, spec, encodings, ...more });

/** Every form and encoding. */
export const exportCases: readonly ExportCase[] = [
  one("llama-rope", "llama", llama(), [plain]),
  ...scalings.map((scaling) =>
    one(`llama-${scaling.ropeType}`, "llama", llama(), [
      rotary(scaling, scaling.ropeType === "dynamic" ? exportLength / 2 : exportLength),
    ]),
  ),
  one("llama-grouped-untied", "llama", llama({ numKeyValueHeads: 2, tied: false }), [plain]),
  one("qwen3-rope", "qwen3", llama({ queryKeyNorm: true }), [plain]),
  one("smollm3-nope", "smollm3", llama(), [nope()]),
  one("smollm3-mixed", "smollm3", llama({ groups: [0, 1, 0] }), [plain, nope()]),
  one("smollm3-dropped", "smollm3", llama(), [droppedRope({ headDim })], {
    logitTemperature: { kind: "drope", coefficient: 0.3, trainedLength: exportLength / 2 },
  }),
  one("mpt-alibi", "mpt", smallDecoder(mptBlocks(exportSizes)), [alibi({ numHeads: 4 })], { trained: true }),
  one("bloom-alibi", "bloom", smallDecoder(bloomBlocks(exportSizes)), [alibi({ numHeads: 4 })]),
  one("gpt2-learned", "gpt2", smallDecoder(gpt2Blocks(exportSizes)), [learned]),
  one("longhand-alibi", "longhand", llama(), [alibi({ numHeads: 4 })]),
  one("longhand-learned", "longhand", llama(), [learned]),
  one("longhand-sinusoidal", "longhand", llama(), [sinusoidal({ hiddenSize: 32 })]),
  one("longhand-scaled-embedding", "longhand", llama({ embeddingScale: Math.sqrt(32) }), [
    sinusoidal({ hiddenSize: 32 }),
  ]),
  one("longhand-t5", "longhand", llama(), [t5], { trained: true }),
  one("longhand-t5-every-layer", "longhand", llama(), [{ ...t5, everyLayer: true } as TrainingEncoding]),
  one("longhand-kerple-logarithmic", "longhand", llama(), [kerple("logarithmic")]),
  one("longhand-kerple-power", "longhand", llama(), [kerple("power")]),
  one("longhand-fire", "longhand", llama(), [fire]),
  one("longhand-interleaved", "longhand", llama(), [
    rotary({ ropeType: "default", ropeTheta: 100 }, 24, "interleaved"),
  ]),
  one("longhand-mixed", "longhand", llama({ groups: [0, 1, 2], queryKeyNorm: true }), [t5, plain, nope()]),
  one("longhand-dropped", "longhand", llama({ queryKeyNorm: true }), [droppedRope({ headDim })], {
    logitTemperature: { kind: "drope", coefficient: 0.3, trainedLength: exportLength / 2 },
  }),
  one("longhand-windows", "longhand", llama({ groups: [0, 0, 1], windows: [8, null, 5] }), [kerple("power"), plain]),
  one("longhand-gpt2-fire", "longhand", smallDecoder(gpt2Blocks(exportSizes)), [fire]),
  one("longhand-bloom-rope", "longhand", smallDecoder(bloomBlocks(exportSizes)), [plain]),
];

/** Weights of a standard deviation of 0.3 about where training begins, so that every encoding shows in the losses. Each is
 *  drawn by its name: models that differ in their encoding have the other weights in common. */
export function exportWeights({ spec, encodings }: ExportCase, seed = 7): Map<string, Tensor<"f32">> {
  const { parameters } = modelLayout({ spec, encodings, length: exportLength });
  return new Map(
    parameters.map(({ name, shape, size, initial }) => {
      const own = Array.from(name).reduce((sum, one) => (31 * sum + one.charCodeAt(0)) % 2 ** 31, seed);
      const middle = initial.kind === "constant" ? initial.value : initial.kind === "uniform" ? 0.7 : 0;
      // KERPLE's numbers and FIRE's stay on the side of 0 where they are used as they are.
      const noise = random(own).normals(size, /kerple|fire\.(c|threshold)/.test(name) ? 0.03 : 0.3);
      return [
        name,
        fromNumbers(
          "f32",
          shape,
          noise.map((x) => middle + x),
        ) as Tensor<"f32">,
      ];
    }),
  );
}

/** The same after six steps of training. */
export async function trainedWeights(one: ExportCase): Promise<Map<string, Tensor<"f32">>> {
  const { spec, encodings } = one;
  // No `await using`: Node 20 runs this file as it is.
  const trainer = await Trainer.create({
    backend: onnxRuntimeBackend({ provider: "node" }),
    spec,
    encodings,
    batchSize: 2,
    length: exportLength,
    optimizer: adamW({ learningRate: () => 0.01 }),
    weights: exportWeights(one),
  });
  try {
    for (let step = 0; step < 6; step++) {
      const tokens = exportTokens(2 * exportLength, step);
      const targets = tokens.map((token) => (token + 1) % exportSizes.vocabSize);
      const batch = (ids: number[]): Tensor<"i64"> => fromNumbers("i64", [2, exportLength], ids) as Tensor<"i64">;
      await trainer.update({ tokens: batch(tokens), targets: batch(targets) });
    }
    return await trainer.weights();
  } finally {
    await trainer.dispose();
  }
}

/** Tokenizers whose ids transformers is asked for, by the folder's name. */
export const exportTokenizers: Readonly<Record<string, ByteTokenizerOptions>> = {
  "bytes-alone": { specialTokens: [] },
  "bytes-with-bos": {},
  "bytes-with-both": { specialTokens: ["<eos>", "<bos>", "<|im_start|>"], addBos: true, addEos: true },
};

/** Tokens 0 … T of the seed: T losses. */
export function exportTokens(count: number = exportLength, seed = 11): number[] {
  const stream = random(seed);
  return Array.from({ length: count }, () => Math.floor(stream.uniform() * exportSizes.vocabSize));
}

/** What exportModel and exportForm take of a case. */
export function caseOptions({
  spec,
  encodings,
  logitTemperature,
}: ExportCase): Pick<ExportOptions, "spec" | "encodings" | "logitTemperature" | "trainedLength"> {
  const fitted = logitTemperature === undefined ? {} : { logitTemperature };
  return { spec, encodings, trainedLength: exportLength, ...fitted };
}

/** The losses of tokens 1 … T as a trainer computes them, by weights. */
export async function trainerLosses(
  { spec, encodings }: ExportCase,
  tokens: readonly number[],
): Promise<(weights: ReadonlyMap<string, Tensor>) => Promise<number[]>> {
  const length = tokens.length;
  const layout = modelLayout({ spec, encodings, length: exportLength });
  const session = await onnxRuntimeBackend({ provider: "node" }).load(
    lossProgram({ spec, encodings, batchSize: 1, length }, layout),
    {},
  );
  const ids = (values: readonly number[]): Tensor => fromNumbers("i64", [1, length], values);
  const sizes = { length, hiddenSize: spec.hiddenSize, numHeads: exportSizes.numHeads };
  const positions = encodings.map((encoding, group) =>
    isLearned(encoding) ? {} : positionFeeds(encoding, encoding, group, sizes),
  );
  return async (weights) => {
    const { losses } = await session.run({
      tokens: ids(tokens),
      targets: ids([...tokens.slice(1), -1]),
      weights: fromNumbers("f32", [layout.size], packWeights(layout, weights)),
      ...Object.assign({}, ...positions),
    });
    return Array.from(toNumbers(losses!)).slice(0, -1);
  };
}

/** Exported files as a model's folder in memory. */
export function folderOf(files: ReadonlyMap<string, Uint8Array>, name = "exported"): ModelFiles {
  return modelFiles(
    [...files].map(([file, bytes]) => memorySource(file, bytes)),
    name,
  );
}
