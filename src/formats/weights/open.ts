// A path to its tensors, whatever the format. Node only; browsers build Weights from headers and Blobs.

import { FormatError } from "../bytes/format-error.ts";
import { openFile, splitPath, withFile } from "../bytes/node-file.ts";
import { openGguf } from "../gguf/index.ts";
import { readLlama2cHeader } from "../llama2c/index.ts";
import { nearest } from "../nearest.ts";
import { readSafetensorsFile, readSafetensorsFolder, safetensorsIndexName } from "../safetensors/index.ts";
import type { FileAccess } from "./files.ts";
import { ggufWeights } from "./gguf.ts";
import { llama2cWeights } from "./llama2c.ts";
import { safetensorsWeights } from "./safetensors.ts";
import type { Weights, WeightsOptions } from "./weights.ts";

const expected = "a folder of safetensors, a .safetensors, a .gguf, or a llama2.c .bin";

/**
 * Opens a checkpoint's tensors: headers are read and checked now, data when asked for.
 *
 * @param path a folder in Hugging Face's form (`model.safetensors`, or the shards of its index), a lone `.safetensors`, a
 *   `.gguf` (any part of a split one), or a llama2.c `.bin` of version 0, 1 or 2
 * @throws FormatError when the path is none of these, or its bytes break their format
 */
export async function openWeights(path: string, options: WeightsOptions = {}): Promise<Weights> {
  const { stat, readdir } = await import("node:fs/promises");
  const { basename, dirname, join } = await import("node:path");
  const info = await stat(path).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw new FormatError(path, `expected ${expected}, got ${error.code}`);
    const close = nearest(basename(path), await readdir(dirname(path)).catch(() => [] as string[]))[0];
    throw new FormatError(
      path,
      `expected ${expected}, got a path that does not exist${close === undefined ? "" : `; nearest: ${close}`}`,
    );
  });
  const filesIn = (folder: string): FileAccess => ({
    open: (file) => openFile(join(folder, file)),
    locate: (file) => join(folder, file),
  });

  if (info.isDirectory()) {
    const checkpoint = await readSafetensorsFolder(path);
    if (checkpoint !== null) return safetensorsWeights(checkpoint, filesIn(path), options);
    const models = (await readdir(path)).filter((file) => /\.(gguf|bin|safetensors)$/.test(file)).slice(0, 5);
    throw new FormatError(
      path,
      `expected model.safetensors or ${safetensorsIndexName} in the folder, got ` +
        (models.length === 0 ? "neither" : `only ${models.join(", ")}; name one of them`),
    );
  }
  const beside = filesIn((await splitPath(path)).folder);
  switch (path.slice(path.lastIndexOf(".") + 1).toLowerCase()) {
    case "gguf":
      return ggufWeights(await openGguf(path), beside, options);
    case "safetensors":
      return safetensorsWeights(await readSafetensorsFile(path), beside, options);
    case "bin": {
      await refusePickle(path);
      return llama2cWeights(await withFile(path, readLlama2cHeader), beside, options);
    }
    default:
      throw new FormatError(path, `expected ${expected}, got another kind of file`);
  }
}

/** torch.save's files also end in .bin. */
async function refusePickle(path: string): Promise<void> {
  await withFile(path, async (source) => {
    const start = await source.read(0, Math.min(4, source.size));
    if (start[0] === 0x50 && start[1] === 0x4b && start[2] === 3 && start[3] === 4) {
      throw new FormatError(
        source.name,
        `expected ${expected}, got a zip archive, probably PyTorch's: save the model with safetensors instead`,
      );
    }
  });
}
