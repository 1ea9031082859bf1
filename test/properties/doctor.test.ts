// Hostile configurations and command lines: findings, or a RangeError for a command that is none, and nothing else. The
// long run is bench/fuzz-doctor.ts.

import { expect, test } from "vitest";
import { damageAndDiagnose } from "../support/doctor-fuzz.ts";

test("2,000 damaged configurations and command lines give findings and repairs, and never another exception", () => {
  const { runs, findings, repaired } = damageAndDiagnose(2000, 20251130);
  expect(runs).toBe(2000);
  // Most damage is noticed, and some of it repaired.
  expect(findings).toBeGreaterThan(1500);
  expect(repaired).toBeGreaterThan(100);
});
