// RoPE stretched at test time, without and with a brief fine-tune at four times the length (Position Interpolation,
// 2306.15595; NTK-aware; YaRN, 2309.00071; dynamic), at the size of a tiny model.
//
//   node --import ./scripts/ts-hook.mjs experiments/train.ts OUT ladder/rope tune
//   node --import ./scripts/ts-hook.mjs experiments/scalings.ts OUT [--svg experiments/figures/scalings.svg]

import { join } from "node:path";
import { parseArgs } from "node:util";
import { lineChart, writeFigure } from "./support/line-chart.ts";
import { measure, multiples, openResults } from "./support/measure.ts";
import { overSeeds, trainedModel } from "./support/trained.ts";

const { values, positionals } = parseArgs({ allowPositionals: true, options: { svg: { type: "string" } } });
const [out] = positionals;
if (out === undefined) throw new RangeError("experiments/scalings: expected the folder of the trainings, got none");
const trainedLength = 128;
/** Row by row: the run, and how it is read. */
const rows: Record<string, { readonly run: (seed: number) => string; readonly scaling?: string }> = {
  unscaled: { run: (seed) => `ladder/rope/${seed}` },
  "linear:4": { run: (seed) => `ladder/rope/${seed}`, scaling: "linear:4" },
  "ntk:4": { run: (seed) => `ladder/rope/${seed}`, scaling: "ntk:4" },
  "yarn:4": { run: (seed) => `ladder/rope/${seed}`, scaling: "yarn:4" },
  "dynamic:1": { run: (seed) => `ladder/rope/${seed}`, scaling: "dynamic:1" },
  "tuned, unscaled": { run: (seed) => `tune/none/${seed}` },
  "tuned, linear:4": { run: (seed) => `tune/linear/${seed}` },
  "tuned, ntk:4": { run: (seed) => `tune/ntk/${seed}` },
  "tuned, yarn:4": { run: (seed) => `tune/yarn/${seed}` },
};
const results = await openResults(join(out, "measured"));
const found: Record<string, Record<number, NonNullable<ReturnType<typeof overSeeds>>>> = {};
for (const [name, { run, scaling }] of Object.entries(rows)) {
  const cells: Record<number, number[]> = {};
  for (const seed of [1, 2, 3]) {
    const trained = await trainedModel(out, run(seed));
    if (trained === null) continue;
    const strategy = { name: scaling ?? "as-is", encoding: scaling === undefined ? {} : { scaling } };
    for (const multiple of multiples) {
      const { mean } = await measure(
        results,
        run(seed),
        trained,
        strategy,
        multiple * trainedLength,
        "non-overlapping",
      );
      cells[multiple] = [...(cells[multiple] ?? []), mean];
    }
    await trained.model.dispose();
  }
  console.error(`${name} measured`);
  found[name] = Object.fromEntries(Object.entries(cells).map(([cell, list]) => [cell, overSeeds(list)!]));
}
await results.close();

console.log("\nnats a byte, non-overlapping: mean over seeds (least to greatest); trained at 128 bytes, tuned at 512");
console.log(`| | ${multiples.map((multiple) => multiple * trainedLength).join(" | ")} |`);
console.log(`| --- | ${multiples.map(() => "---").join(" | ")} |`);
for (const name of Object.keys(rows)) {
  const cells = multiples.map((multiple) => {
    const cell = found[name]?.[multiple];
    return cell ? `${cell.mean.toFixed(3)} (${cell.low.toFixed(3)} to ${cell.high.toFixed(3)})` : "—";
  });
  console.log(`| ${name} | ${cells.join(" | ")} |`);
}
if (values.svg !== undefined) {
  const series = Object.keys(rows).map((name) => ({
    name,
    points: multiples.flatMap((multiple) => {
      const cell = found[name]?.[multiple];
      return cell ? [{ x: multiple * trainedLength, y: cell.mean, low: cell.low, high: cell.high }] : [];
    }),
  }));
  writeFigure(
    values.svg,
    lineChart({
      title: "RoPE trained at 128 bytes, stretched",
      xLabel: "test length, bytes",
      yLabel: "loss, nats a byte",
      series,
    }),
  );
}
console.log(JSON.stringify({ experiment: "scalings", found }));
