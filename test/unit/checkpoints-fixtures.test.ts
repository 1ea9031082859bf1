// The tiny checkpoints are what the tests of models take them for: complete, small, sensitive to positions.

import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  checkpoint,
  checkpointFamilies,
  type GoldenCase,
  ggufCheckpoints,
  ggufFamilies,
  scoredTokens,
} from "../support/checkpoints.ts";

/** What is wrong with a case, one line each. */
function faults(golden: GoldenCase, vocabSize: number): string[] {
  const scored = scoredTokens(golden);
  const found: string[] = [];
  const expectThat = (holds: boolean, fault: string) => {
    if (!holds) found.push(`${golden.name}: ${fault}`);
  };
  const ids = [...golden.tokens, ...scored, ...golden.greedy];
  expectThat(
    ids.every((id) => Number.isInteger(id) && id >= 0 && id < vocabSize),
    "a token outside the vocabulary",
  );
  expectThat(golden.losses.length === scored.length - 1, "not a loss a token");
  expectThat(golden.losses64.length === golden.losses.length, "columns of different length");
  expectThat(golden.greedy.length === 16, "not 16 greedy tokens");
  expectThat(golden.lastLogits.length === vocabSize, "not a logit a token of the vocabulary");
  expectThat([...golden.losses, ...golden.losses64, ...golden.lastLogits].every(Number.isFinite), "not finite");
  expectThat(
    golden.losses.every((loss, i) => Math.abs(loss - golden.losses64[i]!) < 6e-5),
    "float32 is far from float64",
  );
  const best = golden.lastLogits.indexOf(Math.max(...golden.lastLogits));
  expectThat(best === golden.greedy[0], "the first greedy token is not the likeliest");
  return found;
}

/** llama.cpp looks gelu up in a table of float16 values. */
const withGelu: readonly string[] =
  "bloom falcon falcon-grouped gemma gemma2 gemma3 gpt2 gpt_neox gpt_neox-serial mpt phi starcoder2 t5-gated umt5".split(
    " ",
  );

function vocabSizeOf(family: string): number {
  return JSON.parse(readFileSync(join(checkpoint(family).folder, "config.json"), "utf8")).vocab_size;
}

describe("tiny checkpoints", () => {
  test("every family that the engine runs has one", () => {
    const modelTypes = checkpointFamilies.map((family) => {
      const config = readFileSync(join(checkpoint(family).folder, "config.json"), "utf8");
      return JSON.parse(config).model_type as string;
    });
    const wanted =
      "bloom cohere cohere2 falcon gemma gemma2 gemma3_text gpt2 gpt_neox llama ministral ministral3 mistral mpt mt5 " +
      "olmo2 olmo3 phi phi3 qwen2 qwen3 smollm3 stablelm starcoder2 t5 umt5";
    expect([...new Set(modelTypes)].sort()).toEqual(wanted.split(" "));
  });

  test.each(checkpointFamilies)("%s: cases are complete and positions matter", (family) => {
    const { cases, positions, rounding } = checkpoint(family);
    const vocabSize = vocabSizeOf(family);
    expect(cases.flatMap((golden) => faults(golden, vocabSize))).toEqual([]);
    expect(new Set(cases.map((golden) => golden.name)).size).toBe(cases.length);
    expect(cases.length).toBeGreaterThanOrEqual(2);
    // A wrong encoding moves losses by far more than float32 does, and predictions are far from uniform.
    expect(positions).toBeGreaterThan(1000 * rounding);
    const losses = cases.flatMap((golden) => golden.losses);
    expect(losses.reduce((sum, loss) => sum + loss, 0) / losses.length).toBeGreaterThan(Math.log(vocabSize) + 0.5);
  });

  test.each(ggufFamilies)("%s as GGUF: cases are complete, and llama.cpp agreed on the same weights", (family) => {
    const vocabSize = vocabSizeOf(family);
    for (const { kind, cases, llamaCpp } of ggufCheckpoints(family)) {
      expect(cases.flatMap((golden) => faults(golden, vocabSize))).toEqual([]);
      if (!["f32", "f16", "bf16"].includes(kind)) continue;
      const distances = Object.values(llamaCpp!.asF32!);
      expect(distances.length).toBeGreaterThan(0);
      for (const [, largest] of distances) expect(largest).toBeLessThan(withGelu.includes(family) ? 2e-2 : 1e-4);
    }
  });

  test("weights stay below 300 KB a file and 8 MB in all", () => {
    let total = 0;
    const walk = (folder: string): void => {
      for (const entry of readdirSync(folder, { withFileTypes: true })) {
        const path = join(folder, entry.name);
        if (entry.isDirectory()) {
          walk(path);
          continue;
        }
        const { size } = statSync(path);
        expect(size, path).toBeLessThan(300_000);
        total += size;
      }
    };
    walk(join(checkpoint("llama").folder, ".."));
    expect(total).toBeLessThan(8_000_000);
  });
});
