// The train page's state: what is to be trained, in the address; the runs, each in a worker of its own or with the lab's
// server, which go on while other pages are looked at.

import { computed, type ReadonlySignal, type Signal, signal, batch as together } from "@preact/signals";
import type { LengthPoint } from "../../../src/evaluation/length-test.ts";
import type { TrainingAsk, TrainingData, TrainingWord } from "../../../src/evaluation/live-training.ts";
import {
  bytesWithBos,
  canDrop,
  partText,
  type RecipeEncoding,
  type RecipeSize,
  recipeEncodings,
  type TaskName,
  type TrainingRecipe,
  taskNames,
  textDocument,
  trainingRecipe,
} from "../../../src/training/index.ts";
import { createTask, taskLength } from "../../../src/training/tasks/index.ts";
import { mayHaveAdapter } from "../../parts/adapter.ts";
import { download } from "../../parts/download.ts";
import { parameter } from "../../shell/address.ts";
import { mayUseServer } from "../../shell/server.ts";
import { inWorker, onServer, type Place } from "./places.ts";

const encodingsText: Signal<string> = parameter("train", "rope,alibi,none");
export const size: Signal<string> = parameter("size", "tiny");
export const length: Signal<string> = parameter("length", "64");
export const tokens: Signal<string> = parameter("tokens", "500000");
export const seed: Signal<string> = parameter("seed", "0");
export const batch: Signal<string> = parameter("batch", "");
/** "text", or a task's name. */
export const source: Signal<string> = parameter("on", "text");
export const largest: Signal<string> = parameter("largest", "10");
export const device: Signal<string> = parameter("device", "wasm");
/** Whether the next runs are the server's: it is chosen, and may be used. */
export const onTheServer: ReadonlySignal<boolean> = computed(() => device.value === "server" && mayUseServer.value);
/** A text of one's own; it stays in this page. */
export const ownText: Signal<{ readonly name: string; readonly bytes: Uint8Array } | null> = signal(null);

export const chosen: ReadonlySignal<readonly RecipeEncoding[]> = computed(() => {
  const names = new Set(encodingsText.value.split(","));
  return recipeEncodings.filter((name) => names.has(name));
});
export function toggle(name: RecipeEncoding, on: boolean): void {
  encodingsText.value = recipeEncodings.filter((one) => (one === name ? on : chosen.value.includes(one))).join(",");
}

export const task: ReadonlySignal<TaskName | null> = computed(() =>
  (taskNames as readonly string[]).includes(source.value) ? (source.value as TaskName) : null,
);
const sizes: ReadonlySignal<readonly [number, number]> = computed(() => {
  const { minSize } = createTask(task.value ?? "copy");
  return [Math.max(1, minSize), Number(largest.value)];
});

interface Plan {
  readonly recipes: readonly TrainingRecipe[];
  readonly error: string | null;
}
/** The recipe of each chosen encoding, or why there is none. */
export const plan: ReadonlySignal<Plan> = computed(() => {
  try {
    const recipes = chosen.value.map((encoding) =>
      trainingRecipe({
        encoding: [encoding],
        size: size.value as RecipeSize,
        length: task.value === null ? Number(length.value) : taskLength(createTask(task.value), sizes.value[1]),
        tokens: Number(tokens.value),
        seed: Number(seed.value),
        ...(task.value === null ? bytesWithBos : {}),
        ...(batch.value === "" ? {} : { batchSize: Number(batch.value) }),
      }),
    );
    return { recipes, error: null };
  } catch (error) {
    return { recipes: [], error: error instanceof Error ? error.message : String(error) };
  }
});

function commandOf(encoding: RecipeEncoding): string {
  const words = ["longhand train", `--encoding ${encoding}`, `--size ${size.value}`];
  if (task.value === null) words.push(`--length ${length.value}`);
  words.push(`--tokens ${tokens.value}`, `--seed ${seed.value}`);
  if (batch.value !== "") words.push(`--batch ${batch.value}`);
  if (task.value !== null) words.push(`--task ${task.value}`, `--task-sizes ${sizes.value.join("-")}`);
  else words.push(`--text ${ownText.value === null ? "moby-dick" : "FILE"}`);
  return words.join(" ");
}

export type Phase = "loading" | "running" | "held" | "ended" | "failed";

/** One model in training. */
export interface Run {
  readonly id: number;
  readonly encoding: RecipeEncoding;
  readonly recipe: TrainingRecipe;
  readonly canDrop: boolean;
  /** The command that trains the same. */
  readonly command: string;
  readonly phase: Signal<Phase>;
  readonly step: Signal<number>;
  readonly dropAt: Signal<number | null>;
  readonly tokensPerSecond: Signal<number | null>;
  /** Of every step: tokens seen then, loss before it. */
  readonly losses: Signal<readonly (readonly [tokens: number, loss: number])[]>;
  readonly gradientNorm: Signal<number | null>;
  /** What the last test said, and after which step. */
  readonly test: Signal<{ readonly trained: number; readonly points: readonly LengthPoint[] } | null>;
  readonly error: Signal<string | null>;
  ask(kind: TrainingAsk): void;
  end(): void;
}

