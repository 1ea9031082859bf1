// x^y, ln and exp for positive x in float64, rounded correctly (but for one case in about 2^40): the same bits in every
// JavaScript engine. Math.pow may differ by an ulp between engines, and V8's differs from the C library's for one
// inverse frequency in ten; an ulp of a frequency is an angle error of 1e-10 at a million tokens.
// Works in double-double arithmetic (Dekker 1971): a value is the unevaluated sum high + low.

import { show } from "../errors.ts";

interface DoubleDouble {
  readonly high: number;
  readonly low: number;
}

const SPLIT = 134217729; // 2^27 + 1

function twoSum(a: number, b: number): DoubleDouble {
  const high = a + b;
  const v = high - a;
  return { high, low: a - (high - v) + (b - v) };
}

function quickTwoSum(a: number, b: number): DoubleDouble {
  const high = a + b;
  return { high, low: b - (high - a) };
}

function twoProduct(a: number, b: number): DoubleDouble {
  const high = a * b;
  const ta = SPLIT * a;
  const ah = ta - (ta - a);
  const al = a - ah;
  const tb = SPLIT * b;
  const bh = tb - (tb - b);
  const bl = b - bh;
  return { high, low: ah * bh - high + ah * bl + al * bh + al * bl };
}

function add(a: DoubleDouble, b: DoubleDouble): DoubleDouble {
  const s = twoSum(a.high, b.high);
  const t = twoSum(a.low, b.low);
  const u = quickTwoSum(s.high, s.low + t.high);
  return quickTwoSum(u.high, u.low + t.low);
}

function multiply(a: DoubleDouble, b: DoubleDouble): DoubleDouble {
  const p = twoProduct(a.high, b.high);
  return quickTwoSum(p.high, p.low + (a.high * b.low + a.low * b.high));
}

function divide(a: DoubleDouble, b: DoubleDouble): DoubleDouble {
  const q1 = a.high / b.high;
  const r1 = add(a, multiply(b, { high: -q1, low: 0 }));
  const q2 = r1.high / b.high;
  const r2 = add(r1, multiply(b, { high: -q2, low: 0 }));
  const q3 = r2.high / b.high;
  return add(quickTwoSum(q1, q2), { high: q3, low: 0 });
}

const number = (x: number): DoubleDouble => ({ high: x, low: 0 });

// ln 2 to 107 bits.
const LN2: DoubleDouble = { high: 0.6931471805599453, low: 2.3190468138462996e-17 };

/** 1/12!, 1/11!, … 1/1!. */
const INVERSE_FACTORIALS: readonly DoubleDouble[] = Array.from({ length: 12 }, (_, i) => {
  let factorial = 1;
  for (let k = 2; k <= 12 - i; k++) factorial *= k;
  return divide(number(1), number(factorial));
});

/** e^a for a double-double a of moderate size, as a double-double and a power of two: value · 2^exponent. */
function expParts(a: DoubleDouble): { value: DoubleDouble; exponent: number } {
  const exponent = Math.round(a.high / LN2.high);
  const reduced = add(a, multiply(LN2, number(-exponent)));
  // |reduced| ≤ ln2/2; divide by 2^8 so that 12 Taylor terms reach 2^−106, then square eight times.
  const scale = 2 ** -8;
  const r = { high: reduced.high * scale, low: reduced.low * scale };
  // e^r − 1, kept without the 1 so that squaring loses nothing: r·(1 + r·(1/2! + r·(1/3! + …))).
  let sum = INVERSE_FACTORIALS[0]!;
  for (let k = 1; k < INVERSE_FACTORIALS.length; k++) sum = add(multiply(sum, r), INVERSE_FACTORIALS[k]!);
  sum = multiply(sum, r);
  // (1 + s)² − 1 = 2s + s²
  for (let k = 0; k < 8; k++) sum = add({ high: 2 * sum.high, low: 2 * sum.low }, multiply(sum, sum));
  return { value: add(number(1), sum), exponent };
}

