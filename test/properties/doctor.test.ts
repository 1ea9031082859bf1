// Hostile configurations and command lines: findings, or a RangeError for a command that is none, and nothing else. The
// long run is bench/fuzz-doctor.ts.

import fc from "fast-check";
import { expect, test } from "vitest";
import { editDistance } from "../../src/formats/nearest.ts";
import { damageAndDiagnose } from "../support/doctor-fuzz.ts";

test("2,000 damaged configurations and command lines give findings and repairs, and never another exception", () => {
  const { runs, findings, repaired } = damageAndDiagnose(2000, 20251130);
  expect(runs).toBe(2000);
  // Most damage is noticed, and some of it repaired.
  expect(findings).toBeGreaterThan(1500);
  expect(repaired).toBeGreaterThan(100);
});

test("a distance that gives up above a limit is the whole one up to it", () => {
  const word = fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 8 });
  fc.assert(
    fc.property(word, word, fc.integer({ min: 0, max: 4 }), (a, b, most) => {
      const whole = editDistance(a, b);
      const limited = editDistance(a, b, most);
      if (whole <= most) expect(limited).toBe(whole);
      else expect(limited).toBeGreaterThan(most);
    }),
    { numRuns: 2000 },
  );
});
