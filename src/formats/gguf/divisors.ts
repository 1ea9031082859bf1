// What a converter baked into rope_freqs.weight: a divisor for each inverse frequency, ω_i / divisor_i. Llama 3's
// scaling and Gemma 4's unrotated channels are recovered from the numbers; anything else stays a table.

import { powers } from "../../encodings/numerics/power.ts";
import type { Llama3Rope, ProportionalRope, TableRope } from "../../encodings/rope/scaling/parameters.ts";

/** Divisors are float32, formed from float32 wavelengths: a large divisor carries the rounding of both. */
const tolerance = 4e-6;
/** From here on a divisor means that the channel must not turn; Gemma 4's converter writes 1e30. */
export const stillDivisor = 1e20;

export type RopeFromDivisors =
  | Llama3Rope
  | ProportionalRope
  | TableRope
  | { readonly ropeType: "default"; readonly ropeTheta: number };

/**
 * The rotary settings that give these divisors.
 *
 * llama3: 1/divisor = (1 − t)/s + t with t = (L/λ − low)/(high − low) clamped to [0, 1]. t is a straight line in 1/λ,
 * so the pairs between the regions give L/low and high/low by least squares; s is the largest divisor. The scale of
 * (L, low, high) is free: low = 1 is taken, as every shipped model has it.
 *
 * @param divisors P numbers above 0
 * @param ropeTheta b
 * @param rotaryDim d = 2P
 * @param knownLengths original lengths to try where the divisors alone leave a choice, likeliest first
 * @example
 * ```ts
 * import { ropeFromDivisors } from "longhand/formats";
 * ropeFromDivisors([1, 1e30], 1e6, 4); // => { ropeType: "proportional", ropeTheta: 1e6, partialRotaryFactor: 0.5 }
 * ```
 */
export function ropeFromDivisors(
  divisors: readonly number[],
  ropeTheta: number,
  rotaryDim: number,
  knownLengths: readonly number[] = [8192],
): RopeFromDivisors {
  const base = powers(
    ropeTheta,
    divisors.map((_, i) => (2 * i) / rotaryDim),
  );
  const frequencies = base.map((power) => 1 / power);
  if (divisors.every((divisor) => divisor === 1)) return { ropeType: "default", ropeTheta };

  const turning = divisors.findIndex((divisor) => divisor >= stillDivisor);
  if (turning >= 1 && divisors.every((divisor, i) => (i < turning ? divisor === 1 : divisor >= stillDivisor))) {
    return { ropeType: "proportional", ropeTheta, partialRotaryFactor: turning / divisors.length };
  }
  return (
    llama3Of(divisors, ropeTheta, frequencies, knownLengths) ?? {
      ropeType: "table",
      ropeTheta,
      inverseFrequencies: divisors.map((divisor, i) => (divisor >= stillDivisor ? 0 : frequencies[i]! / divisor)),
    }
  );
}

function llama3Of(
  divisors: readonly number[],
  ropeTheta: number,
  frequencies: ArrayLike<number>,
  knownLengths: readonly number[],
): Llama3Rope | null {
  const factor = Math.max(...divisors);
  if (!(factor > 1 && factor < stillDivisor)) return null;
  const reproduces = (originalMaxPositionEmbeddings: number, highFreqFactor: number): Llama3Rope | null => {
    for (let i = 0; i < divisors.length; i++) {
      const turns = (originalMaxPositionEmbeddings * frequencies[i]!) / (2 * Math.PI);
      const kept = Math.min(Math.max((turns - 1) / (highFreqFactor - 1), 0), 1);
      const divisor = 1 / ((1 - kept) / factor + kept);
      if (Math.abs(divisor - divisors[i]!) > tolerance * divisor) return null;
    }
    return { ropeType: "llama3", ropeTheta, factor, originalMaxPositionEmbeddings, lowFreqFactor: 1, highFreqFactor };
  };

  // t of the pairs strictly between the regions, against 1/λ.
  const points: { x: number; t: number }[] = [];
  divisors.forEach((divisor, i) => {
    const t = (1 / divisor - 1 / factor) / (1 - 1 / factor);
    if (t > 1e-4 && t < 1 - 1e-4) points.push({ x: frequencies[i]! / (2 * Math.PI), t });
  });
  if (points.length < 2) {
    for (const length of knownLengths) {
      const found = reproduces(length, 4);
      if (found !== null) return found;
    }
    return null;
  }
  const meanX = points.reduce((sum, { x }) => sum + x, 0) / points.length;
  const meanT = points.reduce((sum, { t }) => sum + t, 0) / points.length;
  const slope =
    points.reduce((sum, { x, t }) => sum + (x - meanX) * (t - meanT), 0) /
    points.reduce((sum, { x }) => sum + (x - meanX) ** 2, 0);
  const intercept = meanT - slope * meanX;
  // t = (L·x − 1)/(high − 1): slope L/(high − 1), intercept −1/(high − 1).
  if (!(slope > 0 && intercept < 0)) return null;
  const spread = -1 / intercept;
  const length = slope * spread;
  const high = 1 + spread;
  const rounded = Number(high.toPrecision(3));
  return reproduces(Math.round(length), rounded) ?? reproduces(Math.round(length), high);
}
