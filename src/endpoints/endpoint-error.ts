// What went wrong between us and a server: it did not answer, refused, or answered what its contract does not allow.

export interface EndpointErrorFacts {
  /** HTTP's status, where there was an answer. */
  readonly status?: number;
  /** Whether the same request may succeed later or elsewhere: 408, 429, 5xx, no connection. */
  readonly retryable?: boolean;
  /** What the server asked to wait, milliseconds. */
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
}

export class EndpointError extends Error {
  override readonly name = "EndpointError";
  readonly status: number | null;
  readonly retryable: boolean;
  readonly retryAfterMs: number | null;

  constructor(message: string, facts: EndpointErrorFacts = {}) {
    super(message, facts.cause === undefined ? {} : { cause: facts.cause });
    this.status = facts.status ?? null;
    this.retryable = facts.retryable ?? false;
    this.retryAfterMs = facts.retryAfterMs ?? null;
  }
}
