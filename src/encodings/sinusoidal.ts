// Sinusoidal absolute positions (Vaswani et al. 2017, 1706.03762, section 3.5): one clock hand a pair of channels,
// added to the token embeddings. Hand j turns by ω_j = theta^(−e_j) radians a token; its channels hold (sin, cos).
// Two layouts are in use, and two exponents: they are different tables, and a checkpoint works with its own only.

import { expectEven, expectFinite, expectInteger, expectPositive, show } from "./errors.ts";
import { powers } from "./numerics/power.ts";
import { sinCosOfProducts } from "./numerics/sincos.ts";
import type { EmbeddingEncoding } from "./position-encoding.ts";

export interface SinusoidalOptions {
  /** C, even. */
  readonly hiddenSize: number;
  /** 10000 when absent. */
  readonly theta?: number;
  /** Where hand j is. interleaved: channels (2j, 2j + 1), as in the paper, XLM and DistilBERT. concatenated: (j, j +
   *  C/2), all sines before all cosines, as in tensor2tensor, fairseq, Marian, Whisper. interleaved when absent. */
  readonly layout?: "interleaved" | "concatenated";
  /** e_j. vaswani: j/(C/2), the paper's. fairseq: j/(C/2 − 1), so that the last hand turns by exactly 1/theta: in
   *  tensor2tensor, fairseq (XGLM, FSMT, SpeechT5), Marian's own code and Whisper. transformers' MarianMTModel has the
   *  paper's. vaswani when absent. */
  readonly exponent?: "vaswani" | "fairseq";
}

/** One hand of the clock. */
export interface SinusoidalHand {
  /** j, counted from the fastest. */
  readonly hand: number;
  /** ω_j in radians a token. */
  readonly inverseFrequency: number;
  /** Tokens a turn: 2π/ω_j. */
  readonly wavelength: number;
}

function frequencies(who: string, options: SinusoidalOptions): Float64Array {
  const half = expectEven(who, "hiddenSize", options.hiddenSize) / 2;
  const theta = expectPositive(who, "theta", options.theta ?? 10000);
  const exponent = options.exponent ?? "vaswani";
  const hands = (divisor: number) =>
    powers(
      theta,
      Float64Array.from({ length: half }, (_, j) => j / divisor),
    ).map((wave) => 1 / wave);
  if (exponent === "vaswani") return hands(half);
  if (exponent === "fairseq") {
    if (half < 2) throw new RangeError(`${who}: expected hiddenSize of at least 4 with exponent "fairseq", got 2`);
    return hands(half - 1);
  }
  throw new RangeError(`${who}: expected exponent to be "vaswani" or "fairseq", got ${show(exponent)}`);
}

/** The channels of hand j: [of the sine, of the cosine]. */
function channels(who: string, options: SinusoidalOptions): (hand: number) => readonly [number, number] {
  const layout = options.layout ?? "interleaved";
  if (layout === "interleaved") return (j) => [2 * j, 2 * j + 1];
  if (layout === "concatenated") return (j) => [j, j + options.hiddenSize / 2];
  throw new RangeError(`${who}: expected layout to be "interleaved" or "concatenated", got ${show(layout)}`);
}

/**
 * The table of sinusoidal positions: channel pairs (sin(p·ω_j), cos(p·ω_j)), ω_j = theta^(−j/(C/2)).
 *
 * Vaswani et al. 2017 (1706.03762), section 3.5.
 *
 * @param positions T positions in tokens; any finite numbers (an interpolated position is a fraction)
 * @returns [T, C]
 * @throws RangeError for an odd hiddenSize, an unknown layout or exponent, or a position that is not finite
 * @example
 * ```ts
 * import { sinusoidalTable } from "longhand/encodings";
 * sinusoidalTable([0, 1], { hiddenSize: 4 });
 * // => [0, 1, 0, 1, 0.8414709848078965, 0.5403023058681398, 0.009999833334166664, 0.9999500004166653]
 * ```
 */
export function sinusoidalTable(positions: ArrayLike<number>, options: SinusoidalOptions): Float64Array {
  const who = "sinusoidalTable";
  const omegas = frequencies(who, options);
  const at = channels(who, options);
  for (let t = 0; t < positions.length; t++) expectFinite(who, "positions", positions[t]!);
  const half = omegas.length;
  const sin = new Float64Array(positions.length * half);
  const cos = new Float64Array(positions.length * half);
  sinCosOfProducts(positions, omegas, 1, sin, cos);
  const out = new Float64Array(positions.length * 2 * half);
  for (let j = 0; j < half; j++) {
    const [sine, cosine] = at(j);
    for (let t = 0; t < positions.length; t++) {
      out[t * 2 * half + sine] = sin[t * half + j]!;
      out[t * 2 * half + cosine] = cos[t * half + j]!;
    }
  }
  return out;
}

