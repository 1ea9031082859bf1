// rows.jsonl of a run folder: a JSON object a line, each with its key. Lines are only ever added, so that a killed
// process leaves at most one line that is not whole, the last.

import { expectJson, isRecord, type Json, type JsonRecord, jsonDifferences } from "./json.ts";

export const rowsName = "rows.jsonl";

/** A result. What a second run of the same row may give otherwise (seconds, memory) stands in `measured`. */
export interface RunRow extends JsonRecord {
  readonly key: string;
}

export function encodeRow(row: RunRow): Uint8Array {
  expectJson(row, "row");
  return new TextEncoder().encode(`${JSON.stringify(row)}\n`);
}

/** Rows with the byte at which each starts, and the bytes that are whole lines. */
export interface ReadRows {
  readonly rows: readonly RunRow[];
  readonly starts: readonly number[];
  readonly length: number;
}

/**
 * The rows of a file. What stands behind the last line end is a row that was being written; it does not count.
 *
 * @throws RangeError, naming the line, for a whole line that is no row, or a key that is there twice
 */
export function decodeRows(bytes: Uint8Array, folder: string): ReadRows {
  const decoder = new TextDecoder();
  const rows: RunRow[] = [];
  const starts: number[] = [];
  const seen = new Set<string>();
  let at = 0;
  for (;;) {
    const end = bytes.indexOf(0x0a, at);
    if (end < 0) return { rows, starts, length: at };
    const where = `${folder}/${rowsName}, line ${rows.length + 1}`;
    let value: unknown;
    try {
      value = JSON.parse(decoder.decode(bytes.subarray(at, end)));
    } catch (error) {
      throw new RangeError(`${where}: expected a JSON object, got ${(error as Error).message}`);
    }
    if (!isRecord(value) || typeof value.key !== "string") {
      throw new RangeError(`${where}: expected an object with a key, got ${JSON.stringify(value)?.slice(0, 60)}`);
    }
    if (seen.has(value.key))
      throw new RangeError(`${where}: expected the key ${JSON.stringify(value.key)} once, got it twice`);
    seen.add(value.key);
    rows.push(value as RunRow);
    starts.push(at);
    at = end + 1;
  }
}

/** What differs between two rows of one key, `measured` aside, a sentence each. */
export function rowDifferences(there: RunRow, here: RunRow): string[] {
  return jsonDifferences(result(there), result(here)).map(({ message }) => message);
}

function result(row: RunRow): Json {
  const { measured: _, ...rest } = row;
  return rest;
}
