// A run folder from a stranger, checked before anything is computed from it: whatever is missing or of another type is an
// error that names the place, never a crash or a NaN in a table.

import type { CompareIdentity } from "../compare/run.ts";
import { isRecord, type JsonRecord } from "../run-folder/json.ts";
import type { RunRow } from "../run-folder/rows.ts";
import type { ReportRun } from "./model.ts";

/** A reader of one object's fields. */
export interface Fields {
  number(key: string): number;
  numberOrNull(key: string): number | null;
  string(key: string): string;
  list(key: string): readonly unknown[];
  record(key: string): Fields;
  records(key: string): Fields[];
  readonly value: JsonRecord;
  fail(key: string, expected: string): never;
}

/** @throws RangeError from every reading of what is not as it should be */
export function fieldsOf(value: unknown, where: string): Fields {
  if (!isRecord(value)) throw new RangeError(`${where}: expected an object, got ${brief(value)}`);
  const fail = (key: string, expected: string): never => {
    throw new RangeError(`${where}: expected ${expected} as ${key}, got ${brief(value[key])}`);
  };
  const number = (key: string): number => {
    const x = value[key];
    return typeof x === "number" && Number.isFinite(x) ? x : fail(key, "a number");
  };
  const list = (key: string): readonly unknown[] => {
    const x = value[key];
    return Array.isArray(x) ? x : fail(key, "a list");
  };
  return {
    value,
    fail,
    number,
    numberOrNull: (key) => (value[key] === null ? null : number(key)),
    string: (key) => (typeof value[key] === "string" ? value[key] : fail(key, "a text")),
    list,
    record: (key) => fieldsOf(value[key], `${where}, ${key}`),
    records: (key) => list(key).map((item, i) => fieldsOf(item, `${where}, ${key}[${i}]`)),
  };
}

export function fieldsOfRow(run: ReportRun, row: RunRow): Fields {
  return fieldsOf(row, `${run.path}/rows.jsonl, row ${JSON.stringify(row.key).slice(0, 60)}`);
}

/** Positions of a target that a report draws at most: more than any model reads, fewer than would hang a process. */
const longest = 2 ** 27;

const longestName = 1000;

/** The identity of a compare's run, and nothing in it or its rows that `compareResult` could not use. */
export function checkCompare(run: ReportRun): CompareIdentity {
  const identity = fieldsOf(run.manifest.identity, `${run.path}/manifest.json, identity`);
  if (identity.number("protocol") !== 1) identity.fail("protocol", "1, the protocol that this version reports,");
  identity.string("model");
  identity.string("haystack");
  identity.number("seed");
  identity.numberOrNull("bos");
  const needles = identity.number("needles");
  if (!Number.isInteger(needles) || needles < 0) identity.fail("needles", "an integer of at least 0");
  if (!identity.list("needleLengths").every((n) => typeof n === "number")) identity.fail("needleLengths", "numbers");
  const isLength = (n: number): boolean => Number.isInteger(n) && n >= 2 && n <= longest;
  const target = identity.number("target");
  if (!isLength(target)) identity.fail("target", `an integer from 2 to ${longest}`);
  const trained = identity.numberOrNull("trainedLength");
  if (trained !== null && !(Number.isInteger(trained) && trained >= 1)) {
    identity.fail("trainedLength", "an integer of at least 1, or null,");
  }
  for (const text of identity.records("texts")) {
    text.string("name");
    text.string("sha256");
    text.number("tokens");
  }
  for (const window of identity.records("windows")) {
    window.number("text");
    window.number("start");
  }
  const names = new Set<string>();
  for (const strategy of identity.records("strategies")) {
    const name = strategy.string("name");
    if (name.length > longestName) strategy.fail("name", `at most ${longestName} characters`);
    if (names.has(name)) strategy.fail("name", "a name that no other strategy has");
    names.add(name);
    const { value } = strategy.record("encoding");
    if (value.scaling !== undefined) strategy.record("encoding").record("scaling").string("kind");
    strategy.record("reading").string("kind");
    const short = strategy.string("short");
    if (short !== "same-passes" && short !== "own-passes") strategy.fail("short", '"same-passes" or "own-passes"');
  }
  for (const row of run.rows) {
    const fields = fieldsOfRow(run, row);
    if (!names.has(fields.string("strategy"))) fields.fail("strategy", "a strategy of the manifest");
    const kind = fields.string("kind");
    if (typeof row.error === "string") continue;
    if (kind === "loss" || kind === "short") {
      fields.number("window");
      const losses = fields.list("losses");
      const length = kind === "loss" ? target : Math.min(trained ?? target, target);
      if (losses.length !== length - 1) fields.fail("losses", `${length - 1} losses`);
      const wrong = losses.findIndex((x) => typeof x !== "number" || !Number.isFinite(x));
      if (wrong >= 0) fields.fail("losses", `numbers (the one at ${wrong} is none)`);
    } else if (kind === "passkey") {
      for (const key of ["needle", "length", "depth", "rank", "candidates"]) fields.number(key);
      checkShare(fields, "exact");
    } else fields.fail("kind", '"loss", "short" or "passkey"');
  }
  return run.manifest.identity as CompareIdentity;
}

export function checkShare(fields: Fields, key: string): number {
  const x = fields.number(key);
  return x >= 0 && x <= 1 ? x : fields.fail(key, "a number from 0 to 1");
}

function brief(value: unknown): string {
  const text = value === undefined ? "nothing" : JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}
