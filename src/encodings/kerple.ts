// KERPLE, kernelized relative position embedding (Chi et al. 2022, 2205.09921): the bias is a conditionally positive
// definite kernel of the distance, with two learned positive numbers a head. ALiBi is the power variant with r2 = 1.

import { biasByDistance } from "./bias-by-distance.ts";
import { expectFinite, expectPositive, show } from "./errors.ts";
import type { AttentionBiasEncoding } from "./position-encoding.ts";

export type KerpleKind = "logarithmic" | "power";

export interface KerpleOptions {
  /** logarithmic (the paper's best): −r1·ln(1 + r2·d). power: −r1·d^r2. */
  readonly kind: KerpleKind;
  /** r1 of each head, above 0 (`bias_p` of the authors' logarithmic class, `bias_a` of the power class). */
  readonly r1: ArrayLike<number>;
  /** r2 of each head: above 0, and at most 2 for power (`bias_a` of the logarithmic class, `bias_p` of the power
   *  class). The authors' code keeps both at 0.01 or more while training. */
  readonly r2: ArrayLike<number>;
  /** Distance |i − j| instead of max(i − j, 0); false when absent. */
  readonly bidirectional?: boolean;
}

function expectParameters(who: string, kind: KerpleKind, r1: number, r2: number): void {
  expectPositive(who, "r1", r1);
  expectPositive(who, "r2", r2);
  if (kind !== "logarithmic" && kind !== "power") {
    throw new RangeError(`${who}: expected kind to be "logarithmic" or "power", got ${show(kind)}`);
  }
  if (kind === "power" && r2 > 2) {
    throw new RangeError(`${who}: expected r2 of at most 2 for the power kernel, got ${r2}; above 2 it is no kernel`);
  }
}

function kernel(kind: KerpleKind, r1: number, r2: number, distance: number): number {
  if (distance === 0) return 0;
  return 0 - r1 * (kind === "power" ? distance ** r2 : Math.log1p(r2 * distance));
}

/**
 * KERPLE's bias at one distance: −r1·ln(1 + r2·d) (logarithmic) or −r1·d^r2 (power).
 *
 * Chi et al. 2022 (2205.09921), and the authors' ParallelKerpleLog and ParallelKerplePower.
 *
 * @param distance d = |i − j| in tokens, at least 0
 * @throws RangeError for a negative distance, r1 or r2 not above 0, r2 above 2 for power, or an unknown kind
 * @example
 * ```ts
 * import { kerpleBias } from "longhand/encodings";
 * kerpleBias(4, { kind: "power", r1: 0.5, r2: 0.5 }); // => -1
 * kerpleBias(3, { kind: "logarithmic", r1: 2, r2: 1 }); // => -2.772588722239781
 * ```
 */
export function kerpleBias(
  distance: number,
  { kind, r1, r2 }: { readonly kind: KerpleKind; readonly r1: number; readonly r2: number },
): number {
  const who = "kerpleBias";
  expectParameters(who, kind, r1, r2);
  if (expectFinite(who, "distance", distance) < 0) {
    throw new RangeError(`${who}: expected a distance of at least 0, got ${distance}`);
  }
  return kernel(kind, r1, r2, distance);
}

/**
 * KERPLE as an encoding of as many heads as there are parameters.
 *
 * Chi et al. 2022 (2205.09921).
 *
 * @throws RangeError when r1 and r2 differ in length or are empty, or as `kerpleBias`
 * @example
 * ```ts
 * import { kerple } from "longhand/encodings";
 * kerple({ kind: "power", r1: [0.5], r2: [1] }).bias([3], [0, 1, 2, 3]); // => [-1.5, -1, -0.5, 0]
 * ```
 */
export function kerple(options: KerpleOptions): AttentionBiasEncoding & { readonly kind: KerpleKind } {
  const who = "kerple";
  const { kind } = options;
  const r1 = Float64Array.from(options.r1);
  const r2 = Float64Array.from(options.r2);
  if (r1.length === 0 || r1.length !== r2.length) {
    throw new RangeError(`${who}: expected one r1 and one r2 a head, got ${r1.length} and ${r2.length}`);
  }
  for (let head = 0; head < r1.length; head++) expectParameters(who, kind, r1[head]!, r2[head]!);
  return {
    site: "attention-bias",
    name: "kerple",
    kind,
    numHeads: r1.length,
    bias: (queryPositions, keyPositions) =>
      biasByDistance(who, r1.length, queryPositions, keyPositions, options.bidirectional ?? false, (head, distance) =>
        kernel(kind, r1[head]!, r2[head]!, distance),
      ),
  };
}
