// Dual chunk attention (An et al. 2024, 2402.17463; Qwen2.5-1M): keys are numbered within their chunk, and a query takes
// one of three positions, by whether the key is in its own chunk, in the one before, or further back.

import { expectInteger } from "../errors.ts";
import { type PositionMap, positionMap } from "./position-map.ts";

export interface DualChunkOptions {
  /** L. */
  readonly trainedLength: number;
  /** `chunk_size`: the largest relative position. ChunkLlama takes 3/4 of L. */
  readonly chunkSize: number;
  /** `local_size`: up to this distance relative positions stay exact across a chunk's border. ChunkLlama: L/16. */
  readonly localSize: number;
}

/**
 * Dual chunk attention. With c = chunkSize − localSize, keys are at k mod c, and a query at q mod c (intra, same chunk),
 * min(q mod c + c, chunkSize) (successive, the chunk before) or min(2c − 1, chunkSize) (inter, further back).
 *
 * An et al. 2024 (2402.17463), section 3; ChunkLlama, and vLLM's dual_chunk_attention_config. No distance is too far
 * when chunkSize is below trainedLength. Qwen2.5-1M ships chunk_size 262144 for a trained length of 262144: its largest
 * relative position is one past the trained ones, so that maxLength is 262144 for it, not Infinity.
 *
 * @throws RangeError unless 0 ≤ localSize < chunkSize ≤ trainedLength, all integers
 * @example
 * ```ts
 * import { dualChunkMap } from "longhand/encodings";
 * const map = dualChunkMap({ trainedLength: 4096, chunkSize: 3072, localSize: 256 });
 * map.relativePosition(2900, 2800); // => 100
 * map.relativePosition(50000, 0); // => 3072
 * map.maxLength; // => Infinity
 * ```
 */
export function dualChunkMap(options: DualChunkOptions): PositionMap {
  const who = "dualChunkMap";
  const trainedLength = expectInteger(who, "trainedLength", options.trainedLength, 2);
  const chunkSize = expectInteger(who, "chunkSize", options.chunkSize, 1);
  const localSize = expectInteger(who, "localSize", options.localSize);
  if (chunkSize > trainedLength) {
    throw new RangeError(`${who}: expected chunkSize of at most trainedLength ${trainedLength}, got ${chunkSize}`);
  }
  if (localSize >= chunkSize) {
    throw new RangeError(`${who}: expected localSize below chunkSize ${chunkSize}, got ${localSize}`);
  }
  const c = chunkSize - localSize;
  const chunk = (p: number) => Math.floor(p / c);
  const key = (p: number) => p % c;
  const reach = Math.min(2 * c - 1, chunkSize);
  return positionMap({
    name: "dual-chunk",
    trainedLength,
    maxLength: reach < trainedLength ? Number.POSITIVE_INFINITY : trainedLength,
    views: [
      { name: "intra", query: (p) => p % c, key, sees: (q, k) => chunk(q) === chunk(k) },
      {
        name: "successive",
        query: (p) => Math.min((p % c) + c, chunkSize),
        key,
        sees: (q, k) => chunk(q) === chunk(k) + 1,
      },
      { name: "inter", query: () => reach, key, sees: (q, k) => chunk(q) > chunk(k) + 1 },
    ],
    largestRelativePosition: (length) => Math.min(length - 1, reach),
  });
}
