// The worker of the Extend page: the library plans and runs compares, this passes on what is asked and what is told. A run
// that was cancelled stays here, and goes on when the same is asked again.

import packageJson from "../../../package.json" with { type: "json" };
import { liveCompare, planCompare } from "../../../src/evaluation/live-compare.ts";
import { reportFormats } from "../../../src/evaluation/report/formats.ts";
import { reportOf } from "../../../src/evaluation/report/model.ts";
import { memoryRunFiles, type RunFiles, readRun, runName } from "../../../src/evaluation/run-folder/index.ts";
import { builtInModelsAt } from "../../../src/formats/built-in-models.ts";
import type { ModelSource } from "../../../src/formats/model-files.ts";
import { pageBackend, threadsEach } from "../../parts/runtime.ts";
import type { FromWorker, PageModel, ToWorker } from "./messages.ts";

const tell = (message: FromWorker): void => self.postMessage(message);
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const runs = new Map<string, RunFiles>();
let current: RunFiles | undefined;
let controller: AbortController | undefined;

self.onmessage = ({ data: message }: MessageEvent<ToWorker>) => {
  if (message.kind === "cancel") controller?.abort(new Error("cancelled"));
  else if (message.kind === "plan") void plan(message);
  else if (message.kind === "start") void start(message);
  else
    void report(message).catch((error) =>
      tell({ kind: "event", event: { event: "error", message: messageOf(error) } }),
    );
};

async function sourceOf(model: PageModel): Promise<ModelSource> {
  if (model.kind === "files") return model.files;
  return (await builtInModelsAt(model.base, [model.name]).open(model.name))!;
}

async function plan({ id, model, question }: Extract<ToWorker, { kind: "plan" }>): Promise<void> {
  try {
    tell({ kind: "plan", id, plan: await planCompare(await sourceOf(model), question) });
  } catch (error) {
    tell({ kind: "plan-error", id, message: messageOf(error) });
  }
}

/** Lets a message in: a task of its own, which promises alone are not. */
const pause = (): Promise<void> => new Promise((done) => setTimeout(done));

async function start({ model, question, provider }: Extract<ToWorker, { kind: "start" }>): Promise<void> {
  controller = new AbortController();
  const { signal } = controller;
  try {
    await liveCompare(await sourceOf(model), question, {
      version: packageJson.version,
      place(name, identity) {
        const id = runName("compare", name, identity);
        // The identity names no device: asked again of another one, it is another run.
        const key = `${provider} ${id}`;
        const files = runs.get(key) ?? memoryRunFiles(id);
        runs.set(key, files);
        current = files;
        return files;
      },
      session: () => ({ versions: { longhand: packageJson.version }, hardware: { browser: navigator.userAgent } }),
      load: { backend: pageBackend(provider), threads: threadsEach(1, provider) },
      signal,
      pause,
      onEvent: (event) => tell({ kind: "event", event }),
    });
    tell({ kind: "event", event: { event: "done" } });
  } catch (error) {
    const event = signal.aborted
      ? ({ event: "cancelled" } as const)
      : ({ event: "error", message: messageOf(error) } as const);
    tell({ kind: "event", event });
  }
}

async function report({ format, language }: Extract<ToWorker, { kind: "report" }>): Promise<void> {
  if (current === undefined) return;
  const { type, write } = reportFormats[format]!;
  const made = reportOf([await readRun(current)]);
  const content = await write(made, { version: packageJson.version, language });
  tell({ kind: "report", name: `${current.path}.${format}`, type, content });
}
