// A decoder's sessions with its key/value cache. It knows which tokens the cache holds and under which tables they were
// computed, so that a caller states the whole sequence it wants and only what is not yet there runs: prefixes are shared,
// a changed table starts anew, keys of two tables never mix. One call at a time; others wait.

import type { DecoderProgram, ModelSpec, PositionTables, WindowCache } from "../models/index.ts";
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
  /** The likeliest token after the last one, in place of logits: the vocabulary stays in the graph. */
  readonly likeliest?: boolean;
  /** Few rows may run in the session for them, whose products round activations; logits only. */
  readonly fast?: boolean;
}

export interface Computed {
  /** Index i: the loss of token lossesFrom + i. */
  readonly losses: Float64Array;
  /** [wanted.logits, V]; the view is valid until the next call. */
  readonly logits: Float32Array;
  /** The first of equals; null when it was not wanted. */
  readonly likeliest: number | null;
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
  /** The caches of layers with a window. */
  readonly windows: readonly WindowCache[];
  /** Whether the backend's attention keeps a chunk's scores in memory; false when absent. */
  readonly keepsScores?: boolean;
  /** The same graph without losses, with rounded activations and other kernels, over the same cache; loaded when it is
   *  first wanted. */
  readonly fast?: () => Promise<Session>;
}

/** Rows that a window's cache keeps past its window, so that a sequence can be taken up again a little before its end. */
function rewindRows(window: number): number {
  return Math.min(256, window);
}

/** Rows of a window's cache for sequences of any length: what it keeps, and a chunk. Chunks that are larger make it grow. */
function mostRows(window: number): number {
  return window - 1 + rewindRows(window) + Math.min(512, 2 * window);
}

/** Sizes of the caches of a program for sequences of so many tokens. */
export function cacheSizes(
  { graph, spareRows, windows }: Pick<DecoderProgram, "graph" | "spareRows" | "windows">,
  length: number,
): Record<string, number> {
  const sizes: Record<string, number> = {};
  if (graph.states.some(({ shape }) => shape.includes("capacity"))) sizes.capacity = length + spareRows;
  for (const { capacity, window } of windows) sizes[capacity] = Math.min(length, mostRows(window));
  return sizes;
}

/** A window's cache as it stands. */
interface WindowState {
  readonly cache: WindowCache;
  rows: number;
  /** The position of row 0. */
  first: number;
}

export class Decoder {
  readonly #exact: Session;
  readonly #sizes: (length: number) => Record<string, number>;
  readonly #loadFast: (() => Promise<Session>) | undefined;
  #fast: Session | undefined;
  readonly #keepsScores: boolean;
  readonly #spec: ModelSpec;
  readonly #limit: number;
  #capacity: number;
  readonly #windows: readonly WindowState[];
  #cached: Int32Array = new Int32Array(0);
  #length = 0;
  /** Rows of the cache that the exact session computed. */
  #exactLength = 0;
  #key = "";
  #last: Promise<unknown> = Promise.resolve();

  /** @param limit the cache never grows past so many tokens */
  constructor(sessions: DecoderSessions, spec: ModelSpec, capacity: number, limit: number) {
    this.#exact = sessions.exact;
    this.#loadFast = sessions.fast;
    this.#keepsScores = sessions.keepsScores ?? false;
    this.#spec = spec;
    this.#capacity = capacity;
    this.#limit = limit;
    const { graph } = this.#exact;
    this.#sizes = (length) => cacheSizes({ graph, spareRows: sessions.spareRows, windows: sessions.windows }, length);
    const sizes = this.#sizes(capacity);
    this.#windows = sessions.windows.map((cache) => ({ cache, rows: sizes[cache.capacity]!, first: 0 }));
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
    const sizes = this.#sizes(capacity);
    // A chunk may have made a window's cache larger than that.
    for (const { cache, rows } of this.#windows) sizes[cache.capacity] = Math.max(rows, sizes[cache.capacity]!);
    await this.#exact.resize(sizes);
    for (const state of this.#windows) state.rows = sizes[state.cache.capacity]!;
    this.#capacity = capacity;
  }

  /** Room for `count` tokens after `past` ones in the caches of windows. */
  async #moveWindows(past: number, count: number): Promise<void> {
    for (const state of this.#windows) {
      const { window, capacity, states } = state.cache;
      if (past === 0) state.first = 0;
      const filled = past - state.first;
      if (filled + count <= state.rows) continue;
      const kept = Math.min(filled, window - 1 + rewindRows(window));
      if (kept < filled) {
        await this.#exact.moveRows(states, 2, filled - kept, kept);
        state.first = past - kept;
      }
      if (kept + count <= state.rows) continue;
      const rows = Math.ceil((kept + count) / 64) * 64;
      await this.#exact.resize({ [capacity]: rows });
      state.rows = rows;
    }
  }

  /** Where the computation can go on: at `past` if the windows' caches still hold what its query sees, else at the start. */
  #resumable(past: number): number {
    const holds = ({ cache, first }: WindowState): boolean => first <= Math.max(0, past - cache.window + 1);
    return this.#windows.every(holds) ? past : 0;
  }

