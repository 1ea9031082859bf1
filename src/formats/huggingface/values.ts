// Typed reading of a config.json: every value is checked where it is read, and an error names its path in the file.

import { show } from "../../encodings/errors.ts";
import { FormatError } from "../bytes/format-error.ts";
import type { Finding } from "../finding.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

/** The part of a config.json that describes one text model, and what to do where it is silent. */
export interface Source {
  readonly record: JsonObject;
  /** Where the record stands in the file: "" or "text_config". */
  readonly path: string;
  /** The configuration class that reads it; null when no class of that name is known. */
  readonly modelType: string;
  /** What transformers' class assumes for an absent key. */
  readonly defaults: JsonObject;
  readonly findings: Finding[];
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function join(path: string, key: string): string {
  return path === "" ? key : `${path}.${key}`;
}

/** "config.json rope_scaling.factor: expected a finite number above 0, got "8"; write 8". */
export function unexpected(where: string, expectation: string, value: unknown, fix?: string): FormatError {
  return complaint(`config.json ${where}`, expectation, value, fix);
}

/** The same for any place. Without a fix, a number in quotes is told to lose them. */
export function complaint(place: string, expectation: string, value: unknown, fix?: string): FormatError {
  const got = value === undefined ? "nothing" : show(value);
  const repaired = fix ?? repair(value);
  return new FormatError(place, `expected ${expectation}, got ${got}${repaired === "" ? "" : `; ${repaired}`}`);
}

/** A number in quotes is the one wrong value whose meaning is certain. */
function repair(value: unknown): string {
  if (typeof value !== "string" || value.trim() === "") return "";
  const number = Number(value);
  return Number.isFinite(number) ? `write ${number}` : "";
}

export interface Rule<T> {
  readonly expectation: string;
  readonly holds: (value: unknown) => value is T;
}

const isCount = (value: unknown): value is number => Number.isInteger(value) && (value as number) >= 1;
export const count: Rule<number> = { expectation: "an integer of at least 1", holds: isCount };
export const index: Rule<number> = {
  expectation: "an integer of at least 0",
  holds: (value): value is number => Number.isInteger(value) && (value as number) >= 0,
};
export const positive: Rule<number> = {
  expectation: "a finite number above 0",
  holds: (value): value is number => Number.isFinite(value) && (value as number) > 0,
};
export const share: Rule<number> = {
  expectation: "a number in (0, 1]",
  holds: (value): value is number => typeof value === "number" && value > 0 && value <= 1,
};
export const flag: Rule<boolean> = {
  expectation: "true or false",
  holds: (value): value is boolean => typeof value === "boolean",
};
export const anyString: Rule<string> = {
  expectation: "a string",
  holds: (value): value is string => typeof value === "string",
};
export const names: Rule<string[]> = {
  expectation: "a list of strings",
  holds: (value): value is string[] => Array.isArray(value) && value.every((v) => typeof v === "string"),
};

/** Whether the file itself has the key, be it null. */
export function has(source: Source, key: string): boolean {
  return Object.hasOwn(source.record, key);
}

/** The value of a key of the file; null when it is absent or null. Throws FormatError when it breaks the rule. */
export function read<T>(source: Source, key: string, rule: Rule<T>): T | null {
  const value = source.record[key];
  if (value === undefined || value === null) return null;
  if (!rule.holds(value)) throw unexpected(join(source.path, key), rule.expectation, value);
  return value;
}

/**
 * The value of the first of these spellings that the file has, else what the class assumes under the first spelling,
 * with a note; null when neither says anything.
 */
export function readOrAssume<T>(source: Source, spellings: readonly string[], rule: Rule<T>): T | null {
  for (const key of spellings) {
    const value = read(source, key, rule);
    if (value !== null) return value;
  }
  const key = spellings[0]!;
  // An explicit null is a statement of the file ("no sliding window"), not an omission.
  if (spellings.some((spelling) => has(source, spelling))) return null;
  const assumed = source.defaults[key];
  if (assumed === undefined || assumed === null || !rule.holds(assumed)) return null;
  source.findings.push({
    code: "class-default",
    severity: "note",
    where: join(source.path, key),
    got: null,
    expected: `${show(assumed)}, which transformers' class for ${source.modelType} assumes`,
    why: "The file does not say it.",
    fix: `write "${key}": ${JSON.stringify(assumed)}`,
  });
  return assumed;
}

/** As readOrAssume, but nothing is an error. */
export function demand<T>(source: Source, spellings: readonly string[], rule: Rule<T>): T {
  const value = readOrAssume(source, spellings, rule);
  if (value !== null) return value;
  const present = spellings.find((spelling) => has(source, spelling));
  const others = spellings.length > 1 ? ` (or ${spellings.slice(1).join(", ")})` : "";
  throw unexpected(
    join(source.path, present ?? spellings[0]!) + (present === undefined ? others : ""),
    rule.expectation,
    present === undefined ? undefined : null,
  );
}
