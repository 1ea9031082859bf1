// A model behind HTTP: one server, or several that serve the same, started with one strategy. It scores and generates as a
// loaded model does, so whatever measures takes either.

import type { EncodingOptions, LogLikelihood, ScoreOptions } from "../engine/index.ts";
import type { JsonValue } from "../formats/bytes/index.ts";
import type { TokenScores } from "./answer.ts";
import { EndpointError } from "./endpoint-error.ts";
import type { Ask, Scorer } from "./engine.ts";
import { EndpointPool, type PoolOptions } from "./pool.ts";
import { type EndpointFacts, type Probed, type ProbeOptions, probeEndpoint } from "./probe.ts";
import { endpointAddress } from "./wire.ts";

export interface EndpointOptions extends ProbeOptions, PoolOptions {
  /** What the servers were started with: calls may ask for this and nothing else. As the file says when absent. */
  readonly encoding?: EncodingOptions;
  /** Sent as a bearer token. */
  readonly key?: string;
  /** Of one request: ten minutes when absent. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** Nats between two servers of the same model: kernels differ by less, other weights or positions by more. */
const replicaTolerance = 0.1;

/**
 * Opens servers that serve the same model under the same strategy, after probing each.
 *
 * A server that cannot be reached is left out as long as another can; `unreachable` says which.
 *
 * @param addresses such as "http://127.0.0.1:8000", with or without /v1
 * @throws EndpointError where none can be reached, or one cannot be used, with the reason; RangeError for servers that
 *   differ, a tokenizer that does, or a context that is too short
 */
export async function openEndpoint(
  addresses: string | readonly string[],
  options: EndpointOptions = {},
): Promise<EndpointModel> {
  const list = [...new Set((typeof addresses === "string" ? [addresses] : addresses).map(endpointAddress))];
  const { key, timeoutMs = 600_000, signal, concurrency, attempts, backoffMs, patienceMs } = options;
  const pooling = {
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(attempts === undefined ? {} : { attempts }),
    ...(backoffMs === undefined ? {} : { backoffMs }),
    ...(patienceMs === undefined ? {} : { patienceMs }),
  };
  const connection = (address: string) => ({ address, timeoutMs, ...(key === undefined ? {} : { key }) });
  const opened: { readonly address: string; readonly probed: Probed }[] = [];
  const unreachable: { readonly address: string; readonly error: EndpointError }[] = [];
  await Promise.all(
    list.map(async (address) => {
      // A server that is not there is found out at once; one that loads is waited for.
      const own = new EndpointPool([connection(address)], { ...pooling, attempts: Math.min(attempts ?? 3, 3) });
      try {
        opened.push({ address, probed: await probeEndpoint((request) => own.send(request, signal), options) });
      } catch (error) {
        if (!(error instanceof EndpointError) || !error.retryable) throw error;
        unreachable.push({ address, error });
      }
    }),
  );
  if (opened.length === 0) throw unreachable[0]!.error;
  opened.sort((a, b) => list.indexOf(a.address) - list.indexOf(b.address));
  const [first, ...others] = opened as [(typeof opened)[number], ...typeof opened];
  for (const other of others) expectSame(first, other);
  const pool = new EndpointPool(
    opened.map(({ address }) => connection(address)),
    pooling,
  );
  return new EndpointModel(
    pool,
    first.probed,
    options.encoding,
    unreachable.map(({ address }) => address),
  );
}

type Opened = { readonly address: string; readonly probed: Probed };

function expectSame(a: Opened, b: Opened): void {
  const [x, y] = [a.probed.facts, b.probed.facts];
  for (const key of ["engine", "model", "contextLength"] as const) {
    if (x[key] === y[key]) continue;
    throw new RangeError(
      `endpoint: expected servers of one strategy that are alike, got ${key} ${x[key]} at ${a.address} and ${y[key]} at ` +
        `${b.address}; name the strategy of each: yarn:4=http://…`,
    );
  }
  const [p, q] = [a.probed.sampleLosses, b.probed.sampleLosses];
  if (p === null || q === null) return;
  const most = p.reduce((worst, loss, i) => Math.max(worst, Math.abs(loss - q[i]!)), 0);
  if (most <= replicaTolerance) return;
  throw new RangeError(
    `endpoint: expected servers of one strategy to give the same losses, got a difference of ${most.toFixed(3)} nats ` +
      `between ${a.address} and ${b.address}; name the strategy of each: yarn:4=http://…`,
  );
}

export class EndpointModel {
  readonly facts: EndpointFacts;
  readonly addresses: readonly string[];
  /** Addresses that were given and did not answer. */
  readonly unreachable: readonly string[];
  /** Requests that can be under way at once. */
  readonly concurrency: number;
  readonly encoding: EncodingOptions;
  readonly #pool: EndpointPool;
  readonly #probed: Probed;
  readonly #memory = new Map<string, JsonValue>();

