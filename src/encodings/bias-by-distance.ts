// Attention biases that are a function of the distance between a query and a key, and the check of the positions they
// are taken at. Causal: the distance of query i and key j is max(i − j, 0), so that a future key, which the mask
// removes, gets the value of distance 0 and never a bonus. Bidirectional: |i − j|.

import { expectInteger } from "./errors.ts";

/** Throws RangeError unless every position is an integer of at least 0. */
export function expectPositions(who: string, what: string, positions: ArrayLike<number>): void {
  for (let t = 0; t < positions.length; t++) expectInteger(who, what, positions[t]!);
}

/** [H, T, S] of value(head, distance). Positions are absolute: with a cache, the rows of the new queries alone. */
export function biasByDistance(
  who: string,
  numHeads: number,
  queryPositions: ArrayLike<number>,
  keyPositions: ArrayLike<number>,
  bidirectional: boolean,
  value: (head: number, distance: number) => number,
): Float64Array {
  expectPositions(who, "queryPositions", queryPositions);
  expectPositions(who, "keyPositions", keyPositions);
  const rows = queryPositions.length;
  const columns = keyPositions.length;
  const distances = new Float64Array(rows * columns); // [T, S]
  let largest = 0;
  for (let t = 0, at = 0; t < rows; t++) {
    for (let s = 0; s < columns; s++, at++) {
      const difference = queryPositions[t]! - keyPositions[s]!;
      const distance = bidirectional ? Math.abs(difference) : Math.max(difference, 0);
      distances[at] = distance;
      if (distance > largest) largest = distance;
    }
  }
  const out = new Float64Array(numHeads * distances.length);
  // Contiguous positions repeat few distances: each is then evaluated once a head.
  const tabulate = largest < distances.length;
  for (let head = 0; head < numHeads; head++) {
    const of = tabulate ? Float64Array.from({ length: largest + 1 }, (_, distance) => value(head, distance)) : null;
    const base = head * distances.length;
    for (let at = 0; at < distances.length; at++) {
      out[base + at] = of ? of[distances[at]!]! : value(head, distances[at]!);
    }
  }
  return out;
}
