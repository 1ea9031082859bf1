// Training in Chromium, in a worker: the losses of every step are Node's, on WebAssembly and on WebGPU. Rendered in
// software, WebGPU takes its time for shaders, so it trains three steps; LONGHAND_WEBGPU=all has it train fifty.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RecipeEncoding } from "../../src/training/index.ts";
import { type Bundle, bundle, chromiumPath, openPage, type TestPage, whyNoBrowser } from "../support/browser.ts";
import { type TrainingCase, type TrainingReport, train } from "./pages/training.ts";

const sizes = { hiddenSize: 16, numLayers: 1, numHeads: 2, intermediateSize: 32, length: 32, batchSize: 2 };
const caseOf = (
  provider: TrainingCase["provider"],
  encoding: RecipeEncoding,
  steps: number,
  threads = 1,
): TrainingCase => ({ provider, recipe: { encoding: [encoding], steps, ...sizes }, threads });
const inPage = ({ page }: TestPage, one: TrainingCase): Promise<TrainingReport> =>
  page.evaluate(`import("/page.js").then((page) => page.trainInWorker(${JSON.stringify(one)}))`);

/** Nats: the largest difference of a step's loss. */
function worst(a: TrainingReport, b: TrainingReport): number {
  expect(a.losses.length).toBe(b.losses.length);
  return Math.max(...a.losses.map((loss, step) => Math.abs(loss - b.losses[step]!)));
}

describe.skipIf(chromiumPath === null)(`training in Chromium (skipped: ${whyNoBrowser})`, () => {
  let built: Bundle;
  let isolated: TestPage;
  beforeAll(async () => {
    built = await bundle("training.ts");
    isolated = await openPage({}, { isolated: true, folders: { "": built.folder } });
  }, 300_000);
  afterAll(async () => {
    await isolated?.[Symbol.asyncDispose]();
    await built?.[Symbol.asyncDispose]();
  });

  // What acts at each site, and what is learned by scattering, by gathering and by small networks.
  test.for(["rope", "alibi", "sinusoidal", "t5", "fire"] as const)(
    "50 steps of %s on WebAssembly have Node's losses",
    { timeout: 120_000 },
    async (encoding) => {
      const page = await inPage(isolated, caseOf("wasm", encoding, 50));
      const node = await train(caseOf("node", encoding, 50));
      expect(page.inWorker).toBe(true);
      expect(worst(page, node)).toBeLessThan(1e-4);
      expect(node.losses.at(-1)).toBeLessThan(node.losses[0]! - 0.1);
    },
  );

  test("a worker that is one file trains on one thread: others would run that file, and never begin", async () => {
    const page = await inPage(isolated, caseOf("wasm", "rope", 2, 2));
    expect([page.isolated, page.threads]).toEqual([true, 1]);
    expect(worst(page, await train(caseOf("node", "rope", 2)))).toBeLessThan(1e-5);
  });

  // Threads wait for each other by spinning: on a busy machine each step costs time slices.
  test("with ONNX Runtime's files by name two threads share a step in a worker", { timeout: 240_000 }, async () => {
    const page = await inPage(isolated, { ...caseOf("wasm", "rope", 2, 2), namedFiles: true });
    expect([page.isolated, page.inWorker, page.threads]).toEqual([true, true, 2]);
    expect(isolated.requests.filter((path) => /ort-wasm-simd-threaded-[^.]*\.mjs$/.test(path)).length).toBeGreaterThan(
      1,
    );
    expect(worst(page, await train(caseOf("node", "rope", 2)))).toBeLessThan(1e-5);
  });

  test("a page that is not isolated trains on one thread", async () => {
    await using opened = await openPage({}, { folders: { "": built.folder } });
    const page = await inPage(opened, caseOf("wasm", "rope", 3, 2));
    expect([page.isolated, page.threads]).toEqual([false, 1]);
    expect(worst(page, await train(caseOf("node", "rope", 3)))).toBeLessThan(1e-5);
  });

  test("WebGPU has Node's losses", { timeout: 600_000 }, async ({ skip, annotate }) => {
    await using opened = await openPage({}, { webgpu: true, folders: { "": built.folder } });
    const adapter = await opened.page.evaluate("navigator.gpu?.requestAdapter().then((adapter) => adapter !== null)");
    skip(adapter !== true, "this Chromium has no WebGPU adapter, not even one in software");
    const steps = process.env.LONGHAND_WEBGPU === "all" ? 50 : 3;
    const page = await inPage(opened, caseOf("webgpu", "rope", steps));
    const node = await train(caseOf("node", "rope", steps));
    await annotate(`milliseconds: ${page.milliseconds.join(" ")}`);
    expect(worst(page, node)).toBeLessThan(1e-3);
    expect(Math.abs(page.gradientNorm - node.gradientNorm)).toBeLessThan(1e-3);
  });
});
