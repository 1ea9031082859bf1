// The relative matrix: one hand at k, and what M_R makes of it.

import type { JSX } from "preact";
import { Canvas } from "../../../parts/canvas.tsx";
import { LogSlider, Slider } from "../../../parts/controls.tsx";
import { exact, whole } from "../../../shell/numbers.ts";
import { words } from "../../../shell/preferences.ts";
import { Column, drawMotion, motionOf } from "../../clock/relative.tsx";
import { Numbers } from "../numbers.tsx";
import { hand, offset, position } from "../state.ts";
import { clock } from "./clock.tsx";

export function RelativeFigure(): JSX.Element {
  const text = words.value.lecture;
  const own = text.relative;
  const of = motionOf(clock.hands[hand.value]!.inverseFrequency, position.value, offset.value);
  const { matrix, before, moved, table, difference } = of;
  return (
    <>
      <Slider label={text.hand} value={hand.value} min={hand.min} max={hand.max} onChange={hand.set} />
      <LogSlider label={`${text.position} k`} value={position.value} max={position.max} onChange={position.set} />
      <LogSlider label={own.offset} value={offset.value} max={offset.max} onChange={offset.set} />
      <div class="relative">
        <div class="big-dial">
          <Canvas
            role="img"
            aria-label={`${own.caption}. ${text.hand} ${hand.value}, k ${whole(position.value)}, R ${whole(offset.value)}: ${own.product} = (${moved.join(", ")})`}
            heightFor={(width) => width}
            draw={(surface) => drawMotion(surface, of)}
          />
        </div>
        <div class="equation">
          <Column name={`M_R, R = ${whole(offset.value)}`} rows={matrix} />
          <span aria-hidden="true">·</span>
          <Column name={`P(k), k = ${whole(position.value)}`} rows={before.map((value) => [value])} />
          <div>
            <span aria-hidden="true">=</span>
            <Column name={own.product} rows={moved.map((value) => [value])} />
          </div>
        </div>
        <Numbers
          rows={[
            ["cos(R·ω)", exact(matrix[0]![0]), "diagonal"],
            [own.product, exact(moved[0]), "product"],
            [own.table, exact(table[0]), "table"],
            [own.difference, difference === 0 ? "0" : difference.toExponential(1), "difference"],
          ]}
        />
      </div>
    </>
  );
}
