// Argument checks shared by the encodings. A message reads "who: expectation, got value", then the fix when known.

/** Returns value when it is an integer of at least `minimum`; throws RangeError naming `who` and `what` otherwise. */
export function expectInteger(who: string, what: string, value: number, minimum = 0): number {
  if (!Number.isInteger(value) || value < minimum) {
    throw new RangeError(`${who}: expected ${what} to be an integer of at least ${minimum}, got ${show(value)}`);
  }
  return value;
}

/** Returns value when it is a finite number above zero; throws RangeError otherwise. */
export function expectPositive(who: string, what: string, value: number): number {
  if (typeof value !== "number" || !Number.isFinite(value) || value <= 0) {
    throw new RangeError(`${who}: expected ${what} to be a finite number above 0, got ${show(value)}`);
  }
  return value;
}

/** Returns value when it is a finite number; throws RangeError otherwise. */
export function expectFinite(who: string, what: string, value: number): number {
  if (typeof value !== "number" || !Number.isFinite(value)) {
    throw new RangeError(`${who}: expected ${what} to be a finite number, got ${show(value)}`);
  }
  return value;
}

/** Returns value when it is an even integer of at least 2; throws RangeError otherwise. */
export function expectEven(who: string, what: string, value: number): number {
  if (!Number.isInteger(value) || value < 2 || value % 2 !== 0) {
    throw new RangeError(`${who}: expected ${what} to be an even integer of at least 2, got ${show(value)}`);
  }
  return value;
}

/** A value as it reads in an error message. */
export function show(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "number" || typeof value === "bigint" || value === null || value === undefined) {
    return String(value);
  }
  if (typeof value === "object") {
    const text = JSON.stringify(value) ?? String(value);
    return text.length > 80 ? `${text.slice(0, 77)}...` : text;
  }
  return String(value);
}
