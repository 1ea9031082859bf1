// Strategies as a person lists them: names that stand for themselves times a factor, "all", and the baselines without
// which a comparison says nothing.

import type { ModelDescription } from "../../formats/model-description.ts";
import {
  defaultStrategies,
  expectDecoder,
  factorFor,
  positionsEnd,
  type StrategySet,
  selfExtendName,
  windowedName,
} from "./defaults.ts";
import { parseEvaluationStrategy, type StrategyLengths, splitStrategies } from "./strategy.ts";
import { sweptNames, withFactor } from "./sweep.ts";

/**
 * The strategies that were asked for, the baselines among them.
 *
 * @param list as typed, "yarn:2,4,8" and "yarn:2..8" for several factors; absent: what makes sense for the model; "all":
 *   everything that applies to it
 * @param factors of the names without one; that of the target when absent
 * @throws RangeError for what is no strategy, and for a model with an encoder
 * @example
 * ```ts
 * import { chosenStrategies } from "longhand/evaluation";
 * import { describeHuggingFace } from "longhand/formats";
 * const model = describeHuggingFace({
 *   model_type: "llama", hidden_size: 64, num_hidden_layers: 2, num_attention_heads: 4, max_position_embeddings: 512,
 * });
 * const { strategies } = chosenStrategies(model, { trainedLength: 512, target: 2048 }, "yarn");
 * strategies.map(({ name }) => name); // => ["none", "yarn:4", "window"]
 * ```
 */
export function chosenStrategies(
  model: ModelDescription,
  lengths: StrategyLengths,
  list?: string,
  factors?: readonly number[],
): StrategySet {
  expectDecoder(model);
  if (list === undefined || list.trim() === "all") {
    const options = { all: list !== undefined, ...(factors === undefined ? {} : { factors }) };
    return defaultStrategies(model, lengths, options);
  }
  const { trainedLength, target } = lengths;
  const names = sweptNames(splitStrategies(list)).flatMap((name) => {
    const [bare, at = ""] = name.split(/(?=@)/);
    const moves = bare === "self-extend";
    if (!moves && !withFactor.includes(bare!)) return [name];
    if (trainedLength === null && moves) {
      throw new RangeError(`--strategies: expected a model with a trained length for ${name}, got none in the file`);
    }
    if (trainedLength === null && factors === undefined) {
      throw new RangeError(`--strategies: expected ${bare}:FACTOR for a model without a trained length, got ${name}`);
    }
    const named = (factor: number): string => (moves ? selfExtendName(trainedLength!, factor) : `${bare}:${factor}`);
    return (factors ?? [factorFor(trainedLength!, target)]).map((factor) => `${named(factor)}${at}`);
  });
  if (target <= positionsEnd(model) && !names.includes("none")) names.unshift("none");
  const beyond = trainedLength !== null && target > trainedLength;
  if (beyond && !names.some((name) => /^window(:|$)/.test(name))) names.push(windowedName);
  const strategies = [...new Set(names)].map((name) => parseEvaluationStrategy(name, lengths));
  return { strategies, leftOut: [] };
}

/** A strategy to choose, and whether it is among those that are run when nothing is chosen. */
export interface StrategyChoice {
  readonly name: string;
  readonly usual: boolean;
}

/**
 * Every strategy that applies to a model at these lengths, the usual ones first.
 *
 * @throws RangeError for a model with an encoder
 */
export function strategyChoices(model: ModelDescription, lengths: StrategyLengths): StrategyChoice[] {
  const usual = defaultStrategies(model, lengths).strategies.map(({ name }) => name);
  const rest = defaultStrategies(model, lengths, { all: true })
    .strategies.map(({ name }) => name)
    .filter((name) => !usual.includes(name));
  return [...usual.map((name) => ({ name, usual: true })), ...rest.map((name) => ({ name, usual: false }))];
}
