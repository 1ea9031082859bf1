// Queries and keys of a decoder's first layer, token by token, before any position has acted on them: there they depend
// on the token alone, so they are a table of the checkpoint's and need no text. Plain loops in float64.
//
// Where a model adds rows to its embeddings they do depend on the position, and are refused.

import { show } from "../encodings/errors.ts";
import type { Checkpoint } from "./checkpoint.ts";
import { positionKind } from "./spec.ts";

export interface FirstLayer {
  readonly numHeads: number;
  readonly numKeyValueHeads: number;
  readonly headDim: number;
  readonly vocabSize: number;
  /** What multiplies q·k. */
  readonly scale: number;
  /** One head's query of a token [D]. @throws RangeError for a token or head that the model has not */
  query(token: number, head: number): Float64Array;
  /** The key [D] that the same head sees of a token. @throws RangeError as `query` */
  key(token: number, head: number): Float64Array;
}

/**
 * Reads what queries and keys of the first layer are made of.
 *
 * @throws RangeError for a model whose first layer is made otherwise: positions in the embeddings, norms of embeddings or
 *   of queries and keys, clipped projections; and as `Checkpoint.readFloat32`
 */
export async function readFirstLayer(checkpoint: Checkpoint): Promise<FirstLayer> {
  const { spec } = checkpoint;
  const layer = spec.layers[0]!;
  const { numHeads, numKeyValueHeads, headDim, scale, inputBias, queryKeyNorm, clip } = layer.attention;
  const { hiddenSize, vocabSize, embedding } = spec;
  const refused: readonly (readonly [boolean, string])[] = [
    [spec.groups.some((group) => positionKind(group) === "embedding"), "positions in its embeddings"],
    [embedding.norm !== null, "a norm of its embeddings"],
    [queryKeyNorm !== null, "norms of queries and keys"],
    [clip !== null, "clipped projections"],
    [!layer.inputNorm || layer.norm.kind !== "rms", "another norm than RMS before its attention"],
  ];
  const reason = refused.find(([is]) => is)?.[1];
  if (reason !== undefined) {
    throw new RangeError(`readFirstLayer: expected a first layer of plain projections, got a model with ${reason}`);
  }
  const read = (name: string, shape: readonly number[]): Promise<Float32Array> => checkpoint.readFloat32(name, shape);
  const of = (name: string): string => `layers.0.${name}`;
  const embeddings = await read("embedding.weight", [vocabSize, hiddenSize]);
  const norm = await read(of("attentionNorm.weight"), [hiddenSize]);
  const projection = async (
    name: string,
    heads: number,
  ): Promise<{ weight: Float32Array; bias: Float32Array | null }> => ({
    weight: await read(of(`${name}.weight`), [heads * headDim, hiddenSize]),
    bias: inputBias ? await read(of(`${name}.bias`), [heads * headDim]) : null,
  });
  const query = await projection("query", numHeads);
  const key = await projection("key", numKeyValueHeads);

  const normed = (token: number): Float64Array => {
    if (!Number.isInteger(token) || token < 0 || token >= vocabSize) {
      throw new RangeError(`readFirstLayer: expected a token of 0 .. ${vocabSize - 1}, got ${show(token)}`);
    }
    const row = embeddings.subarray(token * hiddenSize, (token + 1) * hiddenSize);
    let squares = 0;
    for (const value of row) squares += (value * embedding.scale) ** 2;
    const factor = embedding.scale / Math.sqrt(squares / hiddenSize + layer.norm.epsilon);
    return Float64Array.from(row, (value, channel) => value * factor * norm[channel]!);
  };
  const project = ({ weight, bias }: typeof query, token: number, head: number): Float64Array => {
    const x = normed(token);
    return Float64Array.from({ length: headDim }, (_, d) => {
      const row = head * headDim + d;
      let sum = bias?.[row] ?? 0;
      for (let channel = 0; channel < hiddenSize; channel++) sum += weight[row * hiddenSize + channel]! * x[channel]!;
      return sum;
    });
  };
  const known = (head: number): number => {
    if (Number.isInteger(head) && head >= 0 && head < numHeads) return head;
    throw new RangeError(`readFirstLayer: expected a head of 0 .. ${numHeads - 1}, got ${show(head)}`);
  };
  return {
    numHeads,
    numKeyValueHeads,
    headDim,
    vocabSize,
    scale,
    query: (token, head) => project(query, token, known(head)),
    key: (token, head) => project(key, token, Math.floor(known(head) / (numHeads / numKeyValueHeads))),
  };
}
