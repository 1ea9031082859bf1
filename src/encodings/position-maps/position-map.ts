// Position maps: ways to read past the trained length without changing a frequency, by giving a pair of tokens another
// relative position than their distance. Because a rotary score depends on the difference alone, a map is a set of
// views: each view rotates queries and keys to its own positions, sees some of the causal pairs, and the views' softmax
// sums are merged (by log-sum-exp in a fused kernel). Every causal pair is seen by exactly one view.

import { expectInteger } from "../errors.ts";

/** One way of rotating the whole sequence. */
export interface PositionView {
  readonly name: string;
  /** Where a query of this position is rotated to. */
  query(position: number): number;
  /** Where a key of this position is rotated to. */
  key(position: number): number;
  /** Whether the score of this causal pair comes from this view. */
  sees(queryPosition: number, keyPosition: number): boolean;
}

export interface PositionMap {
  readonly name: string;
  /** L: relative positions 0 .. L − 1 were trained. */
  readonly trainedLength: number;
  /** The longest sequence in which no pair reaches relative position L; Infinity when none ever does. */
  readonly maxLength: number;
  readonly views: readonly PositionView[];
  /** The relative position of a causal pair. Throws RangeError for a key after its query. */
  relativePosition(queryPosition: number, keyPosition: number): number;
  /** The largest relative position in a sequence of this length. */
  largestRelativePosition(length: number): number;
}

/** A map from its views; the first that sees a pair gives its relative position. */
export function positionMap(
  map: Pick<PositionMap, "name" | "trainedLength" | "maxLength" | "views"> & {
    /** Called with an integer of at least 1. */
    readonly largestRelativePosition: (length: number) => number;
  },
): PositionMap {
  return {
    ...map,
    relativePosition(queryPosition, keyPosition) {
      expectInteger(map.name, "queryPosition", queryPosition);
      expectInteger(map.name, "keyPosition", keyPosition);
      if (keyPosition > queryPosition) {
        throw new RangeError(
          `${map.name}: expected a key position of at most the query's, ${queryPosition}, got ${keyPosition}`,
        );
      }
      const view = map.views.find(({ sees }) => sees(queryPosition, keyPosition));
      if (view === undefined)
        throw new Error(`internal: ${map.name} has no view of (${queryPosition}, ${keyPosition})`);
      return view.query(queryPosition) - view.key(keyPosition);
    },
    largestRelativePosition: (length) => map.largestRelativePosition(expectInteger(map.name, "length", length, 1)),
  };
}
