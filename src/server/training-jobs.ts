// Trainings that the lab's server runs for a page: as many at a time as were asked for, their steps in turn. One lives as
// long as somebody listens to it: a page that is closed trains no more.

import { availableParallelism } from "node:os";
import { setImmediate } from "node:timers/promises";
import { onnxRuntimeBackend } from "../engine/index.ts";
import {
  LiveTraining,
  type TrainingAsk,
  type TrainingData,
  type TrainingQuestion,
  type TrainingWord,
  trainingAsks,
} from "../evaluation/live-training.ts";
import { isRecord } from "../evaluation/run-folder/json.ts";
import { type TaskName, type TrainingRecipe, taskNames, trainingRecipe } from "../training/index.ts";
import { expectKeys } from "./api.ts";

/** Small models have no work for more. */
const mostThreads = 4;

/** A word as it is sent: bytes in base64. */
export type SentWord =
  | Exclude<TrainingWord, { readonly kind: "model" }>
  | { readonly kind: "model"; readonly files: readonly (readonly [string, string])[] };

export class TrainingJob {
  readonly id: string = crypto.randomUUID();
  readonly #training: LiveTraining;
  readonly #said: SentWord[] = [];
  #left = false;
  #wake: () => void = () => undefined;
  #finished: Promise<void> = Promise.resolve();

  /** @throws RangeError for a text or a task that the recipe cannot be trained on */
  constructor(question: TrainingQuestion) {
    // Threads that wait by spinning would take the processor from the other trainings, whose steps come in between.
    const sessionOptions = { extra: { session: { intra_op: { allow_spinning: "0" } } } };
    this.#training = new LiveTraining(question, {
      backend: onnxRuntimeBackend({ provider: "node", sessionOptions }),
      threads: Math.min(mostThreads, availableParallelism()),
      onWord: (word) => this.#say(sent(word)),
      // A step blocks the thread that answers requests.
      pause: () => setImmediate(),
    });
  }

  start(): void {
    this.#finished = this.#training.start();
  }
  ask(ask: TrainingAsk): Promise<void> {
    return this.#training.ask(ask);
  }

  /** What is said, until nobody listens any more. */
  async *words(): AsyncGenerator<SentWord> {
    while (!this.#left) {
      const next = this.#said.shift();
      if (next !== undefined) yield next;
      else {
        await new Promise<void>((done) => {
          this.#wake = done;
        });
      }
    }
  }

  /** Ends it before the next step. */
  async close(): Promise<void> {
    this.#left = true;
    this.#wake();
    await this.#training.ask("stop");
    await this.#finished;
  }

  #say(word: SentWord): void {
    if (this.#left) return;
    this.#said.push(word);
    this.#wake();
  }
}

export class TrainingJobs {
  readonly #jobs = new Map<string, TrainingJob>();

  get(id: string): TrainingJob | null {
    return this.#jobs.get(id) ?? null;
  }
  /** @throws RangeError for a text or a task that the recipe cannot be trained on */
  start(question: TrainingQuestion): TrainingJob {
    const job = new TrainingJob(question);
    this.#jobs.set(job.id, job);
    job.start();
    return job;
  }
  async end(job: TrainingJob): Promise<void> {
    this.#jobs.delete(job.id);
    await job.close();
  }
  async close(): Promise<void> {
    await Promise.all([...this.#jobs.values()].map((job) => this.end(job)));
  }
}

function sent(word: TrainingWord): SentWord {
  if (word.kind !== "model") return word;
  return { kind: "model", files: word.files.map(([name, bytes]) => [name, Buffer.from(bytes).toString("base64")]) };
}

/**
 * A question from a page: { recipe, held, task, sizes } or { recipe, held } beside a text's two parts.
 *
 * @throws RangeError naming what is missing or of another type
 */
export function trainingQuestion(
  value: unknown,
  text: { readonly train: Uint8Array; readonly validation: Uint8Array } | null,
): TrainingQuestion {
  expectKeys("train", value, ["recipe", "held", "task", "sizes"]);
  const { recipe, held, task, sizes } = value;
  if (!isRecord(recipe)) throw new RangeError("train: expected a recipe, got none");
  if (typeof held !== "boolean") throw new RangeError("train: expected held as true or false, got something else");
  return { recipe: checkedRecipe(recipe), data: dataOf(text, task, sizes), held };
}

function dataOf(
  text: { readonly train: Uint8Array; readonly validation: Uint8Array } | null,
  task: unknown,
  sizes: unknown,
): TrainingData {
  if (text !== null) {
    if (task !== undefined || sizes !== undefined) throw new RangeError("train: expected a text or a task, got both");
    return { kind: "text", ...text };
  }
  if (!(taskNames as readonly unknown[]).includes(task)) {
    throw new RangeError(
      `train: expected a text, or a task of ${taskNames.join(", ")}, got ${JSON.stringify(task) ?? "none"}`,
    );
  }
  const isSizes = Array.isArray(sizes) && sizes.length === 2 && sizes.every((size) => Number.isSafeInteger(size));
  if (!isSizes) throw new RangeError("train: expected sizes as two integers, got something else");
  return { kind: "task", task: task as TaskName, sizes: sizes as unknown as readonly [number, number] };
}

/** Tokens of a step, a model's widest layer and its depth: what a page may ask for at most. */
const most = { batchSize: 4096, length: 65_536, hiddenSize: 4096, numLayers: 128, intermediateSize: 32_768 } as const;

function checkedRecipe(value: Readonly<Record<string, unknown>>): TrainingRecipe {
  const { encoding } = value;
  if (!Array.isArray(encoding)) throw new RangeError("train: expected encoding as a list of names, got something else");
  const recipe = trainingRecipe(value as unknown as TrainingRecipe);
  for (const [key, limit] of Object.entries(most) as [keyof typeof most, number][]) {
    if (recipe[key] > limit) throw new RangeError(`train: expected ${key} of at most ${limit}, got ${recipe[key]}`);
  }
  return recipe;
}

/** @throws RangeError for what is none */
export function trainingAsk(value: unknown): TrainingAsk {
  const ask = isRecord(value) ? value.ask : undefined;
  if ((trainingAsks as readonly unknown[]).includes(ask)) return ask as TrainingAsk;
  throw new RangeError(
    `train: expected ask as one of ${trainingAsks.join(", ")}, got ${JSON.stringify(ask) ?? "none"}`,
  );
}
