// How many times slower each hand turns under scalings: one curve a scaling, over the hands of Llama 2.

import type { JSX } from "preact";
import { llama2 } from "../../../../src/advice/exercises.ts";
import { type ScalingByHand, scalingByHand } from "../../../../src/advice/scaling-by-hand.ts";
import type { RopeParameters } from "../../../../src/encodings/rope/scaling/parameters.ts";
import { Chart, Legend } from "../../../parts/chart.tsx";
import { words } from "../../../shell/preferences.ts";

/** Where a factor is meant to lead. */
export function targetOf(factor: number): number {
  return Math.round(factor * llama2.trainedLength);
}

/** Llama 2 under a scaling, at a length. */
export function ofLlama2(rope: RopeParameters, targetLength: number): ScalingByHand {
  return scalingByHand({ headDim: llama2.headDim, trainedLength: llama2.trainedLength, targetLength, rope });
}

export interface Slowed {
  readonly name: string;
  readonly colour: string;
  readonly of: ScalingByHand;
  readonly dash?: boolean;
}

export function SlowDown(props: { readonly label: string; readonly of: readonly Slowed[] }): JSX.Element {
  const text = words.value.lecture;
  const highest = Math.max(2, ...props.of.map(({ of }) => of.slowest));
  const pairs = props.of[0]!.of.slowDown.map((_, pair) => pair);
  return (
    <>
      <Chart
        label={props.label}
        x={{ from: 0, to: pairs.length - 1, label: text.byHand }}
        y={{ from: 0, to: highest * 1.05, label: text.slower }}
        lines={props.of.map(({ colour, of, dash }) => ({ colour, x: pairs, y: of.slowDown, dash: dash ?? false }))}
      />
      <Legend entries={props.of.map(({ name, colour }) => ({ name, colour }))} />
    </>
  );
}
