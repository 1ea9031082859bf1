// llama.cpp in this process, through node-llama-cpp: the loss of single tokens of a sequence. An optional peer, imported
// when it is wanted; LLAMA_CPP names a node_modules folder that has it elsewhere.

import { readFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { MissingPackageError } from "../engine/onnxruntime/runtime.ts";

/** The parts of node-llama-cpp's API that are used here. */
interface LlamaModule {
  getLlama(options: object): Promise<Llama>;
}
interface Llama {
  loadModel(options: object): Promise<{ createContext(options: object): Promise<LlamaContext> }>;
  dispose(): Promise<void>;
}
interface LlamaContext {
  getSequence(): {
    controlledEvaluate(
      input: readonly (number | [number, object])[],
      options?: object,
    ): Promise<readonly (undefined | { next: { probabilities?: Map<number, number> } })[]>;
  };
}

export interface LlamaCppRun {
  readonly tokens: readonly number[];
  /** Indices i: the loss of token i + 1 given tokens 0 … i. */
  readonly at: readonly number[];
  readonly threads?: number;
  readonly signal?: AbortSignal;
  readonly onProgress?: (done: number, total: number) => void;
}

/** Imports node-llama-cpp. Throws MissingPackageError that says how to get it. */
async function importLlamaCpp(): Promise<{ module: LlamaModule; version: string }> {
  const folder = process.env.LLAMA_CPP;
  const name = "node-llama-cpp";
  try {
    const entry =
      folder === undefined || folder === ""
        ? import.meta.resolve(name)
        : pathToFileURL(resolve(folder, name, "dist/index.js")).href;
    const module = (await import(entry)) as LlamaModule;
    const manifest = join(dirname(fileURLToPath(entry)), "../package.json");
    const { version } = JSON.parse(await readFile(manifest, "utf8")) as { version: string };
    return { module, version };
  } catch (cause) {
    throw new MissingPackageError(
      `--verify: expected the package ${name} (version 3.21 or later), which holds llama.cpp, got none; ` +
        `npm install ${name}, or name a node_modules folder that has it in LLAMA_CPP`,
      { cause },
    );
  }
}

/** Whether node-llama-cpp can be imported here. */
export async function hasLlamaCpp(): Promise<boolean> {
  return importLlamaCpp().then(
    () => true,
    () => false,
  );
}

/** Losses in nats of llama.cpp on the CPU, in the order of `at`, and what computed them. */
export async function llamaCppLosses(
  path: string,
  run: LlamaCppRun,
): Promise<{ losses: Float64Array; engine: string }> {
  const { module, version } = await importLlamaCpp();
  const { tokens, at, threads, signal, onProgress } = run;
  const llama = await module.getLlama({
    gpu: false,
    build: "never",
    logLevel: "error",
    ...(threads === undefined ? {} : { maxThreads: threads }),
  });
  try {
    const model = await llama.loadModel({ modelPath: resolve(path), gpuLayers: 0 });
    const context = await model.createContext({
      contextSize: tokens.length + 8,
      batchSize: 512,
      sequences: 1,
      flashAttention: false,
      // The default, float16, costs a hundredth of a nat where losses are high.
      experimentalKvCacheKeyType: "F32",
      experimentalKvCacheValueType: "F32",
      ...(threads === undefined ? {} : { threads }),
    });
    const sequence = context.getSequence();
    const wanted = new Set(at);
    const losses = new Map<number, number>();
    for (let start = 0, end = 0; start < tokens.length; start = end) {
      signal?.throwIfAborted();
      onProgress?.(start, tokens.length);
      // Probabilities are a map over the vocabulary for each token that asks: few at a time.
      const asks = wanted.has(start);
      const most = asks ? 32 : 512;
      for (end = start + 1; end < tokens.length && end - start < most && wanted.has(end) === asks; ) end++;
      const part = tokens.slice(start, end);
      const results = await sequence.controlledEvaluate(
        part.map((token, i) => (wanted.has(start + i) ? [token, { generateNext: { probabilities: true } }] : token)),
      );
      results.forEach((result, i) => {
        const probabilities = result?.next.probabilities;
        if (probabilities === undefined) return;
        const target = tokens[start + i + 1]!;
        losses.set(start + i, -Math.log(probabilities.get(target) ?? 0));
      });
    }
    const out = Float64Array.from(at, (i) => losses.get(i) ?? Number.NaN);
    const bad = out.findIndex((loss) => !Number.isFinite(loss));
    if (bad >= 0) throw new RangeError(`llama.cpp: expected a finite loss at position ${at[bad]}, got ${out[bad]}`);
    return { losses: out, engine: `llama.cpp in node-llama-cpp ${version}, CPU` };
  } finally {
    await llama.dispose();
  }
}
