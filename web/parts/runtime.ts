// ONNX Runtime's files, served as they are, and how many threads a page may ask for. Threads start from the .mjs: from a
// bundled script each of them would load whatever else is in it, the page's own worker too.

/// <reference types="vite/client" />

import webgpuMjs from "onnxruntime-web/ort-wasm-simd-threaded.asyncify.mjs?url";
import webgpuWasm from "onnxruntime-web/ort-wasm-simd-threaded.asyncify.wasm?url";
import wasmMjs from "onnxruntime-web/ort-wasm-simd-threaded.mjs?url";
import wasm from "onnxruntime-web/ort-wasm-simd-threaded.wasm?url";
import type { Backend } from "../../src/engine/backend.ts";
import { onnxRuntimeBackend } from "../../src/engine/onnxruntime/index.ts";
import type { Provider } from "../../src/engine/onnxruntime/runtime.ts";

export type PageProvider = Exclude<Provider, "node">;

const files: Readonly<Record<PageProvider, { readonly mjs: string; readonly wasm: string }>> = {
  wasm: { mjs: wasmMjs, wasm },
  webgpu: { mjs: webgpuMjs, wasm: webgpuWasm },
};

export function pageBackend(provider: PageProvider): Backend {
  return onnxRuntimeBackend({ provider, wasmPaths: files[provider] });
}

/** For each of some models at the same time; small ones have no work for more. */
const mostThreads = 4;

/**
 * Threads for each of some models that run at the same time, in a page or a worker. A core is left to the page, since
 * threads wait by spinning and cannot be told not to. Without shared memory, and on WebGPU, there is one.
 */
export function threadsEach(models: number, provider: PageProvider): number {
  if (provider === "webgpu" || !crossOriginIsolated) return 1;
  const cores = navigator.hardwareConcurrency || 1;
  return Math.max(1, Math.min(mostThreads, Math.floor((cores - 1) / models)));
}
