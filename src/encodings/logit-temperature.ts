// Factors on a query by its position or by the sequence's length, which sharpen attention as more keys compete.
// They act once, on the query (so on the logit once), unlike a rotary attention factor, which acts on q and on k.

import { expectFinite, expectInteger, expectPositive, show } from "./errors.ts";

export type LogitTemperature =
  /** Llama 4, on its NoPE layers: 1 + scale · ln(1 + floor((p + 1) / floorScale)). */
  | { readonly kind: "llama4"; readonly scale: number; readonly floorScale: number }
  /** Ministral 3 and Mistral 4, on every layer: 1 + beta · ln(1 + floor(p / originalMaxPositionEmbeddings)). */
  | { readonly kind: "ministral3"; readonly beta: number; readonly originalMaxPositionEmbeddings: number }
  /** DroPE at test time: 1 + coefficient · ln(length / trainedLength) for every position; 1 up to trainedLength. */
  | { readonly kind: "drope"; readonly coefficient: number; readonly trainedLength: number }
  /** Entropy-keeping log scaling, beside ReRoPE and Self-Extend and in Qwen 1: ln(p + 1) / ln(trainedLength), at least 1. */
  | { readonly kind: "logn"; readonly trainedLength: number };

/**
 * What each query is multiplied by.
 *
 * - `llama4`: 1 + scale · ln(1 + floor((p + 1) / floorScale)) (Llama 4's code: attn_scale 0.1, floor_scale 8192).
 * - `ministral3`: 1 + beta · ln(1 + floor(p / L)): one position later than `llama4` at the same period.
 * - `drope`: 1 + c · ln(length / L), c = 0.412 from scratch or 0.103 for SmolLM (DroPE, 2512.12167, section 4).
 * - `logn`: max(1, ln(p + 1) / ln L) (Su 2021, kexue.fm/archives/8823; Qwen's use_logn_attn; `scale_base` of Self-Extend).
 *
 * @param temperature which rule, with its constants
 * @param positions T absolute positions, counted from 0
 * @param sequenceLength the length of the whole sequence (only `drope` uses it)
 * @returns T factors
 * @throws RangeError for a length that is not positive, a coefficient that is not finite, a position that is not an
 * integer of at least 0, or an unknown kind
 * @example
 * ```ts
 * import { logitTemperature } from "longhand/encodings";
 * const llama4 = { kind: "llama4", scale: 0.1, floorScale: 8192 };
 * logitTemperature(llama4, [8190, 8191, 131071], 131072); // => [1, 1.0693147180559945, 1.2833213344056217]
 * ```
 */
export function logitTemperature(
  temperature: LogitTemperature,
  positions: ArrayLike<number>,
  sequenceLength: number,
): Float64Array {
  const who = "logitTemperature";
  const out = new Float64Array(positions.length);
  switch (temperature.kind) {
    case "llama4":
      expectPositive(who, "floorScale", temperature.floorScale);
      expectFinite(who, "scale", temperature.scale);
      return out.map((_, t) => {
        const p = expectInteger(who, "positions", positions[t]!);
        return 1 + temperature.scale * Math.log(1 + Math.floor((p + 1) / temperature.floorScale));
      });
    case "ministral3": {
      const period = expectPositive(who, "originalMaxPositionEmbeddings", temperature.originalMaxPositionEmbeddings);
      expectFinite(who, "beta", temperature.beta);
      return out.map((_, t) => {
        const p = expectInteger(who, "positions", positions[t]!);
        return 1 + temperature.beta * Math.log(1 + Math.floor(p / period));
      });
    }
    case "drope": {
      expectFinite(who, "coefficient", temperature.coefficient);
      for (let t = 0; t < positions.length; t++) expectInteger(who, "positions", positions[t]!);
      const ratio =
        expectPositive(who, "sequenceLength", sequenceLength) /
        expectPositive(who, "trainedLength", temperature.trainedLength);
      return out.fill(ratio <= 1 ? 1 : 1 + temperature.coefficient * Math.log(ratio));
    }
    case "logn": {
      const base = Math.log(expectInteger(who, "trainedLength", temperature.trainedLength, 2));
      return out.map((_, t) => Math.max(1, Math.log(expectInteger(who, "positions", positions[t]!) + 1) / base));
    }
    default:
      throw new RangeError(
        `${who}: expected kind to be "llama4", "ministral3", "drope" or "logn", got ${show((temperature as { kind: unknown }).kind)}`,
      );
  }
}
