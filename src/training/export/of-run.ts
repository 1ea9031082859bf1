// What exportModel takes of a run that is finished.

import { encodingsAt, type TrainingRecipe, trainingPlan } from "../recipe.ts";
import type { RunCheckpoint } from "../run.ts";
import type { ExportOptions } from "./index.ts";

/**
 * The spec, the encodings in force at the checkpoint, its weights, and the tokenizer of a vocabulary of bytes.
 *
 * @param checkpoint of a run of this recipe, as `runRecipe` gives it
 */
export function exportOptionsOf(
  recipe: TrainingRecipe,
  { step, weights }: Pick<RunCheckpoint, "step" | "weights">,
): Pick<ExportOptions, "spec" | "encodings" | "weights" | "trainedLength" | "tokenizer"> {
  const { spec, encodings } = trainingPlan(recipe);
  return {
    spec,
    encodings: encodingsAt(recipe, encodings, step),
    weights,
    trainedLength: recipe.length,
    ...(recipe.vocabSize === 256 ? { tokenizer: { specialTokens: [] } } : {}),
  };
}
