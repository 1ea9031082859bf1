// A checkpoint in one file or in several: `model.safetensors.index.json` says which shard holds each tensor. Shards are
// opened a few at a time (a 70B model has 30, a large mixture of experts over 100) and closed as soon as they are read.

import type { ByteSource } from "../bytes/byte-source.ts";
import { FormatError, quote } from "../bytes/format-error.ts";
import { isJsonObject, parseJson } from "../bytes/json.ts";
import { joinPath, openFile, withFile } from "../bytes/node-file.ts";
import type { Finding } from "../finding.ts";
import { readSafetensorsHeader, type SafetensorsHeader, type SafetensorsTensor } from "./header.ts";

/** All the tensors of a checkpoint, whichever file holds them. */
export interface SafetensorsCheckpoint {
  /** By file, in the index's order. */
  readonly headers: readonly SafetensorsHeader[];
  readonly tensors: ReadonlyMap<string, SafetensorsTensor>;
  readonly numParameters: number;
  readonly findings: readonly Finding[];
}

export const safetensorsIndexName = "model.safetensors.index.json";
const maxIndexBytes = 100_000_000;

/** The index: which shard holds each tensor. */
export interface SafetensorsIndex {
  readonly file: string;
  readonly weightMap: ReadonlyMap<string, string>;
  /** Shard names in order of appearance. */
  readonly shards: readonly string[];
}

/**
 * Reads `model.safetensors.index.json`.
 *
 * @throws FormatError for JSON that is not strict, a missing weight_map, or a shard that is not a plain file name (an
 *   index must not reach outside its folder)
 * @example
 * ```ts
 * import { memorySource, readSafetensorsIndex } from "longhand/formats";
 * const text = '{"weight_map": {"a": "model-00001-of-00002.safetensors"}}';
 * const index = await readSafetensorsIndex(memorySource("index.json", new TextEncoder().encode(text)));
 * index.shards; // => ["model-00001-of-00002.safetensors"]
 * ```
 */
export async function readSafetensorsIndex(source: ByteSource): Promise<SafetensorsIndex> {
  const file = source.name;
  if (source.size > maxIndexBytes) {
    throw new FormatError(file, `expected an index of at most ${maxIndexBytes} bytes, got ${source.size}`);
  }
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(await source.read(0, source.size));
  } catch (error) {
    if (error instanceof TypeError) throw new FormatError(file, "expected valid UTF-8, got other bytes");
    throw error;
  }
  const root = parseJson(text, file);
  const map = isJsonObject(root) ? root.weight_map : undefined;
  if (!isJsonObject(map)) throw new FormatError(file, 'expected an object with an object "weight_map"');
  const weightMap = new Map<string, string>();
  const shards = new Set<string>();
  for (const [tensor, shard] of Object.entries(map)) {
    if (typeof shard !== "string" || !isPlainFileName(shard)) {
      throw new FormatError(
        file,
        `expected weight_map[${quote(tensor)}] to be a plain file name in the same folder, got ` +
          (typeof shard === "string" ? quote(shard) : JSON.stringify(shard)),
      );
    }
    weightMap.set(tensor, shard);
    shards.add(shard);
  }
  if (shards.size === 0) throw new FormatError(file, "expected weight_map to name at least one tensor, got none");
  return { file, weightMap, shards: [...shards] };
}

/** No folder, no drive, no stream of Windows, no way up. */
function isPlainFileName(name: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a zero byte would cut the path short
  return name !== "" && name !== "." && name !== ".." && !/[/\\:\u0000-\u001f]/.test(name);
}

/**
 * Reads the headers of all shards of an index and checks them against it.
 *
 * @param index what readSafetensorsIndex gave
 * @param open opens a shard by its name; the source is closed here
 * @param concurrency shards open at once
 * @returns the joined tensor table; a tensor that stands in a shard where the index does not put it becomes a finding
 * @throws FormatError for a shard that is missing or broken, and for a tensor that is not in the shard named
 */
