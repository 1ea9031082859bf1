// The lab's Extend page on WebGPU, rendered in software: the same losses as on WebAssembly, chosen as a person would.

import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { chromiumPath, whyNoBrowser } from "../support/browser.ts";
import { type LabInChromium, labInChromium } from "../support/lab-page.ts";

const text = Array.from({ length: 24 }, (_, i) => `Call me Ishmael, said whale number ${i} to the sea.`).join("\n");

describe.skipIf(chromiumPath === null)(`the lab's Extend on WebGPU (skipped: ${whyNoBrowser})`, () => {
  let lab: LabInChromium;
  beforeAll(async () => {
    lab = await labInChromium({ webgpu: true });
  }, 120_000);
  afterAll(async () => {
    await lab?.[Symbol.asyncDispose]();
  });

  async function losses(page: Page): Promise<Record<string, number>> {
    await page.getByRole("button", { name: "Compare" }).click();
    await page.getByRole("button", { name: "Cancel" }).waitFor();
    // Shaders are compiled by a processor that draws in their place.
    await page.locator('[data-phase="done"]').waitFor();
    const out: Record<string, number> = {};
    for (const row of await page.locator("[data-strategy]").all()) {
      const shown = await row.locator('[data-number="beyond"]').textContent();
      out[(await row.getAttribute("data-strategy"))!] = Number(shown);
    }
    return out;
  }

  test("WebGPU has WebAssembly's losses to 1e-3", { timeout: 400_000 }, async ({ skip }) => {
    await using opened = await lab.open("page=extend&lang=en&text=own&to=320&windows=1&needles=0&with=linear:1.25");
    const { page, errors, elsewhere } = opened;
    page.setDefaultTimeout(300_000);
    const adapter = await page.evaluate("navigator.gpu?.requestAdapter().then((found) => found !== null)");
    skip(adapter !== true, "this Chromium has no WebGPU adapter, not even one in software");
    await page.getByLabel("Text to read").fill(text);
    await page
      .locator('[data-number="plan"]')
      .getByText("windows of 320")
      .or(page.getByText("window of 320"))
      .waitFor();
    const wasm = await losses(page);
    expect(Object.keys(wasm)).toEqual(["none", "linear:1.25", "window"]);
    await page.getByLabel("Runs").selectOption({ label: "in this page, WebGPU" });
    await page.waitForURL(/where=gpu/);
    const requests: string[] = [];
    page.on("request", (request) => requests.push(new URL(request.url()).pathname));
    const webgpu = await losses(page);
    expect(requests.some((path) => /asyncify.*\.wasm$/.test(path))).toBe(true);
    expect(Object.keys(webgpu)).toEqual(Object.keys(wasm));
    for (const [strategy, loss] of Object.entries(wasm)) {
      expect(Math.abs(webgpu[strategy]! - loss), strategy).toBeLessThan(1e-3);
    }
    expect(errors).toEqual([]);
    expect(elsewhere).toEqual([]);
  });
});
