// longhand models, as it is built: the list, and a name in the place of a path.

import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { exportModel } from "../../src/training/index.ts";
import { longhand } from "../support/cli.ts";
import { caseOptions, exportCases, exportWeights } from "../support/exports.ts";

const root = mkdtempSync(join(tmpdir(), "longhand-models-"));
const env = { LONGHAND_MODELS: root };

beforeAll(() => {
  const one = exportCases.find(({ name }) => name === "longhand-kerple-power")!;
  const folder = join(root, "longhand-kerple");
  mkdirSync(folder);
  for (const [file, bytes] of exportModel({ ...caseOptions(one), weights: exportWeights(one), dtype: "f16" })) {
    writeFileSync(join(folder, file), bytes);
  }
  cpSync(folder, join(root, "bare"), { recursive: true });
  writeFileSync(join(folder, "README.md"), "# longhand-kerple\n\nA model of\nthe tests.\n\nMade by hand.\n");
});
afterAll(() => rmSync(root, { recursive: true }));

test("lists names, encodings, lengths, sizes and what they are", () => {
  const { stdout, status } = longhand(["models"], env);
  expect(status).toBe(0);
  expect(stdout).toBe(
    [
      "bare",
      "  KERPLE, learned by head · trained at 24 tokens · 28.4 k parameters",
      "",
      "longhand-kerple",
      "  KERPLE, learned by head · trained at 24 tokens · 28.4 k parameters",
      "  A model of the tests.",
      "",
    ].join("\n"),
  );
  const { models } = JSON.parse(longhand(["models", "--json"], env).stdout) as {
    models: { about: string | null }[];
  };
  expect(models.map(({ about }) => about)).toEqual([null, "A model of the tests."]);
});

test("a name is a model to every command", () => {
  const { stdout } = longhand(["inspect", "longhand-kerple", "--json"], env);
  expect(JSON.parse(stdout)).toMatchObject({ model: { name: "longhand-kerple", modelType: "longhand" } });
  const wrong = longhand(["inspect", "longhand-kerpel"], env);
  expect(wrong.status).toBe(2);
  expect(wrong.stderr).toMatch(/nearest: longhand-kerple \(built in\)/);
});
