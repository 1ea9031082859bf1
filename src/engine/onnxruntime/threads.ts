// How many threads WebAssembly may have here. ONNX Runtime starts each as a worker of its own script, which it knows as
// import.meta.url. Where a bundler makes a worker one file (Vite's "iife", its default), that is the worker's script: each
// thread then runs the caller's worker a second time, nobody answers ONNX Runtime, and the load never ends. Nothing tells so
// beforehand; what can be told is whether this module lies in the worker's script, and there one thread is what is sure.

/** Where ONNX Runtime's files are served: a folder's address with a slash at its end, or theirs. */
export type WasmPaths = string | { readonly mjs?: string; readonly wasm?: string };

/**
 * What ONNX Runtime is to be told; undefined leaves the number to it.
 *
 * @param asked threads that the caller wants
 * @param paths with `mjs`, or a folder, threads start from a file of its own
 * @param module the address of the script that this code came with
 * @param worker that of the worker's script; undefined in a page
 */
export function wasmThreads(
  asked: number | undefined,
  paths: WasmPaths | undefined,
  module: string | undefined = import.meta.url,
  worker: string | undefined = workerScript(),
): number | undefined {
  const ownScript = typeof paths === "string" || paths?.mjs !== undefined;
  return !ownScript && worker !== undefined && module === worker ? 1 : asked;
}

function workerScript(): string | undefined {
  return "WorkerGlobalScope" in globalThis ? globalThis.location.href : undefined;
}
