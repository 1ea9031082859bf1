// The engine on ONNX Runtime's WebAssembly, in Node: attention keeps its scores there, chosen by neutral sinks, and the
// losses stay those of the native library, within one chunk and over several. Browsers: test/browser/engine.test.ts.

import { resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type Backend,
  type LanguageModel,
  loadLanguageModel,
  onnxRuntimeBackend,
  referenceBackend,
} from "../../src/engine/index.ts";
import type { Graph } from "../../src/graph/index.ts";
import { parseStrategy } from "../../src/models/index.ts";
import { checkpoint } from "../support/checkpoints.ts";
import { largestDifference } from "../support/largest-difference.ts";

const models = resolve(import.meta.dirname, "../../models");
const tokens = Int32Array.from({ length: 700 }, (_, i) => (i * i * 31 + (i >> 3) * 7 + (i % 13)) & 255);

describe.each(["longhand-rope", "longhand-alibi"])("%s on WebAssembly", (name) => {
  let wasm: LanguageModel;
  let native: LanguageModel;
  beforeAll(async () => {
    const load = (provider: "wasm" | "node") =>
      loadLanguageModel(resolve(models, name), { backend: onnxRuntimeBackend({ provider }), threads: 1 });
    [wasm, native] = await Promise.all([load("wasm"), load("node")]);
  }, 60_000);
  afterAll(async () => {
    await wasm?.[Symbol.asyncDispose]();
    await native?.[Symbol.asyncDispose]();
  });

  test.each([40, 512, 700])("has the native library's losses of %i tokens", async (length) => {
    const [ours, theirs] = [
      await wasm.score(tokens.subarray(0, length)),
      await native.score(tokens.subarray(0, length)),
    ];
    expect(ours.negativeLogLikelihood.length).toBe(length - 1);
    expect(largestDifference(ours.negativeLogLikelihood, theirs.negativeLogLikelihood)).toBeLessThan(2e-5);
  });
});

test("a backend whose attention keeps scores gets neutral sinks, one without does not, with the same losses", async () => {
  const { folder, cases } = checkpoint("llama");
  const tokens = cases[0]!.tokens.slice(0, 24);
  const loaded: Graph[] = [];
  const keeping = (fusedAttention: boolean): Backend => ({
    ...referenceBackend,
    capabilities: { ...referenceBackend.capabilities, fusedAttention },
    load: (graph, ...rest) => {
      loaded.push(graph);
      return referenceBackend.load(graph, ...rest);
    },
  });
  const losses: ArrayLike<number>[] = [];
  for (const fused of [false, true]) {
    await using model = await loadLanguageModel(folder, { backend: keeping(fused) });
    losses.push((await model.score(tokens)).negativeLogLikelihood);
    // Views of keys have kernels of their own.
    losses.push((await model.score(tokens, { scaling: parseStrategy("self-extend:2:8") })).negativeLogLikelihood);
  }
  const withSinks = loaded.map((graph) =>
    graph.nodes.some((node) => node.op === "attention" && node.inputs.sinks !== undefined),
  );
  expect(withSinks).toEqual([true, false, false, false]);
  // exp(−1e30) is 0.
  expect(losses[0]).toEqual(losses[2]);
  expect(losses[1]).toEqual(losses[3]);
});
