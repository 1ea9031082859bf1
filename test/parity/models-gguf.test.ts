// Every family that can be run, from GGUF: transformers' losses on the weights as they are read back from each file, below
// and above the trained length. Files of floats to 2e-4 a token; quantised files so with every weight as float32, and by
// their blocks with exact activations to 0.01 nats in the mean.

import { describe, expect, test } from "vitest";
import { type LanguageModel, loadLanguageModel } from "../../src/engine/index.ts";
import { modelFamilies } from "../../src/models/index.ts";
import { type GoldenCase, ggufCheckpoints, ggufFamilies } from "../support/checkpoints.ts";

const decoders = ggufFamilies
  .flatMap(ggufCheckpoints)
  .filter(({ architecture }) => modelFamilies.some((family) => family.gguf.includes(architecture)))
  .map((file) => ({
    ...file,
    name: `${file.family} ${file.kind}`,
    cases: file.cases.filter(({ config, decoderTokens }) => config === undefined && decoderTokens === undefined),
  }))
  .filter(({ cases }) => cases.length > 0);

async function differences(model: LanguageModel, golden: GoldenCase): Promise<{ largest: number; mean: number }> {
  const { negativeLogLikelihood: got } = await model.score(golden.tokens);
  expect(got.length).toBe(golden.losses64.length);
  const off = golden.losses64.map((loss, i) => Math.abs(loss - got[i]!));
  return { largest: Math.max(...off), mean: off.reduce((sum, one) => sum + one, 0) / off.length };
}

async function greedy(model: LanguageModel, golden: GoldenCase): Promise<number[]> {
  const out: number[] = [];
  for await (const { token } of model.generate(golden.tokens, { maxTokens: golden.greedy.length })) out.push(token);
  return out;
}

describe.each(decoders)("$name", ({ path, kind, cases }) => {
  test("every weight as float32 gives transformers' losses and greedy text", async () => {
    await using model = await loadLanguageModel(path, { precision: "float32" });
    for (const golden of cases) {
      expect((await differences(model, golden)).largest, golden.name).toBeLessThanOrEqual(2e-4);
      expect(await greedy(model, golden), golden.name).toEqual(golden.greedy);
    }
  });

  if (!kind.startsWith("q")) return;
  test("quantised blocks with exact activations give nearly the same", async () => {
    await using model = await loadLanguageModel(path, { precision: "quantized" });
    for (const golden of cases) {
      expect((await differences(model, golden)).mean, golden.name).toBeLessThan(0.01);
    }
  });
});
