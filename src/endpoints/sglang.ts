// SGLang: POST /generate, its own route; its OpenAI route gives no log-probabilities of a prompt. Read from SGLang's
// sampling_params.md and scheduler_output_processor_mixin.py. Entries begin at logprob_start_len, the first one without a
// number, so one token more is asked for than is wanted.

import { isJsonObject, type JsonValue } from "../formats/bytes/index.ts";
import {
  expectCount,
  expectSameTokens,
  listAt,
  lossOf,
  objectAt,
  type TokenScores,
  tokensAt,
  unexpected,
} from "./answer.ts";
import { type Ask, type Engine, oneRequest, type ScoreRequest } from "./engine.ts";
import { modelFacts } from "./models-route.ts";
import type { WireRequest } from "./wire.ts";

export const sglang: Engine = {
  name: "sglang",
  title: "SGLang",
  prompts: "ids",
  score: oneRequest(sglangScoreRequest, readSglangScores),
  generate: async (ask, { prompt, maxTokens, stop }) => {
    const answer = await ask({
      path: "/generate",
      body: {
        input_ids: prompt,
        sampling_params: { max_new_tokens: maxTokens, temperature: 0, stop_token_ids: stop },
      },
    });
    const { output_ids, meta_info } = objectAt(answer, "sglang");
    if (isJsonObject(meta_info)) expectCount(meta_info.prompt_tokens, prompt.length, "sglang");
    return tokensAt(output_ids, "sglang: output_ids");
  },
  tokenize: async (ask, text, model) => {
    const answer = await ask({ path: "/tokenize", body: { model, prompt: text, add_special_tokens: false } });
    return tokensAt(objectAt(answer, "sglang: /tokenize").tokens, "sglang: /tokenize");
  },
  facts: async (ask, model) => {
    const info = await serverInfo(ask);
    const { max_model_len } = await modelFacts(ask, model);
    const length = [max_model_len, info.context_length].find((n) => typeof n === "number");
    return {
      version: typeof info.version === "string" ? info.version : null,
      contextLength: (length as number | undefined) ?? null,
    };
  },
  lengthFlag: (length) =>
    `--context-length ${length} (with SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 where that is above the ` +
    "configuration's own)",
};

async function serverInfo(ask: Ask): Promise<Readonly<Record<string, JsonValue>>> {
  // Renamed in 2026; older servers have the first name alone.
  for (const path of ["/get_server_info", "/server_info"]) {
    const answer = await ask({ path }).catch(() => null);
    if (isJsonObject(answer ?? undefined)) return answer as Readonly<Record<string, JsonValue>>;
  }
  return {};
}

export function sglangScoreRequest({ tokens, from }: ScoreRequest): WireRequest {
  return {
    path: "/generate",
    body: {
      input_ids: tokens,
      sampling_params: { max_new_tokens: 1, temperature: 0 },
      return_logprob: true,
      // Logits are computed from here on: from 0 they need [tokens, vocabulary].
      logprob_start_len: from - 1,
      top_logprobs_num: 1,
      return_text_in_logprobs: false,
    },
  };
}

export function readSglangScores(answer: JsonValue, { tokens, from }: ScoreRequest): TokenScores {
  const meta = objectAt(objectAt(answer, "sglang").meta_info, "sglang: meta_info");
  expectCount(meta.prompt_tokens, tokens.length, "sglang");
  if (meta.input_token_logprobs === undefined || meta.input_token_logprobs === null) {
    throw unexpected("sglang: input_token_logprobs", "a list; is this SGLang?", meta.input_token_logprobs);
  }
  const entries = pairs(meta.input_token_logprobs, "sglang: input_token_logprobs");
  const asked = tokens.slice(from - 1);
  const last = tokens.reduce((a, b) => Math.max(a, b), 0);
  // SGLang writes 0 for the vocabulary's last token.
  const same = (got: number, sent: number): boolean => got === sent || (got === 0 && sent === last);
  expectSameTokens(
    entries.map(([, id]) => id as number),
    asked,
    "sglang",
    same,
  );
  if (entries[0]![0] !== null) throw unexpected("sglang: input_token_logprobs[0]", "null", entries[0] as JsonValue);
  const top = listAt(meta.input_top_logprobs, "sglang: input_top_logprobs");
  expectCount(top.length, asked.length, "sglang");
  const losses = new Float64Array(tokens.length - from);
  const greedy = new Uint8Array(losses.length);
  for (let i = 0; i < losses.length; i++) {
    losses[i] = lossOf(entries[i + 1]![0], from + i, "sglang");
    const best = pairs(top[i + 1]!, `sglang: input_top_logprobs[${i + 1}]`)[0]?.[0];
    greedy[i] = typeof best === "number" && -losses[i]! >= best ? 1 : 0;
  }
  return { losses, greedy };
}

/** [log-probability or null, token id, text or null], as often as it stands there. */
function pairs(value: JsonValue, what: string): readonly (readonly JsonValue[])[] {
  return listAt(value, what).map((entry, i) => listAt(entry, `${what}[${i}]`));
}
