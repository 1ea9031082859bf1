// longhand/advice: what a model's position encoding means at a length, as data and as charts.

export { type Advice, type AdvisedOption, type AdviseOptions, advise } from "./advise.ts";
export { adviceText } from "./advise-text.ts";
export { enginesText } from "./chart/engines-text.ts";
export { inspectionSvg } from "./chart/svg.ts";
export { inspectionText, type Palette, plain } from "./chart/text.ts";
export {
  angleTolerance,
  type DiffOptions,
  type Disagreement,
  type Divergence,
  diffDialects,
  diffEngines,
  type EngineDiff,
  type EngineRow,
} from "./diff.ts";
export * from "./doctor/index.ts";
export { compareEngines, type EngineComparison, engineDialects } from "./engines.ts";
export * from "./export/index.ts";
export { type InspectedGroup, type Inspection, type InspectOptions, inspectModel } from "./inspect.ts";
export { applyStrategy, parseStrategy, type Strategy, trainedConfig } from "./strategy.ts";
