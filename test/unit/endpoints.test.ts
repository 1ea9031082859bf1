// Models behind HTTP, against servers that speak each contract with a real model's values: what comes through equals what
// the model gives, and whatever a server may do wrong is said.

import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  EndpointError,
  type EndpointModel,
  type EndpointOptions,
  EndpointPool,
  EndpointsByStrategy,
  endpointAddress,
  inForce,
  openEndpoint,
} from "../../src/endpoints/index.ts";
import { readEchoScores } from "../../src/endpoints/openai.ts";
import { readSglangScores } from "../../src/endpoints/sglang.ts";
import { readVllmScores } from "../../src/endpoints/vllm.ts";
import { type LanguageModel, loadLanguageModel } from "../../src/engine/index.ts";
import {
  type CompareJob,
  type CompareSettings,
  compareIdentity,
  compareResult,
  generatedHaystack,
  memoryRunFiles,
  openRun,
  parseEvaluationStrategy,
  placeWindows,
  runCompare,
  type ScoringModel,
} from "../../src/evaluation/index.ts";
import { byteTokenizer } from "../../src/formats/index.ts";
import {
  type Json,
  llamaServerServer,
  ollamaServer,
  openaiServer,
  type Served,
  type ServerRules,
  sglangServer,
  type TestServer,
  vllmServer,
} from "../support/inference-servers.ts";
import { seededRandom } from "../support/random-ids.ts";
import { writeTinyModel } from "../support/tiny-model.ts";

const tokenizer = byteTokenizer();
let model: LanguageModel;
let served: Served;

beforeAll(async () => {
  model = await loadLanguageModel(writeTinyModel(mkdtempSync(join(tmpdir(), "longhand-endpoints-"))), {
    threads: 1,
  });
  served = { model, tokenizer };
  // A busy machine loads the runtime in tens of seconds.
}, 240_000);
afterAll(() => model?.dispose());

/** No waiting in tests. */
const quick: EndpointOptions = { backoffMs: 1, timeoutMs: 5000 };
const ids = (length: number, seed = 1): number[] => [256, ...seededRandom(seed, length - 1, 256)];

const makers = {
  vllm: vllmServer,
  sglang: sglangServer,
  openai: openaiServer,
} as const satisfies Record<string, (served: Served, rules?: ServerRules) => Promise<TestServer>>;
const scoring = Object.keys(makers) as (keyof typeof makers)[];

async function failure(work: Promise<unknown>): Promise<Error> {
  try {
    await work;
  } catch (error) {
    return error as Error;
  }
  throw new Error("test: expected an error, got none");
}

