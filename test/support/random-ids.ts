// Token ids from a seed, the same everywhere.

import { random } from "../../src/tensor/index.ts";

export function seededRandom(seed: number, length: number, vocabSize: number): Int32Array {
  const generator = random(seed);
  return Int32Array.from({ length }, () => generator.integer(vocabSize));
}
