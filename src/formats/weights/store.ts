// The one implementation of Weights: a table of tensors, where each one's bytes stand, and files opened at their first use.
// Formats only fill the table.

import type { ByteSource } from "../bytes/byte-source.ts";
import { FormatError, quote } from "../bytes/format-error.ts";
import { didYouMean } from "../nearest.ts";
import type { Codec } from "./codec.ts";
import type { StoredFile } from "./files.ts";
import { findNotFinite, readBytes, readUnits } from "./read.ts";
import {
  missingWeight,
  type QuantizedLayout,
  type QuantizedMatrix,
  type WeightInfo,
  type Weights,
  type WeightsOptions,
} from "./weights.ts";

export interface StoredTensor {
  readonly name: string;
  readonly shape: readonly number[];
  readonly dtype: string;
  readonly file: StoredFile;
  readonly offset: number;
  readonly byteLength: number;
  /** llama2.c's int8: all values, then one float32 scale for so many of them. */
  readonly groupSize?: number;
}

export class WeightStore implements Weights {
  readonly format: Weights["format"];
  readonly names: readonly string[];
  readonly #tensors: ReadonlyMap<string, StoredTensor>;
  readonly #codecs: ReadonlyMap<string, Codec>;
  readonly #checkFinite: boolean;
  readonly #where: string;
  readonly #sources = new Map<StoredFile, Promise<ByteSource>>();
  readonly #underWay = new Set<Promise<unknown>>();
  #closed = false;

