// What the figures read of the built-in models: losses from their cards, and what they learned about positions from their
// weights. Each is fetched when a figure first asks for it.

import type { ReadonlySignal } from "@preact/signals";
import { measuredLosses } from "../../../src/advice/exercises.ts";
import { builtInModel } from "../../../src/formats/built-in-models.ts";
import type { LossByPosition } from "../../../src/formats/model-card.ts";
import type { LearnedPositions } from "../../../src/models/learned-positions.ts";
import { type Loaded, loadedOnce } from "../../parts/loaded.ts";
import { models } from "./state.ts";

export const lossesOf: (name: string) => ReadonlySignal<Loaded<LossByPosition[]>> = loadedOnce((name) =>
  measuredLosses(name, models),
);

export const learnedOf: (name: string) => ReadonlySignal<Loaded<LearnedPositions>> = loadedOnce(async (name) => {
  // What reads checkpoints is a file of its own, so that the page opens without it.
  const [{ openCheckpoint }, { readLearnedPositions }] = await Promise.all([
    import("../../../src/models/checkpoint.ts"),
    import("../../../src/models/learned-positions.ts"),
  ]);
  const checkpoint = await openCheckpoint(await builtInModel(name, models));
  try {
    return await readLearnedPositions(checkpoint);
  } finally {
    await checkpoint.close();
  }
});
