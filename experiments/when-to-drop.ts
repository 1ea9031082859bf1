// When to drop RoPE: early, late or never, at an equal number of steps, and whether norms of queries and keys help (DroPE,
// 2512.12167, sections 4 and 5). The price at the training length, and the loss beyond it with and without a temperature.
//
//   node --import ./scripts/ts-hook.mjs experiments/train.ts OUT ladder/rope ladder/none when norm
//   node --import ./scripts/ts-hook.mjs experiments/when-to-drop.ts OUT [--svg experiments/figures/when-to-drop.svg]

import { join } from "node:path";
import { parseArgs } from "node:util";
import { lineChart, writeFigure } from "./support/line-chart.ts";
import { measure, multiples, openResults } from "./support/measure.ts";
import { overSeeds, trainedModel } from "./support/trained.ts";

const { values, positionals } = parseArgs({ allowPositionals: true, options: { svg: { type: "string" } } });
const [out] = positionals;
if (out === undefined) throw new RangeError("experiments/when-to-drop: expected the folder of the trainings, got none");
const rungs: Record<string, (seed: number) => string> = {
  "never had any": (seed) => `ladder/none/${seed}`,
  "dropped at 25 %": (seed) => `when/0.25/${seed}`,
  "dropped at 50 %": (seed) => `when/0.5/${seed}`,
  "dropped at 75 %": (seed) => `when/0.75/${seed}`,
  "dropped at 90 %": (seed) => `when/0.9/${seed}`,
  "never dropped": (seed) => `ladder/rope/${seed}`,
  "never dropped, q/k norm": (seed) => `norm/rope/${seed}`,
  "dropped at 75 %, q/k norm": (seed) => `norm/drope/${seed}`,
};
const results = await openResults(join(out, "measured"));
const temperatures = [0, 0.1, 0.2, 0.4];
const found: Record<string, Record<string, NonNullable<ReturnType<typeof overSeeds>>>> = {};
for (const [rung, nameOf] of Object.entries(rungs)) {
  const cells: Record<string, number[]> = {};
  for (const seed of [1, 2, 3]) {
    const trained = await trainedModel(out, nameOf(seed));
    if (trained === null) continue;
    const { length: trainedLength } = trained.recipe;
    for (const multiple of multiples) {
      for (const coefficient of rung.startsWith("dropped") || rung === "never had any" ? temperatures : [0]) {
        if (multiple === 1 && coefficient > 0) continue;
        const encoding =
          coefficient === 0 ? {} : { logitTemperature: { kind: "drope" as const, coefficient, trainedLength } };
        const strategy = { name: coefficient === 0 ? "as-is" : `temperature ${coefficient}`, encoding };
        const { mean } = await measure(
          results,
          nameOf(seed),
          trained,
          strategy,
          multiple * trainedLength,
          "non-overlapping",
        );
        const cell = `${multiple} ${coefficient}`;
        cells[cell] = [...(cells[cell] ?? []), mean];
      }
    }
    await trained.model.dispose();
    console.error(`${nameOf(seed)} measured`);
  }
  found[rung] = Object.fromEntries(Object.entries(cells).map(([cell, list]) => [cell, overSeeds(list)!]));
}
await results.close();

const columns = multiples.flatMap((multiple) =>
  [0, ...(multiple > 1 ? temperatures.slice(1) : [])].map((c) => `${multiple} ${c}`),
);
console.log("\nnats a byte, non-overlapping: mean over seeds; c: temperature 1 + c·ln(length / trained)");
console.log(`| | ${columns.map((cell) => cell.replace(" ", "×, c = ")).join(" | ")} |`);
console.log(`| --- | ${columns.map(() => "---").join(" | ")} |`);
for (const rung of Object.keys(rungs)) {
  const cells = columns.map((cell) => found[rung]?.[cell]?.mean.toFixed(3) ?? "—");
  console.log(`| ${rung} | ${cells.join(" | ")} |`);
}
if (values.svg !== undefined) {
  const series = Object.keys(rungs).map((rung) => ({
    name: rung,
    points: multiples.flatMap((multiple) => {
      const cell = found[rung]?.[`${multiple} 0`];
      return cell ? [{ x: multiple, y: cell.mean, low: cell.low, high: cell.high }] : [];
    }),
  }));
  writeFigure(
    values.svg,
    lineChart({
      title: "When RoPE is dropped (no temperature)",
      xLabel: "test length / training length",
      yLabel: "loss, nats a byte",
      series,
    }),
  );
}
console.log(JSON.stringify({ experiment: "when-to-drop", found }));
