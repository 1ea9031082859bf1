// Numbers as a report writes them.

/** 1,024. */
export function grouped(n: number): string {
  return n.toLocaleString("en");
}

/** 16k for 16,384 where a label has little room; 1k = 1,024. */
export function shortCount(n: number): string {
  for (const [unit, size] of [
    ["M", 1024 ** 2],
    ["k", 1024],
  ] as const) {
    if (n >= size && (n * 4) % size === 0) return `${n / size}${unit}`;
  }
  return grouped(n);
}

/** With a true minus sign; no "-0.000". */
export function fixed(x: number, digits: number): string {
  const text = Math.abs(x).toFixed(digits);
  return x < 0 && Number(text) !== 0 ? `−${text}` : text;
}

/** With its sign, plus too. */
export function signed(x: number, digits: number): string {
  const text = fixed(x, digits);
  return x > 0 && Number(text) !== 0 ? `+${text}` : text;
}

/** Digits after the point, so that a difference shows two that count, of four at most. */
export function differenceDigits(x: number): number {
  const size = Math.abs(x);
  return size >= 0.0995 || size === 0 ? 3 : 4;
}

/** The last position of a bin that ends before `to`. */
export function positionRange([from, to]: readonly [number, number]): string {
  return to - from === 1 ? grouped(from) : `${grouped(from)}–${grouped(to - 1)}`;
}

/** "3/4"; partial scores to a tenth. */
export function foundOf({ successes, trials }: { readonly successes: number; readonly trials: number }): string {
  return `${fixed(successes, Number.isInteger(successes) ? 0 : 1)}/${trials}`;
}
