// A run folder on disk, in Node. `node:` modules are imported inside the functions, as in formats/bytes/node-file.ts.
//
// The lock is a file made with O_EXCL that names its holder. A holder that was killed leaves it behind: on the same
// host it is stale when no such process lives (or another one has its number: the start time tells), on another host
// when it was not touched for a while.

import { type RunFiles, type RunLock, RunLockedError } from "./run-files.ts";

const lockName = "lock";
/** Of a lock held on another host: touched this often, and stale after so long. */
const heartbeatMilliseconds = 15_000;
const staleMilliseconds = 300_000;

interface Holder {
  readonly pid: number;
  readonly host: string;
  /** Clock ticks after boot at which the process began (Linux); null where it is unknown. */
  readonly started: string | null;
  readonly token: string;
  readonly since: string;
}

/** Locks of this process, so that a left one with our own process number (1 in a container) is told from a held one. */
const held = new Set<string>();

/**
 * A folder as the place of a run. It need not exist: it is made when something is first written.
 *
 * @throws RangeError for a path that is a file; whatever the file system throws, with its code
 */
export async function nodeRunFiles(path: string): Promise<RunFiles> {
  const fs = await import("node:fs/promises");
  const { join } = await import("node:path");
  const info = await fs.stat(path).catch(missing);
  if (info !== null && !info.isDirectory()) throw new RangeError(`${path}: expected a folder for a run, got a file`);
  let made = info !== null;
  const make = async (): Promise<void> => {
    if (made) return;
    await fs.mkdir(path, { recursive: true });
    made = true;
  };
  return {
    path,
    async list() {
      return (await fs.readdir(path).catch(missing)) ?? [];
    },
    read: (name) => fs.readFile(join(path, name)).catch(missing),
    async replace(name, bytes) {
      await make();
      const temporary = join(path, `${name}.new`);
      const handle = await fs.open(temporary, "w");
      try {
        await handle.writeFile(bytes);
        await handle.sync();
      } finally {
        await handle.close();
      }
      await fs.rename(temporary, join(path, name));
    },
    async append(name, length) {
      await make();
      const handle = await fs.open(join(path, name), "a");
      if ((await handle.stat()).size !== length) await handle.truncate(length);
      return {
        async write(bytes) {
          let done = 0;
          while (done < bytes.length) done += (await handle.write(bytes, done)).bytesWritten;
        },
        flush: () => handle.datasync(),
        async close() {
          await handle.datasync();
          await handle.close();
        },
      };
    },
    async lock() {
      await make();
      return takeLock(path);
    },
  };
}

function missing(error: NodeJS.ErrnoException): null {
  if (error.code === "ENOENT") return null;
  throw error;
}

async function takeLock(folder: string): Promise<RunLock> {
  const fs = await import("node:fs/promises");
  const { join } = await import("node:path");
  const { hostname } = await import("node:os");
  const path = join(folder, lockName);
  const token = crypto.randomUUID();
  const holder: Holder = {
    pid: process.pid,
    host: hostname(),
    started: await startOf(process.pid),
    token,
    since: new Date().toISOString(),
  };
  // Linked into place whole: who finds the lock can read its holder.
  const own = join(folder, `${lockName}.${token}`);
  await fs.writeFile(own, JSON.stringify(holder));
  try {
    for (let attempt = 0; ; attempt++) {
      try {
        await fs.link(own, path);
        break;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      }
      const text = await fs.readFile(path, "utf8").catch(missing);
      if (text === null) continue;
      if (attempt >= 5 || !(await isStale(path, text))) throw lockedError(folder, path, text);
      await takeAway(path, text, token);
    }
  } finally {
    await fs.rm(own, { force: true });
  }
  held.add(token);
  const beat = setInterval(() => {
    const now = new Date();
    void fs.utimes(path, now, now).catch(() => undefined);
  }, heartbeatMilliseconds);
  beat.unref();
  return {
    async release() {
      clearInterval(beat);
      held.delete(token);
      const text = await fs.readFile(path, "utf8").catch(missing);
      if (text?.includes(token)) await fs.rm(path, { force: true });
    },
  };
}

/** Removes a stale lock, unless another process was quicker and the lock is already a new one. */
async function takeAway(path: string, stale: string, token: string): Promise<void> {
  const fs = await import("node:fs/promises");
  const aside = `${path}.${token}.stale`;
  try {
    await fs.rename(path, aside);
  } catch (error) {
    return void missing(error as NodeJS.ErrnoException);
  }
  if ((await fs.readFile(aside, "utf8")) !== stale) await fs.link(aside, path).catch(() => undefined);
  await fs.rm(aside, { force: true });
}

async function isStale(path: string, text: string): Promise<boolean> {
  const { hostname } = await import("node:os");
  const { stat } = await import("node:fs/promises");
  const holder = readHolder(text);
  const age = async (): Promise<number> => {
    const info = await stat(path).catch(missing);
    return info === null ? Number.POSITIVE_INFINITY : Date.now() - info.mtimeMs;
  };
  if (holder === null || holder.host !== hostname()) return (await age()) > staleMilliseconds;
  if (holder.pid === process.pid) return !held.has(holder.token);
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
  return holder.started !== null && (await startOf(holder.pid)) !== holder.started;
}

function readHolder(text: string): Holder | null {
  try {
    const holder = JSON.parse(text) as Holder;
    return typeof holder.pid === "number" && typeof holder.host === "string" ? holder : null;
  } catch {
    return null;
  }
}

function lockedError(folder: string, path: string, text: string): RunLockedError {
  const holder = readHolder(text);
  const who = holder === null ? "another process" : `process ${holder.pid} on ${holder.host}, since ${holder.since}`;
  return new RunLockedError(
    `${folder}: expected a run that nobody writes to, got one held by ${who}; wait for it, ` +
      `or, if it is gone, delete ${path}`,
  );
}

/** Field 22 of /proc/PID/stat: the process's start, in ticks after boot. */
async function startOf(pid: number): Promise<string | null> {
  const { readFile } = await import("node:fs/promises");
  const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => null);
  // The name in parentheses may hold spaces.
  return text === null ? null : (text.slice(text.lastIndexOf(")") + 2).split(" ")[19] ?? null);
}

/** SHA-256 of a file, read in pieces; by Node's own implementation, which is many times faster than ours. */
export async function sha256File(path: string, signal?: AbortSignal): Promise<string> {
  const { createHash } = await import("node:crypto");
  const { createReadStream } = await import("node:fs");
  const hash = createHash("sha256");
  for await (const piece of createReadStream(path, {
    highWaterMark: 2 ** 22,
    ...(signal === undefined ? {} : { signal }),
  })) {
    hash.update(piece as Uint8Array);
  }
  return hash.digest("hex");
}
