// A graph as an ONNX Runtime session. States are fed as inputs from arrays that stay.
//
// In Node the binding wraps our arrays as they are, inputs and given outputs alike, but copies every output once more
// when it hands results back. Shapes of outputs are known before a run, so we give every output its array; and the
// program's first output is a list, which the binding refuses to convert: it throws when the run is done and before
// anything is copied. The results are in our arrays then. An attention whose cache is a state writes its new rows
// straight into it. Elsewhere (WebAssembly, WebGPU) results are taken as they come, and rows are written by us.

import { evaluateShape, type Graph, type OnnxProgram, type ValueType } from "../../graph/index.ts";
import { type Dtype, elementCount, type Tensor, tensor, zeros } from "../../tensor/index.ts";
import { DisposedError, type Feeds, type Session } from "../backend.ts";
import { type Bindings, bindFeeds, bindFetches, stateNamed } from "../binding.ts";
import { expectRows, type States, writeRows } from "../states.ts";
import type { OrtModule, OrtSession, OrtTensor } from "./runtime.ts";

/** ONNX Runtime's names; its JavaScript API has none for bf16. */
export const ortTypes: { readonly [D in Dtype]: string | undefined } = {
  f64: "float64",
  f32: "float32",
  f16: "float16",
  bf16: undefined,
  i64: "int64",
  i32: "int32",
  i8: "int8",
  u8: "uint8",
  u4: "uint4",
  bool: "bool",
};

export class OnnxRuntimeSession implements Session {
  readonly graph: Graph;
  readonly #ort: OrtModule;
  readonly #session: OrtSession;
  readonly #program: OnnxProgram;
  /** Its own, or those that it shares. */
  readonly states: States;
  /** ONNX Runtime's views of tensors that come again with every run: states, tables. */
  readonly #views = new WeakMap<Tensor, OrtTensor>();
  #disposed = false;

  constructor(graph: Graph, ort: OrtModule, session: OrtSession, program: OnnxProgram, states: States) {
    this.graph = graph;
    this.#ort = ort;
    this.#session = session;
    this.#program = program;
    this.states = states;
  }

  run(feeds: Feeds = {}, fetches?: readonly string[]): Promise<Record<string, Tensor>> {
    return this.#queue(async () => {
      const wanted = bindFetches(this.graph, fetches);
      const bindings = bindFeeds(this.graph, feeds, this.states.sizes);
      this.#checkRows(feeds, bindings);
      const given: Record<string, OrtTensor> = {};
      for (const [name, feed] of Object.entries(feeds)) given[name] = this.#toOrt(feed);
      for (const { name } of this.graph.states) given[name] = this.#toOrt(this.states.tensors.get(name)!);

      const types = new Map<string, ValueType>();
      for (const { name, value } of this.graph.outputs) {
        if (wanted.includes(name)) types.set(this.#program.outputs.get(name)!, value);
      }
      for (const update of this.graph.updates) {
        const names = this.#program.updates.get(update.state.name)!;
        if (names.kind === "replace") types.set(names.value, update.state);
        if (names.kind === "rows" && update.kind === "rows") {
          types.set(names.value, update.rows);
          types.set(names.start!, update.start);
        }
      }
      const got =
        this.#program.stop === undefined ? await this.#take(given, types) : await this.#fill(given, types, bindings);

      const out: Record<string, Tensor> = {};
      const handed = new Set<unknown>();
      const own = (value: Tensor): Tensor => {
        if (handed.has(value.data)) return copy(value);
        handed.add(value.data);
        return value;
      };
      for (const name of wanted) out[name] = own(got.get(this.#program.outputs.get(name)!)!);
      for (const update of this.graph.updates) {
        const names = this.#program.updates.get(update.state.name)!;
        if (names.kind === "inPlace") continue;
        const value = got.get(names.value)!;
        if (update.kind === "replace") {
          this.states.spares.set(update.state.name, this.states.tensors.get(update.state.name)!);
          this.states.tensors.set(update.state.name, own(value));
        } else {
          const start = Number(got.get(names.start!)!.data[0]);
          writeRows(this.states.tensors.get(update.state.name)!, value, update.axis, start, update.state.name);
        }
      }
      return out;
    });
  }

  /** Runs and takes the results that ONNX Runtime allocates. */
  async #take(given: Record<string, OrtTensor>, types: ReadonlyMap<string, ValueType>): Promise<Map<string, Tensor>> {
    const names = [...types.keys()];
    const results = names.length === 0 ? {} : await this.#session.run(given, names);
    return new Map(names.map((name) => [name, fromOrt(results[name]!, types.get(name)!.dtype)]));
  }

