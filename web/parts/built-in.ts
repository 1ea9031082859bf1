// What pages read of the built-in models: losses from their cards; what they learned about positions, and the queries and
// keys of their first layer, from their weights. Each is fetched when a figure first asks for it.

import type { ReadonlySignal } from "@preact/signals";
import { measuredLosses } from "../../src/advice/exercises.ts";
import { builtInModel, builtInModelsAt } from "../../src/formats/built-in-models.ts";
import type { LossByPosition } from "../../src/formats/model-card.ts";
import type { ModelDescription } from "../../src/formats/model-description.ts";
import type { Checkpoint } from "../../src/models/checkpoint.ts";
import type { FirstLayer } from "../../src/models/first-layer.ts";
import type { LearnedPositions } from "../../src/models/learned-positions.ts";
import { type Loaded, loadedOnce } from "./loaded.ts";

/** From where this page came from. */
export const models: ReturnType<typeof builtInModelsAt> = builtInModelsAt(new URL("./models/", document.baseURI));

export const lossesOf: (name: string) => ReadonlySignal<Loaded<LossByPosition[]>> = loadedOnce((name) =>
  measuredLosses(name, models),
);

/** What reads checkpoints is a file of its own, so that the page opens without it. */
async function withCheckpoint<T>(name: string, read: (checkpoint: Checkpoint) => Promise<T>): Promise<T> {
  const { openCheckpoint } = await import("../../src/models/checkpoint.ts");
  const checkpoint = await openCheckpoint(await builtInModel(name, models));
  try {
    return await read(checkpoint);
  } finally {
    await checkpoint.close();
  }
}

export const learnedOf: (name: string) => ReadonlySignal<Loaded<LearnedPositions>> = loadedOnce((name) =>
  withCheckpoint(name, async (checkpoint) =>
    (await import("../../src/models/learned-positions.ts")).readLearnedPositions(checkpoint),
  ),
);

/** A model's first layer, with what it knows of positions. */
export interface ReadLayer {
  readonly layer: FirstLayer;
  readonly learned: LearnedPositions;
  readonly description: ModelDescription;
}
export const firstLayerOf: (name: string) => ReadonlySignal<Loaded<ReadLayer>> = loadedOnce((name) =>
  withCheckpoint(name, async (checkpoint) => {
    const [{ readFirstLayer }, { readLearnedPositions }] = await Promise.all([
      import("../../src/models/first-layer.ts"),
      import("../../src/models/learned-positions.ts"),
    ]);
    return {
      layer: await readFirstLayer(checkpoint),
      learned: await readLearnedPositions(checkpoint),
      description: checkpoint.description,
    };
  }),
);
