// The last check of every reader: settings that are well typed must also compute. What `inspect` is handed then works.

import { computeRopeFrequencies, ropeDependsOnLength } from "../encodings/rope/scaling/index.ts";
import { FormatError } from "./bytes/format-error.ts";
import type { PositionGroup } from "./model-description.ts";

/** Throws FormatError when a rotary group's frequencies cannot be computed (a base of 1 under yarn, a factor of 1e308). */
export function expectComputable(
  file: string,
  groups: readonly PositionGroup[],
  maxPositionEmbeddings: number | null,
): void {
  for (const { position } of groups) {
    if (position.site !== "query-key") continue;
    const original = "originalMaxPositionEmbeddings" in position.rope ? position.rope.originalMaxPositionEmbeddings : 1;
    const longest = maxPositionEmbeddings ?? original;
    const config = { headDim: position.headDim, maxPositionEmbeddings: longest, rope: position.rope };
    try {
      computeRopeFrequencies(config, 1);
      if (ropeDependsOnLength(position.rope)) computeRopeFrequencies(config, Math.max(longest, original));
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      throw new FormatError(file, error.message);
    }
  }
}
