// Hostile headers: whatever happens to the bytes of a real header, reading it gives a result or a FormatError, in
// bounded time and memory. bench/fuzz-headers.ts runs the same cases by the hundred thousand.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FormatError } from "../../src/formats/bytes/index.ts";
import { CountingSource, extremeLengths, hostileTexts, type Mutation, mutate, targets } from "../support/mutations.ts";

// Most of a small file is its header, and the first bytes decide most.
const place = fc.oneof(fc.double({ min: 0, max: 0.999, noNaN: true }), fc.double({ min: 0, max: 0.1, noNaN: true }));
const mutation: fc.Arbitrary<Mutation> = fc.oneof(
  fc.record({ kind: fc.constant("set" as const), place, value: fc.integer({ min: 0, max: 255 }) }),
  fc.record({ kind: fc.constant("flip" as const), place, bit: fc.integer({ min: 0, max: 7 }) }),
  fc.record({
    kind: fc.constant("length" as const),
    place,
    width: fc.constantFrom(4 as const, 8 as const),
    value: fc.constantFrom(...extremeLengths),
  }),
  fc.record({ kind: fc.constant("text" as const), place, text: fc.constantFrom(...hostileTexts) }),
  fc.record({ kind: fc.constant("cut" as const), place }),
  fc.record({ kind: fc.constant("remove" as const), place, count: fc.integer({ min: 1, max: 40 }) }),
  fc.record({ kind: fc.constant("repeat" as const), place, count: fc.integer({ min: 1, max: 40 }) }),
);

const window = 1 << 20;

async function readDamaged(
  target: (typeof targets)[number],
  bytes: Uint8Array,
  size?: number,
): Promise<CountingSource> {
  const source = new CountingSource(target.name, bytes, size);
  try {
    await target.use(source);
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
  }
  return source;
}

describe.each(targets)("$name", (target) => {
  test("as it is, can be read", async () => {
    await expect(target.use(new CountingSource(target.name, target.bytes))).resolves.toBeDefined();
  });

  test("damaged, is read or refused with a FormatError, without reading more than a few times its size", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(mutation, { minLength: 1, maxLength: 4 }), async (mutations) => {
        const damaged = mutate(target.bytes, mutations);
        const source = await readDamaged(target, damaged);
        // The header once, each long array once more.
        expect(source.bytesRead).toBeLessThanOrEqual(16 * damaged.length + 64);
      }),
      { numRuns: 180 },
    );
  });

  test("damaged, and followed by a terabyte of zeros, costs no more than the header's limit", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(mutation, { minLength: 1, maxLength: 3 }), async (mutations) => {
        const source = await readDamaged(target, mutate(target.bytes, mutations), 2 ** 40);
        expect(source.bytesRead).toBeLessThanOrEqual(513 * window);
        expect(source.largestRead).toBeLessThanOrEqual(100_000_000);
      }),
      { numRuns: 20 },
    );
  });

  test("cut at every byte of its first thousand, is read or refused", async () => {
    for (let length = 0; length < Math.min(target.bytes.length, 1000); length++) {
      await readDamaged(target, target.bytes.subarray(0, length));
    }
  });
});
