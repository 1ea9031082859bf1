// Finds ONNX Runtime when it is wanted: onnxruntime-node for the CPU in Node, onnxruntime-web for WebAssembly and
// WebGPU. Both are optional peers, imported on demand. The few parts of their API that we use are typed here, so that
// neither package is needed to compile.

import type { OnnxTarget } from "../../graph/index.ts";

/** Where the program runs. "node" is ONNX Runtime's own library on the CPU. */
export type Provider = "node" | "wasm" | "webgpu";

export interface OrtTensor {
  readonly type: string;
  readonly dims: readonly number[];
  readonly data: ArrayBufferView;
  dispose?(): void;
}

export interface OrtSession {
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
  run(
    feeds: Readonly<Record<string, OrtTensor>>,
    fetches: readonly string[] | Readonly<Record<string, OrtTensor | null>>,
  ): Promise<Record<string, OrtTensor>>;
  release(): Promise<void>;
}

export interface OrtModule {
  readonly InferenceSession: { create(model: Uint8Array, options: object): Promise<OrtSession> };
  readonly Tensor: new (type: string, data: ArrayBufferView, dims: readonly number[]) => OrtTensor;
  readonly env: { logLevel?: string; readonly wasm?: { numThreads?: number; wasmPaths?: unknown } };
}

export const providerTargets: { readonly [P in Provider]: OnnxTarget } = {
  node: "cpu",
  wasm: "wasm",
  webgpu: "webgpu",
};

const packages: { readonly [P in Provider]: string } = {
  node: "onnxruntime-node",
  wasm: "onnxruntime-web",
  webgpu: "onnxruntime-web",
};

/** An optional peer that is wanted now is not installed. */
export class MissingPackageError extends Error {
  override readonly name = "MissingPackageError";
}

/** Imports the package of a provider. Throws MissingPackageError naming what to install when it is missing. */
export async function importRuntime(
  provider: Provider,
  load: () => Promise<object> = importers[provider],
): Promise<OrtModule> {
  try {
    const found = await load();
    return ("InferenceSession" in found ? found : (found as { default: object }).default) as OrtModule;
  } catch (cause) {
    const name = packages[provider];
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new MissingPackageError(
      `onnxruntime: expected the package ${name} (version 1.30 or later), got "${message}"; npm install ${name}`,
      { cause },
    );
  }
}

/** True in Node and what imitates it. */
export function inNode(): boolean {
  return typeof process !== "undefined" && process.versions?.node !== undefined;
}

/** An import that bundlers leave alone: a package that only Node loads. */
function importInNode(name: string): Promise<object> {
  return import(/* @vite-ignore */ /* webpackIgnore: true */ name);
}

const importers: { readonly [P in Provider]: () => Promise<object> } = {
  node: () => importInNode("onnxruntime-node"),
  // The package's entry "/wasm" is for browsers alone, its main entry is the smaller build in Node alone.
  wasm: () => (inNode() ? importInNode("onnxruntime-web") : import("onnxruntime-web/wasm")),
  webgpu: () => import("onnxruntime-web/webgpu"),
};
