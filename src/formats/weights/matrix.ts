// A QuantizedMatrix read back as numbers: rows of an embedding that is kept in blocks, and the proof that repacking lost
// nothing.

import type { QuantizedMatrix } from "./weights.ts";

/**
 * Rows of a quantised matrix as float32: scales · (q − zeroPoint) + blockMinimum, formed in float64 and rounded once.
 *
 * @param rows which rows, in the order wanted; all when absent
 * @returns [rows.length, columns], row-major
 * @throws RangeError for a row outside 0 .. matrix.rows − 1
 * @example
 * ```ts
 * import { dequantizeRows } from "longhand/formats";
 * const blocks = new Uint8Array(8).fill(0x98); // 8, 9, 8, 9, …: zero and one step above it
 * const scales = Float32Array.of(0.5);
 * const matrix = { bits: 4, blockSize: 16, rows: 1, columns: 16, blocks, scales, zeroPoints: null, blockMinimum: null };
 * Array.from(dequantizeRows(matrix).subarray(0, 4)); // => [0, 0.5, 0, 0.5]
 * ```
 */
export function dequantizeRows(matrix: QuantizedMatrix, rows?: ArrayLike<number>): Float32Array {
  const { bits, blockSize, columns, blocks, scales, zeroPoints, blockMinimum } = matrix;
  const blocksARow = columns / blockSize;
  const zeroBytes = Math.ceil((blocksARow * bits) / 8);
  const count = rows?.length ?? matrix.rows;
  const out = new Float32Array(count * columns);
  let o = 0;
  for (let r = 0; r < count; r++) {
    const row = rows === undefined ? r : rows[r]!;
    if (!Number.isInteger(row) || row < 0 || row >= matrix.rows) {
      throw new RangeError(`dequantizeRows: expected rows of 0 to ${matrix.rows - 1}, got ${row}`);
    }
    for (let b = 0; b < blocksARow; b++) {
      const block = row * blocksARow + b;
      const scale = scales[block]!;
      // −0 is what addition leaves alone, zeros of either sign included.
      const least = blockMinimum === null ? -0 : blockMinimum[block]!;
      let zero = bits === 8 ? 128 : 8;
      if (zeroPoints !== null) {
        const at = row * zeroBytes;
        zero = bits === 8 ? zeroPoints[at + b]! : (zeroPoints[at + (b >> 1)]! >> (b & 1 ? 4 : 0)) & 15;
      }
      if (bits === 8) {
        const from = block * blockSize;
        for (let i = 0; i < blockSize; i++) out[o + i] = scale * (blocks[from + i]! - zero) + least;
      } else {
        const from = block * (blockSize / 2);
        for (let i = 0; i < blockSize; i += 2) {
          const byte = blocks[from + (i >> 1)]!;
          out[o + i] = scale * ((byte & 15) - zero) + least;
          out[o + i + 1] = scale * ((byte >> 4) - zero) + least;
        }
      }
      o += blockSize;
    }
  }
  return out;
}
