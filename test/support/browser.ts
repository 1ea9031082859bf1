// A page in a real Chromium, served dist/, files that a test gives and whole folders, from a port of this machine; and
// bundles of pages, as a developer's bundler makes them.

import { createReadStream } from "node:fs";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { extname, join, normalize, resolve } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";
// The same search as `npm test`'s, so that vitest alone finds the browser too.
import { findChromium } from "../../scripts/chromium.mjs";

export const chromiumPath: string | null = findChromium();
export const whyNoBrowser = "no Chromium found: install Debian's package chromium, or set LONGHAND_CHROMIUM";

const root = resolve(import.meta.dirname, "../..");
const types: Record<string, string> = {
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".html": "text/html",
  ".json": "application/json",
  ".wasm": "application/wasm",
};

export interface PageOptions {
  /** Switches WebGPU on, rendered in software. */
  readonly webgpu?: boolean;
  /** Folders to serve by the first part of an address; "" (dist when absent) is everything else. */
  readonly folders?: Readonly<Record<string, string>>;
  /** An import map: addresses of packages' names. */
  readonly imports?: Readonly<Record<string, string>>;
  /** Sends the headers under which a page may share memory between threads. */
  readonly isolated?: boolean;
}

export interface TestPage extends AsyncDisposable {
  readonly page: Page;
  readonly origin: string;
  /** Addresses asked for, in order. */
  readonly requests: readonly string[];
}

const arguments_ = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
export const webgpuArguments: readonly string[] = [
  "--enable-unsafe-webgpu",
  "--use-webgpu-adapter=swiftshader",
  "--enable-features=Vulkan",
  "--use-vulkan=swiftshader",
];

/** Opens an empty page that can import dist's modules as "/encodings.js". */
export async function openPage(
  files: Readonly<Record<string, Uint8Array>> = {},
  options: PageOptions = {},
): Promise<TestPage> {
  const requests: string[] = [];
  const server = serve(files, options, requests);
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
      args: [...arguments_, ...(options.webgpu ? webgpuArguments : [])],
    });
    const page = await browser.newPage();
    await page.goto(origin);
    return { page, origin, requests, [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw error;
  }
}

function serve(files: Readonly<Record<string, Uint8Array>>, options: PageOptions, requests: string[]): Server {
  const { folders = {}, imports, isolated } = options;
  const map = imports === undefined ? "" : `<script type="importmap">${JSON.stringify({ imports })}</script>`;
  const shared = isolated
    ? { "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp" }
    : {};
  return createServer(async (request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url ?? "/", "http://localhost").pathname));
    requests.push(path);
    const headers = { "content-type": types[extname(path)] ?? "application/octet-stream", ...shared };
    if (path === "/") {
      const html = `<!doctype html><title>test</title><link rel="icon" href="data:,">${map}`;
      response.writeHead(200, { ...headers, "content-type": "text/html" }).end(html);
      return;
    }
    const given = files[path.slice(1)];
    if (given !== undefined) {
      response.writeHead(200, headers).end(given);
      return;
    }
    const [, first, ...rest] = path.split("/");
    const folder = folders[first!];
    const file = folder === undefined ? join(folders[""] ?? join(root, "dist"), path) : join(folder, ...rest);
    const size = await stat(file).then(
      (info) => (info.isFile() ? info.size : null),
      () => null,
    );
    if (size === null) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { ...headers, "content-length": size });
    createReadStream(file).pipe(response);
  });
}

export interface Bundle extends AsyncDisposable {
  /** Holds page.js and what it loads. */
  readonly folder: string;
}

/** Bundles a module of test/browser/pages with everything that it imports, as a developer's Vite would. */
export async function bundle(entry: string): Promise<Bundle> {
  const { build } = await import("vite");
  const folder = await mkdtemp(join(tmpdir(), "longhand-bundle-"));
  const drop = () => rm(folder, { recursive: true, force: true });
  try {
    await build({
      root,
      configFile: false,
      logLevel: "error",
      build: {
        outDir: folder,
        emptyOutDir: true,
        minify: false,
        reportCompressedSize: false,
        copyPublicDir: false,
        rollupOptions: {
          input: join(root, "test/browser/pages", entry),
          preserveEntrySignatures: "strict",
          output: { entryFileNames: "page.js" },
        },
      },
    });
  } catch (error) {
    await drop();
    throw error;
  }
  return { folder, [Symbol.asyncDispose]: drop };
}

/** Where a package of node_modules lies. */
export function packageFolder(name: string): string {
  return join(root, "node_modules", name);
}
