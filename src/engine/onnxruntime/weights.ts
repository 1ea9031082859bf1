// Weights as ONNX Runtime takes them. Small tensors go inside the model. Large ones in memory are handed over as
// external data, without a copy by us; ones in files are referred to where they are and mapped by ONNX Runtime itself,
// which wants all of them below one folder and refuses to mix the two.

import type { ExternalBytes } from "../../graph/index.ts";
import { type Tensor, tensorBytes } from "../../tensor/index.ts";
import type { FileWeight, WeightSource } from "../backend.ts";
import { isFileWeight } from "../binding.ts";

export interface PackedWeights {
  readonly weights: ReadonlyMap<string, Uint8Array | ExternalBytes>;
  /** Session options: externalData, or the folder of the files. */
  readonly options: Readonly<Record<string, unknown>>;
}

/** Below this, a tensor is written into the model: shape inference can see it, and calls are fewer. */
const INLINE_BYTES = 1024;
/** A protobuf message ends at 2 GiB. */
const MAX_INLINE_BYTES = 2 ** 30;

export async function packWeights(sources: ReadonlyMap<string, WeightSource>, files: boolean): Promise<PackedWeights> {
  const onDisk = [...sources].filter((entry): entry is [string, FileWeight] => isFileWeight(entry[1]));
  const inMemory = [...sources].filter((entry): entry is [string, Tensor] => !isFileWeight(entry[1]));
  if (onDisk.length > 0 && !files) {
    throw new TypeError("load: expected weights in memory on this device, got one in a file; read it first");
  }
  const weights = new Map<string, Uint8Array | ExternalBytes>();
  let external: { path: string; data: Uint8Array }[] = [];
  let folder: string | undefined;
  const total = inMemory.reduce((bytes, [, tensor]) => bytes + tensor.data.byteLength, 0);
  if (onDisk.length > 0 && total <= MAX_INLINE_BYTES) folder = await addFiles(onDisk, weights);
  if (folder === undefined && onDisk.length > 0) external = await readFiles(onDisk, weights);
  for (const [name, tensor] of inMemory) {
    const bytes = tensorBytes(tensor);
    if (folder !== undefined || bytes.byteLength < INLINE_BYTES) {
      weights.set(name, bytes);
    } else {
      const path = `memory/${external.length}`;
      external.push({ path, data: bytes });
      weights.set(name, { location: path, offset: 0, length: bytes.byteLength });
    }
  }
  const options: Record<string, unknown> = {};
  if (external.length > 0) options.externalData = external;
  if (folder !== undefined) {
    options.extra = { session: { model_external_initializers_file_folder_path: folder } };
  }
  return { weights, options };
}

/** Refers to files by their path below the folder that holds all of them; undefined when there is none. */
async function addFiles(
  sources: readonly [string, FileWeight][],
  weights: Map<string, Uint8Array | ExternalBytes>,
): Promise<string | undefined> {
  const { realpath, stat } = await import("node:fs/promises");
  const { dirname, relative, sep } = await import("node:path");
  // A link may lead out of the folder (as in a download cache), which ONNX Runtime refuses: follow it first.
  const real = new Map<string, string>();
  for (const [name, { file, offset, length }] of sources) {
    if (!real.has(file)) real.set(file, await realpath(file));
    const { size } = await stat(real.get(file)!);
    if (offset < 0 || offset + length > size) {
      throw new RangeError(
        `load: expected ${length} bytes at ${offset} of ${file} for ${name}, got a file of ${size} bytes`,
      );
    }
  }
  const inside = (path: string, folder: string): boolean => {
    const below = relative(folder, path);
    return below !== "" && !below.startsWith("..") && below !== path;
  };
  const paths = [...real.values()];
  let folder = dirname(paths[0]!);
  while (!paths.every((path) => inside(path, folder))) {
    const parent = dirname(folder);
    if (parent === folder) return undefined;
    folder = parent;
  }
  for (const [name, { file, offset, length }] of sources) {
    const location = relative(folder, real.get(file)!).split(sep).join("/");
    weights.set(name, { location, offset, length });
  }
  return folder;
}

async function readFiles(
  sources: readonly [string, FileWeight][],
  weights: Map<string, Uint8Array | ExternalBytes>,
): Promise<{ path: string; data: Uint8Array }[]> {
  const { weightTensors } = await import("../reference/session.ts");
  const tensors = await weightTensors(new Map(sources));
  return [...tensors].map(([name, tensor], i) => {
    const data = tensorBytes(tensor);
    weights.set(name, { location: `files/${i}`, offset: 0, length: data.byteLength });
    return { path: `files/${i}`, data };
  });
}