/** ln x for finite x > 0, as a double-double. */
function logParts(x: number): DoubleDouble {
  // x = m · 2^k with m in [√½, √2), so that the result of x near 1 loses nothing.
  let k = 0;
  let m = x;
  if (m < 2 ** -1022) {
    m *= 2 ** 54;
    k -= 54;
  }
  while (m >= 2 ** 32) {
    m *= 2 ** -32;
    k += 32;
  }
  while (m < 2 ** -32) {
    m *= 2 ** 32;
    k -= 32;
  }
  while (m >= Math.SQRT2) {
    m /= 2;
    k++;
  }
  while (m < Math.SQRT1_2) {
    m *= 2;
    k--;
  }
  // Newton on e^y = m: y ← y + (m·e^−y − 1), twice, doubles the 50 bits of Math.log to over 106 each time.
  let y = number(Math.log(m));
  for (let step = 0; step < 2; step++) {
    const { value, exponent } = expParts({ high: -y.high, low: -y.low });
    const scaled = { high: value.high * 2 ** exponent, low: value.low * 2 ** exponent };
    y = add(y, add(multiply(number(m), scaled), number(-1)));
  }
  return add(y, multiply(LN2, number(k)));
}

function expectPositiveFinite(who: string, x: number): void {
  if (!(x > 0) || x === Infinity) throw new RangeError(`${who}: expected a finite number above 0, got ${show(x)}`);
}

/** Multiplies by 2^k in steps that stay finite. */
function scaleByPowerOfTwo(x: number, k: number): number {
  if (k > 1023) return x * 2 ** 1023 * 2 ** (k - 1023);
  if (k < -1022) return x * 2 ** -1022 * 2 ** (k + 1022);
  return x * 2 ** k;
}

/**
 * base^exponent for base > 0, correctly rounded to float64; the same bits in every JavaScript engine.
 *
 * @throws RangeError unless base is finite and above 0 and exponent is finite
 * @example
 * ```ts
 * import { power } from "longhand/encodings";
 * power(10000, 0.5); // => 100
 * power(10000, 2 / 128); // => 1.1547819846894583
 * ```
 * Source: double-double arithmetic, Dekker 1971, "A floating-point technique for extending the available precision".
 */
export function power(base: number, exponent: number): number {
  expectPositiveFinite("power", base);
  if (!Number.isFinite(exponent)) throw new RangeError(`power: expected a finite exponent, got ${show(exponent)}`);
  return powerOfLogarithm(base, logParts(base), exponent);
}

/**
 * base^exponent for many exponents of one base: as `power`, but the logarithm is taken once.
 *
 * @throws RangeError unless base is finite and above 0 and every exponent is finite
 * @example
 * ```ts
 * import { powers } from "longhand/encodings";
 * powers(10000, [0, 0.5, 1]); // => [1, 100, 10000]
 * ```
 * Source: as `power`.
 */
export function powers(base: number, exponents: ArrayLike<number>): Float64Array {
  expectPositiveFinite("powers", base);
  const logarithm = logParts(base);
  return Float64Array.from(exponents, (exponent) => {
    if (!Number.isFinite(exponent)) throw new RangeError(`powers: expected finite exponents, got ${show(exponent)}`);
    return powerOfLogarithm(base, logarithm, exponent);
  });
}

function powerOfLogarithm(base: number, logarithm: DoubleDouble, exponent: number): number {
  if (exponent === 0 || base === 1) return 1;
  if (exponent === 1) return base;
  const product = multiply(logarithm, number(exponent));
  if (product.high > 710) return Infinity;
  if (product.high < -746) return 0;
  const result = expParts(product);
  return scaleByPowerOfTwo(result.value.high, result.exponent);
}

/**
 * ln x, correctly rounded to float64; the same bits in every JavaScript engine.
 *
 * @throws RangeError unless x is finite and above 0
 * @example
 * ```ts
 * import { naturalLogarithm } from "longhand/encodings";
 * naturalLogarithm(4); // => 1.3862943611198906
 * ```
 * Source: as `power`.
 */
export function naturalLogarithm(x: number): number {
  expectPositiveFinite("naturalLogarithm", x);
  return logParts(x).high;
}
