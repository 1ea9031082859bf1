// A path to a description, whatever the format: a Hugging Face folder (config.json, safetensors beside it), a lone
// config.json, a .gguf (any part of a split one), a llama2.c .bin. Headers only: weights are never read. Node only.

import { FormatError } from "./bytes/format-error.ts";
import { parseJson } from "./bytes/json.ts";
import { openFile, withFile } from "./bytes/node-file.ts";
import { describeGguf, openGguf } from "./gguf/index.ts";
import { describeHuggingFace } from "./huggingface/index.ts";
import { describeLlama2c, readLlama2cHeader } from "./llama2c/index.ts";
import type { ModelDescription } from "./model-description.ts";
import { nearest } from "./nearest.ts";
import { readSafetensorsFolder, type SafetensorsCheckpoint } from "./safetensors/index.ts";

const expected = "a folder with config.json, a config.json, a .gguf, or a llama2.c .bin";
/** config.json of the largest known models is under 1 MB. */
const maxConfigBytes = 64 * 1024 * 1024;

/**
 * Reads what a checkpoint says of itself.
 *
 * @param path a folder, a `config.json`, a `.safetensors` (its folder is meant), a `.gguf`, or a llama2.c `.bin`
 * @returns the model's shape, how each layer knows positions, and what had to be assumed
 * @throws FormatError when the path is no model, or its bytes break their format
 */
export async function openModel(path: string): Promise<ModelDescription> {
  const { stat, readdir } = await import("node:fs/promises");
  const { basename, dirname, join, resolve } = await import("node:path");
  const info = await stat(path).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw new FormatError(path, `expected ${expected}, got ${error.code}`);
    const siblings = await readdir(dirname(path)).catch(() => [] as string[]);
    const close = nearest(basename(path), siblings)[0];
    throw new FormatError(
      path,
      `expected ${expected}, got a path that does not exist${close === undefined ? "" : `; nearest: ${close}`}`,
    );
  });
  if (info.isDirectory()) return describeFolder(path);
  switch (path.slice(path.lastIndexOf(".") + 1).toLowerCase()) {
    case "gguf":
      return describeGguf(await openGguf(path));
    case "bin":
      return withFile(path, async (source) => describeLlama2c(await readLlama2cHeader(source)));
    case "json":
      // In a folder of that name a config.json is the folder's.
      return describeConfig(
        path,
        basename(path) === "config.json" ? basename(dirname(resolve(path))) : undefined,
        null,
      );
    case "safetensors":
      return describeFolder(dirname(path));
    default:
      throw new FormatError(path, `expected ${expected}, got another kind of file`);
  }

  async function describeFolder(folder: string): Promise<ModelDescription> {
    const files = await readdir(folder);
    if (!files.includes("config.json")) {
      const models = files.filter((file) => /\.(gguf|bin|json)$/.test(file)).slice(0, 5);
      throw new FormatError(
        folder,
        `expected config.json in the folder, got ${models.length === 0 ? "no model file" : `only ${models.join(", ")}; name one of them`}`,
      );
    }
    const weights = await readSafetensorsFolder(folder);
    return describeConfig(join(folder, "config.json"), basename(resolve(folder)), weights);
  }
}

async function describeConfig(
  path: string,
  name: string | undefined,
  weights: SafetensorsCheckpoint | null,
): Promise<ModelDescription> {
  const source = await openFile(path);
  try {
    if (source.size > maxConfigBytes) {
      throw new FormatError(path, `expected a configuration of at most ${maxConfigBytes} bytes, got ${source.size}`);
    }
    const bytes = await source.read(0, source.size);
    let text: string;
    try {
      text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    } catch {
      throw new FormatError(path, "expected valid UTF-8, got other bytes");
    }
    const model = describeHuggingFace(parseJson(text, source.name), {
      name: name ?? source.name.replace(/\.json$/i, ""),
      numParameters: weights?.numParameters ?? null,
    });
    return weights === null ? model : { ...model, findings: [...model.findings, ...weights.findings] };
  } finally {
    await source.close();
  }
}
