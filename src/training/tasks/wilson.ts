// An interval for a share that was counted: right of all.

/**
 * Wilson's score interval of a share: (p̂ + z²/2n ± z·√(p̂(1 − p̂)/n + z²/4n²)) / (1 + z²/n). Within 0 .. 1, and wider than
 * nothing when all or none were counted.
 *
 * Wilson 1927, "Probable Inference, the Law of Succession, and Statistical Inference".
 *
 * @param z 1.96 of a normal's deviations (95 %) when absent
 * @returns [low, high]
 * @throws RangeError unless 0 ≤ hits ≤ count and count ≥ 1
 * @example
 * ```ts
 * import { wilsonInterval } from "longhand/training";
 * wilsonInterval(8, 10).map((x) => Math.round(x * 1e4) / 1e4); // => [0.4902, 0.9433]
 * ```
 */
export function wilsonInterval(hits: number, count: number, z = 1.959963984540054): [number, number] {
  if (!(count >= 1 && hits >= 0 && hits <= count)) {
    throw new RangeError(
      `wilsonInterval: expected hits of 0 .. count and a count of at least 1, got ${hits} of ${count}`,
    );
  }
  const share = hits / count;
  const square = (z * z) / count;
  const middle = share + square / 2;
  const reach = z * Math.sqrt((share * (1 - share)) / count + square / (4 * count));
  // At the ends the bound is the share itself; rounding must not move it.
  return [hits === 0 ? 0 : (middle - reach) / (1 + square), hits === count ? 1 : (middle + reach) / (1 + square)];
}
