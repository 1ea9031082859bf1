// A page in a real Chromium, served dist/ and files that a test gives, from a port of this machine.

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize, resolve } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";
// The same search as `npm test`'s, so that vitest alone finds the browser too.
import { findChromium } from "../../scripts/chromium.mjs";

export const chromiumPath: string | null = findChromium();
export const whyNoBrowser = "no Chromium found: install Debian's package chromium, or set LONGHAND_CHROMIUM";

const dist = resolve(import.meta.dirname, "../../dist");
const types: Record<string, string> = { ".js": "text/javascript", ".html": "text/html", ".wasm": "application/wasm" };

export interface TestPage extends AsyncDisposable {
  readonly page: Page;
  readonly origin: string;
}

/** Opens an empty page that can import dist's modules as "/encodings.js". Any error in the page fails the test. */
export async function openPage(files: Readonly<Record<string, Uint8Array>> = {}): Promise<TestPage> {
  const server = createServer(async (request, response) => {
    const path = new URL(request.url ?? "/", "http://localhost").pathname;
    if (path === "/") {
      response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>test</title>");
      return;
    }
    const given = files[path.slice(1)];
    const body = given ?? (await readFile(join(dist, normalize(path))).catch(() => null));
    if (body === null) response.writeHead(404).end();
    else response.writeHead(200, { "content-type": types[extname(path)] ?? "application/octet-stream" }).end(body);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  let browser: Browser | undefined;
  const close = async () => {
    await browser?.close();
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  };
  try {
    browser = await chromium.launch({
      executablePath: chromiumPath!,
      args: ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
    });
    const page = await browser.newPage();
    await page.goto(origin);
    return { page, origin, [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw error;
  }
}
