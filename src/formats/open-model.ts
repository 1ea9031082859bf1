// A model's files to a description, whatever the format: a Hugging Face folder (config.json, safetensors beside it), a
// lone config.json, a .gguf (any part of a split one), a llama2.c .bin. Headers only: weights are never read.

import type { ByteSource } from "./bytes/byte-source.ts";
import { FormatError } from "./bytes/format-error.ts";
import { parseJson } from "./bytes/json.ts";
import { describeGguf, readGguf } from "./gguf/index.ts";
import { describeHuggingFace } from "./huggingface/index.ts";
import { describeLlama2c, readLlama2cHeader } from "./llama2c/index.ts";
import type { ModelDescription } from "./model-description.ts";
import { extensionOf, type ModelFiles, type ModelSource, modelFilesOf, opened } from "./model-files.ts";
import { readSafetensorsAmong, type SafetensorsCheckpoint } from "./safetensors/index.ts";

const expected = "a folder with config.json, a config.json, a .gguf, or a llama2.c .bin";
/** config.json of the largest known models is under 1 MB. */
const maxConfigBytes = 64 * 1024 * 1024;

/**
 * Reads what a checkpoint says of itself.
 *
 * @param model a folder, a `config.json`, a `.safetensors` (its folder is meant), a `.gguf`, or a llama2.c `.bin`; or the
 *   files of such a model
 * @returns the model's shape, how each layer knows positions, and what had to be assumed
 * @throws FormatError when it is no model, or its bytes break their format
 */
export async function openModel(model: ModelSource): Promise<ModelDescription> {
  const files = await modelFilesOf(model, expected);
  const { file, path } = files;
  if (file === null) return describeFolder(files);
  switch (extensionOf(file)) {
    case "gguf":
      return opened(files, file, async (source) => describeGguf(await readGguf(source, files.open)));
    case "bin":
      return opened(files, file, async (source) => describeLlama2c(await readLlama2cHeader(source)));
    case "json":
      return opened(files, file, (source) =>
        describeConfig(source, path, file === "config.json" ? files.folder : file.replace(/\.json$/i, ""), null),
      );
    case "safetensors":
      return describeFolder(files);
    default:
      throw new FormatError(path, `expected ${expected}, got another kind of file`);
  }
}

async function describeFolder(files: ModelFiles): Promise<ModelDescription> {
  const names = await files.list();
  if (!names.includes("config.json")) {
    const models = names.filter((file) => /\.(gguf|bin|json)$/.test(file)).slice(0, 5);
    throw new FormatError(
      files.file === null ? files.path : files.folder,
      `expected config.json in the folder, got ${models.length === 0 ? "no model file" : `only ${models.join(", ")}; name one of them`}`,
    );
  }
  const weights = await readSafetensorsAmong(names, files.open);
  return opened(files, "config.json", (source) =>
    describeConfig(source, files.locate?.("config.json") ?? source.name, files.folder, weights),
  );
}

async function describeConfig(
  source: ByteSource,
  path: string,
  name: string,
  weights: SafetensorsCheckpoint | null,
): Promise<ModelDescription> {
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
    name,
    numParameters: weights?.numParameters ?? null,
  });
  return weights === null ? model : { ...model, findings: [...model.findings, ...weights.findings] };
}
