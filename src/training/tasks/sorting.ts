// Sorting: numbers in order. What comes next is found by value; positions matter to tell where a number begins.

import { digits as digitText, drawText, expectOptions, expectWhole, type Task } from "./task.ts";

export interface SortingOptions {
  /** Digits of each number, zeros in front included; 2 when absent. */
  readonly digits?: number;
}

/**
 * `sort:31 04 15=04 15 31;`: n numbers of `digits` digits, then the same in ascending order. Numbers may repeat.
 *
 * Kazemnejad et al. 2023 (2305.19466), table 1.
 *
 * @throws RangeError for an unknown option, or digits outside 1 .. 9
 * @example
 * ```ts
 * import { sorting } from "longhand/training";
 * import { random } from "longhand/tensor";
 * const [{ answer }] = sorting().example(9, random(1));
 * const numbers = answer.slice(0, -1).split(" ").map(Number);
 * numbers.every((x, i) => i === 0 || x >= numbers[i - 1]); // => true
 * ```
 */
export function sorting(options: SortingOptions = {}): Task {
  expectOptions("sorting", options, ["digits"]);
  const digits = expectWhole("sorting", "digits", options.digits ?? 2, 1, 9);
  return {
    name: "sorting",
    format: `sort:${["31", "04", "15"].map((x) => x.padStart(digits, "0").slice(-digits)).join(" ")}=…;`,
    unit: "numbers",
    minSize: 1,
    maxSize: Number.POSITIVE_INFINITY,
    length: (size) => 2 * (size * (digits + 1) - 1) + 7,
    example(size, stream) {
      const numbers = Array.from({ length: size }, () => drawText(stream, digitText, digits));
      // Of equal lengths: the order of texts is that of numbers.
      return [{ prompt: `sort:${numbers.join(" ")}=`, answer: `${[...numbers].sort().join(" ")};` }];
    },
  };
}
