// A model in training: the session of its step, and what is fed to it. A checkpoint holds everything that a step
// depends on, so that a resumed run goes on bit for bit (on the same machine and thread count).

import type { PositionEncoding } from "../encodings/index.ts";
import type { Backend, Session } from "../engine/index.ts";
import { scalar, type Tensor, tensor } from "../tensor/index.ts";
import type { Batch } from "./data.ts";
import { isLearned, positionFeeds, type TrainingEncoding } from "./encodings.ts";
import { initialWeights, type ParameterLayout, packWeights, unpackWeights } from "./parameters.ts";
import { lossProgram, modelLayout, type StepOptions, stepProgram, weightsState } from "./program.ts";

export interface TrainerOptions extends StepOptions {
  readonly backend: Backend;
  /** Of the initial weights. 0 when absent. */
  readonly seed?: number;
  /** Weights to begin with instead, at step 0 and with a fresh optimiser: a fine-tuning. */
  readonly weights?: ReadonlyMap<string, Tensor>;
  readonly threads?: number;
  /** Where to go on from; counts more than seed and weights. */
  readonly checkpoint?: TrainingCheckpoint;
}

/** Everything that the next step depends on, besides the options. */
export interface TrainingCheckpoint {
  /** Steps done. */
  readonly step: number;
  readonly weights: ReadonlyMap<string, Tensor>;
  /** States of the optimiser by name. */
  readonly optimizer: ReadonlyMap<string, Tensor>;
}

export interface StepResult {
  /** The step that was done, from 0. */
  readonly step: number;
  /** Mean loss of the batch in nats, before the update. */
  readonly loss: number;
  /** What else the optimiser reports: gradientNorm of clipByGlobalNorm. */
  readonly reports: Readonly<Record<string, number>>;
}

/** What a model says of a batch's targets, [B, T]. */
export interface Scores {
  /** In nats, 0 where a target does not count. */
  readonly losses: Tensor<"f32">;
  /** Whether greedy decoding gives the target, false where it does not count. */
  readonly correct: Tensor<"bool">;
}

export class Trainer implements AsyncDisposable {
  readonly layout: ParameterLayout;
  readonly options: TrainerOptions;
  readonly #session: Session;
  #step: number;
  #encodings: readonly TrainingEncoding[];
  #positions: Readonly<Record<string, Tensor>>;
  readonly #evaluators = new Map<string, Promise<Session>>();

  private constructor(options: TrainerOptions, layout: ParameterLayout, session: Session) {
    this.options = options;
    this.layout = layout;
    this.#session = session;
    this.#step = options.checkpoint?.step ?? 0;
    this.#encodings = options.encodings;
    this.#positions = this.#feeds(options.encodings, options.length);
  }

  /**
   * Builds the program, loads it and fills in the weights.
   *
   * @throws RangeError for encodings that do not fit the spec, or a checkpoint of another model
   */
  static async create(options: TrainerOptions): Promise<Trainer> {
    const layout = modelLayout(options);
    const { backend, checkpoint, threads } = options;
    const session = await backend.load(stepProgram(options, layout), {}, threads === undefined ? {} : { threads });
    const given = checkpoint?.weights ?? options.weights;
    const weights = given === undefined ? initialWeights(layout, options.seed ?? 0) : packWeights(layout, given);
    await session.writeState(weightsState, tensor("f32", [layout.size], weights) as Tensor);
    const names = session.graph.states.map(({ name }) => name).filter((name) => name !== weightsState);
    if (checkpoint !== undefined) {
      for (const name of names) {
        const state = checkpoint.optimizer.get(name);
        if (state === undefined) {
          throw new RangeError(`training: expected a checkpoint with the optimiser's ${name}, got none`);
        }
        await session.writeState(name, state);
      }
    }
    return new Trainer(options, layout, session);
  }

  /** Steps done. */
  get step(): number {
    return this.#step;
  }

  /** What the layers are trained with now. */
  get encodings(): readonly TrainingEncoding[] {
    return this.#encodings;
  }

