// A report in a real browser: it asks for nothing, runs nothing of a stranger's, fits a phone, and switches its language also
// where scripts are off.

import { describe, expect, test } from "vitest";
import { reportHtml, reportOf, reportSvg } from "../../src/evaluation/index.ts";
import { chromiumPath, openPage, whyNoBrowser } from "../support/browser.ts";
import { hostileNames, madeCompare } from "../support/report-runs.ts";

describe.skipIf(chromiumPath === null)(`a report in Chromium (skipped: ${whyNoBrowser})`, () => {
  test("keeps its policy, is no wider than a phone, and shows one language at a time", async () => {
    const names = ["none", ...hostileNames, "window"];
    const report = reportOf([
      await madeCompare({
        strategies: names.map((name, i) => ({ name, within: 2, beyond: 2 + i / 10 })),
        model: hostileNames[1]!,
        needles: 2,
      }),
    ]);
    const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
    await using opened = await openPage({
      "report.html": encode(reportHtml(report)),
    });
    const { page, origin, requests } = opened;
    const before = requests.length;
    const complaints: string[] = [];
    page.on("console", (message) => complaints.push(message.text()));
    page.on("pageerror", (error) => complaints.push(String(error)));

    const browser = page.context().browser()!;
    for (const javaScriptEnabled of [true, false]) {
      const context = await browser.newContext({
        javaScriptEnabled,
        viewport: { width: 390, height: 800 },
        locale: "en-US",
      });
      const tab = await context.newPage();
      tab.on("console", (message) => complaints.push(message.text()));
      tab.on("pageerror", (error) => complaints.push(String(error)));
      await tab.goto(`${origin}/report.html`);
      const chinese = tab.getByRole("heading", { name: "結論" });
      const english = tab.getByRole("heading", { name: "Verdict" });
      expect([await english.isVisible(), await chinese.isVisible()]).toEqual([true, false]);
      await tab.locator("label[for=language-zh]").click();
      expect([await english.isVisible(), await chinese.isVisible()]).toEqual([false, true]);
      // The names of figures, as a screen reader says them, are in the language that is shown.
      expect(await tab.getByRole("img", { name: "各位置的損失" }).count()).toBe(1);
      if (javaScriptEnabled) {
        const facts = await tab.evaluate(() => ({
          harmed: "harmed" in window,
          wide: document.documentElement.scrollWidth > document.documentElement.clientWidth,
          lang: document.documentElement.lang,
          curves: document.querySelectorAll("figure polyline").length,
          images: document.images.length,
        }));
        const curves = names.length + 2 * (names.length - 1);
        expect(facts).toEqual({ harmed: false, wide: false, lang: "zh-Hant-TW", curves, images: 0 });
      }
      await context.close();
    }
    expect(requests.slice(before)).toEqual(["/report.html", "/report.html"]);
    expect(complaints).toEqual([]);

    // The SVG is well-formed XML, whatever the names hold.
    const error = await page.evaluate((text) => {
      const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
      return parsed.querySelector("parsererror")?.textContent ?? null;
    }, reportSvg(report));
    expect(error).toBeNull();
  });

  test("is in Chinese at first for a reader of Chinese", async () => {
    const report = reportOf([await madeCompare({ strategies: [{ name: "none", within: 2, beyond: 3 }], target: 128 })]);
    await using opened = await openPage({ "report.html": new TextEncoder().encode(reportHtml(report)) });
    const context = await opened.page.context().browser()!.newContext({ locale: "zh-TW" });
    const tab = await context.newPage();
    await tab.goto(`${opened.origin}/report.html`);
    expect(await tab.getByRole("heading", { name: "結論" }).isVisible()).toBe(true);
    await context.close();
  });
});
