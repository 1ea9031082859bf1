// A checkpoint as one safetensors file: "weights.NAME", the optimiser's states under their own names, and the step and
// the caller's record (configuration, seed, data) as metadata.

import { memorySource, readSafetensorsHeader } from "../formats/index.ts";
import { isFloat, type Tensor, tensor, tensorBytes, viewBytes } from "../tensor/index.ts";
import type { TrainingCheckpoint } from "./trainer.ts";

const PREFIX = "weights.";
const FORMAT = "longhand-training-1";

/**
 * Tensors as a safetensors file: the header padded to a multiple of 8 bytes, tensors in the order given, wider dtypes
 * first, so that every one is aligned.
 *
 * @throws TypeError for a dtype that the format lacks (u4)
 */
export function encodeSafetensors(
  tensors: ReadonlyMap<string, Tensor>,
  metadata: Readonly<Record<string, string>> = {},
): Uint8Array<ArrayBuffer> {
  const header: Record<string, unknown> = Object.keys(metadata).length === 0 ? {} : { __metadata__: metadata };
  const width = ({ dtype, data }: Tensor): number => {
    if (dtype === "u4") throw new TypeError("encodeSafetensors: expected whole bytes, got u4");
    return data.BYTES_PER_ELEMENT;
  };
  const ordered = [...tensors].sort(([, a], [, b]) => width(b) - width(a));
  let offset = 0;
  for (const [name, { dtype, shape, data }] of ordered) {
    const type = dtype === "bool" ? "BOOL" : dtype.toUpperCase();
    header[name] = { dtype: type, shape, data_offsets: [offset, offset + data.byteLength] };
    offset += data.byteLength;
  }
  const json = new TextEncoder().encode(JSON.stringify(header));
  const padded = Math.ceil(json.length / 8) * 8;
  const out = new Uint8Array(8 + padded + offset);
  new DataView(out.buffer).setBigUint64(0, BigInt(padded), true);
  out.fill(0x20, 8, 8 + padded);
  out.set(json, 8);
  let at = 8 + padded;
  for (const [, value] of ordered) {
    out.set(tensorBytes(value), at);
    at += value.data.byteLength;
  }
  return out;
}

/** A checkpoint's bytes. `record` is the caller's: whatever says what the run was. */
export function encodeTrainingCheckpoint(
  checkpoint: TrainingCheckpoint,
  record: Readonly<Record<string, unknown>> = {},
): Uint8Array<ArrayBuffer> {
  const tensors = new Map<string, Tensor>();
  for (const [name, value] of checkpoint.weights) tensors.set(PREFIX + name, value);
  for (const [name, value] of checkpoint.optimizer) tensors.set(name, value);
  const metadata = { format: FORMAT, step: String(checkpoint.step), record: JSON.stringify(record) };
  return encodeSafetensors(tensors, metadata);
}

/**
 * A checkpoint from its bytes.
 *
 * @throws FormatError for a file that is not safetensors; RangeError for one that is not a training checkpoint
 */
export async function decodeTrainingCheckpoint(
  bytes: Uint8Array,
): Promise<TrainingCheckpoint & { readonly record: Readonly<Record<string, unknown>> }> {
  const { metadata, tensors } = await readSafetensorsHeader(memorySource("checkpoint", bytes));
  const step = Number(metadata.get("step"));
  if (metadata.get("format") !== FORMAT || !Number.isSafeInteger(step)) {
    throw new RangeError(
      `checkpoint: expected the format ${FORMAT} with a step, got ${metadata.get("format") ?? "none"}`,
    );
  }
  const weights = new Map<string, Tensor>();
  const optimizer = new Map<string, Tensor>();
  for (const [name, { dtype, shape, offset, byteLength }] of tensors) {
    const own = dtype.toLowerCase() as Tensor["dtype"];
    if (!isFloat(own)) throw new RangeError(`checkpoint: expected floats, got ${dtype} in ${name}`);
    // A copy: a view would keep the whole file alive, and states are written over.
    const data = viewBytes(own, bytes.slice(offset, offset + byteLength));
    const value = tensor(own, shape, data as never) as Tensor;
    if (name.startsWith(PREFIX)) weights.set(name.slice(PREFIX.length), value);
    else optimizer.set(name, value);
  }
  return { step, weights, optimizer, record: JSON.parse(metadata.get("record") ?? "{}") as Record<string, unknown> };
}
