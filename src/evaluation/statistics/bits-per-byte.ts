// Losses that do not depend on the tokenizer: bits a byte of UTF-8.

/**
 * Bits per byte: Σ losses / (ln 2 · bytes).
 *
 * @param nats the sum of the losses
 * @param bytes of UTF-8 that the predicted tokens stand for
 * @throws RangeError for less than one byte
 * @example
 * ```ts
 * import { bitsPerByte } from "longhand/evaluation";
 * bitsPerByte(8 * Math.LN2, 4); // => 2
 * ```
 */
export function bitsPerByte(nats: number, bytes: number): number {
  if (!(bytes >= 1)) throw new RangeError(`bitsPerByte: expected at least one byte, got ${bytes}`);
  return nats / Math.LN2 / bytes;
}
