// CoPE, contextual position encoding (Golovneva et al. 2024, 2405.18719): a position is counted by gates that the
// content opens, so "the last sentence" can be distance 1. It needs the logits before it can say anything, so it is a
// function and not a member of the PositionEncoding union, and no fused attention kernel can hold it.

import { expectInteger } from "./errors.ts";

export interface CopeShape {
  /** H. */
  readonly numHeads: number;
  /** T: the queries are the last T positions of the S keys. */
  readonly numQueries: number;
  /** S. */
  readonly numKeys: number;
  /** Position embeddings: contextual positions run from 0 to maxPositions − 1 (the paper's p_max, plus one). */
  readonly maxPositions: number;
}

/**
 * The contextual position of every key seen from every query: p_ij = Σ_{k=j..i} sigmoid(logit_ik), at most
 * maxPositions − 1. Keys after the query count nothing.
 *
 * Golovneva et al. 2024 (2405.18719), section 4, equations for the gates and positions; the listing of appendix B.
 *
 * @param logits [H, T, S] scores q·k/√D before any bias; what a future key holds is not read
 * @returns [H, T, S]
 * @throws RangeError when logits do not have that shape, or there are more queries than keys
 * @example
 * ```ts
 * import { copePositions } from "longhand/encodings";
 * const shape = { numHeads: 1, numQueries: 1, numKeys: 3, maxPositions: 8 };
 * copePositions([0, 0, 0], shape); // => [1.5, 1, 0.5]
 * ```
 */
export function copePositions(logits: ArrayLike<number>, shape: CopeShape): Float64Array {
  const { numHeads, numQueries, numKeys, maxPositions } = expectShape("copePositions", logits, shape);
  const out = new Float64Array(logits.length);
  for (let row = 0; row < numHeads * numQueries; row++) {
    const lastKey = numKeys - numQueries + (row % numQueries);
    let position = 0;
    for (let key = lastKey; key >= 0; key--) {
      const at = row * numKeys + key;
      position += 1 / (1 + Math.exp(-logits[at]!));
      out[at] = Math.min(position, maxPositions - 1);
    }
  }
  return out;
}

/**
 * CoPE's bias: the query's product with the embedding of the contextual position, interpolated between whole positions.
 *
 * bias_ij = (1 − w)·z[⌊p⌋] + w·z[⌈p⌉], w = p − ⌊p⌋, z[n] = q_i · e[n]. Golovneva et al. 2024 (2405.18719), section 4;
 * the listing of appendix B. Added to the same logits, before the mask and the softmax.
 *
 * @param logits [H, T, S] scores q·k/√D before any bias
 * @param positionLogits [H, T, maxPositions] the products q · e[n], not divided by √D
 * @returns [H, T, S]; a future key, which the mask removes, gets z[0]
 * @throws RangeError when an array does not have its shape, or there are more queries than keys
 * @example
 * ```ts
 * import { copeBias } from "longhand/encodings";
 * const shape = { numHeads: 1, numQueries: 1, numKeys: 3, maxPositions: 3 };
 * copeBias([0, 0, 0], [10, 20, 40], shape); // => [30, 20, 15]
 * ```
 */
export function copeBias(logits: ArrayLike<number>, positionLogits: ArrayLike<number>, shape: CopeShape): Float64Array {
  const who = "copeBias";
  const { numHeads, numQueries, numKeys, maxPositions } = expectShape(who, logits, shape);
  const expected = numHeads * numQueries * maxPositions;
  if (positionLogits.length !== expected) {
    throw new RangeError(
      `${who}: expected positionLogits [H, T, maxPositions] of ${expected} numbers, got ${positionLogits.length}`,
    );
  }
  return copePositions(logits, shape).map((position, at) => {
    const row = Math.floor(at / numKeys) * maxPositions;
    const floor = Math.floor(position);
    const weight = position - floor;
    return positionLogits[row + floor]! * (1 - weight) + positionLogits[row + Math.ceil(position)]! * weight;
  });
}

function expectShape(who: string, logits: ArrayLike<number>, shape: CopeShape): CopeShape {
  expectInteger(who, "numHeads", shape.numHeads, 1);
  expectInteger(who, "numQueries", shape.numQueries, 1);
  expectInteger(who, "numKeys", shape.numKeys, shape.numQueries);
  expectInteger(who, "maxPositions", shape.maxPositions, 1);
  const expected = shape.numHeads * shape.numQueries * shape.numKeys;
  if (logits.length !== expected) {
    throw new RangeError(`${who}: expected logits [H, T, S] of ${expected} numbers, got ${logits.length}`);
  }
  return shape;
}
