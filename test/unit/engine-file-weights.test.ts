// float32 weights stay in their files: a session is told where they lie, and gives the losses that it gives from memory.
// Arrays in memory are freed once ONNX Runtime has its copy of them.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Backend, loadLanguageModel, onnxRuntimeBackend, type WeightSource } from "../../src/engine/index.ts";
import { memorySource } from "../../src/formats/index.ts";
import type { Tensor } from "../../src/tensor/index.ts";
import { checkpoint } from "../support/checkpoints.ts";
import { seededRandom } from "../support/random-ids.ts";

/** ONNX Runtime, and the weights that it was given. */
function watched(): { backend: Backend; weights: Map<string, WeightSource> } {
  const backend = onnxRuntimeBackend();
  const weights = new Map<string, WeightSource>();
  const load: Backend["load"] = (graph, given, options) => {
    for (const [name, source] of given as ReadonlyMap<string, WeightSource>) weights.set(name, source);
    return backend.load(graph, given, options);
  };
  return { backend: { ...backend, load }, weights };
}

// As a graph wants them; stored the other way round; in 16 bits.
test.each([
  ["llama", true],
  ["gpt2", false],
  ["qwen3", false],
])("%s", async (family, stays) => {
  const { folder } = checkpoint(family);
  const ids = seededRandom(1, 40, 90);
  const { backend, weights } = watched();
  await using inFiles = await loadLanguageModel(folder, { backend });
  const sources = readdirSync(folder)
    .filter((name) => /\.(json|safetensors)$/.test(name))
    .map((name) => memorySource(name, new Uint8Array(readFileSync(join(folder, name)))));
  await using inMemory = await loadLanguageModel(sources);

  expect([...weights.values()].some((source) => "file" in source)).toBe(stays);
  const losses = (await inFiles.score(ids)).negativeLogLikelihood;
  expect(losses).toEqual((await inMemory.score(ids)).negativeLogLikelihood);
});

test("weights in memory are let go when the session is there, which works on", async () => {
  const folder = new URL("../../models/longhand-rope", import.meta.url).pathname;
  const sources = readdirSync(folder)
    .filter((name) => /\.(json|safetensors)$/.test(name))
    .map((name) => memorySource(name, new Uint8Array(readFileSync(join(folder, name)))));
  const ids = seededRandom(2, 200, 256);
  const { backend, weights } = watched();
  await using inMemory = await loadLanguageModel(sources, { backend });
  const arrays = [...weights].map(([name, source]) => [name, source as Tensor] as const);
  const freed = arrays.filter(([, { data }]) => data.length === 0).map(([name]) => name);
  expect(freed).toContain("embedding.weight");
  expect(freed.length).toBeGreaterThan(arrays.length / 2);
  const first = (await inMemory.score(ids)).negativeLogLikelihood;
  // Whatever takes the memory over now does not touch the session's.
  const filler = Array.from({ length: 8 }, () => new Float32Array(250_000).fill(7));
  await using inFiles = await loadLanguageModel(folder);
  expect(first).toEqual((await inFiles.score(ids)).negativeLogLikelihood);
  expect((await inMemory.score(ids, { scaling: "linear:2" })).negativeLogLikelihood).toEqual(
    (await inFiles.score(ids, { scaling: "linear:2" })).negativeLogLikelihood,
  );
  expect(filler.every((array) => array[0] === 7)).toBe(true);
  // The files' bytes were the caller's, and are what they were: another load reads them.
  await using again = await loadLanguageModel(sources);
  expect((await again.score(ids)).negativeLogLikelihood).toEqual(first);
});