  /** Runs into arrays of our own. */
  async #fill(
    given: Record<string, OrtTensor>,
    types: ReadonlyMap<string, ValueType>,
    bindings: Bindings,
  ): Promise<Map<string, Tensor>> {
    const stop = this.#program.stop!;
    const fetches: Record<string, OrtTensor | null> = { [stop]: null };
    const out = new Map<string, Tensor>();
    const outputs = new Set(this.#program.outputs.values());
    for (const [state, { kind, value }] of this.#program.updates) {
      if (kind === "inPlace") fetches[value] = given[state]!;
      // A new value goes into the array that the last one left, and they change places.
      const spare = this.states.spares.get(state);
      if (kind === "replace" && spare !== undefined && !outputs.has(value) && !out.has(value)) out.set(value, spare);
    }
    for (const [name, { dtype, shape }] of types) {
      if (!out.has(name)) out.set(name, zeros(dtype, evaluateShape(shape, bindings)));
      fetches[name] = this.#toOrt(out.get(name)!);
    }
    try {
      const results = await this.#session.run(given, fetches);
      // A binding that converts lists hands everything back: in our arrays or in copies of them.
      for (const [name, { dtype }] of types) out.set(name, fromOrt(results[name]!, dtype));
    } catch (error) {
      if (!(error instanceof Error && /non[- ]tensor type/i.test(error.message))) throw error;
    }
    return out;
  }

  /** Rows that a program writes in place must fit before it runs. */
  #checkRows(feeds: Feeds, bindings: Bindings): void {
    for (const update of this.graph.updates) {
      if (update.kind !== "rows" || this.#program.updates.get(update.state.name)!.kind !== "inPlace") continue;
      const start = Number(feeds[update.start.name]!.data[0]);
      const rows = evaluateShape(update.rows.shape, bindings)[update.axis]!;
      expectRows(this.states.tensors.get(update.state.name)!.shape, rows, update.axis, start, update.state.name);
    }
  }

  readState(name: string): Promise<Tensor> {
    return this.#queue(async () => {
      stateNamed(this.graph, name);
      return copy(this.states.tensors.get(name)!);
    });
  }

  writeState(name: string, value: Tensor): Promise<void> {
    return this.#queue(async () => {
      stateNamed(this.graph, name);
      const state = this.states.tensors.get(name)!;
      if (value.dtype !== state.dtype || value.shape.join() !== state.shape.join()) {
        throw new RangeError(
          `writeState: expected ${name} to be ${state.dtype}[${state.shape}], got ${value.dtype}[${value.shape}]`,
        );
      }
      this.states.tensors.set(name, copy(value));
    });
  }

  resize(sizes: Readonly<Record<string, number>>): Promise<void> {
    return this.#queue(async () => this.states.resize(this.graph, sizes));
  }

  moveRows(names: readonly string[], axis: number, from: number, count: number): Promise<void> {
    return this.#queue(async () => this.states.moveRows(this.graph, names, axis, from, count));
  }

  async dispose(): Promise<void> {
    if (this.#disposed) return;
    this.#disposed = true;
    await this.states.release();
    await this.#session.release();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  /** One call after the other: states belong to one run at a time. */
  #queue<T>(body: () => Promise<T>): Promise<T> {
    if (this.#disposed) {
      return Promise.reject(
        new DisposedError(`session: expected one that is in use, got a disposed one of ${this.graph.name}`),
      );
    }
    return this.states.queue(body);
  }

  #toOrt(value: Tensor): OrtTensor {
    const type = ortTypes[value.dtype];
    if (type === undefined) {
      throw new TypeError(`onnxruntime: expected a dtype that its JavaScript API has, got ${value.dtype}; cast it`);
    }
    let view = this.#views.get(value);
    if (view === undefined) {
      view = new this.#ort.Tensor(type, value.data, value.shape);
      this.#views.set(value, view);
    }
    return view;
  }
}

function copy(value: Tensor): Tensor {
  return tensor(value.dtype, value.shape, value.data.slice() as never) as Tensor;
}

function fromOrt(value: OrtTensor, dtype: Dtype): Tensor {
  const shape = value.dims.map(Number);
  // Newer engines hand float16 out as Float16Array; its bits are what we store.
  const { data } = value;
  const stored =
    dtype === "f16" && !(data instanceof Uint16Array)
      ? new Uint16Array(data.buffer as ArrayBuffer, data.byteOffset, elementCount(shape))
      : data;
  return tensor(dtype, shape, stored as never) as Tensor;
}
