// What a run folder needs of the place that holds it: a few named files, one that grows, and a lock. In Node a folder
// (node-run-files.ts); in a browser, and in tests, memory.

export interface RunFiles {
  /** What messages call the place. */
  readonly path: string;
  /** Names of what is there; none where the place does not exist yet. */
  list(): Promise<readonly string[]>;
  /** The whole file, or null where there is none. */
  read(name: string): Promise<Uint8Array | null>;
  /** Puts bytes in the place of a file at once: who reads sees the old ones or the new ones, whatever happens. */
  replace(name: string, bytes: Uint8Array): Promise<void>;
  /** Opens a file for appending, cut to its first `length` bytes. */
  append(name: string, length: number): Promise<Appender>;
  /** Takes the lock. Throws RunLockedError while another writer has it. */
  lock(): Promise<RunLock>;
}

export interface Appender {
  /** Adds bytes to the end; when it resolves they are the system's, and a killed process does not lose them. */
  write(bytes: Uint8Array): Promise<void>;
  /** Brings them to the disk, so that a power cut does not lose them. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

export interface RunLock {
  release(): Promise<void>;
}

/** Another process, or another part of this one, writes to the run. */
export class RunLockedError extends RangeError {
  override readonly name: string = "RunLockedError";
}

/**
 * A run in memory.
 *
 * @example
 * ```ts
 * import { memoryRunFiles, openRun } from "longhand/evaluation";
 * const run = await openRun(memoryRunFiles(), { kind: "squares", identity: { upTo: 9 } });
 * await run.append({ key: "2", square: 4 });
 * run.has("2"); // => true
 * await run.close();
 * ```
 */
export function memoryRunFiles(path = "memory"): RunFiles & { readonly files: Map<string, Uint8Array> } {
  const files = new Map<string, Uint8Array>();
  let locked = false;
  return {
    path,
    files,
    list: async () => [...files.keys()],
    read: async (name) => files.get(name) ?? null,
    async replace(name, bytes) {
      files.set(name, bytes.slice());
    },
    async append(name, length) {
      let bytes = (files.get(name) ?? new Uint8Array(0)).slice(0, length);
      files.set(name, bytes);
      return {
        async write(more) {
          const grown = new Uint8Array(bytes.length + more.length);
          grown.set(bytes);
          grown.set(more, bytes.length);
          bytes = grown;
          files.set(name, bytes);
        },
        async flush() {},
        async close() {},
      };
    },
    async lock() {
      if (locked) throw new RunLockedError(`${path}: expected a run that nobody writes to, got one that is open`);
      locked = true;
      return {
        async release() {
          locked = false;
        },
      };
    },
  };
}
