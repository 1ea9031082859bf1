// A training of experiments/train.ts as a model to measure, and the text that no training has seen.

import { readCorpus } from "../../src/cli/corpora.ts";
import { type LanguageModel, loadLanguageModel } from "../../src/engine/index.ts";
import { memorySource, modelFiles } from "../../src/formats/index.ts";
import { exportModel, exportOptionsOf, type TrainingRecipe } from "../../src/training/index.ts";
import { readRun } from "../train.ts";

export interface TrainedModel {
  readonly recipe: TrainingRecipe;
  readonly model: LanguageModel;
}

/** Null where the run is not there or not finished. */
export async function trainedModel(out: string, name: string): Promise<TrainedModel | null> {
  const run = await readRun(out, name);
  if (run === null || run.checkpoint.step < run.recipe.steps) return null;
  const { recipe, checkpoint } = run;
  const sources = [...exportModel(exportOptionsOf(recipe, checkpoint))].map(([file, bytes]) =>
    memorySource(file, bytes),
  );
  return { recipe, model: await loadLanguageModel(modelFiles(sources, name), { threads: 1 }) };
}

/** Pieces of the speeches that are kept apart, one after the other. */
export async function heldOutPieces(count: number, length: number): Promise<Uint8Array[]> {
  const { validation } = await readCorpus(["sotu"]);
  const space = validation.length - length;
  return Array.from({ length: count }, (_, i) => {
    const start = Math.floor((i * space) / (count - 1));
    return validation.subarray(start, start + length);
  });
}

/** Mean and the least and greatest of a number over seeds. */
export function overSeeds(values: readonly number[]): { mean: number; low: number; high: number } | null {
  if (values.length === 0) return null;
  const mean = values.reduce((sum, x) => sum + x, 0) / values.length;
  return { mean, low: Math.min(...values), high: Math.max(...values) };
}
