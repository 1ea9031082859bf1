// Servers in the test's own process that speak the contracts of inference engines, shape for shape, with the values of a
// real model behind them. What an engine may do wrong is a rule that a test adds.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { EncodingOptions, LanguageModel } from "../../src/engine/index.ts";
import type { Tokenizer } from "../../src/formats/tokenizers/index.ts";

export interface Served {
  readonly model: LanguageModel;
  readonly encoding?: EncodingOptions;
  readonly tokenizer: Tokenizer;
  readonly name?: string;
  /** max_model_len, --context-length, n_ctx. */
  readonly contextLength?: number;
}

/** What a rule makes of a request: an answer of its own, a connection that breaks, or silence; undefined: as usual. */
export type Misbehaviour =
  | { readonly status: number; readonly body: unknown; readonly headers?: Record<string, string> }
  | { readonly text: string }
  | "reset"
  | "silence"
  | undefined;

export interface ServerRules {
  /** Before the request is answered. `nth` counts the requests of this path from 0. */
  readonly before?: (path: string, nth: number, body: Json) => Misbehaviour;
  /** What is sent instead of the right answer. */
  readonly change?: (path: string, answer: Json, body: Json) => Json;
}

export interface TestServer extends AsyncDisposable {
  readonly address: string;
  readonly requests: { readonly path: string; readonly body: Json; readonly headers: IncomingMessage["headers"] }[];
  /** Most scoring requests that were under way at once. */
  readonly mostAtOnce: () => number;
}

// biome-ignore lint/suspicious/noExplicitAny: what is sent over the wire is whatever JSON says.
export type Json = any;

type Route = (body: Json) => Promise<Json> | Json;
type Routes = Readonly<Record<string, Route>>;

/** One at a time: the model's cache is one. */
function queue(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const next = last.then(work, work);
    last = next.catch(() => undefined);
    return next;
  };
}

const once = queue();

interface Position {
  readonly logprob: number;
  readonly isGreedy: boolean;
}

/** Index i: token i given those before it; null for the first. */
function positions({ model, encoding = {} }: Served, ids: readonly number[]): Promise<(Position | null)[]> {
  return once(async () => {
    const { negativeLogLikelihood } = await model.score(ids, encoding);
    const out: (Position | null)[] = [null];
    for (let i = 1; i < ids.length; i++) {
      // Ranks are of use to questions alone, which end with their answer.
      const near = ids.length - i <= 24;
      const options = { ...encoding, length: ids.length };
      const { isGreedy } = near ? await model.loglikelihood(ids.slice(0, i), [ids[i]!], options) : { isGreedy: false };
      out.push({ logprob: -negativeLogLikelihood[i - 1]!, isGreedy });
    }
    return out;
  });
}

function greedy({ model, encoding = {} }: Served, ids: readonly number[], maxTokens: number): Promise<number[]> {
  return once(async () => {
    const out: number[] = [];
    for await (const { token } of model.generate(ids, { ...encoding, maxTokens })) out.push(token);
    return out;
  });
}

const usage = (prompt: number, completion: number): Json => ({
  prompt_tokens: prompt,
  total_tokens: prompt + completion,
  completion_tokens: completion,
  prompt_tokens_details: null,
});

export function vllmServer(served: Served, rules: ServerRules = {}): Promise<TestServer> {
  const { tokenizer, name = "tiny", contextLength = 4096 } = served;
  return start(rules, {
    "/version": () => ({ version: "0.33.0" }),
    "/v1/models": () => ({
      object: "list",
      data: [
        {
          id: name,
          object: "model",
          created: 1796046637,
          owned_by: "vllm",
          root: name,
          parent: null,
          max_model_len: contextLength,
          permission: [],
        },
      ],
    }),
    "/tokenize": ({ prompt }) => {
      const tokens = tokenizer.encode(prompt, { addSpecial: false, parseSpecial: false });
      return { count: tokens.length, max_model_len: contextLength, tokens, token_strs: null };
    },
    "/v1/completions": async ({ model, prompt, max_tokens, prompt_logprobs, echo, logprobs, return_token_ids }) => {
      if (model !== name) return failed(404, `The model \`${model}\` does not exist.`);
      if (prompt.length + max_tokens > contextLength) {
        return failed(400, `This model's maximum context length is ${contextLength} tokens.`);
      }
      const wanted = prompt_logprobs ?? (echo ? logprobs : undefined);
      const at = wanted === undefined ? null : await positions(served, prompt);
      const tokens = await greedy(served, prompt, max_tokens);
      const text = (ids: number[]) => tokenizer.decode(ids, { skipSpecial: false });
      const entries = at?.map((position, i) =>
        position === null
          ? null
          : {
              [prompt[i]]: {
                logprob: position.logprob,
                rank: position.isGreedy ? 1 : 2,
                decoded_token: text([prompt[i]]),
              },
            },
      );
      return {
        id: "cmpl-1",
        object: "text_completion",
        created: 1796046637,
        model: name,
        choices: [
          {
            index: 0,
            text: text(tokens),
            logprobs: echo ? echoOf(at!, prompt, tokens, text) : null,
            finish_reason: "length",
            stop_reason: null,
            token_ids: return_token_ids ? tokens : null,
            prompt_logprobs: entries ?? null,
            prompt_token_ids: return_token_ids ? prompt : null,
          },
        ],
        service_tier: null,
        system_fingerprint: null,
        usage: usage(prompt.length, tokens.length),
        kv_transfer_params: null,
      };
    },
  });
}

