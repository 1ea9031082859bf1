// `npm test`: installs what the tests need, checks types and style, builds, and runs every test.
// Arguments go to vitest: `npm test -- test/unit`.
import { buildDist } from "./build.mjs";
import { ensureChromium } from "./chromium.mjs";
import { ensureInstalled, run } from "./install.mjs";

ensureInstalled();
const chromium = ensureChromium();
if (chromium === null) console.error("longhand: no Chromium found, so the browser tests are skipped");
run("npx", ["--no-install", "tsc", "--noEmit"]);
run("npx", ["--no-install", "biome", "check", "."]);
await buildDist();
run("npx", ["--no-install", "vitest", "run", ...process.argv.slice(2)], {
  env: { ...process.env, ...(chromium === null ? {} : { LONGHAND_CHROMIUM: chromium }) },
});
