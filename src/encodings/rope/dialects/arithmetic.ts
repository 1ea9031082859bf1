// The expressions that engines in Python share, written once for two arithmetics: float64, or float32 with a rounding
// after every operation as tensors do it. Orders of operation are torch's: x / tensor is x · (1 / tensor), a Python
// number meets a float32 tensor as float32. powf is taken as correctly rounded (torch's is within an ulp of that).

import { naturalLogarithm, power } from "../../numerics/power.ts";

export interface Arithmetic {
  /** Rounds the result of one operation. */
  readonly round: (x: number) => number;
  /** base^exponent, of a base that is rounded first. */
  readonly pow: (base: number, exponent: number) => number;
}

const exact: Arithmetic = { round: (x) => x, pow: power };

const single: Arithmetic = {
  round: Math.fround,
  pow: (base, exponent) => Math.fround(power(Math.fround(base), exponent)),
};

export function arithmeticOf(float32: boolean | undefined): Arithmetic {
  return float32 === true ? single : exact;
}

/** base^(2i/exponentDim) for i < pairs: the periods over 2π. */
export function periods(
  a: Arithmetic,
  base: number,
  exponentDim: number,
  pairs: number = exponentDim / 2,
): Float64Array {
  return Float64Array.from({ length: pairs }, (_, i) => a.pow(base, a.round((2 * i) / exponentDim)));
}

/** 1 / base^(2i/exponentDim). */
export function geometric(
  a: Arithmetic,
  base: number,
  exponentDim: number,
  pairs: number = exponentDim / 2,
): Float64Array {
  return periods(a, base, exponentDim, pairs).map((x) => a.round(1 / x));
}

/** base · stretch^(d/(d−2)) in Python's float64, as every engine but transformers' dynamic update has it. */
export function stretchedBase(base: number, stretch: number, rotaryDim: number): number {
  return stretch === 1 ? base : base * power(stretch, rotaryDim / (rotaryDim - 2));
}

export interface YarnRange {
  readonly originalLength: number;
  readonly betaFast: number;
  readonly betaSlow: number;
  readonly truncate: boolean;
}

/** low and high of YaRN's ramp in float64, as the Python engines compute them. */
export function yarnEnds(base: number, rotaryDim: number, range: YarnRange): { low: number; high: number } {
  const at = (turns: number) =>
    (rotaryDim * naturalLogarithm(range.originalLength / (turns * 2 * Math.PI))) / (2 * naturalLogarithm(base));
  let low = at(range.betaFast);
  let high = at(range.betaSlow);
  if (range.truncate) {
    low = Math.floor(low);
    high = Math.ceil(high);
  }
  low = Math.max(low, 0);
  high = Math.min(high, rotaryDim - 1);
  return low === high ? { low, high: high + 0.001 } : { low, high };
}

/** How much of pair i is interpolated, 0 to 1. */
export function yarnRamp(a: Arithmetic, { low, high }: { low: number; high: number }, pair: number): number {
  return Math.min(Math.max(a.round(a.round(pair - a.round(low)) / a.round(high - low)), 0), 1);
}

/** YaRN as transformers, vLLM and both exllamas write it. */
export function yarn(
  a: Arithmetic,
  base: number,
  rotaryDim: number,
  factor: number,
  ends: { low: number; high: number },
): Float64Array {
  return periods(a, base, rotaryDim).map((period, i) => {
    const kept = a.round(1 - yarnRamp(a, ends, i));
    const interpolated = a.round(1 / a.round(a.round(factor) * period));
    const extrapolated = a.round(1 / period);
    return a.round(a.round(interpolated * a.round(1 - kept)) + a.round(extrapolated * kept));
  });
}

export interface Llama3Regions {
  readonly factor: number;
  readonly originalLength: number;
  readonly low: number;
  readonly high: number;
}

/** Llama 3.1's three regions; low = high leaves no pair between. */
export function llama3(a: Arithmetic, frequencies: Float64Array, regions: Llama3Regions): Float64Array {
  const { originalLength, low, high } = regions;
  const factor = a.round(regions.factor);
  const longest = a.round(originalLength / low);
  const shortest = a.round(originalLength / high);
  return frequencies.map((w) => {
    const wavelength = a.round(a.round(1 / w) * a.round(2 * Math.PI));
    if (wavelength > longest) return a.round(w / factor);
    if (wavelength < shortest || high === low) return w;
    const turns = a.round(a.round(1 / wavelength) * originalLength);
    const kept = a.round(a.round(turns - a.round(low)) / a.round(high - low));
    return a.round(a.round(a.round(a.round(1 - kept) * w) / factor) + a.round(kept * w));
  });
}

/** 1 / (ext_i · base^(2i/d)). */
export function divided(a: Arithmetic, base: number, rotaryDim: number, divisors: readonly number[]): Float64Array {
  return periods(a, base, rotaryDim).map((period, i) => a.round(1 / a.round(a.round(divisors[i]!) * period)));
}

/** √(1 + ln(max/original) / ln original), 1 for a ratio of at most 1: what engines derive for longrope from lengths. */
export function longRopeMagnitude(ratio: number, originalLength: number): number {
  return ratio <= 1 ? 1 : Math.sqrt(1 + naturalLogarithm(ratio) / naturalLogarithm(originalLength));
}

/** m(s, k) = 0.1 · k · ln s + 1, and 1 for s ≤ 1. */
export function magnitude(factor: number, mscale = 1): number {
  return factor <= 1 ? 1 : 0.1 * mscale * naturalLogarithm(factor) + 1;
}
