// Self-Extend (Jin et al. 2024, 2401.01325): near tokens keep their distance, far ones share positions in groups.

import { expectInteger } from "../errors.ts";
import { type PositionMap, positionMap } from "./position-map.ts";

export interface SelfExtendOptions {
  /** L. */
  readonly trainedLength: number;
  /** G: tokens that share a far position. */
  readonly groupSize: number;
  /** W: distances below this stay as they are; a multiple of G in the authors' settings. */
  readonly neighborWindow: number;
}

/**
 * Self-Extend: d = q − k for d < W, else ⌊q/G⌋ − ⌊k/G⌋ + W − ⌊W/G⌋.
 *
 * Jin et al. 2024 (2401.01325), section 3.2, and the authors' LongLM. With G a divisor of W it reads (L − W)·G + W
 * tokens. Their advice: W + (length − W)/G below two thirds of L. It may go with a factor on the queries, which
 * `logitTemperature` has as kind "logn".
 *
 * @throws RangeError for sizes that are not integers of at least 1, or a window that is not below trainedLength
 * @example
 * ```ts
 * import { selfExtendMap } from "longhand/encodings";
 * const map = selfExtendMap({ trainedLength: 4096, groupSize: 8, neighborWindow: 1024 });
 * map.relativePosition(5000, 4500); // => 500
 * map.relativePosition(5000, 0); // => 1521
 * map.maxLength; // => 25600
 * ```
 */
export function selfExtendMap(options: SelfExtendOptions): PositionMap {
  const who = "selfExtendMap";
  const trainedLength = expectInteger(who, "trainedLength", options.trainedLength, 2);
  const groupSize = expectInteger(who, "groupSize", options.groupSize, 1);
  const window = expectInteger(who, "neighborWindow", options.neighborWindow, 1);
  if (window >= trainedLength) {
    throw new RangeError(`${who}: expected neighborWindow below trainedLength ${trainedLength}, got ${window}`);
  }
  const shift = window - Math.floor(window / groupSize);
  const far = (position: number) => Math.floor(position / groupSize);
  return positionMap({
    name: "self-extend",
    trainedLength,
    // The largest far position belongs to key 0: ⌊q/G⌋ + shift ≤ L − 1.
    maxLength: groupSize * (trainedLength - shift),
    views: [
      { name: "neighbor", query: (p) => p, key: (p) => p, sees: (q, k) => q - k < window },
      { name: "group", query: (p) => far(p) + shift, key: far, sees: (q, k) => q - k >= window },
    ],
    largestRelativePosition: (length) => (length <= window ? length - 1 : far(length - 1) + shift),
  });
}
