// Writes ONNX models: the protobuf wire format (varints, length-delimited fields, 32-bit floats) and the few messages
// of onnx.proto3 that a graph needs. Field numbers are onnx.proto3's. No dependency. Leaves out everything else:
// functions, training information, sparse tensors, metadata.

import type { Dtype, Tensor } from "../../tensor/index.ts";
import { tensorBytes } from "../../tensor/index.ts";
import type { Dim } from "../dims.ts";

/** TensorProto.DataType of each dtype. */
export const onnxTypes: { readonly [D in Dtype]: number } = {
  f32: 1,
  u8: 2,
  i8: 3,
  i32: 6,
  i64: 7,
  bool: 9,
  f16: 10,
  f64: 11,
  bf16: 16,
  u4: 21,
};

/** An attribute: a number is an int, a text a string; floats are wrapped, so that 1 and 1.0 differ. */
export type OnnxAttribute =
  | number
  | string
  | readonly number[]
  | { readonly float: number }
  | { readonly tensor: Tensor };

export interface OnnxNode {
  readonly op: string;
  /** "" is ai.onnx. */
  readonly domain: string;
  readonly name: string;
  /** "" is an absent input. */
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes: Readonly<Record<string, OnnxAttribute>>;
}

/** Where external bytes are: a location that the session knows, and which of its bytes. */
export interface ExternalBytes {
  readonly location: string;
  readonly offset: number;
  readonly length: number;
}

export interface OnnxInitializer {
  readonly name: string;
  readonly dtype: Dtype;
  readonly shape: readonly number[];
  readonly data: Uint8Array | ExternalBytes;
}

export interface OnnxValue {
  readonly name: string;
  readonly dtype: Dtype;
  readonly shape: readonly Dim[];
  /** A list of such tensors. */
  readonly sequence?: boolean;
}

export interface OnnxModel {
  readonly name: string;
  /** Version by domain. */
  readonly opsets: Readonly<Record<string, number>>;
  readonly irVersion: number;
  readonly inputs: readonly OnnxValue[];
  readonly outputs: readonly OnnxValue[];
  readonly initializers: readonly OnnxInitializer[];
  readonly nodes: readonly OnnxNode[];
}

/** A message under construction: pieces of bytes, joined once at the end. */
class Message {
  readonly pieces: Uint8Array[] = [];
  length = 0;

  push(bytes: Uint8Array): this {
    this.pieces.push(bytes);
    this.length += bytes.byteLength;
    return this;
  }
  /** Negative int64 values take ten bytes: two's complement in 64 bits. */
  varint(value: number | bigint): this {
    let rest = BigInt.asUintN(64, BigInt(value));
    const bytes: number[] = [];
    do {
      const low = Number(rest & 0x7fn);
      rest >>= 7n;
      bytes.push(rest === 0n ? low : low | 0x80);
    } while (rest !== 0n);
    return this.push(Uint8Array.from(bytes));
  }
  int(field: number, value: number | bigint): this {
    return this.varint(field << 3).varint(value);
  }
  float(field: number, value: number): this {
    const bytes = new Uint8Array(4);
    new DataView(bytes.buffer).setFloat32(0, value, true);
    return this.varint((field << 3) | 5).push(bytes);
  }
  bytes(field: number, value: Uint8Array): this {
    return this.varint((field << 3) | 2)
      .varint(value.byteLength)
      .push(value);
  }
  text(field: number, value: string): this {
    return this.bytes(field, new TextEncoder().encode(value));
  }
  message(field: number, value: Message): this {
    this.varint((field << 3) | 2).varint(value.length);
    for (const piece of value.pieces) this.push(piece);
    return this;
  }
  finish(): Uint8Array {
    const out = new Uint8Array(this.length);
    let at = 0;
    for (const piece of this.pieces) {
      out.set(piece, at);
      at += piece.byteLength;
    }
    return out;
  }
}

/** AttributeProto.type. */
const attributeTypes = { float: 1, int: 2, string: 3, tensor: 4, ints: 7 } as const;

function attributeProto(name: string, value: OnnxAttribute): Message {
  const out = new Message().text(1, name);
  if (typeof value === "number") return out.int(3, value).int(20, attributeTypes.int);
  if (typeof value === "string") return out.text(4, value).int(20, attributeTypes.string);
  if ("float" in value) return out.float(2, value.float).int(20, attributeTypes.float);
  if ("tensor" in value) {
    const { dtype, shape } = value.tensor;
    const proto = tensorProto({ name: "", dtype, shape: [...shape], data: tensorBytes(value.tensor) });
    return out.message(5, proto).int(20, attributeTypes.tensor);
  }
  for (const item of value) out.int(8, item);
  return out.int(20, attributeTypes.ints);
}

function nodeProto(node: OnnxNode): Message {
  const out = new Message();
  for (const input of node.inputs) out.text(1, input);
  for (const output of node.outputs) out.text(2, output);
  out.text(3, node.name).text(4, node.op);
  for (const [name, value] of Object.entries(node.attributes)) out.message(5, attributeProto(name, value));
  return out.text(7, node.domain);
}

function tensorProto(tensor: OnnxInitializer): Message {
  const out = new Message();
  for (const size of tensor.shape) out.int(1, size);
  out.int(2, onnxTypes[tensor.dtype]).text(8, tensor.name);
  if (tensor.data instanceof Uint8Array) return out.bytes(9, tensor.data);
  const entries = { location: tensor.data.location, offset: tensor.data.offset, length: tensor.data.length };
  for (const [key, value] of Object.entries(entries)) {
    out.message(13, new Message().text(1, key).text(2, String(value)));
  }
  return out.int(14, 1); // data_location: EXTERNAL
}

function valueProto(value: OnnxValue): Message {
  const shape = new Message();
  for (const dim of value.shape) {
    shape.message(1, typeof dim === "number" ? new Message().int(1, dim) : new Message().text(2, dim));
  }
  const tensorType = new Message().int(1, onnxTypes[value.dtype]).message(2, shape);
  const type = new Message().message(1, tensorType);
  const list = (): Message => new Message().message(4, new Message().message(1, type));
  return new Message().text(1, value.name).message(2, value.sequence === true ? list() : type);
}

/** The bytes of a model, as a `.onnx` file holds them. */
export function encodeOnnx(model: OnnxModel): Uint8Array {
  const graph = new Message();
  for (const node of model.nodes) graph.message(1, nodeProto(node));
  graph.text(2, model.name);
  for (const tensor of model.initializers) graph.message(5, tensorProto(tensor));
  for (const input of model.inputs) graph.message(11, valueProto(input));
  for (const output of model.outputs) graph.message(12, valueProto(output));
  const out = new Message().int(1, model.irVersion).text(2, "longhand").message(7, graph);
  for (const [domain, version] of Object.entries(model.opsets)) {
    out.message(8, new Message().text(1, domain).int(2, version));
  }
  return out.finish();
}
