// Reading a server's answer: what is not as the contract says is an error that names the place, never a default.

import { isJsonObject, type JsonObject, type JsonValue } from "../formats/bytes/index.ts";
import { EndpointError } from "./endpoint-error.ts";

/** Log-probabilities of tokens from `from` on, as a server gave them. */
export interface TokenScores {
  /** Nats: index i is the loss of token from + i given all before it. */
  readonly losses: Float64Array;
  /** 1 where the token is the likeliest at its place. */
  readonly greedy: Uint8Array;
}

export function objectAt(value: JsonValue | undefined, what: string): JsonObject {
  if (isJsonObject(value)) return value;
  throw unexpected(what, "an object", value);
}

export function listAt(value: JsonValue | undefined, what: string): readonly JsonValue[] {
  if (Array.isArray(value)) return value as readonly JsonValue[];
  throw unexpected(what, "a list", value);
}

export function tokensAt(value: JsonValue | undefined, what: string): readonly number[] {
  const list = listAt(value, what);
  if (list.every((id) => Number.isInteger(id))) return list as readonly number[];
  throw unexpected(what, "token ids", value);
}

/** choices[0] of OpenAI's form. */
export function firstChoice(answer: JsonValue, engine: string): JsonObject {
  const choices = listAt(objectAt(answer, engine).choices, `${engine}: choices`);
  return objectAt(choices[0], `${engine}: choices[0]`);
}

export function unexpected(what: string, expected: string, got: JsonValue | undefined): EndpointError {
  const text = got === undefined ? "none" : (JSON.stringify(got) ?? "none");
  return new EndpointError(`${what}: expected ${expected}, got ${text.length > 120 ? `${text.slice(0, 120)}…` : text}`);
}

/**
 * The loss that a log-probability is.
 *
 * A position without a number is a RangeError and no EndpointError: the server is as it should be, and the model gave no
 * finite loss there; what measures keeps that as a result.
 */
export function lossOf(logprob: JsonValue | undefined, position: number, engine: string): number {
  if (typeof logprob !== "number") {
    throw new RangeError(
      `${engine}: expected a finite log-probability of the token at position ${position}, got ` +
        `${JSON.stringify(logprob) ?? "none"}; a server that computes NaN gives none`,
    );
  }
  if (!(logprob > -9998)) {
    throw new RangeError(
      `${engine}: expected a finite log-probability of the token at position ${position}, got ${logprob}, which stands ` +
        "for minus infinity",
    );
  }
  if (logprob > 1e-3) {
    throw new EndpointError(
      `${engine}: expected a log-probability of at most 0 for the token at position ${position}, got ${logprob}`,
    );
  }
  return -logprob;
}

/** A prompt that was cut, or to which something was added, in whichever way the answer says so. */
export function expectCount(got: JsonValue | undefined, sent: number, engine: string): void {
  if (got === undefined || got === null) return;
  if (got === sent) return;
  throw new EndpointError(
    `${engine}: expected ${sent} tokens of the prompt to be read, got ${String(got)}; ` +
      (Number(got) < sent
        ? "the server cuts long prompts: start it with a longer context"
        : "the server adds tokens of its own: it must take the prompt as it is"),
  );
}

export function expectSameTokens(
  got: readonly number[],
  sent: readonly number[],
  engine: string,
  same: (got: number, sent: number) => boolean = (a, b) => a === b,
): void {
  expectCount(got.length, sent.length, engine);
  const at = sent.findIndex((id, i) => !same(got[i]!, id));
  if (at < 0) return;
  throw new EndpointError(
    `${engine}: expected token ${sent[at]} at position ${at}, got ${got[at]}: the server read another prompt than it was ` +
      "sent",
  );
}
