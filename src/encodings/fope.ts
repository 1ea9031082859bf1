// FoPE, Fourier position embedding (Hua et al. 2025, 2412.17739): each rotated pair carries a learned mixture of the
// frequencies that turned at least once in training, and the slower ones are replaced by frequency 0. Its tables are no
// rotation: cos² + sin² is not 1. They belong to one head; a checkpoint with coefficients a head has one encoding each.

import { expectEven, expectFinite, expectInteger, expectPositive, show } from "./errors.ts";
import { powers } from "./numerics/power.ts";
import { sinCosOfProducts } from "./numerics/sincos.ts";
import type { QueryKeyEncoding, RotaryLayout, RotaryTables } from "./position-encoding.ts";

export interface FopeOptions {
  /** D, even. */
  readonly headDim: number;
  /** 10000 when absent. */
  readonly ropeTheta?: number;
  /** Keeps the frequencies above 2π/trainedLength; or give numInverseFrequencies. */
  readonly trainedLength?: number;
  /** Keeps the first this many frequencies instead (`num_inv_freq`). */
  readonly numInverseFrequencies?: number;
  /** [K, M], row-major, K kept frequencies, M mixed pairs: pair m's cosine is Σ_k cos(p·ω_k) · coefficients[k, m]. M is
   *  K in vLLM, min(K, D/4) in the authors' code; at most D/2. */
  readonly cosCoefficients: ArrayLike<number>;
  /** [K, M], the same for the sines. */
  readonly sinCoefficients: ArrayLike<number>;
  /** What the pairs past the mixed ones hold. zero-frequency: cos 1, sin 0, so that their channels pass unchanged, as
   *  the paper says (and vLLM since its fix). ones: cos 1, sin 1, what the authors' code computes and its checkpoints
   *  were trained with: channel j becomes x_j − x_(j+P). There is no default: one of them is wrong for any checkpoint. */
  readonly padding: "zero-frequency" | "ones";
  /** "half", the authors', when absent. */
  readonly layout?: RotaryLayout;
}

/**
 * The frequencies that FoPE keeps: those whose wavelength is below the trained length, ω_i > 2π/L.
 *
 * Hua et al. 2025 (2412.17739), section 4 ("clip to floor": a pair that never turns once is under-trained).
 *
 * @returns K inverse frequencies in radians a token, fastest first
 * @throws RangeError unless exactly one of trainedLength and numInverseFrequencies is given, or when none is kept
 * @example
 * ```ts
 * import { fopeFrequencies } from "longhand/encodings";
 * fopeFrequencies({ headDim: 8, trainedLength: 512 }); // => [1, 0.1]
 * ```
 */
export function fopeFrequencies(
  options: Pick<FopeOptions, "headDim" | "ropeTheta" | "trainedLength" | "numInverseFrequencies">,
): Float64Array {
  const who = "fopeFrequencies";
  const headDim = expectEven(who, "headDim", options.headDim);
  const theta = expectPositive(who, "ropeTheta", options.ropeTheta ?? 10000);
  const { trainedLength, numInverseFrequencies } = options;
  if ((trainedLength === undefined) === (numInverseFrequencies === undefined)) {
    throw new RangeError(
      `${who}: expected trainedLength or numInverseFrequencies, got ${trainedLength === undefined ? "neither" : "both"}`,
    );
  }
  const exponents = Float64Array.from({ length: headDim / 2 }, (_, i) => (2 * i) / headDim);
  const all = powers(theta, exponents).map((wave) => 1 / wave);
  if (numInverseFrequencies !== undefined) {
    expectInteger(who, "numInverseFrequencies", numInverseFrequencies, 1);
    return all.slice(0, numInverseFrequencies);
  }
  const floor = (2 * Math.PI) / expectPositive(who, "trainedLength", trainedLength!);
  const kept = all.filter((omega) => omega > floor);
  if (kept.length === 0) {
    throw new RangeError(`${who}: expected a trainedLength above 2π, in which some pair turns, got ${trainedLength}`);
  }
  return kept;
}

/**
 * FoPE of one head as an encoding, from its learned coefficients.
 *
 * Hua et al. 2025 (2412.17739), section 4 and the authors' code. The coefficients start as the identity plus Xavier
 * noise; with the identity and zero-frequency padding FoPE is RoPE without its slowest pairs.
 *
 * @throws RangeError when the coefficients are not [K, M] with M ≤ D/2, or as `fopeFrequencies`
 * @example
 * ```ts
 * import { fope } from "longhand/encodings";
 * const identity = [1, 0, 0, 1];
 * const encoding = fope({
 *   headDim: 8, trainedLength: 512, cosCoefficients: identity, sinCoefficients: identity, padding: "zero-frequency",
 * });
 * encoding.queryTables([1], 1).cos; // => [0.5403023058681398, 0.9950041652780258, 1, 1]
 * encoding.queryTables([1], 1).sin; // => [0.8414709848078965, 0.09983341664682815, 0, 0]
 * ```
 */
export function fope(options: FopeOptions): QueryKeyEncoding & { readonly inverseFrequencies: Float64Array } {
  const who = "fope";
  const { headDim, padding } = options;
  const layout = options.layout ?? "half";
  if (layout !== "half" && layout !== "interleaved") {
    throw new RangeError(`${who}: expected layout to be "half" or "interleaved", got ${show(layout)}`);
  }
  if (padding !== "zero-frequency" && padding !== "ones") {
    throw new RangeError(`${who}: expected padding to be "zero-frequency" or "ones", got ${show(padding)}`);
  }
  const omegas = fopeFrequencies(options);
  const pairs = headDim / 2;
  const cosCoefficients = Float64Array.from(options.cosCoefficients);
  const sinCoefficients = Float64Array.from(options.sinCoefficients);
  const mixed = cosCoefficients.length / omegas.length;
  if (!Number.isInteger(mixed) || mixed < 1 || mixed > pairs || sinCoefficients.length !== cosCoefficients.length) {
    throw new RangeError(
      `${who}: expected cosCoefficients and sinCoefficients to be [${omegas.length}, M] with M from 1 to ${pairs}, ` +
        `got ${cosCoefficients.length} and ${sinCoefficients.length} numbers`,
    );
  }

  function tables(positions: ArrayLike<number>): RotaryTables {
    for (let t = 0; t < positions.length; t++) expectFinite(who, "positions", positions[t]!);
    const kept = omegas.length;
    const baseCos = new Float64Array(positions.length * kept);
    const baseSin = new Float64Array(positions.length * kept);
    sinCosOfProducts(positions, omegas, 1, baseSin, baseCos);
    const cos = new Float64Array(positions.length * pairs).fill(1);
    const sin = new Float64Array(positions.length * pairs).fill(padding === "ones" ? 1 : 0);
    for (let t = 0; t < positions.length; t++) {
      for (let m = 0; m < mixed; m++) {
        let c = 0;
        let s = 0;
        for (let k = 0; k < kept; k++) {
          c += baseCos[t * kept + k]! * cosCoefficients[k * mixed + m]!;
          s += baseSin[t * kept + k]! * sinCoefficients[k * mixed + m]!;
        }
        cos[t * pairs + m] = c;
        sin[t * pairs + m] = s;
      }
    }
    return { cos, sin };
  }

  return {
    site: "query-key",
    name: "fope",
    headDim,
    rotaryDim: headDim,
    layout,
    inverseFrequencies: omegas,
    dependsOnLength: false,
    queryTables: tables,
    keyTables: tables,
  };
}
