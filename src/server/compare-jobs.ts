// Compares that the lab's server runs: one at a time, each into a run folder that `longhand compare` would go on with. A
// job lives on its own: who watches it may come and go.

import { readFile, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import {
  type CompareEvent,
  type CompareQuestion,
  liveCompare,
  type RunSession,
  runName,
  textFileName,
} from "../evaluation/index.ts";
import { isRecord } from "../evaluation/run-folder/json.ts";
import type { BuiltInModels } from "../formats/built-in-models.ts";
import { FormatError, type ModelSource } from "../formats/index.ts";
import { BusyError, expectKeys } from "./api.ts";
import type { RunStore } from "./run-store.ts";

export type AskedModel =
  | { readonly kind: "built-in"; readonly name: string }
  /** Of the server's machine. */
  | { readonly kind: "path"; readonly path: string };

export interface CompareAsk extends CompareQuestion {
  readonly model: AskedModel;
}

export type JobEvent =
  | CompareEvent
  /** The run's folder is there. */
  | { readonly event: "run"; readonly run: string }
  | { readonly event: "done" }
  | { readonly event: "cancelled" }
  | { readonly event: "error"; readonly message: string };

/** What a job has to say is never older than its latest word of each kind. */
type Kind = JobEvent["event"];
const endings: readonly Kind[] = ["done", "cancelled", "error"];

export class CompareJob {
  readonly id: string = crypto.randomUUID();
  readonly #latest = new Map<Kind, JobEvent>();
  readonly #watchers = new Set<(event: JobEvent) => void>();
  readonly #controller = new AbortController();

  get signal(): AbortSignal {
    return this.#controller.signal;
  }
  get ended(): boolean {
    return endings.some((kind) => this.#latest.has(kind));
  }
  cancel(): void {
    this.#controller.abort(new Error("cancelled"));
  }
  tell(event: JobEvent): void {
    // Kept in the order of the last word of each kind.
    this.#latest.delete(event.event);
    this.#latest.set(event.event, event);
    for (const watcher of this.#watchers) watcher(event);
  }

  /** What was said, and what is said from now on; ends with the job. What a slow reader misses is what was said anew. */
  async *events(): AsyncGenerator<JobEvent> {
    const pending = new Map<Kind, JobEvent>(this.#latest);
    let wake: () => void = () => {};
    const watcher = (event: JobEvent): void => {
      pending.delete(event.event);
      pending.set(event.event, event);
      wake();
    };
    this.#watchers.add(watcher);
    try {
      for (;;) {
        for (const [kind, event] of pending) {
          pending.delete(kind);
          yield event;
          if (endings.includes(kind)) return;
        }
        if (pending.size > 0) continue;
        await new Promise<void>((done) => {
          wake = done;
        });
      }
    } finally {
      this.#watchers.delete(watcher);
    }
  }
}

export interface CompareJobsOptions {
  readonly store: RunStore;
  readonly models: BuiltInModels;
  readonly version: string;
  readonly session: Pick<RunSession, "versions" | "hardware">;
}

/** In a run's folder: what was asked, so that the lab can go on with it. */
const askName = "lab.json";

export class CompareJobs {
  readonly #options: CompareJobsOptions;
  #current: { readonly job: CompareJob; readonly finished: Promise<void> } | null = null;

  constructor(options: CompareJobsOptions) {
    this.#options = options;
  }

  get(id: string): CompareJob | null {
    return this.#current?.job.id === id ? this.#current.job : null;
  }
  /** The job that runs; null where none does. */
  get running(): CompareJob | null {
    return this.#current === null || this.#current.job.ended ? null : this.#current.job;
  }

  /** @throws FormatError for a built-in model that is not there */
  async source(model: AskedModel): Promise<ModelSource> {
    if (model.kind === "path") return resolve(model.path.replace(/^~(?=[/\\])/, homedir()));
    const files = await this.#options.models.open(model.name);
    if (files === null) throw new FormatError(model.name, "expected the name of a built-in model, got another");
    return files;
  }

  /** @throws BusyError while another compare runs */
  async start(ask: CompareAsk): Promise<CompareJob> {
    const source = await this.source(ask.model);
    if (this.running !== null) {
      throw new BusyError(
        "compare: expected no other compare to run on this server, got one that does; wait or cancel it",
      );
    }
    const job = new CompareJob();
    this.#current = { job, finished: this.#run(job, source, ask) };
    return job;
  }

  /**
   * Goes on with a run that the lab began.
   *
   * @throws RangeError for a run that it did not begin, with the command that goes on with it
   */
  async resume(run: string): Promise<CompareJob> {
    const path = await this.#options.store.resolve(run);
    if (path === null) throw new RangeError(`run: expected a run of this folder, got ${JSON.stringify(run)}`);
    const text = await readFile(join(path, askName), "utf8").catch(() => null);
    if (text === null) {
      throw new RangeError(
        `${run}: expected a run that the lab began, got another; the command that began it goes on with it`,
      );
    }
    const ask = JSON.parse(text) as unknown;
    const name = isRecord(ask) && isRecord(ask.text) ? textFileName(String(ask.text.name)) : "";
    const body = await readFile(join(path, name), "utf8").catch(() => null);
    if (body === null) throw new RangeError(`${run}: expected its text beside ${askName}, got none`);
    return this.start(compareAsk({ ...(ask as object), text: { name, text: body } }));
  }

  async #run(job: CompareJob, source: ModelSource, ask: CompareAsk): Promise<void> {
    const { store, version, session } = this.#options;
    let folder = "";
    const file = textFileName(ask.text.name);
    try {
      await liveCompare(source, ask, {
        version,
        place(model, identity) {
          const id = runName("compare", model, identity);
          folder = join(store.folder, id);
          job.tell({ event: "run", run: id });
          return folder;
        },
        // As it would be typed: the command line goes on with the run too.
        session: () => ({ ...session, command: commandOf(ask, join(folder, file), folder) }),
        signal: job.signal,
        onEvent: (event) => job.tell(event),
        async onRun() {
          const { text, ...rest } = ask;
          await put(join(folder, file), text.text);
          await put(join(folder, askName), `${JSON.stringify({ ...rest, text: { name: file } }, null, 2)}\n`);
        },
      });
      job.tell({ event: "done" });
    } catch (error) {
      if (job.signal.aborted) job.tell({ event: "cancelled" });
      else job.tell({ event: "error", message: error instanceof Error ? error.message : String(error) });
    }
  }

  async close(): Promise<void> {
    this.running?.cancel();
    await this.#current?.finished;
  }
}

/** Puts a file in the place of whatever lies there; a link's target is left alone. */
async function put(path: string, text: string): Promise<void> {
  await rm(path, { force: true });
  await writeFile(path, text, { flag: "wx" });
}

function commandOf(
  { model, target, strategies, windows, needles, seed }: CompareAsk,
  text: string,
  out: string,
): string[] {
  return [
    ...["longhand", "compare", model.kind === "path" ? model.path : model.name],
    ...["--text", text, "--target", target],
    ...(strategies === undefined ? [] : ["--strategies", strategies]),
    ...["--windows", String(windows), "--needles", String(needles), "--seed", String(seed), "--out", out],
  ];
}

/** Characters of a text, windows, passkeys: what a page may ask for at most. */
const longestText = 32 * 2 ** 20;
const mostWindows = 4096;
const mostNeedles = 1000;

/** @throws RangeError naming what is missing or of another type */
export function compareAsk(value: unknown): CompareAsk {
  expectKeys("compare", value, ["model", "text", "target", "strategies", "windows", "needles", "seed"]);
  const { text, target, strategies } = value;
  if (!isRecord(text) || typeof text.name !== "string" || typeof text.text !== "string") {
    throw new RangeError("compare: expected a text with a name, got none");
  }
  if (text.text.length > longestText) {
    throw new RangeError(`compare: expected a text of at most ${longestText} characters, got ${text.text.length}`);
  }
  if (typeof target !== "string")
    throw new RangeError("compare: expected target as a text such as 4x, got something else");
  if (strategies !== undefined && typeof strategies !== "string") {
    throw new RangeError("compare: expected strategies as one text, got something else");
  }
  const whole = (key: "windows" | "needles" | "seed", least: number, greatest: number): number => {
    const number = value[key];
    if (Number.isInteger(number) && (number as number) >= least && (number as number) <= greatest)
      return number as number;
    throw new RangeError(
      `compare: expected ${key} as an integer in ${least} .. ${greatest}, got ${JSON.stringify(number) ?? "none"}`,
    );
  };
  return {
    model: askedModel(value.model),
    text: { name: text.name, text: text.text },
    target,
    ...(strategies === undefined ? {} : { strategies }),
    windows: whole("windows", 1, mostWindows),
    needles: whole("needles", 0, mostNeedles),
    seed: whole("seed", 0, Number.MAX_SAFE_INTEGER),
  };
}

/** @throws RangeError for what names no model */
export function askedModel(value: unknown): AskedModel {
  if (isRecord(value) && value.kind === "built-in" && typeof value.name === "string") {
    return { kind: "built-in", name: value.name };
  }
  if (isRecord(value) && value.kind === "path" && typeof value.path === "string" && value.path.trim() !== "") {
    return { kind: "path", path: value.path.trim() };
  }
  throw new RangeError('model: expected { kind: "built-in", name } or { kind: "path", path }, got something else');
}
