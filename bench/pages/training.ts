// In a page: both sides of bench/training-browser.ts, on WebAssembly.

import { rope } from "../../src/encodings/index.ts";
import { onnxRuntimeBackend } from "../../src/engine/index.ts";
import {
  adamW,
  type BatchSource,
  chain,
  clipByGlobalNorm,
  smallDecoder,
  Trainer,
  tokenBatches,
} from "../../src/training/index.ts";
import { type JaxStep, jaxStep } from "./jax-step.ts";

export interface BenchSetup {
  readonly vocabSize: number;
  readonly hiddenSize: number;
  readonly numLayers: number;
  readonly numHeads: number;
  readonly intermediateSize: number;
  readonly batchSize: number;
  readonly length: number;
  readonly threads: number;
  readonly microBatches: number;
  /** Where jax-js is served. */
  readonly jax: string;
}

export interface BenchStep {
  readonly seconds: number;
  readonly loss: number;
}

let ours: Trainer;
let theirs: JaxStep;
let source: BatchSource;
const done = { ours: 0, jax: 0 };

/** Loads both with the same weights. */
export async function prepare(setup: BenchSetup): Promise<{ isolated: boolean; cores: number }> {
  const { batchSize, length, threads, microBatches, hiddenSize, numHeads } = setup;
  const headDim = hiddenSize / numHeads;
  ours = await Trainer.create({
    backend: onnxRuntimeBackend({ provider: "wasm" }),
    threads,
    spec: smallDecoder(setup),
    encodings: [rope({ headDim, maxPositionEmbeddings: length, rope: { ropeType: "default", ropeTheta: 10000 } })],
    batchSize,
    length,
    seed: 1,
    microBatches,
    optimizer: chain(clipByGlobalNorm(1), adamW({ learningRate: 1e-3 })),
  });
  const text = Uint8Array.from({ length: 400_000 }, (_, i) => (i * i * 31 + (i >> 3) * 7 + (i % 13)) & 255);
  source = tokenBatches(text, { batchSize, length, seed: 1 });
  theirs = await jaxStep(await import(/* @vite-ignore */ setup.jax), setup, await ours.weights());
  return { isolated: globalThis.crossOriginIsolated, cores: navigator.hardwareConcurrency };
}

/** Steps of one side. */
export async function run(side: keyof typeof done, count: number): Promise<BenchStep[]> {
  const out: BenchStep[] = [];
  for (let i = 0; i < count; i++) {
    const batch = source.batch(done[side]++);
    const ids = (data: BigInt64Array): Int32Array => Int32Array.from(data, Number);
    const [tokens, targets] = [ids(batch.tokens.data), ids(batch.targets.data)];
    const began = performance.now();
    const loss = side === "ours" ? (await ours.update(batch)).loss : await theirs.step(tokens, targets);
    out.push({ seconds: (performance.now() - began) / 1000, loss });
  }
  return out;
}