/**
 * The hands of the sinusoidal clock, fastest first: 128 channels are 64 hands, from 6.283 to 54,410 tokens a turn.
 *
 * Vaswani et al. 2017 (1706.03762), section 3.5: "wavelengths from 2π to 10000 · 2π", which the last hand does not
 * quite reach (the exponent "fairseq" does).
 *
 * @returns C/2 hands
 * @throws RangeError for an odd hiddenSize, a theta that is not positive or an unknown exponent
 * @example
 * ```ts
 * import { sinusoidalHands } from "longhand/encodings";
 * const hands = sinusoidalHands(128);
 * hands.length; // => 64
 * hands[0].wavelength; // => 6.283185307179586
 * Math.round(hands[63].wavelength); // => 54410
 * ```
 */
export function sinusoidalHands(
  hiddenSize: number,
  theta = 10000,
  exponent: "vaswani" | "fairseq" = "vaswani",
): SinusoidalHand[] {
  return Array.from(frequencies("sinusoidalHands", { hiddenSize, theta, exponent }), (inverseFrequency, hand) => ({
    hand,
    inverseFrequency,
    wavelength: (2 * Math.PI) / inverseFrequency,
  }));
}

/**
 * M_R, which moves every position by R at once: P(k + R) = M_R · P(k) for every k.
 *
 * A rotation of each hand by R·ω_j: on its channels (sin, cos) the block [[cos, sin], [−sin, cos]]. It does not depend
 * on k, which is why attention can read relative positions from absolute ones; M_R · M_S = M_(R+S), M_(−R) = M_Rᵀ.
 * Vaswani et al. 2017 (1706.03762), section 3.5: "PE(pos + k) can be represented as a linear function of PE(pos)".
 *
 * @param offset R in tokens, any finite number
 * @returns [C, C], row-major: row r gives channel r of P(k + R)
 * @throws RangeError for an odd hiddenSize, an unknown layout or exponent, or an offset that is not finite
 * @example
 * ```ts
 * import { relativeMatrix } from "longhand/encodings";
 * relativeMatrix(1, { hiddenSize: 2 });
 * // => [0.5403023058681398, 0.8414709848078965, -0.8414709848078965, 0.5403023058681398]
 * ```
 */
export function relativeMatrix(offset: number, options: SinusoidalOptions): Float64Array {
  const who = "relativeMatrix";
  const omegas = frequencies(who, options);
  const at = channels(who, options);
  expectFinite(who, "offset", offset);
  const size = 2 * omegas.length;
  const sin = new Float64Array(omegas.length);
  const cos = new Float64Array(omegas.length);
  sinCosOfProducts([offset], omegas, 1, sin, cos);
  const out = new Float64Array(size * size);
  for (let j = 0; j < omegas.length; j++) {
    const [sine, cosine] = at(j);
    out[sine * size + sine] = cos[j]!;
    out[sine * size + cosine] = sin[j]!;
    out[cosine * size + sine] = 0 - sin[j]!;
    out[cosine * size + cosine] = cos[j]!;
  }
  return out;
}

/**
 * Sinusoidal positions as an encoding. The formula has no limit; `maxPositions` sets one where a checkpoint has one.
 *
 * Vaswani et al. 2017 (1706.03762), section 3.5.
 *
 * @throws RangeError for an odd hiddenSize, an unknown layout or exponent; `rows` throws for a position past the limit
 * @example
 * ```ts
 * import { sinusoidal } from "longhand/encodings";
 * const encoding = sinusoidal({ hiddenSize: 4, layout: "concatenated" });
 * encoding.rows([0]); // => [0, 0, 1, 1]
 * encoding.maxPositions; // => Infinity
 * ```
 */
export function sinusoidal(
  options: SinusoidalOptions & { readonly maxPositions?: number },
): EmbeddingEncoding & Required<Omit<SinusoidalOptions, "hiddenSize">> & { readonly hands: readonly SinusoidalHand[] } {
  const maxPositions = options.maxPositions ?? Number.POSITIVE_INFINITY;
  if (maxPositions !== Number.POSITIVE_INFINITY) expectInteger("sinusoidal", "maxPositions", maxPositions, 1);
  channels("sinusoidal", options);
  return {
    site: "embedding",
    name: "sinusoidal",
    hiddenSize: options.hiddenSize,
    maxPositions,
    theta: options.theta ?? 10000,
    layout: options.layout ?? "interleaved",
    exponent: options.exponent ?? "vaswani",
    hands: sinusoidalHands(options.hiddenSize, options.theta, options.exponent),
    rows(positions) {
      for (let t = 0; t < positions.length; t++) {
        if (positions[t]! >= maxPositions) {
          throw new RangeError(
            `sinusoidal: expected positions below maxPositions ${maxPositions}, got ${show(positions[t])}`,
          );
        }
      }
      return sinusoidalTable(positions, options);
    },
  };
}
