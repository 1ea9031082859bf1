// Strategies by name, and which of them make sense for a model.

export { chosenStrategies, type StrategyChoice, strategyChoices } from "./chosen.ts";
export {
  defaultStrategies,
  expectDecoder,
  factorFor,
  type LeftOut,
  positionsEnd,
  type StrategySet,
  windowedName,
} from "./defaults.ts";
export {
  type EvaluationStrategy,
  parseEvaluationStrategy,
  type Reading as EvaluationReading,
  type StrategyLengths,
  splitStrategies,
} from "./strategy.ts";
export { factorList } from "./sweep.ts";
