// T5's relative bias: what the heads of a trained model add to a score, by distance.

import { computed, type ReadonlySignal } from "@preact/signals";
import type { JSX } from "preact";
import type { AttentionBiasEncoding } from "../../../../src/encodings/position-encoding.ts";
import { scoreByDistance } from "../../../../src/encodings/score-by-distance.ts";
import { t5Bucket } from "../../../../src/encodings/t5-relative-bias.ts";
import { learnedOf } from "../../../parts/built-in.ts";
import { Chart, Legend } from "../../../parts/chart.tsx";
import { LogSlider } from "../../../parts/controls.tsx";
import { exact, whole } from "../../../shell/numbers.ts";
import { words } from "../../../shell/preferences.ts";
import { Numbers } from "../numbers.tsx";
import { distance } from "../state.ts";

const reach = 1024;
const distances = Array.from({ length: reach + 1 }, (_, d) => d);
const colours = ["many", "some", "part", "little"];

interface Biases {
  readonly encoding: AttentionBiasEncoding;
  /** By head. */
  readonly curves: readonly Float64Array[];
}
const biases: ReadonlySignal<Biases | null> = computed(() => {
  const of = learnedOf("longhand-t5").value;
  const encoding = of.kind === "ready" ? of.value.biases[0] : undefined;
  if (encoding === undefined) return null;
  const all = scoreByDistance(encoding, distances);
  const size = distances.length;
  const curves = Array.from({ length: encoding.numHeads }, (_, h) => all.subarray(h * size, (h + 1) * size));
  return { encoding, curves };
});

export function T5Figure(): JSX.Element {
  const text = words.value.lecture;
  const own = text.t5;
  const state = learnedOf("longhand-t5").value;
  const of = biases.value;
  const at = Math.min(distance.value, reach);
  const here = of === null ? [] : Array.from(scoreByDistance(of.encoding, [at]));
  const bucket = t5Bucket(-at, { bidirectional: false });
  const rows = [
    [`${own.bucket} · ${text.distance} ${whole(at)}`, String(bucket), "bucket"] as const,
    ...here.map((value, head) => [own.head(head + 1), exact(value), `bias-${head + 1}`] as const),
  ];
  const all = of === null ? [0] : of.curves.flatMap((curve) => [Math.min(...curve), Math.max(...curve)]);
  return (
    <>
      <LogSlider label={text.distance} value={at} max={reach} onChange={distance.set} />
      {state.kind === "loading" ? <p role="status">{text.loading}</p> : null}
      {state.kind === "error" ? <p class="problem">{`${text.unreadable}: ${state.message}`}</p> : null}
      <Chart
        label={`${own.caption}. ${rows.map(([name, value]) => `${name}: ${value}`).join(", ")}`}
        x={{ from: 0, to: reach, log: true, label: text.distance }}
        y={{ from: Math.floor(Math.min(...all)), to: Math.max(1, Math.ceil(Math.max(...all))), label: own.bias }}
        lines={(of?.curves ?? []).map((y, head) => ({ colour: colours[head % 4]!, x: distances, y }))}
        read={at}
        onRead={distance.set}
      />
      <Legend entries={here.map((_, head) => ({ name: own.head(head + 1), colour: colours[head % 4]! }))} />
      <Numbers rows={rows} />
    </>
  );
}
