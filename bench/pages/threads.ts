// In a page: a worker for each number of threads, for bench/threads-browser.ts.

import type { Asked, Told } from "./threads-worker.ts";

const workers = new Map<number, Worker>();

/** What a worker says to one question. */
export function ask(threads: number, question: Asked): Promise<Told> {
  const worker =
    workers.get(threads) ?? new Worker(new URL("./threads-worker.ts", import.meta.url), { type: "module" });
  workers.set(threads, worker);
  return new Promise((done, fail) => {
    worker.onmessage = ({ data }: MessageEvent<Told & { error?: string }>) =>
      data.error === undefined ? done(data) : fail(new Error(data.error));
    worker.onerror = (event) => fail(new Error(event.message));
    worker.postMessage(question);
  });
}
