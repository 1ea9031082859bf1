// Addition of two numbers of n digits. Written from the front, the first digit of the sum depends on all the carries;
// from the back, each digit depends on the one before and two that lie n apart.

import { digits, drawText, expectOptions, type Task } from "./task.ts";

export interface AdditionOptions {
  /** The sum is written from its last digit to its first (Lee et al. 2023, 2307.03381, section 3); false when absent. */
  readonly reversed?: boolean;
}

/**
 * `add:537+919=1456;`: two numbers of n digits each (no zero in front unless n = 1) and their sum, which has n or n + 1
 * digits. With `reversed` the sum alone is backwards: `add:537+919=6541;`.
 *
 * Kazemnejad et al. 2023 (2305.19466), table 1.
 *
 * @throws RangeError for an unknown option
 * @example
 * ```ts
 * import { addition } from "longhand/training";
 * import { random } from "longhand/tensor";
 * const [{ prompt, answer }] = addition().example(3, random(1));
 * const [, a, b] = /^add:(\d+)\+(\d+)=$/.exec(prompt);
 * Number(a) + Number(b) === Number(answer.slice(0, -1)); // => true
 * ```
 */
export function addition(options: AdditionOptions = {}): Task {
  expectOptions("addition", options, ["reversed"]);
  const { reversed = false } = options;
  if (typeof reversed !== "boolean") {
    throw new RangeError(`addition: expected reversed to be true or false, got ${reversed}`);
  }
  return {
    name: "addition",
    format: reversed ? "add:537+919=6541;" : "add:537+919=1456;",
    unit: "digits of each number",
    minSize: 1,
    maxSize: Number.POSITIVE_INFINITY,
    length: (size) => 3 * size + 8,
    example(size, stream) {
      const number = (): string =>
        size === 1
          ? drawText(stream, digits, 1)
          : drawText(stream, "123456789", 1) + drawText(stream, digits, size - 1);
      const [a, b] = [number(), number()];
      const sum = String(BigInt(a) + BigInt(b));
      return [{ prompt: `add:${a}+${b}=`, answer: `${reversed ? [...sum].reverse().join("") : sum};` }];
    },
  };
}