describe.each(scoring)("%s", (name) => {
  test("is found by what it says of itself, and gives the model's losses", async () => {
    await using server = await makers[name](served);
    const remote = await openEndpoint(`${server.address}/v1`, quick);
    expect(remote.facts).toMatchObject({ engine: name, model: "tiny", losses: "prompt", repeatDifference: 0 });
    const tokens = ids(60);
    const { negativeLogLikelihood } = await remote.score(tokens);
    const own = (await model.score(tokens)).negativeLogLikelihood;
    expect(negativeLogLikelihood).toHaveLength(59);
    for (const [i, loss] of own.entries()) expect(negativeLogLikelihood[i]).toBeCloseTo(loss, 6);
  });

  test("says of an answer how likely it is, and whether it is the likeliest", async () => {
    await using server = await makers[name](served);
    const remote = await openEndpoint(server.address, quick);
    const context = ids(20);
    const best: number[] = [];
    for await (const { token } of model.generate(context, { maxTokens: 3, exact: true })) best.push(token);
    for (const continuation of [best, [7, 8, 9]]) {
      const own = await model.loglikelihood(context, continuation);
      const got = await remote.loglikelihood(context, continuation);
      expect(got.logLikelihood).toBeCloseTo(own.logLikelihood, 5);
      expect(got.isGreedy).toBe(own.isGreedy);
    }
  });

  test("a token without a number is no finite loss, whichever way it is said", async () => {
    for (const value of [null, -9999]) {
      await using server = await makers[name](served, { change: (_, answer) => poison(answer, 10, value) });
      const remote = await openEndpoint(server.address, quick);
      const error = await failure(remote.score(ids(30)));
      expect(error).toBeInstanceOf(RangeError);
      expect(error.message).toMatch(/expected a finite log-probability of the token at position 10, got (null|-9999)/);
    }
    await using server = await makers[name](served, {
      before: (path, _, body) =>
        scores(path) && length(body) > 20 ? { text: '{"choices":[{"logprob":NaN}]}' } : undefined,
    });
    const remote = await openEndpoint(server.address, quick);
    expect((await failure(remote.score(ids(30)))).message).toMatch(/finite log-probabilities, got NaN/);
  });

  test("a cut prompt is an error", async () => {
    await using server = await makers[name](served, { change: (_, answer, body) => cut(answer, body) });
    const remote = await openEndpoint(server.address, quick);
    const error = await failure(remote.score(ids(40)));
    expect(error).toBeInstanceOf(EndpointError);
    expect(error.message).toMatch(/expected 40 tokens of the prompt to be read, got 39; the server cuts long prompts/);
  });

  test("a busy, a loading and a broken server are asked again", async () => {
    const wrong = [
      { status: 429, body: { error: { message: "slow down" } } },
      { status: 503, body: { error: { code: 503, message: "Loading model", type: "unavailable_error" } } },
      { status: 500, body: "Internal Server Error" },
      "reset" as const,
    ];
    let left = [...wrong];
    await using server = await makers[name](served, {
      before: (path, _, body) => (scores(path) && length(body) > 20 ? left.shift() : undefined),
    });
    const remote = await openEndpoint(server.address, quick);
    const tokens = ids(30);
    const own = (await model.score(tokens)).negativeLogLikelihood;
    expect((await remote.score(tokens)).negativeLogLikelihood[28]).toBeCloseTo(own[28]!, 6);
    expect(left).toEqual([]);
    // Patience ends.
    left = Array.from({ length: 50 }, () => wrong[2]!);
    const error = await failure(remote.score(tokens));
    expect(error).toMatchObject({ name: "EndpointError", status: 500, retryable: true });
    expect(left).toHaveLength(44);
  });

  test("a refusal is said at once, in the server's words", async () => {
    let asked = 0;
    await using server = await makers[name](served, {
      before: (path, _, body) => {
        if (!scores(path) || length(body) <= 20) return undefined;
        asked++;
        return { status: 400, body: { error: { message: "no such thing" } } };
      },
    });
    const remote = await openEndpoint(server.address, quick);
    const error = await failure(remote.score(ids(30)));
    expect(error.message).toMatch(/expected status 200, got 400: no such thing/);
    expect(asked).toBe(1);
  });

  test("a slow server is given up when the signal is aborted, at once", async () => {
    await using server = await makers[name](served, {
      before: (path, _, body) => (path === "/silent" || (scores(path) && length(body) > 20) ? "silence" : undefined),
    });
    const remote = await openEndpoint(server.address, quick);
    const reason = new Error("enough");
    const controller = new AbortController();
    setTimeout(() => controller.abort(reason), 30);
    const began = performance.now();
    expect(await failure(remote.score(ids(30), { signal: controller.signal }))).toBe(reason);
    expect(performance.now() - began).toBeLessThan(2000);
    const impatient = new EndpointPool([{ address: server.address, timeoutMs: 150 }], { attempts: 2, backoffMs: 1 });
    expect((await failure(impatient.send({ path: "/silent" }))).message).toMatch(
      /expected an answer within 0.15 s, got none/,
    );
  });
});

const scores = (path: string): boolean => path === "/v1/completions" || path === "/generate";
const length = (body: Json): number => (body.prompt ?? body.input_ids).length;

/** Puts a value in the place of a position's logarithm. */
function poison(answer: Json, at: number, value: number | null): Json {
  const choice = answer.choices?.[0];
  const positions =
    choice?.prompt_logprobs ?? choice?.logprobs?.token_logprobs ?? answer.meta_info?.input_token_logprobs;
  if (!(positions?.length > 20)) return answer;
  if (Array.isArray(positions[at])) positions[at][0] = value;
  else if (typeof positions[at] === "number") positions[at] = value;
  else for (const entry of Object.values(positions[at]) as Json[]) entry.logprob = value;
  return answer;
}

