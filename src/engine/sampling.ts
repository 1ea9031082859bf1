// Choosing a token from logits. In transformers' order: temperature, then top-k, then top-p over what is left.

import { type Random, random } from "../tensor/index.ts";

export interface SamplingOptions {
  /** Divides the logits; 0 (when absent): the likeliest token, ties to the smallest id. */
  readonly temperature?: number;
  /** Only the k likeliest tokens; all when absent. */
  readonly topK?: number;
  /** Only the likeliest tokens whose probabilities reach p together; all when absent. */
  readonly topP?: number;
  /** The same seed, the same text. 0 when absent. */
  readonly seed?: number;
}

/** ln softmax(logits)[token], in float64. */
export function logProbability(logits: Float32Array, token: number): number {
  return logits[token]! - logSumExp(logits);
}

/**
 * A function that chooses a token from logits, drawing from one seeded stream.
 *
 * @throws RangeError for a temperature below 0, a topK that is no integer of at least 1, a topP outside (0, 1]
 * @example
 * ```ts
 * import { sampler } from "longhand/engine";
 * const logits = Float32Array.of(0, 3, 1);
 * sampler()(logits); // => 1
 * sampler({ temperature: 2, topK: 1 })(logits); // => 1
 * ```
 */
export function sampler(options: SamplingOptions = {}): (logits: Float32Array) => number {
  const { temperature = 0, topK, topP = 1, seed = 0 } = options;
  if (!(temperature >= 0 && Number.isFinite(temperature))) {
    throw new RangeError(`generate: expected a temperature of at least 0, got ${temperature}`);
  }
  if (topK !== undefined && (!Number.isInteger(topK) || topK < 1)) {
    throw new RangeError(`generate: expected topK to be an integer of at least 1, got ${topK}`);
  }
  if (!(topP > 0 && topP <= 1)) throw new RangeError(`generate: expected topP in (0, 1], got ${topP}`);
  const stream = random(seed);
  return (logits) =>
    temperature === 0 ? argMax(logits) : draw(logits, temperature, topK ?? logits.length, topP, stream);
}

/** Whether the likeliest token is taken, so that no other logit matters. */
export function isGreedy({ temperature = 0 }: SamplingOptions): boolean {
  return temperature === 0;
}

/** The index of the largest; the first of equals. */
export function argMax(logits: Float32Array): number {
  let best = 0;
  let most = logits[0]!;
  for (let i = 1; i < logits.length; i++) {
    if (logits[i]! > most) {
      most = logits[i]!;
      best = i;
    }
  }
  return best;
}

/** ln Σ e^x in float64. */
export function logSumExp(logits: Float32Array): number {
  const most = logits[argMax(logits)]!;
  let sum = 0;
  for (let i = 0; i < logits.length; i++) sum += Math.exp(logits[i]! - most);
  return most + Math.log(sum);
}

function draw(logits: Float32Array, temperature: number, topK: number, topP: number, stream: Random): number {
  // Sorting is only needed where a cut is made; ties go to the smaller id.
  const isCut = topK < logits.length || topP < 1;
  let order: number[] | Uint32Array = Uint32Array.from({ length: logits.length }, (_, i) => i);
  if (isCut) order = order.sort((a, b) => logits[b]! - logits[a]! || a - b).subarray(0, Math.min(topK, logits.length));
  const most = isCut ? logits[order[0]!]! : logits[argMax(logits)]!;
  const weights = Float64Array.from(order, (i) => Math.exp((logits[i]! - most) / temperature));
  let total = 0;
  for (const weight of weights) total += weight;
  let kept = weights.length;
  if (topP < 1) {
    // The token that crosses p stays.
    let sum = 0;
    kept = 0;
    while (kept < weights.length && sum < topP * total) sum += weights[kept++]!;
    total = sum;
  }
  let at = stream.uniform() * total;
  for (let i = 0; i < kept; i++) {
    at -= weights[i]!;
    if (at < 0) return order[i]!;
  }
  return order[kept - 1]!;
}
