// A model's files to its tensors, whatever the format.

import type { ByteSource } from "../bytes/byte-source.ts";
import { FormatError } from "../bytes/format-error.ts";
import { readGguf } from "../gguf/index.ts";
import { readLlama2cHeader } from "../llama2c/index.ts";
import { extensionOf, type ModelSource, modelFilesOf, opened } from "../model-files.ts";
import { readSafetensorsAmong, readSafetensorsSource, safetensorsIndexName } from "../safetensors/index.ts";
import { ggufWeights } from "./gguf.ts";
import { llama2cWeights } from "./llama2c.ts";
import { safetensorsWeights } from "./safetensors.ts";
import type { Weights, WeightsOptions } from "./weights.ts";

const expected = "a folder of safetensors, a .safetensors, a .gguf, or a llama2.c .bin";

/**
 * Opens a checkpoint's tensors: headers are read and checked now, data when asked for.
 *
 * @param model a folder in Hugging Face's form (`model.safetensors`, or the shards of its index), a lone `.safetensors`, a
 *   `.gguf` (any part of a split one), or a llama2.c `.bin` of version 0, 1 or 2; or the files of such a model
 * @throws FormatError when it is none of these, or its bytes break their format
 */
export async function openWeights(model: ModelSource, options: WeightsOptions = {}): Promise<Weights> {
  const files = await modelFilesOf(model, expected);
  const { file, path } = files;
  if (file === null) {
    const names = await files.list();
    const checkpoint = await readSafetensorsAmong(names, files.open);
    if (checkpoint !== null) return safetensorsWeights(checkpoint, files, options);
    const models = names.filter((name) => /\.(gguf|bin|safetensors)$/.test(name)).slice(0, 5);
    throw new FormatError(
      path,
      `expected model.safetensors or ${safetensorsIndexName} in the folder, got ` +
        (models.length === 0 ? "neither" : `only ${models.join(", ")}; name one of them`),
    );
  }
  switch (extensionOf(file)) {
    case "gguf":
      return ggufWeights(await opened(files, file, (source) => readGguf(source, files.open)), files, options);
    case "safetensors":
      return safetensorsWeights(await opened(files, file, readSafetensorsSource), files, options);
    case "bin": {
      const header = await opened(files, file, async (source) => {
        await refusePickle(source);
        return readLlama2cHeader(source);
      });
      return llama2cWeights(header, files, options);
    }
    default:
      throw new FormatError(path, `expected ${expected}, got another kind of file`);
  }
}

/** torch.save's files also end in .bin. */
async function refusePickle(source: ByteSource): Promise<void> {
  const start = await source.read(0, Math.min(4, source.size));
  if (start[0] === 0x50 && start[1] === 0x4b && start[2] === 3 && start[3] === 4) {
    throw new FormatError(
      source.name,
      `expected ${expected}, got a zip archive, probably PyTorch's: save the model with safetensors instead`,
    );
  }
}