  /** Use `openEndpoint`. */
  constructor(pool: EndpointPool, probed: Probed, encoding: EncodingOptions = {}, unreachable: readonly string[] = []) {
    this.facts = probed.facts;
    this.addresses = pool.addresses;
    this.unreachable = unreachable;
    this.concurrency = pool.concurrency;
    this.encoding = encoding;
    this.#pool = pool;
    this.#probed = probed;
  }

  /**
   * The loss of every token but the first.
   *
   * @throws RangeError for a call under another encoding than the servers', a sequence that is too long, an engine that
   *   gives no losses, or a loss that is not finite; EndpointError for what went wrong on the way
   */
  async score(
    tokens: ArrayLike<number>,
    options: ScoreOptions = {},
  ): Promise<{ readonly negativeLogLikelihood: Float64Array }> {
    const ids = Array.from(tokens);
    if (ids.length < 2) throw new RangeError(`score: expected at least 2 tokens, got ${ids.length}`);
    const { losses } = await this.#scores(this.#probed.score, ids, 1, options);
    options.onProgress?.({ done: losses.length, total: losses.length });
    return { negativeLogLikelihood: losses };
  }

  /** The log-likelihood of a continuation, and whether each of its tokens is the likeliest. Throws as `score` does. */
  async loglikelihood(
    context: ArrayLike<number>,
    continuation: ArrayLike<number>,
    options: ScoreOptions = {},
  ): Promise<LogLikelihood> {
    if (context.length === 0 || continuation.length === 0) {
      throw new RangeError(
        `loglikelihood: expected a context and a continuation of at least one token, got ${context.length} and ` +
          `${continuation.length}`,
      );
    }
    const ids = [...Array.from(context), ...Array.from(continuation)];
    const { losses, greedy } = await this.#scores(this.#probed.scoreContinuation, ids, context.length, options);
    return {
      logLikelihood: -losses.reduce((sum, loss) => sum + loss, 0),
      isGreedy: greedy.every((likeliest) => likeliest === 1),
    };
  }

  /** Greedy tokens after a prompt, which come all at once. */
  async *generate(
    prompt: ArrayLike<number>,
    options: ScoreOptions & { readonly maxTokens?: number; readonly stop?: readonly number[] } = {},
  ): AsyncGenerator<{ readonly token: number }, void> {
    const { maxTokens = 128, stop = [], signal } = options;
    const { generate, title } = this.#probed.engine;
    if (generate === null) throw new RangeError(`generate: expected an engine that gives token ids, got ${title}`);
    this.#expect(prompt.length + maxTokens, options);
    const request = { prompt: Array.from(prompt), maxTokens, stop, model: this.facts.model };
    for (const token of await generate(this.#ask(signal), request)) {
      if (stop.includes(token)) return;
      yield { token };
    }
  }

  /** Ids of a text by the server's tokenizer, without special tokens. */
  async tokenize(text: string, signal?: AbortSignal): Promise<readonly number[]> {
    const { tokenize, title } = this.#probed.engine;
    if (tokenize !== null) return tokenize(this.#ask(signal), text, this.facts.model);
    throw new RangeError(`tokenize: expected an engine that gives token ids of a text, got ${title}`);
  }

  async #scores(
    scorer: Scorer | string,
    ids: readonly number[],
    from: number,
    options: ScoreOptions,
  ): Promise<TokenScores> {
    if (typeof scorer === "string")
      throw new RangeError(`score: expected an engine that scores, got one that does not: ${scorer}`);
    this.#expect(ids.length + 1, options);
    return scorer(this.#ask(options.signal), { tokens: ids, from, model: this.facts.model }, this.#memory);
  }

  #ask(signal: AbortSignal | undefined): Ask {
    return (request) => this.#pool.send(request, signal);
  }

  /** `length` of a call is of no account: a server makes its tables by itself. */
  #expect(length: number, options: ScoreOptions): void {
    const { encodings, logitTemperature, reading } = options;
    if (encodings !== undefined || logitTemperature !== undefined || reading === "growing") {
      throw new RangeError(
        "score: expected positions that the server was started with, got encodings, logitTemperature or reading of a call",
      );
    }
    const asked = encodingKey(options);
    if (asked !== defaultKey && asked !== encodingKey(this.encoding)) {
      throw new RangeError(`score: expected ${encodingKey(this.encoding)}, which the server runs, got ${asked}`);
    }
    const { contextLength } = this.facts;
    if (contextLength !== null && length > contextLength) {
      throw new RangeError(
        `score: expected at most ${contextLength} tokens, prompt and generated ones, got ${length}; start the server with ` +
          this.#probed.engine.lengthFlag(length),
      );
    }
  }
}

/** Equal for equal strategies. */
export function encodingKey({ scaling, drop }: EncodingOptions): string {
  if (drop !== undefined && drop !== false) return JSON.stringify({ drop });
  return JSON.stringify(scaling ?? { kind: "as-is" });
}

const defaultKey = encodingKey({});
