// The lab's Extend and Runs pages in Chromium: a compare in the page and one on the server give the library's numbers, a link
// shows a run again, runs lie over one another, and names that are markup stay text.

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type CompareResult,
  compareResult,
  liveCompare,
  memoryRunFiles,
  openRun,
  readRun,
} from "../../src/evaluation/index.ts";
import { fixed } from "../../src/evaluation/report/numbers.ts";
import { chromiumPath, whyNoBrowser } from "../support/browser.ts";
import { expectSound, type LabInChromium, labInChromium, type OpenedPage, phone } from "../support/lab-page.ts";
import { hostileNames, madeCompare } from "../support/report-runs.ts";

/** Little to read: two windows of 320 bytes, one strategy beside the two that always run. */
const asked = "to=320&windows=2&needles=0&with=linear:1.25";
const text = Array.from({ length: 24 }, (_, i) => `Call me Ishmael, said whale number ${i} to the sea.`).join("\n");

describe.skipIf(chromiumPath === null)(`the lab's Extend and Runs (skipped: ${whyNoBrowser})`, () => {
  let runs: string;
  let lab: LabInChromium;
  let result: CompareResult;

  beforeAll(async () => {
    runs = await mkdtemp(join(tmpdir(), "longhand-runs-"));
    for (const [id, model, names] of [
      ["first", "one", ["none", "yarn:4", "window"]],
      ["second", "two", ["none", "linear:4", "window"]],
      ["hostile", hostileNames[1]!, ["none", ...hostileNames]],
    ] as const) {
      const made = await madeCompare({
        model,
        strategies: names.map((name, i) => ({ name, within: 2, beyond: 3 - i / 10 })),
        needles: 2,
      });
      const { kind, identity } = made.manifest;
      await using run = await openRun(join(runs, id), { kind, identity });
      for (const row of made.rows) await run.append(row);
    }
    lab = await labInChromium({ runs });
    // The same question to the library, in this process.
    const files = memoryRunFiles();
    const question = {
      text: { name: "pasted.txt", text },
      target: "320",
      strategies: "linear:1.25",
      windows: 2,
      needles: 0,
      seed: 0,
    };
    await liveCompare("longhand-rope", question, { version: "0.1.0", place: () => files, onEvent: () => {} });
    const { manifest, rows } = await readRun(files);
    result = compareResult(manifest.identity as never, rows);
  }, 120_000);
  afterAll(async () => {
    await lab?.[Symbol.asyncDispose]();
    await rm(runs, { recursive: true, force: true });
  });

  async function open(query: string, options?: BrowserContextOptions): Promise<OpenedPage> {
    const opened = await lab.open(query, options);
    // A busy machine is no failure.
    opened.page.setDefaultTimeout(120_000);
    return opened;
  }

  const shownLosses = async (page: Page): Promise<Record<string, number>> => {
    const out: Record<string, number> = {};
    for (const row of await page.locator("[data-strategy]").all()) {
      out[(await row.getAttribute("data-strategy"))!] = Number(
        await row.locator('[data-number="beyond"]').textContent(),
      );
    }
    return out;
  };

  test("a compare in the page, its curves drawn, gives the library's losses, and is saved as the library writes it", async () => {
    await using opened = await open(`page=extend&lang=en&text=own&${asked}`);
    const { page, errors, elsewhere } = opened;
    await page.getByLabel("Text to read").fill(text);
    await page.locator('[data-number="plan"]').getByText("2 windows of 320").waitFor();
    await page.getByRole("button", { name: "Compare" }).click();
    await page.locator('[data-phase="done"]').waitFor();
    const losses = await shownLosses(page);
    expect(Object.keys(losses)).toEqual(["none", "linear:1.25", "window"]);
    for (const { strategy, beyond } of result.strategies) {
      // Another build of ONNX Runtime, whose sums are in another order.
      expect(Math.abs(losses[strategy]! - beyond!.mean)).toBeLessThan(2e-4);
    }
    const image = await page.getByRole("img", { name: /^Loss by position/ }).getAttribute("aria-label");
    expect(image).toMatch(/trained 256.*linear:1\.25: [\d.]+ at/);
    expect(await page.locator(".run-chart canvas").count()).toBe(3);
    const [saved] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "CSV" }).click(),
    ]);
    expect(await readFile((await saved.path())!, "utf8")).toMatch(/^run,model,strategy/);
    expect(errors).toEqual([]);
    expect(elsewhere).toEqual([]);
  });

  test("a compare on the server gives the library's digits; its link shows it again, the list has it, and axe is content", async () => {
    await using opened = await open(`page=extend&lang=en&text=own&where=server&${asked}#token=${lab.token}`);
    const { page, errors, elsewhere } = opened;
    // The token is out of sight at once.
    expect(page.url()).not.toContain("token");
    await page.getByLabel("Text to read").fill(text);
    await page.locator('[data-number="plan"]').getByText("MB of memory").waitFor();
    await page.getByRole("button", { name: "Compare" }).click();
    await page.locator('[data-phase="done"]').waitFor();
    await page.waitForURL(/run=compare-longhand-rope-/);
    const expected = Object.fromEntries(
      result.strategies.map(({ strategy, beyond }) => [strategy, Number(fixed(beyond!.mean, 4))]),
    );
    expect(await shownLosses(page)).toEqual(expected);
    await page.reload();
    await page.locator('[data-phase="done"]').waitFor();
    expect(await shownLosses(page)).toEqual(expected);
    await page.getByRole("button", { name: "中文" }).click();
    await page.getByRole("heading", { name: "結果：longhand-rope" }).waitFor();
    await expectSound(opened, "a result in Chinese");
    await page.getByRole("link", { name: "在「執行紀錄」中查看" }).click();
    await page.locator('[data-run^="compare-longhand-rope-"].on').waitFor();
    await page.locator("[data-strategy]").first().waitFor();
    expect(await shownLosses(page)).toEqual(expected);
    expect(errors).toEqual([]);
    expect(elsewhere).toEqual([]);
  });

  test("what cannot be asked is said beside the field", async () => {
    await using opened = await open(`page=extend&lang=en&with=yam:4&windows=1&needles=0#token=${lab.token}`);
    const { page, errors } = opened;
    await page
      .getByRole("alert")
      .getByText(/expected one of none/)
      .waitFor();
    expect(await page.getByRole("button", { name: "Compare" }).isDisabled()).toBe(true);
    await page.getByLabel("Model", { exact: true }).selectOption("path");
    await page.getByText("Name a model on the server's machine.").waitFor();
    await page.goto(`${lab.address}?page=extend&lang=en&reader=file`);
    await page.getByText("This link was made with a file").waitFor();
    expect(errors).toEqual([]);
  });

  test("runs lie over one another, filtered, diffed and saved; the address shows them again", async () => {
    await using opened = await open("page=runs&lang=en");
    const { page, errors } = opened;
    await page.getByLabel("Filter").fill("linear:4");
    await page.locator("[data-run]").first().waitFor();
    expect(
      await page.locator("[data-run]").evaluateAll((rows) => rows.map((row) => row.getAttribute("data-run"))),
    ).toEqual(["second"]);
    await page.getByLabel("Filter").fill("");
    await page.getByLabel("Show first").check();
    await page.getByLabel("Show second").check();
    const image = page.getByRole("img", { name: /^Loss by position/ });
    // The runs come one after the other, and the first has its curves at once.
    await page.getByRole("img", { name: /^Loss by position.*second · / }).waitFor();
    for (const name of ["first · none", "first · yarn:4", "second · linear:4"]) {
      expect(await image.getAttribute("aria-label")).toContain(name);
    }
    const difference = page.locator('[data-number="differences"] tr').first();
    expect(await difference.locator("th, td").allTextContents()).toEqual(["Model model", '"one"', '"two"']);
    const address = await page.getByRole("link", { name: "JSON lines" }).getAttribute("href");
    expect(address).toBe("./api/runs/report?id=first&id=second&format=jsonl&lang=en");
    await page.waitForURL(/runs=first%7Csecond/);
    await page.reload();
    await image.waitFor();
    expect(await page.getByLabel("Show second").isChecked()).toBe(true);
    await page.getByRole("button", { name: "first" }).click();
    const { manifest, rows } = await readRun(join(runs, "first"));
    const { strategies } = compareResult(manifest.identity as never, rows);
    await page.locator("[data-strategy]").first().waitFor();
    expect(await shownLosses(page)).toEqual(
      Object.fromEntries(strategies.map(({ strategy, beyond }) => [strategy, Number(fixed(beyond!.mean, 4))])),
    );
    expect(await page.getByRole("img", { name: /^yarn:4: at depth 25 % of/ }).count()).toBe(1);
    expect(errors).toEqual([]);
  });

  test("in what two runs differ is said in Chinese too, and a phone scrolls nothing but the table", async () => {
    await using opened = await open("page=runs&lang=zh-TW&runs=first%7Csecond", phone);
    const { page } = opened;
    const difference = page.locator('[data-number="differences"] tr').first();
    await difference.waitFor();
    expect(await difference.locator("th, td").allTextContents()).toEqual(["模型 model", '"one"', '"two"']);
    await expectSound(opened, "differences");
  });

  test("a stranger's names are shown as text, in Chinese, in the dark and on a phone, without a fault", async () => {
    await using opened = await open("page=runs&lang=zh-TW&theme=dark&runs=hostile", phone);
    const { page } = opened;
    await page.locator("[data-strategy]").first().waitFor();
    expect(await page.evaluate("'harmed' in window")).toBe(false);
    expect(await page.locator("main img, main script").count()).toBe(0);
    expect(await page.locator("[data-strategy]").count()).toBe(1 + hostileNames.length);
    expect(await page.getByText("[U+202E]").count()).toBeGreaterThan(0);
    await expectSound(opened, "hostile names");
  });
});
