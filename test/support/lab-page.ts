// The lab in Chromium: its server and a browser; a page of it, with what it complained of and what it asked for elsewhere.

import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { expect } from "vitest";
import { startLab } from "../../src/server/lab.ts";
import { chromiumPath, webgpuArguments } from "./browser.ts";

const root = resolve(import.meta.dirname, "../..");
const axe = readFileSync(resolve(root, "node_modules/axe-core/axe.min.js"), "utf8");

/** The lab's page as it was built; throws where it was not. */
export function builtPage(): string {
  const built = resolve(root, "dist/web");
  if (!existsSync(built)) throw new Error("test: expected dist/web; run `npm run build` first, or `npm test`");
  return built;
}

export interface LabInChromium extends AsyncDisposable {
  /** Of the page, ending in a slash. */
  readonly address: string;
  readonly token: string;
  /** Opens a page of it. */
  open(query: string, options?: BrowserContextOptions): Promise<OpenedPage>;
}

export interface LabInChromiumOptions {
  /** The folder of run folders. */
  readonly runs?: string;
  /** Switches WebGPU on, rendered in software. */
  readonly webgpu?: boolean;
}

/** Starts the lab of dist/web, and a Chromium. */
export async function labInChromium({ webgpu, ...options }: LabInChromiumOptions = {}): Promise<LabInChromium> {
  const lab = await startLab({ page: builtPage(), port: 0, ...options });
  try {
    const browser = await launchChromium(webgpu);
    return {
      address: lab.address,
      token: lab.token,
      open: (query, contextOptions) => openPage(browser, lab.address, query, contextOptions),
      async [Symbol.asyncDispose]() {
        await browser.close();
        await lab.close();
      },
    };
  } catch (error) {
    await lab.close();
    throw error;
  }
}

/** @param webgpu switches WebGPU on, rendered in software */
export function launchChromium(webgpu = false): Promise<Browser> {
  const args = ["--no-sandbox", ...(webgpu ? webgpuArguments : [])];
  return chromium.launch({ executablePath: chromiumPath!, args });
}

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
