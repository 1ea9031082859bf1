// What a checkpoint's own file says beyond its positions: config.json, GGUF metadata or a llama2.c header behind one
// interface, so that a family reads "the epsilon" once. A value of the wrong type is an error that names the key.

import { FormatError } from "../formats/bytes/format-error.ts";
import type { GgufHeader } from "../formats/gguf/index.ts";
import { GgufKeys } from "../formats/gguf/keys.ts";
import type { Llama2cHeader } from "../formats/llama2c/index.ts";
import { didYouMean } from "../formats/nearest.ts";
import type { Activation } from "./spec.ts";

/** One setting's name in each format; absent where the format has none. */
export interface SettingKey {
  /** config.json: the spellings of one fact, transformers' first; "a.b" reaches into an object. */
  readonly huggingFace?: string | readonly string[];
  /** GGUF: without the architecture's prefix. */
  readonly gguf?: string;
}

export interface Settings {
  readonly format: "huggingface" | "gguf" | "llama2.c";
  /** What messages call the file. */
  readonly file: string;
  /** Hugging Face's model_type or GGUF's architecture. */
  readonly modelType: string;
  /** @throws FormatError when the value is no finite number, or absent without a fallback */
  number(key: SettingKey, fallback?: number): number;
  /** @throws FormatError when the value is no integer of at least 1, or absent without a fallback */
  count(key: SettingKey, fallback?: number): number;
  flag(key: SettingKey, fallback: boolean): boolean;
  string(key: SettingKey, fallback: string): string;
  /** A number; null where the file says null, the fallback (null when not given) where it says nothing. */
  optional(key: SettingKey, fallback?: number | null): number | null;
  /** Whether the checkpoint has a weight, by our name ("layers.0.query.bias"). GGUF says by it what it has no key for. */
  hasWeight(name: string): boolean;
}

type Lookup = (key: SettingKey) => { readonly where: string; readonly value: unknown };

function settings(
  format: Settings["format"],
  file: string,
  modelType: string,
  lookup: Lookup,
  hasWeight: (name: string) => boolean,
): Settings {
  const fail = (where: string, expectation: string, value: unknown): FormatError => {
    const got = value === undefined ? "nothing" : (JSON.stringify(value) ?? String(value));
    return new FormatError(file, `expected ${where} to be ${expectation}, got ${got}`);
  };
  const read = <T>(
    key: SettingKey,
    expectation: string,
    holds: (value: unknown) => value is T,
    fallback: T | undefined,
  ): T => {
    const { where, value } = lookup(key);
    if (value === undefined || value === null) {
      if (fallback === undefined) throw fail(where, expectation, value);
      return fallback;
    }
    if (!holds(value)) throw fail(where, expectation, value);
    return value;
  };
  const isNumber = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);
  const isCount = (value: unknown): value is number =>
    Number.isInteger(value) && (value as number) >= 1 && (value as number) <= 2 ** 31;
  return {
    format,
    file,
    modelType,
    number: (key, fallback) => read(key, "a finite number", isNumber, fallback),
    count: (key, fallback) => read(key, "an integer of at least 1", isCount, fallback),
    flag: (key, fallback) =>
      read(key, "true or false", (value): value is boolean => typeof value === "boolean", fallback),
    string: (key, fallback) => read(key, "a string", (value): value is string => typeof value === "string", fallback),
    optional(key, fallback = null) {
      const { where, value } = lookup(key);
      if (value === undefined) return fallback;
      if (value === null) return null;
      if (!isNumber(value)) throw fail(where, "a finite number, or null", value);
      return value;
    },
    hasWeight,
  };
}

/** The settings of a config.json: `record` is the text model's part of it. */
export function huggingFaceSettings(
  record: Readonly<Record<string, unknown>>,
  modelType: string,
  hasWeight: (name: string) => boolean = () => false,
): Settings {
  return settings(
    "huggingface",
    "config.json",
    modelType,
    ({ huggingFace = [] }) => {
      const spellings = typeof huggingFace === "string" ? [huggingFace] : huggingFace;
      let isNull: string | undefined;
      for (const spelling of spellings) {
        const value = spelling
          .split(".")
          .reduce<unknown>(
            (at, part) =>
              typeof at === "object" && at !== null && Object.hasOwn(at, part)
                ? (at as Record<string, unknown>)[part]
                : undefined,
            record,
          );
        if (value !== undefined && value !== null) return { where: spelling, value };
        if (value === null) isNull ??= spelling;
      }
      if (isNull !== undefined) return { where: isNull, value: null };
      return { where: spellings.join(" or ") || "a setting that config.json has no key for", value: undefined };
    },
    hasWeight,
  );
}

/** The settings of a GGUF header. */
export function ggufSettings(header: GgufHeader, hasWeight: (name: string) => boolean): Settings {
  const keys = new GgufKeys(header);
  return settings(
    "gguf",
    header.file,
    keys.architecture,
    ({ gguf }) => {
      if (gguf === undefined) return { where: "a setting that GGUF has no key for", value: undefined };
      const entry = header.metadata.get(keys.full(gguf));
      if (entry === undefined) return { where: keys.full(gguf), value: undefined };
      if (entry.type === "array") {
        // One value a layer: usable where all are one.
        const values = entry.value.values === null ? [] : [...new Set(entry.value.values)];
        return { where: keys.full(gguf), value: values.length === 1 ? values[0] : `an array of ${entry.value.count}` };
      }
      return { where: keys.full(gguf), value: entry.type === "f32" ? keys.number(gguf) : entry.value };
    },
    hasWeight,
  );
}

/** The settings of a llama2.c header; what it leaves out is the format's convention (run.c). */
export function llama2cSettings(header: Llama2cHeader, hasWeight: (name: string) => boolean): Settings {
  const known: Readonly<Record<string, unknown>> = {
    intermediate_size: header.intermediateSize,
    rms_norm_eps: 1e-5,
    tie_word_embeddings: header.tiedEmbeddings,
    vocab_size: header.vocabSize,
    hidden_act: "silu",
    attention_bias: false,
    mlp_bias: false,
  };
  return {
    ...huggingFaceSettings(known, "llama", hasWeight),
    format: "llama2.c",
    file: header.file,
  };
}

const activations: Readonly<Record<string, Activation>> = {
  silu: "silu",
  swish: "silu",
  gelu: "gelu",
  gelu_python: "gelu",
  gelu_new: "gelu-tanh",
  gelu_fast: "gelu-tanh",
  gelu_pytorch_tanh: "gelu-tanh",
  gelu_tanh: "gelu-tanh",
  relu: "relu",
  relu2: "relu2",
};

/** A family's activation: named by config.json, fixed in GGUF. */
export function activationOf(settings: Settings, key: SettingKey, fallback: Activation): Activation {
  const name = settings.string(key, "");
  if (name === "") return fallback;
  const found = Object.hasOwn(activations, name) ? activations[name] : undefined;
  if (found !== undefined) return found;
  throw new FormatError(
    settings.file,
    `expected an activation that is known (${Object.keys(activations).join(", ")}), got ${JSON.stringify(name)}` +
      didYouMean(name, Object.keys(activations)),
  );
}