export async function readSafetensorsShards(
  index: SafetensorsIndex,
  open: (shard: string) => Promise<ByteSource>,
  concurrency = 16,
): Promise<SafetensorsCheckpoint> {
  const headers = await mapBounded(index.shards, concurrency, async (shard) => {
    let source: ByteSource;
    try {
      source = await open(shard);
    } catch (error) {
      const why = error instanceof FormatError ? error.message : String(error);
      throw new FormatError(index.file, `expected the shard ${quote(shard)} beside the index, got none: ${why}`);
    }
    try {
      return await readSafetensorsHeader(source);
    } finally {
      await source.close();
    }
  });
  const byShard = new Map(index.shards.map((shard, i) => [shard, headers[i]!]));
  const tensors = new Map<string, SafetensorsTensor>();
  let numParameters = 0;
  for (const [name, shard] of index.weightMap) {
    const tensor = byShard.get(shard)!.tensors.get(name);
    if (tensor === undefined) {
      const elsewhere = headers.find((header) => header.tensors.has(name));
      throw new FormatError(
        index.file,
        `expected tensor ${quote(name)} in ${shard}, got ` +
          (elsewhere === undefined ? "it in no shard" : `it in ${elsewhere.file}`),
      );
    }
    tensors.set(name, tensor);
    numParameters += tensor.numElements;
  }
  const findings: Finding[] = [];
  for (const [shard, header] of byShard) {
    const extra = [...header.tensors.keys()].filter((name) => index.weightMap.get(name) !== shard);
    if (extra.length > 0) {
      findings.push({
        code: "tensor-outside-index",
        severity: "warning",
        where: shard,
        got: extra.length > 3 ? [...extra.slice(0, 3), `and ${extra.length - 3} more`] : extra,
        expected: "only tensors that weight_map puts in this shard",
        why: "a reader that loads whole shards and one that follows the index see different weights",
        fix: "write the index again from the shards",
      });
    }
  }
  return { headers, tensors, numParameters, findings };
}

/** Reads one `.safetensors` file on disk. */
export async function readSafetensorsFile(path: string): Promise<SafetensorsCheckpoint> {
  return withFile(path, readSafetensorsSource);
}

/** Reads one `.safetensors` file, wherever it is. */
export async function readSafetensorsSource(source: ByteSource): Promise<SafetensorsCheckpoint> {
  const header = await readSafetensorsHeader(source);
  return { headers: [header], tensors: header.tensors, numParameters: header.numParameters, findings: [] };
}

/**
 * Reads the safetensors headers of a folder in Hugging Face's form: `model.safetensors`, or the shards of its index.
 *
 * @returns null when the folder holds neither
 */
export async function readSafetensorsFolder(folder: string): Promise<SafetensorsCheckpoint | null> {
  const { readdir } = await import("node:fs/promises");
  return readSafetensorsAmong(await readdir(folder).catch(() => []), async (file) =>
    openFile(await joinPath(folder, file)),
  );
}

/**
 * The same of files anywhere.
 *
 * @param names the files that there are
 * @param open opens one of them; sources are closed here
 */
export async function readSafetensorsAmong(
  names: readonly string[],
  open: (file: string) => Promise<ByteSource>,
): Promise<SafetensorsCheckpoint | null> {
  const read = async <T>(file: string, use: (source: ByteSource) => Promise<T>): Promise<T> => {
    const source = await open(file);
    try {
      return await use(source);
    } finally {
      await source.close();
    }
  };
  // transformers prefers the single file too.
  if (names.includes("model.safetensors")) return read("model.safetensors", readSafetensorsSource);
  if (!names.includes(safetensorsIndexName)) return null;
  return readSafetensorsShards(await read(safetensorsIndexName, readSafetensorsIndex), open);
}

/** Maps in order with so many calls under way at once; the first failure stops new ones. */
async function mapBounded<T, R>(items: readonly T[], limit: number, map: (item: T) => Promise<R>): Promise<R[]> {
  const results = new Array<R>(items.length);
  let next = 0;
  let failed = false;
  const worker = async (): Promise<void> => {
    while (!failed && next < items.length) {
      const i = next++;
      try {
        results[i] = await map(items[i]!);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  const workers = Array.from({ length: Math.max(1, Math.min(limit, items.length)) }, worker);
  const outcomes = await Promise.allSettled(workers);
  // Waited for all, so that no source stays open behind the error.
  for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  return results;
}
