// The ONNX Runtime backend: native in Node, WebAssembly and WebGPU elsewhere, from the same graphs. The package is
// imported when the first graph is loaded. In Node a run blocks the thread that calls it: use a worker where that
// matters.

import { encodeOnnx, lowerToOnnx } from "../../graph/index.ts";
import type { Backend } from "../backend.ts";
import { bindWeights, isFileWeight } from "../binding.ts";
import { statesFor } from "../states.ts";
import { freeArrays } from "./free.ts";
import { importRuntime, inNode, type Provider, providerTargets } from "./runtime.ts";
import { OnnxRuntimeSession } from "./session.ts";
import { type WasmPaths, wasmThreads } from "./threads.ts";
import { expectWebgpuDtypes, inTurns, webgpuProvider, webgpuTurn } from "./webgpu.ts";
import { packWeights } from "./weights.ts";

export interface OnnxRuntimeOptions {
  /** "node" in Node, "wasm" elsewhere, when absent. */
  readonly provider?: Provider;
  /** In a browser: where the package's .wasm is served, when that is not beside the script that loads it, and its .mjs,
   *  which threads start from: in a worker that a bundler makes one file there is one thread unless it is named. A
   *  folder's address with a slash at its end, or the files'. Before the first load; all backends of a page share it. */
  readonly wasmPaths?: WasmPaths;
  /** Floats too small for full precision (below 1.2e-38) count as 0, in Node. A masked softmax makes one of every key
   *  that it hides, and processors are slow at them: attention over 256 to 512 tokens takes 1.3 to 1.8 times as long
   *  without this (AVX-512). ONNX Runtime sets it for threads, by the first graph that a process loads: JavaScript on
   *  the thread that loads it flushes such numbers too (Number.MIN_VALUE is then 0), and later backends neither set nor
   *  unset it. For processes that do nothing else, such as a training run. false when absent. */
  readonly flushDenormals?: boolean;
  /** Session options of ONNX Runtime, put over ours (profiling, threads, optimisation level). */
  readonly sessionOptions?: Readonly<Record<string, unknown>>;
}

/**
 * A backend on ONNX Runtime. Making one loads nothing yet.
 *
 * @throws Error when the graph is loaded and the package (onnxruntime-node or onnxruntime-web) is not installed
 * @example
 * ```ts
 * import { onnxRuntimeBackend } from "longhand/engine";
 * import { graphBuilder } from "longhand/graph";
 * import { fromNumbers } from "longhand/tensor";
 * const g = graphBuilder("twice");
 * g.output("y", g.multiply(g.input("x", "f32", ["n"]), 2));
 * const session = await onnxRuntimeBackend().load(g.build());
 * const { y } = await session.run({ x: fromNumbers("f32", [3], [1, 2, 3]) });
 * await session.dispose();
 * Array.from(y.data); // => [2, 4, 6]
 * ```
 */
export function onnxRuntimeBackend(options: OnnxRuntimeOptions = {}): Backend {
  const provider = options.provider ?? (inNode() ? "node" : "wasm");
  const target = providerTargets[provider];
  return {
    name: `onnxruntime-${provider}`,
    capabilities: {
      device: target,
      // f16 is not every adapter's.
      computes: provider === "webgpu" ? ["f32"] : ["f32", "f64"],
      fileWeights: provider === "node",
      // The flash kernel computes what a mask hides, to numbers so small that they are slow, and WebAssembly cannot flush
      // them: causal attention over 512 tokens takes 84 ms with it and 12 with scores in memory (4 heads of 32 channels).
      fusedAttention: provider !== "wasm",
    },
    async load(graph, weights, loadOptions = {}) {
      if (provider === "webgpu") expectWebgpuDtypes(graph);
      const states = statesFor(graph, loadOptions, OnnxRuntimeSession);
      const bound = bindWeights(graph, weights);
      const packed = await packWeights(bound, provider === "node");
      const program = lowerToOnnx(graph, { target, weights: packed.weights, ownBuffers: provider === "node" });
      const ort = await importRuntime(provider);
      const threads = wasmThreads(loadOptions.threads, options.wasmPaths);
      if (provider !== "node" && threads !== undefined && ort.env.wasm !== undefined) {
        ort.env.wasm.numThreads = threads;
      }
      if (options.wasmPaths !== undefined && ort.env.wasm !== undefined) ort.env.wasm.wasmPaths = options.wasmPaths;
      const settings: Record<string, unknown> = {
        ...(provider === "node"
          ? {}
          : { executionProviders: [provider === "webgpu" ? await webgpuProvider() : "wasm"] }),
        ...(loadOptions.threads === undefined ? {} : { intraOpNumThreads: loadOptions.threads }),
        // Warnings about shapes that inference could not name would drown what matters.
        logSeverityLevel: 3,
        ...packed.options,
        ...(loadOptions.takesTurns === true ? turns(packed.options.extra) : {}),
        ...options.sessionOptions,
      };
      if (options.flushDenormals === true && provider === "node") settings.extra = withFlush(settings.extra);
      const create = () => ort.InferenceSession.create(encodeOnnx(program.model), settings);
      const session = provider === "webgpu" ? inTurns(await webgpuTurn(create)) : await create();
      // The native library has copied them by now.
      if (loadOptions.ownsWeights === true && provider === "node") {
        freeArrays([...bound.values()].flatMap((source) => (isFileWeight(source) ? [] : [source.data])));
      }
      return new OnnxRuntimeSession(graph, ort, session, program, states);
    },
  };
}

/** Options that let go of memory after each run, and let threads sleep at once. */
function turns(extra: unknown = {}): Readonly<Record<string, unknown>> {
  const { session = {} } = extra as { readonly session?: object };
  return { enableCpuMemArena: false, extra: { session: { ...session, intra_op: { allow_spinning: "0" } } } };
}

/** Extra session options with session.set_denormal_as_zero beside what is there already. */
function withFlush(extra: unknown = {}): Readonly<Record<string, unknown>> {
  const { session = {}, ...rest } = extra as { readonly session?: object };
  return { ...rest, session: { ...session, set_denormal_as_zero: "1" } };
}
