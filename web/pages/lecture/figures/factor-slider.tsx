// How many times its trained length a model is stretched: one setting for every scaling of the lecture.

import type { JSX } from "preact";
import { Slider } from "../../../parts/controls.tsx";
import { words } from "../../../shell/preferences.ts";
import { factor } from "../state.ts";

export function FactorSlider(): JSX.Element {
  return (
    <Slider
      label={words.value.lecture.factor}
      value={factor.value}
      min={factor.min}
      max={factor.max}
      step={0.5}
      onChange={factor.set}
    />
  );
}
