// A step of training as one graph: forward, backward, clipping, update. Weights and the optimiser's moments are states
// of the session; tokens, targets, positions and a few scalars go in, the loss and the gradient's norm come out.

import { type Graph, type GraphBuilder, gradients, graphBuilder, type Value } from "../graph/index.ts";
import type { TrainingEncoding } from "./encodings.ts";
import {
  decoderLogits,
  decoderLosses,
  decoderPositions,
  type ParameterSource,
  type TrainableSpec,
  targetLosses,
} from "./model.ts";
import type { Optimizer } from "./optimizer.ts";
import { decayMask, layoutParameters, type ParameterLayout, type ParameterSpec } from "./parameters.ts";

export interface ProgramOptions {
  readonly spec: TrainableSpec;
  /** One for each group of the spec's layers. */
  readonly encodings: readonly TrainingEncoding[];
  readonly batchSize: number;
  /** T. */
  readonly length: number;
}

export interface StepOptions extends ProgramOptions {
  readonly optimizer: Optimizer;
  /** Parts of the batch that go through the model one after the other, their gradients added: less memory, and smaller
   *  matrices that stay in the cache. 1 when absent. */
  readonly microBatches?: number;
  /** See GradientOptions. */
  readonly recomputeAttention?: boolean;
}

/** Where the weights of a model lie. */
export function modelLayout({ spec, encodings, length }: Omit<ProgramOptions, "batchSize">): ParameterLayout {
  const found = new Map<string, ParameterSpec>();
  const g = graphBuilder("layout");
  const parameter: ParameterSource = (name, shape, initial) => {
    found.set(name, { name, shape, initial });
    return g.parameter(name, "f32", shape);
  };
  const inputs = { tokens: g.input("tokens", "i64", [1, length]), targets: g.input("targets", "i64", [1, length]) };
  decoderLosses(g, spec, decoderPositions(g, spec, encodings, length, parameter), inputs, parameter);
  return layoutParameters([...found.values()]);
}

/** The name of the state that holds the weights. */
export const weightsState = "weights";

/** The program of a step. Inputs: tokens, targets [B, T]; positions; the optimiser's scalars under their names after
 *  "optimizer.". Outputs: loss (mean over targets that count), and what the optimiser reports. */
export function stepProgram(options: StepOptions, layout: ParameterLayout): Graph {
  const { spec, encodings, batchSize, length, optimizer, microBatches = 1 } = options;
  if (!Number.isInteger(batchSize / microBatches)) {
    throw new RangeError(`training: expected microBatches to divide the batch of ${batchSize}, got ${microBatches}`);
  }
  const g = graphBuilder("step");
  const tokens = g.input("tokens", "i64", [batchSize, length]);
  const targets = g.input("targets", "i64", [batchSize, length]);
  const weights = g.state(weightsState, "f32", [layout.size]);
  const counts = g.cast(g.lessEqual(g.scalar("i64", 0), targets), "f32");
  const count = g.maximum(g.sum(counts, [0, 1]), 1);

  const parameter = sliced(g, weights, layout);
  const positions = decoderPositions(g, spec, encodings, length, parameter);
  let loss: Value | undefined;
  let gradient: Value | undefined;
  const size = batchSize / microBatches;
  for (let part = 0; part < microBatches; part++) {
    const rows = (x: Value): Value => (microBatches === 1 ? x : g.slice(x, 0, part * size, (part + 1) * size));
    const inputs = { tokens: rows(tokens), targets: rows(targets) };
    const losses = decoderLosses(g, spec, positions, inputs, parameter);
    const mean = g.divide(g.sum(losses, 0), count);
    const { recomputeAttention = false } = options;
    const [own] = gradients(g, mean, [weights], { recomputeAttention });
    loss = loss === undefined ? mean : g.add(loss, mean);
    gradient = gradient === undefined ? own! : g.add(gradient, own!);
  }
  g.output("loss", loss!);

  g.scope("optimizer", () => {
    const state = optimizer.init(g, layout.size, "optimizer.");
    const { decayed } = layout;
    const { update, state: after } = optimizer.update(g, gradient!, state, {
      weights,
      decayMask: decayed === layout.size ? null : g.constant(decayMask(layout)),
      scalar: (name) => g.input(`optimizer.${name}`, "f32", []),
      report: (name, value) => g.output(name, value),
    });
    g.assign(weights, g.add(weights, update));
    for (const [name, value] of Object.entries(state)) g.assign(value, after[name]!);
  });
  return g.build();
}

/** The program of a forward pass, outputs [B, T]: losses of the targets, 0 where one does not count; and correct, whether
 *  a target is what greedy decoding says there (the first of the largest logits), false where it does not count. Weights
 *  are an input. */
export function lossProgram({ spec, encodings, batchSize, length }: ProgramOptions, layout: ParameterLayout): Graph {
  const g = graphBuilder("losses");
  const shape = [batchSize, length];
  const tokens = g.input("tokens", "i64", shape);
  const targets = g.input("targets", "i64", shape);
  const parameter = sliced(g, g.input(weightsState, "f32", [layout.size]), layout);
  const positions = decoderPositions(g, spec, encodings, length, parameter);
  const logits = decoderLogits(g, spec, positions, tokens, parameter);
  g.output("losses", g.reshape(targetLosses(g, logits, targets), shape));
  g.output("correct", g.equal(g.reshape(g.argMax(logits), shape), targets));
  return g.build();
}

/** Weights as pieces of the vector. */
function sliced(g: GraphBuilder, weights: Value, { parameters }: ParameterLayout): ParameterSource {
  const sizes = parameters.map(({ size }) => size);
  const pieces = g.scope("weights", () => {
    const parts = g.split(weights, sizes, 0);
    return new Map(parameters.map(({ name, shape }, i) => [name, g.reshape(parts[i]!, shape)]));
  });
  return (name) => {
    const piece = pieces.get(name);
    if (piece === undefined) throw new RangeError(`training: expected a weight of the layout, got ${name}`);
    return piece;
  };
}
