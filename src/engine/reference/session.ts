// Runs a graph node by node with the reference kernels. Values that nothing will read again are let go, states are
// written in place at the end of a run.

import {
  type Attributes,
  evaluateShape,
  type Graph,
  type Inputs,
  mapInputs,
  type Node,
  nodeInputs,
  type OpName,
  type Value,
} from "../../graph/index.ts";
import { type Tensor, tensor, viewBytes } from "../../tensor/index.ts";
import { DisposedError, type Feeds, type Session, type WeightSource } from "../backend.ts";
import { bindFeeds, bindFetches, isFileWeight, stateNamed } from "../binding.ts";
import { type States, writeRows } from "../states.ts";
import { fromTensor, type Operand, settle, toTensor } from "./arrays.ts";
import { type Kernel, referenceKernels } from "./kernels.ts";

export class ReferenceSession implements Session {
  readonly graph: Graph;
  readonly #fixed = new Map<Value, Operand>();
  /** Its own, or those that it shares. */
  readonly states: States;
  readonly #lastUse: ReadonlyMap<Value, number>;
  #disposed = false;

  constructor(graph: Graph, weights: ReadonlyMap<string, Tensor>, states: States) {
    this.graph = graph;
    for (const parameter of graph.parameters) this.#fixed.set(parameter, fromTensor(weights.get(parameter.name)!));
    for (const { value, tensor: constant } of graph.constants) this.#fixed.set(value, fromTensor(constant));
    this.states = states;
    const lastUse = new Map<Value, number>();
    graph.nodes.forEach((node, i) => {
      for (const value of nodeInputs(node)) lastUse.set(value, i);
    });
    for (const { value } of graph.outputs) lastUse.set(value, Number.POSITIVE_INFINITY);
    for (const update of graph.updates) {
      lastUse.set(update.kind === "replace" ? update.value : update.rows, Number.POSITIVE_INFINITY);
      if (update.kind === "rows") lastUse.set(update.start, Number.POSITIVE_INFINITY);
    }
    this.#lastUse = lastUse;
  }

  async run(feeds: Feeds = {}, fetches?: readonly string[]): Promise<Record<string, Tensor>> {
    this.#alive();
    const wanted = bindFetches(this.graph, fetches);
    const bindings = bindFeeds(this.graph, feeds, this.states.sizes);
    const values = new Map(this.#fixed);
    for (const input of this.graph.inputs) values.set(input, fromTensor(feeds[input.name]!));
    for (const state of this.graph.states) values.set(state, fromTensor(this.states.tensors.get(state.name)!));
    this.graph.nodes.forEach((node, i) => {
      const targets = node.outputs.map(({ dtype, shape }) => ({ dtype, shape: evaluateShape(shape, bindings) }));
      const results = this.#compute(node, values, targets);
      node.outputs.forEach((value, j) => {
        const { dtype, shape } = targets[j]!;
        values.set(value, { dtype, shape, data: settle(dtype, results[j]!) });
      });
      for (const value of [...nodeInputs(node), ...node.outputs]) {
        if ((this.#lastUse.get(value) ?? -1) <= i) values.delete(value);
      }
    });
    const out: Record<string, Tensor> = {};
    for (const { name, value } of this.graph.outputs) {
      if (wanted.includes(name)) out[name] = toTensor(values.get(value)!);
    }
    // Every new value is copied before any state changes: one state's update may be another state.
    const changes = this.graph.updates.map((update) => {
      const value = toTensor(values.get(update.kind === "replace" ? update.value : update.rows)!);
      const state = this.states.tensors.get(update.state.name)!;
      if (update.kind === "replace") return () => void (state.data as Float32Array).set(value.data as Float32Array);
      const start = values.get(update.start)!.data[0]!;
      return () => writeRows(state, value, update.axis, start, update.state.name);
    });
    for (const change of changes) change();
    return out;
  }

  #compute(node: Node, values: ReadonlyMap<Value, Operand>, targets: { dtype: Tensor["dtype"]; shape: number[] }[]) {
    const inputs = mapInputs(node.op, node.inputs as Inputs<OpName, Value>, (value) => values.get(value)!);
    try {
      const kernel = referenceKernels[node.op] as unknown as Kernel<OpName>;
      const results = kernel(inputs, node.attributes as Attributes[OpName], targets);
      return ArrayBuffer.isView(results) ? [results] : results;
    } catch (error) {
      if (error instanceof RangeError && node.path !== "") throw new RangeError(`${node.path} > ${error.message}`);
      throw error;
    }
  }

  async readState(name: string): Promise<Tensor> {
    this.#alive();
    stateNamed(this.graph, name);
    const { dtype, shape, data } = this.states.tensors.get(name)!;
    return tensor(dtype, shape, data.slice() as never) as Tensor;
  }

  async writeState(name: string, value: Tensor): Promise<void> {
    this.#alive();
    stateNamed(this.graph, name);
    const state = this.states.tensors.get(name)!;
    if (value.dtype !== state.dtype || value.shape.join() !== state.shape.join()) {
      throw new RangeError(
        `writeState: expected ${name} to be ${state.dtype}[${state.shape}], got ${value.dtype}[${value.shape}]`,
      );
    }
    (state.data as Float32Array).set(value.data as Float32Array);
  }

  async resize(sizes: Readonly<Record<string, number>>): Promise<void> {
    this.#alive();
    this.states.resize(this.graph, sizes);
  }

  async moveRows(names: readonly string[], axis: number, from: number, count: number): Promise<void> {
    this.#alive();
    this.states.moveRows(this.graph, names, axis, from, count);
  }

  async dispose(): Promise<void> {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#fixed.clear();
    await this.states.release();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  #alive(): void {
    if (this.#disposed)
      throw new DisposedError(`session: expected one that is in use, got a disposed one of ${this.graph.name}`);
  }
}

/** Weights as tensors; those in files are read. */
export async function weightTensors(sources: ReadonlyMap<string, WeightSource>): Promise<Map<string, Tensor>> {
  const out = new Map<string, Tensor>();
  for (const [name, source] of sources) {
    if (!isFileWeight(source)) {
      out.set(name, source);
      continue;
    }
    const { open } = await import("node:fs/promises");
    const file = await open(source.file, "r");
    try {
      const bytes = new Uint8Array(source.length);
      const { bytesRead } = await file.read(bytes, 0, source.length, source.offset);
      if (bytesRead !== source.length) {
        throw new RangeError(
          `load: expected ${source.length} bytes at ${source.offset} of ${source.file} for ${name}, got ${bytesRead}`,
        );
      }
      out.set(name, tensor(source.dtype, source.shape, viewBytes(source.dtype, bytes) as never) as Tensor);
    } finally {
      await file.close();
    }
  }
  return out;
}
