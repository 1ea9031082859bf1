// The engine in Chromium on onnxruntime-web's WebAssembly: bundled as a developer's Vite bundles it, and from dist
// without a bundler.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type Bundle,
  bundle,
  chromiumPath,
  openPage,
  packageFolder,
  type TestPage,
  whyNoBrowser,
} from "../support/browser.ts";
import { checkpoint } from "../support/checkpoints.ts";
import { browserModels, callPage, fixturesFolder, selfExtendCase, tolerance } from "../support/engine-page.ts";

describe.skipIf(chromiumPath === null)(`the engine in Chromium, WebAssembly (skipped: ${whyNoBrowser})`, () => {
  let built: Bundle;
  let opened: TestPage;
  beforeAll(async () => {
    built = await bundle("engine.ts");
    opened = await openPage({}, { folders: { "": built.folder, checkpoints: fixturesFolder } });
  }, 60_000);
  afterAll(async () => {
    await opened?.[Symbol.asyncDispose]();
    await built?.[Symbol.asyncDispose]();
  });

  test("every op gives what the reference gives", async () => {
    const { run, skipped, failures } = await callPage(opened, "runOps", "wasm", false);
    expect(failures).toEqual([]);
    expect(skipped).toEqual([]);
    expect(run).toBeGreaterThan(200);
  });

  test.each(browserModels)("$name from bytes: losses and greedy text are transformers'", async (model) => {
    const { golden, addresses, precision } = model;
    const got = await callPage(opened, "runModel", "wasm", addresses, golden.tokens, 6);
    expect(got.backend).toBe("onnxruntime-wasm");
    expect(got.precision).toBe(precision);
    expect(got.losses.length).toBe(golden.losses64.length);
    expect(Math.max(...golden.losses64.map((loss, i) => Math.abs(loss - got.losses[i]!)))).toBeLessThan(tolerance);
    expect(got.greedy).toEqual(golden.greedy.slice(0, 6));
  });

  test("Self-Extend's program: losses beyond the trained length are the reference's", async () => {
    const { addresses, tokens, scaling, losses } = selfExtendCase();
    const got = await callPage(opened, "runModel", "wasm", addresses, tokens, 2, scaling);
    expect(got.losses.length).toBe(losses.length);
    expect(Math.max(...losses.map((loss, i) => Math.abs(loss - got.losses[i]!)))).toBeLessThan(tolerance);
  });

  test("nothing is loaded for WebGPU, and the WebAssembly only once", async () => {
    const ort = opened.requests.filter((path) => path.includes("ort"));
    expect(ort.filter((path) => /webgpu|asyncify|jsep/.test(path))).toEqual([]);
    expect(ort.filter((path) => path.endsWith(".wasm"))).toHaveLength(1);
  });
});

describe.skipIf(chromiumPath === null)(`dist without a bundler (skipped: ${whyNoBrowser})`, () => {
  test("an import map names the package; a page that may share memory uses two threads; a File is a model", async () => {
    const { folder, cases } = checkpoint("llama");
    await using page = await openPage(
      {},
      {
        folders: { ort: join(packageFolder("onnxruntime-web"), "dist"), model: folder },
        imports: { "onnxruntime-web/wasm": "/ort/ort.wasm.bundle.min.mjs" },
        isolated: true,
      },
    );
    const { losses64, tokens } = cases[0]!;
    const got = await page.page.evaluate<{ losses: number[]; shared: boolean; loadedAtImport: boolean }>(`(async () => {
      const { loadLanguageModel, onnxRuntimeBackend } = await import("/engine.js");
      const loadedAtImport = performance.getEntriesByType("resource").some(({ name }) => name.includes("/ort/"));
      const files = await Promise.all(["config.json", "model.safetensors"].map(async (name) =>
        new File([await (await fetch("/model/" + name)).blob()], name)));
      const model = await loadLanguageModel(files, { backend: onnxRuntimeBackend(), threads: 2 });
      const { negativeLogLikelihood } = await model.score(${JSON.stringify(tokens)});
      await model.dispose();
      return { losses: [...negativeLogLikelihood], shared: crossOriginIsolated, loadedAtImport };
    })()`);
    expect(got.shared).toBe(true);
    expect(got.loadedAtImport).toBe(false);
    expect(Math.max(...losses64.map((loss, i) => Math.abs(loss - got.losses[i]!)))).toBeLessThan(tolerance);
  });

  test("the .wasm may be served from elsewhere", async () => {
    const dist = join(packageFolder("onnxruntime-web"), "dist");
    await using page = await openPage(
      { "ort.js": new Uint8Array(readFileSync(join(dist, "ort.wasm.bundle.min.mjs"))) },
      { folders: { wasm: dist }, imports: { "onnxruntime-web/wasm": "/ort.js" } },
    );
    const got = await page.page.evaluate(`(async () => {
      const [{ onnxRuntimeBackend }, { graphBuilder }] = await Promise.all([import("/engine.js"), import("/graph.js")]);
      const g = graphBuilder("two");
      g.output("y", g.add(g.numbers("f32", [1], [1]), 1));
      const session = await onnxRuntimeBackend({ wasmPaths: "/wasm/" }).load(g.build());
      return [...(await session.run()).y.data];
    })()`);
    expect(got).toEqual([2]);
    expect(page.requests.filter((path) => path.endsWith(".wasm"))).toEqual(["/wasm/ort-wasm-simd-threaded.wasm"]);
  });

  test("no module of Node is named in an import, which bundlers for browsers refuse", () => {
    const folder = new URL("../../dist/", import.meta.url);
    const modules = readdirSync(folder).filter((name) => name.endsWith(".js") && name !== "cli.js");
    expect(modules.length).toBeGreaterThan(5);
    const naming = modules.filter((name) =>
      /(\bfrom\s*|\bimport\s*\(?\s*)["']node:/.test(readFileSync(new URL(name, folder), "utf8")),
    );
    expect(naming).toEqual([]);
  });

  test("a page that cannot find the package is told what to install", async () => {
    await using page = await openPage();
    const message = await page.page.evaluate(`(async () => {
      const [{ onnxRuntimeBackend }, { graphBuilder }] = await Promise.all([import("/engine.js"), import("/graph.js")]);
      const g = graphBuilder("one");
      g.output("y", g.add(g.input("x", "f32", [1]), 1));
      return onnxRuntimeBackend().load(g.build()).catch((error) => error.message);
    })()`);
    expect(message).toMatch(/expected the package onnxruntime-web .*npm install onnxruntime-web/);
  });
});
