// Seeded random numbers whose bits are the same on every JavaScript engine. The generator is xoshiro128**
// (Blackman and Vigna 2018, "Scrambled linear pseudorandom number generators"), its state filled by SplitMix64 from
// the seed, as its authors advise. Normals use Marsaglia's polar method with a logarithm of our own: Math.log and
// Math.cos differ between engines in the last bit, sums, products, quotients and square roots do not.

/** The generator's four words; what a checkpoint keeps to go on where it stopped. */
export type RandomState = readonly [number, number, number, number];

/** A stream of random numbers. Made by `random`; drawing from it advances it. */
export interface Random {
  /** The next 32 bits, as an integer in 0 .. 2^32 − 1. */
  bits(): number;
  /** Uniform in [0, 1): 53 bits, two draws. */
  uniform(): number;
  /** Uniform integer in 0 .. bound − 1, without bias (rejection). bound is an integer in 1 .. 2^32. */
  integer(bound: number): number;
  /** Standard normal: mean 0, variance 1. */
  normal(): number;
  /** `count` normals of this standard deviation, rounded to float32: initial weights. */
  normals(count: number, standardDeviation?: number): Float32Array;
  /** Shuffles in place (Fisher-Yates, from the end) and returns the same array. */
  shuffle<T extends { length: number; [index: number]: unknown }>(array: T): T;
  /** A stream of its own, seeded by the next 64 bits: what one part draws does not move another's. */
  fork(): Random;
  /** The state; `randomFrom` goes on from it. A normal that was drawn in a pair and not yet given out is not in it. */
  state(): RandomState;
}

/**
 * A random stream from a seed.
 *
 * @param seed an integer, 0 .. 2^53 − 1, or a bigint of 64 bits
 * @throws RangeError for a seed that is not one of these
 * @example
 * ```ts
 * import { random } from "longhand/tensor";
 * const stream = random(7);
 * stream.shuffle([0, 1, 2, 3, 4, 5]).length; // => 6
 * ```
 */
export function random(seed: number | bigint): Random {
  if (typeof seed === "number" && (!Number.isSafeInteger(seed) || seed < 0)) {
    throw new RangeError(`random: expected a seed that is an integer of at least 0, got ${seed}`);
  }
  let state = BigInt.asUintN(64, BigInt(seed));
  const splitMix = (): bigint => {
    state = BigInt.asUintN(64, state + 0x9e3779b97f4a7c15n);
    let z = state;
    z = BigInt.asUintN(64, (z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
    z = BigInt.asUintN(64, (z ^ (z >> 27n)) * 0x94d049bb133111ebn);
    return z ^ (z >> 31n);
  };
  const [a, b] = [splitMix(), splitMix()];
  const low = (word: bigint): number => Number(word & 0xffffffffn);
  return randomFrom([low(a), low(a >> 32n), low(b), low(b >> 32n)]);
}

/** The stream that goes on from a state. Throws RangeError when all four words are 0: that stream is constant. */
export function randomFrom(state: RandomState): Random {
  let [s0, s1, s2, s3] = state.map((word) => word >>> 0) as [number, number, number, number];
  if ((s0 | s1 | s2 | s3) === 0) throw new RangeError("random: expected a state with a bit set, got four zeros");
  let spare = Number.NaN;

  const rotate = (x: number, k: number): number => (x << k) | (x >>> (32 - k));
  const bits = (): number => {
    const result = Math.imul(rotate(Math.imul(s1, 5), 7), 9) >>> 0;
    const t = s1 << 9;
    s2 ^= s0;
    s3 ^= s1;
    s1 ^= s2;
    s0 ^= s3;
    s2 ^= t;
    s3 = rotate(s3, 11);
    return result;
  };
  // The first draw gives the upper 27 bits, the second the lower 26.
  const uniform = (): number => ((bits() >>> 5) * 67108864 + (bits() >>> 6)) / 9007199254740992;
  const integer = (bound: number): number => {
    if (!Number.isInteger(bound) || bound < 1 || bound > 4294967296) {
      throw new RangeError(`random: expected a bound that is an integer in 1 .. 2^32, got ${bound}`);
    }
    const limit = 4294967296 - (4294967296 % bound);
    let draw = bits();
    while (draw >= limit) draw = bits();
    return draw % bound;
  };
  const normal = (): number => {
    if (!Number.isNaN(spare)) {
      const out = spare;
      spare = Number.NaN;
      return out;
    }
    for (;;) {
      const u = 2 * uniform() - 1;
      const v = 2 * uniform() - 1;
      const s = u * u + v * v;
      if (s === 0 || s >= 1) continue;
      const scale = Math.sqrt((-2 * portableLog(s)) / s);
      spare = v * scale;
      return u * scale;
    }
  };
  return {
    bits,
    uniform,
    integer,
    normal,
    normals(count, standardDeviation = 1) {
      const out = new Float32Array(count);
      for (let i = 0; i < count; i++) out[i] = normal() * standardDeviation;
      return out;
    },
    shuffle(array) {
      for (let i = array.length - 1; i > 0; i--) {
        const j = integer(i + 1);
        const held = array[i];
        array[i] = array[j];
        array[j] = held;
      }
      return array;
    },
    fork: () => random((BigInt(bits()) << 32n) | BigInt(bits())),
    state: () => [s0 >>> 0, s1 >>> 0, s2 >>> 0, s3 >>> 0],
  };
}

const word = new DataView(new ArrayBuffer(8));

/** Natural logarithm of a normal positive number from basic arithmetic alone: x = m · 2^e with m in [√½, √2), and
 *  ln m = 2 artanh((m − 1)/(m + 1)), whose series converges below 1e-17 in twelve terms. */
function portableLog(x: number): number {
  word.setFloat64(0, x);
  let exponent = ((word.getUint32(0) >>> 20) & 0x7ff) - 1023;
  word.setUint32(0, (word.getUint32(0) & 0x000fffff) | 0x3ff00000);
  let mantissa = word.getFloat64(0);
  if (mantissa > Math.SQRT2) {
    mantissa /= 2;
    exponent++;
  }
  const z = (mantissa - 1) / (mantissa + 1);
  const square = z * z;
  let sum = 0;
  for (let k = 25; k >= 1; k -= 2) sum = sum * square + 1 / k;
  return exponent * Math.LN2 + 2 * z * sum;
}
