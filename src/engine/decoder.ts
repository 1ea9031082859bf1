// A decoder's sessions with its key/value cache. It knows which tokens the cache holds and under which tables they were
// computed, so that a caller states the whole sequence it wants and only what is not yet there runs: prefixes are shared,
// a changed table starts anew, keys of two tables never mix. One call at a time; others wait.

import type { ModelSpec, PositionTables } from "../models/index.ts";
import { type Tensor, tensor } from "../tensor/index.ts";
import type { Session } from "./backend.ts";

export interface RunOptions {
  /** Tokens a run; 512 when absent, fewer where scores exist in memory. */
  readonly chunkSize?: number;
  /** Checked before every chunk. */
  readonly signal?: AbortSignal;
  /** Called after every chunk. */
  readonly onProgress?: (progress: Progress) => void;
}

export interface Progress {
  /** Tokens done and in all, of this call. */
  readonly done: number;
  readonly total: number;
}

/** What a call wants of the rows that it runs. */
export interface Wanted {
  /** The loss of tokens from this index on (at least 1), given those before each. */
  readonly lossesFrom?: number;
  /** The logits after each of the last so many tokens. */
  readonly logits?: number;
  /** Few rows may run in the session for them, whose products round activations; logits only. */
  readonly fast?: boolean;
}

export interface Computed {
  /** Index i: the loss of token lossesFrom + i. */
  readonly losses: Float64Array;
  /** [wanted.logits, V]; the view is valid until the next call. */
  readonly logits: Float32Array;
  /** Tokens that ran, those reused not counted. */
  readonly tokensRun: number;
}

/** Above this, the scores of a chunk in layers that keep them make it smaller. */
const scoreBytes = 64 * 2 ** 20;
/** Up to so many rows the session for few rows is the faster one (measured: they cross at 20 to 32). */
const fewRows = 20;
const none = new BigInt64Array(0);

export interface DecoderSessions {
  /** Exact in float32. */
  readonly exact: Session;
  /** Rows of the cache that a run writes past its tokens. */
  readonly spareRows: number;
  /** The same graph without losses, with rounded activations and other kernels, over the same cache; loaded when it is
   *  first wanted. */
  readonly fast?: () => Promise<Session>;
}

export class Decoder {
  readonly #exact: Session;
  readonly #spareRows: number;
  readonly #loadFast: (() => Promise<Session>) | undefined;
  #fast: Session | undefined;
  readonly #spec: ModelSpec;
  readonly #limit: number;
  #capacity: number;
  #cached: Int32Array = new Int32Array(0);
  #length = 0;
  /** Rows of the cache that the exact session computed. */
  #exactLength = 0;
  #key = "";
  #last: Promise<unknown> = Promise.resolve();

  /** @param limit the cache never grows past so many tokens */
  constructor(sessions: DecoderSessions, spec: ModelSpec, capacity: number, limit: number) {
    this.#exact = sessions.exact;
    this.#spareRows = sessions.spareRows;
    this.#loadFast = sessions.fast;
    this.#spec = spec;
    this.#capacity = capacity;
    this.#limit = limit;
  }

  /** The most tokens that a sequence may have. */
  get limit(): number {
    return this.#limit;
  }

  /** Tokens that the cache holds. */
  get length(): number {
    return this.#length;
  }

  /** Throws RangeError, before any work, for a sequence that cannot fit. */
  expectRoom(length: number): void {
    if (length > this.#limit) {
      throw new RangeError(
        `decoder: expected at most ${this.#limit} tokens, the capacity that the model was loaded with, got ${length}`,
      );
    }
  }

  /** Makes room for a sequence at once, where its final length is known. */
  reserve(length: number): Promise<void> {
    this.expectRoom(length);
    return this.#queue(() => this.#reserve(length));
  }

  /**
   * Brings the cache to `tokens` and gives what is wanted of its rows.
   *
   * @throws RangeError for a token outside the vocabulary or a sequence past the capacity, before any work; the signal's
   *   reason when it is aborted; RangeError when a loss or a logit is not finite
   */
  run(tokens: Int32Array, tables: PositionTables, wanted: Wanted = {}, options: RunOptions = {}): Promise<Computed> {
    return this.#queue(() => this.#run(tokens, tables, wanted, options));
  }

  async dispose(): Promise<void> {
    await this.#last.catch(() => undefined);
    await this.#fast?.dispose();
    await this.#exact.dispose();
  }

