// A run in somebody's hand: held, taken a step at a time, dropped, ended, and asked for its model, all between two steps.
// What it trains is always a recipe's run: after a drop at step s the same one with dropAt = s.

import { type TrainingRecipe, trainingRecipe } from "./recipe.ts";
import { type RunCheckpoint, type RunOptions, runRecipe } from "./run.ts";

export interface LiveRunOptions extends Omit<RunOptions, "signal"> {
  /** Waits before its first step. false when absent. */
  readonly held?: boolean;
  /** Its state changed: something was asked of it, or it ended. */
  readonly onChange?: (run: LiveRun) => void;
}

/** What a run was stopped with, and what it was then. */
export interface LiveCheckpoint {
  /** With the drop that was made. */
  readonly recipe: TrainingRecipe;
  readonly checkpoint: RunCheckpoint;
}

/**
 * Trains a recipe under control. `start` trains; every other method may be called at any time and takes effect before the
 * next step.
 *
 * @example
 * ```ts
 * import { referenceBackend } from "longhand/engine";
 * import { LiveRun, tokenBatches, trainingRecipe } from "longhand/training";
 * const sizes = { hiddenSize: 8, numLayers: 1, numHeads: 2, intermediateSize: 8, length: 4, batchSize: 1, steps: 3 };
 * const recipe = trainingRecipe({ encoding: ["rope"], ...sizes });
 * const data = tokenBatches(new Uint8Array(64), recipe);
 * const run = new LiveRun({ recipe, data, backend: referenceBackend, held: true });
 * run.drop();
 * run.resume();
 * const end = await run.start();
 * [end.recipe.dropAt, end.checkpoint.step]; // => [0, 3]
 * ```
 */
export class LiveRun {
  readonly #options: LiveRunOptions;
  #recipe: TrainingRecipe;
  #step: number;
  #held: boolean;
  #stopped = false;
  #dropped = false;
  /** Steps to take although held. */
  #granted = 0;
  #ended: LiveCheckpoint | undefined;
  #wake: () => void = () => undefined;
  readonly #asked: ((found: LiveCheckpoint) => void)[] = [];

  constructor(options: LiveRunOptions) {
    this.#options = options;
    this.#recipe = options.recipe;
    this.#step = options.checkpoint?.step ?? 0;
    this.#held = options.held ?? false;
  }

  /** The recipe that has led here: the options', with the drop that was made. */
  get recipe(): TrainingRecipe {
    return this.#recipe;
  }
  /** Steps done. */
  get step(): number {
    return this.#step;
  }
  get held(): boolean {
    return this.#held;
  }
  /** Nothing will be trained any more. */
  get ended(): boolean {
    return this.#ended !== undefined;
  }

  hold(): void {
    this.#set(() => {
      this.#held = true;
      this.#granted = 0;
    });
  }
  resume(): void {
    this.#set(() => {
      this.#held = false;
    });
  }
  /** Takes one step and holds then. */
  takeStep(): void {
    this.#set(() => {
      this.#granted = this.#held ? this.#granted + 1 : 1;
      this.#held = true;
    });
  }
  /**
   * Removes the position encoding before the next step (DroPE, 2512.12167). Rows from then on, and the model, are those of
   * the recipe with `dropAt` there. Twice is once.
   *
   * @throws RangeError for an encoding whose numbers are trained
   */
  drop(): void {
    trainingRecipe({ ...this.#recipe, dropAt: this.#step });
    this.#set(() => {
      this.#dropped = this.#recipe.dropAt === null || this.#recipe.dropAt > this.#step;
    });
  }
  /** Ends the run before the next step. */
  stop(): void {
    this.#set(() => {
      this.#stopped = true;
    });
  }

  /** The model and everything beside it, at the next moment between two steps. */
  capture(): Promise<LiveCheckpoint> {
    if (this.#ended !== undefined) return Promise.resolve(this.#ended);
    return new Promise((done) => {
      this.#asked.push(done);
      this.#wake();
    });
  }

  /** Trains to the end of the recipe, or until `stop`; errors are those of runRecipe. Once. */
  async start(): Promise<LiveCheckpoint> {
    const { held: _, onChange, beforeStep, onStep, ...options } = this.#options;
    let { checkpoint } = options;
    for (let finished = false; !finished && !this.#stopped; ) {
      const leave = new AbortController();
      const result = await runRecipe({
        ...options,
        recipe: this.#recipe,
        signal: leave.signal,
        ...(checkpoint === undefined ? {} : { checkpoint }),
        beforeStep: async (step, capture) => {
          await this.#turn(capture);
          if (this.#stopped || this.#dropped) leave.abort();
          else await beforeStep?.(step, capture);
        },
        onStep: async (progress, capture) => {
          this.#step = progress.step;
          await onStep?.(progress, capture);
        },
        // What a drop does at once.
        ...(this.#recipe.dropAt === this.#step ? { validateFirst: true } : {}),
      });
      ({ checkpoint, finished } = result);
      if (this.#dropped && !finished) this.#recipe = { ...this.#recipe, dropAt: this.#step };
      this.#dropped = false;
    }
    this.#ended = { recipe: this.#recipe, checkpoint: checkpoint! };
    for (const answer of this.#asked.splice(0)) answer(this.#ended);
    onChange?.(this);
    return this.#ended;
  }

  /** Waits until the next step may be taken; answers who asks meanwhile. A drop shows at once, though the run stays held. */
  async #turn(capture: () => Promise<RunCheckpoint>): Promise<void> {
    for (;;) {
      if (this.#stopped || this.#dropped) return;
      if (this.#granted > 0) {
        this.#granted--;
        return;
      }
      if (this.#asked.length > 0) {
        const found = { recipe: this.#recipe, checkpoint: await capture() };
        for (const answer of this.#asked.splice(0)) answer(found);
        continue;
      }
      if (!this.#held) return;
      await new Promise<void>((resume) => {
        this.#wake = resume;
      });
    }
  }

  #set(change: () => void): void {
    if (this.#ended !== undefined) return;
    change();
    this.#options.onChange?.(this);
    this.#wake();
  }
}
