// Typed access to a header's metadata: a key of the wrong type is an error that names it, never a silent default.

import { FormatError } from "../bytes/format-error.ts";
import type { GgufHeader, GgufScalar } from "./header.ts";

export class GgufKeys {
  readonly header: GgufHeader;
  /** general.architecture */
  readonly architecture: string;

  constructor(header: GgufHeader) {
    this.header = header;
    const entry = header.metadata.get("general.architecture");
    if (entry?.type !== "string") {
      throw new FormatError(
        header.file,
        `expected the string general.architecture, got ${entry === undefined ? "none" : `a value of type ${entry.type}`}`,
      );
    }
    this.architecture = entry.value;
  }

  /** The key as it stands in the file: names without "general." belong to the architecture. */
  full(key: string): string {
    return `${this.architecture}.${key}`;
  }

  error(key: string, expectation: string, got: unknown): FormatError {
    const shown = typeof got === "bigint" ? String(got) : (JSON.stringify(got) ?? String(got));
    return new FormatError(this.header.file, `expected ${this.full(key)} to be ${expectation}, got ${shown}`);
  }

  has(key: string): boolean {
    return this.header.metadata.has(this.full(key));
  }

  isArray(key: string): boolean {
    return this.header.metadata.get(this.full(key))?.type === "array";
  }

  /** An integer of at least `minimum`, or undefined when the key is absent. */
  integer(key: string, minimum = 0): number | undefined {
    const value = this.header.metadata.get(this.full(key))?.value;
    if (value === undefined) return undefined;
    return this.#integer(key, value, minimum);
  }

  #integer(key: string, value: unknown, minimum: number): number {
    if (typeof value !== "number" || !Number.isInteger(value) || value < minimum || value > 2 ** 31) {
      throw this.error(key, `an integer of at least ${minimum}`, typeof value === "object" ? "an array" : value);
    }
    return value;
  }

  /** An integer that must be there. */
  required(key: string, minimum = 1): number {
    const value = this.integer(key, minimum);
    if (value === undefined) throw new FormatError(this.header.file, `expected the key ${this.full(key)}, got none`);
    return value;
  }

  /** A finite number, as the decimal that its 32 bits were written from; undefined when absent. */
  number(key: string): number | undefined {
    const entry = this.header.metadata.get(this.full(key));
    if (entry === undefined) return undefined;
    const { value } = entry;
    if (typeof value !== "number" || !Number.isFinite(value)) {
      throw this.error(key, "a finite number", typeof value === "number" ? String(value) : "another type");
    }
    return entry.type === "f32" ? shortestFloat32(value) : value;
  }

  positive(key: string): number | undefined {
    const value = this.number(key);
    if (value !== undefined && value <= 0) throw this.error(key, "a number above 0", value);
    return value;
  }

  string(key: string): string | undefined {
    const value = this.header.metadata.get(this.full(key))?.value;
    if (value === undefined) return undefined;
    if (typeof value !== "string") throw this.error(key, "a string", "another type");
    return value;
  }

  boolean(key: string): boolean | undefined {
    const value = this.header.metadata.get(this.full(key))?.value;
    if (value === undefined) return undefined;
    if (typeof value !== "boolean") throw this.error(key, "a bool", "another type");
    return value;
  }

  /** The values of a short array, or undefined when absent. */
  array(key: string): readonly GgufScalar[] | undefined {
    const entry = this.header.metadata.get(this.full(key));
    if (entry === undefined) return undefined;
    if (entry.type !== "array" || entry.value.values === null)
      throw this.error(key, "an array of at most 1024", "other");
    return entry.value.values;
  }

  /** One integer a layer, from an array or from one number for all; undefined when absent. */
  perLayer(key: string, numLayers: number): readonly number[] | undefined {
    if (!this.isArray(key)) {
      const one = this.integer(key);
      return one === undefined ? undefined : new Array<number>(numLayers).fill(one);
    }
    const values = this.array(key)!;
    // Files with extra prediction layers list those too.
    if (values.length < numLayers) throw this.error(key, `one value a layer, ${numLayers}`, `${values.length} values`);
    return values.slice(0, numLayers).map((value) => this.#integer(key, Number(value), 0));
  }
}

/** The shortest decimal that rounds to the same float32: 0.0707, not 0.07069999724626541. */
export function shortestFloat32(value: number): number {
  for (let digits = 1; digits < 9; digits++) {
    const candidate = Number(value.toPrecision(digits));
    if (Math.fround(candidate) === value) return candidate;
  }
  return value;
}
