// How settings are written down: JSON in which Python reads floats as floats, and words as a POSIX shell reads them.

/** Keys whose values engines want as floats: transformers 4 warns of an integer, vLLM's linear class fails on one. */
const floats: ReadonlySet<string> = new Set([
  "rope_theta",
  "rope_local_base_freq",
  "global_rope_theta",
  "local_rope_theta",
  "factor",
  "attention_factor",
  "attn_factor",
  "beta_fast",
  "beta_slow",
  "mscale",
  "mscale_all_dim",
  "low_freq_factor",
  "high_freq_factor",
  "partial_rotary_factor",
  "short_factor",
  "long_factor",
  "short_mscale",
  "long_mscale",
]);

/** JSON of a configuration, with `4.0` where a float is meant; on one line without `indent`. */
export function configJson(value: unknown, indent = 0, more: ReadonlySet<string> = none): string {
  return write(value, false, indent, 0, more);
}

const none: ReadonlySet<string> = new Set();

/** A whole config.json, written as its own text has its numbers: what was `1.0` stays so. */
export function wholeConfigJson(value: unknown, text: string | undefined): string {
  const floating = Array.from((text ?? "").matchAll(/"(\w+)"\s*:\s*-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?/g))
    .filter(([all]) => /[.eE][-+\d]*$/.test(all.slice(all.lastIndexOf(":"))))
    .map(([, key]) => key!);
  return `${configJson(value, 2, new Set(floating))}\n`;
}

function write(value: unknown, float: boolean, indent: number, depth: number, more: ReadonlySet<string>): string {
  if (typeof value === "number") return float && Number.isInteger(value) ? floatText(value) : JSON.stringify(value);
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const line = indent === 0 ? "" : `\n${" ".repeat(indent * (depth + 1))}`;
  const end = indent === 0 ? "" : `\n${" ".repeat(indent * depth)}`;
  if (Array.isArray(value)) {
    if (value.length === 0) return "[]";
    // Numbers of a list stand in one line: they are many.
    const flat = value.every((one) => typeof one !== "object" || one === null);
    const parts = value.map((one) => write(one, float, flat ? 0 : indent, depth + 1, more));
    return flat ? `[${parts.join(", ")}]` : `[${line}${parts.join(`,${line}`)}${end}]`;
  }
  const entries = Object.entries(value).filter(([, one]) => one !== undefined);
  if (entries.length === 0) return "{}";
  const parts = entries.map(
    ([key, one]) => `${JSON.stringify(key)}: ${write(one, floats.has(key) || more.has(key), indent, depth + 1, more)}`,
  );
  return indent === 0 ? `{${parts.join(", ")}}` : `{${line}${parts.join(`,${line}`)}${end}}`;
}

function floatText(value: number): string {
  const text = String(value);
  return /[.e]/.test(text) ? text : `${text}.0`;
}

/** A word as a POSIX shell reads it. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

export function shellLine(words: readonly string[]): string {
  return words.map(shellWord).join(" ");
}

/** A number as few digits as read back the same. */
export function digits(value: number): string {
  return String(Number(value.toPrecision(17)));
}
