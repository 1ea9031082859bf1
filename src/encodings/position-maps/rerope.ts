// ReRoPE, rectified rotary positions (Su 2023, kexue.fm/archives/9708): a distance past the window counts as the window
// (or, leaky, grows 1/leak as fast), so the model never sees a distance that it was not trained on.

import { expectInteger, expectPositive } from "../errors.ts";
import { type PositionMap, positionMap } from "./position-map.ts";

export interface ReropeOptions {
  /** L. */
  readonly trainedLength: number;
  /** w: distances below this stay as they are. */
  readonly window: number;
  /** Leaky ReRoPE: past the window one position is worth this many tokens, at least 1. Absent: infinitely many. */
  readonly leak?: number;
}

/**
 * ReRoPE: d for d < w, else w. Leaky: d for d < w, else w + (d − w)/leak, which is not a whole number.
 *
 * Su 2023, https://kexue.fm/archives/9708, and the author's rerope repository, which also multiplies queries by the
 * factor that `logitTemperature` has as kind "logn". Far keys need no rotation at all without a leak.
 *
 * @throws RangeError for sizes that are not integers of at least 1, a window that is not below trainedLength, or a leak
 * below 1
 * @example
 * ```ts
 * import { reropeMap } from "longhand/encodings";
 * const map = reropeMap({ trainedLength: 4096, window: 512 });
 * map.relativePosition(100000, 99900); // => 100
 * map.relativePosition(100000, 0); // => 512
 * reropeMap({ trainedLength: 4096, window: 512, leak: 16 }).maxLength; // => 57841
 * ```
 */
export function reropeMap(options: ReropeOptions): PositionMap {
  const who = "reropeMap";
  const trainedLength = expectInteger(who, "trainedLength", options.trainedLength, 2);
  const window = expectInteger(who, "window", options.window, 1);
  if (window >= trainedLength) {
    throw new RangeError(`${who}: expected window below trainedLength ${trainedLength}, got ${window}`);
  }
  const near = { name: "near", query: (p: number) => p, key: (p: number) => p };
  const isFar = (q: number, k: number) => q - k >= window;
  if (options.leak === undefined) {
    return positionMap({
      name: "rerope",
      trainedLength,
      maxLength: Number.POSITIVE_INFINITY,
      views: [
        { ...near, sees: (q, k) => !isFar(q, k) },
        { name: "far", query: () => window, key: () => 0, sees: isFar },
      ],
      largestRelativePosition: (length) => Math.min(length - 1, window),
    });
  }
  const leak = expectPositive(who, "leak", options.leak);
  if (leak < 1) throw new RangeError(`${who}: expected leak of at least 1, got ${leak}`);
  const query = (p: number) => (p + window * (leak - 1)) / leak;
  return positionMap({
    name: "leaky-rerope",
    trainedLength,
    maxLength: Math.floor(window + leak * (trainedLength - 1 - window)) + 1,
    views: [
      { ...near, sees: (q, k) => !isFar(q, k) },
      { name: "far", query, key: (p) => p / leak, sees: isFar },
    ],
    largestRelativePosition: (length) => (length <= window ? length - 1 : query(length - 1)),
  });
}
