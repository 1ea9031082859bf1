// Exported models: the class that each form says, files that load, and losses that are the trainer's. What transformers
// makes of the same folders: test/parity/training-exports.test.ts.

import { describe, expect, test } from "vitest";
import { loadLanguageModel } from "../../src/engine/index.ts";
import { fromNumbers, type Tensor, toNumbers } from "../../src/tensor/index.ts";
import { exportForm, exportModel } from "../../src/training/index.ts";
import { caseOptions, exportCases, exportTokens, exportWeights, folderOf, trainerLosses } from "../support/exports.ts";

const rounded = (weights: ReadonlyMap<string, Tensor<"f32">>, dtype: "f16" | "bf16"): Map<string, Tensor<"f32">> =>
  new Map(
    [...weights].map(([name, { shape, data }]) => [
      name,
      fromNumbers("f32", shape, toNumbers(fromNumbers(dtype, shape, data) as Tensor)) as Tensor<"f32">,
    ]),
  );
const farthest = (a: ArrayLike<number>, b: ArrayLike<number>): number =>
  Math.max(...Array.from(a, (x, i) => Math.abs(x - b[i]!)));

describe("an exported model is loaded with the trainer's losses", () => {
  const tokens = exportTokens();

  test.each(exportCases.map((one) => [one.name, one] as const))("%s", async (_, one) => {
    const weights = exportWeights(one);
    expect(exportForm(caseOptions(one))).toBe(one.form);
    const trained = await trainerLosses(one, tokens);
    const dtypes = one.form === "llama" ? (["f32", "f16", "bf16"] as const) : (["f32", "f16"] as const);
    for (const dtype of dtypes) {
      const files = exportModel({ ...caseOptions(one), weights, dtype });
      await using model = await loadLanguageModel(folderOf(files));
      expect(model.findings.filter(({ severity }) => severity !== "note")).toEqual([]);
      // A temperature by length is not the trainer's.
      const asTrained = { ...(one.logitTemperature === undefined ? {} : { logitTemperature: null }) };
      const { negativeLogLikelihood } = await model.score(tokens, asTrained);
      const held = dtype === "f32" ? weights : rounded(weights, dtype);
      expect(farthest(negativeLogLikelihood, await trained(held))).toBeLessThan(2e-5);
    }
  });
});
