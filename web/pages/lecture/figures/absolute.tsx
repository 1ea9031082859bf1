// Learned absolute positions: how alike the rows of a trained table are, beside rows that are computed.

import { computed, type ReadonlySignal } from "@preact/signals";
import type { JSX } from "preact";
import { learnedAbsolute } from "../../../../src/encodings/learned-absolute.ts";
import type { EmbeddingEncoding } from "../../../../src/encodings/position-encoding.ts";
import { rowSimilarities } from "../../../../src/encodings/row-similarity.ts";
import { sinusoidal } from "../../../../src/encodings/sinusoidal.ts";
import { learnedOf } from "../../../parts/built-in.ts";
import { Chart, Legend } from "../../../parts/chart.tsx";
import { Slider } from "../../../parts/controls.tsx";
import { exact, whole } from "../../../shell/numbers.ts";
import { words } from "../../../shell/preferences.ts";
import { Numbers } from "../numbers.tsx";
import { row } from "../state.ts";

const hiddenSize = 128;
const places = Array.from({ length: row.max + 1 }, (_, position) => position);
const computedRows = sinusoidal({ hiddenSize });

const table: ReadonlySignal<EmbeddingEncoding | null> = computed(() => {
  const of = learnedOf("longhand-learned").value;
  return of.kind === "ready" && of.value.rows !== null ? learnedAbsolute({ table: of.value.rows, hiddenSize }) : null;
});

interface Curve {
  readonly places: readonly number[];
  readonly similarity: Float64Array;
}
const learned: ReadonlySignal<Curve | null> = computed(() => {
  const of = table.value;
  if (of === null || row.value >= of.maxPositions) return null;
  const known = places.slice(0, of.maxPositions);
  return { places: known, similarity: rowSimilarities(of, row.value, known) };
});

export function AbsoluteFigure(): JSX.Element {
  const text = words.value.lecture;
  const own = text.absolute;
  const state = learnedOf("longhand-learned").value;
  const of = table.value;
  const curve = learned.value;
  const similar = rowSimilarities(computedRows, row.value, places);
  const next = row.value + 1;
  const nextLearned = curve?.similarity[next];
  const label = `${own.caption}. ${own.row} ${row.value}. ${own.next(whole(next))}: ${own.learned} ${nextLearned === undefined ? "–" : exact(nextLearned)}, ${own.computed} ${exact(similar[next] ?? 0)}`;
  return (
    <>
      <Slider label={own.row} value={row.value} min={row.min} max={row.max} onChange={row.set} />
      {state.kind === "loading" ? <p role="status">{text.loading}</p> : null}
      {state.kind === "error" ? <p class="problem">{`${text.unreadable}: ${state.message}`}</p> : null}
      {of !== null && curve === null ? (
        <p class="bad" role="status" data-number="ended">
          {own.ended(whole(of.maxPositions - 1))}
        </p>
      ) : null}
      <Chart
        label={label}
        x={{ from: 0, to: row.max, label: text.position }}
        y={{ from: -0.5, to: 1, label: own.similarity }}
        marks={of === null ? [] : [{ x: of.maxPositions, label: text.trained }]}
        lines={[
          { colour: "some", x: places, y: similar, dash: true },
          ...(curve === null ? [] : [{ colour: "many", x: curve.places, y: curve.similarity }]),
        ]}
        read={row.value}
        onRead={row.set}
      />
      <Legend
        entries={[
          { name: own.learned, colour: "many" },
          { name: own.computed, colour: "some" },
        ]}
      />
      <Numbers
        rows={[
          ...(nextLearned === undefined
            ? []
            : [[`${own.learned}: ${own.next(whole(next))}`, exact(nextLearned), "similarity"] as const]),
          ...(similar[next] === undefined
            ? []
            : [[`${own.computed}: ${own.next(whole(next))}`, exact(similar[next]), "computed-similarity"] as const]),
        ]}
      />
    </>
  );
}
