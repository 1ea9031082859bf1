// What an encoding alone makes of a distance: the score of a query against a key some tokens before it, when both hold
// ideal vectors, so that all that differs from key to key is the encoding. One number a distance and head: no table of
// queries against keys.

import { expectInteger } from "./errors.ts";
import type { PositionEncoding, QueryKeyEncoding } from "./position-encoding.ts";

/** Distances a time: what bounds the memory of tables and rows. */
const chunk = 4096;

/**
 * The scores of a query and of keys at these distances before it.
 *
 * By site. query-key: q and k are all ones, and the score is q·k / rotaryDim over the rotated channels, which for rotary
 * encodings is attentionFactor² · mean over pairs of cos(d·ω). embedding: the two rows' dot product over their count of
 * channels. attention-bias: the bias itself, in the units of scores. none: 0.
 *
 * @param distances D whole numbers of tokens, query minus key, at least 0
 * @param sequenceLength the length that length-dependent scalings see; the largest distance and the query when absent
 * @returns heads × distances, [H, D]; encodings without heads of their own have one
 * @throws RangeError for distances that are not integers of at least 0, or past a table's end
 * @example
 * ```ts
 * import { alibi, rope, scoreByDistance } from "longhand/encodings";
 * scoreByDistance(alibi({ numHeads: 2 }), [0, 16]); // => [0, -1, 0, -0.0625]
 * const rotary = { headDim: 2, maxPositionEmbeddings: 64, rope: { ropeType: "default", ropeTheta: 10000 } };
 * scoreByDistance(rope(rotary), [0, 1]); // => [1, 0.5403023058681398]
 * ```
 * Source: RoFormer (Su et al. 2021, 2104.09864), section 3.4.3, on the decay with distance.
 */
export function scoreByDistance(
  encoding: PositionEncoding,
  distances: ArrayLike<number>,
  sequenceLength?: number,
): Float64Array {
  const who = "scoreByDistance";
  let largest = 0;
  for (let i = 0; i < distances.length; i++) {
    largest = Math.max(largest, expectInteger(who, "distances", distances[i]!));
  }
  const length = expectInteger(who, "sequenceLength", sequenceLength ?? largest + 1, 1);
  const heads = encoding.site === "attention-bias" ? encoding.numHeads : 1;
  const out = new Float64Array(heads * distances.length);
  for (let from = 0; from < distances.length; from += chunk) {
    const part = Array.from({ length: Math.min(chunk, distances.length - from) }, (_, i) => distances[from + i]!);
    const scores = scoresOf(encoding, part, length);
    for (let head = 0; head < heads; head++) {
      out.set(scores.subarray(head * part.length, (head + 1) * part.length), head * distances.length + from);
    }
  }
  return out;
}

function scoresOf(encoding: PositionEncoding, distances: readonly number[], length: number): Float64Array {
  switch (encoding.site) {
    case "none":
      return new Float64Array(distances.length);
    case "query-key":
      return rotated(encoding, distances, length);
    case "embedding": {
      const first = encoding.rows([0]);
      const rows = encoding.rows(distances);
      const width = encoding.hiddenSize;
      return Float64Array.from(distances, (_, i) => {
        let sum = 0;
        for (let channel = 0; channel < width; channel++) sum += first[channel]! * rows[i * width + channel]!;
        return sum / width;
      });
    }
    case "attention-bias": {
      // One query row against all keys: the query stands at the largest distance.
      const query = distances.reduce((a, b) => Math.max(a, b), 0);
      return encoding.bias(
        [query],
        distances.map((distance) => query - distance),
      );
    }
  }
}

/** The query at its distance from a key at 0: of all ones, a pair gives (1, 1)·cos-and-sin products alone. */
function rotated(encoding: QueryKeyEncoding, distances: readonly number[], length: number): Float64Array {
  const pairs = encoding.rotaryDim / 2;
  const query = encoding.queryTables(distances, length);
  const key = encoding.keyTables([0], length);
  return Float64Array.from(distances, (_, i) => {
    let sum = 0;
    for (let p = 0; p < pairs; p++) {
      sum += query.cos[i * pairs + p]! * key.cos[p]! + query.sin[i * pairs + p]! * key.sin[p]!;
    }
    return sum / pairs;
  });
}
