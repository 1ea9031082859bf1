// A question about a long text, as tokens, and what is right. Filled to the token: prompt and answers together have the
// length that was asked for, or as much of it as whole items fill; the fill rate says how much.

import type { Haystack } from "./haystack.ts";
import { type PieceTokenizer, pieceTokens } from "./pieces.ts";

export interface RetrievalSample {
  readonly task: string;
  readonly seed: number;
  /** Tokens that were asked for, the answers included. */
  readonly length: number;
  /** (prompt + answers) / length. */
  readonly fillRate: number;
  /** Ends where the answer begins. */
  readonly prompt: readonly number[];
  /** Right answers, in the order of the prompt. Each begins with what separates it from the one before. */
  readonly answers: readonly Answer[];
  /** Whether the answers must come in this order. */
  readonly ordered: boolean;
  /** Wrong answers of the same kind as the first. */
  readonly distractors: readonly Answer[];
  /** Where the needles that answer stand: 0 at the haystack's begin, 1 at its end. */
  readonly depths: readonly number[];
  /** For people: the needles and the question. */
  readonly needles: readonly string[];
  readonly question: string;
}

export interface Answer {
  /** Without the space before it. */
  readonly text: string;
  /** As the first answer, and as a later one. */
  readonly first: readonly number[];
  readonly later: readonly number[];
}

export interface Placed {
  readonly text: string;
  /** 0 … 1. */
  readonly depth: number;
  /** Whether the answer is in it. */
  readonly answers: boolean;
}

export interface SampleContext {
  readonly tokenizer: PieceTokenizer;
  /** At the head of the prompt; null: none. */
  readonly bos: number | null;
}

export function answer({ tokenizer }: SampleContext, text: string): Answer {
  return { text, first: pieceTokens(tokenizer, ` ${text}`), later: laterTokens(tokenizer, text) };
}

/** ", text", whose comma follows a word. */
function laterTokens(tokenizer: PieceTokenizer, text: string): number[] {
  const options = { addSpecial: false, parseSpecial: false } as const;
  const before = tokenizer.encode("a", options);
  const whole = tokenizer.encode(`a, ${text}`, options);
  if (before.every((id, i) => whole[i] === id)) return whole.slice(before.length);
  return [...tokenizer.encode(",", options), ...pieceTokens(tokenizer, ` ${text}`)];
}

/** Tokens of all answers, one after the other. */
export function answerTokens(answers: readonly Answer[]): number {
  return answers.reduce((sum, { first, later }, i) => sum + (i === 0 ? first : later).length, 0);
}

/** Wrong answers that have as many tokens as the right one come first: sums of log-probabilities of different lengths do
 *  not compare. */
export function likeliestRivals(right: Answer, wrong: readonly Answer[], count: number): Answer[] {
  const distance = ({ first }: Answer): number => Math.abs(first.length - right.first.length);
  return [...wrong].sort((a, b) => distance(a) - distance(b)).slice(0, count);
}

/** The least hay that makes a haystack. */
const leastHay = 16;

/**
 * Hides needles in a haystack, to the token.
 *
 * @throws RangeError for a length that has no room for the needles and the question
 */
export function hide(
  context: SampleContext,
  haystack: Haystack,
  parts: {
    readonly task: string;
    readonly seed: number;
    readonly length: number;
    readonly needles: readonly Placed[];
    readonly question: string;
    readonly answers: readonly Answer[];
    readonly ordered: boolean;
    readonly distractors: readonly Answer[];
  },
): RetrievalSample {
  const { task, seed, length, needles, question, answers } = parts;
  const head = context.bos === null ? [] : [context.bos];
  const asked = pieceTokens(context.tokenizer, question);
  const pieces = needles.map(({ text }) => pieceTokens(context.tokenizer, text));
  const tail = answerTokens(answers);
  const fixed = head.length + asked.length + pieces.reduce((sum, piece) => sum + piece.length, 0) + tail;
  if (length < fixed + leastHay) {
    throw new RangeError(
      `${task}: expected a length of at least ${fixed + leastHay} tokens for its needles and question, got ${length}`,
    );
  }
  const hay = haystack.tokens(length - fixed, seed);
  const places = needles
    .map(({ depth, answers: isRight }, i) => ({ at: place(haystack, hay, depth), piece: pieces[i]!, isRight, i }))
    .sort((a, b) => a.at - b.at || a.i - b.i);
  const prompt = [...head];
  let from = 0;
  for (const { at, piece } of places) {
    for (; from < at; from++) prompt.push(hay[from]!);
    prompt.push(...piece);
  }
  for (; from < hay.length; from++) prompt.push(hay[from]!);
  prompt.push(...asked);
  return {
    task,
    seed,
    length,
    fillRate: (prompt.length + tail) / length,
    prompt,
    answers,
    ordered: parts.ordered,
    distractors: parts.distractors,
    depths: places.filter(({ isRight }) => isRight).map(({ at }) => at / hay.length),
    needles: needles.map(({ text }) => text.trim()),
    question: question.trim(),
  };
}

/** The end of a sentence near a depth, within a twentieth of the haystack on either side; else the depth to the token. */
function place(haystack: Haystack, hay: readonly number[], depth: number): number {
  const wanted = Math.round(depth * hay.length);
  if (wanted === 0 || wanted === hay.length) return wanted;
  const reach = Math.floor(hay.length / 20);
  for (let d = 0; d <= reach; d++) {
    for (const at of [wanted - d, wanted + d]) {
      if (at > 0 && at < hay.length && haystack.endsSentence(hay[at - 1]!)) return at;
    }
  }
  return wanted;
}
