// The worker of one run: the library trains, this passes on what is asked and what is told.

import { type LengthTest, taskLengthTest, textLengthTest } from "../../../src/evaluation/length-test.ts";
import {
  type BatchSource,
  createTask,
  exportModel,
  exportOptionsOf,
  LiveRun,
  type TrainingRecipe,
  taskBatches,
  tokenBatches,
} from "../../../src/training/index.ts";
import { pageBackend, threadsEach } from "../../parts/runtime.ts";
import type { FromWorker, StartMessage, ToWorker, TrainingData } from "./messages.ts";

const tell = (message: FromWorker): void => self.postMessage(message);
const fail = (error: unknown): void =>
  tell({ kind: "error", message: error instanceof Error ? error.message : String(error) });

let run: LiveRun | undefined;

self.onmessage = ({ data: message }: MessageEvent<ToWorker>) => {
  try {
    if (message.kind === "start") start(message);
    else if (message.kind === "hold") run?.hold();
    else if (message.kind === "resume") run?.resume();
    else if (message.kind === "step") run?.takeStep();
    else if (message.kind === "drop") run?.drop();
    else if (message.kind === "stop") run?.stop();
    else giveModel().catch(fail);
  } catch (error) {
    fail(error);
  }
};

function sourceOf(data: TrainingData, recipe: TrainingRecipe): { data: BatchSource; test: LengthTest } {
  if (data.kind === "text") {
    return { data: tokenBatches(data.train, recipe), test: textLengthTest(data.validation, recipe) };
  }
  const task = createTask(data.task);
  const { sizes } = data;
  return { data: taskBatches(task, { ...recipe, sizes }), test: taskLengthTest(task, sizes, recipe) };
}

function start({ recipe, data: given, provider, models, held }: StartMessage): void {
  const { data, test } = sourceOf(given, recipe);
  const speed = speedometer(recipe.batchSize * recipe.length);
  const progress = (of: LiveRun): void =>
    tell({
      kind: "progress",
      step: of.step,
      held: of.held,
      ended: of.ended,
      dropAt: of.recipe.dropAt,
      tokensPerSecond: speed.now(),
    });
  const live = new LiveRun({
    recipe,
    data,
    backend: pageBackend(provider),
    threads: threadsEach(models, provider),
    held,
    // Of a batch of thousands of tokens a step's own loss is smooth enough to look at.
    rowEvery: 1,
    validation: async (trainer) => {
      const points = await test.run(trainer);
      tell({ kind: "lengths", trained: test.trained, points });
      progress(live);
      const { loss, accuracy } = points[0]!;
      return { loss, ...(accuracy === undefined ? {} : { accuracy }) };
    },
    onRow: (row) => tell({ kind: "row", row }),
    beforeStep: speed.begin,
    onStep: () => {
      speed.end();
      progress(live);
    },
    onChange: progress,
  });
  run = live;
  live.start().catch(fail);
}

/** Tokens a second of steps alone, mostly of the last ten. */
function speedometer(tokens: number): { begin(): void; end(): void; now(): number | null } {
  let since = 0;
  let mean: number | null = null;
  return {
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

async function giveModel(): Promise<void> {
  if (run === undefined) return;
  const { recipe, checkpoint } = await run.capture();
  tell({ kind: "model", files: [...exportModel(exportOptionsOf(recipe, checkpoint))] });
}
