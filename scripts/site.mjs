// `npm run site`: the lab as files alone, in site/, for any server that hands out files, under any path. It does all but
// what needs the lab's own server: runs on the server's machine and its run folders, and the pages say so.
import { cpSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { buildWeb } from "./build.mjs";
import { root } from "./install.mjs";

/**
 * Puts a site together.
 * @param {string} page the built page (dist/web)
 * @param {string} into the folder; what it held is removed
 */
export function assembleSite(page, into) {
  rmSync(into, { recursive: true, force: true });
  cpSync(page, into, { recursive: true });
  const models = join(root, "models");
  const names = readdirSync(models, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
  for (const name of names) cpSync(join(models, name), join(into, "models", name), { recursive: true });
  writeFileSync(join(into, "models", "index.json"), `${JSON.stringify(names)}\n`);
  // Asked for by pages that would use a server: it says that there is none, where an error 404 would fill the console.
  mkdirSync(join(into, "api"));
  writeFileSync(join(into, "api", "lab"), "null\n");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const into = resolve(process.argv[2] ?? join(root, "site"));
  await buildWeb();
  assembleSite(join(root, "dist", "web"), into);
  console.log(into);
}
