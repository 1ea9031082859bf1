// STRING, shifted rotary position embedding (An et al. 2024, 2410.18745): large distances are rare in training even
// below the trained length, so distances from S on are moved down onto well-trained ones.

import { expectInteger } from "../errors.ts";
import { type PositionMap, positionMap } from "./position-map.ts";

export interface StringOptions {
  /** L. */
  readonly trainedLength: number;
  /** S: what far distances lose, and how many of the largest positions go unused; the authors use 0.25 to 0.4 of L. */
  readonly shift: number;
  /** W: what far distances keep, so that the pairs at S do not look adjacent; 128 in the authors' code. */
  readonly localWindow: number;
}

/**
 * STRING: d for d < S, else d − S + W.
 *
 * An et al. 2024 (2410.18745), section 4, and the authors' code, which also multiplies cos and sin by 0.1·ln 2 + 1, as
 * YaRN would for a factor of 2. (Its prefill counts the pairs at distance S in both views; its decode, and this map, in
 * the far one alone.)
 *
 * @throws RangeError unless 1 ≤ shift < trainedLength and 0 ≤ localWindow ≤ shift, all integers
 * @example
 * ```ts
 * import { stringMap } from "longhand/encodings";
 * const map = stringMap({ trainedLength: 131072, shift: 43253, localWindow: 128 });
 * map.relativePosition(43252, 0); // => 43252
 * map.relativePosition(43253, 0); // => 128
 * map.largestRelativePosition(131072); // => 87946
 * ```
 */
export function stringMap(options: StringOptions): PositionMap {
  const who = "stringMap";
  const trainedLength = expectInteger(who, "trainedLength", options.trainedLength, 2);
  const shift = expectInteger(who, "shift", options.shift, 1);
  const window = expectInteger(who, "localWindow", options.localWindow);
  if (shift >= trainedLength) {
    throw new RangeError(`${who}: expected shift below trainedLength ${trainedLength}, got ${shift}`);
  }
  if (window > shift) {
    throw new RangeError(`${who}: expected localWindow of at most shift ${shift}, got ${window}`);
  }
  return positionMap({
    name: "string",
    trainedLength,
    maxLength: trainedLength + shift - window,
    views: [
      { name: "diagonal", query: (p) => p, key: (p) => p, sees: (q, k) => q - k < shift },
      { name: "shifted", query: (p) => p - shift + window, key: (p) => p, sees: (q, k) => q - k >= shift },
    ],
    largestRelativePosition: (length) =>
      length <= shift ? length - 1 : Math.max(shift - 1, length - 1 - shift + window),
  });
}
