// Associative recall, for small models: pairs of a key and a digit, then one key, to be followed by its digit. The text is
// that of `longhand train --task recall`, so that a model can be asked what it was trained to do, at lengths that it never
// saw. It is the haystack itself: as many pairs as fit.

import { associativeRecall as recallTask } from "../../../training/tasks/associative-recall.ts";
import { type SampleOptions, taskStream } from "./needles.ts";
import type { Answer, RetrievalSample, SampleContext } from "./sample.ts";

/**
 * `recall:q1Z7b3?Z`, to be followed by 7. Keys are one letter where the 52 pairs that there are of these fill the length,
 * else two; where all 2,704 do not, the fill rate says so. Guessing among digits is right once in ten.
 *
 * Zoology (Arora et al. 2023, 2312.04927), section 3.1.
 *
 * @throws RangeError for a length without room for a pair
 * @example
 * ```ts
 * import { associativeRecall } from "longhand/evaluation";
 * import { byteTokenizer } from "longhand/formats";
 * const tokenizer = byteTokenizer();
 * const { prompt, answers } = associativeRecall({ tokenizer, bos: null }, { length: 20, seed: 1 });
 * tokenizer.decode(prompt).length + answers[0].first.length; // => 20
 * ```
 */
export function associativeRecall(context: SampleContext, { length, seed }: SampleOptions): RetrievalSample {
  const oneLetter = compose(52, 1);
  if (oneLetter.fillRate >= 1) return fitting(52, 1);
  return fitting(52 ** 2, 2);

  /** The most pairs that fit, by bisection: the count of tokens grows with them. */
  function fitting(most: number, keyLetters: number): RetrievalSample {
    let [low, high] = [1, most + 1];
    let best = compose(low, keyLetters);
    if (best.fillRate > 1) {
      const least = Math.round(best.fillRate * length);
      throw new RangeError(`associative-recall: expected a length of at least ${least} tokens, got ${length}`);
    }
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      const sample = compose(middle, keyLetters);
      if (sample.fillRate <= 1) [low, best] = [middle, sample];
      else high = middle;
    }
    return best;
  }

  function compose(size: number, keyLetters: number): RetrievalSample {
    const { tokenizer, bos } = context;
    // The first of two queries has the digit alone for its answer; the last one's ends with the text's own end.
    const task = recallTask({ keyLetters, numQueries: 2 });
    const [turn] = task.example(size, taskStream("associative-recall", seed));
    const { prompt: text, answer: right } = turn!;
    const encode = (of: string): number[] => tokenizer.encode(of, { addSpecial: false, parseSpecial: false });
    const asked = encode(text);
    // A digit as it stands behind the key, where the tokenizer keeps the two apart.
    const digit = (value: string): Answer => {
      const whole = encode(text + value);
      const tokens = asked.every((id, i) => whole[i] === id) ? whole.slice(asked.length) : encode(value);
      return { text: value, first: tokens, later: tokens };
    };
    const value = right.slice(0, 1);
    const answers = [digit(value)];
    const prompt = [...(bos === null ? [] : [bos]), ...asked];
    const key = text.slice(text.indexOf("?") + 1);
    const pairs = text.slice("recall:".length, text.indexOf("?"));
    const at = pairIndex(pairs, key);
    return {
      task: "associative-recall",
      seed,
      length,
      fillRate: (prompt.length + answers[0]!.first.length) / length,
      prompt,
      answers,
      ordered: true,
      distractors: Array.from("0123456789")
        .filter((one) => one !== value)
        .map(digit),
      depths: [size === 1 ? 0 : at / (size - 1)],
      needles: [key + value],
      question: `?${key}`,
    };
  }
}

/** Which pair has the key. */
function pairIndex(pairs: string, key: string): number {
  const width = key.length + 1;
  for (let at = 0; at < pairs.length; at += width) if (pairs.startsWith(key, at)) return at / width;
  throw new RangeError(`internal: associative-recall: expected a pair of the key ${key}, got none`);
}
