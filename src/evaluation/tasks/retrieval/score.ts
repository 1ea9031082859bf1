// What a model makes of a sample: without generating, by the log-probability of the right answers and of wrong ones.
//
// exact: the share of the answers whose every token is the likeliest when the ones before are given (teacher forcing).
// Where the order is free, any answer that is left counts, and the likeliest of them is what the next one follows.
// rank: 1 + the wrong answers that are likelier than the (likeliest) right one, at the first place.

import type { RunOptions } from "../../../engine/index.ts";
import type { ScoringModel } from "../../model.ts";
import type { EvaluationStrategy } from "../../strategies/strategy.ts";
import type { Answer, RetrievalSample } from "./sample.ts";

export interface RetrievalScore {
  /** 0 … 1. */
  readonly exact: number;
  /** ln p of the first answer that was given, nats. */
  readonly logLikelihood: number;
  /** 1 is best. */
  readonly rank: number;
  /** Right and wrong answers that were compared for the rank: the rank of chance is (candidates + 1) / 2. */
  readonly candidates: number;
  /** With `greedy`: the share of the answers that the model's own text contains, and the text's tokens. */
  readonly greedy?: { readonly contained: number; readonly tokens: readonly number[]; readonly text: string };
}

export interface RetrievalOptions extends RunOptions {
  /** At the head of what the windowed baseline sees; null: none. */
  readonly bos: number | null;
  /** Also generates, greedily: its tokens as text. */
  readonly greedy?: { decode(tokens: readonly number[]): string; readonly stop?: readonly number[] };
}

/**
 * Scores a sample. Under the reading "windowed" the model sees the last `window` tokens. Under "growing" the table is that
 * of the prompt with the answer, as it is under "whole": within an answer's few tokens they do not differ.
 *
 * @throws RangeError where `greedy` is asked of a model that only scores
 */
export async function scoreRetrieval(
  model: ScoringModel,
  sample: RetrievalSample,
  strategy: EvaluationStrategy,
  options: RetrievalOptions,
): Promise<RetrievalScore> {
  const { bos, greedy, ...run } = options;
  const { reading, encoding } = strategy;
  const seen = (context: readonly number[], room: number): readonly number[] => {
    const window = reading.kind === "windowed" ? reading.window - room : Number.POSITIVE_INFINITY;
    if (context.length <= window) return context;
    return bos === null ? context.slice(-window) : [bos, ...context.slice(context.length - window + 1)];
  };
  // One table for all answers, and so one pass over the prompt: that of the whole sample.
  const length = reading.kind === "windowed" ? {} : { length: sample.length };
  const ask = (context: readonly number[], tokens: readonly number[]) =>
    model.loglikelihood(seen(context, tokens.length), tokens, { ...encoding, ...length, ...run });

  let context = sample.prompt;
  let hits = 0;
  let first: { logLikelihood: number; rank: number; candidates: number } | undefined;
  const left = [...sample.answers];
  while (left.length > 0) {
    const tokensOf = (one: Answer): readonly number[] => (first === undefined ? one.first : one.later);
    const choices = sample.ordered ? left.slice(0, 1) : left;
    let best = { at: 0, logLikelihood: Number.NEGATIVE_INFINITY };
    let hit = false;
    for (const [at, one] of choices.entries()) {
      const { logLikelihood, isGreedy } = await ask(context, tokensOf(one));
      hit ||= isGreedy;
      // What the model would say itself is what it goes on from.
      if (isGreedy || (logLikelihood > best.logLikelihood && !hit)) best = { at, logLikelihood };
    }
    if (hit) hits++;
    const tokens = tokensOf(left[best.at]!);
    if (first === undefined) {
      let rank = 1;
      for (const one of sample.distractors) {
        if ((await ask(context, one.first)).logLikelihood > best.logLikelihood) rank++;
      }
      first = { logLikelihood: best.logLikelihood, rank, candidates: sample.distractors.length + 1 };
    }
    context = [...context, ...tokens];
    left.splice(best.at, 1);
  }
  const score = { exact: hits / sample.answers.length, ...first! };
  if (greedy === undefined) return score;
  if (model.generate === undefined)
    throw new RangeError("greedy: expected a model that generates, got one that scores");
  const room = sample.answers.reduce((sum, { later }) => sum + later.length, 8);
  const tokens: number[] = [];
  for await (const { token } of model.generate(seen(sample.prompt, room), {
    ...encoding,
    ...run,
    maxTokens: room,
    ...(greedy.stop === undefined ? {} : { stop: greedy.stop }),
  })) {
    tokens.push(token);
  }
  const text = greedy.decode(tokens);
  const contained = sample.answers.filter((one) => text.includes(one.text)).length / sample.answers.length;
  return { ...score, greedy: { contained, tokens, text } };
}