/** As a server that drops the first token of a long prompt answers. */
function cut(answer: Json, body: Json): Json {
  if (body.prompt === undefined && body.input_ids === undefined) return answer;
  if (length(body) <= 20) return answer;
  if (answer.usage !== undefined) answer.usage.prompt_tokens--;
  if (answer.meta_info !== undefined) answer.meta_info.prompt_tokens--;
  return answer;
}

describe("vLLM's answer", () => {
  const read = (logprobs: string, tokens: number[]) =>
    readVllmScores(JSON.parse(`{"choices":[{"prompt_logprobs":${logprobs}}]}`), { tokens, from: 1, model: "m" });
  const entry = (logprob: number, rank: number) => `{"logprob":${logprob},"rank":${rank},"decoded_token":"x"}`;

  test("is read by the id that was sent: JavaScript sorts its keys, and the likeliest token may come first", () => {
    const answer = `[null, {"300":${entry(-2, 5)},"7":${entry(-0.1, 1)}}, {"8":${entry(-0.5, 1)}}]`;
    expect(Object.keys(JSON.parse(answer)[1])).toEqual(["7", "300"]);
    const { losses, greedy } = read(answer, [1, 300, 8]);
    expect([...losses]).toEqual([2, 0.5]);
    expect([...greedy]).toEqual([0, 1]);
  });

  test("without the token that was sent is an error", () => {
    expect(() => read(`[null, {"7":${entry(-0.1, 1)}}]`, [1, 300])).toThrow(
      /prompt_logprobs\[1\]: expected an entry of token 300, which was sent, got \{"7"/,
    );
  });

  test("with a number for the first token, too few positions, other ids or none at all is an error", () => {
    expect(() => read(`[{"1":${entry(-1, 1)}}, {"2":${entry(-1, 1)}}]`, [1, 2])).toThrow(
      /prompt_logprobs\[0\]: expected null/,
    );
    expect(() => read(`[null, {"2":${entry(-1, 1)}}]`, [1, 2, 3])).toThrow(/expected 3 tokens .* got 2/);
    expect(() => read(`[null, {"2":${entry(-1, 1)}}, {}]`, [1, 2])).toThrow(/got 3; the server adds tokens of its own/);
    expect(() => read("null", [1, 2])).toThrow(/prompt_logprobs: expected a list; is this vLLM\?, got null/);
    expect(() =>
      readVllmScores(
        { choices: [{ prompt_token_ids: [1, 9], prompt_logprobs: [null, {}] }] },
        { tokens: [1, 2], from: 1, model: "m" },
      ),
    ).toThrow(/expected token 2 at position 1, got 9/);
  });
});

describe("SGLang's answer", () => {
  const read = (own: Json, top: Json, tokens: number[], from = 1) =>
    readSglangScores(
      { meta_info: { input_token_logprobs: own, input_top_logprobs: top } },
      { tokens, from, model: "m" },
    );

  test("begins at logprob_start_len, whose entry has no number", () => {
    const own = [
      [null, 5, null],
      [-0.5, 6, null],
      [-3, 7, null],
    ];
    const top = [null, [[-0.5, 6, null]], [[-0.2, 9, null]]];
    const { losses, greedy } = read(own, top, [1, 2, 5, 6, 7], 3);
    expect([...losses]).toEqual([0.5, 3]);
    expect([...greedy]).toEqual([1, 0]);
  });

  test("has 0 for the vocabulary's last token, and for no other", () => {
    const top = [null, [[-0.5, 0, null]]];
    expect([
      ...read(
        [
          [null, 5, null],
          [-0.5, 0, null],
        ],
        top,
        [5, 511],
      ).losses,
    ]).toEqual([0.5]);
    expect(() =>
      read(
        [
          [null, 5, null],
          [-0.5, 0, null],
        ],
        top,
        [5, 4],
      ),
    ).toThrow(/expected token 4 at position 1, got 0/);
  });
});

test("an echo that gives as many entries as tokens, or none, is refused with the reason", () => {
  const read = (logprobs: Json, usage: Json = { prompt_tokens: 3, completion_tokens: 1 }) =>
    readEchoScores({ choices: [{ logprobs }], usage }, { tokens: [1, 2, 3], from: 1, model: "m" });
  const echo = (...values: (number | null)[]) => ({
    tokens: values.map(String),
    token_logprobs: values,
    top_logprobs: values.map((x) => (x === null ? null : { a: x })),
    text_offset: values.map((_, i) => i),
  });
  expect([...read(echo(null, -1, -2, -3)).losses]).toEqual([1, 2]);
  // Nothing generated, since the model ended the text.
  expect([...read(echo(null, -1, -2), { prompt_tokens: 3, completion_tokens: 0 }).losses]).toEqual([1, 2]);
  expect(() => read(echo(null, -1, -2))).toThrow(/expected 3 tokens of the prompt to be read, got 2/);
  expect(() => read(echo(-1))).toThrow(/token_logprobs: expected 3 entries of the prompt, got 1/);
  expect(() => read(echo(-1, -1, -2, -3))).toThrow(/token_logprobs\[0\]: expected null/);
  expect(() => read(null)).toThrow(/expected token_logprobs of the prompt, as echo asks for, got null/);
  expect(() => read({ content: [] })).toThrow(/the server ignores echo/);
});

describe("llama-server", () => {
  test("scores no text, and says why and what else does", async () => {
    await using server = await llamaServerServer(served);
    const remote = await openEndpoint(server.address, quick);
    expect(remote.facts).toMatchObject({ engine: "llama-server", losses: "none", version: "b11549" });
    expect((await failure(remote.score(ids(30)))).message).toMatch(
      /ignores echo: llama.cpp issue 27174.*llama-cpp-python/,
    );
  });

  test("answers questions: the next token is forced, and its likelihood is that before the bias", async () => {
    await using server = await llamaServerServer(served);
    const remote = await openEndpoint(server.address, quick);
    const context = ids(20);
    const best: number[] = [];
    for await (const { token } of remote.generate(context, { maxTokens: 3 })) best.push(token);
    const own: number[] = [];
    for await (const { token } of model.generate(context, { maxTokens: 3 })) own.push(token);
    expect(best).toEqual(own);
    for (const continuation of [best, [7, 8]]) {
      const expected = await model.loglikelihood(context, continuation);
      const got = await remote.loglikelihood(context, continuation);
      expect(got.logLikelihood).toBeCloseTo(expected.logLikelihood, 5);
      expect(got.isGreedy).toBe(expected.isGreedy);
    }
  });

  test("scores token by token when that is asked for", async () => {
    await using server = await llamaServerServer(served);
    const remote = await openEndpoint(server.address, { ...quick, tokenByToken: true });
    expect(remote.facts.losses).toBe("token by token");
    const tokens = ids(12);
    const own = (await model.score(tokens)).negativeLogLikelihood;
    const { negativeLogLikelihood } = await remote.score(tokens);
    for (const [i, loss] of own.entries()) expect(negativeLogLikelihood[i]).toBeCloseTo(loss, 4);
  });

  test("that learns to echo is used so", async () => {
    await using server = await llamaServerServer(served, {
      change: (path, answer, body) => (path === "/v1/completions" ? echoed(answer, body) : answer),
    });
    const remote = await openEndpoint(server.address, quick);
    expect(remote.facts.losses).toBe("prompt");
    function echoed(answer: Json, body: Json): Json {
      const values = [null, ...body.prompt.slice(1).map(() => -1), -0.25];
      answer.choices[0].logprobs = {
        tokens: values.map(String),
        token_logprobs: values,
        top_logprobs: values.map((x) => (x === null ? null : { a: x })),
        text_offset: values.map(() => 0),
      };
      return answer;
    }
  });

  test("that cuts a prompt is an error", async () => {
    await using server = await llamaServerServer(served, {
      change: (path, answer) => (path === "/completion" ? { ...answer, truncated: true } : answer),
    });
    expect((await failure(openEndpoint(server.address, quick))).message).toMatch(/whole prompt .* got a truncated one/);
  });
});

test("Ollama is refused with the reason", async () => {
  await using server = await ollamaServer();
  expect((await failure(openEndpoint(server.address, quick))).message).toMatch(
    /got Ollama 0\.21\.0, which gives those of generated tokens alone, reads 4,096 tokens unless/,
  );
});

describe("the probe", () => {
  const sample = { text: "hello", tokens: [...new TextEncoder().encode("hello")], bos: 256 };

  test.each(["vllm", "sglang"] as const)("holds %s's tokenizer against ours", async (name) => {
    await using server = await makers[name](served);
    expect((await openEndpoint(server.address, { ...quick, sample })).facts.tokenizer).toBe("the same");
    const other = { ...sample, tokens: [1, 2, 3] };
    expect((await failure(openEndpoint(server.address, { ...quick, sample: other }))).message).toMatch(
      /expected the tokenizer of MODEL, which makes "hello" into \[1, 2, 3, …\], got one that makes it into \[104, 101/,
    );
  });

  test("wants room for the longest prompt and the token behind it", async () => {
    await using server = await vllmServer({ ...served, contextLength: 128 });
    await openEndpoint(server.address, { ...quick, length: 127 });
    expect((await failure(openEndpoint(server.address, { ...quick, length: 128 }))).message).toMatch(
      /expected a context of at least 129 tokens, .* got 128; start it with --max-model-len 129/,
    );
    const remote = await openEndpoint(server.address, quick);
    expect((await failure(remote.score(ids(128)))).message).toMatch(/expected at most 128 tokens.*got 129/);
  });

  test("sees numbers that do not stay the same", async () => {
    let nth = 0;
    await using server = await vllmServer(served, {
      change: (_, answer) => {
        const last = answer.choices?.[0].prompt_logprobs?.at(-1);
        if (last) for (const entry of Object.values(last) as Json[]) entry.logprob -= 0.01 * nth++;
        return answer;
      },
    });
    expect((await openEndpoint(server.address, quick)).facts.repeatDifference).toBeCloseTo(0.01, 6);
  });

  test("wants a name where several models are served, and one that exists", async () => {
    await using server = await vllmServer(served, {
      change: (path, answer) => {
        if (path === "/v1/models") answer.data.push({ ...answer.data[0], id: "other" });
        return answer;
      },
    });
    expect((await failure(openEndpoint(server.address, quick))).message).toMatch(
      /expected --served-model, one of tiny, other, since the server has several/,
    );
    expect((await openEndpoint(server.address, { ...quick, model: "tiny" })).facts.model).toBe("tiny");
    expect((await failure(openEndpoint(server.address, { ...quick, model: "x" }))).message).toMatch(
      /expected tiny, other/,
    );
  });

  test("says what is no inference server, and where none is", async () => {
    await using server = await vllmServer(served, { before: () => ({ text: "<!doctype html>" }) });
    expect((await failure(openEndpoint(server.address, quick))).message).toMatch(
      /expected JSON, got "<!doctype html>"/,
    );
    expect((await failure(openEndpoint("http://127.0.0.1:9", { ...quick, attempts: 2 }))).message).toMatch(
      /expected an answer, got no connection/,
    );
  });
});

describe("several servers", () => {
  test("share the work, and one that dies leaves it to the other", async () => {
    let dead = false;
    await using a = await vllmServer(served);
    await using b = await vllmServer(served, { before: () => (dead ? "reset" : undefined) });
    const remote = await openEndpoint([a.address, b.address], { ...quick, concurrency: 2 });
    expect(remote.concurrency).toBe(4);
    const windows = Array.from({ length: 8 }, (_, i) => ids(30, i));
    const own = await Promise.all(
      windows.map(async (tokens) => (await model.score(tokens)).negativeLogLikelihood[28]!),
    );
    const before = [a.requests.length, b.requests.length];
    await Promise.all(windows.map((tokens) => remote.score(tokens)));
    expect(a.requests.length - before[0]!).toBeGreaterThan(1);
    expect(b.requests.length - before[1]!).toBeGreaterThan(1);
    expect(a.mostAtOnce()).toBeLessThanOrEqual(2);
    dead = true;
    const got = await Promise.all(windows.map((tokens) => remote.score(tokens)));
    for (const [i, loss] of own.entries()) expect(got[i]!.negativeLogLikelihood[28]).toBeCloseTo(loss, 6);
  });

  test("of which one is not there are used without it", async () => {
    await using server = await vllmServer(served);
    const remote = await openEndpoint(["http://127.0.0.1:9", server.address], quick);
    expect(remote.addresses).toEqual([server.address]);
    expect(remote.unreachable).toEqual(["http://127.0.0.1:9"]);
  });

  test("that do not serve the same are found out", async () => {
    await using a = await vllmServer(served);
    await using b = await vllmServer({ ...served, encoding: { scaling: "linear:8" } });
    await using c = await sglangServer(served);
    expect((await failure(openEndpoint([a.address, b.address], quick))).message).toMatch(
      /to give the same losses, got a difference of [\d.]+ nats.*name the strategy of each/,
    );
    expect((await failure(openEndpoint([a.address, c.address], quick))).message).toMatch(
      /engine vllm at .* and sglang/,
    );
  });
});

test("a key goes into a header, and into no message", async () => {
  const key = "sk-very-secret";
  await using server = await vllmServer(served, {
    before: (path, _, body) =>
      scores(path) && length(body) > 20 ? { status: 401, body: { error: { message: `bad key ${key}` } } } : undefined,
  });
  const remote = await openEndpoint(server.address, { ...quick, key });
  const error = await failure(remote.score(ids(30)));
  expect(error.message).toMatch(/got 401: bad key …; the server wants a key: .* LONGHAND_API_KEY/);
  expect(server.requests.every(({ headers }) => headers.authorization === `Bearer ${key}`)).toBe(true);
  expect(JSON.stringify(remote)).not.toContain(key);
  for (const bad of [
    "http://user:secret@host",
    "http://host/v1?key=secret",
    "http://host/#secret",
    "ftp://secret",
    "secret",
  ]) {
    expect(() => endpointAddress(bad)).toThrow(/^endpoint: expected an address/);
    if (bad !== "secret") expect(() => endpointAddress(bad)).not.toThrow(/secret/);
  }
});

test("a server runs one strategy, and calls for another are refused", async () => {
  await using server = await vllmServer({ ...served, encoding: { scaling: "linear:2" } });
  const remote = await openEndpoint(server.address, {
    ...quick,
    encoding: parseEvaluationStrategy("linear:2", { trainedLength: 64, target: 128 }).encoding,
  });
  const asked = parseEvaluationStrategy("yarn:2", { trainedLength: 64, target: 128 }).encoding;
  expect((await failure(remote.score(ids(10), asked))).message).toMatch(/which the server runs, got .*yarn/);
  expect((await failure(remote.score(ids(10), { reading: "growing" }))).message).toMatch(/started with/);
});

describe("a whole compare", () => {
  const trainedLength = 64;
  const target = 128;
  const names = ["none", "linear:2", "yarn:2", "window"];

  async function compare(over: ScoringModel, concurrency?: number) {
    const strategies = names.map((name) => parseEvaluationStrategy(name, { trainedLength, target }));
    const text = { name: "text", sha256: "", tokens: seededRandom(3, 1000, 256) };
    const settings: CompareSettings = {
      target,
      trainedLength,
      bos: 256,
      strategies,
      places: placeWindows([1000], target - 1, 3),
      needles: 1,
      needleLengths: [target],
    };
    const job: CompareJob = {
      model: model.description,
      settings,
      texts: [text],
      tokenizer,
      haystack: generatedHaystack(tokenizer),
      seed: 0,
    };
    const identity = compareIdentity(job);
    const run = await openRun(memoryRunFiles(), { kind: "compare", identity, shard: null, session: session() });
    await runCompare(over, job, run, concurrency === undefined ? {} : { concurrency });
    await run.close();
    return { rows: run.rows, result: compareResult(identity, run.rows) };
  }
  const session = () => ({ startedAt: "", command: [], versions: {}, hardware: {} }) as Json;

  test.each(scoring)("through %s equals the local one", async (name) => {
    await using none = await makers[name](served);
    await using linear = await makers[name]({ ...served, encoding: { scaling: "linear:2" } });
    await using yarn = await makers[name]({ ...served, encoding: { scaling: "yarn:2" } });
    const open = async (strategy: string, { address }: TestServer): Promise<EndpointModel> =>
      openEndpoint(address, {
        ...quick,
        encoding: parseEvaluationStrategy(strategy, { trainedLength, target }).encoding,
      });
    const remote = new EndpointsByStrategy([
      await open("none", none),
      await open("linear:2", linear),
      await open("yarn:2", yarn),
    ]);
    const [over, own] = [await compare(remote, remote.concurrency), await compare(model)];
    expect(over.rows.map(({ key }) => key)).toEqual(own.rows.map(({ key }) => key));
    for (const [i, row] of own.rows.entries()) {
      const got = over.rows[i]!;
      if (row.kind === "passkey") {
        expect(got).toMatchObject({ exact: row.exact, rank: row.rank, candidates: row.candidates });
        expect(got.logLikelihood).toBeCloseTo(row.logLikelihood as number, 4);
        continue;
      }
      // Rows hold six digits.
      const pairs = (row.losses as number[]).map((loss, j) => Math.abs(loss - (got.losses as number[])[j]!));
      expect(Math.max(...pairs)).toBeLessThan(2.1e-6);
    }
    for (const [i, row] of own.result.rows.entries()) {
      expect(Math.abs(over.result.rows[i]!.meanNegativeLogLikelihood - row.meanNegativeLogLikelihood)).toBeLessThan(
        1e-6,
      );
    }
  });

  test("keeps what a server computes no number for as a row with the reason", async () => {
    await using none = await vllmServer(served);
    await using linear = await vllmServer(
      { ...served, encoding: { scaling: "linear:2" } },
      {
        change: (_, answer) => poison(answer, 100, null),
      },
    );
    await using yarn = await vllmServer({ ...served, encoding: { scaling: "yarn:2" } });
    const remote = new EndpointsByStrategy(
      await Promise.all(
        [none, linear, yarn].map(({ address }, i) =>
          openEndpoint(address, {
            ...quick,
            encoding: parseEvaluationStrategy(names[i]!, { trainedLength, target }).encoding,
          }),
        ),
      ),
    );
    const { rows } = await compare(remote);
    const failed = rows.filter(({ error }) => error !== undefined);
    expect(failed.map(({ key }) => key)).toContain("loss/linear:2/0");
    expect(failed.every(({ strategy }) => strategy === "linear:2")).toBe(true);
    expect(failed[0]!.error).toMatch(/finite log-probability of the token at position 100/);
  });
});

describe("in force", () => {
  const verdict = async (runs: string, asked = "yarn:2") => {
    const tokens = ids(128, 9);
    const losses = async (scaling: string) => (await model.score(tokens, { scaling })).negativeLogLikelihood;
    const names = ["none", "linear:2", "yarn:2"];
    const candidates = await Promise.all(names.map(async (name) => ({ name, losses: await losses(name) })));
    await using server = await vllmServer({ ...served, encoding: { scaling: runs } });
    const remote = await openEndpoint(server.address, quick);
    const { negativeLogLikelihood } = await remote.score(tokens);
    return inForce(negativeLogLikelihood, candidates, { asked, unscaled: "none", trainedLength: 64 });
  };

  test("what a server was started with is seen in its losses", async () => {
    expect(await verdict("yarn:2")).toMatchObject({ verdict: "in-force", nearest: "yarn:2" });
    expect(await verdict("none")).toMatchObject({ verdict: "not-in-force", nearest: "none" });
    expect(await verdict("linear:2")).toMatchObject({ verdict: "another", nearest: "linear:2" });
    expect(await verdict("linear:8")).toMatchObject({ verdict: "none-of-these" });
  });

  test("what cannot be told apart is said to be so", () => {
    const same = [
      { name: "none", losses: [1, 2, 3] },
      { name: "dynamic:2", losses: [1, 2, 3.001] },
    ];
    expect(inForce([1, 2, 3], same, { asked: "dynamic:2", unscaled: "none", trainedLength: 64 })).toMatchObject({
      verdict: "cannot-tell",
      candidates: [{ short: 0, long: null }, {}],
    });
    expect(() => inForce([1, 2], same, { asked: "dynamic:2", unscaled: "none", trainedLength: 64 })).toThrow(
      /expected 2 losses of none/,
    );
  });
});
