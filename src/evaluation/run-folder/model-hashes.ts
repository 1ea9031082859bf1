// Which files a model's results depend on, and their hashes: what a run's identity says of the model.

import { type ModelFiles, type ModelSource, modelFilesOf, opened } from "../../formats/model-files.ts";
import { sha256File } from "./node-run-files.ts";
import { Sha256 } from "./sha256.ts";

const expectedModel = "a folder with config.json and safetensors, a .gguf, or a llama2.c .bin";

/** Sizes alone: at once, also of weights of many gigabytes. */
export async function modelWeightBytes(model: ModelSource): Promise<number> {
  const files = await modelFilesOf(model, expectedModel);
  let bytes = 0;
  for (const file of await filesThatCount(files)) {
    if (/\.(safetensors|gguf|bin)$/i.test(file)) bytes += await opened(files, file, async ({ size }) => size);
  }
  return bytes;
}

/**
 * SHA-256 of every file that a model's results depend on, by name.
 *
 * @throws the signal's reason when it is aborted
 */
export async function modelHashes(model: ModelSource, signal?: AbortSignal): Promise<Record<string, string>> {
  const files = await modelFilesOf(model, expectedModel);
  const out: Record<string, string> = {};
  for (const file of await filesThatCount(files)) {
    signal?.throwIfAborted();
    out[file] =
      files.locate === undefined ? await hashOpened(files, file, signal) : await sha256File(files.locate(file), signal);
  }
  return out;
}

async function hashOpened(files: ModelFiles, file: string, signal: AbortSignal | undefined): Promise<string> {
  return opened(files, file, async (source) => {
    const hash = new Sha256();
    const piece = 2 ** 22;
    for (let at = 0; at < source.size; at += piece) {
      signal?.throwIfAborted();
      hash.update(await source.read(at, Math.min(piece, source.size - at)));
    }
    return hash.hex();
  });
}

/** Configuration, weights, tokenizer. */
async function filesThatCount({ list, file }: ModelFiles): Promise<string[]> {
  const names = [...(await list())].sort();
  if (file === null) return names.filter((name) => /\.(json|safetensors|model)$|^merges\.txt$/.test(name));
  const stem = file.replace(/-\d{5}-of-\d{5}\.gguf$/i, "");
  const isPart = (name: string): boolean => name === file || (stem !== file && name.startsWith(`${stem}-`));
  return names.filter((name) => isPart(name) || (/\.bin$/i.test(file) && /^tok.*\.(bin|model|json)$/.test(name)));
}
