// Position Interpolation: every hand slowed by the factor.

import type { JSX } from "preact";
import { llama2 } from "../../../../src/advice/exercises.ts";
import { scalingByHand } from "../../../../src/advice/scaling-by-hand.ts";
import { Legend } from "../../../parts/chart.tsx";
import { exact, whole } from "../../../shell/numbers.ts";
import { words } from "../../../shell/preferences.ts";
import { Numbers } from "../numbers.tsx";
import { factor } from "../state.ts";
import { FactorSlider } from "./factor-slider.tsx";
import { HandStrip } from "./hand-strip.tsx";
import { targetOf } from "./slow-down.tsx";

export function InterpolationFigure(): JSX.Element {
  const text = words.value.lecture;
  const own = text.interpolation;
  const targetLength = targetOf(factor.value);
  const of = { headDim: llama2.headDim, trainedLength: llama2.trainedLength, targetLength };
  const plain = scalingByHand({ ...of, rope: { ropeType: "default", ropeTheta: llama2.theta } });
  const linear = scalingByHand({
    ...of,
    rope: { ropeType: "linear", ropeTheta: llama2.theta, factor: factor.value },
  });
  const count = plain.hands.length;
  const rows = [
    [`${text.unseen}: ${text.asTrained}`, text.of(plain.unseen, count), "unseen-plain"],
    [`${text.unseen}: ${own.interpolated}`, text.of(linear.unseen, count), "unseen"],
    [`${own.neighbour}: ${text.asTrained}`, own.radians(exact(plain.inverseFrequencies[0]!)), "neighbour-plain"],
    [`${own.neighbour}: ${own.interpolated}`, own.radians(exact(linear.inverseFrequencies[0]!)), "neighbour"],
  ] as const;
  return (
    <>
      <FactorSlider />
      <HandStrip
        label={`${own.caption}. ${text.target} ${whole(targetLength)}. ${rows.map(([name, value]) => `${name}: ${value}`).join(", ")}`}
        trained={llama2.trainedLength}
        target={targetLength}
        rows={[
          { name: text.asTrained, colour: "many", hands: plain.hands },
          { name: own.interpolated, colour: "strategy", hands: linear.hands },
        ]}
      />
      <Legend
        entries={[
          { name: text.asTrained, colour: "many" },
          { name: own.interpolated, colour: "strategy" },
          { name: text.unseenMark, colour: "unseen", hollow: true },
        ]}
      />
      <Numbers rows={rows} />
    </>
  );
}
