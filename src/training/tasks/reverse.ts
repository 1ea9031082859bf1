// Reverse: say backwards what was said. Unlike copying, what comes next lies two tokens further back at each step.

import { drawText, expectOptions, lowercase, type Task } from "./task.ts";

/**
 * `reverse:qwe=ewq;`: n random letters (a–z), then the same from the last to the first; the answer is what follows "=".
 *
 * Kazemnejad et al. 2023 (2305.19466), table 1, with letters in place of words.
 *
 * @throws RangeError for any option: reverse has none
 * @example
 * ```ts
 * import { reverse } from "longhand/training";
 * import { random } from "longhand/tensor";
 * const [{ prompt, answer }] = reverse().example(1, random(1));
 * prompt.at(-2) === answer[0]; // => true
 * ```
 */
export function reverse(options: Record<never, never> = {}): Task {
  expectOptions("reverse", options, []);
  return {
    name: "reverse",
    format: "reverse:qwe=ewq;",
    unit: "letters",
    minSize: 1,
    maxSize: Number.POSITIVE_INFINITY,
    length: (size) => 2 * size + 10,
    example(size, stream) {
      const text = drawText(stream, lowercase, size);
      return [{ prompt: `reverse:${text}=`, answer: `${[...text].reverse().join("")};` }];
    },
  };
}
