// The engine in Chromium on WebGPU, rendered in software. What costs is the compiling of shaders, so two models run, and
// most ops run their first case only; LONGHAND_WEBGPU=all runs every model and case (two minutes on two cores), for a
// change in how ops are lowered.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Bundle, bundle, chromiumPath, openPage, type TestPage, whyNoBrowser } from "../support/browser.ts";
import { browserModels, callPage, fixturesFolder, selfExtendCase, tolerance } from "../support/engine-page.ts";

const all = process.env.LONGHAND_WEBGPU === "all";
const models = browserModels.filter(({ name }) => all || name === "llama" || name === "gemma3");

describe.skipIf(chromiumPath === null)(`the engine in Chromium, WebGPU (skipped: ${whyNoBrowser})`, () => {
  let built: Bundle;
  let opened: TestPage;
  let adapter: string | null;
  beforeAll(async () => {
    built = await bundle("engine.ts");
    opened = await openPage({}, { webgpu: true, folders: { "": built.folder, checkpoints: fixturesFolder } });
    adapter = await opened.page.evaluate(
      "navigator.gpu?.requestAdapter().then((adapter) => adapter && [adapter.info.vendor, adapter.info.architecture].join(' '))",
    );
  }, 60_000);
  afterAll(async () => {
    await opened?.[Symbol.asyncDispose]();
    await built?.[Symbol.asyncDispose]();
  });
  const noAdapter = "this Chromium has no WebGPU adapter, not even one in software";

  test.for(models)(
    "$name from bytes: losses and greedy text are transformers'",
    { timeout: 120_000 },
    async (model, { skip }) => {
      skip(adapter === null, noAdapter);
      const { golden, addresses, precision } = model;
      const got = await callPage(opened, "runModel", "webgpu", addresses, golden.tokens, 4);
      expect(got.backend).toBe("onnxruntime-webgpu");
      expect(got.precision).toBe(precision);
      expect(got.losses.length).toBe(golden.losses64.length);
      expect(Math.max(...golden.losses64.map((loss, i) => Math.abs(loss - got.losses[i]!)))).toBeLessThan(tolerance);
      expect(got.greedy).toEqual(golden.greedy.slice(0, 4));
    },
  );

  test.runIf(all)(
    "Self-Extend's program: losses beyond the trained length are the reference's",
    async ({ skip }) => {
      skip(adapter === null, noAdapter);
      const { addresses, tokens, scaling, losses: longer } = selfExtendCase();
      // A little beyond the trained length, which is 64.
      const losses = longer.slice(0, 71);
      const got = await callPage(opened, "runModel", "webgpu", addresses, tokens.slice(0, 72), 1, scaling);
      expect(got.losses.length).toBe(losses.length);
      expect(Math.max(...losses.map((loss, i) => Math.abs(loss - got.losses[i]!)))).toBeLessThan(tolerance);
    },
    120_000,
  );

  test(`${all ? "every case of every op" : "ops"}: what the reference gives`, async ({ skip, annotate }) => {
    skip(adapter === null, noAdapter);
    const { run, skipped, failures, slowest } = await callPage(opened, "runOps", "webgpu", !all);
    await annotate([`${run} cases on ${adapter}`, ...skipped, ...slowest].join("\n"));
    expect(failures).toEqual([]);
    expect(run).toBeGreaterThan(all ? 200 : 70);
  }, 400_000);

  test("sessions that are made and run at once wait for each other", async ({ skip }) => {
    skip(adapter === null, noAdapter);
    const errors = await callPage(opened, "runTogether", "webgpu", "transpose");
    expect(errors).toEqual(errors.map(() => 0));
  });

  test("a dtype without kernels is an error that names the value", async ({ skip }) => {
    skip(adapter === null, noAdapter);
    await expect(callPage(opened, "loadCase", "webgpu", "matmul", "f64, both transposed")).rejects.toThrow(
      /expected dtypes that onnxruntime-web has on WebGPU \(no f64, no bf16\), got a: f64\[6, 3\] in .*; use f32/,
    );
  });
});

describe.skipIf(chromiumPath === null)(`Chromium without WebGPU (skipped: ${whyNoBrowser})`, () => {
  test("says so, and what to use", async () => {
    await using built = await bundle("engine.ts");
    await using opened = await openPage({}, { folders: { "": built.folder } });
    await expect(callPage(opened, "loadCase", "webgpu", "matmul", "matrices")).rejects.toThrow(
      /expected a WebGPU adapter, got none; use the provider "wasm"/,
    );
  });
});
