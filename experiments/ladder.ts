// Train short, test long: which encodings survive past their training length (Press et al. 2021, 2108.12409, figure 1, at
// the size of a tiny model). Trained at 128 bytes, tested at 1 to 16 times that, three seeds, both protocols.
//
//   node --import ./scripts/ts-hook.mjs experiments/train.ts OUT ladder when
//   node --import ./scripts/ts-hook.mjs experiments/ladder.ts OUT [--svg experiments/figures/ladder.svg]
//
// "drope" is RoPE dropped at three quarters of the run, as long a run as the others.

import { join } from "node:path";
import { parseArgs } from "node:util";
import { lineChart, writeFigure } from "./support/line-chart.ts";
import { measure, multiples, openResults, protocols } from "./support/measure.ts";
import { overSeeds, trainedModel } from "./support/trained.ts";

const { values, positionals } = parseArgs({ allowPositionals: true, options: { svg: { type: "string" } } });
const [out] = positionals;
if (out === undefined) throw new RangeError("experiments/ladder: expected the folder of the trainings, got none");
const seeds = [1, 2, 3];
const rungs = ["none", "sinusoidal", "learned", "t5", "alibi", "rope", "drope"] as const;
const results = await openResults(join(out, "measured"));
const asIs = { name: "as-is", encoding: {} };
const found: Record<string, Record<string, (ReturnType<typeof overSeeds> & { readonly seeds: number }) | null>> = {};
for (const rung of rungs) {
  const cells: Record<string, number[]> = {};
  for (const seed of seeds) {
    const name = rung === "drope" ? `when/0.75/${seed}` : `ladder/${rung}/${seed}`;
    const trained = await trainedModel(out, name);
    if (trained === null) continue;
    const { length } = trained.recipe;
    for (const protocol of protocols) {
      for (const multiple of multiples) {
        // A learned table ends at the trained length.
        if (rung === "learned" && multiple > 1) continue;
        const { mean } = await measure(results, name, trained, asIs, multiple * length, protocol);
        const cell = `${protocol} ${multiple}`;
        cells[cell] = [...(cells[cell] ?? []), mean];
      }
    }
    await trained.model.dispose();
    console.error(`${name} measured`);
  }
  found[rung] = Object.fromEntries(
    Object.entries(cells).map(([cell, list]) => [cell, { ...overSeeds(list)!, seeds: list.length }]),
  );
}
await results.close();

for (const protocol of protocols) {
  console.log(`\nnats a byte, ${protocol}: mean over seeds (least to greatest)`);
  console.log(`| encoding | ${multiples.map((multiple) => `${multiple}×`).join(" | ")} |`);
  console.log(`| --- | ${multiples.map(() => "---").join(" | ")} |`);
  for (const rung of rungs) {
    const cells = multiples.map((multiple) => {
      const cell = found[rung]?.[`${protocol} ${multiple}`];
      return cell ? `${cell.mean.toFixed(3)} (${cell.low.toFixed(3)} to ${cell.high.toFixed(3)})` : "—";
    });
    console.log(`| ${rung} | ${cells.join(" | ")} |`);
  }
}
if (values.svg !== undefined) {
  const series = rungs.map((rung) => ({
    name: rung,
    points: multiples.flatMap((multiple) => {
      const cell = found[rung]?.[`${protocols[0]} ${multiple}`];
      return cell ? [{ x: multiple, y: cell.mean, low: cell.low, high: cell.high }] : [];
    }),
  }));
  writeFigure(
    values.svg,
    lineChart({
      title: "Train at 128 bytes, test longer (non-overlapping windows)",
      xLabel: "test length / training length",
      yLabel: "loss, nats a byte",
      series,
    }),
  );
}
console.log(JSON.stringify({ experiment: "ladder", found }));
