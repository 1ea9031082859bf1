// How much slower a model learns without an encoding: training loss against tokens on the same batches in the same order,
// and the tokens that each encoding needs to reach the loss that NoPE ends at.
//
//   node --import ./scripts/ts-hook.mjs experiments/train.ts OUT ladder no-bos
//   node --import ./scripts/ts-hook.mjs experiments/learning-speed.ts OUT [--svg experiments/figures/learning-speed.svg]

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { TrainingRow } from "../src/training/index.ts";
import { lineChart, writeFigure } from "./support/line-chart.ts";
import { overSeeds } from "./support/trained.ts";

const { values, positionals } = parseArgs({ allowPositionals: true, options: { svg: { type: "string" } } });
const [out] = positionals;
if (out === undefined)
  throw new RangeError("experiments/learning-speed: expected the folder of the trainings, got none");
const runs: Record<string, string> = {
  none: "ladder/none",
  "none, no BOS": "no-bos/none",
  sinusoidal: "ladder/sinusoidal",
  learned: "ladder/learned",
  t5: "ladder/t5",
  alibi: "ladder/alibi",
  rope: "ladder/rope",
};
const rungs = Object.keys(runs);
const seeds = [1, 2, 3];

/** Rows of training, smoothed over five of them: the batches are the same for every encoding. */
function curve(rung: string, seed: number): { tokens: number; loss: number }[] {
  const path = join(out!, runs[rung]!, String(seed), "rows.jsonl");
  if (!existsSync(path)) return [];
  const rows = readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as TrainingRow)
    .filter((row) => row.kind === "train");
  return rows.map(({ tokens }, i) => {
    const near = rows.slice(Math.max(0, i - 4), i + 1);
    return { tokens, loss: near.reduce((sum, row) => sum + row.loss, 0) / near.length };
  });
}

const reached: Record<string, NonNullable<ReturnType<typeof overSeeds>> | null> = {};
const finals: Record<string, ReturnType<typeof overSeeds>> = {};
for (const rung of rungs) {
  const tokens: number[] = [];
  const last: number[] = [];
  for (const seed of seeds) {
    const none = curve("none", seed);
    const own = curve(rung, seed);
    if (none.length === 0 || own.length < none.length) continue;
    const goal = none.at(-1)!.loss;
    last.push(own.at(-1)!.loss);
    const first = own.find(({ loss }) => loss <= goal);
    if (first !== undefined) tokens.push(first.tokens);
  }
  reached[rung] = overSeeds(tokens);
  finals[rung] = overSeeds(last);
}
console.log("\n| encoding | training loss at the end (least to greatest) | tokens to NoPE's last loss |");
console.log("| --- | --- | --- |");
for (const rung of rungs) {
  const [loss, tokens] = [finals[rung], reached[rung]];
  const text = loss ? `${loss.mean.toFixed(3)} (${loss.low.toFixed(3)} to ${loss.high.toFixed(3)})` : "—";
  console.log(`| ${rung} | ${text} | ${tokens ? Math.round(tokens.mean).toLocaleString("en") : "—"} |`);
}
if (values.svg !== undefined) {
  const series = rungs.map((rung) => {
    const curves = seeds.map((seed) => curve(rung, seed)).filter((one) => one.length > 0);
    const length = Math.min(...curves.map((one) => one.length));
    const at = Array.from({ length: curves.length === 0 ? 0 : length }, (_, i) => i).filter((i) => i >= 2);
    return {
      name: rung,
      points: at.map((i) => {
        const spread = overSeeds(curves.map((one) => one[i]!.loss))!;
        return { x: curves[0]![i]!.tokens, y: spread.mean, low: spread.low, high: spread.high };
      }),
    };
  });
  writeFigure(
    values.svg,
    lineChart({
      title: "Training loss by tokens (same batches)",
      xLabel: "tokens",
      yLabel: "loss, nats a byte",
      series,
      xTicks: [100_000, 200_000, 400_000, 800_000, 1_600_000],
      dots: false,
    }),
  );
}
console.log(JSON.stringify({ experiment: "learning-speed", finals, reached }));
