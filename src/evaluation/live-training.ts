// A training that somebody watches: a recipe and what it is trained on in, words out. The lab's server and the worker of its
// page both run this, so that what a page shows is the same wherever it was computed.

import type { Backend } from "../engine/index.ts";
import {
  type BatchSource,
  createTask,
  exportModel,
  exportOptionsOf,
  LiveRun,
  type TaskName,
  type TrainingRecipe,
  type TrainingRow,
  taskBatches,
  tokenBatches,
} from "../training/index.ts";
import { type LengthPoint, type LengthTest, taskLengthTest, textLengthTest } from "./length-test.ts";

/** What is trained on. */
export type TrainingData =
  | { readonly kind: "text"; readonly train: Uint8Array; readonly validation: Uint8Array }
  | { readonly kind: "task"; readonly task: TaskName; readonly sizes: readonly [number, number] };

export interface TrainingQuestion {
  readonly recipe: TrainingRecipe;
  readonly data: TrainingData;
  /** Waits before its first step. */
  readonly held: boolean;
}

/** What may be asked of a training at any time: see LiveRun; model: its files as it stands. */
export const trainingAsks = ["hold", "resume", "step", "drop", "stop", "model"] as const;
export type TrainingAsk = (typeof trainingAsks)[number];

export type TrainingWord =
  /** Where it stands: after every step, and when something was asked of it. */
  | {
      readonly kind: "progress";
      readonly step: number;
      readonly held: boolean;
      readonly ended: boolean;
      readonly dropAt: number | null;
      readonly tokensPerSecond: number | null;
    }
  | { readonly kind: "row"; readonly row: TrainingRow }
  | { readonly kind: "lengths"; readonly trained: number; readonly points: readonly LengthPoint[] }
  /** Files of the model, by name. */
  | { readonly kind: "model"; readonly files: readonly (readonly [string, Uint8Array<ArrayBuffer>])[] }
  /** The last word. */
  | { readonly kind: "error"; readonly message: string };

export interface LiveTrainingOptions {
  readonly backend: Backend;
  readonly threads?: number;
  readonly onWord: (word: TrainingWord) => void;
  /** Waited for before each step: where a step blocks its thread, others get their turn here. */
  readonly pause?: () => Promise<void>;
}

export class LiveTraining {
  readonly #tell: (word: TrainingWord) => void;
  readonly #run: LiveRun;

  /** @throws RangeError for a text or a task that the recipe cannot be trained on */
  constructor({ recipe, data: given, held }: TrainingQuestion, options: LiveTrainingOptions) {
    const { backend, threads, onWord, pause } = options;
    this.#tell = onWord;
    const { data, test } = sourceOf(given, recipe);
    const speed = speedometer(recipe.batchSize * recipe.length);
    const progress = (run: LiveRun): void =>
      onWord({
        kind: "progress",
        step: run.step,
        held: run.held,
        ended: run.ended,
        dropAt: run.recipe.dropAt,
        tokensPerSecond: speed.now(),
      });
    const run: LiveRun = new LiveRun({
      recipe,
      data,
      backend,
      ...(threads === undefined ? {} : { threads }),
      held,
      // Of a batch of thousands of tokens a step's own loss is smooth enough to look at.
      rowEvery: 1,
      validation: async (trainer) => {
        const points = await speed.beside(() => test.run(trainer));
        onWord({ kind: "lengths", trained: test.trained, points });
        progress(run);
        const { loss, accuracy } = points[0]!;
        return { loss, ...(accuracy === undefined ? {} : { accuracy }) };
      },
      onRow: (row) => onWord({ kind: "row", row }),
      async beforeStep() {
        await pause?.();
        speed.begin();
      },
      onStep: () => {
        speed.end();
        progress(run);
      },
      onChange: progress,
    });
    this.#run = run;
  }

  /** Trains to the end of the recipe, or until it is stopped. Never throws: an error is its last word. */
  async start(): Promise<void> {
    await this.#told(() => this.#run.start());
  }

  /** Takes effect before the next step; of a run that has ended, only its model may be asked. */
  async ask(ask: TrainingAsk): Promise<void> {
    const run = this.#run;
    await this.#told(async () => {
      if (ask === "hold") run.hold();
      else if (ask === "resume") run.resume();
      else if (ask === "step") run.takeStep();
      else if (ask === "drop") run.drop();
      else if (ask === "stop") run.stop();
      else {
        const { recipe, checkpoint } = await run.capture();
        this.#tell({ kind: "model", files: [...exportModel(exportOptionsOf(recipe, checkpoint))] });
      }
    });
  }

  async #told(act: () => Promise<unknown>): Promise<void> {
    try {
      await act();
    } catch (error) {
      this.#tell({ kind: "error", message: error instanceof Error ? error.message : String(error) });
    }
  }
}

function sourceOf(data: TrainingData, recipe: TrainingRecipe): { data: BatchSource; test: LengthTest } {
  if (data.kind === "text") {
    return { data: tokenBatches(data.train, recipe), test: textLengthTest(data.validation, recipe) };
  }
  const task = createTask(data.task);
  const { sizes } = data;
  return { data: taskBatches(task, { ...recipe, sizes }), test: taskLengthTest(task, sizes, recipe) };
}

/** Tokens a second of steps alone, mostly of the last ten. */
function speedometer(tokens: number): {
  begin(): void;
  end(): void;
  /** Does something within a step that is no part of it. */
  beside<T>(act: () => Promise<T>): Promise<T>;
  now(): number | null;
} {
  let since = 0;
  let mean: number | null = null;
  return {
    async beside(act) {
      const started = performance.now();
      const result = await act();
      since += performance.now() - started;
      return result;
    },
    begin() {
      since = performance.now();
    },
    end() {
      const seconds = (performance.now() - since) / 1000;
      mean = mean === null ? seconds : 0.9 * mean + 0.1 * seconds;
    },
    now: () => (mean === null ? null : tokens / mean),
  };
}
