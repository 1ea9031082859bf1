// Queries and keys of a first layer against transformers on the same checkpoint. Its norm computes in float32 whatever the
// model is loaded as, which moves the eighth digit.

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { rope, vectorScores } from "../../src/encodings/index.ts";
import { builtInModel, type ModelSource } from "../../src/formats/index.ts";
import { openCheckpoint } from "../../src/models/checkpoint.ts";
import { readFirstLayer } from "../../src/models/first-layer.ts";

const golden = JSON.parse(readFileSync(resolve(import.meta.dirname, "../fixtures/first-layer.json"), "utf8"));

async function firstLayer(model: ModelSource) {
  const checkpoint = await openCheckpoint(model);
  try {
    return await readFirstLayer(checkpoint);
  } finally {
    await checkpoint.close();
  }
}

test("queries, keys and a rotated score of a tiny Llama equal transformers'", async () => {
  const layer = await firstLayer(resolve(import.meta.dirname, "../fixtures/checkpoints/llama"));
  golden.tokens.forEach((token: number, i: number) => {
    layer.query(token, golden.head).forEach((value, d) => {
      expect(value).toBeCloseTo(golden.query[i][d], 6);
    });
    layer.key(token, golden.head).forEach((value, d) => {
      expect(value).toBeCloseTo(golden.key[i][d], 6);
    });
  });
  const encoding = rope({
    headDim: golden.size,
    maxPositionEmbeddings: 256,
    rope: { ropeType: "default", ropeTheta: golden.theta },
  });
  const [a, b] = golden.tokens;
  const [queryPosition, keyPosition] = golden.places;
  for (let head = 0; head < golden.scores.length; head++) {
    const places = { queryPosition, keyPositions: [keyPosition], scale: layer.scale };
    const [score] = vectorScores(encoding, layer.query(a, head), layer.key(b, head), places);
    expect(score).toBeCloseTo(golden.scores[head], 6);
  }
});

test("what a first layer cannot tell is refused", async () => {
  await expect(firstLayer(await builtInModel("longhand-learned"))).rejects.toThrow(
    "expected a first layer of plain projections, got a model with positions in its embeddings",
  );
  const layer = await firstLayer(await builtInModel("longhand-nope"));
  expect(() => layer.query(layer.vocabSize, 0)).toThrow(
    `expected a token of 0 .. ${layer.vocabSize - 1}, got ${layer.vocabSize}`,
  );
  expect(() => layer.key(0, 4)).toThrow("expected a head of 0 .. 3, got 4");
});
