// Models with an encoder and a decoder against transformers: the loss of every decoder token of the tiny checkpoints,
// from safetensors and GGUF, and greedy text, which transformers computed by a full pass for every token.

import { describe, expect, test } from "vitest";
import { loadSequenceToSequenceModel, type SequenceToSequenceModel } from "../../src/engine/index.ts";
import { checkpoint, type GoldenCase, ggufCheckpoints } from "../support/checkpoints.ts";

/** Nats, on every token's loss. */
const tolerance = 2e-4;

async function faults(model: SequenceToSequenceModel, golden: GoldenCase): Promise<string[]> {
  const found: string[] = [];
  const decoderTokens = golden.decoderTokens!;
  const { negativeLogLikelihood: got } = await model.score(golden.tokens, decoderTokens);
  const largest = Math.max(...golden.losses64.map((loss, i) => Math.abs(loss - got[i]!)));
  if (!(largest <= tolerance) || got.length !== golden.losses64.length) {
    found.push(`${golden.name}: losses are off by ${largest}`);
  }
  const text: number[] = [];
  const options = { decoderTokens, maxTokens: golden.greedy.length, exact: true };
  for await (const { token } of model.generate(golden.tokens, options)) text.push(token);
  if (text.join() !== golden.greedy.join()) found.push(`${golden.name}: ${text} instead of ${golden.greedy}`);
  return found;
}

describe.each(["t5", "t5-gated", "mt5"])("%s", (family) => {
  test("losses are transformers', and greedy text with the cache is that of full passes", async () => {
    const { folder, cases } = checkpoint(family);
    await using model = await loadSequenceToSequenceModel(folder);
    const found: string[] = [];
    for (const golden of cases) found.push(...(await faults(model, golden)));
    expect(found).toEqual([]);
  });
});

describe.each(["t5", "t5-gated"])("%s as GGUF", (family) => {
  test.each(ggufCheckpoints(family))(
    "$kind: losses and greedy text are those of its values",
    async ({ path, cases }) => {
      await using model = await loadSequenceToSequenceModel(path);
      const found: string[] = [];
      for (const golden of cases) found.push(...(await faults(model, golden)));
      expect(found).toEqual([]);
    },
  );
});
