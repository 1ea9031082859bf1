// Attention and rotation in ONNX: GroupQueryAttention where it can, blocks of products where a gradient keeps the
// probabilities, smaller ops elsewhere.

import { scalar } from "../../tensor/index.ts";
import { blockAttention, blockAttentionGradient, isBlockAttention } from "../attention-blocks.ts";
import type { GraphBuilder } from "../builder.ts";
import { decomposeAttention } from "../decompose.ts";
import type { Dim } from "../dims.ts";
import type { Inputs, NodeOf, Value } from "../ops.ts";
import { asVector, axisSize, type Emitter, type Lowering, microsoft, type OnnxTarget, sliceAxis } from "./emitter.ts";
import { type OnnxAttribute, onnxTypes } from "./protobuf.ts";

export const attentionLowering: { readonly [O in "rotary" | "attention" | "attentionGradient"]: Lowering<O> } = {
  rotary: (emit, { x, cos, sin }, { inputs, attributes: { numHeads, layout } }) =>
    rotaryNode(emit, x, cos, sin, inputs.x.shape[0]!, {
      numHeads,
      layout,
      pairs: inputs.cos.shape[1] as number,
      headDim: (inputs.x.shape[2] as number) / numHeads,
    }),
  attention: (emit, inputs, node) => {
    if (emit.keepsProbabilities(node)) return fromBlocks(emit, node);
    if (!emit.recomputesProbabilities(node) && isWholeSequence(emit.target, node)) return fromBlocks(emit, node);
    if (attendsElsewhere(emit.target, node)) return attentionElsewhere(emit, inputs, node);
    return hasFusedAttention(emit.target, node) ? fusedAttention(emit, inputs, node) : plainAttention(emit, node);
  },
  attentionGradient: (emit, _, node) =>
    inlined(emit, node.inputs, (g, inputs) => blockAttentionGradient(g, inputs, node.attributes)),
};

/** Whether a causal attention is over sequences of one known length, without a past: blocks leave out what the mask hides,
 *  and no block's scores are more than 128 rows. The flash kernel computes those too, to numbers so small that processors
 *  are slow at them: in WebAssembly, which cannot flush them, it takes seven times as long. */
function isWholeSequence(target: OnnxTarget, { inputs, attributes }: NodeOf<"attention">): boolean {
  const { query, key } = inputs;
  const isKnown = typeof query.shape[1] === "number" && (key === undefined || key.shape[1] === query.shape[1]);
  return target !== "webgpu" && query.dtype === "f32" && attributes.causal && isKnown && isBlockAttention(inputs);
}

function rotaryNode(
  emit: Emitter,
  x: string,
  cos: string,
  sin: string,
  batch: Dim,
  options: { numHeads: number; layout: "half" | "interleaved"; pairs: number; headDim: number },
): string {
  // The standard op wants a table for each batch row, [B, T, P].
  const rows = (table: string): string => {
    const one = emit.node("Unsqueeze", [table, emit.vector([0])]);
    return batch === 1 ? one : emit.node("Expand", [one, emit.dims([batch, 1, 1])]);
  };
  return emit.node("RotaryEmbedding", [x, rows(cos), rows(sin)], {
    num_heads: options.numHeads,
    interleaved: options.layout === "interleaved" ? 1 : 0,
    rotary_embedding_dim: 2 * options.pairs === options.headDim ? 0 : 2 * options.pairs,
  });
}

/** D. */
function headDimOf({ inputs, attributes }: NodeOf<"attention">): number {
  const packed = inputs.key === undefined;
  const heads = attributes.numHeads + (packed ? 2 * attributes.numKeyValueHeads : 0);
  return (inputs.query.shape[2] as number) / heads;
}

/** Whether GroupQueryAttention computes this node: heads of a multiple of 8 channels in float32; with a past, or with
 *  keys that are not the queries' own, one batch row or one query; on WebGPU, causal ones without a soft cap, which its
 *  kernel leaves out without an error (onnxruntime-web 1.30). */
export function hasFusedAttention(target: OnnxTarget, node: NodeOf<"attention">): boolean {
  const { query, key, pastKey } = node.inputs;
  if (query.dtype !== "f32" || headDimOf(node) % 8 !== 0) return false;
  const [batch, tokens] = query.shape;
  const hasPast = pastKey !== undefined || (key !== undefined && key.shape[1] !== tokens);
  if (hasPast && batch !== 1 && tokens !== 1) return false;
  return target !== "webgpu" || (node.attributes.causal && node.attributes.softcap === 0);
}

