// A strategy as evaluation runs it: how positions are changed, and how a text longer than the trained length is put
// before the model.

import type { EncodingOptions } from "../../engine/index.ts";
import { parseStrategy } from "../../models/index.ts";

/** How a window of the target length is read. */
export type Reading =
  /** One pass; a table that depends on the length is that of the whole window. */
  | { readonly kind: "whole" }
  /** Tables of each prefix, in blocks: positions of a block are scored in a pass that ends with it. */
  | { readonly kind: "growing"; readonly block: number }
  /** The model sees the last tokens only: passes of `window` tokens, the last `stride` of each scored. What forgetting
   *  the rest gives. */
  | { readonly kind: "windowed"; readonly window: number; readonly stride: number };

export interface EvaluationStrategy {
  /** As typed: "yarn:4", "dynamic:4@growing", "drop+temperature". */
  readonly name: string;
  /** What the model is told. */
  readonly encoding: Pick<EncodingOptions, "scaling" | "drop" | "logitTemperature">;
  readonly reading: Reading;
}

export interface StrategyLengths {
  /** L. Needed for @growing and window. */
  readonly trainedLength: number | null;
  readonly target: number;
}

/** Passes a window that @growing may take, when no block is given. */
const growingPasses = 8;

/**
 * Reads a strategy's name.
 *
 * @param text what `parseStrategy` reads ("none", "yarn:4", "self-extend:8", "drop", JSON), and besides
 *   `NAME@growing` or `NAME@growing:BLOCK` (a table for each prefix, in blocks of so many tokens),
 *   `drop+temperature` or `drop+temperature:C` (DroPE's factor 1 + C · ln(length / trained)),
 *   `window`, `window:W` or `window:W:STRIDE` (the unscaled model on the last W tokens, the trained length when absent)
 * @throws RangeError naming what was expected
 * @example
 * ```ts
 * import { parseEvaluationStrategy } from "longhand/evaluation";
 * parseEvaluationStrategy("window", { trainedLength: 512, target: 2048 }).reading;
 * // => { kind: "windowed", window: 512, stride: 256 }
 * parseEvaluationStrategy("dynamic:4@growing", { trainedLength: 512, target: 2048 }).reading;
 * // => { kind: "growing", block: 192 }
 * ```
 */
export function parseEvaluationStrategy(text: string, lengths: StrategyLengths): EvaluationStrategy {
  const name = text.trim();
  const whole = { kind: "whole" } as const;
  if (name.startsWith("{")) return { name, encoding: { scaling: parseStrategy(name) }, reading: whole };
  const windowed = /^window(?::(\d+))?(?::(\d+))?$/.exec(name);
  if (windowed !== null) {
    const window = windowed[1] === undefined ? trained(name, lengths) : Number(windowed[1]);
    const stride = windowed[2] === undefined ? Math.max(1, Math.floor(window / 2)) : Number(windowed[2]);
    if (window < 2 || stride < 1 || stride >= window) {
      throw new RangeError(
        `strategy: expected a window of at least 2 tokens and a stride from 1 to below it, got ${window} and ${stride} in ` +
          JSON.stringify(name),
      );
    }
    return { name, encoding: { scaling: { kind: "none" } }, reading: { kind: "windowed", window, stride } };
  }
  const temperature = /^drop\+temperature(?::([\d.]+))?$/.exec(name);
  if (temperature !== null) {
    const coefficient = Number(temperature[1]);
    return { name, encoding: { drop: temperature[1] === undefined ? true : { coefficient } }, reading: whole };
  }
  const at = /^([^@]+)@growing(?::(\d+))?$/.exec(name);
  if (at !== null) {
    const length = trained(name, lengths);
    const block = at[2] === undefined ? Math.ceil(Math.max(1, lengths.target - length) / growingPasses) : Number(at[2]);
    if (block < 1) throw new RangeError(`strategy: expected a block of at least 1 token, got ${JSON.stringify(name)}`);
    return { name, encoding: { scaling: parseStrategy(at[1]!) }, reading: { kind: "growing", block } };
  }
  return { name, encoding: { scaling: parseStrategy(name) }, reading: whole };
}

function trained(name: string, { trainedLength }: StrategyLengths): number {
  if (trainedLength !== null) return trainedLength;
  throw new RangeError(
    `strategy: expected a model with a trained length for ${JSON.stringify(name)}, got none; give --trained-length`,
  );
}

/**
 * Splits a list of strategies at its commas, those inside JSON objects aside.
 *
 * @example
 * ```ts
 * import { splitStrategies } from "longhand/evaluation";
 * splitStrategies('none, {"rope_type":"yarn","factor":2},yarn:4');
 * // => ["none", '{"rope_type":"yarn","factor":2}', "yarn:4"]
 * ```
 */
export function splitStrategies(text: string): string[] {
  const out: string[] = [];
  let depth = 0;
  let from = 0;
  let quoted = false;
  for (let i = 0; i <= text.length; i++) {
    const c = text[i];
    if (quoted) {
      if (c === "\\") i++;
      else if (c === '"') quoted = false;
      if (i < text.length) continue;
    }
    if (c === '"') quoted = true;
    else if (c === "{") depth++;
    else if (c === "}") depth--;
    else if (c === undefined || (c === "," && depth === 0)) {
      const part = text.slice(from, i).trim();
      if (part !== "") out.push(part);
      from = i + 1;
    }
  }
  return out;
}
