// Copy: say again what was said. A model that fails past its training length lost the place, not the content.

import { drawText, expectOptions, lowercase, type Task } from "./task.ts";

/**
 * `copy:qwe=qwe;`: n random letters (a–z), then the same again; the answer is what follows "=", ";" included.
 *
 * Kazemnejad et al. 2023 (2305.19466), table 1, with letters in place of words.
 *
 * @throws RangeError for any option: copy has none
 * @example
 * ```ts
 * import { copy, exampleText } from "longhand/training";
 * import { random } from "longhand/tensor";
 * exampleText(copy().example(5, random(1))).length; // => 17
 * ```
 */
export function copy(options: Record<never, never> = {}): Task {
  expectOptions("copy", options, []);
  return {
    name: "copy",
    format: "copy:qwe=qwe;",
    unit: "letters",
    minSize: 1,
    maxSize: Number.POSITIVE_INFINITY,
    length: (size) => 2 * size + 7,
    example(size, stream) {
      const text = drawText(stream, lowercase, size);
      return [{ prompt: `copy:${text}=`, answer: `${text};` }];
    },
  };
}