/** Whether every query sees all of a past and there are no new keys, as when a decoder attends to an encoder. */
function attendsElsewhere(target: OnnxTarget, { inputs, attributes }: NodeOf<"attention">): boolean {
  const { query, key, pastKey, pastLength, cos, bias, sinks } = inputs;
  const { causal, softcap, numHeads, numKeyValueHeads } = attributes;
  if (target === "webgpu" || query.dtype !== "f32" || key?.shape[1] !== 0 || pastKey === undefined) return false;
  const isPlain = pastLength === undefined && cos === undefined && bias === undefined && sinks === undefined;
  return isPlain && !causal && softcap === 0 && numHeads === numKeyValueHeads;
}

/** com.microsoft.MultiHeadAttention over keys and values by head: read where they are, without scores in memory, and
 *  with any number of queries. GroupQueryAttention copies its past, and wants no more queries than keys. */
function attentionElsewhere(emit: Emitter, inputs: Inputs<"attention", string>, node: NodeOf<"attention">): string[] {
  const { numHeads, scale } = node.attributes;
  const attributes = { num_heads: numHeads, scale: { float: scale } };
  const output = emit.node(
    "MultiHeadAttention",
    [inputs.query, inputs.pastKey!, inputs.pastValue!],
    attributes,
    microsoft,
  );
  const none = (past: string): string => sliceAxis(emit, past, 2, emit.vector([0]), emit.vector([0]));
  return [output, none(inputs.pastKey!), none(inputs.pastValue!)];
}

/** Whether GroupQueryAttention turns by these tables itself: heads of a multiple of 16 channels, pairs of 8. */
function hasFusedRotary(node: NodeOf<"attention">): boolean {
  const { cos } = node.inputs;
  return cos !== undefined && headDimOf(node) % 16 === 0 && (cos.shape[1] as number) % 8 === 0;
}

