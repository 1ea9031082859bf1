// Learned absolute positions: row p of a trained table, added to the token embedding (GPT-2, BERT, OPT). The table is
// the hard limit of such a model: past its last row there is nothing to add, so a position past it is an error here
// (engines crash, clamp or read foreign memory instead).

import { expectInteger, show } from "./errors.ts";
import type { EmbeddingEncoding } from "./position-encoding.ts";

export interface LearnedAbsoluteOptions {
  /** [N, C], row-major: the checkpoint's position embedding. */
  readonly table: Float64Array | Float32Array;
  /** C. */
  readonly hiddenSize: number;
  /** Rows before position 0's: OPT and BART keep 2. 0 when absent. */
  readonly offset?: number;
}

/**
 * A table of learned positions as an encoding: rows(positions) are its rows p + offset.
 *
 * Gehring et al. 2017 (1705.03122), section 3.1; GPT-2 (Radford et al. 2019); BERT (Devlin et al. 2019).
 *
 * @returns positions 0 .. N − offset − 1; `rows` copies, so that a caller cannot change the table
 * @throws RangeError when the table is not whole rows; `rows` throws for a position past the table, naming both
 * @example
 * ```ts
 * import { learnedAbsolute } from "longhand/encodings";
 * const encoding = learnedAbsolute({ table: Float64Array.of(1, 2, 3, 4, 5, 6), hiddenSize: 2 });
 * encoding.rows([2, 0]); // => [5, 6, 1, 2]
 * encoding.maxPositions; // => 3
 * ```
 */
export function learnedAbsolute(options: LearnedAbsoluteOptions): EmbeddingEncoding {
  const who = "learnedAbsolute";
  const { table } = options;
  const hiddenSize = expectInteger(who, "hiddenSize", options.hiddenSize, 1);
  const offset = expectInteger(who, "offset", options.offset ?? 0);
  const numRows = table.length / hiddenSize;
  if (!Number.isInteger(numRows)) {
    throw new RangeError(
      `${who}: expected a table of whole rows of hiddenSize ${hiddenSize}, got ${table.length} numbers`,
    );
  }
  const maxPositions = numRows - offset;
  if (maxPositions < 1) {
    throw new RangeError(`${who}: expected more than ${offset} rows (the offset), got ${numRows}`);
  }
  return {
    site: "embedding",
    name: "learned-absolute",
    hiddenSize,
    maxPositions,
    rows(positions) {
      const out = new Float64Array(positions.length * hiddenSize);
      for (let t = 0; t < positions.length; t++) {
        const position = expectInteger(who, "positions", positions[t]!);
        if (position >= maxPositions) {
          throw new RangeError(
            `${who}: expected positions below ${maxPositions}, the length of the table, got ${show(position)}; ` +
              "a learned table has no rows beyond its end: shorten the input, or use a model with a longer table",
          );
        }
        const row = (position + offset) * hiddenSize;
        out.set(table.subarray(row, row + hiddenSize), t * hiddenSize);
      }
      return out;
    },
  };
}
