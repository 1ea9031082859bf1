// Reports of run folders: a model of what is said, and its writers.
//
//   runs ──► model ──► html (curves, tables, heat maps) · markdown · svg · csv, jsonl

export { type Chart, type Curve, type CurvePoint, chartColours } from "./chart.ts";
export { runDifferenceText } from "./differences.ts";
export { type ReportFormat, reportFormats } from "./formats.ts";
export { type ReportHtmlOptions, reportHtml } from "./html.ts";
export { reportMarkdown } from "./markdown.ts";
export { type Both, type Language, visibleText } from "./markup.ts";
export {
  type CompareSection,
  type LeftOutStrategy,
  type NeedleCell,
  type NeedleMap,
  type NeedleSection,
  type NeedleSummary,
  type PerplexitySection,
  type Report,
  type ReportRun,
  type ReportSection,
  reportOf,
  type TrainPoint,
  type TrainSection,
} from "./model.ts";
export { reportParquet } from "./parquet.ts";
export { reportSvg } from "./svg.ts";
export { reportCsv, reportJsonLines } from "./tables.ts";
export { type RunView, runView, visibleData } from "./view.ts";
