// llama-cpp-python's server: OpenAI's echo with traits of its own, read from its llama.py and seen in its answers.
//   · It takes text alone. Tokens go there as the text that its own tokenizer makes of them, and only if that gives the same
//     tokens back.
//   · Its echo leaves BOS out and gives the first token after it no number; that one's is asked for once for all tokens.
//   · For a model without BOS each number is that of the token before, which nothing can mend: refused.

import { isJsonObject, type JsonValue } from "../formats/bytes/index.ts";
import { expectCount, firstChoice, lossOf, objectAt, type TokenScores, tokensAt, unexpected } from "./answer.ts";
import { EndpointError } from "./endpoint-error.ts";
import type { Ask, Engine, ScoreRequest } from "./engine.ts";
import { echoed, echoRequest } from "./openai.ts";

const name = "llama-cpp-python";

export const llamaCppPython: Engine = {
  name,
  title: "llama-cpp-python's server",
  prompts: "text",
  score,
  generate: null,
  tokenize: async (ask, text) => {
    const [bos] = await tokensOf(ask, "");
    const tokens = await tokensOf(ask, text);
    return tokens[0] === bos ? tokens.slice(1) : tokens;
  },
  probeTokens: (ask) => tokensOf(ask, "Once upon a time"),
  facts: async () => ({ version: null, contextLength: null }),
  lengthFlag: (length) => `--n_ctx ${length}`,
};

async function tokensOf(ask: Ask, input: string): Promise<readonly number[]> {
  const answer = objectAt(await ask({ path: "/extras/tokenize", body: { input } }), `${name}: /extras/tokenize`);
  return tokensAt(answer.tokens, `${name}: /extras/tokenize`);
}

async function score(ask: Ask, asked: ScoreRequest, memory: Map<string, JsonValue>): Promise<TokenScores> {
  const { tokens, from, model } = asked;
  const [bos] = await tokensOf(ask, "");
  if (bos === undefined || tokens[0] !== bos) {
    throw new EndpointError(
      bos === undefined
        ? `${name}: expected a model that begins texts with BOS, got one that does not: the server's log-probabilities are ` +
            "then each that of the token before"
        : `${name}: expected BOS, token ${bos}, at the head of the tokens, got ${tokens[0]}: the server puts it there ` +
            "itself, and takes text alone",
    );
  }
  // With BOS at their head the space that SentencePiece puts first is taken off, as it will be put on again.
  const { text } = objectAt(await ask({ path: "/extras/detokenize", body: { tokens } }), name);
  if (typeof text !== "string") throw unexpected(`${name}: /extras/detokenize`, "a text", text);
  const again = await tokensOf(ask, text);
  if (again.length !== tokens.length || again.some((id, i) => id !== tokens[i])) {
    throw new EndpointError(
      `${name}: expected tokens that survive as text, since the server takes nothing else, got ${tokens.length} that come ` +
        `back as ${again.length} others; the tokens must begin where a text of its own would, as at the head of a file (--windows 1)`,
    );
  }
  const answer = await ask(echoRequest({ tokens: text, model }));
  const { losses, greedy } = await readLlamaCppPythonScores(answer, asked, async (token) => {
    // The distribution after BOS, by the tokens' text: 2²⁰ are more than any vocabulary has.
    const events =
      memory.get("after BOS") ??
      (await ask({
        path: "/v1/completions",
        body: { model, prompt: "", logprobs: 2 ** 20, max_tokens: 2, temperature: 0, stream: true },
        answer: "events",
      }));
    memory.set("after BOS", events);
    return firstLogprob(events, token);
  });
  return { losses: losses.slice(from - 1), greedy: greedy.slice(from - 1) };
}

/** All losses from token 1 on. `afterBos` gives the log-probability of a text as the first token, and the likeliest. */
export async function readLlamaCppPythonScores(
  answer: JsonValue,
  { tokens, from }: ScoreRequest,
  afterBos: (text: string) => Promise<readonly [own: number, best: number]>,
): Promise<TokenScores> {
  const { usage } = objectAt(answer, name);
  if (isJsonObject(usage)) expectCount(usage.prompt_tokens, tokens.length, name);
  const entries = echoed(answer, name);
  // Without BOS, and with what was generated unless that was an end token.
  const without = tokens.length - 1;
  if (entries.logprobs !== without && entries.logprobs !== without + 1) {
    throw unexpected(`${name}: token_logprobs`, `${without} or ${without + 1} entries`, entries.logprobs);
  }
  if (entries.own[0] !== null) throw unexpected(`${name}: token_logprobs[0]`, "null", entries.own[0]);
  const losses = new Float64Array(without);
  const greedy = new Uint8Array(without);
  for (let i = 1; i < without; i++) {
    losses[i] = lossOf(entries.own[i], i + 1, name);
    greedy[i] = -losses[i]! >= entries.likeliest(i) ? 1 : 0;
  }
  if (from === 1) {
    const [own, best] = await afterBos(String(entries.tokens[0]));
    losses[0] = lossOf(own, 1, name);
    greedy[0] = own >= best ? 1 : 0;
  }
  return { losses, greedy };
}

function firstLogprob(events: JsonValue, text: string): readonly [number, number] {
  const list = (Array.isArray(events) ? events : []) as readonly JsonValue[];
  const first = list.length === 0 ? null : firstChoice(list[0]!, name).logprobs;
  const top = isJsonObject(first ?? undefined) ? (first as { top_logprobs?: JsonValue }).top_logprobs : undefined;
  const after = Array.isArray(top) ? (top as readonly JsonValue[])[0] : undefined;
  const own = isJsonObject(after) && text !== "" ? after[text] : undefined;
  if (typeof own !== "number") {
    throw unexpected(`${name}: logprobs after BOS`, `one of ${JSON.stringify(text)}`, own);
  }
  return [own, Object.values(after as object).reduce((best: number, x) => Math.max(best, Number(x)), -Infinity)];
}
