// Checks that every backend makes alike: weights against parameters, feeds against inputs, sizes against names.

import {
  evaluateShape,
  formatType,
  type Graph,
  isDimName,
  MissingWeightError,
  nearestName,
  type Value,
} from "../graph/index.ts";
import { byteLength, elementCount, formatShape, type Tensor, tensor } from "../tensor/index.ts";
import type { Feeds, FileWeight, WeightSource, Weights } from "./backend.ts";

export type Bindings = ReadonlyMap<string, number>;

/** True when a weight is in a file. */
export function isFileWeight(source: WeightSource): source is FileWeight {
  return "file" in source;
}

/** Each parameter's weight, dtype, shape and length checked. */
export function bindWeights(graph: Graph, weights: Weights = {}): Map<string, WeightSource> {
  const given = weights instanceof Map ? weights : new Map(Object.entries(weights));
  const out = new Map<string, WeightSource>();
  for (const parameter of graph.parameters) {
    const source: WeightSource | undefined = given.get(parameter.name);
    if (source === undefined) {
      const near = nearestName(parameter.name, given.keys());
      const hint = near === undefined ? "" : `; the nearest that was given is ${JSON.stringify(near)}`;
      throw new MissingWeightError(
        parameter.name,
        `load: expected a weight ${JSON.stringify(parameter.name)} of ${formatType(parameter)}, got none${hint}`,
      );
    }
    if (source.dtype !== parameter.dtype) {
      throw new TypeError(`load: expected ${parameter.name} to be ${formatType(parameter)}, got ${formatType(source)}`);
    }
    if (formatShape(source.shape) !== formatShape(parameter.shape)) {
      throw new RangeError(
        `load: expected ${parameter.name} to be ${formatType(parameter)}, got ${formatType(source)}`,
      );
    }
    const bytes = byteLength(source.dtype, elementCount(source.shape));
    const got = isFileWeight(source) ? source.length : source.data.byteLength;
    if (got !== bytes) throw new RangeError(`load: expected ${bytes} bytes for ${parameter.name}, got ${got}`);
    out.set(parameter.name, source);
  }
  return out;
}

/** Sizes of the names in the states' shapes; each must be given. */
export function bindStateSizes(graph: Graph, sizes: Readonly<Record<string, number>> = {}): Map<string, number> {
  const out = new Map<string, number>();
  for (const state of graph.states) {
    for (const name of state.shape.filter(isDimName)) {
      const size = sizes[name];
      if (size === undefined) {
        throw new RangeError(`load: expected a size for ${JSON.stringify(name)} of the state ${formatState(state)}`);
      }
      if (!Number.isInteger(size) || size < 0) {
        throw new RangeError(`load: expected the size ${name} to be an integer of at least 0, got ${size}`);
      }
      out.set(name, size);
    }
  }
  const unused = Object.keys(sizes).find((name) => !out.has(name));
  if (unused !== undefined) {
    throw new RangeError(
      `load: expected sizes of the states (${[...out.keys()].join(", ") || "none"}), got ${JSON.stringify(unused)}`,
    );
  }
  return out;
}

function formatState(state: Value): string {
  return `${state.name}: ${formatType(state)}`;
}

/** Checks feeds and binds names of sizes: those of the states, then those of the feeds. */
export function bindFeeds(graph: Graph, feeds: Feeds, stateSizes: Bindings): Bindings {
  const bindings = new Map(stateSizes);
  const inputs = new Map(graph.inputs.map((input) => [input.name, input]));
  for (const name of Object.keys(feeds)) {
    if (inputs.has(name)) continue;
    const near = nearestName(name, inputs.keys());
    const known = near === undefined ? [...inputs.keys()].join(", ") || "none" : JSON.stringify(near);
    throw new RangeError(`run: expected inputs of ${graph.name}, got ${JSON.stringify(name)}; did you mean ${known}?`);
  }
  for (const [name, input] of inputs) {
    const feed = feeds[name];
    if (feed === undefined) throw new RangeError(`run: expected a feed for ${name}: ${formatType(input)}, got none`);
    if (feed.dtype !== input.dtype) {
      throw new TypeError(`run: expected ${name} to be ${formatType(input)}, got ${formatType(feed)}`);
    }
    if (feed.shape.length !== input.shape.length) throw misshapen(name, input, feed);
    input.shape.forEach((dim, axis) => {
      if (isDimName(dim) && !bindings.has(dim)) bindings.set(dim, feed.shape[axis]!);
    });
  }
  // Sums and products can be checked only once every bare name is bound.
  for (const [name, input] of inputs) {
    const feed = feeds[name]!;
    const expected = evaluateShape(input.shape, bindings);
    if (expected.some((size, axis) => size !== feed.shape[axis])) throw misshapen(name, input, feed, expected);
    tensor(feed.dtype, feed.shape, feed.data as never);
  }
  return bindings;
}

function misshapen(name: string, input: Value, feed: Tensor, expected?: readonly number[]): RangeError {
  const here = expected === undefined ? "" : ` (${formatShape(expected)} in this run)`;
  return new RangeError(`run: expected ${name} to be ${formatType(input)}${here}, got ${formatType(feed)}`);
}

/** The outputs to give back: all, or those named. Throws RangeError for a name that the graph lacks. */
export function bindFetches(graph: Graph, fetches: readonly string[] | undefined): string[] {
  const names = graph.outputs.map(({ name }) => name);
  if (fetches === undefined) return names;
  for (const name of fetches) {
    if (names.includes(name)) continue;
    const near = nearestName(name, names);
    const known = near === undefined ? names.join(", ") || "none" : JSON.stringify(near);
    throw new RangeError(`run: expected outputs of ${graph.name}, got ${JSON.stringify(name)}; did you mean ${known}?`);
  }
  return [...new Set(fetches)];
}

/** The state of a name. Throws RangeError when the graph has none. */
export function stateNamed(graph: Graph, name: string): Value {
  const state = graph.states.find((candidate) => candidate.name === name);
  if (state === undefined) {
    const known = graph.states.map((candidate) => candidate.name);
    const near = nearestName(name, known);
    throw new RangeError(
      `session: expected a state of ${graph.name} (${near ?? (known.join(", ") || "none")}), got ${JSON.stringify(name)}`,
    );
  }
  return state;
}
