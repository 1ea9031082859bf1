// One request to one server, by fetch alone. The key goes into a header and nowhere else: never into a message, and a
// redirect is an error instead of a way for it to leave.

import type { JsonObject, JsonValue } from "../formats/bytes/index.ts";
import { EndpointError } from "./endpoint-error.ts";

/** A request, as data: what is sent where. */
export interface WireRequest {
  /** From the server's root: "/v1/completions". */
  readonly path: string;
  /** Posted as JSON; a GET when absent. */
  readonly body?: JsonObject;
  /** "events": the answer is a stream of server-sent events, and its `data:` lines are read as a list. */
  readonly answer?: "json" | "events";
}

export interface Connection {
  /** As `endpointAddress` gives it. */
  readonly address: string;
  /** Sent as a bearer token. */
  readonly key?: string;
  /** Of one request, from sending to the last byte. */
  readonly timeoutMs: number;
}

/** An answer of 100,000 tokens is about 10 MB. */
const maxAnswerBytes = 512 * 2 ** 20;

/**
 * A server's root, without the /v1 that clients of OpenAI's API write.
 *
 * @throws RangeError for what is no http(s) address, or holds a user, a password, a query or a fragment
 * @example
 * ```ts
 * import { endpointAddress } from "longhand/endpoints";
 * endpointAddress("http://127.0.0.1:8000/v1/"); // => "http://127.0.0.1:8000"
 * ```
 */
export function endpointAddress(text: string): string {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new RangeError(`endpoint: expected an address such as http://127.0.0.1:8000, got ${JSON.stringify(text)}`);
  }
  // The address itself is in no message from here on: it may hold a secret.
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new RangeError(`endpoint: expected an address that begins with http:// or https://, got ${url.protocol}`);
  }
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    throw new RangeError(
      `endpoint: expected an address without user, password, query and fragment, got one at ${url.host}; ` +
        "a key goes into the environment variable LONGHAND_API_KEY",
    );
  }
  return (url.origin + url.pathname).replace(/\/+$/, "").replace(/\/v1$/, "");
}

/**
 * Sends a request once.
 *
 * @throws EndpointError for no connection, a time-out, a status other than 2xx, or an answer that is no JSON; the signal's
 *   reason when it is aborted
 */
export async function send(connection: Connection, request: WireRequest, signal?: AbortSignal): Promise<JsonValue> {
  const { address, key, timeoutMs } = connection;
  const where = `${address}${request.path}`;
  signal?.throwIfAborted();
  const timeout = AbortSignal.timeout(timeoutMs);
  const either = signal === undefined ? timeout : AbortSignal.any([signal, timeout]);
  const post = request.body === undefined ? {} : { method: "POST", body: JSON.stringify(request.body) };
  let status: number;
  let retryAfter: string | null;
  let text: string;
  try {
    const response = await fetch(where, {
      ...post,
      headers: {
        ...(request.body === undefined ? {} : { "content-type": "application/json" }),
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      },
      signal: either,
      redirect: "error",
    });
    status = response.status;
    retryAfter = response.headers.get("retry-after");
    text = await readText(response, where);
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof EndpointError) throw error;
    throw connectionError(error, where, timeout.aborted ? timeoutMs : null);
  }
  if (status < 200 || status > 299) throw statusError(status, text, where, key, retryAfter);
  if (request.answer === "events") return eventsOf(text, where);
  return parseAnswer(text, where);
}

async function readText(response: Response, where: string): Promise<string> {
  if (response.body === null) return "";
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  const parts: string[] = [];
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    bytes += value.byteLength;
    if (bytes > maxAnswerBytes) {
      await reader.cancel();
      throw new EndpointError(`${where}: expected an answer of at most ${maxAnswerBytes} bytes, got more`);
    }
    parts.push(decoder.decode(value, { stream: true }));
  }
  parts.push(decoder.decode());
  return parts.join("");
}

function connectionError(error: unknown, where: string, timedOutAfter: number | null): EndpointError {
  if (timedOutAfter !== null) {
    return new EndpointError(`${where}: expected an answer within ${timedOutAfter / 1000} s, got none`, {
      retryable: true,
      cause: error,
    });
  }
  const cause = (error as { cause?: { code?: unknown; message?: unknown } }).cause;
  const code = typeof cause?.code === "string" ? cause.code : String(cause?.message ?? (error as Error).message);
  // Node's fetch gives up on its own after 300 s without the answer's head, and would so again.
  const patience = code === "UND_ERR_HEADERS_TIMEOUT";
  const redirected = /redirect/i.test(code);
  return new EndpointError(
    patience
      ? `${where}: expected the begin of an answer within 300 s, which is as long as Node's fetch waits, got none; ` +
          "use shorter windows or a faster server"
      : redirected
        ? `${where}: expected an answer, got a redirect; name the address that it leads to`
        : `${where}: expected an answer, got no connection (${code}); is the server running?`,
    { retryable: !patience && !redirected, cause: error },
  );
}

function statusError(
  status: number,
  text: string,
  where: string,
  key: string | undefined,
  retryAfter: string | null,
): EndpointError {
  let said = messageOf(text).replace(/\s+/g, " ").trim();
  if (key !== undefined && key !== "") said = said.replaceAll(key, "…");
  if (said.length > 400) said = `${said.slice(0, 400)}…`;
  const advice =
    status === 401 || status === 403
      ? "; the server wants a key: put it into the environment variable LONGHAND_API_KEY"
      : /out of memory/i.test(said)
        ? "; log-probabilities of a prompt need [tokens, vocabulary] in float32: start vLLM with " +
          "--max-num-batched-tokens 2048 and a lower --gpu-memory-utilization"
        : "";
  const seconds = Number(retryAfter);
  const waits = retryAfter !== null && Number.isFinite(seconds) && seconds >= 0;
  return new EndpointError(`${where}: expected status 200, got ${status}${said === "" ? "" : `: ${said}`}${advice}`, {
    status,
    retryable: status === 408 || status === 429 || status >= 500,
    ...(waits ? { retryAfterMs: Math.min(seconds, 120) * 1000 } : {}),
  });
}

/** What a server says of an error: OpenAI's form, FastAPI's, or plain text. */
function messageOf(text: string): string {
  try {
    const value = JSON.parse(text) as { error?: unknown; message?: unknown; detail?: unknown } | string | null;
    if (typeof value === "string") return value;
    const error = value?.error as { message?: unknown } | string | undefined;
    const said = (typeof error === "object" ? error?.message : error) ?? value?.message ?? value?.detail;
    if (said !== undefined) return typeof said === "string" ? said : JSON.stringify(said);
  } catch {
    // Plain text, or a proxy's page.
  }
  return text;
}

function parseAnswer(text: string, where: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch (error) {
    // Python's json writes NaN and Infinity as bare words.
    const bare = /[[:,]\s*(NaN|-?Infinity)\b/.exec(text)?.[1];
    if (bare !== undefined) {
      throw new RangeError(`${where}: expected finite log-probabilities, got ${bare}: the server computed no number`);
    }
    const begin = JSON.stringify(text.slice(0, 80));
    throw new EndpointError(`${where}: expected JSON, got ${begin}; is this the address of an inference server?`, {
      cause: error,
    });
  }
}

function eventsOf(text: string, where: string): JsonValue {
  return text
    .split("\n")
    .filter((line) => line.startsWith("data:"))
    .map((line) => line.slice(5).trim())
    .filter((data) => data !== "[DONE]")
    .map((data) => parseAnswer(data, where));
}