  #queue<T>(body: () => Promise<T>): Promise<T> {
    const next = this.#last.then(body, body);
    this.#last = next.catch(() => undefined);
    return next;
  }

  async #reserve(length: number): Promise<void> {
    if (length <= this.#capacity) return;
    // Steps of 64, so that a growing sequence does not move its cache at every token.
    const capacity = Math.min(this.#limit, Math.max(Math.ceil(length / 64) * 64, length));
    await this.#exact.resize({ capacity: capacity + this.#spareRows });
    this.#capacity = capacity;
  }

  async #run(tokens: Int32Array, tables: PositionTables, wanted: Wanted, options: RunOptions): Promise<Computed> {
    options.signal?.throwIfAborted();
    this.expectRoom(tokens.length);
    // A loss of token i needs row i − 1; the last token itself need not run for its own loss.
    const lossesFrom = wanted.lossesFrom ?? tokens.length;
    const logits = wanted.logits ?? 0;
    const end = logits > 0 ? tokens.length : wanted.lossesFrom === undefined ? tokens.length : tokens.length - 1;
    const firstRow = Math.min(wanted.lossesFrom === undefined ? end : lossesFrom - 1, end - logits);
    const fast =
      wanted.fast === true && logits > 0 && wanted.lossesFrom === undefined ? await this.#fastSession() : null;
    const usable = fast === null ? this.#exactLength : this.#length;
    const known = commonPrefix(this.#cached, this.#length, tokens);
    this.#expectTokens(tokens, known);
    let past = tables.key === this.#key ? Math.min(known, usable, firstRow) : 0;
    await this.#reserve(Math.max(end, 1));
    const { vocabSize } = this.#spec;
    const losses = new Float64Array(Math.max(0, tokens.length - lossesFrom));
    let out: Float32Array = new Float32Array(0);
    const start = past;
    this.#key = tables.key;
    this.#remember(tokens, past);
    const chunkSize = options.chunkSize ?? this.#chunkSize(end);
    while (past < end) {
      options.signal?.throwIfAborted();
      // The rows whose logits are wanted run apart from the many before them.
      const session = fast !== null && end - past <= Math.max(fewRows, logits) ? fast : this.#exact;
      const count = Math.min(chunkSize, (fast === null || session === fast ? end : end - logits) - past);
      const lossRows = { from: Math.max(lossesFrom - 1, past), to: Math.min(past + count, tokens.length - 1) };
      const numLosses = Math.max(0, lossRows.to - lossRows.from);
      const logitFrom = Math.max(end - logits, past);
      const numLogits = logits === 0 ? 0 : Math.max(0, past + count - logitFrom);
      const feeds: Record<string, Tensor> = {
        ...tables.feeds(past, count),
        tokens: indices(count, (i) => tokens[past + i]!),
        pastLength: tensor("i64", [], BigInt64Array.of(BigInt(past))),
        logitRows: indices(numLogits, (i) => logitFrom - past + i),
      };
      if (session === this.#exact) {
        feeds.rows = indices(numLosses, (i) => lossRows.from - past + i);
        feeds.targets = indices(numLosses, (i) => tokens[lossRows.from + i + 1]!);
      }
      const fetches = [...(numLosses > 0 ? ["losses"] : []), ...(numLogits > 0 ? ["logits"] : [])];
      const got = await session.run(feeds, fetches);
      if (session === this.#exact && past <= this.#exactLength) this.#exactLength = past + count;
      if (numLosses > 0) losses.set(got.losses!.data as Float32Array, lossRows.from + 1 - lossesFrom);
      if (numLogits > 0) {
        const rows = got.logits!.data as Float32Array;
        if (numLogits === logits) {
          out = rows;
        } else {
          if (out.length === 0) out = new Float32Array(logits * vocabSize);
          out.set(rows, (logitFrom - (end - logits)) * vocabSize);
        }
      }
      past += count;
      this.#remember(tokens, past);
      options.onProgress?.({ done: past - start, total: end - start });
    }
    expectFinite("loss", losses, lossesFrom);
    expectFinite("logit", out, 0);
    return { losses, logits: out, tokensRun: end - start };
  }

  async #fastSession(): Promise<Session | null> {
    if (this.#loadFast === undefined) return null;
    this.#fast ??= await this.#loadFast();
    return this.#fast;
  }

  #remember(tokens: Int32Array, length: number): void {
    if (this.#cached.length < length) {
      const grown = new Int32Array(Math.max(length, 2 * this.#cached.length));
      grown.set(this.#cached.subarray(0, this.#length));
      this.#cached = grown;
    }
    const from = Math.min(this.#length, length);
    // What is shared is equal already; what is new is written.
    this.#cached.set(tokens.subarray(from, length), from);
    this.#length = length;
    this.#exactLength = Math.min(this.#exactLength, length);
  }

  /** Throws RangeError for no tokens, or one outside the vocabulary; the first `known` are in the cache already. */
  #expectTokens(tokens: Int32Array, known: number): void {
    const { vocabSize } = this.#spec;
    if (tokens.length === 0) throw new RangeError("decoder: expected at least one token, got none");
    for (let i = known; i < tokens.length; i++) {
      if (tokens[i]! < 0 || tokens[i]! >= vocabSize) {
        throw new RangeError(`decoder: expected tokens from 0 to ${vocabSize - 1}, got ${tokens[i]} at index ${i}`);
      }
    }
  }

  /** 512, or fewer where some layer's scores or bias [H, T, S] exist in memory. */
  #chunkSize(length: number): number {
    const { layers } = this.#spec;
    const { inputs } = this.#exact.graph;
    const keepsScores = layers.some(
      ({ attention, group }) => attention.softcap !== null || inputs.some(({ name }) => name === `bias.${group}`),
    );
    if (!keepsScores) return 512;
    const heads = Math.max(...layers.map(({ attention }) => attention.numHeads));
    return Math.min(512, Math.max(16, Math.floor(scoreBytes / (4 * heads * length))));
  }
}

function commonPrefix(cached: Int32Array, length: number, tokens: Int32Array): number {
  const most = Math.min(length, tokens.length);
  let i = 0;
  while (i < most && cached[i] === tokens[i]) i++;
  return i;
}

function indices(count: number, at: (i: number) => number): Tensor {
  if (count === 0) return tensor("i64", [0], none);
  return tensor(
    "i64",
    [count],
    BigInt64Array.from({ length: count }, (_, i) => BigInt(at(i))),
  );
}

function expectFinite(what: string, values: ArrayLike<number>, first: number): void {
  for (let i = 0; i < values.length; i++) {
    if (!Number.isFinite(values[i]!)) {
      throw new RangeError(
        `decoder: expected every ${what} to be finite, got ${values[i]} at index ${first + i}; ` +
          "the weights or the tables hold numbers too large for float32",
      );
    }
  }
}
