// Strategies by name, and which of them make sense for a model.

export {
  type EvaluationStrategy,
  parseEvaluationStrategy,
  type Reading as EvaluationReading,
  type StrategyLengths,
  splitStrategies,
} from "./strategy.ts";