  /** One update. Throws RangeError when the loss is not a number any more; the weights are then lost. */
  async update(batch: Batch): Promise<StepResult> {
    const step = this.#step;
    const scalars = Object.entries(this.options.optimizer.scalars(step)).map(
      ([name, value]) => [`optimizer.${name}`, scalar("f32", value)] as const,
    );
    const outputs = await this.#session.run({
      tokens: batch.tokens,
      targets: batch.targets,
      ...this.#positions,
      ...Object.fromEntries(scalars),
    });
    this.#step++;
    const { loss, ...rest } = Object.fromEntries(
      Object.entries(outputs).map(([name, value]) => [name, (value.data as Float32Array)[0]!]),
    );
    if (!Number.isFinite(loss)) {
      throw new RangeError(`training: expected a finite loss, got ${loss} at step ${step}; lower the learning rate`);
    }
    return { step, loss: loss!, reports: rest };
  }

  /**
   * The loss of every token, [B, T], 0 where the target does not count: at any batch size and length.
   *
   * @param encodings other encodings than those in training (a rotation under another scaling), one a group
   */
  async losses(batch: Batch, encodings: readonly TrainingEncoding[] = this.#encodings): Promise<Tensor<"f32">> {
    return (await this.scores(batch, encodings)).losses;
  }

  /** The loss of every token, and whether it is what the model would have said: see `losses`. */
  async scores(batch: Batch, encodings: readonly TrainingEncoding[] = this.#encodings): Promise<Scores> {
    const [batchSize, length] = batch.tokens.shape as [number, number];
    const key = `${batchSize}×${length}`;
    let session = this.#evaluators.get(key);
    if (session === undefined) {
      const { backend, threads } = this.options;
      const graph = lossProgram({ ...this.options, batchSize, length }, this.layout);
      session = backend.load(graph, {}, threads === undefined ? {} : { threads });
      this.#evaluators.set(key, session);
    }
    const weights = await this.#session.readState(weightsState);
    const { losses, correct } = await (await session).run({
      tokens: batch.tokens,
      targets: batch.targets,
      weights,
      ...this.#feeds(encodings, length),
    });
    return { losses: losses as Tensor<"f32">, correct: correct as Tensor<"bool"> };
  }

  /**
   * Trains on with other encodings at the same sites: another rotary scaling, or none, which is the rotation by nothing
   * (DroPE, Gelberg et al. 2025, 2512.12167). Learned encodings stay as they are.
   *
   * @throws RangeError when they do not fit what the program was built with
   */
  setEncodings(encodings: readonly TrainingEncoding[]): void {
    this.#positions = this.#feeds(encodings, this.options.length);
    this.#encodings = encodings;
  }

  #feeds(encodings: readonly TrainingEncoding[], length: number): Record<string, Tensor> {
    const { spec, encodings: built } = this.options;
    if (encodings.length !== built.length) {
      throw new RangeError(`training: expected ${built.length} encodings, got ${encodings.length}`);
    }
    const out: Record<string, Tensor> = {};
    built.forEach((own, group) => {
      const given = encodings[group]!;
      if (isLearned(own) || isLearned(given)) {
        if (own !== given) throw new RangeError("training: expected a learned encoding to stay, got another one");
        return;
      }
      const { numHeads } = spec.layers.find((layer) => layer.group === group)!.attention;
      const sizes = { length, hiddenSize: spec.hiddenSize, numHeads };
      Object.assign(out, positionFeeds(given satisfies PositionEncoding, own, group, sizes));
    });
    return out;
  }

  /** Copies of the weights, by name. */
  async weights(): Promise<Map<string, Tensor<"f32">>> {
    const vector = await this.#session.readState(weightsState);
    return unpackWeights(this.layout, vector.data as Float32Array);
  }

  /** Everything that the next step depends on. */
  async checkpoint(): Promise<TrainingCheckpoint> {
    const optimizer = new Map<string, Tensor>();
    for (const { name } of this.#session.graph.states) {
      if (name !== weightsState) optimizer.set(name, await this.#session.readState(name));
    }
    return { step: this.#step, weights: await this.weights(), optimizer };
  }

  async dispose(): Promise<void> {
    await this.#session.dispose();
    for (const session of this.#evaluators.values()) await (await session).dispose();
    this.#evaluators.clear();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }
}
