// Typed access to a tokenizer.json, and what its parts share.

import { FormatError, quote } from "../../bytes/format-error.ts";
import type { JsonObject, JsonValue } from "../../bytes/json.ts";
import { didYouMean } from "../../nearest.ts";

export type HuggingFacePackage = typeof import("@huggingface/tokenizers");

/** Reads keys and words the errors about them. */
export class Complaints {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }

  expected(where: string, expectation: string, got: unknown): FormatError {
    const shown = typeof got === "string" ? quote(got) : (JSON.stringify(got)?.slice(0, 80) ?? String(got));
    return new FormatError(this.name, `expected ${where} to be ${expectation}, got ${shown}`);
  }

  unsupported(where: string, got: string, known: readonly string[]): FormatError {
    return new FormatError(
      this.name,
      `expected ${where} to be one of ${known.join(", ")}, got ${quote(got)}${didYouMean(got, known)}`,
    );
  }

  string(object: JsonObject, key: string, where: string): string {
    const value = object[key];
    if (typeof value !== "string") throw this.expected(where, "a string", value);
    return value;
  }

  array(object: JsonObject, key: string, where: string): readonly JsonValue[] {
    const value = object[key];
    if (!Array.isArray(value)) throw this.expected(where, "an array", value);
    return value;
  }

  /** A boolean or null; false when absent. */
  flag(object: JsonObject, key: string, where: string): boolean {
    const value = object[key] ?? false;
    if (typeof value !== "boolean") throw this.expected(where, "true or false", value);
    return value;
  }

  /** A small object as @huggingface/tokenizers takes it. */
  // biome-ignore lint/suspicious/noExplicitAny: the package's own config types are unions that a file need not meet
  plain(object: JsonObject): any {
    return JSON.parse(JSON.stringify(object));
  }
}
