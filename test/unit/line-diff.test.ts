// A unified diff, held to what diff(1) prints and what patch would make of it.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { unifiedDiff } from "../../src/advice/line-diff.ts";

const numbered = (count: number, change: (line: number) => string[] = (line) => [`line ${line}`]): string =>
  `${Array.from({ length: count }, (_, i) => i + 1)
    .flatMap(change)
    .join("\n")}\n`;

const cases: readonly (readonly [what: string, before: string, after: string])[] = [
  ["a changed line in the middle", numbered(20), numbered(20, (n) => [n === 10 ? "other" : `line ${n}`])],
  ["two hunks", numbered(40), numbered(40, (n) => (n === 3 ? [] : n === 30 ? ["x", "line 30"] : [`line ${n}`]))],
  ["a line at either end", numbered(5), `first\n${numbered(5)}last\n`],
  ["from nothing", "", "a\nb\n"],
  ["to nothing", "a\nb\n", ""],
  ["a last line without a newline", '{\n  "a": 1\n}', '{\n  "a": 2\n}'],
  ["a newline at the end", "a\nb", "a\nb\n"],
];

test.each(cases)("%s is told as diff -u tells it", (_, before, after) => {
  const folder = mkdtempSync(join(tmpdir(), "longhand-diff-"));
  try {
    writeFileSync(join(folder, "before"), before);
    writeFileSync(join(folder, "after"), after);
    const run = spawnSync("diff", ["-u", "before", "after"], { cwd: folder, encoding: "utf8" });
    // Of the real one without the two lines that name the files, and of a range of one line its shorter form.
    const hunks = run.stdout
      .split("\n")
      .slice(2)
      .join("\n")
      .replace(
        /^@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@/gm,
        (_all, a, b = ",1", c, d = ",1") => `@@ -${a}${b} +${c}${d} @@`,
      );
    expect(unifiedDiff("config.json", before, after)).toBe(`--- a/config.json\n+++ b/config.json\n${hunks}`);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("nothing changed is nothing to say", () => {
  expect(unifiedDiff("config.json", "a\n", "a\n")).toBe("");
});
