// Laws of scoring and generating, over random texts, cuts and encodings, on the reference backend and on ONNX Runtime: a
// cache changes nothing, nor does where a text is cut, nor where a rotary text begins.

import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { rope } from "../../src/encodings/index.ts";
import type { QueryKeyEncoding } from "../../src/encodings/position-encoding.ts";
import {
  type EncodingOptions,
  type LanguageModel,
  loadLanguageModel,
  onnxRuntimeBackend,
  referenceBackend,
} from "../../src/engine/index.ts";
import { checkpoint } from "../support/checkpoints.ts";
import { largestDifference } from "../support/largest-difference.ts";

const backends = [
  ["reference", referenceBackend, 6],
  ["onnxruntime-node", onnxRuntimeBackend(), 25],
] as const;

/** Ids that every tiny checkpoint has. */
const tokens = (min: number, max: number) =>
  fc.array(fc.integer({ min: 3, max: 89 }), { minLength: min, maxLength: max });
const scaling = fc.constantFrom("none", "linear:3", "ntk:4", "yarn:4", "llama3:8", "dynamic:4", "dynamic-yarn", "drop");

describe.each(backends)("%s", (_, backend, numRuns) => {
  const options = { numRuns };
  const models = new Map<string, LanguageModel>();
  // Rotary with grouped heads; windows; a bias on the scores; a learned table.
  const families = ["llama", "gemma3", "bloom", "gpt2"];
  beforeAll(async () => {
    for (const family of families) {
      models.set(family, await loadLanguageModel(checkpoint(family).folder, { backend }));
    }
  });
  afterAll(async () => {
    for (const model of models.values()) await model.dispose();
  });
  const llama = (): LanguageModel => models.get("llama")!;
  const losses = async (model: LanguageModel, ids: number[], more: EncodingOptions & { chunkSize?: number } = {}) =>
    (await model.score(ids, more)).negativeLogLikelihood;

  test.each(families)("%s: the size of the chunks changes nothing", async (family) => {
    await fc.assert(
      fc.asyncProperty(tokens(2, 60), fc.integer({ min: 1, max: 20 }), async (ids, chunkSize) => {
        const model = models.get(family)!;
        expect(largestDifference(await losses(model, ids, { chunkSize }), await losses(model, ids))).toBeLessThan(2e-4);
      }),
      options,
    );
  });

  test("a cache changes nothing, under every encoding: greedy text is that of full passes", async () => {
    await fc.assert(
      fc.asyncProperty(tokens(2, 80), scaling, fc.constantFrom("whole", "growing"), async (prompt, form, reading) => {
        const more = { scaling: form, reading, length: prompt.length + 3 } as const;
        const text: { token: number; logProbability: number | null }[] = [];
        for await (const step of llama().generate(prompt, { ...more, maxTokens: 4, logProbabilities: true })) {
          text.push(step);
        }
        const ids = [...prompt];
        for (const { token, logProbability } of text) {
          ids.push(token);
          // Another text clears the cache, so that this is a full pass.
          await losses(llama(), [5, 6]);
          const length = reading === "growing" ? ids.length - 1 : more.length;
          const alone = await losses(llama(), ids, { scaling: form, reading: "whole", length });
          expect(Math.abs(alone.at(-1)! + logProbability!)).toBeLessThan(2e-4);
        }
      }),
      options,
    );
  });

  test("shared prefixes change nothing: calls in any order give what each gives alone", async () => {
    const call = fc.record({ cut: fc.integer({ min: 1, max: 30 }), rest: tokens(1, 10), form: scaling });
    await fc.assert(
      fc.asyncProperty(tokens(30, 30), fc.array(call, { minLength: 2, maxLength: 4 }), async (text, calls) => {
        for (const { cut, rest, form } of calls) {
          const context = text.slice(0, cut);
          const { logLikelihood } = await llama().loglikelihood(context, rest, { scaling: form });
          await using fresh = await fork(llama());
          const alone = await losses(fresh, [...context, ...rest], { scaling: form });
          const expected = -alone.slice(cut - 1).reduce((sum, x) => sum + x, 0);
          expect(Math.abs(logLikelihood - expected)).toBeLessThan(5e-4);
        }
      }),
      { numRuns: Math.min(numRuns, 4) },
    );
    function fork(_: LanguageModel): Promise<LanguageModel> {
      return loadLanguageModel(checkpoint("llama").folder, { backend });
    }
  });

  /** RoPE that counts from another position. */
  const shifted = (by: number): QueryKeyEncoding => {
    const { position } = llama().description.groups[0]!;
    if (position.site !== "query-key") throw new Error("a rotary model was expected");
    const own = rope({
      headDim: position.headDim,
      maxPositionEmbeddings: 64,
      rope: position.rope,
      layout: position.layout,
    });
    const from: QueryKeyEncoding["queryTables"] = (positions, length) =>
      own.queryTables(
        Array.from(positions, (p) => p + by),
        length,
      );
    return { ...own, name: `from ${by}`, queryTables: from, keyTables: from };
  };

  test("RoPE is relative: a text at P … P + S − 1 has the losses of the text at 0 … S − 1", async () => {
    await fc.assert(
      fc.asyncProperty(tokens(2, 60), fc.integer({ min: 1, max: 4000 }), async (ids, by) => {
        const moved = await losses(llama(), ids, { encodings: { 0: shifted(by) } });
        // Angles are exact; what is left is float32 in the scores.
        expect(largestDifference(moved, await losses(llama(), ids))).toBeLessThan(5e-4);
      }),
      options,
    );
  });

  test("without rotation a text is scored as if it had no distances, and that differs", async () => {
    await fc.assert(
      fc.asyncProperty(tokens(20, 60), async (ids) => {
        const [dropped, own] = [await losses(llama(), ids, { scaling: "drop" }), await losses(llama(), ids)];
        // The first loss has seen one token, at distance 0.
        expect(Math.abs(dropped[0]! - own[0]!)).toBeLessThan(1e-4);
        expect(largestDifference(dropped, own)).toBeGreaterThan(1e-2);
      }),
      options,
    );
  });
});
