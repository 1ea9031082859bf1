// What rules of lowering write with, and the few phrases that they share.

import type { Tensor } from "../../tensor/index.ts";
import type { GraphBuilder } from "../builder.ts";
import type { Dim } from "../dims.ts";
import type { Inputs, NodeOf, OpName, Value } from "../ops.ts";
import type { OnnxAttribute } from "./protobuf.ts";

/** What the program will run on. WASM runs the CPU's kernels. */
export type OnnxTarget = "cpu" | "wasm" | "webgpu";

export interface NodeOptions {
  readonly domain?: "" | "com.microsoft";
  /** How many outputs, or which ones are wanted; 1 when absent. */
  readonly outputs?: number | readonly boolean[];
}

/** Writes ONNX nodes. Equal nodes are written once, so that what layers share (lengths, masks) is computed once. */
export interface Emitter {
  readonly target: OnnxTarget;
  /** A node with one output. */
  node(
    op: string,
    inputs: readonly string[],
    attributes?: Readonly<Record<string, OnnxAttribute>>,
    options?: NodeOptions,
  ): string;
  /** A node with several outputs. */
  nodes(
    op: string,
    inputs: readonly string[],
    attributes: Readonly<Record<string, OnnxAttribute>>,
    options: NodeOptions,
  ): string[];
  constant(tensor: Tensor): string;
  /** An i64 vector of fixed numbers. */
  vector(values: readonly number[]): string;
  /** An i64 vector of sizes, computed in the run where they are symbolic. */
  dims(shape: readonly Dim[]): string;
  /** Whether an attention writes its cache itself: its new keys and values are then the whole buffers. */
  writesCache(node: NodeOf<"attention">): boolean;
  /** Whether a gradient of this attention wants its probabilities to be kept: both are then made from the same nodes. */
  keepsProbabilities(node: NodeOf<"attention">): boolean;
  /** Whether a gradient of this attention works its probabilities out again: the attention is then not made from the same
   *  nodes, which would keep them. */
  recomputesProbabilities(node: NodeOf<"attention">): boolean;
  /** Builds ops in a graph of its own over these values and lowers them in place. */
  inline(inputs: readonly Value[], build: (g: GraphBuilder, inputs: readonly Value[]) => readonly Value[]): string[];
}

export type Lowering<O extends OpName> = (
  emit: Emitter,
  inputs: Inputs<O, string>,
  node: NodeOf<O>,
) => string | readonly string[];

export const microsoft: NodeOptions = { domain: "com.microsoft" };

/** A scalar i64 as a vector of one. */
export function asVector(emit: Emitter, name: string): string {
  return emit.node("Reshape", [name, emit.vector([1])]);
}

/** Element counts of an axis as a scalar i64. */
export function axisSize(emit: Emitter, name: string, axis: number): string {
  return emit.node("Shape", [name], { start: axis, end: axis + 1 });
}

export function sliceAxis(emit: Emitter, x: string, axis: number, start: string, end: string): string {
  return emit.node("Slice", [x, start, end, emit.vector([axis])]);
}
