// How many threads WebAssembly is asked for in a worker.

import { expect, test } from "vitest";
import { wasmThreads } from "../../src/engine/onnxruntime/threads.ts";

const worker = "http://localhost/assets/worker.js";

test("a worker that is one file has one thread, unless the script of threads is named", () => {
  expect(wasmThreads(4, undefined, worker, worker)).toBe(1);
  expect(wasmThreads(undefined, { wasm: "/ort.wasm" }, worker, worker)).toBe(1);
  expect(wasmThreads(4, { mjs: "http://localhost/ort.mjs" }, worker, worker)).toBe(4);
  expect(wasmThreads(4, "/ort/", worker, worker)).toBe(4);
});

test("a page, and a worker of several files, have what was asked", () => {
  expect(wasmThreads(2, undefined, worker, undefined)).toBe(2);
  expect(wasmThreads(2, undefined, "http://localhost/assets/engine.js", worker)).toBe(2);
  expect(wasmThreads(undefined, undefined)).toBe(undefined);
});
