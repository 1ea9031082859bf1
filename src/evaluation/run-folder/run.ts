// A run: a manifest and rows that are added one by one, on any RunFiles. Opened again with an equal identity it goes on
// where it stopped; a process killed at any moment loses at most the row that it was writing.

import type { JsonRecord } from "./json.ts";
import {
  createManifest,
  decodeManifest,
  encodeManifest,
  expectSameRun,
  manifestName,
  type RunManifest,
  type RunSession,
} from "./manifest.ts";
import { nodeRunFiles } from "./node-run-files.ts";
import { decodeRows, encodeRow, type ReadRows, type RunRow, rowDifferences, rowsName } from "./rows.ts";
import type { Appender, RunFiles, RunLock } from "./run-files.ts";
import { inShard, type Shard } from "./shard.ts";

export interface OpenRunOptions {
  /** Which command's rows: "compare", "train". */
  readonly kind: string;
  /** Everything that the rows depend on, hashed: a folder with another identity is refused. */
  readonly identity: JsonRecord;
  /** The part of the rows that this folder is for; all when absent. */
  readonly shard?: Shard | null;
  /** What is recorded of this writer. */
  readonly session?: Partial<RunSession>;
}

/** Rows reach the disk at least this often; the system has them at once. */
const flushMilliseconds = 1000;

/**
 * Opens a run for writing: a new one, or one that stopped.
 *
 * @param place a folder (Node), or RunFiles
 * @throws RangeError for a folder that holds another run (naming what differs) or other files; RunLockedError while
 *   another writer has it
 * @example
 * ```ts
 * import { memoryRunFiles, openRun } from "longhand/evaluation";
 * const files = memoryRunFiles();
 * const first = await openRun(files, { kind: "squares", identity: { upTo: 9 } });
 * await first.append({ key: "2", square: 4 });
 * await first.close();
 * const again = await openRun(files, { kind: "squares", identity: { upTo: 9 } });
 * again.rows.map(({ square }) => square); // => [4]
 * await again.close();
 * ```
 */
