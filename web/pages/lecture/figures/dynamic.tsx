// Dynamic scaling: a base that follows the length of the text.

import type { JSX } from "preact";
import { llama2 } from "../../../../src/advice/exercises.ts";
import { LogSlider } from "../../../parts/controls.tsx";
import { short } from "../../../shell/numbers.ts";
import { words } from "../../../shell/preferences.ts";
import { Numbers } from "../numbers.tsx";
import { factor, length } from "../state.ts";
import { FactorSlider } from "./factor-slider.tsx";
import { ofLlama2, SlowDown } from "./slow-down.tsx";

export function DynamicFigure(): JSX.Element {
  const text = words.value.lecture;
  const own = text.dynamic;
  const ropeTheta = llama2.theta;
  const now = length.value;
  const dynamic = ofLlama2({ ropeType: "dynamic", ropeTheta, factor: factor.value }, now);
  const fixed = ofLlama2({ ropeType: "ntk", ropeTheta, factor: factor.value }, now);
  const count = dynamic.hands.length;
  const rows = [
    [`${own.slowest}: ${own.dynamic}`, own.times(short(dynamic.slowest, 9)), "slowest"],
    [`${own.slowest}: ${own.fixed}`, own.times(short(fixed.slowest, 9)), "slowest-fixed"],
    [`${text.unseen}: ${own.dynamic}`, text.of(dynamic.unseen, count), "unseen"],
    [`${text.unseen}: ${own.fixed}`, text.of(fixed.unseen, count), "unseen-fixed"],
  ] as const;
  return (
    <>
      <LogSlider
        label={own.length}
        value={now}
        max={length.max}
        onChange={(value) => length.set(Math.max(length.min, value))}
      />
      <FactorSlider />
      <SlowDown
        label={`${own.caption}. ${rows.map(([name, value]) => `${name}: ${value}`).join(", ")}`}
        of={[
          { name: own.dynamic, colour: "curve-dynamic", of: dynamic },
          { name: own.fixed, colour: "curve-ntk", of: fixed, dash: true },
        ]}
      />
      <Numbers rows={rows} />
    </>
  );
}
