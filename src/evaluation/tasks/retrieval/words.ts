// What needles and haystacks are made of: seeded names, numbers and sentences. Nothing here may ever change for a seed:
// a sample must be the same bytes in every release, or two runs cannot be compared.

import type { Random } from "../../../tensor/index.ts";

const adjectives =
  "amber brave calm dusty early faded gentle hollow icy jolly keen little mellow narrow olive plain quiet rusty silver tall upper vivid warm young".split(
    " ",
  );
const nouns =
  "anchor barrel candle drawer engine feather garden hammer island jacket kettle ladder mirror needle orchard pencil quarry ribbon saddle tunnel umbrella valley window yard".split(
    " ",
  );
const people =
  "baker captain doctor farmer gardener hunter judge miller neighbor painter sailor shepherd teacher weaver".split(" ");
const verbs = "carried counted found hid lost mended painted repaired sold washed".split(" ");
const places =
  "behind the mill;beside the river;near the old bridge;at the market;under the stairs;on the hill;in the barn;by the harbor;along the wall;below the tower".split(
    ";",
  );
const times =
  "In the morning;At noon;Before dawn;After the rain;On Sunday;Late in the year;That winter;Every spring".split(";");

const consonants = [..."bdfghklmnprstvz"];
const vowels = [..."aeiou"];

function pick<T>(stream: Random, list: readonly T[]): T {
  return list[stream.integer(list.length)]!;
}

/** `count` different names of two words: "amber anchor". */
export function drawNames(stream: Random, count: number): string[] {
  return distinct(count, () => `${pick(stream, adjectives)} ${pick(stream, nouns)}`);
}

/** `count` different numbers of `digits` digits, as text, none beginning with 0. */
export function drawNumbers(stream: Random, count: number, digits: number): string[] {
  const low = 10 ** (digits - 1);
  return distinct(count, () => String(low + stream.integer(9 * low)));
}

/** `count` different names of variables: five capital letters. */
export function drawVariables(stream: Random, count: number): string[] {
  return distinct(count, () => Array.from({ length: 5 }, () => String.fromCharCode(65 + stream.integer(26))).join(""));
}

/** `count` different words that no language has, of three syllables: as many as a list needs, all of one kind. */
export function drawWords(stream: Random, count: number): string[] {
  const syllable = (): string => pick(stream, consonants) + pick(stream, vowels);
  return distinct(count, () => syllable() + syllable() + syllable());
}

function distinct(count: number, draw: () => string): string[] {
  const out = new Set<string>();
  while (out.size < count) out.add(draw());
  return [...out];
}

/** A sentence of a haystack, with the space before it. */
export function drawSentence(stream: Random): string {
  const person = pick(stream, people);
  const what = `${pick(stream, adjectives)} ${pick(stream, nouns)}`;
  return ` ${pick(stream, times)} the ${person} ${pick(stream, verbs)} the ${what} ${pick(stream, places)}.`;
}
