// Associative recall with several queries: pairs of a key and a value, then keys again, each to be followed by its value.
// What language models do when they repeat a name from further up (induction).

import { digits, drawText, expectOptions, expectWhole, lowercase, type Task, type Turn } from "./task.ts";

export interface AssociativeRecallOptions {
  /** Keys that are asked for, all different; min(n, 4) of n pairs when absent. At most n are asked for. */
  readonly numQueries?: number;
  /** Letters of a key: 1 (52 keys: a–z, A–Z) or 2 (2,704 keys); 1 when absent. */
  readonly keyLetters?: number;
}

const letters = lowercase + lowercase.toUpperCase();

/**
 * `recall:q1Z7b3?Z7q1;`: n pairs of a key and a digit, keys all different; then keys in an order drawn anew. The answers
 * are the digits behind the asked keys (the last with ";"); guessing is right once in ten.
 *
 * Multi-query associative recall: Arora et al. 2023 (2312.04927), section 3.1.
 *
 * @throws RangeError for an unknown option, numQueries below 1, or keyLetters other than 1 and 2
 * @example
 * ```ts
 * import { associativeRecall, exampleText } from "longhand/training";
 * import { random } from "longhand/tensor";
 * exampleText(associativeRecall({ numQueries: 2 }).example(3, random(1))).length; // => 19
 * ```
 */
export function associativeRecall(options: AssociativeRecallOptions = {}): Task {
  expectOptions("associativeRecall", options, ["numQueries", "keyLetters"]);
  const keyLetters = expectWhole("associativeRecall", "keyLetters", options.keyLetters ?? 1, 1, 2);
  const maxSize = letters.length ** keyLetters;
  const most = expectWhole("associativeRecall", "numQueries", options.numQueries ?? 4, 1, maxSize);
  return {
    name: "recall",
    format: keyLetters === 1 ? "recall:q1Z7b3?Z7q1;" : "recall:qa1Zt7bb3?Zt7qa1;",
    unit: "pairs",
    minSize: 1,
    maxSize,
    length: (size) => 9 + (size + Math.min(size, most)) * (keyLetters + 1),
    example(size, stream) {
      const values = new Map<string, string>();
      while (values.size < size) {
        const key = drawText(stream, letters, keyLetters);
        if (!values.has(key)) values.set(key, drawText(stream, digits, 1));
      }
      const pairs = [...values].map(([key, value]) => key + value).join("");
      const asked = stream.shuffle([...values]).slice(0, most);
      return asked.map(
        ([key, value], i): Turn => ({
          prompt: i === 0 ? `recall:${pairs}?${key}` : key,
          answer: i === asked.length - 1 ? `${value};` : value,
        }),
      );
    },
  };
}
