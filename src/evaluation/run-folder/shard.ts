// A part of a run's rows. Which part a row belongs to depends on its key alone, so that every process of a Slurm array
// or an indexed job knows its rows without asking the others.

import { sha256 } from "./sha256.ts";

/** Part `index` of `count`, from 1, as in `--shard 2/8`. */
export interface Shard {
  readonly index: number;
  readonly count: number;
}

/**
 * Reads "2/8".
 *
 * @throws RangeError unless 1 ≤ index ≤ count
 * @example
 * ```ts
 * import { inShard, parseShard } from "longhand/evaluation";
 * const shard = parseShard("2/3");
 * ["a", "b", "c", "d"].filter((key) => inShard(key, shard)); // => ["a", "c", "d"]
 * ```
 */
export function parseShard(text: string): Shard {
  const match = /^(\d+)\/(\d+)$/.exec(text.trim());
  const [index, count] = match === null ? [0, 0] : [Number(match[1]), Number(match[2])];
  if (index < 1 || count < index || !Number.isSafeInteger(count)) {
    throw new RangeError(`--shard: expected INDEX/COUNT with 1 ≤ INDEX ≤ COUNT, as 2/8, got ${JSON.stringify(text)}`);
  }
  return { index, count };
}

/** Whether a row is of this part: SHA-256 of its key, modulo the number of parts. */
export function inShard(key: string, shard: Shard | null): boolean {
  if (shard === null) return true;
  return Number(BigInt(`0x${sha256(key)}`) % BigInt(shard.count)) === shard.index - 1;
}
