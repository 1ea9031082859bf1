import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { dualChunkMap } from "../../src/encodings/position-maps/dual-chunk.ts";
import type { PositionMap } from "../../src/encodings/position-maps/position-map.ts";
import { reropeMap } from "../../src/encodings/position-maps/rerope.ts";
import { selfExtendMap } from "../../src/encodings/position-maps/self-extend.ts";
import { stringMap } from "../../src/encodings/position-maps/string.ts";

/** A map, and the distance below which it promises to change nothing. */
type Case = readonly [PositionMap, number];

const trained = fc.integer({ min: 4, max: 40 });
const upTo = (max: number, min = 1) => fc.integer({ min: Math.min(min, max), max });

const maps: Record<string, fc.Arbitrary<Case>> = {
  "self-extend": trained.chain((trainedLength) =>
    fc
      .tuple(upTo(9), upTo(trainedLength - 1))
      .map(([groupSize, neighborWindow]) => [
        selfExtendMap({ trainedLength, groupSize, neighborWindow }),
        neighborWindow,
      ]),
  ),
  rerope: trained.chain((trainedLength) =>
    upTo(trainedLength - 1).map((window) => [reropeMap({ trainedLength, window }), window]),
  ),
  "leaky rerope": trained.chain((trainedLength) =>
    fc
      .tuple(upTo(trainedLength - 1), fc.integer({ min: 4, max: 16 }))
      .map(([window, quarters]) => [reropeMap({ trainedLength, window, leak: quarters / 4 }), window]),
  ),
  string: trained.chain((trainedLength) =>
    upTo(trainedLength - 1).chain((shift) =>
      upTo(shift, 0).map((localWindow) => [stringMap({ trainedLength, shift, localWindow }), shift]),
    ),
  ),
  "dual-chunk": trained.chain((trainedLength) =>
    upTo(trainedLength).chain((chunkSize) =>
      upTo(chunkSize - 1, 0).map((localSize) => [
        dualChunkMap({ trainedLength, chunkSize, localSize }),
        Math.min(localSize, chunkSize - localSize) + 1,
      ]),
    ),
  ),
};

/** Largest relative position of a sequence, by looking at every pair. */
function bruteForce(map: PositionMap, length: number): number {
  let largest = 0;
  for (let q = 0; q < length; q++) {
    for (let k = 0; k <= q; k++) largest = Math.max(largest, map.relativePosition(q, k));
  }
  return largest;
}

describe.each(Object.entries(maps))("%s", (_, cases) => {
  test("every causal pair is seen by exactly one view", () => {
    fc.assert(
      fc.property(cases, fc.nat(300), fc.nat(300), ([map], a, b) => {
        const [q, k] = [Math.max(a, b), Math.min(a, b)];
        expect(map.views.filter((view) => view.sees(q, k))).toHaveLength(1);
      }),
    );
  });

  test("near distances are unchanged, and no relative position is negative", () => {
    fc.assert(
      fc.property(cases, fc.nat(300), fc.nat(300), ([map, near], a, b) => {
        const [q, k] = [Math.max(a, b), Math.min(a, b)];
        const relative = map.relativePosition(q, k);
        if (q - k < near) expect(relative).toBe(q - k);
        expect(relative).toBeGreaterThanOrEqual(0);
        // Two tokens of one distance may lie one group further apart than others, hence the 1.
        expect(relative).toBeLessThanOrEqual(Math.max(q - k, near) + 1);
      }),
    );
  });

  test("the largest relative position is that of all pairs", () => {
    fc.assert(
      fc.property(cases, fc.integer({ min: 1, max: 70 }), ([map], length) => {
        expect(map.largestRelativePosition(length)).toBeCloseTo(bruteForce(map, length), 9);
      }),
      { numRuns: 60 },
    );
  });

  test("at maxLength all stays below the trained length, one token further it does not", () => {
    fc.assert(
      fc.property(cases, ([map]) => {
        const { maxLength, trainedLength } = map;
        if (maxLength === Number.POSITIVE_INFINITY) {
          expect(map.largestRelativePosition(1e9)).toBeLessThan(trainedLength);
        } else {
          expect(map.largestRelativePosition(maxLength)).toBeLessThanOrEqual(trainedLength - 1 + 1e-9);
          expect(map.largestRelativePosition(maxLength + 1)).toBeGreaterThan(trainedLength - 1);
          expect(maxLength).toBeGreaterThanOrEqual(trainedLength);
        }
      }),
    );
  });
});
