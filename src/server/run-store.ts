// The run folders beneath one folder: found, named by their paths within it, and read. A name is resolved, followed
// through links, and read only when it still lies in the folder.

import { createReadStream, type Dirent } from "node:fs";
import { lstat, readdir, realpath } from "node:fs/promises";
import { join, sep } from "node:path";
import { compareRowCount } from "../evaluation/compare/index.ts";
import { type CompareIdentity, nodeRunFiles, type ReportRun, readRun } from "../evaluation/index.ts";
import { readManifest } from "../evaluation/run-folder/run.ts";
import { isName } from "./static-files.ts";

/** A run in the list: what its manifest says, or why it cannot be read. */
export interface ListedRun {
  /** Its path within the folder, with "/". */
  readonly id: string;
  readonly kind: string | null;
  readonly model: string | null;
  readonly target: number | null;
  /** Names of strategies, or encodings of what was trained. */
  readonly about: readonly string[];
  readonly rows: number;
  /** Of a compare's run; null where it cannot be told. */
  readonly wantedRows: number | null;
  /** ISO 8601, of its first writer. */
  readonly startedAt: string | null;
  readonly error: string | null;
}

/** Folders below the runs' folder that are looked into, and runs that are listed. */
const deepest = 4;
const most = 2000;

export class RunStore {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  /** Every run, the newest first. None where the folder does not exist. */
  async list(): Promise<ListedRun[]> {
    const ids: string[] = [];
    await this.#find("", 0, ids);
    const runs: ListedRun[] = [];
    for (const id of ids) runs.push(await this.#describe(id));
    return runs.sort((a, b) => (b.startedAt ?? "").localeCompare(a.startedAt ?? "") || a.id.localeCompare(b.id));
  }

  async #find(id: string, depth: number, found: string[]): Promise<void> {
    const entries: Dirent[] = await readdir(join(this.folder, id), { withFileTypes: true }).catch(() => []);
    if (id !== "" && entries.some((entry) => entry.name === "manifest.json" && entry.isFile())) found.push(id);
    if (depth >= deepest) return;
    // Links are neither files nor folders here: what they lead to is not followed.
    for (const entry of entries) {
      if (found.length >= most) return;
      if (entry.isDirectory() && isName(entry.name)) {
        await this.#find(id === "" ? entry.name : `${id}/${entry.name}`, depth + 1, found);
      }
    }
  }

  async #describe(id: string): Promise<ListedRun> {
    const empty = { id, kind: null, model: null, target: null, about: [], rows: 0, wantedRows: null, startedAt: null };
    try {
      const path = await this.resolve(id);
      if (path === null) throw new RangeError("expected manifest.json and rows.jsonl to be files, got links");
      const manifest = await readManifest(await nodeRunFiles(path));
      if (manifest === null) throw new RangeError("expected manifest.json, got none");
      const { kind, identity, sessions } = manifest;
      const { model, target, strategies, recipe } = identity as Record<string, unknown>;
      const encoding = (recipe as { encoding?: unknown } | null | undefined)?.encoding;
      return {
        id,
        kind,
        model: typeof model === "string" ? model : null,
        target: typeof target === "number" ? target : null,
        about: namesIn(Array.isArray(strategies) ? strategies : encoding),
        rows: await lines(join(path, "rows.jsonl")),
        wantedRows: kind === "compare" ? wantedRows(identity as CompareIdentity) : null,
        startedAt: typeof sessions[0]?.startedAt === "string" ? sessions[0].startedAt : null,
        error: null,
      };
    } catch (error) {
      return { ...empty, error: error instanceof Error ? error.message : String(error) };
    }
  }

  /**
   * The path of a run; null for whatever is no run folder inside the folder. Its manifest and rows are files of their own:
   * a link would read what lies elsewhere.
   */
  async resolve(id: string): Promise<string | null> {
    const parts = id.split("/");
    if (parts.length > deepest || !parts.every((part) => part !== "" && isName(part))) return null;
    try {
      const path = join(this.folder, ...parts);
      const [root, real] = await Promise.all([realpath(this.folder), realpath(path)]);
      if (!real.startsWith(root + sep)) return null;
      const manifest = await lstat(join(real, "manifest.json"));
      const rows = await lstat(join(real, "rows.jsonl")).catch(() => null);
      return manifest.isFile() && (rows === null || rows.isFile()) ? path : null;
    } catch {
      return null;
    }
  }

  /** A run under its id, which is also what reports call it. */
  async read(id: string): Promise<ReportRun | null> {
    const path = await this.resolve(id);
    return path === null ? null : { ...(await readRun(path)), path: id };
  }
}

function namesIn(list: unknown): string[] {
  if (!Array.isArray(list)) return [];
  return [...new Set(list.map((one) => (typeof one === "string" ? one : (one as { name?: unknown } | null)?.name)))]
    .filter((name) => typeof name === "string")
    .slice(0, 40);
}

function wantedRows(identity: CompareIdentity): number | null {
  try {
    return compareRowCount(identity);
  } catch {
    return null;
  }
}

async function lines(path: string): Promise<number> {
  let count = 0;
  try {
    for await (const piece of createReadStream(path)) for (const byte of piece as Uint8Array) if (byte === 10) count++;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  return count;
}
