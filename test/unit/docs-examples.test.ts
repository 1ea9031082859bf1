// The examples in docstrings run, and what they state is what comes out.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import * as encodings from "../../src/encodings/index.ts";
import { compile, docstrings, matches, runExample } from "../support/examples.ts";

const root = new URL("../../", import.meta.url);
const packageExports: Record<string, unknown> = JSON.parse(readFileSync(new URL("package.json", root), "utf8")).exports;

/** The source of a module by the name that a user imports it by. */
function sourceOf(name: string): URL {
  const subPath = name.replace(/^longhand/, ".");
  if (!name.startsWith("longhand") || !(subPath in packageExports))
    throw new Error(`${name} is no export of package.json`);
  return new URL(subPath === "." ? "src/index.ts" : `src/${subPath.slice(2)}/index.ts`, root);
}

const load = (name: string): Promise<unknown> => import(/* @vite-ignore */ fileURLToPath(sourceOf(name)));

const files = readdirSync(new URL("src/", root), { recursive: true, encoding: "utf8" })
  .map((file) => `src/${file.replaceAll("\\", "/")}`)
  .filter((file) => file.endsWith(".ts"))
  .sort();
const all = files.flatMap((file) =>
  docstrings(file, readFileSync(new URL(file, root), "utf8")).map((doc) => ({ file, ...doc })),
);
const examples = all.flatMap(({ examples }) => examples);

describe("examples", () => {
  test("are found", () => {
    expect(examples.length).toBeGreaterThan(30);
  });

  test.for(examples)("$where runs, and states what comes out", async (example, { skip }) => {
    for (const [, name] of example.code.matchAll(/from "([^"]+)"/g)) {
      skip(!existsSync(sourceOf(name!)), `${name} does not exist yet`);
    }
    expect(await runExample(example, load), `${example.where} states no value`).toBeGreaterThan(0);
  });
});

describe("functions of longhand/encodings", () => {
  const names = Object.entries(encodings).flatMap(([name, value]) => (typeof value === "function" ? [name] : []));
  const documented = new Map(
    all.filter(({ file, name }) => name && file.startsWith("src/encodings/")).map((doc) => [doc.name, doc]),
  );

  test.each(names)("%s has an example and names its source", (name) => {
    const doc = documented.get(name);
    expect(doc, `${name} has no docstring`).toBeDefined();
    expect(doc!.examples.length, `${name} has no @example`).toBeGreaterThan(0);
    // A paper by year or arXiv number, or a line "Source: …".
    expect(doc!.text, `${name} names no paper or source`).toMatch(/\b(19[5-9]\d|20[0-2]\d)\b|\b\d{4}\.\d{5}\b|Source:/);
  });
});

describe("the runner", () => {
  const run = (code: string) => runExample({ where: "here", code }, async () => ({ two: 2, f: (x: number) => x + 1 }));

  test("a stated value that differs is an error, with the place and what came out", async () => {
    await expect(run("1 + 1; // => 3")).rejects.toThrow(/here: 1 \+ 1 {2}\/\/ => 3\n {2}got 2/);
    await expect(run("[1, 2]; // => [1]")).rejects.toThrow(/got \[1,2\]/);
  });

  test("imports, several lines, and a value on the line below", async () => {
    const code = [
      'import { two, f as next } from "x";',
      "// a comment",
      "next(",
      "  two,",
      ");",
      "// => 3",
      "const list = [",
      "  two,",
      "];",
      "list; // => [",
      "//   2,",
      "// ]",
      "({ a: Float64Array.of(0.1 + 0.2) }); // => { a: [0.3] }",
    ].join("\n");
    expect(await run(code)).toBe(3);
  });

  test("a value stated of a declaration is refused", () => {
    expect(() => compile({ where: "here", code: "const a = 1; // => 1" })).toThrow(/expected an expression/);
  });

  test("numbers match to 1e-12 relative, and nothing else does", () => {
    expect(matches(1 + 1e-13, 1)).toBe(true);
    expect(matches(1 + 1e-11, 1)).toBe(false);
    expect(matches(1e-300, 0)).toBe(false);
    expect(matches(Number.NaN, 0)).toBe(false);
    expect(matches({ a: 1 }, { a: 1, b: undefined })).toBe(false);
    expect(matches([1], { 0: 1 })).toBe(false);
    expect(matches(Int32Array.of(1), [1])).toBe(true);
    expect(matches(null, {})).toBe(false);
  });
});
