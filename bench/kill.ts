// kill -9 at random moments: a compare of a tiny model is started, killed, started again on the same folder, and so on; a
// folder that has become whole must hold the rows of a run that nobody stopped, byte for byte apart from times, and the
// same manifest but for its sessions. Then a new folder, until there were as many kills as asked for.
//
//   npm run build
//   node --import ./scripts/ts-hook.mjs bench/kill.ts [kills=50] [--seed 1] [--cli dist/cli.js]
//
// The moments are drawn by the seed, over the time that a whole run takes here. Prints a line a folder and ends with one
// JSON line. Exit 1 where a folder differs, or a start fails.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { random } from "../src/tensor/index.ts";
import { writeTinyModel } from "../test/support/tiny-model.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seed: { type: "string", default: "1" }, cli: { type: "string", default: "dist/cli.js" } },
});
const wanted = Number(positionals[0] ?? 50);
const cli = resolve(values.cli);
if (!existsSync(cli)) throw new RangeError(`bench/kill: expected ${cli}, got none; npm run build`);
const root = mkdtempSync(join(tmpdir(), "longhand-kill-"));
process.on("exit", () => rmSync(root, { recursive: true, force: true }));

const model = writeTinyModel(join(root, "tiny"));
const text = join(root, "text.txt");
const words = ["the", "miller", "hid", "a", "lamp", "by", "that", "river", "and", "rain"];
const stream = random(Number(values.seed));
writeFileSync(text, Array.from({ length: 4000 }, () => words[stream.integer(words.length)]).join(" "));
// One thread: the same sums in the same order.
const settings = ["--target", "512", "--windows", "16", "--needles", "0", "--threads", "1"];
const start = (folder: string) =>
  spawn(process.execPath, [cli, "compare", model, "--text", text, ...settings, "--out", folder], {
    stdio: ["ignore", "ignore", "pipe"],
  });

/** Rows as they stand in the file, without what was measured; and what the run is. */
function contents(folder: string): { rows: string; identity: string; torn: boolean } {
  const path = join(folder, "rows.jsonl");
  const rows = existsSync(path) ? readFileSync(path, "utf8") : "";
  const { sessions: _, ...manifest } = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8"));
  return {
    rows: rows.replaceAll(/,"measured":\{[^}]*\}/g, ""),
    identity: JSON.stringify(manifest),
    torn: rows !== "" && !rows.endsWith("\n"),
  };
}

async function run(folder: string, killAfter: number): Promise<"killed" | "done"> {
  const child = start(folder);
  const said: Buffer[] = [];
  child.stderr.on("data", (part) => said.push(part));
  const exit = once(child, "exit");
  const timer = setTimeout(() => child.kill("SIGKILL"), killAfter);
  const [code, signal] = await exit;
  clearTimeout(timer);
  if (signal === "SIGKILL") return "killed";
  if (code === 0) return "done";
  throw new Error(`bench/kill: expected an end with 0 or by the kill, got ${code}: ${Buffer.concat(said)}`);
}

const began = performance.now();
await run(join(root, "whole"), 2 ** 30);
const duration = performance.now() - began;
const whole = contents(join(root, "whole"));
const numRows = whole.rows.trimEnd().split("\n").length;
console.log(`a run that nobody stops: ${numRows} rows in ${(duration / 1000).toFixed(1)} s`);

let kills = 0;
let torn = 0;
let folders = 0;
let different = 0;
while (kills < wanted) {
  const folder = join(root, `killed-${folders}`);
  const before = kills;
  const moments: string[] = [];
  for (;;) {
    // The last folder is let come to its end.
    const moment = kills < wanted ? stream.uniform() * duration : 2 ** 30;
    if ((await run(folder, moment)) === "done") break;
    kills++;
    moments.push((moment / 1000).toFixed(2));
    if (existsSync(join(folder, "manifest.json")) && contents(folder).torn) torn++;
  }
  const got = contents(folder);
  const same = got.rows === whole.rows && got.identity === whole.identity;
  if (!same) different++;
  console.log(
    `folder ${folders}: ${kills - before} kills${moments.length === 0 ? "" : ` at ${moments.join(", ")} s`}, ` +
      `${same ? "the same bytes" : "DIFFERENT"}`,
  );
  folders++;
}
console.log(
  JSON.stringify({ bench: "kill", seed: Number(values.seed), kills, folders, torn, rows: numRows, different }),
);
if (different > 0) process.exitCode = 1;
