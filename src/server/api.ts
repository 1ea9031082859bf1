// What routes of the lab's API share: bounds of a request, what is said to one that asks for what cannot be, and events as
// they come.

import type { Context, MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import { stream } from "hono/streaming";
import { isRecord } from "../evaluation/run-folder/json.ts";
import { FormatError } from "../formats/index.ts";

/** Another compare runs: the machine is one. */
export class BusyError extends RangeError {
  override readonly name: string = "BusyError";
}

export const noStore: MiddlewareHandler = async (c, next) => {
  c.header("cache-control", "no-store");
  await next();
};

/** Of a request: a text, and little else. */
const mostBytes = 128 * 2 ** 20;
export const boundedBody: MiddlewareHandler = bodyLimit({
  maxSize: mostBytes,
  onError: (c) => c.text("expected a request of at most 128 MB\n", 413),
});

/** The answer; 409 and 422 with what was expected where there is none. */
export async function answerOrRefusal(c: Context, answer: () => Promise<Response>): Promise<Response> {
  try {
    return await answer();
  } catch (error) {
    if (error instanceof BusyError) return c.text(`${error.message}\n`, 409);
    if (error instanceof RangeError || error instanceof FormatError) return c.text(`${error.message}\n`, 422);
    throw error;
  }
}

/** JSON to a question in JSON. */
export function asked(c: Context, reply: (body: unknown) => Promise<object>): Promise<Response> {
  return answerOrRefusal(c, async () => {
    const body: unknown = await c.req.json().catch(() => {
      throw new RangeError("expected a request in JSON, got something else");
    });
    return c.json(await reply(body));
  });
}

/** A JSON object a line, as they come, until they end or nobody listens. */
export function jsonLines(c: Context, values: AsyncIterable<object>, onAbort: () => void = () => {}): Response {
  c.header("content-type", "application/jsonl; charset=utf-8");
  return stream(c, async (out) => {
    out.onAbort(onAbort);
    for await (const value of values) {
      if (out.aborted) return;
      await out.write(`${JSON.stringify(value)}\n`);
    }
  });
}

/** @throws RangeError for what is no object, or has a key that is not known */
export function expectKeys(
  who: string,
  value: unknown,
  known: readonly string[],
): asserts value is Readonly<Record<string, unknown>> {
  if (!isRecord(value)) throw new RangeError(`${who}: expected an object, got something else`);
  const unknown = Object.keys(value).find((key) => !known.includes(key));
  if (unknown !== undefined) {
    throw new RangeError(`${who}: expected ${known.join(", ")}, got ${JSON.stringify(unknown)}`);
  }
}
