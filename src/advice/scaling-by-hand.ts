// What a scaling makes of each hand: how many times slower it turns than it did in training, and what of that is new.

import { clockHands, type Hand } from "../encodings/rope/hands.ts";
import { computeRopeFrequencies } from "../encodings/rope/scaling/index.ts";
import type { RopeParameters } from "../encodings/rope/scaling/parameters.ts";

export interface ScalingByHandOptions {
  readonly headDim: number;
  readonly trainedLength: number;
  /** Where unseen angles are asked for, and the length that dynamic scalings see. */
  readonly targetLength: number;
  readonly rope: RopeParameters;
}

export interface ScalingByHand {
  /** By hand, fastest first, radians a token. */
  readonly inverseFrequencies: readonly number[];
  /** By hand: the trained frequency over the one in use. 1 is untouched. */
  readonly slowDown: readonly number[];
  /** The largest of them. */
  readonly slowest: number;
  /** Hands whose frequency is exactly the trained one. */
  readonly unchanged: number;
  readonly hands: readonly Hand[];
  /** Hands that never finish a turn within the trained length. */
  readonly unfinished: number;
  /** Hands that reach unseen angles at the target. */
  readonly unseen: number;
  readonly attentionFactor: number;
  /** What every score is multiplied by: the factor stands on queries and on keys. */
  readonly scoreFactor: number;
}

/** @throws RangeError as `computeRopeFrequencies` and `clockHands` */
export function scalingByHand(options: ScalingByHandOptions): ScalingByHand {
  const { headDim, trainedLength, targetLength, rope } = options;
  const { ropeTheta } = rope;
  const config = { headDim, maxPositionEmbeddings: trainedLength };
  const trained = computeRopeFrequencies({ ...config, rope: { ropeType: "default", ropeTheta } }, trainedLength);
  const used = computeRopeFrequencies({ ...config, rope }, targetLength);
  const slowDown = Array.from(trained.inverseFrequencies, (omega, pair) => omega / used.inverseFrequencies[pair]!);
  const hands = clockHands(trained.inverseFrequencies, used.inverseFrequencies, { trainedLength, targetLength });
  return {
    inverseFrequencies: Array.from(used.inverseFrequencies),
    slowDown,
    slowest: Math.max(...slowDown),
    unchanged: slowDown.filter((times) => times === 1).length,
    hands,
    unfinished: hands.filter(({ turnsInTraining }) => turnsInTraining < 1).length,
    unseen: hands.filter(({ seen }) => !seen).length,
    attentionFactor: used.attentionFactor,
    scoreFactor: used.attentionFactor * used.attentionFactor,
  };
}
