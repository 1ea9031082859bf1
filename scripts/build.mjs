// `npm run build`: src into dist, by tsdown's own interface (its command line warns about Node 20 on every run), and the
// lab's page into dist/web, by Vite.
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { root } from "./install.mjs";

/** Builds dist; quiet unless something is wrong. */
export async function buildDist() {
  process.chdir(root);
  const { build } = await import("tsdown");
  await build({ logLevel: "warn" });
  // tsdown empties dist first.
  await buildWeb();
}

/** Builds the lab's page: static files that any server can serve. */
export async function buildWeb() {
  const { build } = await import("vite");
  await build({
    root: join(root, "web"),
    configFile: false,
    logLevel: "warn",
    // Addresses relative to the page, so that it also works under a folder of another site.
    base: "./",
    oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
    worker: { format: "es", rolldownOptions: { external: [/^node:/], checks: { pluginTimings: false } } },
    build: {
      // The sample text, which the train page asks for.
      chunkSizeWarningLimit: 2000,
      outDir: join(root, "dist", "web"),
      emptyOutDir: true,
      target: "es2023",
      reportCompressedSize: false,
      modulePreload: { polyfill: false },
      // A file of its own for each: the page's policy allows no data: addresses for scripts.
      assetsInlineLimit: 0,
      // Asked for when a path is opened, which no page does.
      // A slow machine is no warning.
      rolldownOptions: { external: [/^node:/], checks: { pluginTimings: false } },
    },
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildDist();
