// Lists and ranges of factors, so that one command sweeps them.

/** Names that a factor follows; "yarn" alone is yarn at every factor that is asked for. */
export const withFactor: readonly string[] = ["linear", "ntk", "ntk-by-parts", "dynamic", "yarn", "llama3", "gradient"];

/** And those whose one number is another: of self-extend, the tokens of a group. */
const withNumber: readonly string[] = [...withFactor, "self-extend"];

/**
 * Factors as a person lists them.
 *
 * @param text 2,4,8, or 2..16 (doubling)
 * @param where who asks, for the error
 * @throws RangeError for what is no list of numbers above 0
 * @example
 * ```ts
 * import { factorList } from "longhand/evaluation";
 * factorList("2..16"); // => [2, 4, 8, 16]
 * ```
 */
export function factorList(text: string, where = "--factor"): number[] {
  const range = /^([\d.]+)\.\.([\d.]+)$/.exec(text.trim());
  const parts = range === null ? text.split(",").map(Number) : [];
  const [from, to] = range === null ? [0, 0] : [Number(range[1]), Number(range[2])];
  if (from > 0 && Number.isFinite(to)) for (let factor = from; factor <= to; factor *= 2) parts.push(factor);
  if (parts.length === 0 || !parts.every((factor) => factor > 0 && Number.isFinite(factor))) {
    throw new RangeError(`${where}: expected factors above 0, as 2,4,8 or 2..16, got ${JSON.stringify(text)}`);
  }
  return parts;
}

/** Parts of a list of strategies, with every sweep as names of its own: "yarn:2", "4" as "yarn:2", "yarn:4"; "yarn:2..8"
 *  as three. */
export function sweptNames(parts: readonly string[]): string[] {
  const where = "--strategies";
  const out: string[] = [];
  let sweeping: string | null = null;
  for (const part of parts) {
    const [, name, factors, reading = ""] = /^(?:([a-z\d-]+):)?([\d.]+)(@.*)?$/.exec(part) ?? [];
    // A part without a name goes on with the one before.
    if (factors === undefined || name !== undefined) sweeping = withNumber.find((one) => one === name) ?? null;
    else if (sweeping === null) {
      throw new RangeError(`${where}: expected a name before a factor, as yarn:2,4,8, got ${JSON.stringify(part)}`);
    }
    if (sweeping === null || factors === undefined) out.push(part);
    else out.push(...factorList(factors, where).map((factor) => `${sweeping}:${factor}${reading}`));
  }
  return out;
}
