// SmolLM2-135M (Q4_1) on 12,288 tokens of Gibbon under five strategies, against transformers' means of every 1,024
// predicted tokens. Needs ../shared and ../shared/models/fetch.sh; minutes a strategy.
//   node --import ./scripts/ts-hook.mjs bench/smollm2-gibbon.ts [--length 12288] [--precision float32]

import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { loadLanguageModel, type Precision } from "../src/engine/index.ts";

const { values } = parseArgs({
  options: { length: { type: "string", default: "12288" }, precision: { type: "string", default: "float32" } },
});
const length = Number(values.length);
const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache");
const path = join(cache, "longhand/models/SmolLM2-135M-Instruct.Q4_1.gguf");
const reference = new URL("../../shared/references/smollm2-gibbon.json", import.meta.url).pathname;
for (const file of [path, reference]) {
  if (existsSync(file)) continue;
  console.error(`smollm2-gibbon: expected ${file}, got none`);
  process.exit(2);
}
const { tokens, means } = JSON.parse(readFileSync(reference, "utf8")) as {
  tokens: number[];
  means: Record<string, number[]>;
};
const strategies = { none: "none", linear: "linear:1.5", ntk: "ntk:1.5", dynamic: "dynamic:1.5", yarn: "yarn:1.5" };

const model = await loadLanguageModel(path, { precision: values.precision as Precision });
const rows: { strategy: string; largestDifference: number; tokensPerSecond: number; means: number[] }[] = [];
for (const [strategy, scaling] of Object.entries(strategies)) {
  const { negativeLogLikelihood: losses, seconds } = await model.score(tokens.slice(0, length), {
    scaling,
    // The reference's one table is that of the whole 12,288 tokens.
    length: tokens.length,
  });
  const own: number[] = [];
  for (let from = 0; from < losses.length; from += 1024) {
    const block = losses.subarray(from, from + 1024);
    // A block that is cut short has another mean than the reference's.
    if (from + block.length < losses.length || length === tokens.length || block.length === 1024) {
      own.push(block.reduce((sum, x) => sum + x, 0) / block.length);
    }
  }
  const largestDifference = Math.max(...own.map((mean, i) => Math.abs(mean - means[strategy]![i]!)));
  const tokensPerSecond = losses.length / seconds;
  rows.push({ strategy, largestDifference, tokensPerSecond, means: own });
  console.log(
    `${strategy.padEnd(8)} ${own.map((mean) => mean.toFixed(5)).join(" ")}  ` +
      `largest difference ${largestDifference.toExponential(1)}, ${tokensPerSecond.toFixed(0)} tokens/s`,
  );
}
await model.dispose();
console.log(JSON.stringify({ bench: "smollm2-gibbon", length, precision: model.precision, rows }));
