// `npm start`: installs and builds, then does the main job on a configuration that ships with the project.
import { buildDist } from "./build.mjs";
import { ensureInstalled, run } from "./install.mjs";

ensureInstalled();
await buildDist();
const given = process.argv.slice(2);
const args =
  given.length > 0 ? given : ["inspect", "examples/configs/llama-2-7b.json", "--target", "4x", "--scaling", "yarn:4"];
console.log(`\n$ longhand ${args.join(" ")}\n`);
run(process.execPath, ["dist/cli.js", ...args]);
if (given.length === 0) {
  console.log("\nNext: node dist/cli.js inspect --help, or your own model: npm start -- inspect MODEL");
}
