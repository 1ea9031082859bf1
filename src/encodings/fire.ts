// FIRE, functional interpolation for relative position encoding (Li et al. 2024, 2310.04418): a small network reads
// the distance as a share of the query's own position, so that every length looks alike (progressive interpolation).
// The bias therefore depends on i and not on i − j alone: a shifted sequence gets other biases.

import { expectPositions } from "./bias-by-distance.ts";
import { expectFinite, expectPositive } from "./errors.ts";
import type { AttentionBiasEncoding } from "./position-encoding.ts";

/** One linear layer as torch keeps it: y = W·x + b. */
export interface LinearLayer {
  /** [outputs, inputs], row-major. */
  readonly weight: ArrayLike<number>;
  /** [outputs]. */
  readonly bias: ArrayLike<number>;
}

export interface FireOptions {
  /** f_θ: from 1 input to H outputs, ReLU between the layers. The paper's has 32 hidden units. */
  readonly layers: readonly LinearLayer[];
  /** c of ψ(x) = ln(c·x + 1), learned, above 0 (starts at 0.1). */
  readonly c: number;
  /** L, learned: queries before it are not normalised further (starts at 512). */
  readonly threshold: number;
  /** Added to the divisor, as the paper's listing does; 1e-6 when absent. 0 is the formula. */
  readonly epsilon?: number;
}

/**
 * FIRE's input to the network: ψ(|i − j|) / (ψ(max(i, L)) + ε), ψ(x) = ln(c·x + 1); in [0, 1] for j ≤ i.
 *
 * Li et al. 2024 (2310.04418), section 3.2, and the listing of its appendix (for ε and the absolute value).
 *
 * @throws RangeError for positions that are not integers of at least 0, or constants that are not positive
 * @example
 * ```ts
 * import { fireDistance } from "longhand/encodings";
 * fireDistance(1000, 0, { c: 0.1, threshold: 512, epsilon: 0 }); // => 1
 * fireDistance(10, 0, { c: 1, threshold: 120, epsilon: 0 }); // => 0.5
 * ```
 */
export function fireDistance(
  queryPosition: number,
  keyPosition: number,
  { c, threshold, epsilon = 1e-6 }: Pick<FireOptions, "c" | "threshold" | "epsilon">,
): number {
  const who = "fireDistance";
  expectPositions(who, "positions", [queryPosition, keyPosition]);
  expectPositive(who, "c", c);
  expectPositive(who, "threshold", threshold);
  expectFinite(who, "epsilon", epsilon);
  const psi = (x: number) => Math.log1p(c * x);
  return psi(Math.abs(queryPosition - keyPosition)) / (psi(Math.max(queryPosition, threshold)) + epsilon);
}

/**
 * FIRE as an encoding; H is the width of the last layer.
 *
 * Li et al. 2024 (2310.04418), section 3: b(i, j) = f_θ(ψ(i − j) / ψ(max(i, L))).
 *
 * @throws RangeError when the layers do not fit each other, start from more than one input, or as `fireDistance`
 * @example
 * ```ts
 * import { fire } from "longhand/encodings";
 * // Two heads: the share itself, and its part above a half, doubled.
 * const layers = [
 *   { weight: [1, 1], bias: [0, -0.5] },
 *   { weight: [1, 0, 0, 2], bias: [0, 0] },
 * ];
 * const encoding = fire({ layers, c: 1, threshold: 120, epsilon: 0 });
 * encoding.bias([120], [0, 110, 120]); // => [1, 0.5, 0, 1, 0, 0]
 * ```
 */
export function fire(options: FireOptions): AttentionBiasEncoding {
  const who = "fire";
  expectPositive(who, "c", options.c);
  expectPositive(who, "threshold", options.threshold);
  expectFinite(who, "epsilon", options.epsilon ?? 1e-6);
  if (options.layers.length === 0) throw new RangeError(`${who}: expected at least one layer, got none`);
  let inputs = 1;
  const layers = options.layers.map((layer, at) => {
    const outputs = layer.bias.length;
    if (outputs === 0 || layer.weight.length !== outputs * inputs) {
      throw new RangeError(
        `${who}: expected layers[${at}].weight to be [${outputs}, ${inputs}] (its biases, the layer before), ` +
          `got ${layer.weight.length} numbers`,
      );
    }
    inputs = outputs;
    return { weight: Float64Array.from(layer.weight), bias: Float64Array.from(layer.bias) };
  });
  const numHeads = inputs;

  function network(share: number): Float64Array {
    let x = Float64Array.of(share);
    layers.forEach(({ weight, bias }, at) => {
      const y = bias.slice();
      for (let row = 0; row < y.length; row++) {
        let sum = y[row]!;
        for (let column = 0; column < x.length; column++) sum += weight[row * x.length + column]! * x[column]!;
        y[row] = at < layers.length - 1 ? Math.max(sum, 0) : sum;
      }
      x = y;
    });
    return x;
  }

  return {
    site: "attention-bias",
    name: "fire",
    numHeads,
    bias(queryPositions, keyPositions) {
      expectPositions(who, "queryPositions", queryPositions);
      expectPositions(who, "keyPositions", keyPositions);
      const size = queryPositions.length * keyPositions.length;
      const out = new Float64Array(numHeads * size);
      for (let t = 0, at = 0; t < queryPositions.length; t++) {
        for (let s = 0; s < keyPositions.length; s++, at++) {
          const values = network(fireDistance(queryPositions[t]!, keyPositions[s]!, options));
          for (let head = 0; head < numHeads; head++) out[head * size + at] = values[head]!;
        }
      }
      return out;
    },
  };
}
