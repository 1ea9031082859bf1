// Real checkpoints, when they are on this machine: llama2.c's stories260K in its three formats, and SmolLM2-135M on a
// book, against transformers' means under five strategies. Short: bench/ has the long comparisons.

import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { type LanguageModel, loadLanguageModel } from "../../src/engine/index.ts";
import { openTokenizer } from "../../src/formats/tokenizers/index.ts";
import { cachedModel, sharedFile } from "../support/real-files.ts";

async function collect(model: LanguageModel, prompt: number[], maxTokens: number): Promise<number[]> {
  const out: number[] = [];
  for await (const { token } of model.generate(prompt, { maxTokens })) out.push(token);
  return out;
}

const gguf = sharedFile("models/stories260K/tinyllamas-stories-260k-f32.gguf");
const bin = sharedFile("models/stories260K/stories260K.bin");
const int8 = sharedFile("models/stories260K/stories260K-q8.bin");

describe.skipIf(gguf === null || bin === null || int8 === null)("stories260K", () => {
  test("GGUF, llama2.c and llama2.c's int8 tell llama2.c's story", async () => {
    const tokenizer = await openTokenizer(bin!);
    const texts = new Map<string, string>();
    const losses: Float64Array[] = [];
    for (const path of [gguf!, bin!, int8!]) {
      await using model = await loadLanguageModel(path);
      const story = await collect(model, [1], 100);
      texts.set(path, tokenizer.decode([1, ...story], { skipSpecial: true }));
      losses.push((await model.score([1, ...story])).negativeLogLikelihood);
    }
    for (const text of texts.values()) {
      expect(text.trim()).toMatch(
        /^Once upon a time, there was a little girl named Lily\. She loved to play outside in the park\. One day, she saw a big, red ball\./,
      );
    }
    expect(texts.get(bin!)).toBe(texts.get(gguf!));
    const largest = Math.max(...losses[0]!.map((x, i) => Math.abs(x - losses[1]![i]!)));
    expect(largest).toBeLessThan(1e-4);
  });
});

const smollm2 = cachedModel("SmolLM2-135M-Instruct.Q4_1.gguf");
const reference = sharedFile("references/smollm2-gibbon.json");

describe.skipIf(smollm2 === null || reference === null)("SmolLM2-135M on 1,024 tokens of Gibbon", () => {
  const { tokens, means } =
    reference === null ? { tokens: [], means: {} } : JSON.parse(readFileSync(reference, "utf8"));
  const ids: number[] = tokens.slice(0, 1025);
  const mean = (losses: Float64Array): number => losses.reduce((sum, x) => sum + x, 0) / losses.length;
  const strategies = { none: "none", dynamic: "dynamic:1.5", yarn: "yarn:1.5" };

  test("float32 gives transformers' means; the file's own blocks give the same losses, decoding rounds and says so", async () => {
    const own: Float64Array[] = [];
    {
      await using model = await loadLanguageModel(smollm2!, { precision: "float32", threads: 1 });
      for (const [name, scaling] of Object.entries(strategies)) {
        const { negativeLogLikelihood } = await model.score(ids, { scaling, length: 12288 });
        expect(Math.abs(mean(negativeLogLikelihood) - means[name][0]), name).toBeLessThan(2e-4);
        own.push(negativeLogLikelihood);
      }
    }
    await using model = await loadLanguageModel(smollm2!, { threads: 1, decoding: true });
    const score = await model.score(ids.slice(0, 200));
    expect(score).toMatchObject({ precision: "quantized", accuracyLevel: 0 });
    score.negativeLogLikelihood.forEach((x, i) => void expect(Math.abs(x - own[0]![i]!)).toBeLessThan(1e-3));
    const run = model.generate(ids.slice(0, 64), { maxTokens: 8 });
    let step = await run.next();
    while (!step.done) step = await run.next();
    expect(step.value).toMatchObject({ precision: "quantized", accuracyLevel: 4 });
  }, 300_000);
});
