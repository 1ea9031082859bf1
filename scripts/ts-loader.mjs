// The loader behind ts-hook.mjs. "longhand" and "longhand/x" are the sources, src/index.ts and src/x/index.ts; types
// are stripped by the transformer that vite ships, never checked (tsc does that).
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { transformWithOxc } from "vite";

const source = new URL("../src/", import.meta.url);

export async function resolve(specifier, context, next) {
  if (specifier === "longhand") return { url: new URL("index.ts", source).href, shortCircuit: true };
  if (specifier.startsWith("longhand/") && specifier !== "longhand/package.json") {
    const url = new URL(`${specifier.slice("longhand/".length)}/index.ts`, source).href;
    return { url, shortCircuit: true };
  }
  return next(specifier, context);
}

export async function load(url, context, next) {
  if (!url.startsWith("file:") || !/\.ts(\?|$)/.test(url)) return next(url, context);
  const path = fileURLToPath(url);
  const { code, map } = await transformWithOxc(await readFile(path, "utf8"), path, { sourcemap: true });
  const inline = `\n//# sourceMappingURL=data:application/json;base64,${Buffer.from(JSON.stringify(map)).toString("base64")}`;
  return { format: "module", source: code + inline, shortCircuit: true };
}
