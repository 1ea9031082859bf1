// One rotary scaling: what its parameters may hold, and how it computes. Each file beside this one exports one;
// index.ts holds them as one total table, so that a new RopeType does not compile without its scaling.

import { expectInteger, expectPositive, show } from "../../errors.ts";
import { naturalLogarithm } from "../../numerics/power.ts";
import type { ParametersOf, RopeConfig, RopeFrequencies, RopeType } from "./parameters.ts";

/** What one key of rope_parameters may hold. */
export interface KeyRule {
  /** positive: finite, above 0. nonNegative: finite, at least 0. share: in (0, 1]; length: an integer of at least 1.
   *  pairs: P finite numbers above 0. frequencies: P finite numbers of at least 0. */
  readonly kind: "positive" | "nonNegative" | "share" | "length" | "boolean" | "pairs" | "frequencies";
  readonly required: boolean;
  readonly nullable?: boolean;
}

export interface RopeScaling<T extends RopeType> {
  readonly ropeType: T;
  /** Rules of every key but ropeType; a key without a rule is unknown. */
  readonly keys: { readonly [K in Exclude<keyof ParametersOf<T>, "ropeType">]-?: KeyRule };
  /** True when the frequencies change with the length of the sequence. */
  dependsOnLength(rope: ParametersOf<T>): boolean;
  /** Frequencies for a whole sequence of this many tokens. Pure: nothing is cached. */
  compute(config: RopeConfig<ParametersOf<T>>, sequenceLength: number): RopeFrequencies;
}

export const positive: KeyRule = { kind: "positive", required: true };
export const length: KeyRule = { kind: "length", required: true };
export const optional = (kind: KeyRule["kind"]): KeyRule => ({ kind, required: false });
export const nullable = (kind: KeyRule["kind"], required = false): KeyRule => ({ kind, required, nullable: true });

/** The keys that every type has. */
export const commonKeys: { readonly ropeTheta: KeyRule; readonly partialRotaryFactor: KeyRule } = {
  ropeTheta: positive,
  partialRotaryFactor: optional("share"),
};

/**
 * d: how many channels of a head are rotated, int(headDim · partialRotaryFactor).
 *
 * @throws RangeError when that is odd or below 2, or the share is not in (0, 1]
 * @example
 * ```ts
 * import { rotaryDimOf } from "longhand/encodings";
 * rotaryDimOf(80, 0.4); // => 32
 * ```
 * Source: transformers 5.24, which rounds the product down.
 */
export function rotaryDimOf(headDim: number, partialRotaryFactor = 1): number {
  expectInteger("rope", "headDim", headDim, 1);
  if (!(partialRotaryFactor > 0 && partialRotaryFactor <= 1)) {
    throw new RangeError(`rope: expected partialRotaryFactor in (0, 1], got ${show(partialRotaryFactor)}`);
  }
  const rotaryDim = Math.trunc(headDim * partialRotaryFactor);
  if (rotaryDim < 2 || rotaryDim % 2 !== 0) {
    throw new RangeError(
      `rope: expected an even number of rotated channels, at least 2, got ${rotaryDim} ` +
        `(headDim ${headDim}, partialRotaryFactor ${partialRotaryFactor})`,
    );
  }
  return rotaryDim;
}

/** Throws RangeError unless sequenceLength is an integer of at least 1. */
export function expectSequenceLength(ropeType: RopeType, sequenceLength: number): number {
  return expectInteger(ropeType, "sequenceLength", sequenceLength, 1);
}

/**
 * m(s, k) = 0.1 · k · ln s + 1, and 1 for s ≤ 1: what YaRN multiplies cos and sin by.
 *
 * @param factor s, above 0
 * @param mscale k, 1 when absent
 * @throws RangeError for a factor that is not above 0
 * @example
 * ```ts
 * import { yarnMagnitude } from "longhand/encodings";
 * yarnMagnitude(4); // => 1.138629436111989
 * ```
 * Source: YaRN (2309.00071), section 3.4; k as in DeepSeek-V2's code.
 */
export function yarnMagnitude(factor: number, mscale = 1): number {
  expectPositive("yarn", "factor", factor);
  return factor <= 1 ? 1 : 0.1 * mscale * naturalLogarithm(factor) + 1;
}
