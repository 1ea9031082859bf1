// What the READMEs quote is what the commands print, and their code runs.

import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import * as advice from "../../src/advice/index.ts";
import * as encodings from "../../src/encodings/index.ts";
import * as formats from "../../src/formats/index.ts";
import { modelFamilies } from "../../src/models/index.ts";
import { longhand } from "../support/cli.ts";

const root = new URL("../../", import.meta.url);
const modules: Record<string, Record<string, unknown>> = {
  "longhand/advice": advice,
  "longhand/encodings": encodings,
  "longhand/formats": formats,
};

describe.each(["README.md", "README.zh-TW.md"])("%s", (name) => {
  const file = new URL(name, root);
  const text = readFileSync(file, "utf8");
  const consoles = Array.from(text.matchAll(/```console\n\$ npx longhand (.*)\n([\s\S]*?)\n```/g));

  test("quotes at least two commands", () => expect(consoles.length).toBeGreaterThanOrEqual(2));

  test.each(consoles.map((m) => [m[1]!, m[2]!]))("%s prints what is quoted", (command, quoted) => {
    const { status, stdout } = longhand(command.split(" "));
    expect(status).toBe(0);
    // LONGHAND_UPDATE=1 writes the new output into the page, for a person to read in the diff.
    if (process.env.LONGHAND_UPDATE === "1") {
      writeFileSync(
        file,
        readFileSync(file, "utf8").replace(quoted, () => stdout.trimEnd()),
      );
      return;
    }
    expect(stdout.trimEnd()).toBe(quoted);
  });

  test("its code runs", async () => {
    // The last one; what stands before it needs a model.
    const code = Array.from(text.matchAll(/```ts\n([\s\S]*?)```/g)).at(-1)?.[1] ?? "";
    const names: string[] = [];
    const values: unknown[] = [];
    const body = code.replace(/import \{ (.*) \} from "(.*)";\n/g, (_, list: string, module: string) => {
      for (const imported of list.split(", ")) {
        expect(modules[module], `${module} exports ${imported}`).toHaveProperty(imported);
        names.push(imported);
        values.push(modules[module]![imported]);
      }
      return "";
    });
    const printed: unknown[] = [];
    const AsyncFunction = Object.getPrototypeOf(async () => {}).constructor;
    await new AsyncFunction(...names, "console", body)(...values, { log: (x: unknown) => printed.push(x) });
    expect(printed).toHaveLength(1);
  });

  test("names only files that exist", () => {
    for (const [, link] of text.matchAll(/\]\(([^)#:]+)\)/g))
      expect(() => readFileSync(new URL(link!, root))).not.toThrow();
  });
});

test("ENCODINGS.md lists every family that runs, by its names in both formats", () => {
  const text = readFileSync(new URL("ENCODINGS.md", root), "utf8");
  const rows = text
    .slice(text.indexOf("## Model families"))
    .split("\n")
    .filter((line) => line.startsWith("| ") && !line.startsWith("| family") && !line.startsWith("| ---"))
    .map((line) => line.split("|").map((cell) => cell.trim()));
  const listed = (column: number) => rows.flatMap((cells) => cells[column]!.split(", ").filter(Boolean)).sort();
  expect(listed(2)).toEqual(modelFamilies.flatMap((family) => family.huggingFace).sort());
  expect(listed(3)).toEqual(modelFamilies.flatMap((family) => family.gguf).sort());
});
