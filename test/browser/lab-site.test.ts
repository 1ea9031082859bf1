// The lab as files alone, under a folder of another site: its pages work, and those that would use a server say that
// there is none.

import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { assembleSite } from "../../scripts/site.mjs";
import { measuredLosses } from "../../src/advice/exercises.ts";
import { readStaticFile } from "../../src/server/static-files.ts";
import { chromiumPath, whyNoBrowser } from "../support/browser.ts";
import { builtPage, launchChromium, openPage } from "../support/lab-page.ts";

describe.skipIf(chromiumPath === null)(`the static site (skipped: ${whyNoBrowser})`, () => {
  let folder: string;
  let server: Server;
  let browser: Browser;
  let address: string;

  beforeAll(async () => {
    const built = builtPage();
    folder = mkdtempSync(join(tmpdir(), "longhand-site-"));
    assembleSite(built, folder);
    server = createServer(async (request, response) => {
      const path = new URL(request.url!, "http://localhost").pathname;
      const found = path.startsWith("/some/folder/")
        ? await readStaticFile(folder, path.slice("/some/folder".length))
        : null;
      response.writeHead(found === null ? 404 : 200, { "content-type": found?.type ?? "text/plain" });
      response.end(found?.bytes);
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/some/folder/`;
    browser = await launchChromium();
    // A busy disk takes its time over the copy.
  }, 120_000);
  afterAll(async () => {
    await browser?.close();
    server?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  test("every page opens without an error, and asks nothing outside its folder", async () => {
    for (const name of ["lecture", "clock", "order", "distance", "extend", "train", "runs", "doctor"]) {
      await using opened = await openPage(browser, address, `page=${name}&lang=en`);
      await opened.page.waitForLoadState("networkidle");
      expect(opened.errors, name).toEqual([]);
      expect(opened.elsewhere, name).toEqual([]);
    }
  });

  test("models and their cards are there", async () => {
    await using opened = await openPage(browser, address, "page=lecture&idea=none&lang=en");
    const [first] = await measuredLosses("longhand-nope");
    const shown = opened.page.locator('[data-number="longhand-nope-1"]');
    await shown.waitFor();
    expect(await shown.textContent()).toBe(first!.mean.toFixed(3));
    await opened.page.goto(`${address}?page=clock&model=longhand-rope&lang=en`);
    await opened.page.getByRole("slider", { name: /^Hands/ }).waitFor();
    expect(opened.errors).toEqual([]);
  });

  test("runs, which only a server has, are said to need one", async () => {
    await using opened = await openPage(browser, address, "page=runs&lang=en");
    await opened.page
      .getByText(/longhand lab/)
      .first()
      .waitFor();
  });
});
