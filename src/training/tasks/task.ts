// What a synthetic task is: a seeded generator of questions with answers that anyone can check. Texts are ASCII, so that
// a character is a token of the byte vocabulary (byteTokenizer({ specialTokens: [] }), 256 ids) and whatever a model
// answers reads as text. Answers alone count in the loss.

import { nearestName } from "../../graph/index.ts";
import { type Random, random } from "../../tensor/index.ts";

export const taskNames = ["copy", "reverse", "addition", "sorting", "recall", "passkey"] as const;
export type TaskName = (typeof taskNames)[number];

/** What a model is given, and what it has to say then. */
export interface Turn {
  readonly prompt: string;
  readonly answer: string;
}

/** Turns of one text, one after the other: a question whose answers come in pieces has several. */
export type Example = readonly Turn[];

export interface Task {
  readonly name: TaskName;
  /** What an example looks like, at a size. */
  readonly format: string;
  /** What a size counts. */
  readonly unit: string;
  /** Sizes are whole numbers of minSize .. maxSize. */
  readonly minSize: number;
  readonly maxSize: number;
  /** Characters of the longest example of a size. */
  length(size: number): number;
  /** An example of a size, drawn from the stream. Sizes out of range are the caller's error: `expectSize`. */
  example(size: number, stream: Random): Example;
}

/** Throws RangeError for a size that the task does not have. */
export function expectSize(who: string, { name, unit, minSize, maxSize }: Task, size: number): number {
  if (!Number.isInteger(size) || size < minSize || size > maxSize) {
    const range = maxSize === Number.POSITIVE_INFINITY ? `of at least ${minSize}` : `in ${minSize} .. ${maxSize}`;
    throw new RangeError(`${who}: expected a size of ${name} (${unit}) ${range}, got ${size}`);
  }
  return size;
}

/** Throws RangeError for an option that the task does not have, naming the nearest one that it has. */
export function expectOptions(who: string, options: object, known: readonly string[]): void {
  const unknown = Object.keys(options).find((key) => !known.includes(key));
  if (unknown === undefined) return;
  const near = nearestName(unknown, known);
  const hint = near === undefined ? "" : `; did you mean ${near}?`;
  throw new RangeError(
    `${who}: expected ${known.length === 0 ? "no options" : known.join(", ")}, got ${unknown}${hint}`,
  );
}

/** Throws RangeError unless the option is a whole number of least .. most. */
export function expectWhole(who: string, name: string, value: number, least: number, most: number): number {
  if (!Number.isInteger(value) || value < least || value > most) {
    throw new RangeError(`${who}: expected ${name} to be a whole number of ${least} .. ${most}, got ${value}`);
  }
  return value;
}

const purposes = { training: 1, evaluation: 2 } as const;

/** The stream of one example. Training and evaluation never share one. */
export function exampleStream(purpose: keyof typeof purposes, seed: number, size: number, index: number): Random {
  let state = 0x2545f4914f6cdd1dn;
  for (const word of [purposes[purpose], seed, size, index]) {
    state = BigInt.asUintN(64, (state ^ BigInt(word)) * 0xd1342543de82ef95n);
    state ^= state >> 32n;
  }
  return random(state);
}

/** The text of an example: its prompts and answers, joined. */
export function exampleText(example: Example): string {
  return example.map(({ prompt, answer }) => prompt + answer).join("");
}

/** A string of characters of an alphabet, each drawn anew. */
export function drawText(stream: Random, alphabet: string, length: number): string {
  let out = "";
  for (let i = 0; i < length; i++) out += alphabet[stream.integer(alphabet.length)];
  return out;
}

export const lowercase = "abcdefghijklmnopqrstuvwxyz";
export const digits = "0123456789";
