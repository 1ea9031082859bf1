// Where a run is trained: in a worker of this page, or by the lab's server. Both are asked the same and say the same words.

import type { TrainingAsk, TrainingQuestion, TrainingWord } from "../../../src/evaluation/live-training.ts";
import type { PageProvider } from "../../parts/runtime.ts";
import { ask, linesOf } from "../../shell/server.ts";
import type { ToWorker } from "./messages.ts";

export interface Place {
  ask(kind: TrainingAsk): void;
  /** Ends it at once; nothing is said any more. */
  end(): void;
}

type Hear = (word: TrainingWord) => void;

export function inWorker(question: TrainingQuestion, provider: PageProvider, models: number, hear: Hear): Place {
  const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  const say = (message: ToWorker): void => worker.postMessage(message);
  worker.onmessage = ({ data }: MessageEvent<TrainingWord>) => hear(data);
  worker.onerror = (event) => hear({ kind: "error", message: event.message });
  say({ kind: "start", question, provider, models });
  return { ask: (kind) => say({ kind }), end: () => worker.terminate() };
}

/** As words come over the wire: bytes in base64, and first of all the job's name. */
type WireWord =
  | Exclude<TrainingWord, { readonly kind: "model" }>
  | { readonly kind: "model"; readonly files: readonly (readonly [string, string])[] }
  | { readonly kind: "job"; readonly job: string };

export function onServer({ recipe, data, held }: TrainingQuestion, hear: Hear): Place {
  const leave = new AbortController();
  const form = new FormData();
  if (data.kind === "task") {
    form.set("question", JSON.stringify({ recipe, held, task: data.task, sizes: data.sizes }));
  } else {
    form.set("question", JSON.stringify({ recipe, held }));
    form.set("train", blobOf(data.train), "train");
    form.set("validation", blobOf(data.validation), "validation");
  }
  const fail = (error: unknown): void => {
    if (!leave.signal.aborted) hear({ kind: "error", message: error instanceof Error ? error.message : String(error) });
  };
  let job: string | undefined;
  /** What was asked before the server had given the job a name. */
  let early: TrainingAsk[] = [];
  const send = (kind: TrainingAsk): void => {
    if (job === undefined) early.push(kind);
    else ask(`train/${job}/ask`, { method: "POST", body: { ask: kind }, signal: leave.signal }).catch(fail);
  };
  const listen = async (): Promise<void> => {
    const answer = await ask("train", { method: "POST", form, signal: leave.signal });
    for await (const word of linesOf<WireWord>(answer)) {
      if (leave.signal.aborted) return;
      if (word.kind === "job") {
        job = word.job;
        const waiting = early;
        early = [];
        for (const kind of waiting) send(kind);
      } else if (word.kind === "model")
        hear({ kind: "model", files: word.files.map(([name, text]) => [name, bytesOf(text)]) });
      else hear(word);
    }
    throw new Error("the server has ended the training");
  };
  listen().catch(fail);
  return { ask: send, end: () => leave.abort() };
}

const blobOf = (bytes: Uint8Array): Blob => new Blob([new Uint8Array(bytes)]);

const bytesOf = (base64: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
