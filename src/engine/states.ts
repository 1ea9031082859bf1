// Tensors that live in a session, or in several that share them: writing rows along an axis, and moving contents into
// another size.

import { evaluateShape, formatType, type Graph } from "../graph/index.ts";
import { allocate, elementCount, formatShape, type Shape, type Tensor, tensor, zeros } from "../tensor/index.ts";
import type { LoadOptions, Session } from "./backend.ts";
import { bindStateSizes, stateNamed } from "./binding.ts";

/** The states of one session, or of several on one backend. Calls that touch them stand in one queue. */
export class States {
  readonly tensors: Map<string, Tensor> = new Map();
  /** The arrays of values before the last: written over by the next. */
  readonly spares: Map<string, Tensor> = new Map();
  sizes: Map<string, number>;
  readonly #shapes = new Map<string, string>();
  #users = 1;
  #last: Promise<unknown> = Promise.resolve();

  constructor(graph: Graph, sizes: Readonly<Record<string, number>> | undefined) {
    this.sizes = bindStateSizes(graph, sizes);
    for (const state of graph.states) {
      this.#shapes.set(state.name, formatType(state));
      this.tensors.set(state.name, zeros(state.dtype, evaluateShape(state.shape, this.sizes)));
    }
  }

  /** Lets another graph's session use these. Throws RangeError when its states are not the same ones. */
  share(graph: Graph): States {
    for (const state of graph.states) {
      const known = this.#shapes.get(state.name);
      if (known !== formatType(state)) {
        throw new RangeError(
          `load: expected the shared state ${state.name} to be ${formatType(state)}, got ${known ?? "none"}`,
        );
      }
    }
    this.#users++;
    return this;
  }

  /** One call after the other. */
  queue<T>(body: () => Promise<T>): Promise<T> {
    const next = this.#last.then(body, body);
    this.#last = next.catch(() => undefined);
    return next;
  }

  /** What fits of the old contents stays where it was. */
  resize(graph: Graph, sizes: Readonly<Record<string, number>>): void {
    this.sizes = bindStateSizes(graph, { ...Object.fromEntries(this.sizes), ...sizes });
    for (const state of graph.states) {
      const old = this.tensors.get(state.name)!;
      const shape = evaluateShape(state.shape, this.sizes);
      if (shape.join() === old.shape.join()) continue;
      this.tensors.set(state.name, resized(old, shape));
      this.spares.delete(state.name);
    }
  }

  /** Throws RangeError for rows that a state does not have. */
  moveRows(graph: Graph, names: readonly string[], axis: number, from: number, count: number): void {
    for (const name of names) {
      stateNamed(graph, name);
      const state = this.tensors.get(name)!;
      expectRows(state.shape, count, axis, from, name);
      const data = state.data as Float32Array;
      const inner = elementCount(state.shape.slice(axis + 1));
      const block = state.shape[axis]! * inner;
      for (let at = 0; at < data.length; at += block)
        data.copyWithin(at, at + from * inner, at + (from + count) * inner);
    }
  }

  /** Waits for what is under way; the last user frees the tensors. */
  async release(): Promise<void> {
    await this.#last.catch(() => undefined);
    if (--this.#users > 0) return;
    this.tensors.clear();
    this.spares.clear();
  }
}

/** The states of a session that is being loaded: new ones, or another session's of this class. */
export function statesFor(
  graph: Graph,
  { sizes, shareStates }: LoadOptions,
  sessionClass: abstract new (...parts: never[]) => Session & { readonly states: States },
): States {
  if (shareStates === undefined) return new States(graph, sizes);
  if (!(shareStates instanceof sessionClass)) {
    throw new TypeError("load: expected states to share of a session on the same backend, got another backend's");
  }
  return shareStates.states.share(graph);
}

/** Throws RangeError when rows would pass the end of an axis. */
export function expectRows(shape: Shape, count: number, axis: number, start: number, who: string): void {
  const size = shape[axis]!;
  if (!Number.isInteger(start) || start < 0 || start + count > size) {
    throw new RangeError(
      `${who}: expected rows within ${size} along axis ${axis}, got ${start} .. ${start + count - 1}; resize the state`,
    );
  }
}

/**
 * Writes rows over a target along an axis, from row `start` on; the target's storage changes in place.
 * @throws RangeError when the rows would pass the end
 */
export function writeRows(target: Tensor, rows: Tensor, axis: number, start: number, who = "state"): void {
  const count = rows.shape[axis]!;
  const size = target.shape[axis]!;
  expectRows(target.shape, count, axis, start, who);
  const inner = elementCount(target.shape.slice(axis + 1));
  const outer = elementCount(target.shape.slice(0, axis));
  const to = target.data as Float32Array;
  const from = rows.data as Float32Array;
  for (let i = 0; i < outer; i++) {
    const block = from.subarray(i * count * inner, (i + 1) * count * inner);
    to.set(block, (i * size + start) * inner);
  }
}

/** A zeroed tensor of another shape with what fits of the old contents in its lowest corner. */
export function resized(old: Tensor, shape: Shape): Tensor {
  if (old.shape.length !== shape.length) {
    throw new RangeError(`resize: expected ${old.shape.length} axes, got ${formatShape(shape)}`);
  }
  const data = allocate(old.dtype, elementCount(shape)) as Float32Array;
  const from = old.data as Float32Array;
  // Rows of the last axes are contiguous in both; copy them one by one.
  const kept = shape.map((size, axis) => Math.min(size, old.shape[axis]!));
  const copy = (axis: number, to: number, at: number): void => {
    if (axis === shape.length) {
      data[to] = from[at]!;
      return;
    }
    const [toStride, fromStride] = [elementCount(shape.slice(axis + 1)), elementCount(old.shape.slice(axis + 1))];
    if (toStride === fromStride) {
      const length = kept[axis]! * toStride;
      data.set(from.subarray(at, at + length), to);
      return;
    }
    for (let i = 0; i < kept[axis]!; i++) copy(axis + 1, to + i * toStride, at + i * fromStride);
  };
  if (data.length > 0 && from.length > 0) copy(0, 0, 0);
  return tensor(old.dtype, shape, data as never) as Tensor;
}
