// The score of one query vector against one key vector, as the key moves away: real vectors in place of the ideal ones of
// score-by-distance.ts. One number a place of the key; no table of queries against keys.

import { expectInteger, show } from "./errors.ts";
import type { PositionEncoding } from "./position-encoding.ts";
import { applyRotary } from "./rope/rotation.ts";

export interface VectorScoresOptions {
  /** Where the query stands. */
  readonly queryPosition: number;
  /** Where the same key vector is put, one place a score. */
  readonly keyPositions: ArrayLike<number>;
  /** What multiplies q·k; 1/√D when absent. */
  readonly scale?: number;
  /** Which head's bias is added; 0 when absent. */
  readonly head?: number;
  /** The length that length-dependent scalings see; one past the largest position when absent. */
  readonly sequenceLength?: number;
}

/**
 * scale · q·k after the encoding has acted, the bias added: what enters the softmax.
 *
 * A query-key encoding rotates both by their own places; an attention bias is added after the scale; none and embeddings
 * change nothing here, since rows were added before q and k were made.
 *
 * @param query [D], before the rotation
 * @param key [D], before the rotation
 * @returns scores [S], one a key position
 * @throws RangeError for vectors of different or unfitting length, or positions that are not integers of at least 0
 * @example
 * ```ts
 * import { alibi, vectorScores } from "longhand/encodings";
 * const places = { queryPosition: 2, keyPositions: [0, 2], scale: 1 };
 * vectorScores(alibi({ numHeads: 8 }), [1, 2], [3, 4], places); // => [10, 11]
 * ```
 * Source: RoFormer (Su et al. 2021, 2104.09864), equation 16; ALiBi (Press et al. 2022, 2108.12409), section 3.
 */
export function vectorScores(
  encoding: PositionEncoding,
  query: ArrayLike<number>,
  key: ArrayLike<number>,
  options: VectorScoresOptions,
): Float64Array {
  const who = "vectorScores";
  const { queryPosition, keyPositions, head = 0 } = options;
  expectInteger(who, "queryPosition", queryPosition);
  let largest = queryPosition;
  for (let s = 0; s < keyPositions.length; s++) {
    largest = Math.max(largest, expectInteger(who, "keyPositions", keyPositions[s]!));
  }
  const length = expectInteger(who, "sequenceLength", options.sequenceLength ?? largest + 1, 1);
  const size = query.length;
  if (key.length !== size || (encoding.site === "query-key" && encoding.headDim !== size)) {
    const wanted = encoding.site === "query-key" ? encoding.headDim : size;
    throw new RangeError(
      `${who}: expected query and key of ${wanted} numbers, got ${show(size)} and ${show(key.length)}`,
    );
  }
  const scale = options.scale ?? 1 / Math.sqrt(size);
  if (encoding.site === "query-key") {
    const { headDim, layout, rotaryDim } = encoding;
    const q = applyRotary(query, encoding.queryTables([queryPosition], length), { headDim, layout });
    const tables = encoding.keyTables(keyPositions, length);
    const pairs = rotaryDim / 2;
    return Float64Array.from({ length: keyPositions.length }, (_, s) => {
      const at = {
        cos: tables.cos.subarray(s * pairs, (s + 1) * pairs),
        sin: tables.sin.subarray(s * pairs, (s + 1) * pairs),
      };
      return scale * dot(q, applyRotary(key, at, { headDim, layout }));
    });
  }
  const product = scale * dot(query, key);
  if (encoding.site !== "attention-bias") return new Float64Array(keyPositions.length).fill(product);
  if (expectInteger(who, "head", head) >= encoding.numHeads) {
    throw new RangeError(`${who}: expected head below ${encoding.numHeads}, got ${head}`);
  }
  const bias = encoding.bias([queryPosition], keyPositions);
  const from = head * keyPositions.length;
  return bias.slice(from, from + keyPositions.length).map((value) => product + value);
}

function dot(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}
