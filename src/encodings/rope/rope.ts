// RoPE as an encoding: a scaling's frequencies, applied to positions. Knows no checkpoint.

import { expectInteger, show } from "../errors.ts";
import type { QueryKeyEncoding, RotaryLayout, RotaryTables } from "../position-encoding.ts";
import { computeRopeFrequencies, ropeDependsOnLength } from "./scaling/index.ts";
import type { RopeConfig } from "./scaling/parameters.ts";
import { identityTables, rotaryTables } from "./tables.ts";

export interface RopeEncoding extends QueryKeyEncoding {
  readonly config: RopeConfig;
}

/**
 * Rotary position encoding under any scaling: pair i of a query or key at position p is turned by p·ω_i, so that a
 * score depends on positions through their difference alone.
 *
 * @param options headDim D, maxPositionEmbeddings, rope (a RopeParameters), and the layout ("half" when absent)
 * @throws RangeError for settings that are missing, unknown or out of range
 * @example
 * ```ts
 * import { rope } from "longhand/encodings";
 * const encoding = rope({
 *   headDim: 4,
 *   maxPositionEmbeddings: 2048,
 *   rope: { ropeType: "linear", ropeTheta: 10000, factor: 2 },
 * });
 * encoding.rotaryDim; // => 4
 * encoding.queryTables([2], 3).cos; // => [0.5403023058681398, 0.9999500004166653]
 * ```
 * Source: RoFormer (Su et al. 2021, 2104.09864), section 3.2.
 */
export function rope(options: RopeConfig & { readonly layout?: RotaryLayout }): RopeEncoding {
  const { layout = "half", ...config } = options;
  if (layout !== "half" && layout !== "interleaved") {
    throw new RangeError(`rope: expected layout "half" or "interleaved", got ${show(layout)}`);
  }
  // Also checks every setting before any use.
  const pairs = computeRopeFrequencies(config, 1).inverseFrequencies.length;
  const tables = (positions: ArrayLike<number>, sequenceLength: number) =>
    rotaryTables(computeRopeFrequencies(config, sequenceLength), positions);
  return {
    site: "query-key",
    name: config.rope.ropeType === "default" ? "rope" : `rope:${config.rope.ropeType}`,
    headDim: config.headDim,
    rotaryDim: 2 * pairs,
    layout,
    dependsOnLength: ropeDependsOnLength(config.rope),
    config,
    queryTables: tables,
    keyTables: tables,
  };
}

/**
 * A rotary model's encoding once dropped: rotation by nothing (cos 1, sin 0), at the same width.
 *
 * @example
 * ```ts
 * import { droppedRope } from "longhand/encodings";
 * droppedRope({ headDim: 4 }).queryTables([7], 8).sin; // => [0, 0]
 * ```
 * Source: DroPE (2512.12167), section 4.
 */
export function droppedRope({
  headDim,
  layout = "half",
}: {
  readonly headDim: number;
  readonly layout?: RotaryLayout;
}): QueryKeyEncoding {
  expectInteger("droppedRope", "headDim", headDim, 2);
  const tables = (positions: ArrayLike<number>): RotaryTables => identityTables(positions.length, headDim / 2);
  return {
    site: "query-key",
    name: "dropped",
    headDim,
    rotaryDim: headDim,
    layout,
    dependsOnLength: false,
    queryTables: tables,
    keyTables: tables,
  };
}

/**
 * Tables of a length-dependent scaling as decoding without a cache sees them: row t is the last row of the table for
 * the prefix of t + 1 tokens. The other reading, one table for the whole sequence, is `rope(…).queryTables`. With
 * `dynamic` the two differ in every row past the trained length but the last; keys decoded into a cache keep the row
 * of their own step, which is this function's table.
 *
 * @param config as for `computeRopeFrequencies`
 * @param sequenceLength T, the final length
 * @returns cos and sin [T, P]
 * @example
 * ```ts
 * import { growingTables, rope } from "longhand/encodings";
 * const config = { headDim: 4, maxPositionEmbeddings: 2, rope: { ropeType: "dynamic", ropeTheta: 10000, factor: 2 } };
 * const growing = growingTables(config, 4);
 * const whole = rope(config).queryTables([0, 1, 2, 3], 4);
 * growing.cos[7] === whole.cos[7]; // => true
 * growing.cos[5] === whole.cos[5]; // => false
 * ```
 * Source: YaRN paper (2309.00071), section 3.3; transformers issue 25104 on the cached case.
 */
export function growingTables(config: RopeConfig, sequenceLength: number): RotaryTables {
  expectInteger("growingTables", "sequenceLength", sequenceLength, 1);
  if (!ropeDependsOnLength(config.rope)) {
    return rotaryTables(
      computeRopeFrequencies(config, sequenceLength),
      Float64Array.from({ length: sequenceLength }, (_, t) => t),
    );
  }
  const pairs = computeRopeFrequencies(config, 1).inverseFrequencies.length;
  const cos = new Float64Array(sequenceLength * pairs);
  const sin = new Float64Array(sequenceLength * pairs);
  for (let t = 0; t < sequenceLength; t++) {
    const row = rotaryTables(computeRopeFrequencies(config, t + 1), [t]);
    cos.set(row.cos, t * pairs);
    sin.set(row.sin, t * pairs);
  }
  return { cos, sin };
}
