// The lab's page as it arrives and moves: what each page fetches (JavaScript, gzip), how soon something useful is painted,
// and how long frames take while 64 hands are dragged through millions of positions; and a million positions of tables in
// the page. From the built command, on localhost, in Debian's Chromium.
//
//   npm run build && node --import ./scripts/ts-hook.mjs bench/lab.ts [rounds]
//
// "Useful" is the page's heading and its first figure or form. A headless Chromium draws in software, so frames are a
// lower bound of what a screen with a graphics card shows. Prints tables; the last line is one JSON object.

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { type Browser, chromium, type Page } from "playwright-core";
import { findChromium } from "../scripts/chromium.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const rounds = Number(process.argv[2] ?? 5);
const executablePath = findChromium();
if (executablePath === null) throw new RangeError("bench/lab: expected a Chromium; set LONGHAND_CHROMIUM");

/** By page: what stands there once it is of use. */
const useful: Readonly<Record<string, string>> = {
  lecture: "[data-figure] [data-number]",
  clock: ".dials canvas",
  order: '[data-number="verdict"]',
  distance: ".plot canvas",
  extend: "form",
  train: "form",
  runs: "h1",
  doctor: "textarea",
};

const lab = spawn(process.execPath, [join(root, "dist/cli.js"), "lab", "--no-open", "--port", "5860"], {
  stdio: ["ignore", "pipe", "inherit"],
});
const address = await new Promise<string>((done, fail) => {
  lab.on("exit", () => fail(new Error("bench/lab: expected the lab to start; run npm run build")));
  createInterface({ input: lab.stdout }).on("line", (line) => {
    const found = /http:\/\/127\.0\.0\.1:\d+\//.exec(line);
    if (found !== null) done(found[0]);
  });
});

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

interface Opening {
  readonly gzip: number;
  readonly firstPaint: number;
  readonly useful: number;
}

async function open(browser: Browser, name: string): Promise<Opening> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  // A busy machine is told by its numbers, not by an error.
  context.setDefaultTimeout(180_000);
  const page = await context.newPage();
  const scripts: string[] = [];
  page.on("response", (response) => {
    if (/\.js$/.test(new URL(response.url()).pathname)) scripts.push(new URL(response.url()).pathname);
  });
  // Looked for in the page, so that the way to this process is not counted.
  await page.addInitScript(`{
    const look = () => {
      if (document.querySelector("h1") === null || document.querySelector(${JSON.stringify(useful[name])}) === null) return;
      observer.disconnect();
      requestAnimationFrame(() => setTimeout(() => { window.usefulAt = performance.now(); }));
    };
    const observer = new MutationObserver(look);
    observer.observe(document, { childList: true, subtree: true });
  }`);
  await page.goto(`${address}?page=${name}&lang=en`);
  await page.waitForSelector(useful[name]!, { state: "attached" });
  const seen = (await page.evaluate(`new Promise((done) => {
    const look = () => (window.usefulAt === undefined ? setTimeout(look, 20) : done(window.usefulAt));
    look();
  })`)) as number;
  const firstPaint = (await page.evaluate(
    `performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN`,
  )) as number;
  await context.close();
  const gzip = [...new Set(scripts)].reduce(
    (sum, path) => sum + gzipSync(readFileSync(join(root, "dist/web", path)), { level: 9 }).length,
    0,
  );
  return { gzip, firstPaint, useful: seen };
}

interface Frames {
  readonly frames: number;
  readonly median: number;
  readonly p95: number;
  readonly longest: number;
  /** Milliseconds of a frame that this page's own work takes: from the slider's event to the end of the frame's drawing. */
  readonly work: number;
}

