// The arrows between folders go forward only: read from the import lines themselves.

import { readdirSync, readFileSync } from "node:fs";
import { join, relative, resolve, sep } from "node:path";
import { describe, expect, test } from "vitest";

const src = resolve(import.meta.dirname, "../../src");

/** In the order that data flows: a folder may import those before it. */
const order = [
  "tensor",
  "encodings",
  "graph",
  "formats",
  "models",
  "engine",
  "training",
  "endpoints",
  "evaluation",
  "advice",
  "server",
  "cli",
];

/** Folders that may import fewer of the earlier ones. */
const only: Record<string, readonly string[]> = {
  tensor: [],
  encodings: ["tensor"],
  graph: ["tensor"],
  engine: ["tensor", "graph", "formats", "models"],
  endpoints: ["formats", "engine"],
};

const withoutPackages = ["tensor", "encodings", "graph", "formats/bytes", "formats/gguf", "formats/safetensors"];

interface Import {
  readonly file: string;
  readonly target: string;
}

function sourceFiles(): string[] {
  return readdirSync(src, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => file.split(sep).join("/"));
}

function importsOf(file: string): Import[] {
  const text = readFileSync(join(src, file), "utf8");
  const pattern =
    /(?:^|\n)\s*(?:import|export)\s[^;"']*?from\s*["']([^"']+)["']|import\(\s*["']([^"']+)["']\s*\)|(?:^|\n)import\s*["']([^"']+)["']/g;
  return Array.from(text.matchAll(pattern), (m) => ({ file, target: (m[1] ?? m[2] ?? m[3])! }));
}

const imports = sourceFiles().flatMap(importsOf);
const local = imports
  .filter(({ target }) => target.startsWith("."))
  .map(({ file, target }) => ({
    file,
    target: relative(src, resolve(src, file, "..", target))
      .split(sep)
      .join("/"),
  }));

describe("imports", () => {
  test("are found at all", () => {
    expect(local.length).toBeGreaterThan(100);
  });

  test("name folders of the known order", () => {
    const folders = new Set(
      sourceFiles()
        .filter((f) => f.includes("/"))
        .map((f) => f.split("/")[0]!),
    );
    expect([...folders].filter((folder) => !order.includes(folder))).toEqual([]);
  });

  test("go forward only", () => {
    const backward = local.filter(({ file, target }) => {
      const from = file.split("/")[0]!;
      const to = target.split("/")[0]!;
      if (!file.includes("/") || from === to || target.startsWith("..")) return false;
      return order.indexOf(to) >= order.indexOf(from) || !(only[from] ?? order).includes(to);
    });
    expect(backward).toEqual([]);
  });

  test("of packages stand nowhere in the pure folders", () => {
    const packages = imports.filter(
      ({ file, target }) =>
        withoutPackages.some((folder) => file.startsWith(`${folder}/`)) && !/^(\.|node:)/.test(target),
    );
    expect(packages).toEqual([]);
  });

  test("of node: modules are dynamic outside cli and server, so that browsers can load every other folder", () => {
    const fixed = sourceFiles()
      .filter((file) => !/^(cli|server)\//.test(file))
      .filter((file) =>
        /(?:^|\n)\s*(?:import|export)\s(?!type)[^;"']*?from\s*["']node:/.test(readFileSync(join(src, file), "utf8")),
      );
    expect(fixed).toEqual([]);
  });

  test("stand beside no `using`: bench and experiments run the sources as they are, and Node 20 does not read it", () => {
    const using = sourceFiles()
      .filter((file) => !/^(cli|server)\//.test(file))
      .filter((file) => /^ *(await )?using \w+ =/m.test(readFileSync(join(src, file), "utf8")));
    expect(using).toEqual([]);
  });

  test("an encoding is never named by the engine", () => {
    expect(local.filter(({ file, target }) => file.startsWith("engine/") && target.startsWith("encodings/"))).toEqual(
      [],
    );
  });
});