  /** @throws FormatError for a tensor whose bytes are not those of its shape */
  constructor(
    format: Weights["format"],
    where: string,
    tensors: readonly StoredTensor[],
    codecs: ReadonlyMap<string, Codec>,
    options: WeightsOptions,
  ) {
    this.format = format;
    this.#where = where;
    this.#codecs = codecs;
    this.#checkFinite = options.checkFinite ?? true;
    for (const tensor of tensors) expectBytesOfShape(tensor, codecs.get(tensor.dtype));
    this.#tensors = new Map(tensors.map((tensor) => [tensor.name, tensor]));
    this.names = [...this.#tensors.keys()];
  }

  has(name: string): boolean {
    return this.#tensors.has(name);
  }

  info(name: string): WeightInfo {
    const { shape, dtype, byteLength, file, offset } = this.#tensor(name);
    return { name, shape, dtype, byteLength, location: { source: file.location, offset } };
  }

  readFloat32(name: string): Promise<Float32Array> {
    return this.#run(name, async (tensor, source) => {
      const count = elementsOf(tensor.shape);
      const out = allocate(tensor, 4 * count, () => new Float32Array(count));
      if (tensor.groupSize !== undefined) {
        await this.#readGroups(tensor, source, tensor.groupSize, out);
      } else {
        await this.#readCodec(tensor, source, out);
      }
      return out;
    });
  }

  readRaw(name: string): Promise<Uint8Array> {
    return this.#run(name, async (tensor, source) => {
      const out = allocate(tensor, tensor.byteLength, () => new Uint8Array(tensor.byteLength));
      await readBytes(source, tensor.offset, out);
      return out;
    });
  }

  readQuantized(name: string): Promise<QuantizedMatrix | null> {
    return this.#run(name, async (tensor, source) => {
      const matrix =
        tensor.groupSize !== undefined
          ? await repackGroups(tensor, source, tensor.groupSize)
          : await repackBlocks(tensor, source, this.#codec(tensor));
      if (matrix !== null && this.#checkFinite) expectFiniteMatrix(tensor, matrix);
      return matrix;
    });
  }

  quantizedLayout(name: string): QuantizedLayout | null {
    const tensor = this.#tensor(name);
    const format = tensor.groupSize === undefined ? this.#codec(tensor).repack : groupFormat(tensor, tensor.groupSize);
    if (format === undefined || format === null) return null;
    const { bits, blockSize, minimum } = format;
    return { bits, blockSize, hasZeroPoints: false, hasMinimum: minimum };
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.allSettled(this.#underWay);
    const sources = await Promise.allSettled(this.#sources.values());
    this.#sources.clear();
    for (const source of sources) if (source.status === "fulfilled") await source.value.close();
  }

  #tensor(name: string): StoredTensor {
    const tensor = this.#tensors.get(name);
    if (tensor === undefined) throw missingWeight(name, this.names, this.#where);
    return tensor;
  }

  #codec(tensor: StoredTensor): Codec {
    const codec = this.#codecs.get(tensor.dtype);
    if (codec !== undefined) return codec;
    const known = [...this.#codecs.keys()];
    throw new TypeError(
      `${tensor.file.name}: expected tensor ${quote(tensor.name)} in a kind that is read (${known.join(", ")}), ` +
        `got ${tensor.dtype}${didYouMean(tensor.dtype, known)}; convert the checkpoint to one of them`,
    );
  }

  /** Looks the tensor up, opens its file and reads, so that `close` can wait for it. */
  #run<T>(name: string, read: (tensor: StoredTensor, source: ByteSource) => Promise<T>): Promise<T> {
    const task = (async () => {
      if (this.#closed) {
        throw new Error(`${this.#where}: expected weights that are open to read ${quote(name)}, got closed ones`);
      }
      const tensor = this.#tensor(name);
      return read(tensor, await this.#source(tensor.file));
    })();
    this.#underWay.add(task);
    const done = (): void => {
      this.#underWay.delete(task);
    };
    task.then(done, done);
    return task;
  }

  #source(file: StoredFile): Promise<ByteSource> {
    const open = this.#sources.get(file);
    if (open !== undefined) return open;
    const opening = (async () => {
      const source = await file.open();
      if (source.size === file.size) return source;
      await source.close();
      throw new FormatError(
        file.name,
        `expected ${file.size} bytes, as when its header was read, got ${source.size}: the file changed`,
      );
    })();
    this.#sources.set(file, opening);
    // A file that could not be opened is tried anew at the next read.
    opening.catch(() => this.#sources.delete(file));
    return opening;
  }

  async #readCodec(tensor: StoredTensor, source: ByteSource, out: Float32Array): Promise<void> {
    const codec = this.#codec(tensor);
    const { unitElements, unitBytes, finiteStride, decode } = codec;
    if (codec.identity) {
      await readBytes(source, tensor.offset, new Uint8Array(out.buffer));
      if (this.#checkFinite) expectFinite(tensor, out, 0, out.length, 1);
      return;
    }
    await readUnits(source, tensor.offset, tensor.byteLength, unitBytes, (bytes, units, first) => {
      const from = first * unitElements;
      decode(bytes, units, out.subarray(from, from + units * unitElements));
      if (this.#checkFinite) expectFinite(tensor, out, from, from + units * unitElements, finiteStride);
    });
  }

  async #readGroups(tensor: StoredTensor, source: ByteSource, groupSize: number, out: Float32Array): Promise<void> {
    const scales = await readScales(tensor, source, groupSize);
    await readUnits(source, tensor.offset, out.length, groupSize, (bytes, units, first) => {
      for (let u = 0; u < units; u++) {
        const scale = scales[first + u]!;
        const from = u * groupSize;
        const to = (first + u) * groupSize;
        for (let i = 0; i < groupSize; i++) out[to + i] = scale * ((bytes[from + i]! << 24) >> 24);
      }
      // Scales are float32: a product may overflow where the scale does not.
      if (this.#checkFinite) expectFinite(tensor, out, first * groupSize, (first + units) * groupSize, 1);
    });
  }
}

/** The scales of llama2.c's int8 groups, which stand behind the values. */
async function readScales(tensor: StoredTensor, source: ByteSource, groupSize: number): Promise<Float32Array> {
  const count = elementsOf(tensor.shape);
  const scales = new Float32Array(count / groupSize);
  await readBytes(source, tensor.offset + count, new Uint8Array(scales.buffer));
  return scales;
}

function emptyMatrix(
  tensor: StoredTensor,
  format: { readonly bits: 4 | 8; readonly blockSize: number; readonly minimum: boolean },
): QuantizedMatrix & { readonly rows: number } {
  const { bits, blockSize, minimum } = format;
  const elements = elementsOf(tensor.shape);
  const columns = tensor.shape.at(-1) ?? 1;
  const rows = columns === 0 ? 0 : elements / columns;
  const numBlocks = elements / blockSize;
  const bytes = (elements * bits) / 8;
  return allocate(tensor, bytes + 4 * numBlocks * (minimum ? 2 : 1), () => ({
    bits,
    blockSize,
    rows,
    columns,
    blocks: new Uint8Array(bytes),
    scales: new Float32Array(numBlocks),
    zeroPoints: null,
    blockMinimum: minimum ? new Float32Array(numBlocks) : null,
    exact: true,
  }));
}

const nothing = new Float32Array(0);

async function repackBlocks(tensor: StoredTensor, source: ByteSource, codec: Codec): Promise<QuantizedMatrix | null> {
  const { repack, unitBytes, unitElements } = codec;
  if (repack === undefined) return null;
  const matrix = emptyMatrix(tensor, repack);
  const blocksAUnit = unitElements / repack.blockSize;
  const minimum = matrix.blockMinimum ?? nothing;
  await readUnits(source, tensor.offset, tensor.byteLength, unitBytes, (bytes, units, first) => {
    const block = first * blocksAUnit;
    const byte = (block * repack.blockSize * repack.bits) / 8;
    repack.run(bytes, units, matrix.blocks.subarray(byte), matrix.scales.subarray(block), minimum.subarray(block));
  });
  return matrix;
}

/** The blocks that llama2.c's groups are: they run over the whole matrix, so that a row must be whole groups. A group
 *  that is no power of two becomes several blocks of one scale. */
function groupFormat(
  tensor: StoredTensor,
  groupSize: number,
): { readonly bits: 8; readonly blockSize: number; readonly minimum: false } | null {
  const blockSize = 2 ** Math.floor(Math.log2(groupSize & -groupSize));
  const columns = tensor.shape.at(-1) ?? 1;
  return blockSize < 16 || columns % groupSize !== 0 ? null : { bits: 8, blockSize, minimum: false };
}

async function repackGroups(
  tensor: StoredTensor,
  source: ByteSource,
  groupSize: number,
): Promise<QuantizedMatrix | null> {
  const format = groupFormat(tensor, groupSize);
  if (format === null) return null;
  const matrix = emptyMatrix(tensor, format);
  const scales = await readScales(tensor, source, groupSize);
  const repeat = groupSize / format.blockSize;
  for (let i = 0; i < matrix.scales.length; i++) matrix.scales[i] = scales[Math.floor(i / repeat)]!;
  await readUnits(source, tensor.offset, elementsOf(tensor.shape), 1, (bytes, units, first) => {
    for (let i = 0; i < units; i++) matrix.blocks[first + i] = bytes[i]! ^ 0x80;
  });
  return matrix;
}

export function elementsOf(shape: readonly number[]): number {
  let elements = 1;
  for (const size of shape) elements *= size;
  return elements;
}

function expectBytesOfShape(tensor: StoredTensor, codec: Codec | undefined): void {
  const elements = elementsOf(tensor.shape);
  let bytes: number;
  if (tensor.groupSize !== undefined) bytes = elements + 4 * (elements / tensor.groupSize);
  else if (codec !== undefined) bytes = (elements / codec.unitElements) * codec.unitBytes;
  else return;
  const wholeRows = codec === undefined || (tensor.shape.at(-1) ?? 1) % codec.unitElements === 0;
  if (bytes === tensor.byteLength && wholeRows && Number.isSafeInteger(elements)) return;
  throw new FormatError(
    tensor.file.name,
    `expected ${wholeRows ? `${bytes} bytes` : `rows in whole blocks of ${codec?.unitElements}`} for tensor ` +
      `${quote(tensor.name)} (${tensor.dtype}, shape [${tensor.shape.join(", ")}]), got ${tensor.byteLength} bytes`,
    tensor.offset,
  );
}

function allocate<T>(tensor: StoredTensor, bytes: number, make: () => T): T {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new RangeError(
      `${tensor.file.name}: expected room for tensor ${quote(tensor.name)}, ${bytes} bytes in one array, got ` +
        `"${error.message}"`,
    );
  }
}

function expectFinite(tensor: StoredTensor, values: Float32Array, from: number, to: number, stride: number): void {
  const found = findNotFinite(values, from, to, stride);
  if (found < 0) return;
  throw notFinite(tensor, found, String(values[found]));
}

function notFinite(tensor: StoredTensor, index: number, got: string): FormatError {
  const { shape } = tensor;
  const at: number[] = [];
  let rest = index;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    at.unshift(rest % shape[axis]!);
    rest = Math.floor(rest / shape[axis]!);
  }
  return new FormatError(
    tensor.file.name,
    `expected finite numbers in tensor ${quote(tensor.name)}, got ${got} at [${at.join(", ")}] (element ${index}); ` +
      "the checkpoint is damaged, or checkFinite: false reads it as it is",
  );
}

/** Above this, a block's scale times a code may pass float32. */
const largeScale = 2 ** 120;

function expectFiniteMatrix(tensor: StoredTensor, matrix: QuantizedMatrix): void {
  const { bits, blockSize, blocks, scales, blockMinimum } = matrix;
  for (let b = 0; b < scales.length; b++) {
    const scale = scales[b]!;
    // Of NaN, too, the comparison is false.
    if (Math.abs(scale) < largeScale && (blockMinimum === null || Math.abs(blockMinimum[b]!) < largeScale)) continue;
    for (let i = b * blockSize; i < (b + 1) * blockSize; i++) {
      const q = bits === 8 ? blocks[i]! - 128 : ((blocks[Math.floor(i / 2)]! >> (i % 2 === 1 ? 4 : 0)) & 15) - 8;
      const value = Math.fround(scale * q + (blockMinimum?.[b] ?? 0));
      if (!Number.isFinite(value)) throw notFinite(tensor, i, String(value));
    }
  }
}
