// A GGUF checkpoint in several files, as llama.cpp's gguf-split writes them: `name-00001-of-00003.gguf`, with split.no
// (from 0), split.count and split.tensors.count in each. Metadata stand in the first part. Any part may be given.

import type { ByteSource } from "../bytes/byte-source.ts";
import { FormatError, quote } from "../bytes/format-error.ts";
import { joinPath, openFile, splitPath, withFile } from "../bytes/node-file.ts";
import { type GgufHeader, type GgufTensor, readGgufHeader } from "./header.ts";

const splitName = /^(.*)-(\d{5,})-of-(\d{5,})\.gguf$/s;
const maxParts = 65_535;
const concurrency = 16;

/**
 * Reads the header of a GGUF checkpoint, all parts joined.
 *
 * @param source the file, or any part of a split checkpoint; it stays open
 * @param openSibling opens a file beside it by name; sources are closed here
 * @throws FormatError as readGgufHeader does, and for a part that is missing (naming the file expected), out of order,
 *   of another checkpoint, or that repeats a tensor
 */
export async function readGguf(
  source: ByteSource,
  openSibling: (file: string) => Promise<ByteSource>,
): Promise<GgufHeader> {
  const given = await readGgufHeader(source);
  const count = splitNumber(given, "split.count") ?? 1;
  if (count <= 1) return given;
  if (count > maxParts) throw new FormatError(given.file, `expected split.count of at most ${maxParts}, got ${count}`);
  const match = splitName.exec(given.file);
  if (match === null || Number(match[3]) !== count) {
    throw new FormatError(
      given.file,
      `expected a name ending in -NNNNN-of-${pad(count)}.gguf, as split.count is ${count}, got ${quote(given.file)}: ` +
        "give the parts back their names",
    );
  }
  const stem = match[1]!;
  const nameOf = (part: number): string => `${stem}-${pad(part + 1)}-of-${pad(count)}.gguf`;
  const givenPart = Number(match[2]) - 1;
  expectPart(given, givenPart, count);

  const headers = new Array<GgufHeader>(count);
  headers[givenPart] = given;
  const rest = Array.from({ length: count }, (_, part) => part).filter((part) => part !== givenPart);
  // In order, a few at a time: the first missing part is the one that the message names.
  for (let start = 0; start < rest.length; start += concurrency) {
    const outcomes = await Promise.allSettled(
      rest.slice(start, start + concurrency).map(async (part) => {
        const header = await readSibling(nameOf(part), given.file, openSibling);
        expectPart(header, part, count);
        headers[part] = header;
      }),
    );
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  }
  return join(headers);
}

async function readSibling(
  name: string,
  beside: string,
  openSibling: (file: string) => Promise<ByteSource>,
): Promise<GgufHeader> {
  let sibling: ByteSource;
  try {
    sibling = await openSibling(name);
  } catch (error) {
    const why = error instanceof FormatError ? error.message : String(error);
    throw new FormatError(beside, `expected the part ${quote(name)} beside it, got none: ${why}`);
  }
  try {
    return await readGgufHeader(sibling);
  } finally {
    await sibling.close();
  }
}

function join(headers: readonly GgufHeader[]): GgufHeader {
  const first = headers[0]!;
  const tensors = new Map<string, GgufTensor>();
  let numParameters = 0;
  for (const header of headers) {
    for (const [name, tensor] of header.tensors) {
      const other = tensors.get(name);
      if (other !== undefined) {
        throw new FormatError(header.file, `expected tensor ${quote(name)} in one part, got it in ${other.file} too`);
      }
      tensors.set(name, tensor);
    }
    numParameters += header.numParameters;
  }
  const total = splitNumber(first, "split.tensors.count");
  if (total !== undefined && total !== tensors.size) {
    throw new FormatError(
      first.file,
      `expected ${total} tensors in all parts (split.tensors.count), got ${tensors.size}`,
    );
  }
  return {
    ...first,
    tensors,
    numParameters,
    rotary: {
      freqs: headers.find((one) => one.rotary.freqs !== null)?.rotary.freqs ?? null,
      long: headers.find((one) => one.rotary.long !== null)?.rotary.long ?? null,
      short: headers.find((one) => one.rotary.short !== null)?.rotary.short ?? null,
    },
    parts: headers.flatMap((one) => one.parts),
  };
}

function expectPart(header: GgufHeader, part: number, count: number): void {
  const no = splitNumber(header, "split.no");
  const of = splitNumber(header, "split.count");
  if (of !== count) {
    throw new FormatError(header.file, `expected split.count ${count}, as in the other parts, got ${of ?? "none"}`);
  }
  if (no !== part) {
    throw new FormatError(header.file, `expected split.no ${part}, as its name says, got ${no ?? "none"}`);
  }
}

function splitNumber(header: GgufHeader, key: string): number | undefined {
  const entry = header.metadata.get(key);
  if (entry === undefined) return undefined;
  if (typeof entry.value !== "number" || !Number.isInteger(entry.value) || entry.value < 0) {
    throw new FormatError(header.file, `expected ${key} to be an integer of at least 0, got ${entry.type}`);
  }
  return entry.value;
}

function pad(part: number): string {
  return String(part).padStart(5, "0");
}

/** Reads the header of a GGUF checkpoint on disk; the other parts of a split one are looked for beside it. */
export async function openGguf(path: string): Promise<GgufHeader> {
  const { folder } = await splitPath(path);
  return withFile(path, (source) => readGguf(source, async (file) => openFile(await joinPath(folder, file))));
}
