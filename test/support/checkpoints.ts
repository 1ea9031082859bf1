// The tiny checkpoints of reference/tiny_checkpoints.py and their GGUF files of reference/tiny_gguf.py, typed.
// Every case is transformers' answer; files that are added to the folder join the lists by themselves.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const root: string = new URL("../fixtures/checkpoints/", import.meta.url).pathname;

export interface GoldenCase {
  readonly name: string;
  /** rope_parameters as Hugging Face spells them, instead of the file's; null: the file's own; "drop": cos 1, sin 0. */
  readonly scaling: Readonly<Record<string, unknown>> | "drop" | null;
  /** Keys of config.json that were changed besides. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** "growing": the table of token i is that of a text of i + 1 tokens; else one table for the whole text. */
  readonly reading?: "growing";
  /** Of a model with an encoder: what the encoder reads. */
  readonly tokens: readonly number[];
  readonly decoderTokens?: readonly number[];
  /** 16 tokens that follow, each by a full pass (one table for the whole text so far). */
  readonly greedy: readonly number[];
  /** Entry i is the loss of token i + 1 given 0..i; float32. */
  readonly losses: readonly number[];
  /** The same in float64 throughout, to 10 decimals. */
  readonly losses64: readonly number[];
  /** After the last token. */
  readonly lastLogits: readonly number[];
}

export interface Checkpoint {
  readonly family: string;
  /** Holds config.json and model.safetensors. */
  readonly folder: string;
  readonly versions: Readonly<Record<string, string>>;
  readonly storage: "float32" | "float16" | "bfloat16";
  /** The largest distance of losses and losses64, over all cases. */
  readonly rounding: number;
  /** Mean change of the losses when distances change. */
  readonly positions: number;
  readonly cases: readonly GoldenCase[];
}

export interface GgufCheckpoint {
  readonly family: string;
  readonly architecture: string;
  readonly path: string;
  /** "f32", "f16", "bf16": the checkpoint's own values; else the quantised kind. */
  readonly kind: string;
  /** What transformers was given where GGUF has no key for it (so config.json of the family says otherwise). */
  readonly config: Readonly<Record<string, unknown>>;
  /** By case, llama.cpp's [mean, largest] distance from losses64: its weights as F32, and the file as it is. */
  readonly llamaCpp?: {
    readonly asF32?: Readonly<Record<string, readonly [number, number]>>;
    readonly asStored: Readonly<Record<string, readonly [number, number]>>;
  };
  /** Of the weights as they are read back from this file. */
  readonly cases: readonly GoldenCase[];
}

/** All families, by name. */
export const checkpointFamilies: readonly string[] = families(root);

/** The families that have GGUF files. */
export const ggufFamilies: readonly string[] = families(join(root, "gguf"));

/** The tokens that are scored: the decoder's where there is one. */
export function scoredTokens(golden: GoldenCase): readonly number[] {
  return golden.decoderTokens ?? golden.tokens;
}

export function checkpoint(family: string): Checkpoint {
  const folder = join(root, family);
  return { ...read(join(folder, "golden.json")), folder };
}

export function ggufCheckpoints(family: string): readonly GgufCheckpoint[] {
  const folder = join(root, "gguf", family);
  const golden = read(join(folder, "golden.json"));
  return golden.files.map(({ file, ...entry }: { file: string }) => ({
    family,
    architecture: golden.architecture,
    path: join(folder, file),
    kind: file.replace(".gguf", ""),
    ...entry,
  }));
}

function families(folder: string): readonly string[] {
  return readdirSync(folder)
    .filter((name) => existsSync(join(folder, name, "golden.json")))
    .sort();
}

function read(path: string) {
  return JSON.parse(readFileSync(path, "utf8"));
}
