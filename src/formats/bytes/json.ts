// Strict JSON (RFC 8259) out of a file that may be hostile: a duplicate key is an error (JSON.parse keeps the last one
// silently, so two readers could see two models), "__proto__" is a key like any other, and nesting and the number of
// values are bounded (100 MB of "[0,0,…" would otherwise become gigabytes).

import { FormatError, quote } from "./format-error.ts";

export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;
/** Without a prototype, so that no key of the file can mean anything but itself. */
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

const maxDepth = 64;
const maxValues = 4_000_000;
const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

/**
 * Parses JSON text.
 *
 * @param text the whole document
 * @param file what messages call it
 * @param baseOffset byte of the file at which the text starts; messages count from there (in characters of the text)
 * @throws FormatError for anything but one JSON value, for a key that occurs twice in an object, and for nesting
 *   deeper than 64 or more than four million values
 * @example
 * ```ts
 * import { parseJson } from "longhand/formats";
 * parseJson('[1, {"a": null}]', "config.json"); // => [1, {"a": null}]
 * ```
 */
export function parseJson(text: string, file: string, baseOffset = 0): JsonValue {
  let at = 0;
  let values = 0;
  const fail = (expected: string, where = at): FormatError =>
    new FormatError(
      file,
      `expected ${expected}, got ${where < text.length ? quote(text.slice(where, where + 12)) : "the end of the text"}`,
      baseOffset + where,
    );

  function space(): void {
    for (;;) {
      const c = text.charCodeAt(at);
      if (c !== 0x20 && c !== 0x0a && c !== 0x0d && c !== 0x09) return;
      at++;
    }
  }

  function string(): string {
    const start = at;
    if (text[at] !== '"') throw fail("a string");
    // The common case, no escape: one search for the quote.
    let end = text.indexOf('"', at + 1);
    if (end < 0) throw fail("a string that ends", start);
    let escaped = false;
    while (isEscaped(end)) {
      escaped = true;
      end = text.indexOf('"', end + 1);
      if (end < 0) throw fail("a string that ends", start);
    }
    const inner = text.slice(start + 1, end);
    at = end + 1;
    // biome-ignore lint/suspicious/noControlCharactersInRegex: raw control characters are what JSON forbids here
    if (!escaped && !/[\u0000-\u001f\\]/.test(inner)) return inner;
    try {
      return JSON.parse(text.slice(start, at)) as string;
    } catch {
      throw fail("a string without raw control characters or unknown escapes", start);
    }
  }

  /** A quote is escaped when an odd number of backslashes stands before it. */
  function isEscaped(quoteAt: number): boolean {
    let slashes = 0;
    while (text.charCodeAt(quoteAt - 1 - slashes) === 0x5c) slashes++;
    return slashes % 2 === 1;
  }

  function value(depth: number): JsonValue {
    if (depth > maxDepth) throw fail(`nesting of at most ${maxDepth}`);
    if (++values > maxValues) throw fail(`at most ${maxValues} values`);
    space();
    const c = text[at];
    if (c === "{") {
      const object: Record<string, JsonValue> = Object.create(null);
      at++;
      space();
      if (text[at] === "}") {
        at++;
        return object;
      }
      for (;;) {
        space();
        const keyAt = at;
        const key = string();
        if (key in object) throw fail(`the key ${quote(key)} once in its object`, keyAt);
        space();
        if (text[at] !== ":") throw fail('":"');
        at++;
        object[key] = value(depth + 1);
        space();
        if (text[at] === ",") at++;
        else if (text[at] === "}") {
          at++;
          return object;
        } else throw fail('"," or "}"');
      }
    }
    if (c === "[") {
      const array: JsonValue[] = [];
      at++;
      space();
      if (text[at] === "]") {
        at++;
        return array;
      }
      for (;;) {
        array.push(value(depth + 1));
        space();
        if (text[at] === ",") at++;
        else if (text[at] === "]") {
          at++;
          return array;
        } else throw fail('"," or "]"');
      }
    }
    if (c === '"') return string();
    if (text.startsWith("true", at)) {
      at += 4;
      return true;
    }
    if (text.startsWith("false", at)) {
      at += 5;
      return false;
    }
    if (text.startsWith("null", at)) {
      at += 4;
      return null;
    }
    number.lastIndex = at;
    const match = number.exec(text);
    if (match === null) throw fail("a JSON value");
    at += match[0].length;
    return Number(match[0]);
  }

  const result = value(0);
  space();
  if (at < text.length) throw fail("nothing after the JSON value");
  return result;
}

export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
