// Servers that do the same work: requests go to whichever is free, a failed one goes on elsewhere or later, and a server
// that failed rests before it is asked again.

import type { JsonValue } from "../formats/bytes/index.ts";
import { EndpointError } from "./endpoint-error.ts";
import { type Connection, send, type WireRequest } from "./wire.ts";

export interface PoolOptions {
  /** Requests at once to each server: 4 when absent. */
  readonly concurrency?: number;
  /** Tries of a request before its error is the caller's: 6 when absent. A server that is busy or loading (429, 503)
   *  costs none as long as `patienceMs` lasts. */
  readonly attempts?: number;
  /** After the first failure in a row; doubled with each: 500 when absent. */
  readonly backoffMs?: number;
  /** How long a busy or loading server is waited for: five minutes when absent. */
  readonly patienceMs?: number;
}

interface Lane {
  readonly connection: Connection;
  inFlight: number;
  failures: number;
  /** `performance.now()` until which it rests. */
  restsUntil: number;
}

const longestBackoffMs = 10_000;

export class EndpointPool {
  readonly concurrency: number;
  readonly #lanes: readonly Lane[];
  readonly #attempts: number;
  readonly #backoffMs: number;
  readonly #patienceMs: number;
  #waiting: (() => void)[] = [];

  constructor(connections: readonly Connection[], options: PoolOptions = {}) {
    if (connections.length === 0) throw new RangeError("endpoint: expected at least one address, got none");
    const { concurrency = 4, attempts = 6, backoffMs = 500, patienceMs = 300_000 } = options;
    if (!Number.isInteger(concurrency) || concurrency < 1) {
      throw new RangeError(`endpoint: expected a concurrency that is an integer of at least 1, got ${concurrency}`);
    }
    this.#lanes = connections.map((connection) => ({ connection, inFlight: 0, failures: 0, restsUntil: 0 }));
    this.concurrency = concurrency * connections.length;
    this.#attempts = attempts;
    this.#backoffMs = backoffMs;
    this.#patienceMs = patienceMs;
    this.#limit = concurrency;
  }

  readonly #limit: number;

  get addresses(): readonly string[] {
    return this.#lanes.map(({ connection }) => connection.address);
  }

  /**
   * The answer to a request, from one of the servers.
   *
   * @throws EndpointError, the last one, when the tries are used up or it makes no sense to try again; the signal's reason
   */
  async send(request: WireRequest, signal?: AbortSignal): Promise<JsonValue> {
    const began = performance.now();
    for (let attempt = 1; ; ) {
      const lane = await this.#acquire(signal);
      try {
        const answer = await send(lane.connection, request, signal);
        lane.failures = 0;
        lane.restsUntil = 0;
        return answer;
      } catch (error) {
        if (!(error instanceof EndpointError) || !error.retryable) throw error;
        const busy = error.status === 429 || error.status === 503;
        if (!busy) attempt++;
        lane.failures++;
        const backoff = Math.min(this.#backoffMs * 2 ** (lane.failures - 1), longestBackoffMs);
        lane.restsUntil = performance.now() + Math.max(backoff, error.retryAfterMs ?? 0);
        if (attempt > this.#attempts || (busy && performance.now() - began > this.#patienceMs)) throw error;
      } finally {
        lane.inFlight--;
        this.#wake();
      }
    }
  }

  /** A lane with room, the least busy of those that do not rest. */
  async #acquire(signal: AbortSignal | undefined): Promise<Lane> {
    for (;;) {
      signal?.throwIfAborted();
      const now = performance.now();
      const free = this.#lanes
        .filter(({ inFlight }) => inFlight < this.#limit)
        .sort((a, b) => Math.max(a.restsUntil - now, 0) - Math.max(b.restsUntil - now, 0) || a.inFlight - b.inFlight);
      const lane = free[0];
      if (lane !== undefined && lane.restsUntil <= now) {
        lane.inFlight++;
        return lane;
      }
      await this.#change(lane === undefined ? null : lane.restsUntil - now, signal);
    }
  }

  /** Until a request ended, the time is over, or the signal is aborted. */
  #change(ms: number | null, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const timer = ms === null ? undefined : setTimeout(done, ms);
      const waiting = this.#waiting;
      waiting.push(done);
      signal?.addEventListener("abort", done, { once: true });
      function done(): void {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        resolve();
      }
    });
  }

  #wake(): void {
    const woken = this.#waiting;
    this.#waiting = [];
    for (const done of woken) done();
  }
}