/** Drags the slider of positions from 0 to 8 million in four seconds, a step a frame. */
async function drag(page: Page): Promise<Frames> {
  return (await page.evaluate(`new Promise((done) => {
    const slider = document.querySelector('input[type="range"]');
    const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set;
    const gaps = [], works = [];
    let last = null, began = null;
    const tick = (now) => {
      began ??= now;
      if (last !== null) gaps.push(now - last);
      last = now;
      const share = (now - began) / 4000;
      if (share >= 1) {
        const sorted = (list) => [...list].sort((a, b) => a - b);
        const at = (list, q) => sorted(list)[Math.floor(q * (list.length - 1))];
        done({ frames: gaps.length, median: at(gaps, 0.5), p95: at(gaps, 0.95), longest: at(gaps, 1), work: at(works, 0.5) });
        return;
      }
      const start = performance.now();
      set.call(slider, String(Math.round(share * Number(slider.max))));
      slider.dispatchEvent(new Event("input", { bubbles: true }));
      // Runs after the frame that the change has asked for.
      requestAnimationFrame((next) => { queueMicrotask(() => works.push(performance.now() - Math.max(start, next))); tick(next); });
    };
    requestAnimationFrame(tick);
  })`)) as Frames;
}

/** A million positions of 64 hands, computed in a page by the built library. */
async function million(browser: Browser): Promise<number> {
  const page = await browser.newPage();
  await page.route("http://localhost/**", (route) => {
    const path = new URL(route.request().url()).pathname;
    if (path === "/") return route.fulfill({ contentType: "text/html", body: "<!doctype html>" });
    return route.fulfill({ contentType: "text/javascript", body: readFileSync(join(root, "dist", path)) });
  });
  await page.goto("http://localhost/");
  const milliseconds =
    (await page.evaluate(`import("/encodings.js").then(({ computeRopeFrequencies, rotaryTables }) => {
    const rope = { ropeType: "default", ropeTheta: 500000 };
    const frequencies = computeRopeFrequencies({ headDim: 128, maxPositionEmbeddings: 1e6, rope }, 1e6);
    const positions = Float64Array.from({ length: 1e6 }, (_, p) => p);
    const times = [];
    for (let round = 0; round < 3; round++) {
      const start = performance.now();
      rotaryTables(frequencies, positions);
      times.push(performance.now() - start);
    }
    return Math.min(...times);
  })`)) as number;
  await page.close();
  return milliseconds;
}

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const load = loadavg()[0]!;
try {
  const pages: Record<string, Opening> = {};
  for (const name of Object.keys(useful)) {
    const all: Opening[] = [];
    for (let round = 0; round < rounds; round++) all.push(await open(browser, name));
    pages[name] = {
      gzip: all[0]!.gzip,
      firstPaint: median(all.map(({ firstPaint }) => firstPaint)),
      useful: median(all.map(({ useful: at }) => at)),
    };
  }
  console.log("page        JavaScript, kB gzip   first paint, ms   useful, ms");
  for (const [name, { gzip, firstPaint, useful: at }] of Object.entries(pages)) {
    const cells = [
      (gzip / 1000).toFixed(1).padStart(20),
      firstPaint.toFixed(0).padStart(18),
      at.toFixed(0).padStart(13),
    ];
    console.log(name.padEnd(10) + cells.join(""));
  }
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  page.setDefaultTimeout(180_000);
  await page.goto(`${address}?page=clock&lang=en&scaling=yarn:4`);
  await page.waitForSelector(".dials canvas");
  await drag(page);
  const frames = await drag(page);
  console.log(
    `\n64 hands and their strategy dragged to 8 million: ${frames.frames} frames in 4 s, median ${frames.median.toFixed(1)} ms, ` +
      `95 % within ${frames.p95.toFixed(1)} ms, longest ${frames.longest.toFixed(1)} ms; own work ${frames.work.toFixed(1)} ms a frame`,
  );
  const table = await million(browser);
  console.log(`a million positions × 64 hands, exact float64, in the page: ${table.toFixed(0)} ms`);
  console.log(
    JSON.stringify({
      bench: "lab",
      cpu: cpus()[0]?.model,
      load,
      chromium: browser.version(),
      rounds,
      pages,
      frames,
      table,
    }),
  );
} finally {
  await browser.close();
  lab.kill();
}
