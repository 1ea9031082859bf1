// Tasks: what a model is asked, as data, and what is made of its answers.

export {
  type EffectiveLength,
  type EffectiveLengthDefinition,
  effectiveLengthByLoss,
  effectiveLengthByScore,
  type LengthPoint,
  relativeThreshold,
  rulerEffectiveLength,
  rulerThreshold,
} from "./effective-length.ts";
export { type LossOptions, lossByPosition, lossPasses, type Pass } from "./loss-by-position.ts";
export {
  type Perplexity,
  type PerplexityOptions,
  type PerplexityWindow,
  perplexityOf,
  perplexityWindows,
  scorePerplexityWindow,
  type WindowLoss,
} from "./perplexity.ts";
export { type PerplexityResult, type PerplexityRow, perplexityResults } from "./perplexity-results.ts";
export * from "./retrieval/index.ts";
