// What evaluation asks of a model: losses of tokens, the likelihood of an answer, and text where it can generate. The
// engine's LanguageModel is one; another engine behind HTTP is one when it gives the log-probabilities of a prompt.

import type { LogLikelihood, ScoreOptions } from "../engine/index.ts";

export interface ScoringModel {
  /** Index i: the loss of token i + 1 given tokens 0 … i, in nats. */
  score(
    tokens: ArrayLike<number>,
    options?: ScoreOptions,
  ): Promise<{ readonly negativeLogLikelihood: ArrayLike<number> }>;
  /** ln p of a continuation after a context, and whether each of its tokens is the likeliest. */
  loglikelihood(
    context: ArrayLike<number>,
    continuation: ArrayLike<number>,
    options?: ScoreOptions,
  ): Promise<LogLikelihood>;
  /** Greedy tokens after a prompt. Absent where the engine only scores. */
  generate?(
    prompt: ArrayLike<number>,
    options?: ScoreOptions & { readonly maxTokens?: number; readonly stop?: readonly number[] },
  ): AsyncIterable<{ readonly token: number }>;
}
