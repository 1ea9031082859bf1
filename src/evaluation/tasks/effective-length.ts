// How long a text a model really reads. Three definitions, which do not agree and are therefore always named.

/** A length that was tested, ascending in a list. */
export interface LengthPoint {
  readonly length: number;
}

export type EffectiveLengthDefinition = "loss" | "relative-score" | "ruler";

export interface EffectiveLength {
  readonly definition: EffectiveLengthDefinition;
  /** The longest length that passes, with all shorter ones; null when the shortest already fails. */
  readonly length: number | null;
  /** Whether the longest length tested passes: the true one may be longer. */
  readonly atLeast: boolean;
}

/** RULER's threshold: Llama 2 7B's mean score at 4,096 tokens (Hsieh et al. 2024, 2404.06654, section 4). */
export const rulerThreshold = 0.856;

/** Share of the short score that a long one must keep (the usual cut of retrieval benchmarks, NoLiMa's among them). */
export const relativeThreshold = 0.85;

/**
 * By loss: bins in which the loss is not higher than the same strategy's in the last bin within the trained length, as far
 * as the interval tells. `verdict` is that of the difference, paired by window.
 *
 * @example
 * ```ts
 * import { effectiveLengthByLoss } from "longhand/evaluation";
 * const bins = [{ length: 512, verdict: "tie" }, { length: 1024, verdict: "tie" }, { length: 2048, verdict: "higher" }];
 * effectiveLengthByLoss(bins); // => { definition: "loss", length: 1024, atLeast: false }
 * ```
 */
export function effectiveLengthByLoss(
  points: readonly (LengthPoint & { readonly verdict: "lower" | "higher" | "tie" | "unknown" })[],
): EffectiveLength {
  return longest("loss", points, ({ verdict }) => verdict === "lower" || verdict === "tie");
}

/** By score: lengths that keep at least 85 % of the score at the shortest. */
export function effectiveLengthByScore(
  points: readonly (LengthPoint & { readonly score: number })[],
  short: number,
): EffectiveLength {
  // A model that finds nothing at a short length reads nothing at a long one.
  return longest("relative-score", points, ({ score }) => short > 0 && score >= relativeThreshold * short);
}

/** By RULER's threshold on the mean score over its tasks. */
export function rulerEffectiveLength(points: readonly (LengthPoint & { readonly score: number })[]): EffectiveLength {
  return longest("ruler", points, ({ score }) => score >= rulerThreshold);
}

function longest<T extends LengthPoint>(
  definition: EffectiveLengthDefinition,
  points: readonly T[],
  passes: (point: T) => boolean,
): EffectiveLength {
  const sorted = [...points].sort((a, b) => a.length - b.length);
  const fails = sorted.findIndex((point) => !passes(point));
  const count = fails < 0 ? sorted.length : fails;
  return { definition, length: sorted[count - 1]?.length ?? null, atLeast: fails < 0 && count > 0 };
}