  /** A chunk's positions, with tables that begin where the windows' caches do. */
  #positionFeeds(tables: PositionTables, past: number, count: number): Record<string, Tensor> {
    const first = new Map(this.#windows.map((state) => [state.cache.group, state.first]));
    const feeds = tables.feeds(past, count, first);
    for (const { cache, first } of this.#windows) feeds[cache.pastLength] = scalarOf(past - first);
    return feeds;
  }

  async #run(tokens: Int32Array, tables: PositionTables, wanted: Wanted, options: RunOptions): Promise<Computed> {
    options.signal?.throwIfAborted();
    this.expectRoom(tokens.length);
    // A loss of token i needs row i − 1; the last token itself need not run for its own loss.
    const lossesFrom = wanted.lossesFrom ?? tokens.length;
    const { likeliest = false } = wanted;
    const logits = likeliest ? 1 : (wanted.logits ?? 0);
    const end = logits > 0 ? tokens.length : wanted.lossesFrom === undefined ? tokens.length : tokens.length - 1;
    const firstRow = Math.min(wanted.lossesFrom === undefined ? end : lossesFrom - 1, end - logits);
    const fast =
      wanted.fast === true && logits > 0 && wanted.lossesFrom === undefined ? await this.#fastSession() : null;
    const usable = fast === null ? this.#exactLength : this.#length;
    const known = commonPrefix(this.#cached, this.#length, tokens);
    this.#expectTokens(tokens, known);
    let past = tables.key === this.#key ? this.#resumable(Math.min(known, usable, firstRow)) : 0;
    await this.#reserve(Math.max(end, 1));
    const { vocabSize } = this.#spec;
    const losses = new Float64Array(Math.max(0, tokens.length - lossesFrom));
    let out: Float32Array = new Float32Array(0);
    let best: number | null = null;
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
      await this.#moveWindows(past, count);
      const feeds: Record<string, Tensor> = {
        ...this.#positionFeeds(tables, past, count),
        tokens: indices(count, (i) => tokens[past + i]!),
        pastLength: scalarOf(past),
        logitRows: indices(numLogits, (i) => logitFrom - past + i),
      };
      if (session === this.#exact) {
        feeds.rows = indices(numLosses, (i) => lossRows.from - past + i);
        feeds.targets = indices(numLosses, (i) => tokens[lossRows.from + i + 1]!);
      }
      const ofLogits = likeliest ? ["likeliest", "logitSums"] : ["logits"];
      const fetches = [...(numLosses > 0 ? ["losses"] : []), ...(numLogits > 0 ? ofLogits : [])];
      const got = await session.run(feeds, fetches);
      if (session === this.#exact && past <= this.#exactLength) this.#exactLength = past + count;
      if (numLosses > 0) losses.set(got.losses!.data as Float32Array, lossRows.from + 1 - lossesFrom);
      if (numLogits > 0 && likeliest) {
        expectFinite("sum of logits", got.logitSums!.data as Float32Array, 0);
        best = Number(got.likeliest!.data[0]);
      } else if (numLogits > 0) {
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
    return { losses, logits: out, likeliest: best, tokensRun: end - start };
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
    const has = (name: string): boolean => inputs.some((input) => input.name === name);
    const views = layers.some(({ group }) => has(`viewMask.${group}.0`));
    const keepsScores =
      views ||
      this.#keepsScores ||
      layers.some(({ attention, group }) => attention.softcap !== null || has(`bias.${group}`));
    if (!keepsScores) return 512;
    const heads = Math.max(...layers.map(({ attention }) => attention.numHeads));
    // Views' scores stand there three times: of each view, side by side, and as a softmax.
    const copies = views ? 3 : 1;
    return Math.min(512, Math.max(16, Math.floor(scoreBytes / (4 * copies * heads * length))));
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

function scalarOf(value: number): Tensor {
  return tensor("i64", [], BigInt64Array.of(BigInt(value)));
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
