// Files on disk, in Node. `node:` modules are imported inside the functions, so that the browser's bundle, which never
// calls them, stays free of them.

import { type ByteSource, expectRange } from "./byte-source.ts";
import { FormatError } from "./format-error.ts";

/** Of one call to the system, which takes less than 2 GiB. */
const maxReadBytes = 2 ** 30;

/**
 * Opens a regular file for positioned reads; the whole file is never read.
 *
 * @throws FormatError when it is missing or not a regular file (a pipe would block, a folder has no bytes)
 */
export async function openFile(path: string): Promise<ByteSource> {
  const [{ constants, open }, { basename }] = await Promise.all([import("node:fs/promises"), import("node:path")]);
  const name = basename(path);
  // Without O_NONBLOCK (which Windows lacks and needs not), opening a named pipe would wait for a writer.
  const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);
  const handle = await open(path, flags).catch((error: NodeJS.ErrnoException) => {
    throw new FormatError(path, `expected a readable file, got ${error.code ?? error.message}`);
  });
  const info = await handle.stat();
  if (!info.isFile()) {
    await handle.close();
    throw new FormatError(path, `expected a regular file, got ${info.isDirectory() ? "a folder" : "a special file"}`);
  }
  const { size } = info;
  const readInto = async (offset: number, target: Uint8Array): Promise<void> => {
    const { length } = target;
    expectRange({ name, size }, offset, length);
    let done = 0;
    while (done < length) {
      const { bytesRead } = await handle.read(target, done, Math.min(length - done, maxReadBytes), offset + done);
      if (bytesRead === 0) {
        throw new FormatError(name, `expected ${length} bytes, got ${done}: the file was cut short`, offset);
      }
      done += bytesRead;
    }
  };
  return {
    name,
    size,
    async read(offset, length) {
      expectRange({ name, size }, offset, length);
      const bytes = new Uint8Array(length);
      await readInto(offset, bytes);
      return bytes;
    },
    readInto,
    async close() {
      await handle.close();
    },
  };
}

/** Runs `use` with an open file and closes it again, whatever happens. */
export async function withFile<T>(path: string, use: (source: ByteSource) => Promise<T>): Promise<T> {
  const source = await openFile(path);
  try {
    return await use(source);
  } finally {
    await source.close();
  }
}

/** Folder and file name of a path. */
export async function splitPath(path: string): Promise<{ folder: string; file: string }> {
  const { basename, dirname } = await import("node:path");
  return { folder: dirname(path), file: basename(path) };
}

/** A file inside a folder. */
export async function joinPath(folder: string, file: string): Promise<string> {
  const { join } = await import("node:path");
  return join(folder, file);
}
