// Needles in a haystack: a sentence, or several, whose number is asked for at the end. passkey is Mohtashami and Jaggi's
// (2023, 2305.16300); the others are in the manner of RULER (Hsieh et al. 2024, 2404.06654), sections 3.1: single,
// multi-key (others of its kind around it), multi-value (one name, several numbers), multi-query (several names asked).

import { type Random, random } from "../../../tensor/index.ts";
import type { Haystack } from "./haystack.ts";
import { type Answer, answer, hide, likeliestRivals, type RetrievalSample, type SampleContext } from "./sample.ts";
import { drawNames, drawNumbers } from "./words.ts";

export interface SampleOptions {
  /** Tokens of prompt and answers together. */
  readonly length: number;
  readonly seed: number;
}

const numDistractors = 9;
/** Needles of multi-key, multi-value and multi-query, as in RULER. */
const several = 4;

/** Two stretches of one seed would be the same random numbers: each task draws from a stream of its own. */
export function taskStream(task: string, seed: number): Random {
  let hash = 0xcbf29ce484222325n;
  for (const c of task) hash = BigInt.asUintN(64, (hash ^ BigInt(c.charCodeAt(0))) * 0x100000001b3n);
  return random(BigInt.asUintN(64, hash ^ (BigInt(seed) * 0x9e3779b97f4a7c15n)));
}

export function rivals(
  context: SampleContext,
  right: Answer,
  texts: readonly string[],
  count: number = numDistractors,
): Answer[] {
  return likeliestRivals(
    right,
    texts.map((text) => answer(context, text)),
    count,
  );
}

/**
 * The passkey: one number, at a depth.
 *
 * @param options.depth 0 at the haystack's begin, 1 at its end
 * @throws RangeError for a depth outside 0 to 1, or a length without room
 * @example
 * ```ts
 * import { generatedHaystack, passkey } from "longhand/evaluation";
 * import { byteTokenizer } from "longhand/formats";
 * const tokenizer = byteTokenizer();
 * const sample = passkey({ tokenizer, bos: null }, generatedHaystack(tokenizer), { length: 512, seed: 1, depth: 0.5 });
 * sample.prompt.length + sample.answers[0].first.length; // => 512
 * sample.question; // => "What is the pass key? The pass key is"
 * ```
 */
export function passkey(
  context: SampleContext,
  haystack: Haystack,
  options: SampleOptions & { readonly depth: number },
): RetrievalSample {
  const { seed, depth } = options;
  if (!(depth >= 0 && depth <= 1)) throw new RangeError(`passkey: expected a depth from 0 to 1, got ${depth}`);
  const [key, ...others] = drawNumbers(taskStream("passkey", seed), 40, 5);
  const right = answer(context, key!);
  return hide(context, haystack, {
    task: "passkey",
    ...options,
    needles: [{ text: ` The pass key is ${key}. Remember it: the pass key is ${key}.`, depth, answers: true }],
    question: " What is the pass key? The pass key is",
    answers: [right],
    ordered: true,
    distractors: rivals(context, right, others),
  });
}

const sentence = (name: string, number: string): string => ` One of the numbers of the ${name} is ${number}.`;

/** A name and its number, at a random depth. */
export function singleNeedle(context: SampleContext, haystack: Haystack, options: SampleOptions): RetrievalSample {
  return keyed("single", context, haystack, options, 1);
}

/** The same among three others of its kind, whose numbers are the first wrong answers. */
export function multiKeyNeedles(context: SampleContext, haystack: Haystack, options: SampleOptions): RetrievalSample {
  return keyed("multi-key", context, haystack, options, several);
}

function keyed(
  task: string,
  context: SampleContext,
  haystack: Haystack,
  options: SampleOptions,
  count: number,
): RetrievalSample {
  const stream = taskStream(task, options.seed);
  const names = drawNames(stream, count);
  const numbers = drawNumbers(stream, count + 40, 7);
  const right = answer(context, numbers[0]!);
  const inText = numbers.slice(1, count).map((text) => answer(context, text));
  return hide(context, haystack, {
    task,
    ...options,
    needles: names.map((name, i) => ({
      text: sentence(name, numbers[i]!),
      depth: stream.uniform(),
      answers: i === 0,
    })),
    question: ` What is the number of the ${names[0]}? The number of the ${names[0]} is`,
    answers: [right],
    ordered: true,
    distractors: [...inText, ...rivals(context, right, numbers.slice(count), numDistractors - inText.length)],
  });
}

/** One name with four numbers, all asked for, in any order. */
export function multiValueNeedles(context: SampleContext, haystack: Haystack, options: SampleOptions): RetrievalSample {
  const stream = taskStream("multi-value", options.seed);
  const name = drawNames(stream, 1)[0]!;
  const numbers = drawNumbers(stream, several + 40, 7);
  const depths = Array.from({ length: several }, () => stream.uniform()).sort((a, b) => a - b);
  const answers = numbers.slice(0, several).map((text) => answer(context, text));
  return hide(context, haystack, {
    task: "multi-value",
    ...options,
    needles: depths.map((depth, i) => ({ text: sentence(name, numbers[i]!), depth, answers: true })),
    question: ` What are all the numbers of the ${name}? The numbers of the ${name} are`,
    answers,
    ordered: false,
    distractors: rivals(context, answers[0]!, numbers.slice(several)),
  });
}

/** Four names with a number each, all asked for, in the order of the question. */
export function multiQueryNeedles(context: SampleContext, haystack: Haystack, options: SampleOptions): RetrievalSample {
  const stream = taskStream("multi-query", options.seed);
  const names = drawNames(stream, several);
  const numbers = drawNumbers(stream, several + 40, 7);
  const answers = numbers.slice(0, several).map((text) => answer(context, text));
  const list = `the ${names.slice(0, -1).join(", the ")} and the ${names.at(-1)}`;
  return hide(context, haystack, {
    task: "multi-query",
    ...options,
    needles: names.map((name, i) => ({ text: sentence(name, numbers[i]!), depth: stream.uniform(), answers: true })),
    question: ` What are the numbers of ${list}? In this order, the numbers of ${list} are`,
    answers,
    ordered: true,
    distractors: [
      ...answers.slice(1),
      ...rivals(context, answers[0]!, numbers.slice(several), numDistractors - several + 1),
    ],
  });
}
