// vLLM: POST /v1/completions with prompt_logprobs. Read from vLLM's entrypoints/openai/completion (protocol.py,
// serving.py). Its answer's keys are token ids, and JavaScript sorts such keys: a position is looked up by the id that was
// sent, never by its first key.

import { isJsonObject, type JsonObject, type JsonValue } from "../formats/bytes/index.ts";
import {
  expectCount,
  expectSameTokens,
  firstChoice,
  listAt,
  lossOf,
  objectAt,
  type TokenScores,
  tokensAt,
  unexpected,
} from "./answer.ts";
import { type Engine, oneRequest, type ScoreRequest } from "./engine.ts";
import { modelFacts } from "./models-route.ts";
import type { WireRequest } from "./wire.ts";

export const vllm: Engine = {
  name: "vllm",
  title: "vLLM",
  prompts: "ids",
  score: oneRequest(vllmScoreRequest, readVllmScores),
  generate: async (ask, { prompt, maxTokens, stop, model }) => {
    const answer = await ask({
      path: "/v1/completions",
      body: {
        model,
        prompt,
        max_tokens: maxTokens,
        temperature: 0,
        add_special_tokens: false,
        return_token_ids: true,
        stop_token_ids: stop,
      },
    });
    const choice = firstChoice(answer, "vllm");
    if (choice.prompt_token_ids !== undefined && choice.prompt_token_ids !== null) {
      expectSameTokens(tokensAt(choice.prompt_token_ids, "vllm: prompt_token_ids"), prompt, "vllm");
    }
    return tokensAt(choice.token_ids, "vllm: token_ids");
  },
  tokenize: async (ask, text, model) => {
    const answer = await ask({ path: "/tokenize", body: { model, prompt: text, add_special_tokens: false } });
    return tokensAt(objectAt(answer, "vllm: /tokenize").tokens, "vllm: /tokenize");
  },
  facts: async (ask, model) => {
    const { version } = objectAt(await ask({ path: "/version" }), "vllm: /version");
    const { max_model_len } = await modelFacts(ask, model);
    return {
      version: typeof version === "string" ? version : null,
      contextLength: typeof max_model_len === "number" ? max_model_len : null,
    };
  },
  lengthFlag: (length) =>
    `--max-model-len ${length} (with VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 where that is above the configuration's own)`,
};

/** 0: the prompt's own token alone at each position. Its rank says whether it is the likeliest. */
export function vllmScoreRequest({ tokens, model }: ScoreRequest): WireRequest {
  return {
    path: "/v1/completions",
    body: {
      model,
      prompt: tokens,
      max_tokens: 1,
      temperature: 0,
      prompt_logprobs: 0,
      add_special_tokens: false,
      return_token_ids: true,
    },
  };
}

export function readVllmScores(answer: JsonValue, { tokens, from }: ScoreRequest): TokenScores {
  const choice = firstChoice(answer, "vllm");
  const { usage } = objectAt(answer, "vllm");
  if (isJsonObject(usage)) expectCount(usage.prompt_tokens, tokens.length, "vllm");
  // Absent before 0.10.2; the look-up by id then says as much.
  if (choice.prompt_token_ids !== undefined && choice.prompt_token_ids !== null) {
    expectSameTokens(tokensAt(choice.prompt_token_ids, "vllm: prompt_token_ids"), tokens, "vllm");
  }
  if (choice.prompt_logprobs === undefined || choice.prompt_logprobs === null) {
    throw unexpected("vllm: prompt_logprobs", "a list; is this vLLM?", choice.prompt_logprobs);
  }
  const positions = listAt(choice.prompt_logprobs, "vllm: prompt_logprobs");
  expectCount(positions.length, tokens.length, "vllm");
  if (positions[0] !== null) throw unexpected("vllm: prompt_logprobs[0]", "null", positions[0]);
  const losses = new Float64Array(tokens.length - from);
  const greedy = new Uint8Array(losses.length);
  for (let i = from; i < tokens.length; i++) {
    const entries = objectAt(positions[i], `vllm: prompt_logprobs[${i}]`);
    const own = entries[String(tokens[i])];
    if (!isJsonObject(own)) {
      throw unexpected(`vllm: prompt_logprobs[${i}]`, `an entry of token ${tokens[i]}, which was sent`, entries);
    }
    losses[i - from] = lossOf(own.logprob, i, "vllm");
    greedy[i - from] = isLikeliest(own, entries) ? 1 : 0;
  }
  return { losses, greedy };
}

function isLikeliest(own: JsonObject, entries: JsonObject): boolean {
  if (typeof own.rank === "number") return own.rank === 1;
  const others = Object.values(entries).filter(isJsonObject);
  if (others.length < 2) return false;
  return others.every(({ logprob }) => typeof logprob === "number" && logprob <= (own.logprob as number));
}