function echoOf(
  at: readonly (Position | null)[],
  prompt: readonly number[],
  generated: readonly number[],
  text: (ids: number[]) => string,
): Json {
  const best = (position: Position | null): number | null =>
    position === null ? null : position.isGreedy ? position.logprob : position.logprob + 0.5;
  const own = [...at, ...generated.map(() => ({ logprob: -0.25, isGreedy: true }))];
  const tokens = [...prompt, ...generated].map((id) => text([id]));
  return {
    text_offset: tokens.map((_, i) => tokens.slice(0, i).join("").length),
    token_logprobs: own.map((position) => position?.logprob ?? null),
    tokens,
    top_logprobs: own.map((position, i) =>
      position === null ? null : { [tokens[i]!]: position.logprob, [`${tokens[i]}*`]: best(position) },
    ),
  };
}

/** Any server with OpenAI's older interface. */
export function openaiServer(served: Served, rules: ServerRules = {}): Promise<TestServer> {
  const { tokenizer, name = "tiny" } = served;
  return start(rules, {
    "/v1/models": () => ({ object: "list", data: [{ id: name, object: "model", created: 1, owned_by: "someone" }] }),
    "/v1/completions": async ({ prompt, max_tokens, echo, logprobs }) => {
      const tokens = await greedy(served, prompt, max_tokens);
      const text = (ids: number[]) => tokenizer.decode(ids, { skipSpecial: false });
      const at = echo && logprobs !== undefined ? await positions(served, prompt) : null;
      return {
        id: "cmpl-1",
        object: "text_completion",
        created: 1,
        model: name,
        choices: [
          {
            text: text([...prompt, ...tokens]),
            index: 0,
            logprobs: at === null ? null : echoOf(at, prompt, tokens, text),
            finish_reason: "length",
          },
        ],
        usage: usage(prompt.length, tokens.length),
      };
    },
  });
}

export function sglangServer(served: Served, rules: ServerRules = {}): Promise<TestServer> {
  const { model, tokenizer, name = "tiny", contextLength = 4096 } = served;
  return start(rules, {
    "/v1/models": () => ({
      object: "list",
      data: [{ id: name, object: "model", created: 1, owned_by: "sglang", root: name, max_model_len: contextLength }],
    }),
    "/get_server_info": () => ({ model_path: name, context_length: null, version: "0.6.3" }),
    "/tokenize": ({ prompt }) => {
      const tokens = tokenizer.encode(prompt, { addSpecial: false, parseSpecial: false });
      return { tokens, count: tokens.length, max_model_len: contextLength };
    },
    "/generate": async ({ input_ids: ids, sampling_params, return_logprob, logprob_start_len, top_logprobs_num }) => {
      if (ids.length >= contextLength) {
        return failed(400, `The input (${ids.length} tokens) is longer than the model's context length.`);
      }
      const tokens = await greedy(served, ids, sampling_params.max_new_tokens);
      const meta: Json = {
        id: "1",
        finish_reason: { type: "length", length: tokens.length },
        prompt_tokens: ids.length,
        weight_version: "default",
        completion_tokens: tokens.length,
        cached_tokens: 0,
        e2e_latency: 0.1,
      };
      if (return_logprob) {
        const at = (await positions(served, ids)).slice(logprob_start_len);
        const own = ids.slice(logprob_start_len) as number[];
        // Its code writes 0 for the last id of the vocabulary, and nothing for the first entry.
        const written = own.map((id) => (id < model.spec.vocabSize - 1 ? id : 0));
        meta.input_token_logprobs = at.map((p, i) => [i === 0 ? null : p!.logprob, written[i], null]);
        if (top_logprobs_num > 0) {
          meta.input_top_logprobs = at.map((p, i) =>
            i === 0 ? null : [[p!.isGreedy ? p!.logprob : p!.logprob + 0.5, p!.isGreedy ? written[i] : 3, null]],
          );
        }
        meta.output_token_logprobs = tokens.map((id) => [-0.25, id, null]);
      }
      return { text: tokenizer.decode(tokens), output_ids: tokens, meta_info: meta };
    },
  });
}