export const runs: Signal<readonly Run[]> = signal([]);
/** What the runs are trained on; a test's points are sizes where it is a task. */
export const runsOn: Signal<TaskName | null> = signal(null);
export const starting: Signal<boolean> = signal(false);
export const startError: Signal<string | null> = signal(null);

export const active: ReadonlySignal<readonly Run[]> = computed(() =>
  runs.value.filter(({ phase }) => phase.value !== "ended" && phase.value !== "failed"),
);

let nextId = 0;

function startRun(recipe: TrainingRecipe, data: TrainingData, models: number, held: boolean): Run {
  const question = { recipe, data, held };
  const heard = (word: TrainingWord): void => soon(() => hear(run, word));
  const place: Place = onTheServer.value
    ? onServer(question, heard)
    : inWorker(question, device.value === "webgpu" && mayHaveAdapter() ? "webgpu" : "wasm", models, heard);
  const run: Run = {
    id: nextId++,
    encoding: recipe.encoding[0]!,
    recipe,
    command: commandOf(recipe.encoding[0]!),
    canDrop: canDrop(recipe.encoding) && recipe.encoding[0] !== "none",
    phase: signal<Phase>("loading"),
    step: signal(0),
    dropAt: signal<number | null>(null),
    tokensPerSecond: signal<number | null>(null),
    losses: signal<readonly (readonly [number, number])[]>([]),
    gradientNorm: signal<number | null>(null),
    test: signal<{ trained: number; points: readonly LengthPoint[] } | null>(null),
    error: signal<string | null>(null),
    ...place,
  };
  return run;
}

const waiting: (() => void)[] = [];
let timer: number | undefined;
/** Changes of all runs are shown together, a few times a second: drawing must not take the processor from training. */
function soon(change: () => void): void {
  waiting.push(change);
  if (timer !== undefined) return;
  timer = window.setTimeout(() => {
    timer = undefined;
    together(() => {
      for (const one of waiting.splice(0)) one();
    });
  }, 250);
}

function hear(run: Run, word: TrainingWord): void {
  switch (word.kind) {
    case "progress":
      run.step.value = word.step;
      run.dropAt.value = word.dropAt;
      run.tokensPerSecond.value = word.tokensPerSecond;
      run.phase.value = word.ended ? "ended" : word.held ? "held" : "running";
      break;
    case "row":
      if (word.row.kind !== "train") break;
      run.losses.value = [...run.losses.value, [word.row.tokens, word.row.loss]];
      run.gradientNorm.value = word.row.gradientNorm;
      break;
    case "lengths":
      run.test.value = { trained: word.trained, points: word.points };
      break;
    case "model":
      void saveFiles(`longhand-${run.encoding}-${run.step.value}`, word.files);
      break;
    case "error":
      run.error.value = word.message;
      run.phase.value = "failed";
  }
}

/** One archive: a folder that loads as it is. */
async function saveFiles(
  folder: string,
  files: readonly (readonly [string, Uint8Array<ArrayBuffer>])[],
): Promise<void> {
  const { zipSync } = await import("fflate");
  // Weights do not get smaller.
  const entries = files.map(([name, bytes]) => [`${folder}/${name}`, bytes] as const);
  download(`${folder}.zip`, "application/zip", zipSync(Object.fromEntries(entries), { level: 0 }));
}

/** Trains every chosen encoding, in place of what was trained before. */
export async function start(held: boolean): Promise<void> {
  clear();
  starting.value = true;
  try {
    const { recipes } = plan.value;
    const data = await dataOf();
    runsOn.value = task.value;
    runs.value = recipes.map((recipe) => startRun(recipe, data, recipes.length, held));
  } catch (error) {
    startError.value = error instanceof Error ? error.message : String(error);
  } finally {
    starting.value = false;
  }
}

async function dataOf(): Promise<TrainingData> {
  if (task.value !== null) return { kind: "task", task: task.value, sizes: sizes.value };
  const own = ownText.value;
  const documents =
    own === null ? (await import("./sample.ts")).sampleDocuments : [textDocument(new TextDecoder().decode(own.bytes))];
  return { kind: "text", ...partText(documents) };
}

/** Ends every run and forgets it. */
export function clear(): void {
  for (const run of runs.value) run.end();
  runs.value = [];
  startError.value = null;
}
