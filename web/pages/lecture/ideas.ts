// The twelve ideas: which figure shows each, and on which page of the lab, in which state, one goes on from there.

import type { ComponentType } from "preact";
import { type Idea, llama2 } from "../../../src/advice/exercises.ts";
import { AbsoluteFigure } from "./figures/absolute.tsx";
import { AlibiFigure } from "./figures/alibi.tsx";
import { ClockFigure } from "./figures/clock.tsx";
import { DynamicFigure } from "./figures/dynamic.tsx";
import { InterpolationFigure } from "./figures/interpolation.tsx";
import { MeasuredLosses } from "./figures/measured.tsx";
import { NtkFigure } from "./figures/ntk.tsx";
import { OrderFigure } from "./figures/order.tsx";
import { RelativeFigure } from "./figures/relative.tsx";
import { RopeFigure } from "./figures/rope.tsx";
import { targetOf } from "./figures/slow-down.tsx";
import { T5Figure } from "./figures/t5.tsx";
import { YarnFigure } from "./figures/yarn.tsx";
import * as at from "./state.ts";

/** A page of the lab, and the state that it opens with. */
export interface Further {
  readonly page: "clock" | "order" | "distance" | "extend" | "train";
  readonly state: Readonly<Record<string, string>>;
}

export interface IdeaView {
  readonly figure: ComponentType;
  /** Where to go on. */
  readonly further: () => readonly Further[];
}

/** Llama 2's values, typed into the clock, under a scaling. */
const typed = (scaling: string, target: number = targetOf(at.factor.value)) => ({
  model: "typed",
  theta: String(llama2.theta),
  dim: String(llama2.headDim),
  trained: String(llama2.trainedLength),
  target: String(target),
  scaling,
});

const curves = (names: string): Further => ({
  page: "distance",
  state: { curves: names, read: String(at.distance.value) },
});
const order = (state: Further["state"]): Further => ({ page: "order", state });
const clock = (state: Further["state"]): Further => ({ page: "clock", state });
const train = (encodings: string): Further => ({ page: "train", state: { train: encodings } });
/** What it is worth on a model that was measured: every strategy at this many times its trained length. */
const extend = (times: number): Further => ({ page: "extend", state: { reader: "longhand-rope", to: `${times}x` } });
const place = (): Further["state"] => ({ position: String(at.position.value), hand: String(at.hand.value) });

export const views: Readonly<Record<Idea, IdeaView>> = {
  order: {
    figure: OrderFigure,
    further: () => [order({ encoding: at.encoding.value, mask: at.mask.value, depth: at.depth.value })],
  },
  absolute: {
    figure: AbsoluteFigure,
    further: () => [order({ encoding: "learned", mask: "off", depth: "1" }), train("learned,sinusoidal")],
  },
  clock: { figure: ClockFigure, further: () => [clock({ ...typed(""), ...place() })] },
  relative: {
    figure: RelativeFigure,
    further: () => [clock({ ...typed(""), ...place(), offset: String(at.offset.value) })],
  },
  t5: { figure: T5Figure, further: () => [curves("alibi,t5"), train("t5,alibi")] },
  alibi: { figure: AlibiFigure, further: () => [curves("alibi,kerple"), train("rope,alibi")] },
  rope: { figure: RopeFigure, further: () => [clock(typed("", llama2.trainedLength)), curves("rope,sinusoidal")] },
  interpolation: {
    figure: InterpolationFigure,
    further: () => [clock(typed(`linear:${at.factor.value}`)), extend(at.factor.value)],
  },
  ntk: { figure: NtkFigure, further: () => [clock(typed(`ntk:${at.factor.value}`)), extend(at.factor.value)] },
  yarn: { figure: YarnFigure, further: () => [clock(typed(yarnText())), extend(at.factor.value)] },
  dynamic: {
    figure: DynamicFigure,
    further: () => [clock(typed(`dynamic:${at.factor.value}`, at.length.value)), extend(at.factor.value)],
  },
  none: {
    figure: () => MeasuredLosses({ initial: ["longhand-rope", "longhand-nope", "longhand-drope"] }),
    further: () => [order({ encoding: "none", mask: "on", depth: "2" }), train("rope,none")],
  },
};

/** The short form where it says all, else the whole object. */
function yarnText(): string {
  if (at.betaFast.value === 32 && at.betaSlow.value === 1) return `yarn:${at.factor.value}`;
  return JSON.stringify({
    rope_type: "yarn",
    factor: at.factor.value,
    original_max_position_embeddings: llama2.trainedLength,
    beta_fast: at.betaFast.value,
    beta_slow: at.betaSlow.value,
  });
}
