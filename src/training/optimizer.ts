// Optimisers as records { init, update }: pure parts of a graph, joined by `chain`. They see all weights as one vector
// (parameters.ts). What depends on the step alone (rates, bias corrections) is computed in float64 outside and fed as
// scalars. An update is what is added to the weights.

import type { GraphBuilder, Value } from "../graph/index.ts";
import { constantRate, type Schedule } from "./schedule.ts";

export interface UpdateContext {
  /** The weights, [P]. */
  readonly weights: Value;
  /** 1 where weight decay applies, [P]; null: everywhere. */
  readonly decayMask: Value | null;
  /** A scalar of `scalars`, by name. */
  readonly scalar: (name: string) => Value;
  /** Names a value as an output of the step. */
  readonly report: (name: string, value: Value) => void;
}

/** The state of an optimiser: vectors [P] and the like, by name. */
export type OptimizerState = Readonly<Record<string, Value>>;

export interface Optimizer {
  /** Declares what it keeps between steps, zero at first. `prefix` begins the names. */
  init(g: GraphBuilder, size: number, prefix: string): OptimizerState;
  /** From a gradient (or the update of an optimiser before it) to an update, and the state after it. */
  update(
    g: GraphBuilder,
    gradient: Value,
    state: OptimizerState,
    context: UpdateContext,
  ): { readonly update: Value; readonly state: OptimizerState };
  /** Numbers of a step (from 0), fed to the run. Names are those that `update` asks for. */
  scalars(step: number): Readonly<Record<string, number>>;
}

/** Optimisers one after the other: the update of one is the gradient of the next. */
export function chain(...optimizers: readonly Optimizer[]): Optimizer {
  const own = (state: OptimizerState, i: number): OptimizerState =>
    Object.fromEntries(
      Object.entries(state).flatMap(([name, value]) =>
        name.startsWith(`${i}.`) ? [[name.slice(`${i}.`.length), value]] : [],
      ),
    );
  const named = <T>(i: number, record: Readonly<Record<string, T>>): [string, T][] =>
    Object.entries(record).map(([name, value]) => [`${i}.${name}`, value]);
  return {
    init(g, size, prefix) {
      return Object.fromEntries(optimizers.flatMap((one, i) => named(i, one.init(g, size, `${prefix}${i}.`))));
    },
    update(g, gradient, state, context) {
      let update = gradient;
      const after: [string, Value][] = [];
      optimizers.forEach((one, i) => {
        const inner = { ...context, scalar: (name: string) => context.scalar(`${i}.${name}`) };
        const got = one.update(g, update, own(state, i), inner);
        update = got.update;
        after.push(...named(i, got.state));
      });
      return { update, state: Object.fromEntries(after) };
    },
    scalars: (step) => Object.fromEntries(optimizers.flatMap((one, i) => named(i, one.scalars(step)))),
  };
}

/**
 * Scales the gradient so that its Euclidean norm over all weights is at most `maxNorm`, as torch's clip_grad_norm_ does
 * (by maxNorm / (norm + 1e-6)). Reports `gradientNorm`, the norm before.
 */
export function clipByGlobalNorm(maxNorm: number): Optimizer {
  if (!(maxNorm > 0)) throw new RangeError(`clipByGlobalNorm: expected a norm above 0, got ${maxNorm}`);
  return {
    init: () => ({}),
    update(g, gradient, state, { report }) {
      const norm = g.sqrt(g.sum(g.multiply(gradient, gradient), 0));
      report("gradientNorm", norm);
      const factor = g.minimum(g.divide(maxNorm, g.add(norm, 1e-6)), 1);
      return { update: g.multiply(gradient, factor), state };
    },
    scalars: () => ({}),
  };
}

export interface AdamWOptions {
  readonly learningRate: number | Schedule;
  /** 0.9 when absent. */
  readonly beta1?: number;
  /** 0.95 when absent: what language models are trained with; torch's own default is 0.999. */
  readonly beta2?: number;
  /** 1e-8 when absent. */
  readonly epsilon?: number;
  /** 0.1 when absent. */
  readonly weightDecay?: number;
}

/**
 * Adam with decoupled weight decay, bias corrections included:
 * m ← β₁m + (1 − β₁)g, v ← β₂v + (1 − β₂)g², w ← w − η·(m/(1 − β₁ᵗ) / (√(v/(1 − β₂ᵗ)) + ε) + λw).
 *
 * Loshchilov and Hutter 2019 (1711.05101), algorithm 2; torch.optim.AdamW.
 *
 * @throws RangeError for betas outside 0 .. 1
 */
export function adamW(options: AdamWOptions): Optimizer {
  const { beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, weightDecay = 0.1 } = options;
  for (const [name, beta] of [
    ["beta1", beta1],
    ["beta2", beta2],
  ] as const) {
    if (!(beta >= 0 && beta < 1)) throw new RangeError(`adamW: expected ${name} in 0 .. 1, got ${beta}`);
  }
  const { learningRate } = options;
  const rate = typeof learningRate === "number" ? constantRate(learningRate) : learningRate;
  return {
    init: (g, size, prefix) => ({
      firstMoment: g.state(`${prefix}firstMoment`, "f32", [size]),
      secondMoment: g.state(`${prefix}secondMoment`, "f32", [size]),
    }),
    update(g, gradient, state, { weights, decayMask, scalar }) {
      const { firstMoment, secondMoment } = state as { firstMoment: Value; secondMoment: Value };
      const first = g.add(firstMoment, g.multiply(g.subtract(gradient, firstMoment), 1 - beta1));
      const square = g.multiply(gradient, g.multiply(gradient, 1 - beta2));
      const second = g.add(g.multiply(secondMoment, beta2), square);
      // Both corrections are moved out of the vectors: √(v/c) + ε = (√v + ε·√c) / √c.
      const root = g.add(g.sqrt(second), scalar("epsilon"));
      let update = g.divide(g.multiply(first, scalar("stepSize")), root);
      if (weightDecay !== 0) {
        const decayed = decayMask === null ? weights : g.multiply(weights, decayMask);
        update = g.subtract(update, g.multiply(decayed, scalar("decay")));
      }
      return { update, state: { firstMoment: first, secondMoment: second } };
    },
    scalars(step) {
      const eta = rate(step);
      const [first, second] = [1 - beta1 ** (step + 1), Math.sqrt(1 - beta2 ** (step + 1))];
      return {
        stepSize: (-eta * second) / first,
        epsilon: epsilon * second,
        ...(weightDecay === 0 ? {} : { decay: eta * weightDecay }),
      };
    },
  };
}
