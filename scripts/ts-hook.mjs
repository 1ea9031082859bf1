// Runs the repository's TypeScript without a build: node --import ./scripts/ts-hook.mjs FILE.ts
// For bench/, examples/ and experiments/; the package itself is built by tsdown.
import { register } from "node:module";

register("./ts-loader.mjs", import.meta.url);
process.setSourceMapsEnabled(true);