/** com.microsoft.GroupQueryAttention: no scores in memory. Its past may be longer than what is valid. */
function fusedAttention(emit: Emitter, inputs: Inputs<"attention", string>, node: NodeOf<"attention">): string[] {
  const { numHeads, numKeyValueHeads, scale, softcap, causal, window, layout } = node.attributes;
  const [batch, tokens] = node.inputs.query.shape as [Dim, Dim];
  const headDim = headDimOf(node);
  const newKeys = node.inputs.key?.shape[1] ?? tokens;
  const i32 = { to: onnxTypes.i32 };

  const past = inputs.pastLength !== undefined ? asVector(emit, inputs.pastLength) : undefined;
  const stored = inputs.pastKey !== undefined ? axisSize(emit, inputs.pastKey, 2) : emit.vector([0]);
  const start = past ?? stored;
  const counted = emit.dims([newKeys]);
  const total = inputs.pastKey === undefined ? counted : emit.node("Add", [start, counted]); // [1]
  // Shape inference takes the present for as long as the past unless it can see the total.
  const storedSize = node.inputs.pastKey?.shape[2] ?? 0;
  const isKnown = past === undefined && typeof storedSize === "number" && typeof newKeys === "number";
  const knownTotal = isKnown ? storedSize + newKeys : undefined;

  let { query, key, value, pastKey, pastValue } = inputs;
  let cos = "";
  let sin = "";
  let turns = inputs.cos !== undefined && inputs.sin !== undefined;
  if (turns && !hasFusedRotary(node)) {
    // Turn first, then attend.
    const pairs = node.inputs.cos!.shape[1] as number;
    if (key === undefined || value === undefined) {
      const sizes = [numHeads, numKeyValueHeads, numKeyValueHeads].map((heads) => heads * headDim);
      [query, key, value] = emit.nodes("Split", [query, emit.vector(sizes)], { axis: 2 }, { outputs: 3 }) as [
        string,
        string,
        string,
      ];
    }
    const rows = (table: string): string =>
      sliceAxis(emit, table, 0, start, emit.node("Add", [start, emit.dims([tokens])]));
    const [c, s] = [rows(inputs.cos!), rows(inputs.sin!)];
    query = rotaryNode(emit, query, c, s, batch, { numHeads, layout, pairs, headDim });
    key = rotaryNode(emit, key, c, s, batch, { numHeads: numKeyValueHeads, layout, pairs, headDim });
    turns = false;
  } else if (turns) {
    [cos, sin] = [inputs.cos!, inputs.sin!];
  }
  if (newKeys !== tokens) {
    // More keys than queries: the keys go in as a full past, and there are no new ones.
    const byHead = (x: string): string => {
      const split = emit.node("Reshape", [x, emit.vector([0, -1, numKeyValueHeads, headDim])]);
      return emit.node("Transpose", [split], { perm: [0, 2, 1, 3] });
    };
    const none = (x: string): string => sliceAxis(emit, x, 1, emit.vector([0]), emit.vector([0]));
    const [newKey, newValue] = [byHead(key!), byHead(value!)];
    const join = (old: string | undefined, rows: string): string => {
      if (old === undefined) return rows;
      const valid = past === undefined ? old : sliceAxis(emit, old, 2, emit.vector([0]), past);
      return emit.node("Concat", [valid, rows], { axis: 2 });
    };
    [pastKey, pastValue] = [join(pastKey, newKey), join(pastValue, newValue)];
    [key, value] = [none(key!), none(value!)];
    return [attend()[0]!, newKey, newValue];
  }

  function attend(): string[] {
    const scalarTotal =
      knownTotal !== undefined
        ? emit.constant(scalar("i32", knownTotal))
        : // On WebGPU i64 stays on the CPU, where this is wanted; i32 would not.
          emit.node("Cast", [emit.node("Squeeze", [total, emit.vector([0])])], i32);
    const one = emit.vector([1]);
    const lengths = emit.node("Cast", [emit.node("Sub", [total, one])], i32);
    const attributes: Record<string, OnnxAttribute> = {
      num_heads: numHeads,
      kv_num_heads: numKeyValueHeads,
      scale: { float: scale },
      causal: causal ? 1 : 0,
      local_window_size: window ?? -1,
    };
    if (softcap > 0) attributes.softcap = { float: softcap };
    if (turns) {
      attributes.do_rotary = 1;
      attributes.rotary_interleaved = layout === "interleaved" ? 1 : 0;
    }
    const all = [
      query,
      key ?? "",
      value ?? "",
      pastKey ?? "",
      pastValue ?? "",
      batch === 1 ? lengths : emit.node("Expand", [lengths, emit.dims([batch])]),
      scalarTotal,
      cos,
      sin,
      "", // position_ids: counted from the past's length
      inputs.bias ?? "",
      inputs.sinks ?? "",
    ];
    while (all.at(-1) === "") all.pop();
    // Without all three outputs the flash kernel refuses, and shared keys crash.
    return emit.nodes("GroupQueryAttention", all, attributes, { ...microsoft, outputs: 3 });
  }

  const [output, presentKey, presentValue] = attend();
  // present = past and new in one buffer, as long as the longer of past's capacity and the total.
  const whole = inputs.pastKey === undefined || emit.writesCache(node);
  const fresh = (present: string): string => (whole ? present : sliceAxis(emit, present, 2, start, total));
  return [output!, fresh(presentKey!), fresh(presentValue!)];
}

/** Builds ops over a node's inputs by name and lowers them in its place. */
function inlined<I extends object>(
  emit: Emitter,
  inputs: I,
  build: (g: GraphBuilder, inputs: I) => readonly Value[],
): string[] {
  const entries = Object.entries(inputs) as [string, Value | undefined][];
  const given = entries.filter((entry): entry is [string, Value] => entry[1] !== undefined);
  return emit.inline(
    given.map(([, value]) => value),
    (g, values) => build(g, Object.fromEntries(given.map(([name], i) => [name, values[i]!])) as unknown as I),
  );
}

function plainAttention(emit: Emitter, node: NodeOf<"attention">): string[] {
  return inlined(emit, node.inputs, (g, inputs) => {
    const out = decomposeAttention(g, inputs, node.attributes);
    return [out.output, out.newKey, out.newValue];
  });
}

function fromBlocks(emit: Emitter, node: NodeOf<"attention">): string[] {
  return inlined(emit, node.inputs, (g, inputs) => {
    const out = blockAttention(g, inputs, node.attributes);
    return [out.output, out.newKey, out.newValue];
  });
}
