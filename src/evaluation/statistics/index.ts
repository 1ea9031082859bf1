// Statistics of losses and scores: means over windows, paired differences, proportions, bins of positions.

export { type Bin, type LogBinOptions, linearBins, logBins, sumBin } from "./bins.ts";
export { bitsPerByte } from "./bits-per-byte.ts";
export {
  bootstrapWindows,
  type Estimate,
  expandedTail,
  type IntervalOptions,
  meanOverWindows,
  sortedQuantile,
  type WindowSum,
} from "./bootstrap.ts";
export { normalCdf, studentQuantile } from "./distributions.ts";
export { lossByDoubling } from "./doublings.ts";
export { type Difference, pairedDifference, type Verdict, verdictOf } from "./paired.ts";
export { type Proportion, proportion } from "./proportion.ts";
