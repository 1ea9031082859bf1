// Tensors of a safetensors checkpoint, of one file or sharded.

import type { SafetensorsCheckpoint } from "../safetensors/index.ts";
import type { Codec } from "./codec.ts";
import { type FileAccess, filesOf } from "./files.ts";
import { plainCodecs } from "./plain.ts";
import { WeightStore } from "./store.ts";
import type { Weights, WeightsOptions } from "./weights.ts";

const codecs: ReadonlyMap<string, Codec> = new Map(plainCodecs.map((codec) => [codec.name, codec]));

/**
 * The tensors of a safetensors checkpoint. 8-bit floats come as they stand: a scale beside them (`weight_scale_inv`) is a
 * tensor of its own, and the model's to apply.
 *
 * @param checkpoint headers and tensor table, as readSafetensorsShards gives them; of a single file, its header as the
 *   only one
 * @param access opens a file by its name, at the first read of a tensor in it
 * @example
 * ```ts
 * import { memorySource, readSafetensorsHeader, safetensorsWeights } from "longhand/formats";
 * const json = '{"a": {"dtype": "BF16", "shape": [1, 2], "data_offsets": [0, 4]}}';
 * const file = new Uint8Array(8 + json.length + 4);
 * file[0] = json.length;
 * file.set(new TextEncoder().encode(json), 8);
 * file.set([0x80, 0x3f, 0x20, 0xc1], 8 + json.length);
 * const source = memorySource("a.safetensors", file);
 * const header = await readSafetensorsHeader(source);
 * const weights = safetensorsWeights({ headers: [header], tensors: header.tensors }, { open: async () => source });
 * Array.from(await weights.readFloat32("a")); // => [1, -10]
 * ```
 */
export function safetensorsWeights(
  checkpoint: Pick<SafetensorsCheckpoint, "headers" | "tensors">,
  access: FileAccess,
  options: WeightsOptions = {},
): Weights {
  const fileOf = filesOf(checkpoint.headers, access);
  const tensors = Array.from(checkpoint.tensors.values(), (tensor) => ({
    name: tensor.name,
    shape: tensor.shape,
    dtype: tensor.dtype,
    file: fileOf(tensor.file),
    offset: tensor.offset,
    byteLength: tensor.byteLength,
  }));
  const first = checkpoint.headers[0]?.file ?? "safetensors";
  const where = checkpoint.headers.length > 1 ? `${first} and ${checkpoint.headers.length - 1} more` : first;
  return new WeightStore("safetensors", where, tensors, codecs, options);
}
