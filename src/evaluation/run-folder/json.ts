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

/** One place where two values differ. */
export interface JsonDifference {
  readonly code: "differs" | "only-there" | "only-here";
  readonly values: {
    /** "windows[0].start", "windows.length", 'strategies["yarn:4"]'; "value" for the whole. */
    readonly place: string;
    /** JSON, cut where it is long; absent where there is nothing. */
    readonly there?: string;
    readonly here?: string;
  };
  /** In English: 'seed: 1 there, 2 here'. */
  readonly message: string;
}

/** Where two values differ. */
export function jsonDifferences(there: Json, here: Json, path = ""): JsonDifference[] {
  if (isRecord(there) && isRecord(here)) {
    const keys = [...new Set([...Object.keys(there), ...Object.keys(here)])].sort();
    return keys.flatMap((key) => {
      const inner = path === "" ? key : `${path}.${key}`;
      if (!Object.hasOwn(there, key)) return [difference(inner, undefined, here[key])];
      if (!Object.hasOwn(here, key)) return [difference(inner, there[key], undefined)];
      return jsonDifferences(there[key]!, here[key]!, inner);
    });
  }
  if (Array.isArray(there) && Array.isArray(here)) return listDifferences(there, here, path);
  if (canonicalJson(there) === canonicalJson(here)) return [];
  return [difference(path === "" ? "value" : path, there, here)];
}

/** Lists of one length item by item; others by the names of their items, where they have such. */
function listDifferences(there: readonly Json[], here: readonly Json[], path: string): JsonDifference[] {
  const [x, y] = [byName(there), byName(here)];
  const sameNames = x !== null && y !== null && x.size === y.size && [...x.keys()].every((name) => y.has(name));
  if (x !== null && y !== null && !sameNames) {
    return [...new Set([...x.keys(), ...y.keys()])].flatMap((name) => {
      const [a, b] = [x.get(name), y.get(name)];
      const inner = `${path}[${JSON.stringify(name)}]`;
      return a === undefined || b === undefined ? [difference(inner, a, b)] : jsonDifferences(a, b, inner);
    });
  }
  // What is longer begins as the other does, or not: two long lists, cut, may look alike.
  if (there.length !== here.length) return [difference(`${path}.length`, there.length, here.length)];
  return there.flatMap((item, i) => jsonDifferences(item, here[i]!, `${path}[${i}]`));
}

/** Items by their names; null unless each has one of its own. */
function byName(list: readonly Json[]): ReadonlyMap<string, Json> | null {
  const items = new Map<string, Json>();
  for (const item of list) {
    if (!isRecord(item) || typeof item.name !== "string" || items.has(item.name)) return null;
    items.set(item.name, item);
  }
  return items;
}

function difference(place: string, there: Json | undefined, here: Json | undefined): JsonDifference {
  const [x, y] = [there, here].map((value) => (value === undefined ? undefined : brief(value)));
  return {
    code: x === undefined ? "only-here" : y === undefined ? "only-there" : "differs",
    values: { place, ...(x === undefined ? {} : { there: x }), ...(y === undefined ? {} : { here: y }) },
    message: `${place}: ${x === undefined ? "nothing" : x} there, ${y === undefined ? "nothing" : y} here`,
  };
}

function brief(value: Json): string {
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}
