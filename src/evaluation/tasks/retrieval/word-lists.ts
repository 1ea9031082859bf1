// Lists of words, in the manner of RULER (Hsieh et al. 2024, 2404.06654), section 3.3: which are the most common ones?
// common-words: a few come ten times as often as all others. frequent-words: the k-th comes k^−2 as often as the first.
// The list is the haystack: it holds as many words as fit, so it may end some tokens before the length.

import { rivals, type SampleOptions, taskStream } from "./needles.ts";
import { pieceTokens } from "./pieces.ts";
import { answer, answerTokens, type RetrievalSample, type SampleContext } from "./sample.ts";
import { drawWords } from "./words.ts";

/** Times that a common word comes for each time that another one does. */
const ratio = 10;

/** The ten words (fewer in a short list) that come ten times each, among words that come once. */
export function commonWords(context: SampleContext, options: SampleOptions): RetrievalSample {
  const task = "common-words";
  return wordList(task, context, options, (total) => {
    const common = Math.max(2, Math.min(10, Math.floor(total / 20)));
    const rare = Math.max(0, total - ratio * common);
    return { counts: [...Array<number>(common).fill(ratio), ...Array<number>(rare).fill(1)], asked: common };
  });
}

/** The three most frequent words of a list whose frequencies fall as the square of the rank. */
export function frequentWords(context: SampleContext, options: SampleOptions): RetrievalSample {
  return wordList("frequent-words", context, options, (total) => {
    const counts: number[] = [];
    let left = total;
    // Σ k^−2 = π²/6, so the first takes six tenths.
    for (let k = 1; left > 0; k++) {
      const count = Math.min(left, Math.max(1, Math.round((total * 6) / Math.PI ** 2 / k ** 2)));
      counts.push(count);
      left -= count;
    }
    return { counts, asked: 3 };
  });
}

function wordList(
  task: string,
  context: SampleContext,
  { length, seed }: SampleOptions,
  plan: (total: number) => { readonly counts: readonly number[]; readonly asked: number },
): RetrievalSample {
  const { tokenizer, bos } = context;
  const intro = pieceTokens(tokenizer, " Read the list of words:");
  const compose = (total: number): RetrievalSample => {
    const stream = taskStream(task, seed);
    const { counts, asked } = plan(total);
    const words = drawWords(stream, counts.length + 9);
    const list = stream.shuffle(counts.flatMap((count, i) => Array<string>(count).fill(words[i]!)));
    const number = ["", "", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"][asked]!;
    const question = ` Which ${number} words come most often in the list? The ${number} words that come most often are`;
    const answers = words.slice(0, asked).map((text) => answer(context, text));
    const prompt = [
      ...(bos === null ? [] : [bos]),
      ...intro,
      ...list.flatMap((word) => tokensOf(word)),
      ...pieceTokens(tokenizer, question),
    ];
    // Words of the list that come seldom; in a list too short for nine of them, words that do not come at all.
    const wrong = words.slice(asked);
    return {
      task,
      seed,
      length,
      fillRate: (prompt.length + answerTokens(answers)) / length,
      prompt,
      answers,
      ordered: false,
      distractors: rivals(context, answers[0]!, wrong),
      depths: [],
      needles: [],
      question: question.trim(),
    };
  };
  const known = new Map<string, number[]>();
  const tokensOf = (word: string): number[] => {
    let tokens = known.get(word);
    if (tokens === undefined) {
      tokens = pieceTokens(tokenizer, ` ${word}`);
      known.set(word, tokens);
    }
    return tokens;
  };
  // The most words that fit, by bisection: the count of tokens grows with them.
  let low = 2 * ratio + 1;
  let best = compose(low);
  if (best.fillRate > 1) {
    throw new RangeError(
      `${task}: expected a length of at least ${Math.round(best.fillRate * length)} tokens, got ${length}`,
    );
  }
  let high = Math.max(low + 1, length);
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    const sample = compose(middle);
    if (sample.fillRate <= 1) {
      low = middle;
      best = sample;
    } else {
      high = middle;
    }
  }
  return best;
}
