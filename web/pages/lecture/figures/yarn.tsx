// YaRN: a ramp between the hands that have seen every angle and those that have not finished a turn.

import type { JSX } from "preact";
import { llama2 } from "../../../../src/advice/exercises.ts";
import type { YarnRope } from "../../../../src/encodings/rope/scaling/parameters.ts";
import { Slider } from "../../../parts/controls.tsx";
import { exact } from "../../../shell/numbers.ts";
import { words } from "../../../shell/preferences.ts";
import { Numbers } from "../numbers.tsx";
import { betaFast, betaSlow, factor } from "../state.ts";
import { FactorSlider } from "./factor-slider.tsx";
import { ofLlama2, SlowDown, targetOf } from "./slow-down.tsx";

/** The settings that the controls say. */
export function yarnRope(): YarnRope {
  return {
    ropeType: "yarn",
    ropeTheta: llama2.theta,
    factor: factor.value,
    originalMaxPositionEmbeddings: llama2.trainedLength,
    betaFast: betaFast.value,
    betaSlow: betaSlow.value,
  };
}

export function YarnFigure(): JSX.Element {
  const text = words.value.lecture;
  const own = text.yarn;
  const [ropeTheta, target] = [llama2.theta, targetOf(factor.value)];
  const yarn = ofLlama2(yarnRope(), target);
  const ntk = ofLlama2({ ropeType: "ntk", ropeTheta, factor: factor.value }, target);
  const linear = ofLlama2({ ropeType: "linear", ropeTheta, factor: factor.value }, target);
  const count = yarn.hands.length;
  const rows = [
    [own.unchanged, text.of(yarn.unchanged, count), "unchanged"],
    [text.unseen, text.of(yarn.unseen, count), "unseen"],
    [own.attentionFactor, exact(yarn.attentionFactor), "attention-factor"],
    [own.score, exact(yarn.scoreFactor), "score-factor"],
  ] as const;
  return (
    <>
      <FactorSlider />
      <Slider
        label={own.betaFast}
        value={betaFast.value}
        min={betaFast.min}
        max={betaFast.max}
        onChange={betaFast.set}
      />
      <Slider
        label={own.betaSlow}
        value={betaSlow.value}
        min={betaSlow.min}
        max={betaSlow.max}
        onChange={betaSlow.set}
      />
      <SlowDown
        label={`${own.caption}. ${rows.map(([name, value]) => `${name}: ${value}`).join(", ")}`}
        of={[
          { name: own.yarn, colour: "curve-yarn", of: yarn },
          { name: text.ntk.ntk, colour: "curve-ntk", of: ntk, dash: true },
          { name: text.ntk.linear, colour: "curve-linear", of: linear, dash: true },
        ]}
      />
      <Numbers rows={rows} />
    </>
  );
}
