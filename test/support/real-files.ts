// Real checkpoints that some tests read when they are there: beside the repository, or fetched into the user's cache.

import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

const root: string = new URL("../../", import.meta.url).pathname;

/** Path of a file under ../shared, or null (with a printed reason) when it is not there. */
export function sharedFile(path: string): string | null {
  return present(join(root, "../shared", path));
}

/** Path of a fetched model, or null (with a printed reason) when it is not there. */
export function cachedModel(file: string): string | null {
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache");
  return present(join(cache, "longhand/models", file));
}

function present(path: string): string | null {
  if (existsSync(path)) return path;
  console.info(`skipped: ${path.split("/").at(-1)} is not on this machine`);
  return null;
}
