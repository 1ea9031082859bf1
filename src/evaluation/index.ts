// longhand/evaluation: how far a model reads, measured, and kept in run folders.
//
//   text ── compare/plan: windows ──► tasks (loss by position, perplexity, retrieval) over a ScoringModel (model.ts)
//   strategies: which positions a task runs under ──► rows ──► run-folder ──► statistics ──► a verdict

export * from "./compare/index.ts";
export { inOrder } from "./in-order.ts";
export { type LengthPoint, type LengthTest, taskLengthTest, textLengthTest } from "./length-test.ts";
export {
  type CompareEvent,
  type ComparePlan,
  type CompareQuestion,
  type LiveCompareOptions,
  liveCompare,
  planCompare,
  textFileName,
} from "./live-compare.ts";
export type { ScoringModel } from "./model.ts";
export * from "./report/index.ts";
export * from "./run-folder/index.ts";
export * from "./search/index.ts";
export * from "./statistics/index.ts";
export * from "./strategies/index.ts";
export * from "./tasks/index.ts";
