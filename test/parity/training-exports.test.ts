// What training exports, against transformers: the folders of test/support/exports.ts as transformers 5.24.0 loads and
// runs them, and those of the own form as a torch model written from docs/longhand-form.md does
// (reference/training_exports.py). Weights are drawn again from their seed.

import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { loadLanguageModel } from "../../src/engine/index.ts";
import { openTokenizer } from "../../src/formats/index.ts";
import { exportModel } from "../../src/training/index.ts";
import {
  caseOptions,
  exportCases,
  exportLength,
  exportTokenizers,
  exportTokens,
  exportWeights,
  folderOf,
  trainedWeights,
  trainerLosses,
} from "../support/exports.ts";

interface Golden {
  readonly name: string;
  /** The class that computed them. */
  readonly runner: string;
  /** By number of tokens. */
  readonly losses: Readonly<Record<string, readonly number[]>>;
  /** With the temperature that transformers does not know. */
  readonly withTemperature?: Readonly<Record<string, readonly number[]>>;
}
const fixture = JSON.parse(readFileSync(new URL("../fixtures/training-exports.json", import.meta.url), "utf8")) as {
  cases: Golden[];
  texts: string[];
  tokenizers: { name: string; bos: number | null; eos: number | null; ids: number[][] }[];
};

const runners = {
  llama: "LlamaForCausalLM",
  qwen3: "Qwen3ForCausalLM",
  smollm3: "SmolLM3ForCausalLM",
  mpt: "MptForCausalLM",
  bloom: "BloomForCausalLM",
  gpt2: "GPT2LMHeadModel",
  longhand: "Longhand",
} as const;

const golden = (name: string): Golden => {
  const found = fixture.cases.find((one) => one.name === name);
  if (found === undefined) throw new Error(`test: expected ${name} in the fixture; run reference/training_exports.py`);
  return found;
};
const farthest = (a: ArrayLike<number>, b: ArrayLike<number>): number => {
  expect(a.length).toBe(b.length);
  return Math.max(...Array.from(a, (x, i) => Math.abs(x - b[i]!)));
};
const tolerance = 2e-4;

describe("exported models have transformers' losses", () => {
  test.each(exportCases.map((one) => [one.name, one] as const))("%s", async (name, one) => {
    const { runner, losses, withTemperature = {} } = golden(name);
    expect(runner).toBe(runners[one.form]);
    const weights = exportWeights(one);
    await using model = await loadLanguageModel(folderOf(exportModel({ ...caseOptions(one), weights })));
    expect(Object.keys(losses)).toContain(String(exportLength));
    for (const [length, expected] of Object.entries(losses)) {
      const tokens = exportTokens(Number(length));
      // transformers knows no temperature; the document does.
      const off = runner !== "Longhand" && one.logitTemperature !== undefined;
      const score = await model.score(tokens, off ? { logitTemperature: null } : {});
      expect(farthest(score.negativeLogLikelihood, expected)).toBeLessThan(tolerance);
      // Training has no temperature.
      if (Number(length) !== exportLength || (one.logitTemperature !== undefined && !off)) continue;
      const trained = await (await trainerLosses(one, tokens))(weights);
      expect(farthest(trained, expected)).toBeLessThan(tolerance);
      expect(farthest(score.negativeLogLikelihood, trained)).toBeLessThan(2e-5);
    }
    for (const [length, expected] of Object.entries(withTemperature)) {
      const score = await model.score(exportTokens(Number(length)));
      expect(farthest(score.negativeLogLikelihood, expected)).toBeLessThan(tolerance);
      expect(farthest(expected, losses[length]!)).toBeGreaterThan(0.01);
    }
  });

  test.each(exportCases.filter(({ trained }) => trained).map((one) => [one.name, one] as const))(
    "%s after some steps of training",
    async (name, one) => {
      const { losses } = golden(`${name}-trained`);
      const weights = await trainedWeights(one);
      await using model = await loadLanguageModel(folderOf(exportModel({ ...caseOptions(one), weights })));
      const expected = losses[exportLength]!;
      const score = await model.score(exportTokens());
      expect(farthest(score.negativeLogLikelihood, expected)).toBeLessThan(tolerance);
      expect(farthest(expected, golden(name).losses[exportLength]!)).toBeGreaterThan(0.01);
    },
  );
});

test.each(fixture.tokenizers)("the tokenizer $name gives AutoTokenizer's ids", async ({ name, bos, eos, ids }) => {
  const tokenizer = exportTokenizers[name]!;
  const one = exportCases[0]!;
  const wide = { ...one, spec: { ...one.spec, vocabSize: 260 } };
  const files = exportModel({ ...caseOptions(wide), weights: exportWeights(wide), tokenizer });
  const read = await openTokenizer(folderOf(files));
  expect(fixture.texts.map((text) => read.encode(text))).toEqual(ids);
  expect([read.bosToken, read.eosToken]).toEqual([bos, eos]);
  expect(JSON.parse(new TextDecoder().decode(files.get("config.json")))).toMatchObject({
    bos_token_id: bos,
    eos_token_id: eos,
  });
});
