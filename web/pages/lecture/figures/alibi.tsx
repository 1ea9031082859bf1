// ALiBi: straight lines, one a head, and what they were measured to be worth beyond the trained length.

import type { JSX } from "preact";
import { alibi } from "../../../../src/encodings/alibi.ts";
import { scoreByDistance } from "../../../../src/encodings/score-by-distance.ts";
import { Chart } from "../../../parts/chart.tsx";
import { LogSlider, Slider } from "../../../parts/controls.tsx";
import { exact, short } from "../../../shell/numbers.ts";
import { words } from "../../../shell/preferences.ts";
import { Numbers } from "../numbers.tsx";
import { distance, heads } from "../state.ts";
import { MeasuredLosses } from "./measured.tsx";

const reach = 1280;

export function AlibiFigure(): JSX.Element {
  const text = words.value.lecture;
  const own = text.alibi;
  const numHeads = Math.round(heads.value);
  const encoding = alibi({ numHeads });
  const at = Math.min(distance.value, reach);
  // A line needs its two ends alone.
  const ends = scoreByDistance(encoding, [0, reach]);
  const here = scoreByDistance(encoding, [at]);
  // Of many heads, the first, the last and some between are put into numbers.
  const listed = Array.from({ length: numHeads }, (_, head) => head).filter(
    (head) => numHeads <= 8 || head % Math.ceil(numHeads / 7) === 0 || head === numHeads - 1,
  );
  const rows = listed.map(
    (head) => [own.head(head + 1, short(encoding.slopes[head]!, 5)), exact(here[head]!), `bias-${head + 1}`] as const,
  );
  return (
    <>
      <Slider label={own.heads} value={numHeads} min={heads.min} max={heads.max} onChange={heads.set} />
      <LogSlider label={text.distance} value={at} max={reach} onChange={distance.set} />
      <Chart
        label={`${own.caption}. ${text.distance} ${at}: ${rows.map(([name, value]) => `${name}: ${value}`).join(", ")}`}
        x={{ from: 0, to: reach, label: text.distance }}
        y={{ from: -16, to: 0, label: own.bias }}
        lines={Array.from({ length: numHeads }, (_, head) => ({
          colour: "many",
          x: [0, reach],
          y: [ends[2 * head]!, ends[2 * head + 1]!],
        }))}
        read={at}
        onRead={distance.set}
      />
      <Numbers rows={rows} />
      <MeasuredLosses initial={["longhand-alibi", "longhand-t5", "longhand-rope", "longhand-sinusoidal"]} />
    </>
  );
}
