// What runs graphs. A backend loads a graph with its weights into a session; a session runs it as often as wanted.
// States live in the session: a run reads them and leaves their updates in them, so caches and training weights never
// travel. Backends: reference/ (plain loops, the living definition) and onnxruntime/ (Node, WebAssembly, WebGPU).

import type { Graph } from "../graph/index.ts";
import type { Dtype, Tensor } from "../tensor/index.ts";

/** A weight that stays where it is on disk: `length` bytes from `offset` in a file hold the tensor, row-major,
 *  little-endian. Node only. */
export interface FileWeight {
  readonly dtype: Dtype;
  readonly shape: readonly number[];
  readonly file: string;
  readonly offset: number;
  readonly length: number;
}

export type WeightSource = Tensor | FileWeight;
export type Weights = Readonly<Record<string, WeightSource>> | ReadonlyMap<string, WeightSource>;

/** What a backend can do; callers choose graphs by it. */
export interface Capabilities {
  readonly device: "javascript" | "cpu" | "wasm" | "webgpu";
  /** Float dtypes that it computes in; others are for storage and casts. */
  readonly computes: readonly Dtype[];
  /** Whether weights may be FileWeight. */
  readonly fileWeights: boolean;
  /** Whether many queries attend the fastest without scores in memory. Where not, a decoder's program gives its heads
   *  neutral sinks, and its chunks are as small as the scores ask for. */
  readonly fusedAttention: boolean;
}

export interface LoadOptions {
  /** Sizes of the names in the states' shapes ("capacity"). */
  readonly sizes?: Readonly<Record<string, number>>;
  /** Threads a run may use; the backend's own choice when absent. */
  readonly threads?: number;
  /** One of several sessions that run in turn: between its runs it keeps no thread awake and no memory but its weights. */
  readonly takesTurns?: boolean;
  /** The weights' arrays are nobody else's: a backend that copies them may free them, and they are empty then. */
  readonly ownsWeights?: boolean;
  /** A session of the same backend whose states this one reads and writes too, one run at a time; `sizes` are then its. */
  readonly shareStates?: Session;
}

export interface Backend {
  readonly name: string;
  readonly capabilities: Capabilities;
  /**
   * Loads a graph. Weights that the graph does not name are ignored.
   * @throws MissingWeightError, RangeError or TypeError when a parameter's weight is missing or of another dtype or shape
   */
  load(graph: Graph, weights?: Weights, options?: LoadOptions): Promise<Session>;
}

export type Feeds = Readonly<Record<string, Tensor>>;

export interface Session extends AsyncDisposable {
  readonly graph: Graph;
  /**
   * Runs the graph once. Runs of one session queue up: each sees the states that the one before left.
   *
   * @param feeds every input by name; names of sizes are bound by them
   * @param fetches outputs wanted; all when absent
   * @throws RangeError or TypeError for an unknown, missing or ill-shaped feed, before any work; DisposedError
   */
  run(feeds?: Feeds, fetches?: readonly string[]): Promise<Record<string, Tensor>>;
  /** A copy of a state. */
  readState(name: string): Promise<Tensor>;
  /** Overwrites a state; the shape stays. */
  writeState(name: string, value: Tensor): Promise<void>;
  /** Gives names of states' sizes new values. What fits of the old contents stays where it was, the rest is zero. */
  resize(sizes: Readonly<Record<string, number>>): Promise<void>;
  /** Moves rows from … from + count − 1 along an axis of some states to the front; what lay there is lost. */
  moveRows(states: readonly string[], axis: number, from: number, count: number): Promise<void>;
  /** Frees what the session holds. Later calls throw DisposedError. Twice is once. */
  dispose(): Promise<void>;
}

/** A session was used after it was disposed of. */
export class DisposedError extends Error {
  override readonly name = "DisposedError";
}
