// NTK-aware scaling: a new base, which spares the fast hands.

import type { JSX } from "preact";
import { llama2 } from "../../../../src/advice/exercises.ts";
import { ntkBase } from "../../../../src/encodings/rope/scaling/ntk.ts";
import { exact } from "../../../shell/numbers.ts";
import { words } from "../../../shell/preferences.ts";
import { Numbers } from "../numbers.tsx";
import { factor } from "../state.ts";
import { FactorSlider } from "./factor-slider.tsx";
import { ofLlama2, SlowDown, targetOf } from "./slow-down.tsx";

export function NtkFigure(): JSX.Element {
  const text = words.value.lecture;
  const own = text.ntk;
  const [ropeTheta, target] = [llama2.theta, targetOf(factor.value)];
  const ntk = ofLlama2({ ropeType: "ntk", ropeTheta, factor: factor.value }, target);
  const linear = ofLlama2({ ropeType: "linear", ropeTheta, factor: factor.value }, target);
  const count = ntk.hands.length;
  const rows = [
    [own.base, exact(ntkBase(ropeTheta, factor.value, llama2.headDim)), "base"],
    [`${text.unseen}: ${own.ntk}`, text.of(ntk.unseen, count), "unseen"],
    [`${text.unseen}: ${own.linear}`, text.of(linear.unseen, count), "unseen-linear"],
  ] as const;
  return (
    <>
      <FactorSlider />
      <SlowDown
        label={`${own.caption}. ${rows.map(([name, value]) => `${name}: ${value}`).join(", ")}`}
        of={[
          { name: own.ntk, colour: "curve-ntk", of: ntk },
          { name: own.linear, colour: "curve-linear", of: linear, dash: true },
        ]}
      />
      <Numbers rows={rows} />
    </>
  );
}
