// What exportModel takes of a run that is finished.

import type { ByteTokenizerOptions } from "../../formats/tokenizers/index.ts";
import { bytesWithBos, encodingsAt, type TrainingRecipe, trainingPlan } from "../recipe.ts";
import type { RunCheckpoint } from "../run.ts";
import type { ExportOptions } from "./index.ts";

/** The tokenizer of a vocabulary of bytes; null for another one. */
function byteTokenizerOf({ vocabSize, bosTokenId }: TrainingRecipe): ByteTokenizerOptions | null {
  if (vocabSize === 256 && bosTokenId === null) return { specialTokens: [] };
  if (vocabSize === bytesWithBos.vocabSize && bosTokenId === bytesWithBos.bosTokenId) {
    return { specialTokens: ["<bos>"] };
  }
  return null;
}

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
  const tokenizer = byteTokenizerOf(recipe);
  return {
    spec,
    encodings: encodingsAt(recipe, encodings, step),
    weights,
    trainedLength: recipe.length,
    ...(tokenizer === null ? {} : { tokenizer }),
  };
}
