// An embedding that is the head too, in quantised blocks: one copy of it is held, whatever the chunks of the vocabulary, and
// losses do not depend on them.

import { describe, expect, test } from "vitest";
import { cacheSizes, Decoder } from "../../src/engine/decoder.ts";
import { onnxRuntimeBackend, referenceBackend } from "../../src/engine/index.ts";
import { readParameters } from "../../src/engine/parameters.ts";
import { buildDecoder, createPositions, openCheckpoint, readLearnedPositions } from "../../src/models/index.ts";
import type { Tensor } from "../../src/tensor/index.ts";
import { type GgufCheckpoint, ggufCheckpoints } from "../support/checkpoints.ts";

const fileOf = (family: string, kind: string): GgufCheckpoint =>
  ggufCheckpoints(family).find((file) => file.kind === kind)!;

// Blocks of 8 bits and of 4.
describe.each([
  ["gemma3", "q8_0"],
  ["smollm3", "q4_0"],
])("%s %s", (family, kind) => {
  const { path, cases } = fileOf(family, kind);
  const golden = cases.find(({ config, scaling }) => config === undefined && scaling === null)!;

  test.each([
    ["onnxruntime-node", onnxRuntimeBackend()],
    ["reference", referenceBackend],
  ] as const)("%s", async (_, backend) => {
    const checkpoint = await openCheckpoint(path);
    const { spec, description } = checkpoint;
    expect(spec.head.tied).toBe(true);
    const matrix = await checkpoint.readQuantized("embedding.weight", [spec.vocabSize, spec.hiddenSize]);
    const parts = [matrix.blocks, matrix.scales, matrix.zeroPoints, matrix.blockMinimum];
    const stored = parts.reduce((bytes, part) => bytes + (part?.byteLength ?? 0), 0);
    const positions = createPositions(description, {}, await readLearnedPositions(checkpoint));
    const ids = Int32Array.from(golden.tokens);
    const losses: Float64Array[] = [];
    // In one piece, in even pieces, with a rest.
    for (const vocabularyChunk of [spec.vocabSize, 32, 40]) {
      const form = (weight: string) => checkpoint.form(weight);
      const program = buildDecoder(spec, { form, vocabularyChunk, queryFactors: true });
      const parameters = await readParameters(program, checkpoint);
      const own = [...program.parameters].filter(([, { weight }]) => weight === "embedding.weight");
      expect(own.map(([, { part }]) => part)).not.toContain("float32");
      const tensors = own.map(([name]) => parameters.get(name) as Tensor);
      expect(tensors.reduce((bytes, { data }) => bytes + data.byteLength, 0)).toBe(stored);
      // Pieces are views of one array a part, not copies.
      const arrays = new Set(tensors.map(({ data }) => data.buffer));
      expect(arrays.size).toBe(new Set(own.map(([, { part }]) => part)).size);
      const sizes = cacheSizes(program, ids.length);
      const exact = await backend.load(program.graph, parameters, { sizes });
      const decoder = new Decoder({ ...program, exact }, spec, ids.length, ids.length);
      losses.push((await decoder.run(ids, positions.tables(ids.length), { lossesFrom: 1 })).losses);
      await decoder.dispose();
    }
    await checkpoint.close();
    for (const other of losses.slice(1)) {
      other.forEach((loss, i) => void expect(Math.abs(loss - losses[0]![i]!)).toBeLessThan(2e-5));
    }
    const off = golden.losses64.map((loss, i) => Math.abs(loss - losses[0]![i]!));
    expect(off.reduce((sum, one) => sum + one, 0) / off.length).toBeLessThan(0.01);
  });
});
