// `npm run build`: src into dist, by tsdown's own interface (its command line warns about Node 20 on every run).
import { fileURLToPath } from "node:url";
import { root } from "./install.mjs";

/** Builds dist; quiet unless something is wrong. */
export async function buildDist() {
  process.chdir(root);
  const { build } = await import("tsdown");
  await build({ logLevel: "warn" });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildDist();
