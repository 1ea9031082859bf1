// float32 weights stay in their files: a session is told where they lie, and gives the losses that it gives from memory.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Backend, loadLanguageModel, onnxRuntimeBackend, type WeightSource } from "../../src/engine/index.ts";
import { memorySource } from "../../src/formats/index.ts";
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
