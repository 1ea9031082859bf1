// Plain data as it stands in a run folder: JSON values, written in one way only, so that equal values have equal bytes
// and equal hashes.

import { sha256 } from "./sha256.ts";

export type Json = null | boolean | number | string | readonly Json[] | JsonRecord;
export interface JsonRecord {
  readonly [key: string]: Json;
}

/**
 * JSON with the keys of every object sorted and no spaces.
 *
 * @throws RangeError, naming the place, for what JSON cannot hold: NaN, infinities, undefined
 * @example
 * ```ts
 * import { canonicalJson } from "longhand/evaluation";
 * canonicalJson({ b: [1, null], a: "x" }); // => '{"a":"x","b":[1,null]}'
 * ```
 */
export function canonicalJson(value: Json): string {
  expectJson(value, "value");
  return JSON.stringify(sorted(value));
}

function sorted(value: Json): Json {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sorted(value[key]!)]),
  );
}

/** SHA-256 of the canonical JSON. */
export function jsonHash(value: Json): string {
  return sha256(canonicalJson(value));
}

export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Throws unless JSON gives the value back as it is: JSON.stringify would write NaN as null and drop undefined. */
export function expectJson(value: unknown, where: string): void {
  if (value === null || typeof value === "boolean" || typeof value === "string") return;
  if (typeof value === "number") {
    if (Number.isFinite(value)) return;
    throw new RangeError(`${where}: expected a finite number, got ${value}`);
  }
  if (Array.isArray(value)) {
    for (const [i, item] of value.entries()) expectJson(item, `${where}[${i}]`);
    return;
  }
  if (
    typeof value === "object" &&
    Object.getPrototypeOf(value) !== null &&
    Object.getPrototypeOf(value) !== Object.prototype
  ) {
    throw new RangeError(`${where}: expected plain data, got ${(value as object).constructor?.name ?? "an object"}`);
  }
  if (typeof value !== "object") throw new RangeError(`${where}: expected JSON data, got ${String(value)}`);
  for (const [key, item] of Object.entries(value)) expectJson(item, `${where}.${key}`);
}

/** Where two values differ, a line each: 'seed: 1 there, 2 here'. */
export function jsonDifferences(there: Json, here: Json, path = ""): string[] {
  if (isRecord(there) && isRecord(here)) {
    const keys = [...new Set([...Object.keys(there), ...Object.keys(here)])].sort();
    return keys.flatMap((key) => {
      const inner = path === "" ? key : `${path}.${key}`;
      if (!Object.hasOwn(there, key)) return [`${inner}: nothing there, ${brief(here[key]!)} here`];
      if (!Object.hasOwn(here, key)) return [`${inner}: ${brief(there[key]!)} there, nothing here`];
      return jsonDifferences(there[key]!, here[key]!, inner);
    });
  }
  if (Array.isArray(there) && Array.isArray(here) && there.length === here.length) {
    return there.flatMap((item, i) => jsonDifferences(item as Json, here[i] as Json, `${path}[${i}]`));
  }
  if (canonicalJson(there) === canonicalJson(here)) return [];
  return [`${path === "" ? "value" : path}: ${brief(there)} there, ${brief(here)} here`];
}

function brief(value: Json): string {
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}