export async function openRun(place: string | RunFiles, options: OpenRunOptions): Promise<Run> {
  const files = typeof place === "string" ? await nodeRunFiles(place) : place;
  const wanted = createManifest(options.kind, options.identity, options.shard ?? null);
  // Refused before anything is written, the lock included.
  const before = await readManifest(files);
  if (before === null) await expectEmpty(files);
  else expectSame(before, wanted, files.path);
  const lock = await files.lock();
  try {
    const there = (await readManifest(files)) ?? wanted;
    expectSame(there, wanted, files.path);
    const session: RunSession = {
      startedAt: new Date().toISOString(),
      command: null,
      versions: {},
      hardware: {},
      ...options.session,
    };
    const manifest: RunManifest = { ...there, sessions: [...there.sessions, session] };
    const read = decodeRows((await files.read(rowsName)) ?? new Uint8Array(0), files.path);
    await files.replace(manifestName, encodeManifest(manifest));
    return new Run(files, lock, manifest, read, await files.append(rowsName, read.length));
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/**
 * Reads a run without writing to it, also while another process does.
 *
 * @throws RangeError for a place without a manifest, and for rows that are none
 */
export async function readRun(
  place: string | RunFiles,
): Promise<{ readonly path: string; readonly manifest: RunManifest; readonly rows: readonly RunRow[] }> {
  const files = typeof place === "string" ? await nodeRunFiles(place) : place;
  const manifest = await readManifest(files);
  if (manifest === null) throw new RangeError(`${files.path}: expected a run folder with ${manifestName}, got none`);
  const { rows } = decodeRows((await files.read(rowsName)) ?? new Uint8Array(0), files.path);
  return { path: files.path, manifest, rows };
}

/** A run that is open for writing. */
export class Run implements AsyncDisposable {
  readonly path: string;
  readonly manifest: RunManifest;
  readonly #files: RunFiles;
  readonly #lock: RunLock;
  #appender: Appender;
  #rows: Map<string, { readonly row: RunRow; readonly start: number }>;
  #length: number;
  #last: Promise<unknown> = Promise.resolve();
  #flushed = performance.now();
  #closed = false;

  /** Use `openRun`. */
  constructor(files: RunFiles, lock: RunLock, manifest: RunManifest, read: ReadRows, appender: Appender) {
    this.path = files.path;
    this.manifest = manifest;
    this.#files = files;
    this.#lock = lock;
    this.#appender = appender;
    this.#rows = new Map(read.rows.map((row, i) => [row.key, { row, start: read.starts[i]! }]));
    this.#length = read.length;
  }

  /** In the order in which they were written. */
  get rows(): readonly RunRow[] {
    return Array.from(this.#rows.values(), ({ row }) => row);
  }

  has(key: string): boolean {
    return this.#rows.has(key);
  }

  get(key: string): RunRow | undefined {
    return this.#rows.get(key)?.row;
  }

  /** Whether a row is this run's to compute: of its part, and not there yet. */
  wants(key: string): boolean {
    return !this.has(key) && inShard(key, this.manifest.shard);
  }

  /**
   * Adds a row. One that is there already must be equal, `measured` aside.
   *
   * @returns whether it is new
   * @throws RangeError for another row under the same key, a row of another part, or what JSON cannot hold
   */
  append(row: RunRow): Promise<boolean> {
    const next = this.#last.then(() => this.#append(row));
    this.#last = next.catch(() => undefined);
    return next;
  }

  async #append(row: RunRow): Promise<boolean> {
    if (this.#closed) throw new RangeError(`${this.path}: expected an open run, got a closed one`);
    const { shard } = this.manifest;
    if (!inShard(row.key, shard)) {
      throw new RangeError(
        `${this.path}: expected rows of part ${shard!.index}/${shard!.count}, got ${JSON.stringify(row.key)}`,
      );
    }
    const bytes = encodeRow(row);
    const known = this.#rows.get(row.key);
    if (known !== undefined) {
      const differences = rowDifferences(known.row, row);
      if (differences.length === 0) return false;
      throw new RangeError(
        `${this.path}: expected the row ${JSON.stringify(row.key)} as it is there, got another; ${differences[0]}`,
      );
    }
    await this.#appender.write(bytes);
    this.#rows.set(row.key, { row, start: this.#length });
    this.#length += bytes.length;
    if (performance.now() - this.#flushed > flushMilliseconds) {
      await this.#appender.flush();
      this.#flushed = performance.now();
    }
    return true;
  }

  /** Takes back the first row for which this holds, and all behind it: what a training wrote past its last checkpoint. */
  async cutFrom(isFirst: (row: RunRow) => boolean): Promise<void> {
    await this.#last;
    const entries = [...this.#rows];
    const at = entries.findIndex(([, { row }]) => isFirst(row));
    if (at < 0) return;
    this.#length = entries[at]![1].start;
    this.#rows = new Map(entries.slice(0, at));
    await this.#appender.close();
    this.#appender = await this.#files.append(rowsName, this.#length);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#last;
    await this.#appender.close();
    await this.#lock.release();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

export async function readManifest(files: RunFiles): Promise<RunManifest | null> {
  const bytes = await files.read(manifestName);
  return bytes === null ? null : decodeManifest(bytes, files.path);
}

function expectSame(there: RunManifest, wanted: RunManifest, path: string): void {
  expectSameRun(there, wanted, path);
  const name = (shard: Shard | null): string => (shard === null ? "all rows" : `part ${shard.index}/${shard.count}`);
  if (name(there.shard) !== name(wanted.shard)) {
    throw new RangeError(`${path}: expected ${name(there.shard)}, which the folder holds, got ${name(wanted.shard)}`);
  }
}

/** A manifest that was cut off by a kill, and locks, may lie in a folder that is still new. */
async function expectEmpty(files: RunFiles): Promise<void> {
  const others = (await files.list()).filter((name) => name !== `${manifestName}.new` && !/^lock(\.|$)/.test(name));
  // Parts of a run may lie in it.
  const foreign = others.filter((name) => !/^shard-\d+-of-\d+$/.test(name));
  if (foreign.length === 0) return;
  throw new RangeError(
    `${files.path}: expected a new or empty folder, or a run, got a folder with ${foreign.slice(0, 3).join(", ")}`,
  );
}
