// A text that is the same for ever: sentences of common words in a seeded order. Tests that train must not change when a
// document of the project does.

import { random } from "../../src/tensor/index.ts";

const words =
  "the of and to a in that is was it for on with as his they at be this from have or by one had not but what all were when we there can an your which their said if do will each about how up out them then she many some so these would other into has more her two like him see time could no make than first been its who now people my made over did down only way find use may water long little very after words called just where most know".split(
    " ",
  );

/** Bytes of ASCII, at least so many. */
export function seededText(length: number, seed = 1): Uint8Array {
  const stream = random(BigInt(seed));
  let out = "";
  while (out.length < length) {
    const count = 4 + stream.integer(9);
    // Common words come first in the list, and more often.
    const sentence = Array.from({ length: count }, () => words[Math.floor(stream.uniform() ** 2 * words.length)]!).join(
      " ",
    );
    out += `${sentence[0]!.toUpperCase()}${sentence.slice(1)}. `;
  }
  return new TextEncoder().encode(out);
}

/** A text of ten words in a seeded order, for models that only have to read something. */
export function plainWords(count: number, seed = 2): string {
  const stream = random(seed);
  const few = ["the", "miller", "hid", "a", "lamp", "by", "that", "river", "and", "rain"];
  return Array.from({ length: count }, () => few[stream.integer(few.length)]).join(" ");
}
