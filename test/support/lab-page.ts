// A page of the lab in Chromium, with what it complained of and what it asked for elsewhere.

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { expect } from "vitest";

const axe = readFileSync(resolve(import.meta.dirname, "../../node_modules/axe-core/axe.min.js"), "utf8");

export interface OpenedPage extends AsyncDisposable {
  readonly page: Page;
  /** Errors of the console and of scripts. */
  readonly errors: string[];
  /** Addresses asked for outside the lab. */
  readonly elsewhere: string[];
}

export const desktop: BrowserContextOptions = { viewport: { width: 1280, height: 900 }, locale: "en-US" };
export const phone: BrowserContextOptions = { viewport: { width: 390, height: 844 }, locale: "en-US" };

/** Every page is looked at in these: both languages, both themes, both sizes. */
export const looks: readonly (readonly [query: string, options: BrowserContextOptions])[] = [
  ["lang=en&theme=light", desktop],
  ["lang=zh-TW&theme=dark", phone],
];

/** @param address of the lab, ending in a slash */
export async function openPage(
  browser: Browser,
  address: string,
  query: string,
  options: BrowserContextOptions = desktop,
): Promise<OpenedPage> {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const errors: string[] = [];
  const elsewhere: string[] = [];
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") errors.push(message.text());
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(address) && !/^(data|blob):/.test(request.url())) elsewhere.push(request.url());
  });
  await page.goto(`${address}?${query}`);
  await page.waitForSelector("h1");
  return { page, errors, elsewhere, [Symbol.asyncDispose]: () => context.close() };
}

/** Nothing wrong with what is shown now: no fault that axe finds, nothing wider than the screen, no error. */
export async function expectSound({ page, errors, elsewhere }: OpenedPage, what: string): Promise<void> {
  // The page's policy refuses scripts that are put in, which axe is; evaluating is not putting in.
  await page.evaluate(axe);
  const faults = await page.evaluate(`axe.run().then(({ violations }) =>
    violations.filter(({ impact }) => impact === "serious" || impact === "critical")
      .map(({ id, nodes }) => id + ": " + nodes.map((node) => node.html).join(" ")))`);
  expect(faults, what).toEqual([]);
  expect(await page.evaluate("document.documentElement.scrollWidth - window.innerWidth"), what).toBeLessThanOrEqual(0);
  expect(errors, what).toEqual([]);
  expect(elsewhere, what).toEqual([]);
}
