// `npm test`: installs what the tests need, checks types and style, builds, and runs every test.
// Arguments go to vitest: `npm test -- test/unit`.
import { buildDist } from "./build.mjs";
import { ensureInstalled, run } from "./install.mjs";

ensureInstalled();
run("npx", ["--no-install", "tsc", "--noEmit"]);
run("npx", ["--no-install", "biome", "check", "."]);
await buildDist();
run("npx", ["--no-install", "vitest", "run", ...process.argv.slice(2)]);
