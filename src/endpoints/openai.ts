// OpenAI's older interface: POST /v1/completions with echo and logprobs, of which entry i is token i of the prompt, the
// first without a number, and those that were generated behind it. Tokens are named by their text, so what shows that the
// prompt was read as it was sent is the count. Servers that take echo and ignore it are refused.

import { isJsonObject, type JsonValue } from "../formats/bytes/index.ts";
import { expectCount, firstChoice, listAt, lossOf, objectAt, type TokenScores, unexpected } from "./answer.ts";
import { type Engine, oneRequest, type ScoreRequest } from "./engine.ts";
import { modelFacts } from "./models-route.ts";
import type { WireRequest } from "./wire.ts";

export const openai: Engine = {
  name: "openai",
  title: "a server with OpenAI's echo",
  prompts: "ids",
  score: oneRequest(echoRequest, readEchoScores),
  generate: null,
  tokenize: null,
  facts: async (ask, model) => {
    const { max_model_len } = await modelFacts(ask, model);
    return { version: null, contextLength: typeof max_model_len === "number" ? max_model_len : null };
  },
  lengthFlag: (length) => `a context of ${length} tokens`,
};

export function echoRequest({ tokens, model }: Pick<ScoreRequest, "model"> & { tokens: JsonValue }): WireRequest {
  return {
    path: "/v1/completions",
    // Not every server takes max_tokens 0.
    body: { model, prompt: tokens, echo: true, logprobs: 1, max_tokens: 1, temperature: 0 },
  };
}

export function readEchoScores(answer: JsonValue, { tokens, from }: ScoreRequest, engine = "openai"): TokenScores {
  const { usage } = objectAt(answer, engine);
  if (isJsonObject(usage)) expectCount(usage.prompt_tokens, tokens.length, engine);
  const { logprobs, own, likeliest } = echoed(answer, engine);
  const generated = isJsonObject(usage) && typeof usage.completion_tokens === "number" ? usage.completion_tokens : 1;
  if (logprobs < tokens.length) {
    throw unexpected(`${engine}: token_logprobs`, `${tokens.length} entries of the prompt`, logprobs);
  }
  expectCount(logprobs - generated, tokens.length, engine);
  if (own[0] !== null) throw unexpected(`${engine}: token_logprobs[0]`, "null, as the first token has none", own[0]);
  const losses = new Float64Array(tokens.length - from);
  const greedy = new Uint8Array(losses.length);
  for (let i = from; i < tokens.length; i++) {
    losses[i - from] = lossOf(own[i], i, engine);
    greedy[i - from] = -losses[i - from]! >= likeliest(i) ? 1 : 0;
  }
  return { losses, greedy };
}

/** The entries of an echo, whatever their number. */
export function echoed(
  answer: JsonValue,
  engine: string,
): { logprobs: number; own: readonly JsonValue[]; likeliest(i: number): number; tokens: readonly JsonValue[] } {
  const { logprobs } = firstChoice(answer, engine);
  if (!isJsonObject(logprobs) || logprobs.token_logprobs === undefined) {
    const chat = isJsonObject(logprobs) && logprobs.content !== undefined;
    throw unexpected(
      `${engine}: logprobs`,
      "token_logprobs of the prompt, as echo asks for",
      chat ? "content[], those of generated tokens alone: the server ignores echo" : (logprobs as JsonValue),
    );
  }
  const own = listAt(logprobs.token_logprobs, `${engine}: token_logprobs`);
  const top = listAt(logprobs.top_logprobs, `${engine}: top_logprobs`);
  const tokens = listAt(logprobs.tokens, `${engine}: tokens`);
  return {
    logprobs: own.length,
    own,
    tokens,
    likeliest: (i) => {
      const entries = top[i];
      if (!isJsonObject(entries)) return Number.POSITIVE_INFINITY;
      return Object.values(entries).reduce<number>(
        (best, x) => (typeof x === "number" ? Math.max(best, x) : best),
        Number.NEGATIVE_INFINITY,
      );
    },
  };
}
