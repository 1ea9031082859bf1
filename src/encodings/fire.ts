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
  const network = layers.length === 2 ? linearPieces(layers[0]!, layers[1]!) : deepNetwork(layers);

  return {
    site: "attention-bias",
    name: "fire",
    numHeads,
    bias(queryPositions, keyPositions) {
      expectPositions(who, "queryPositions", queryPositions);
      expectPositions(who, "keyPositions", keyPositions);
      const [rows, columns] = [queryPositions.length, keyPositions.length];
      const { c, threshold, epsilon = 1e-6 } = options;
      const psi = (x: number): number => Math.log1p(c * x);
      const ends = (positions: ArrayLike<number>): number[] => {
        let [low, high] = [Number.POSITIVE_INFINITY, 0];
        for (let i = 0; i < positions.length; i++) {
          low = Math.min(low, positions[i]!);
          high = Math.max(high, positions[i]!);
        }
        return [low, high];
      };
      const [queries, keys] = [ends(queryPositions), ends(keyPositions)];
      const largest = Math.max(queries[1]! - keys[0]!, keys[1]! - queries[0]!);
      // Contiguous positions repeat few distances: each is then evaluated once.
      const table = largest < rows * columns ? Float64Array.from({ length: largest + 1 }, (_, d) => psi(d)) : null;
      const size = rows * columns;
      const out = new Float64Array(numHeads * size);
      const shares = new Float64Array(columns);
      for (let t = 0; t < rows; t++) {
        const query = queryPositions[t]!;
        const divisor = psi(Math.max(query, threshold)) + epsilon;
        for (let s = 0; s < columns; s++) {
          const distance = Math.abs(query - keyPositions[s]!);
          shares[s] = (table === null ? psi(distance) : table[distance]!) / divisor;
        }
        network(shares, out, t * columns, size);
      }
      return out;
    },
  };
}

/** Writes the network's H outputs at each of S inputs: head h to out[at + h · stride …]. */
type Network = (inputs: Float64Array, out: Float64Array, at: number, stride: number) => void;

interface Layer {
  readonly weight: Float64Array;
  readonly bias: Float64Array;
}

/** One hidden layer of ReLUs on one input is a line between any two of its kinks: H products for each input, however many
 *  units there are. */
function linearPieces(hidden: Layer, last: Layer): Network {
  const [units, numHeads] = [hidden.bias.length, last.bias.length];
  // A unit that hardly reads its input has no kink: its bias says whether it is on.
  const kinks = Float64Array.from(hidden.weight, (w, u) => 0 - hidden.bias[u]! / w)
    .filter(Number.isFinite)
    .sort();
  const pieces = kinks.length + 1;
  const slopes = new Float64Array(numHeads * pieces);
  const starts = new Float64Array(numHeads * pieces);
  for (let piece = 0; piece < pieces; piece++) {
    const [before, after] = [kinks[piece - 1], kinks[piece]];
    const from = before ?? (after ?? 0) - 1 - Math.abs(after ?? 0);
    const inside = from / 2 + (after ?? from + 2 + 2 * Math.abs(from)) / 2;
    for (let head = 0; head < numHeads; head++) {
      let [slope, start] = [0, last.bias[head]!];
      for (let u = 0; u < units; u++) {
        if (hidden.weight[u]! * inside + hidden.bias[u]! <= 0) continue;
        slope += last.weight[head * units + u]! * hidden.weight[u]!;
        start += last.weight[head * units + u]! * hidden.bias[u]!;
      }
      slopes[head * pieces + piece] = slope;
      starts[head * pieces + piece] = start;
    }
  }
  let found = new Int32Array(0);
  return (inputs, out, at, stride) => {
    const count = inputs.length;
    if (found.length < count) found = new Int32Array(count);
    // Neighbouring keys are on the same piece, or on the next.
    for (let s = 0, piece = 0; s < count; s++) {
      const x = inputs[s]!;
      while (piece < kinks.length && x > kinks[piece]!) piece++;
      while (piece > 0 && x <= kinks[piece - 1]!) piece--;
      found[s] = piece;
    }
    for (let head = 0; head < numHeads; head++) {
      const [base, to] = [head * pieces, at + head * stride];
      for (let s = 0; s < count; s++) out[to + s] = slopes[base + found[s]!]! * inputs[s]! + starts[base + found[s]!]!;
    }
  };
}

/** Layer by layer. */
function deepNetwork(layers: readonly Layer[]): Network {
  return (inputs, out, at, stride) => {
    for (let s = 0; s < inputs.length; s++) {
      let x = Float64Array.of(inputs[s]!);
      layers.forEach(({ weight, bias }, index) => {
        const y = bias.slice();
        for (let row = 0; row < y.length; row++) {
          let sum = y[row]!;
          for (let column = 0; column < x.length; column++) sum += weight[row * x.length + column]! * x[column]!;
          y[row] = index < layers.length - 1 ? Math.max(sum, 0) : sum;
        }
        x = y;
      });
      for (let head = 0; head < x.length; head++) out[at + s + head * stride] = x[head]!;
    }
  };
}
