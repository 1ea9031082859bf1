// Numbers as people read them; nothing is computed here.

/** 131,072. */
export function whole(value: number): string {
  return value.toLocaleString("en-US", { maximumFractionDigits: 0 });
}

/** About `digits` significant digits, grouped: 62,831.9; 0.004869; 3.1e-7. */
export function short(value: number, digits = 6): string {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e15 || size < 1e-5) return value.toExponential(Math.min(3, digits - 1));
  return value.toLocaleString("en-US", { maximumSignificantDigits: digits });
}

/** Every digit that tells this float64 from its neighbours. */
export function exact(value: number): string {
  return String(value);
}
