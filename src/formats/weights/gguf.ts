// Tensors of a GGUF checkpoint, of one file or split.

import type { GgufHeader } from "../gguf/index.ts";
import { type FileAccess, filesOf } from "./files.ts";
import { ggmlCodecs } from "./ggml/index.ts";
import { WeightStore } from "./store.ts";
import type { Weights, WeightsOptions } from "./weights.ts";

/**
 * The tensors of a GGUF checkpoint, shapes outermost axis first.
 *
 * @param header what readGgufHeader or readGguf gave
 * @param access opens a part by its name, at the first read of a tensor in it
 * @example
 * ```ts
 * import { ggufWeights, memorySource, readGgufHeader } from "longhand/formats";
 * // "w": 32 numbers in one block of Q8_0 (ggml type 8), scale 0.5 (float16 0x3800), codes 0 to 31.
 * const file = new Uint8Array(98);
 * file.set([0x47, 0x47, 0x55, 0x46, 3, 0, 0, 0, 1]); // magic, version 3, one tensor
 * file.set([1, 0, 0, 0, 0, 0, 0, 0, 0x77, 1, 0, 0, 0, 32, 0, 0, 0, 0, 0, 0, 0, 8], 24);
 * file.set([0x00, 0x38, ...Array(32).keys()], 64);
 * const source = memorySource("w.gguf", file);
 * const weights = ggufWeights(await readGgufHeader(source), { open: async () => source });
 * weights.info("w").dtype; // => "Q8_0"
 * Array.from((await weights.readFloat32("w")).subarray(0, 4)); // => [0, 0.5, 1, 1.5]
 * (await weights.readQuantized("w")).bits; // => 8
 * ```
 */
export function ggufWeights(header: GgufHeader, access: FileAccess, options: WeightsOptions = {}): Weights {
  const fileOf = filesOf(header.parts, access);
  const tensors = Array.from(header.tensors.values(), (tensor) => ({
    name: tensor.name,
    shape: tensor.dimensions.toReversed(),
    dtype: tensor.type.name,
    file: fileOf(tensor.file),
    offset: tensor.offset,
    byteLength: tensor.byteLength,
  }));
  return new WeightStore("gguf", header.file, tensors, ggmlCodecs, options);
}
