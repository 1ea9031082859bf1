// Values on the command line, checked where they are read.

import { InvalidArgumentError, Option } from "commander";

/** 4096, 4_096, 4,096, 32k (× 1024), 1M (× 1024²): a number of tokens. */
export function tokenCount(text: string): number {
  const match = /^(\d[\d_,]*)([kKmM]?)$/.exec(text.trim());
  const scale = { "": 1, k: 1024, m: 1024 ** 2 }[(match?.[2] ?? "").toLowerCase()] ?? 1;
  const count = match === null ? Number.NaN : Number(match[1]!.replace(/[_,]/g, "")) * scale;
  if (!Number.isSafeInteger(count) || count < 1) {
    throw new InvalidArgumentError("expected a number of tokens of at least 1, as 32768 or 32k.");
  }
  return count;
}

/** Numbers of tokens, separated by commas. */
export function lengthList(text: string): number[] {
  return text.split(",").map(tokenCount);
}

export type Target = { readonly multiple: number } | { readonly tokens: number };

/** A number of tokens, or a multiple of the trained length as 4x. */
export function tokenCountOrMultiple(text: string): Target {
  const match = /^(\d+(?:\.\d+)?)x$/i.exec(text.trim());
  if (match === null) return { tokens: tokenCount(text) };
  const multiple = Number(match[1]);
  if (!(multiple > 0)) throw new InvalidArgumentError("expected a multiple above 0, as 4x.");
  return { multiple };
}

/** The tokens of a --target. */
export function targetTokens(target: Target, trainedLength: number | null): number {
  if ("tokens" in target) return target.tokens;
  if (trainedLength !== null) return Math.round(target.multiple * trainedLength);
  throw new RangeError(
    `--target: expected a number of tokens for a model without a trained length, got ${target.multiple}x`,
  );
}

/** A parser of numbers of at least `least` (above it, with `exclusive`), and at most `most`. */
export function numberAtLeast(
  least: number,
  { exclusive = false, most = Number.POSITIVE_INFINITY }: { exclusive?: boolean; most?: number } = {},
): (text: string) => number {
  return (text) => {
    const value = text.trim() === "" ? Number.NaN : Number(text);
    if (Number.isFinite(value) && value <= most && (exclusive ? value > least : value >= least)) return value;
    const upper = most === Number.POSITIVE_INFINITY ? "" : ` and at most ${most}`;
    throw new InvalidArgumentError(`expected a number ${exclusive ? "above" : "of at least"} ${least}${upper}.`);
  };
}

/** An integer of at least 0. */
export function seedNumber(text: string): number {
  if (!/^\d+$/.test(text.trim()) || !Number.isSafeInteger(Number(text))) {
    throw new InvalidArgumentError("expected an integer from 0 to 2^53 - 1.");
  }
  return Number(text);
}

/** --lang, of what is printed. */
export function languageOption(of: string): Option {
  return new Option("--lang <language>", `language of ${of}`).choices(["en", "zh-TW"]).default("en");
}
