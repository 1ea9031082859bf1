// A graph as an ONNX Runtime session. States are fed as inputs from arrays that stay; their updates come back as
// outputs and are taken over (a new value) or written in place (rows).

import { evaluateShape, type Graph, type OnnxProgram } from "../../graph/index.ts";
import { type Dtype, elementCount, type Tensor, tensor, zeros } from "../../tensor/index.ts";
import { DisposedError, type Feeds, type Session } from "../backend.ts";
import { bindFeeds, bindFetches, bindStateSizes, stateNamed } from "../binding.ts";
import { resized, writeRows } from "../states.ts";
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
  readonly #states = new Map<string, Tensor>();
  #sizes: Map<string, number>;
  #last: Promise<unknown> = Promise.resolve();
  #disposed = false;

  constructor(
    graph: Graph,
    ort: OrtModule,
    session: OrtSession,
    program: OnnxProgram,
    sizes: Readonly<Record<string, number>> | undefined,
  ) {
    this.graph = graph;
    this.#ort = ort;
    this.#session = session;
    this.#program = program;
    this.#sizes = bindStateSizes(graph, sizes);
    for (const state of graph.states) {
      this.#states.set(state.name, zeros(state.dtype, evaluateShape(state.shape, this.#sizes)));
    }
  }

  run(feeds: Feeds = {}, fetches?: readonly string[]): Promise<Record<string, Tensor>> {
    return this.#queue(async () => {
      const wanted = bindFetches(this.graph, fetches);
      bindFeeds(this.graph, feeds, this.#sizes);
      const given: Record<string, OrtTensor> = {};
      for (const [name, feed] of Object.entries(feeds)) given[name] = this.#toOrt(feed);
      for (const [name, state] of this.#states) given[name] = this.#toOrt(state);
      const names = new Set(wanted.map((name) => this.#program.outputs.get(name)!));
      for (const { value, start } of this.#program.updates.values()) {
        names.add(value);
        if (start !== undefined) names.add(start);
      }
      const got = await this.#session.run(given, [...names]);
      const out: Record<string, Tensor> = {};
      for (const name of wanted) {
        const { value } = this.graph.outputs.find((output) => output.name === name)!;
        out[name] = fromOrt(got[this.#program.outputs.get(name)!]!, value.dtype);
      }
      for (const update of this.graph.updates) {
        const names = this.#program.updates.get(update.state.name)!;
        const value = fromOrt(got[names.value]!, update.state.dtype);
        if (update.kind === "replace") {
          // Outputs own their storage, unless one output serves twice.
          const shared = Object.values(out).some((other) => other.data === value.data);
          this.#states.set(update.state.name, shared ? copy(value) : value);
        } else {
          const start = Number((got[names.start!]!.data as unknown as BigInt64Array)[0]);
          writeRows(this.#states.get(update.state.name)!, value, update.axis, start, update.state.name);
        }
      }
      return out;
    });
  }

  readState(name: string): Promise<Tensor> {
    return this.#queue(async () => {
      stateNamed(this.graph, name);
      return copy(this.#states.get(name)!);
    });
  }

  writeState(name: string, value: Tensor): Promise<void> {
    return this.#queue(async () => {
      stateNamed(this.graph, name);
      const state = this.#states.get(name)!;
      if (value.dtype !== state.dtype || value.shape.join() !== state.shape.join()) {
        throw new RangeError(
          `writeState: expected ${name} to be ${state.dtype}[${state.shape}], got ${value.dtype}[${value.shape}]`,
        );
      }
      this.#states.set(name, copy(value));
    });
  }

  resize(sizes: Readonly<Record<string, number>>): Promise<void> {
    return this.#queue(async () => {
      this.#sizes = bindStateSizes(this.graph, { ...Object.fromEntries(this.#sizes), ...sizes });
      for (const state of this.graph.states) {
        const old = this.#states.get(state.name)!;
        const shape = evaluateShape(state.shape, this.#sizes);
        if (shape.join() !== old.shape.join()) this.#states.set(state.name, resized(old, shape));
      }
    });
  }

  async dispose(): Promise<void> {
    if (this.#disposed) return;
    this.#disposed = true;
    await this.#last.catch(() => undefined);
    this.#states.clear();
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
    const next = this.#last.then(body, body);
    this.#last = next.catch(() => undefined);
    return next;
  }

  #toOrt(value: Tensor): OrtTensor {
    const type = ortTypes[value.dtype];
    if (type === undefined) {
      throw new TypeError(`onnxruntime: expected a dtype that its JavaScript API has, got ${value.dtype}; cast it`);
    }
    return new this.#ort.Tensor(type, value.data, value.shape);
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
