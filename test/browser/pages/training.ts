// In a page or a worker: what test/browser/training.test.ts asks of training there. Arguments and results are JSON.

import { type Backend, onnxRuntimeBackend } from "../../../src/engine/index.ts";
import { type RecipeOptions, runRecipe, tokenBatches, trainingRecipe } from "../../../src/training/index.ts";
import type { PageProvider } from "../../../web/parts/runtime.ts";

export interface TrainingCase {
  readonly provider: "node" | "wasm" | "webgpu";
  readonly recipe: RecipeOptions;
  readonly threads?: number;
  /** With the lab's own files of ONNX Runtime, and not from wherever the bundler put it. */
  readonly namedFiles?: boolean;
}

export interface TrainingReport {
  /** Of each step, before its update. */
  readonly losses: readonly number[];
  /** Of the last step. */
  readonly gradientNorm: number;
  /** When each step was done, since the call. */
  readonly milliseconds: readonly number[];
  readonly isolated: boolean;
  readonly inWorker: boolean;
  /** What ONNX Runtime came to use; null in Node. */
  readonly threads: number | null;
}

/** Bytes that repeat now and then, so that there is something to learn. */
function sampleBytes(): Uint8Array {
  return Uint8Array.from({ length: 6000 }, (_, i) => (i * i * 31 + (i >> 3) * 7 + (i % 13)) & 255);
}

async function namedBackend(provider: PageProvider): Promise<Backend> {
  const { pageBackend } = await import("../../../web/parts/runtime.ts");
  return pageBackend(provider);
}

/** Trains a recipe and tells every loss. */
export async function train({ provider, recipe: options, threads, namedFiles }: TrainingCase): Promise<TrainingReport> {
  const recipe = trainingRecipe(options);
  const losses: number[] = [];
  const milliseconds: number[] = [];
  const began = performance.now();
  let gradientNorm = Number.NaN;
  await runRecipe({
    recipe,
    backend: namedFiles && provider !== "node" ? await namedBackend(provider) : onnxRuntimeBackend({ provider }),
    data: tokenBatches(sampleBytes(), recipe),
    ...(threads === undefined ? {} : { threads }),
    onRow: (row) => {
      if (row.kind === "train") gradientNorm = row.gradientNorm;
    },
    onStep: ({ loss }) => {
      losses.push(loss);
      milliseconds.push(Math.round(performance.now() - began));
    },
  });
  return {
    losses,
    gradientNorm,
    milliseconds,
    isolated: globalThis.crossOriginIsolated === true,
    inWorker: "WorkerGlobalScope" in globalThis,
    threads: provider === "wasm" ? ((await import("onnxruntime-web/wasm")).env.wasm.numThreads ?? null) : null,
  };
}

/** The same in a worker of this page. */
export function trainInWorker(one: TrainingCase): Promise<TrainingReport> {
  const worker = new Worker(new URL("./training-worker.ts", import.meta.url), { type: "module" });
  return new Promise<TrainingReport>((done, fail) => {
    worker.onmessage = ({ data }: MessageEvent<{ report?: TrainingReport; error?: string }>) => {
      if (data.report !== undefined) done(data.report);
      else fail(new Error(data.error));
    };
    worker.onerror = (event) => fail(new Error(event.message));
    worker.postMessage(one);
  }).finally(() => worker.terminate());
}
