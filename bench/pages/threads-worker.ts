// The worker of threads.ts: loads a model to train and one to score with so many threads, then does as asked.

import { rope } from "../../src/encodings/index.ts";
import { type LanguageModel, loadLanguageModel } from "../../src/engine/index.ts";
import { builtInModelsAt } from "../../src/formats/built-in-models.ts";
import { adamW, chain, clipByGlobalNorm, smallDecoder, Trainer, tokenBatches } from "../../src/training/index.ts";
import { pageBackend } from "../../web/parts/runtime.ts";

export interface Asked {
  readonly kind: "load" | "train" | "score";
  readonly threads?: number;
  /** Where the built-in models are served. */
  readonly models?: string;
}

export interface Told {
  /** Of each step, or each pass over the trained length. */
  readonly seconds: readonly number[];
  /** Of the last step or pass, as a check; of a load none. */
  readonly loss?: number;
  /** Of a load: what ONNX Runtime runs with. */
  readonly threads?: number;
}

const [batchSize, length] = [8, 128];
const steps = 4;
const sizes = { vocabSize: 256, hiddenSize: 128, numLayers: 4, numHeads: 4, intermediateSize: 352 };

let trainer: Trainer;
let model: LanguageModel;
let step = 0;
const text = Uint8Array.from({ length: 400_000 }, (_, i) => (i * i * 31 + (i >> 3) * 7 + (i % 13)) & 255);
const source = tokenBatches(text, { batchSize, length, seed: 1 });
const read = [...text.subarray(0, 512)];

async function load({ threads, models }: Asked): Promise<Told> {
  const backend = pageBackend("wasm");
  trainer = await Trainer.create({
    backend,
    threads: threads!,
    spec: smallDecoder(sizes),
    encodings: [rope({ headDim: 32, maxPositionEmbeddings: length, rope: { ropeType: "default", ropeTheta: 10000 } })],
    batchSize,
    length,
    seed: 1,
    optimizer: chain(clipByGlobalNorm(1), adamW({ learningRate: 1e-3 })),
  });
  const files = await builtInModelsAt(models!, ["longhand-rope"]).open("longhand-rope");
  model = await loadLanguageModel(files!, { backend, threads: threads! });
  const { numThreads } = (await import("onnxruntime-web/wasm")).env.wasm;
  return { seconds: [], ...(numThreads === undefined ? {} : { threads: numThreads }) };
}

async function measure(kind: "train" | "score"): Promise<Told> {
  const seconds: number[] = [];
  let loss = Number.NaN;
  for (let i = 0; i < steps; i++) {
    const batch = source.batch(step);
    const began = performance.now();
    if (kind === "train") {
      loss = (await trainer.update(batch)).loss;
      step++;
    } else loss = (await model.score(read)).negativeLogLikelihood.at(-1)!;
    seconds.push((performance.now() - began) / 1000);
  }
  return { seconds, loss };
}

self.onmessage = async ({ data }: MessageEvent<Asked>) => {
  try {
    self.postMessage(await (data.kind === "load" ? load(data) : measure(data.kind)));
  } catch (error) {
    self.postMessage({ error: error instanceof Error ? error.message : String(error) });
  }
};
