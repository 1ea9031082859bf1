// What ONNX Runtime needs in order to be right on WebGPU: a device whose subgroups its kernels know, and one session at a
// time. Its flash attention steps through keys by the subgroup's size, at most 16, but multiplies at least 8 of them: on
// adapters with subgroups of 4 (SwiftShader; some Mali) keys are counted twice, without an error (onnxruntime-web 1.30).

import { formatType, type Graph, type Value } from "../../graph/index.ts";
import type { Dtype } from "../../tensor/index.ts";
import type { OrtSession } from "./runtime.ts";

/** Dtypes that have no kernel, on the device or beside it. */
const missing: readonly Dtype[] = ["f64", "bf16"];

/** Throws TypeError for a graph with values of a dtype that the package's build for WebGPU has no kernels for. */
export function expectWebgpuDtypes(graph: Graph): void {
  const check = (value: Value): void => {
    if (!missing.includes(value.dtype)) return;
    throw new TypeError(
      `load: expected dtypes that onnxruntime-web has on WebGPU (no ${missing.join(", no ")}), ` +
        `got ${value.name}: ${formatType(value)} in ${graph.name}; use f32`,
    );
  };
  for (const value of [...graph.inputs, ...graph.states, ...graph.parameters]) check(value);
  for (const node of graph.nodes) for (const value of node.outputs) check(value);
}

/** The smallest subgroup that the kernels are written for. */
const MIN_SUBGROUP = 8;

/** Features that the kernels use where they are there. */
const usedFeatures: readonly string[] = ["shader-f16", "timestamp-query"];

/** Limits that the kernels ask for, each as high as the adapter goes. */
const usedLimits = [
  "maxBufferSize",
  "maxComputeInvocationsPerWorkgroup",
  "maxComputeWorkgroupSizeX",
  "maxComputeWorkgroupSizeY",
  "maxComputeWorkgroupSizeZ",
  "maxComputeWorkgroupStorageSize",
  "maxComputeWorkgroupsPerDimension",
  "maxStorageBufferBindingSize",
  "maxStorageBuffersPerShaderStage",
] as const;

/** There is no WebGPU here. */
export class MissingAdapterError extends Error {
  override readonly name = "MissingAdapterError";
}

let device: Promise<GPUDevice | null> | undefined;

/**
 * The execution provider's entry for a session: ONNX Runtime's own device, or one without subgroups where they are too
 * small for its kernels.
 *
 * @throws MissingAdapterError where no adapter is to be had
 */
export async function webgpuProvider(): Promise<{ readonly name: "webgpu"; readonly device?: GPUDevice }> {
  device ??= ownDevice();
  // An adapter may come back after it was lost: ask again the next time.
  device.catch(() => {
    device = undefined;
  });
  const own = await device;
  return own === null ? { name: "webgpu" } : { name: "webgpu", device: own };
}

async function ownDevice(): Promise<GPUDevice | null> {
  const gpu = typeof navigator === "undefined" ? undefined : (navigator.gpu as GPU | undefined);
  const adapter = (await gpu?.requestAdapter()) ?? null;
  if (adapter === null) {
    throw new MissingAdapterError(
      `onnxruntime: expected a WebGPU adapter, got ${gpu === undefined ? "a place without WebGPU" : "none"}; ` +
        'use the provider "wasm"',
    );
  }
  const { subgroupMinSize = MIN_SUBGROUP } = adapter.info as Partial<GPUAdapterInfo>;
  if (!adapter.features.has("subgroups") || subgroupMinSize >= MIN_SUBGROUP) return null;
  const found = await adapter.requestDevice({
    requiredFeatures: usedFeatures.filter((feature) => adapter.features.has(feature)) as GPUFeatureName[],
    requiredLimits: Object.fromEntries(usedLimits.map((limit) => [limit, adapter.limits[limit]])),
  });
  found.lost.then(() => {
    device = undefined;
  });
  return found;
}

let last: Promise<unknown> = Promise.resolve();

/** One call after the other: ONNX Runtime's module waits inside a call, and refuses a second one meanwhile. */
export function webgpuTurn<T>(body: () => Promise<T>): Promise<T> {
  const next = last.then(body, body);
  last = next.catch(() => undefined);
  return next;
}

/** The session with its calls among those of all others on the device. */
export function inTurns(session: OrtSession): OrtSession {
  return {
    inputNames: session.inputNames,
    outputNames: session.outputNames,
    run: (feeds, fetches) => webgpuTurn(() => session.run(feeds, fetches)),
    release: () => webgpuTurn(() => session.release()),
  };
}
