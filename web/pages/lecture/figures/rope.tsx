// RoPE: the score of two rotated vectors, which knows their distance alone, and its fall with the distance.

import { computed, type ReadonlySignal } from "@preact/signals";
import type { JSX } from "preact";
import { llama2 } from "../../../../src/advice/exercises.ts";
import type { QueryKeyEncoding } from "../../../../src/encodings/position-encoding.ts";
import { rope } from "../../../../src/encodings/rope/rope.ts";
import { scoreByDistance } from "../../../../src/encodings/score-by-distance.ts";
import { vectorScores } from "../../../../src/encodings/vector-scores.ts";
import { Chart } from "../../../parts/chart.tsx";
import { Choice, LogSlider } from "../../../parts/controls.tsx";
import { exact, whole } from "../../../shell/numbers.ts";
import { words } from "../../../shell/preferences.ts";
import { Numbers } from "../numbers.tsx";
import { distance, query, theta } from "../state.ts";

const bases = ["10000", "500000", "1000000"];
const reach = 4096;
const points = 700;
const distances = [
  ...new Set(Array.from({ length: points }, (_, i) => Math.round(Math.expm1((i / (points - 1)) * Math.log1p(reach))))),
];
/** How much further on both are put. */
const shift = 100_000;

const encoding: ReadonlySignal<QueryKeyEncoding> = computed(() =>
  rope({
    headDim: llama2.headDim,
    maxPositionEmbeddings: llama2.trainedLength,
    rope: { ropeType: "default", ropeTheta: Number(bases.find((base) => base === theta.value) ?? bases[0]) },
  }),
);
const curve = computed(() => scoreByDistance(encoding.value, distances));
const ideal = new Array<number>(llama2.headDim).fill(1);

export function RopeFigure(): JSX.Element {
  const text = words.value.lecture;
  const own = text.rope;
  const at = Math.min(distance.value, query.value, reach);
  const score = (from: number): number =>
    vectorScores(encoding.value, ideal, ideal, {
      queryPosition: from,
      keyPositions: [from - at],
      scale: 1 / llama2.headDim,
    })[0]!;
  const [here, moved] = [score(query.value), score(query.value + shift)];
  const difference = Math.abs(here - moved);
  const rows = [
    [own.here(whole(query.value), whole(query.value - at)), exact(here), "score"],
    [own.moved(whole(shift)), exact(moved), "moved"],
    [own.difference, difference === 0 ? "0" : difference.toExponential(1), "difference"],
  ] as const;
  return (
    <>
      <Choice
        label={own.theta}
        value={theta}
        options={bases.map((base) => ({ value: base, label: whole(Number(base)) }))}
      />
      <LogSlider label={own.query} value={query.value} max={query.max} onChange={query.set} />
      <LogSlider label={text.distance} value={at} max={reach} onChange={distance.set} />
      <Chart
        label={`${own.caption}. ${text.distance} ${whole(at)}: ${rows.map(([name, value]) => `${name}: ${value}`).join(", ")}`}
        x={{ from: 0, to: reach, log: true, label: text.distance }}
        y={{ from: -0.2, to: 1, label: own.score }}
        lines={[{ colour: "many", x: distances, y: curve.value }]}
        read={at}
        onRead={distance.set}
      />
      <Numbers rows={rows} />
    </>
  );
}
