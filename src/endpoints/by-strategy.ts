// Servers that each run one strategy, as one model that runs them all: a call goes to the server that was started with what
// it asks for. So a comparison puts the same windows to each.

import type { EncodingOptions, LogLikelihood, ScoreOptions } from "../engine/index.ts";
import { type EndpointModel, encodingKey } from "./endpoint-model.ts";

export class EndpointsByStrategy {
  readonly models: readonly EndpointModel[];
  /** Requests that can be under way at once, on the slowest of the servers. */
  readonly concurrency: number;
  readonly #byKey: ReadonlyMap<string, EndpointModel>;

  /** @throws RangeError for two models of one strategy: their addresses belong into one `openEndpoint` */
  constructor(models: readonly EndpointModel[]) {
    this.models = models;
    this.concurrency = Math.min(...models.map(({ concurrency }) => concurrency));
    this.#byKey = new Map(models.map((model) => [encodingKey(model.encoding), model]));
    if (this.#byKey.size !== models.length || models.length === 0) {
      throw new RangeError(
        `endpoints: expected one model a strategy, got ${models.length} models of ${this.#byKey.size} strategies`,
      );
    }
  }

  score(
    tokens: ArrayLike<number>,
    options: ScoreOptions = {},
  ): Promise<{ readonly negativeLogLikelihood: Float64Array }> {
    return this.#of(options).score(tokens, options);
  }

  loglikelihood(
    context: ArrayLike<number>,
    continuation: ArrayLike<number>,
    options: ScoreOptions = {},
  ): Promise<LogLikelihood> {
    return this.#of(options).loglikelihood(context, continuation, options);
  }

  generate(
    prompt: ArrayLike<number>,
    options: ScoreOptions & { readonly maxTokens?: number; readonly stop?: readonly number[] } = {},
  ): AsyncGenerator<{ readonly token: number }, void> {
    return this.#of(options).generate(prompt, options);
  }

  /** Nothing is held: so it stands where a loaded model does. */
  async [Symbol.asyncDispose](): Promise<void> {}

  #of(options: EncodingOptions): EndpointModel {
    const found = this.#byKey.get(encodingKey(options));
    if (found !== undefined) return found;
    throw new RangeError(
      `endpoints: expected one of the strategies that servers run, ${[...this.#byKey.keys()].join(", ")}, got ` +
        encodingKey(options),
    );
  }
}
