// Compare: every strategy on the same windows of a text; a run folder of rows, and what they say.

export {
  type CompareSettings,
  type CompareStep,
  type CompareText,
  compareMemory,
  compareSteps,
  needleLengths,
  needsShort,
  passOperations,
  placeWindows,
  stepPasses,
  type WindowPlace,
  windowTokens,
} from "./plan.ts";
export {
  type CompareCost,
  type CompareRequest,
  compareCost,
  type PreparedCompare,
  prepareCompare,
  stepSeconds,
  targetLength,
  tokenizedText,
  trainedLengthOf,
  windowBos,
} from "./prepare.ts";
export { type CompareResult, type CompareRow, compareResult, compareRowCount, type StrategySummary } from "./result.ts";
export {
  type CompareIdentity,
  type CompareJob,
  compareIdentity,
  compareRowOrder,
  type RunCompareOptions,
  runCompare,
} from "./run.ts";
export { compareVerdict, readsTo } from "./verdict.ts";
