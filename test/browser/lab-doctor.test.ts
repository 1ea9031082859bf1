// The Doctor page in Chromium: it finds what the library finds, repairs what the library repairs, and exports its very
// words.

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  applyFixes,
  diagnose,
  exportConfiguration,
  exportNoteText,
  parseStrategy,
  recordOf,
} from "../../src/advice/index.ts";
import { unifiedDiff } from "../../src/advice/line-diff.ts";
import { openModel } from "../../src/formats/index.ts";
import { chromiumPath, whyNoBrowser } from "../support/browser.ts";
import { expectSound, type LabInChromium, labInChromium, looks, type OpenedPage } from "../support/lab-page.ts";

const root = resolve(import.meta.dirname, "../..");
const gguf = resolve(root, "test/fixtures/checkpoints/gguf/llama/q4_1.gguf");
const qwen = readFileSync(resolve(root, "examples/configs/qwen3-8b-yarn.json"), "utf8");

describe.skipIf(chromiumPath === null)(`the doctor (skipped: ${whyNoBrowser})`, () => {
  let lab: LabInChromium;
  const open = (query: string): Promise<OpenedPage> => lab.open(`page=doctor&${query}`);

  beforeAll(async () => {
    lab = await labInChromium();
  });
  afterAll(async () => {
    await lab?.[Symbol.asyncDispose]();
  });

  test.each(looks)("empty and ill under %s it is sound", async (look, options) => {
    await using opened = await lab.open(`page=doctor&${look}`, options);
    const { page } = opened;
    await expectSound(opened, "empty");
    await page.getByRole("button", { name: "override-loses-theta" }).click();
    await page.locator('[data-code="override-loses-theta"]').waitFor();
    // Finished words of its own language are there, not the other's.
    const { why } = recordOf("override-loses-theta")!;
    await page.getByText(look.includes("zh") ? why["zh-TW"] : why.en).waitFor();
    await expectSound(opened, "with findings");
  });

  test("findings, patch and export of a pasted configuration are the library's; a link brings them back", async () => {
    await using opened = await open("lang=en");
    const { page, errors } = opened;
    await page.getByRole("textbox", { name: "config.json" }).fill(qwen);
    const { findings, model } = diagnose({ config: qwen });
    expect(findings.length).toBeGreaterThan(0);
    const found = async (): Promise<unknown> =>
      page.evaluate(`Array.from(document.querySelectorAll("[data-code]"), ({ dataset }) => dataset.code)`);
    await page.locator(`[data-code="${findings[0]!.code}"]`).waitFor();
    expect(await found()).toEqual(findings.map(({ code }) => code));

    const fixed = applyFixes({ config: qwen }, findings);
    const [, , ...patch] = unifiedDiff("config.json", qwen, fixed.config!).trimEnd().split("\n");
    expect((await page.textContent('[data-number="patch"]'))!.trimEnd()).toBe(patch.join("\n"));

    await page.getByLabel("Scaling").fill("yarn:2");
    await page.getByRole("region", { name: "Command" }).first().waitFor();
    const config = JSON.parse(qwen);
    const made = exportConfiguration(model!, {
      to: "transformers",
      scaling: parseStrategy("yarn:2"),
      config,
      configText: qwen,
    });
    await expect
      .poll(() => page.getByRole("region", { name: "Command" }).allTextContents())
      .toEqual([...made.commands]);
    const score = made.groups[0]!.scoreFactor!.toLocaleString("en-US", { maximumSignificantDigits: 7 });
    expect(await page.textContent('[data-number="score"]')).toBe(score);

    await page.waitForURL(/config=.*export-scaling=yarn/);
    await page.reload();
    await page.locator(`[data-code="${findings[0]!.code}"]`).waitFor();
    expect(await page.getByRole("textbox", { name: "config.json" }).inputValue()).toBe(qwen);
    expect(await page.textContent('[data-number="score"]')).toBe(score);

    await page.getByRole("button", { name: "Put it into the fields above" }).click();
    const left = diagnose({ config: fixed.config! }).findings.map(({ code }) => code);
    await expect.poll(found).toEqual(left);
    expect(errors).toEqual([]);
  });

  test("what an export says is Chinese in Chinese; an engine's own sentence stays beside it", async () => {
    const config = readFileSync(resolve(root, "examples/configs/llama-3.1-8b.json"), "utf8");
    for (const [to, strategy] of [
      ["llama.cpp", "yarn:4"],
      ["vllm", "dynamic:4"],
    ] as const) {
      await using opened = await open(`lang=zh-TW&export-to=${to}&export-scaling=${strategy}`);
      const { page, errors } = opened;
      await page.getByRole("textbox", { name: "config.json" }).fill(config);
      const made = exportConfiguration(diagnose({ config }).model!, {
        to,
        scaling: parseStrategy(strategy),
        config: JSON.parse(config),
        configText: config,
      });
      const notes = [...made.notes, ...made.groups.flatMap((group) => group.notes)];
      expect(notes.length).toBeGreaterThan(0);
      const said = notes.map((note) =>
        [exportNoteText(note, "zh-TW"), note.values.detail].filter((part) => part !== undefined).join(" "),
      );
      await expect.poll(() => page.locator("[data-note]").allTextContents()).toEqual(said);
      if (made.nearest !== null) await page.getByText(exportNoteText(made.nearest, "zh-TW")).waitFor();
      expect(errors).toEqual([]);
    }
  });

  test.each(["en", "zh-TW"] as const)("why an engine computes nothing is said by its code in %s", async (language) => {
    const config = readFileSync(resolve(root, "examples/configs/qwen2.5-7b.json"), "utf8");
    await using opened = await open(`lang=${language}&export-to=gguf&export-scaling=drop`);
    const { page, errors } = opened;
    await page.getByRole("textbox", { name: "config.json" }).fill(config);
    const options = { to: "gguf", scaling: parseStrategy("drop"), config: JSON.parse(config) } as const;
    const [group] = exportConfiguration(diagnose({ config }).model!, options).groups;
    const { code } = group!.unsupported!;
    expect(code).toBe("no-words");
    const shown = page.locator(`[data-unsupported="${code}"]`);
    await shown.getByText(exportNoteText(group!.unsupported!, language)).waitFor();
    expect(errors).toEqual([]);
  });

  test("a GGUF's header is diagnosed; what is no model is said to be none; a wrong command is told beside it", async () => {
    await using opened = await open("lang=en&read-length=100000");
    const { page, errors, elsewhere } = opened;
    await page.setInputFiles('input[type="file"]', [gguf]);
    const { findings } = diagnose({ model: await openModel(gguf), target: 100_000 });
    expect(findings.length).toBeGreaterThan(0);
    await page.locator(`[data-code="${findings[0]!.code}"]`).waitFor();
    await page.getByText(/Read from q4_1\.gguf, its header alone\. Shapes of \d+ tensors/).waitFor();

    await page.setInputFiles('input[type="file"]', [resolve(root, "LICENSE")]);
    await page
      .getByRole("alert")
      .getByText(/LICENSE: expected .*, got another kind of file/)
      .waitFor();

    await page.getByLabel("Command line or Modelfile").fill("make me a sandwich");
    await page
      .getByRole("alert")
      .getByText(/expected/)
      .first()
      .waitFor();
    expect(errors).toEqual([]);
    expect(elsewhere).toEqual([]);
  });
});
