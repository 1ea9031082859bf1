// Passkey retrieval: a number hidden in a haystack that says nothing, asked for at the end. Its depth can be chosen.

import type { Random } from "../../tensor/index.ts";
import { digits as digitText, drawText, expectOptions, expectWhole, type Task } from "./task.ts";

export interface PasskeyOptions {
  /** Where the number stands: the share of the haystack before it, 0 .. 1. Drawn anew for each example when absent. */
  readonly depth?: number;
  /** Digits of the number; 5 when absent. */
  readonly digits?: number;
}

const words = ["sun", "sky", "sea", "grass", "stone", "river", "cloud", "here", "there", "green", "blue", "again"];

/** Words with spaces between, cut after this many characters. */
function filler(stream: Random, length: number): string {
  let out = "";
  while (out.length < length) out += `${words[stream.integer(words.length)]} `;
  return out.slice(0, length);
}

/**
 * `passkey:sun sky gra<48213>river su?48213;`: a haystack of n characters of words in random order, cut at
 * round(depth · n) for the number; the answer is what follows "?".
 *
 * Mohtashami and Jaggi 2023 (2305.16300), section 4.2, and Chen et al. 2023 (2306.15595), section 3.3, at the scale of
 * bytes; the words come in an order drawn anew, where theirs repeat one sentence.
 *
 * @throws RangeError for an unknown option, a depth outside 0 .. 1, or digits outside 1 .. 32
 * @example
 * ```ts
 * import { passkey } from "longhand/training";
 * import { random } from "longhand/tensor";
 * const [{ prompt }] = passkey({ depth: 0.25 }).example(100, random(1));
 * prompt.indexOf("<") - "passkey:".length; // => 25
 * ```
 */
export function passkey(options: PasskeyOptions = {}): Task {
  expectOptions("passkey", options, ["depth", "digits"]);
  const digits = expectWhole("passkey", "digits", options.digits ?? 5, 1, 32);
  const { depth } = options;
  if (depth !== undefined && !(depth >= 0 && depth <= 1)) {
    throw new RangeError(`passkey: expected a depth of 0 .. 1, got ${depth}`);
  }
  return {
    name: "passkey",
    format: `passkey:sun sky gra<${"48213".repeat(7).slice(0, digits)}>river su?…;`,
    unit: "characters of the haystack",
    minSize: 0,
    maxSize: Number.POSITIVE_INFINITY,
    length: (size) => size + 2 * digits + 12,
    example(size, stream) {
      const before = depth === undefined ? stream.integer(size + 1) : Math.round(depth * size);
      const key = drawText(stream, digitText, digits);
      const haystack = [filler(stream, before), filler(stream, size - before)];
      return [{ prompt: `passkey:${haystack.join(`<${key}>`)}?`, answer: `${key};` }];
    },
  };
}
