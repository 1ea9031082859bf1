// A rotary encoding as a clock: pair i is a hand that turns ω_i radians a token. What a model can know of a position is
// what its hands showed in training: a hand that never finished its turn shows new angles further on, a hand that did
// has shown them all.

import { expectInteger, show } from "../errors.ts";

export interface Hand {
  /** Index of the pair, 0 the fastest of an unscaled encoding. */
  readonly pair: number;
  /** 2π/ω in tokens, as it turns at the target; null for a hand that stands still. */
  readonly wavelength: number | null;
  /** 2π/ω in tokens, as it turned in training; null for a hand that stood still. */
  readonly trainedWavelength: number | null;
  /** Turns in trainedLength tokens, at the trained frequency. */
  readonly turnsInTraining: number;
  /** Turns in targetLength tokens, at the frequency used there. */
  readonly turnsAtTarget: number;
  /** Turns in targetLength tokens, were the trained frequency kept. */
  readonly turnsAtTargetUnscaled: number;
  /** Every angle between a query and a key at the target occurred in training: the hand finished a turn there, or
   *  goes no further now. */
  readonly seen: boolean;
  /** The same, were the trained frequency kept. */
  readonly seenUnscaled: boolean;
}

/**
 * The hands of a rotary encoding at a target length against their training.
 *
 * Turns are length · ω / 2π. A hand is *seen* when it finished a turn in training (it then showed every angle) or when
 * it turns no further at the target than it did in training. Scores depend on distances alone, so under a sliding
 * window both lengths count only up to the window.
 *
 * @param trained frequencies during training [P], radians a token
 * @param used frequencies at the target [P], after scaling
 * @param lengths trainedLength and targetLength in tokens; window: keys a query sees, null or absent for all
 * @throws RangeError when the lists differ in length, or a length is not an integer of at least 1
 * @example
 * ```ts
 * import { clockHands } from "longhand/encodings";
 * const [fast, slow] = clockHands([1, 0.0001], [1, 0.0001], { trainedLength: 2048, targetLength: 8192 });
 * fast.seen; // => true
 * slow.seen; // => false
 * slow.wavelength; // => 62831.853071795864
 * ```
 * Source: the critical dimension of YaRN (2309.00071), section 3.2, and of Liu et al. 2023 (2310.05209), section 3.
 */
export function clockHands(
  trained: ArrayLike<number>,
  used: ArrayLike<number>,
  {
    trainedLength,
    targetLength,
    window,
  }: { readonly trainedLength: number; readonly targetLength: number; readonly window?: number | null },
): Hand[] {
  expectInteger("clockHands", "trainedLength", trainedLength, 1);
  expectInteger("clockHands", "targetLength", targetLength, 1);
  if (trained.length !== used.length) {
    throw new RangeError(
      `clockHands: expected as many used frequencies as trained ones (${trained.length}), got ${show(used.length)}`,
    );
  }
  const turn = 2 * Math.PI;
  const seenDistance = Math.min(trainedLength, window ?? trainedLength);
  const targetDistance = Math.min(targetLength, window ?? targetLength);
  return Array.from({ length: trained.length }, (_, pair) => {
    const before = trained[pair]!;
    const now = used[pair]!;
    const turnsInTraining = (trainedLength * before) / turn;
    const turnsAtTarget = (targetLength * now) / turn;
    const turnsAtTargetUnscaled = (targetLength * before) / turn;
    // A scaling that ends exactly where training did may miss it by rounding.
    const shown = seenDistance * before * (1 + 1e-12);
    const complete = shown >= turn;
    return {
      pair,
      wavelength: now === 0 ? null : turn / now,
      trainedWavelength: before === 0 ? null : turn / before,
      turnsInTraining,
      turnsAtTarget,
      turnsAtTargetUnscaled,
      seen: complete || targetDistance * now <= shown,
      seenUnscaled: complete || targetDistance * before <= shown,
    };
  });
}
