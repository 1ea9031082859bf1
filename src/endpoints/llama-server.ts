// llama.cpp's llama-server. It gives no log-probabilities of a prompt (it takes echo and ignores it, llama.cpp issue 27174),
// so a text's losses in one pass cannot be had of it. What can: the token that comes next may be forced by a bias, and
// its log-probability is then given before the bias. With the prompt in the slot's cache that costs one decoding step a
// token, which is fine for an answer of a few.

import { isJsonObject, type JsonValue } from "../formats/bytes/index.ts";
import { expectCount, listAt, lossOf, objectAt, tokensAt, unexpected } from "./answer.ts";
import { EndpointError } from "./endpoint-error.ts";
import type { Ask, Engine, ScoreRequest } from "./engine.ts";
import { modelFacts } from "./models-route.ts";
import type { WireRequest } from "./wire.ts";

const name = "llama-server";

export const llamaServer: Engine = {
  name,
  title: "llama.cpp's llama-server",
  prompts: "ids",
  score:
    "llama-server gives log-probabilities of generated tokens alone (it ignores echo: llama.cpp issue 27174). Needles " +
    "work; for losses use --token-by-token, which costs a request a token, vLLM, SGLang, llama-cpp-python's server with " +
    "--logits_all true, or the file itself without --endpoint",
  scoreEach: async (ask, asked) => {
    const { tokens, from } = asked;
    const losses = new Float64Array(tokens.length - from);
    const greedy = new Uint8Array(losses.length);
    for (let i = from; i < tokens.length; i++) {
      const forced = readForced(await ask(forcedRequest(tokens, i)), tokens, i);
      losses[i - from] = forced.loss;
      greedy[i - from] = forced.isGreedy ? 1 : 0;
    }
    return { losses, greedy };
  },
  generate: async (ask, { prompt, maxTokens }) => {
    const answer = await ask({
      path: "/completion",
      body: { prompt, n_predict: maxTokens, temperature: 0, return_tokens: true, cache_prompt: true },
    });
    return tokensAt(complete(answer, prompt.length).tokens, `${name}: tokens`);
  },
  tokenize: async (ask, text) => {
    const body = { content: text, add_special: false, parse_special: false };
    return tokensAt(objectAt(await ask({ path: "/tokenize", body }), name).tokens, `${name}: /tokenize`);
  },
  facts: async (ask, model) => {
    const props = objectAt(await ask({ path: "/props" }), `${name}: /props`);
    const settings = props.default_generation_settings;
    // Of a slot: what -c was given, shared among the slots.
    const ofSlot = isJsonObject(settings) ? settings.n_ctx : undefined;
    const { meta } = await modelFacts(ask, model);
    const length = [ofSlot, isJsonObject(meta) ? meta.n_ctx : undefined].find((n) => typeof n === "number");
    return {
      version: typeof props.build_info === "string" ? props.build_info : null,
      contextLength: (length as number | undefined) ?? null,
    };
  },
  lengthFlag: (length) =>
    `-c ${length} -np 1 (it caps a slot at the model's own length unless a --rope-scaling is given)`,
};

/** Token `at` after those before it. */
export function forcedRequest(tokens: readonly number[], at: number): WireRequest {
  return {
    path: "/completion",
    body: {
      prompt: tokens.slice(0, at),
      n_predict: 1,
      n_probs: 1,
      temperature: 0,
      logit_bias: [[tokens[at]!, 1e6]],
      post_sampling_probs: false,
      return_tokens: true,
      cache_prompt: true,
    },
  };
}

export function readForced(
  answer: JsonValue,
  tokens: ScoreRequest["tokens"],
  at: number,
): { readonly loss: number; readonly isGreedy: boolean } {
  const said = complete(answer, at);
  if (said.completion_probabilities === undefined || said.completion_probabilities === null) {
    throw unexpected(`${name}: completion_probabilities`, "a list", said.completion_probabilities);
  }
  const [entry] = listAt(said.completion_probabilities, `${name}: completion_probabilities`);
  const own = objectAt(entry, `${name}: completion_probabilities[0]`);
  if (own.id !== tokens[at]) {
    throw unexpected(`${name}: completion_probabilities[0].id`, `${tokens[at]}, which was forced`, own.id);
  }
  const loss = lossOf(own.logprob, at, name);
  const [best] = listAt(own.top_logprobs, `${name}: top_logprobs`);
  return { loss, isGreedy: objectAt(best, `${name}: top_logprobs[0]`).id === own.id };
}

function complete(answer: JsonValue, prompt: number): Readonly<Record<string, JsonValue>> {
  const said = objectAt(answer, name);
  if (said.truncated === true) {
    throw new EndpointError(`${name}: expected the whole prompt of ${prompt} tokens to be read, got a truncated one`);
  }
  expectCount(said.tokens_evaluated, prompt, name);
  return said;
}

/** Whether a server takes echo and gives generated tokens alone: what tells it from one that scores. */
export type EchoAnswer = "prompt" | "generated" | "none";

export async function echoAnswer(ask: Ask, model: string): Promise<EchoAnswer> {
  const answer = await ask({
    path: "/v1/completions",
    body: { model, prompt: [1, 2, 3], echo: true, logprobs: 1, max_tokens: 1, temperature: 0 },
  });
  const choices = objectAt(answer, name).choices;
  const choice = Array.isArray(choices) ? (choices as readonly JsonValue[])[0] : undefined;
  const logprobs = isJsonObject(choice) ? choice.logprobs : undefined;
  if (!isJsonObject(logprobs)) return "none";
  return Array.isArray(logprobs.token_logprobs) ? "prompt" : "generated";
}
