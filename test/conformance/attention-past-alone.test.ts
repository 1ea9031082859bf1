// Attention to a past alone, without new keys and not causal: any number of queries, fewer or more than there are keys.
// ONNX Runtime against the reference kernel, which is held to torch.

import { expect, test } from "vitest";
import { onnxRuntimeBackend, referenceBackend } from "../../src/engine/index.ts";
import { graphBuilder } from "../../src/graph/index.ts";
import { random, tensor } from "../../src/tensor/index.ts";

const [numHeads, headDim] = [3, 8];

function graph() {
  const g = graphBuilder("past alone");
  const query = g.input("query", "f32", [1, "tokens", numHeads * headDim]);
  const past = [1, numHeads, "keys", headDim] as const;
  const none = g.slice(query, 1, 0, 0);
  const { output, newKey } = g.attention(
    { query, key: none, value: none, pastKey: g.input("key", "f32", past), pastValue: g.input("value", "f32", past) },
    { numHeads, scale: 0.4, causal: false },
  );
  g.output("output", output);
  g.output("newKey", newKey);
  return g.build();
}

test.each([
  [1, 1],
  [1, 9],
  [5, 5],
  [3, 300],
  [70, 4],
])("%i queries, %i keys", async (tokens, keys) => {
  const stream = random(tokens + keys);
  const past = [1, numHeads, keys, headDim];
  const feeds = {
    query: tensor("f32", [1, tokens, numHeads * headDim], stream.normals(tokens * numHeads * headDim)),
    key: tensor("f32", past, stream.normals(keys * numHeads * headDim)),
    value: tensor("f32", past, stream.normals(keys * numHeads * headDim)),
  };
  await using fused = await onnxRuntimeBackend().load(graph());
  await using plain = await referenceBackend.load(graph());
  const [got, wanted] = [await fused.run(feeds), await plain.run(feeds)];
  expect(got.newKey!.shape).toEqual([1, numHeads, 0, headDim]);
  const expected = Array.from(wanted.output!.data as Float32Array);
  const off = expected.map((x, i) => Math.abs(x - (got.output!.data as Float32Array)[i]!));
  expect(Math.max(...off)).toBeLessThan(2e-6);
  expect(Math.max(...expected.map(Math.abs))).toBeGreaterThan(0.05);
});
