// The twelve ideas: which figure shows each, and on which page of the lab, in which state, one goes on from there.

import type { ComponentType } from "preact";
import { type Idea, llama2 } from "../../../src/advice/exercises.ts";
import type { Words } from "../../text/words.ts";
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

export interface IdeaView {
  readonly figure: ComponentType;
  /** Where to go on: a page, and the state that it opens with. */
  readonly further: () => { readonly page: string; readonly state: Readonly<Record<string, string>> };
  readonly nameOfPage: (words: Words) => string;
}

const clock = (words: Words): string => words.clock.name;
const order = (words: Words): string => words.order.name;
const distance = (words: Words): string => words.distance.name;

/** Llama 2's values, typed into the clock, under a scaling. */
const typed = (scaling: string, target: number = targetOf(at.factor.value)) => ({
  model: "typed",
  theta: String(llama2.theta),
  dim: String(llama2.headDim),
  trained: String(llama2.trainedLength),
  target: String(target),
  scaling,
});

const curves = (names: string, more: Readonly<Record<string, string>> = {}) => ({
  page: "distance",
  state: { curves: names, read: String(at.distance.value), ...more },
});

export const views: Readonly<Record<Idea, IdeaView>> = {
  order: {
    figure: OrderFigure,
    further: () => ({
      page: "order",
      state: { encoding: at.encoding.value, mask: at.mask.value, depth: at.depth.value },
    }),
    nameOfPage: order,
  },
  absolute: {
    figure: AbsoluteFigure,
    further: () => ({ page: "order", state: { encoding: "learned", mask: "off", depth: "1" } }),
    nameOfPage: order,
  },
  clock: {
    figure: ClockFigure,
    further: () => ({
      page: "clock",
      state: { ...typed(""), position: String(at.position.value), hand: String(at.hand.value) },
    }),
    nameOfPage: clock,
  },
  relative: {
    figure: RelativeFigure,
    further: () => ({
      page: "clock",
      state: {
        ...typed(""),
        position: String(at.position.value),
        hand: String(at.hand.value),
        offset: String(at.offset.value),
      },
    }),
    nameOfPage: clock,
  },
  t5: { figure: T5Figure, further: () => curves("alibi,t5"), nameOfPage: distance },
  alibi: { figure: AlibiFigure, further: () => curves("alibi,kerple"), nameOfPage: distance },
  rope: {
    figure: RopeFigure,
    further: () => ({ page: "clock", state: typed("", llama2.trainedLength) }),
    nameOfPage: clock,
  },
  interpolation: {
    figure: InterpolationFigure,
    further: () => ({ page: "clock", state: typed(`linear:${at.factor.value}`) }),
    nameOfPage: clock,
  },
  ntk: {
    figure: NtkFigure,
    further: () => ({ page: "clock", state: typed(`ntk:${at.factor.value}`) }),
    nameOfPage: clock,
  },
  yarn: {
    figure: YarnFigure,
    further: () => ({ page: "clock", state: typed(yarnText()) }),
    nameOfPage: clock,
  },
  dynamic: {
    figure: DynamicFigure,
    further: () => ({ page: "clock", state: typed(`dynamic:${at.factor.value}`, at.length.value) }),
    nameOfPage: clock,
  },
  none: {
    figure: () => MeasuredLosses({ initial: ["longhand-rope", "longhand-nope", "longhand-drope"] }),
    further: () => ({ page: "order", state: { encoding: "none", mask: "on", depth: "2" } }),
    nameOfPage: order,
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
