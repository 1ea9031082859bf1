// What runs the graphs of an encoder and a decoder (models/encoder-decoder.ts): the encoder layer by layer in chunks of
// queries, and a decoder's session whose tokens are embedded by another.
//
// Memory of an encoder text of n tokens: hidden [n, E], keys and values of two layers [n, H·D], and a bias
// [H, chunk, n], which chunks keep below 64 MiB; what stays are the cross-attention's keys and values [n, H·D] of every
// decoder layer. Nothing grows with n².

import type { BiasTable, ModelSpec } from "../models/index.ts";
import { BiasRows } from "../models/index.ts";
import { type Tensor, tensor, zeros } from "../tensor/index.ts";
import type { Feeds, Session } from "./backend.ts";

/** Above this, the bias or the scores of a chunk make it smaller. */
const scoreBytes = 64 * 2 ** 20;

/** Rows a run: 512, or fewer where [rows, keys] floats of so many heads would pass 64 MiB. */
export function chunkRows(heads: number, keys: number): number {
  return Math.min(512, Math.max(16, Math.floor(scoreBytes / (4 * heads * Math.max(1, keys)))));
}

export interface EncoderSessions {
  readonly embedding: Session;
  readonly start: Session;
  readonly layers: readonly Session[];
}

export interface EncodeOptions {
  readonly chunkSize?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** The share that is done, from 0 to 1. */
  readonly onProgress?: (share: number) => void;
}

export class Encoder {
  readonly #sessions: EncoderSessions;
  readonly #spec: ModelSpec;
  readonly #bias = new BiasRows();

  constructor(sessions: EncoderSessions, spec: ModelSpec) {
    this.#sessions = sessions;
    this.#spec = spec;
  }

  /**
   * Keys and values of the decoder's cross-attention, by state.
   *
   * @param biases one a layer
   */
  async run(
    tokens: Int32Array,
    biases: readonly BiasTable[],
    options: EncodeOptions = {},
  ): Promise<Map<string, Tensor>> {
    const { layers, hiddenSize } = this.#spec;
    const { numHeads, headDim } = layers[0]!.attention;
    const length = tokens.length;
    const chunk = options.chunkSize ?? chunkRows(numHeads, length);
    const steps = (1 + this.#sessions.layers.length) * Math.ceil(length / chunk);
    let step = 0;
    const chunks = async (body: (from: number, count: number) => Promise<void>): Promise<void> => {
      for (let from = 0; from < length; from += chunk) {
        options.signal?.throwIfAborted();
        await body(from, Math.min(chunk, length - from));
        options.onProgress?.(++step / steps);
      }
    };
    const byHead = (): Tensor => zeros("f32", [1, numHeads, length, headDim]) as Tensor;
    const byChannel = (): Tensor => zeros("f32", [1, numHeads, headDim, length]) as Tensor;
    // Each chunk's rows are read once a layer, and written over by what the layer makes of them.
    const hidden = new Float32Array(length * hiddenSize);
    const rows = (from: number, count: number): Tensor =>
      tensor("f32", [1, count, hiddenSize], hidden.subarray(from * hiddenSize, (from + count) * hiddenSize));
    let [key, value] = [byHead(), byHead()];
    await chunks(async (from, count) => {
      const { embedded } = await this.#sessions.embedding.run({ tokens: indices(tokens.subarray(from, from + count)) });
      hidden.set(embedded!.data as Float32Array, from * hiddenSize);
      const got = await this.#sessions.start.run({ hidden: rows(from, count) });
      place(key, got.key!, from);
      place(value, got.value!, from);
    });
    let [nextKey, nextValue] = [byHead(), byHead()];
    const cross = new Map<string, Tensor>();
    for (const [index, session] of this.#sessions.layers.entries()) {
      const isLast = index + 1 === this.#sessions.layers.length;
      if (isLast) {
        for (const { name } of session.graph.outputs) {
          cross.set(name, name.startsWith("crossKey") ? byChannel() : byHead());
        }
      }
      await chunks(async (from, count) => {
        const bias = this.#bias.of(biases[index]!, from, count, length);
        const got = await session.run({ hidden: rows(from, count), key, value, bias });
        if (isLast) {
          for (const [name, whole] of cross) {
            if (name.startsWith("crossKey")) placeColumns(whole, got[name]!, from);
            else place(whole, got[name]!, from);
          }
          return;
        }
        hidden.set(got.hidden!.data as Float32Array, from * hiddenSize);
        place(nextKey, got.key!, from);
        place(nextValue, got.value!, from);
      });
      [key, value, nextKey, nextValue] = [nextKey, nextValue, key, value];
    }
    return cross;
  }

  async dispose(): Promise<void> {
    const { embedding, start, layers } = this.#sessions;
    for (const session of [embedding, start, ...layers]) await session.dispose();
  }
}

/** Rows of every head into a whole: [1, H, count, D] into [1, H, n, D]. */
function place(whole: Tensor, part: Tensor, from: number): void {
  const [, heads, length, headDim] = whole.shape as [number, number, number, number];
  const count = part.shape[2]!;
  const to = whole.data as Float32Array;
  const data = part.data as Float32Array;
  for (let head = 0; head < heads; head++) {
    const rows = data.subarray(head * count * headDim, (head + 1) * count * headDim);
    to.set(rows, (head * length + from) * headDim);
  }
}

/** Columns of every channel into a whole: [1, H, D, count] into [1, H, D, n]. */
function placeColumns(whole: Tensor, part: Tensor, from: number): void {
  const length = whole.shape[3]!;
  const count = part.shape[3]!;
  const to = whole.data as Float32Array;
  const data = part.data as Float32Array;
  for (let channel = 0; channel * count < data.length; channel++) {
    to.set(data.subarray(channel * count, (channel + 1) * count), channel * length + from);
  }
}

function indices(tokens: Int32Array): Tensor {
  return tensor("i64", [tokens.length], BigInt64Array.from(tokens, BigInt));
}

/** A session that is fed tokens where the inner one wants their embeddings. */
export function embeddedSession(inner: Session, embedding: Session): Session {
  return {
    graph: inner.graph,
    async run({ tokens, ...feeds }: Feeds = {}, fetches) {
      const { embedded } = await embedding.run({ tokens: tokens! });
      return inner.run({ ...feeds, embedded: embedded! }, fetches);
    },
    readState: (name) => inner.readState(name),
    writeState: (name, value) => inner.writeState(name, value),
    resize: (sizes) => inner.resize(sizes),
    moveRows: (states, axis, from, count) => inner.moveRows(states, axis, from, count),
    dispose: () => inner.dispose(),
    [Symbol.asyncDispose]: () => inner.dispose(),
  };
}
