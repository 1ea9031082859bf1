// How alike the rows of two positions are: what a model that adds rows to its embeddings can tell of nearness.

import type { EmbeddingEncoding } from "./position-encoding.ts";

/**
 * The cosine of the angle between the row of one position and the rows of others.
 *
 * @returns one number a position, −1 .. 1; 0 where a row is all zeros
 * @throws RangeError for a position past the table
 * @example
 * ```ts
 * import { rowSimilarities, sinusoidal } from "longhand/encodings";
 * rowSimilarities(sinusoidal({ hiddenSize: 2 }), 0, [0, 1]); // => [1, 0.5403023058681398]
 * ```
 * Source: the figure of position embeddings' similarity in Wang and Chen 2020 (2010.04903).
 */
export function rowSimilarities(
  encoding: EmbeddingEncoding,
  position: number,
  positions: ArrayLike<number>,
): Float64Array {
  const width = encoding.hiddenSize;
  const own = encoding.rows([position]);
  const rows = encoding.rows(positions);
  const ownSize = Math.hypot(...own);
  return Float64Array.from({ length: positions.length }, (_, i) => {
    let product = 0;
    let square = 0;
    for (let channel = 0; channel < width; channel++) {
      const value = rows[i * width + channel]!;
      product += own[channel]! * value;
      square += value * value;
    }
    const size = ownSize * Math.sqrt(square);
    return size === 0 ? 0 : product / size;
  });
}
