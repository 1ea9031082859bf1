// Files under one folder, and nothing outside it: a path is decoded once, resolved, followed through links, and served
// only when it still lies in the folder.

import { readFile, realpath, stat } from "node:fs/promises";
import { extname, join, sep } from "node:path";

export interface StaticFile {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly type: string;
}

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".json": "application/json; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".woff2": "font/woff2",
  ".wasm": "application/wasm",
  ".map": "application/json; charset=utf-8",
};

/** The type that a file is served with. */
export function typeOf(file: string): string {
  return types[extname(file).toLowerCase()] ?? "application/octet-stream";
}

/** The parts of an address's path; null for one that names no file of a folder. */
export function pathParts(path: string): string[] | null {
  let decoded: string;
  try {
    decoded = decodeURIComponent(path);
  } catch {
    return null;
  }
  const parts = decoded.split("/").filter((part) => part !== "");
  return parts.every(isName) ? parts : null;
}

/** Dots up, separators of another system, drives, streams and NUL have no place in a file's name here. */
export function isName(part: string): boolean {
  return part !== "." && part !== ".." && !/[/\\:\0]/.test(part) && !part.startsWith(".");
}

/**
 * Reads a file of a folder.
 *
 * @param path of an address, percent-encoded, "/" for index.html
 * @returns null for whatever is no regular file inside the folder
 */
export async function readStaticFile(folder: string, path: string): Promise<StaticFile | null> {
  const parts = pathParts(path);
  if (parts === null) return null;
  const file = join(folder, ...(parts.length === 0 ? ["index.html"] : parts));
  try {
    const [root, real] = await Promise.all([realpath(folder), realpath(file)]);
    if (!real.startsWith(root + sep) || !(await stat(real)).isFile()) return null;
    return { bytes: new Uint8Array(await readFile(real)), type: typeOf(real) };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR" || code === "ENAMETOOLONG" || code === "EACCES") return null;
    throw error;
  }
}