export function llamaServerServer(served: Served, rules: ServerRules = {}): Promise<TestServer> {
  const { model, tokenizer, name = "tiny", contextLength = 4096 } = served;
  const data = [
    {
      id: name,
      aliases: [name],
      tags: [],
      object: "model",
      created: 1796046688,
      owned_by: "llamacpp",
      meta: { vocab_type: 1, n_vocab: model.spec.vocabSize, n_ctx: contextLength, n_ctx_train: 64 },
    },
  ];
  const tooLong = (tokens: number): Json => ({
    status: 400,
    body: {
      error: {
        code: 400,
        message: `request (${tokens} tokens) exceeds the available context size (${contextLength} tokens), try increasing it`,
        type: "exceed_context_size_error",
        n_prompt_tokens: tokens,
        n_ctx: contextLength,
      },
    },
  });
  return start(rules, {
    "/v1/models": () => ({ models: [{ name, model: name }], object: "list", data }),
    "/props": () => ({ default_generation_settings: { n_ctx: contextLength }, total_slots: 1, build_info: "b11549" }),
    "/tokenize": ({ content, add_special }) => ({
      tokens: tokenizer.encode(content, { addSpecial: add_special, parseSpecial: false }),
    }),
    // As it answers to echo: the logarithms are those of what was generated, in another shape.
    "/v1/completions": async ({ prompt, max_tokens }) => {
      const tokens = await greedy(served, prompt, max_tokens);
      const content = tokens.map((id) => {
        const entry = { id, token: tokenizer.decode([id]), bytes: [], logprob: -0.25 };
        return { ...entry, top_logprobs: [entry] };
      });
      return {
        choices: [{ text: tokenizer.decode(tokens), index: 0, logprobs: { content }, finish_reason: "length" }],
        created: 1796046689,
        model: name,
        system_fingerprint: "b0-unknown",
        object: "text_completion",
        usage: usage(prompt.length, tokens.length),
      };
    },
    "/completion": async ({ prompt, n_predict, n_probs, logit_bias }) => {
      if (prompt.length >= contextLength) return tooLong(prompt.length);
      const forced = logit_bias?.[0]?.[0] as number | undefined;
      const best = await greedy(served, prompt, n_predict);
      const tokens = forced === undefined ? best : [forced];
      const entry = async (id: number): Promise<Json> => ({
        id,
        token: tokenizer.decode([id]),
        bytes: [],
        logprob: (await once(() => model.loglikelihood(prompt, [id], { ...served.encoding }))).logLikelihood,
      });
      const probabilities =
        n_probs > 0 ? [{ ...(await entry(tokens[0]!)), top_logprobs: [await entry(best[0]!)] }] : undefined;
      return {
        index: 0,
        content: tokenizer.decode(tokens),
        tokens,
        id_slot: 0,
        stop: true,
        model: name,
        tokens_predicted: tokens.length,
        tokens_evaluated: prompt.length,
        truncated: false,
        stop_type: "limit",
        tokens_cached: prompt.length,
        ...(probabilities === undefined ? {} : { completion_probabilities: probabilities }),
      };
    },
  });
}

export function ollamaServer(): Promise<TestServer> {
  return start(
    {},
    {
      "/v1/models": () => ({
        object: "list",
        data: [{ id: "smollm2:latest", object: "model", created: 1796046637, owned_by: "library" }],
      }),
      "/api/version": () => ({ version: "0.21.0" }),
    },
  );
}

const failure = Symbol("an answer with a status of its own");

function failed(status: number, message: string): Json {
  return { [failure]: true, status, body: { error: { message, type: "BadRequestError", param: null, code: status } } };
}

async function start(rules: ServerRules, routes: Routes): Promise<TestServer> {
  const requests: TestServer["requests"] = [];
  const counts = new Map<string, number>();
  let atOnce = 0;
  let most = 0;
  const server = createServer((request, response) => {
    void answer(request, response).catch((error: unknown) => {
      response.writeHead(500, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { message: String(error) } }));
    });
  });

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const path = request.url!;
    const text = Buffer.concat(parts).toString();
    const body = text === "" ? {} : JSON.parse(text);
    const nth = counts.get(path) ?? 0;
    counts.set(path, nth + 1);
    requests.push({ path, body, headers: request.headers });
    const wrong = rules.before?.(path, nth, body);
    if (wrong === "reset") return void request.socket.destroy();
    if (wrong === "silence") return;
    if (wrong !== undefined && "text" in wrong) return void response.end(wrong.text);
    if (wrong !== undefined) return reply(wrong);
    const route = Object.hasOwn(routes, path) ? routes[path] : undefined;
    if (route === undefined) return reply({ status: 404, body: { detail: "Not Found" } });
    atOnce++;
    most = Math.max(most, atOnce);
    const right = await Promise.resolve(route(body)).finally(() => atOnce--);
    if (right?.[failure] || (typeof right?.status === "number" && right.body !== undefined)) return reply(right);
    return reply({ status: 200, body: rules.change?.(path, structuredClone(right), body) ?? right });

    function reply(what: { status: number; body: unknown; headers?: Record<string, string> }): void {
      response.writeHead(what.status, { "content-type": "application/json", ...what.headers });
      response.end(JSON.stringify(what.body));
    }
  }

  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    address: `http://127.0.0.1:${port}`,
    requests,
    mostAtOnce: () => most,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
