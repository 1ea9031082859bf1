// The lab's Train page in Chromium, from its own server: what it trains is what the library trains, held and stepped and
// dropped as asked; its state is its address; axe finds no fault.

import { readFileSync } from "node:fs";
import type { BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { onnxRuntimeBackend } from "../../src/engine/index.ts";
import {
  bytesWithBos,
  createTask,
  partText,
  type RecipeOptions,
  runRecipe,
  taskBatches,
  taskLength,
  textDocument,
  tokenBatches,
  trainingRecipe,
} from "../../src/training/index.ts";
import { chromiumPath, whyNoBrowser } from "../support/browser.ts";
import { desktop, expectSound, type LabInChromium, labInChromium, type OpenedPage } from "../support/lab-page.ts";
import { seededText } from "../support/words.ts";

describe.skipIf(chromiumPath === null)(`the lab's Train page (skipped: ${whyNoBrowser})`, () => {
  let lab: LabInChromium;

  beforeAll(async () => {
    lab = await labInChromium();
  });
  afterAll(async () => {
    await lab?.[Symbol.asyncDispose]();
  });

  const open = (query: string, options?: BrowserContextOptions): Promise<OpenedPage> =>
    lab.open(`page=train&${query}`, options);

  const run = (page: Page, encoding: string) => page.locator(`[data-run="${encoding}"]`);
  const shown = (page: Page, encoding: string, name: string) =>
    run(page, encoding).locator(`[data-number="${name}"]`).textContent();
  const reached = (page: Page, encoding: string, phase: string) =>
    run(page, encoding).locator(`.train-phase.${phase}`).waitFor({ timeout: 200_000 });

  /** The library's losses in Node, of every step; or of the first few. */
  async function losses(options: RecipeOptions, text: Uint8Array | null, count?: number): Promise<number[]> {
    const recipe = trainingRecipe(options);
    const out: number[] = [];
    const enough = new AbortController();
    await runRecipe({
      recipe,
      backend: onnxRuntimeBackend({ provider: "node" }),
      data:
        text === null
          ? taskBatches(createTask("copy"), { ...recipe, sizes: [1, 5] })
          : tokenBatches(partText([text]).train, recipe),
      signal: enough.signal,
      onStep: ({ loss }) => {
        if (out.push(loss) === count) enough.abort();
      },
    });
    return out;
  }

  test.each([
    ["lang=en&theme=light", desktop],
    ["lang=zh-TW&theme=dark", { viewport: { width: 390, height: 844 } }],
  ] as const)("under %s: no error, nothing wider than the screen, no fault that axe finds", async (look, options) => {
    await using opened = await open(`${look}&on=copy&largest=5&batch=2&tokens=34&train=rope`, options);
    const { page } = opened;
    await page.locator(".train-main + button").click();
    await reached(page, "rope", "held");
    // Curves, the table of lengths, and the run with all that may be asked of it.
    await page.locator('[data-lengths="rope"]').waitFor();
    await page.locator("details").evaluateAll((all) => {
      for (const one of all) (one as HTMLDetailsElement).open = true;
    });
    await expectSound(opened, look);
  });

  test.each([
    ["this page", "wasm", "It is read in this page and goes nowhere."],
    ["the server", "server", "It goes to the lab's server on this computer, and nowhere else."],
  ])(
    "50 steps of a text of one's own in %s end in the library's loss, and in a model to take away",
    async (_, device, note) => {
      const text = seededText(4000);
      const token = device === "server" ? `#token=${lab.token}` : "";
      await using opened = await open(
        `lang=en&train=alibi&length=32&batch=2&tokens=3200&seed=7&device=${device}${token}`,
      );
      const { page, errors, elsewhere } = opened;
      await page.getByText(note).waitFor();
      await page.setInputFiles('input[type="file"]', {
        name: "own.txt",
        mimeType: "text/plain",
        buffer: Buffer.from(text),
      });
      await page.getByText("The text is own.txt, ").waitFor();
      await page.getByRole("button", { name: "Train", exact: true }).click();
      await reached(page, "alibi", "ended");
      expect(await shown(page, "alibi", "step")).toBe("50 of 50");
      const own = await losses(
        { encoding: ["alibi"], size: "tiny", length: 32, batchSize: 2, tokens: 3200, seed: 7, ...bytesWithBos },
        textDocument(new TextDecoder().decode(text)),
      );
      expect(own).toHaveLength(50);
      expect(Math.abs(Number(await shown(page, "alibi", "loss")) - own[49]!)).toBeLessThan(1e-4);
      // 190 bytes are kept: enough for four times the training length.
      expect(await page.locator('[data-lengths="alibi"] td').allTextContents()).toHaveLength(3);
      const taken = page.waitForEvent("download");
      await page.getByRole("button", { name: "Download the model" }).click();
      const download = await taken;
      expect(download.suggestedFilename()).toBe("longhand-alibi-50.zip");
      const bytes = readFileSync(await download.path());
      for (const name of ["config.json", "model.safetensors", "tokenizer.json"]) {
        expect(bytes.includes(`longhand-alibi-50/${name}`), name).toBe(true);
      }
      expect(errors).toEqual([]);
      expect(elsewhere).toEqual([]);
    },
  );

  test("without the token the server is no choice, and a link that names it trains in the page", async () => {
    await using opened = await open("lang=en&on=copy&largest=5&batch=2&tokens=34&train=none");
    const { page, errors } = opened;
    const places = page.getByLabel("Computed on").locator("option");
    expect(await places.allTextContents()).not.toContain("The lab's server");
    await page.goto(`${lab.address}?page=train&lang=en&on=copy&largest=5&batch=2&tokens=34&train=none&device=server`);
    await page.getByText("This page may not use a server").waitFor();
    await page.getByRole("button", { name: "Train", exact: true }).click();
    await reached(page, "none", "ended");
    expect(errors).toEqual([]);
  });

  test("a run is held, goes a step, is dropped and stopped; a link says what was chosen", async () => {
    const query = "lang=en&on=copy&largest=5&batch=2&tokens=3400&train=rope,t5";
    await using opened = await open(query);
    const { page, errors, elsewhere } = opened;
    await page.getByRole("button", { name: "Train step by step" }).click();
    const sizes = { size: "tiny", batchSize: 2, length: taskLength(createTask("copy"), 5), tokens: 3400 } as const;
    const steps = trainingRecipe({ encoding: ["rope"], ...sizes }).steps;
    await reached(page, "rope", "held");
    await reached(page, "t5", "held");
    expect(await shown(page, "rope", "loss")).toBe("–");
    for (const step of [1, 2]) {
      await run(page, "rope").getByRole("button", { name: "One step" }).click();
      await run(page, "rope").getByText(`${step} of ${steps}`).waitFor();
    }
    await run(page, "rope").getByRole("button", { name: "Drop the encoding" }).click();
    await run(page, "rope").getByText("The encoding was dropped at step 2.").waitFor();
    await run(page, "rope").getByRole("button", { name: "One step" }).click();
    await run(page, "rope").getByText(`3 of ${steps}`).waitFor();
    const dropped = await losses({ encoding: ["rope"], ...sizes, dropAt: 2 }, null, 3);
    expect(Math.abs(Number(await shown(page, "rope", "loss")) - dropped[2]!)).toBeLessThan(1e-4);
    expect(await shown(page, "t5", "step")).toBe(`0 of ${steps}`);
    expect(await run(page, "t5").getByRole("button", { name: "Drop the encoding" }).isDisabled()).toBe(true);
    await page.getByRole("button", { name: "Stop all" }).click();
    await reached(page, "rope", "ended");
    await page.getByLabel("KERPLE, log").check();
    await page.waitForURL(/train=t5%2Ckerple-log%2Crope/);
    await page.reload();
    await page.getByText("Nothing is in training yet.").waitFor();
    expect(await page.getByLabel("KERPLE, log").isChecked()).toBe(true);
    expect(await page.getByLabel("Train on", { exact: true }).inputValue()).toBe("copy");
    expect(errors).toEqual([]);
    expect(elsewhere).toEqual([]);
  });

  test("what cannot be trained is said before it is tried, and a text too short after", async () => {
    await using opened = await open("lang=en&seed=-1&train=rope&length=256");
    const { page } = opened;
    expect(await page.getByRole("alert").textContent()).toMatch(/expected seed to be an integer of at least 0, got -1/);
    expect(await page.getByRole("button", { name: "Train", exact: true }).isDisabled()).toBe(true);
    await page.getByText("More settings").click();
    await page.getByLabel("Seed").fill("1");
    await page.getByText("Or paste a text").click();
    await page.getByRole("textbox", { name: "Or paste a text" }).fill("too short");
    await page.getByText("The text is the pasted text").waitFor();
    await page.getByRole("button", { name: "Train", exact: true }).click();
    await page
      .getByRole("alert")
      .getByText(/tokenBatches: expected more than 2049 tokens/)
      .waitFor();
    expect(await run(page, "rope").locator(".train-phase").textContent()).toBe("Failed");
  });
});
