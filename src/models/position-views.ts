// Positions that a map moves (Self-Extend): every key is turned twice, for queries that are near and for those that are
// far. The cache keeps keys as they are before any rotation, and a chunk is fed with tables of queries and of the keys
// that each view sees, and with a mask that says which pairs are its own. So sizes of groups and windows are data too.

import { type PositionMap, type PositionView, selfExtendMap } from "../encodings/position-maps/index.ts";
import { computeRopeFrequencies, ropeDependsOnLength } from "../encodings/rope/scaling/index.ts";
import type { RopeConfig, RopeFrequencies } from "../encodings/rope/scaling/parameters.ts";
import { rotaryTablesFloat32 } from "../encodings/rope/tables.ts";
import type { ModelDescription, PositionSettings } from "../formats/model-description.ts";
import { type Tensor, tensor } from "../tensor/index.ts";
import type { SiteSource } from "./positions.ts";
import { RotaryRows } from "./rotary-rows.ts";
import { type Strategy, strategyApplies, trainedLengthOf } from "./strategy.ts";

type SelfExtend = Extract<Strategy, { kind: "self-extend" }>;

export interface SelfExtendSizes {
  readonly groupSize: number;
  readonly neighborWindow: number;
}

/** Views of Self-Extend: near and far. */
export const viewCount = 2;

/** The groups of a model whose positions Self-Extend moves: rotary ones that see the whole context. Layers with a window
 *  keep their positions: they see no key that is far. */
export function viewedGroups(model: ModelDescription): number[] {
  const any: SelfExtend = { kind: "self-extend", groupSize: 1 };
  return model.groups.flatMap((group, index) => {
    const whole = group.slidingWindow === null && group.attentionChunkSize === null;
    return group.position.site === "query-key" && whole && strategyApplies(group, model, any) ? [index] : [];
  });
}

/** The window that is taken where none is named: a quarter of the trained length, as the authors' 1,024 of 4,096. */
export function neighborWindowOf(trainedLength: number): number {
  return Math.max(1, Math.floor(trainedLength / 4));
}

/** The map that a strategy means for a group. Throws RangeError where its window is not below the trained length. */
export function selfExtendOf(
  { groupSize, neighborWindow }: SelfExtend,
  position: Extract<PositionSettings, { site: "query-key" }>,
  model: ModelDescription,
): { readonly map: PositionMap; readonly sizes: SelfExtendSizes } {
  const trainedLength = trainedLengthOf(position, model);
  if (trainedLength === null) {
    throw new RangeError(
      "--scaling: expected a model with a trained length for self-extend, got none in the file; give --trained-length",
    );
  }
  const sizes = { groupSize, neighborWindow: neighborWindow ?? neighborWindowOf(trainedLength) };
  return { map: selfExtendMap({ trainedLength, ...sizes }), sizes };
}

/**
 * The feeds of a rotary group under a map, for a graph with `keyViews`. Of view V of group G: `queryCos.G.V`,
 * `querySin.G.V` [tokens, P]; `keyCos.G.V`, `keySin.G.V` [keys, P], the keys from `viewFirst.G.V` on that some query of
 * the chunk sees through it; `viewMask.G.V` [tokens, keys], 0 where the pair is this view's and −∞ elsewhere.
 */
export function viewTables(
  config: RopeConfig,
  { map, sizes }: { readonly map: PositionMap; readonly sizes: SelfExtendSizes },
  index: number,
): SiteSource {
  const dependsOnLength = ropeDependsOnLength(config.rope);
  const at = (length: number): RopeFrequencies => computeRopeFrequencies(config, length);
  // Also checks the settings now, before any work.
  const fixed = at(1);
  const keyOf = ({ inverseFrequencies, attentionFactor }: RopeFrequencies): string =>
    `${map.name}:${sizes.groupSize}:${sizes.neighborWindow};${attentionFactor};${inverseFrequencies.join()}`;
  return {
    description: { site: "query-key", encoding: map.name, rope: config.rope, map: sizes },
    maxLength: Number.POSITIVE_INFINITY,
    dependsOnLength,
    key: (length) => keyOf(dependsOnLength ? at(length) : fixed),
    open(length) {
      const frequencies = dependsOnLength ? at(length) : fixed;
      const pairs = frequencies.inverseFrequencies.length;
      const turn = (from: number, to: number, where: (position: number) => number) =>
        rotaryTablesFloat32(
          frequencies,
          Float64Array.from({ length: to - from }, (_, i) => where(from + i)),
        );
      const keys = map.views.map(({ key }) => new RotaryRows(pairs, length, (from, to) => turn(from, to, key)));
      return (past, count, into) => {
        for (const [v, view] of map.views.entries()) {
          const rows = keys[v]!;
          const { first, end, mask } = pairsOf(view, past, count);
          const table = rows.from(first, end);
          const seen = (values: Float32Array): Tensor =>
            tensor("f32", [end - first, pairs], values.subarray(0, (end - first) * pairs));
          const queries = turn(past, past + count, view.query);
          into[`queryCos.${index}.${v}`] = tensor("f32", [count, pairs], queries.cos);
          into[`querySin.${index}.${v}`] = tensor("f32", [count, pairs], queries.sin);
          into[`keyCos.${index}.${v}`] = seen(table.cos);
          into[`keySin.${index}.${v}`] = seen(table.sin);
          into[`viewFirst.${index}.${v}`] = tensor("i64", [], BigInt64Array.of(BigInt(first)));
          into[`viewMask.${index}.${v}`] = mask;
        }
      };
    },
  };
}

/** The keys first … end − 1 that queries past … past + count − 1 see through a view, and which pairs of them are its. */
function pairsOf(
  { sees }: PositionView,
  past: number,
  count: number,
): { readonly first: number; readonly end: number; readonly mask: Tensor } {
  let first = past + count;
  let end = 0;
  for (let q = past; q < past + count; q++) {
    for (let k = 0; k < Math.min(first, q + 1); k++) if (sees(q, k)) first = k;
    for (let k = q; k >= end; k--) if (sees(q, k)) end = k + 1;
  }
  // A view of nothing keeps one key that nobody sees: kernels want a row.
  if (end === 0) [first, end] = [0, 1];
  const width = end - first;
  const mask = new Float32Array(count * width).fill(Number.NEGATIVE_INFINITY);
  for (let t = 0; t < count; t++) {
    for (let k = first; k < Math.min(end, past + t + 1); k++) if (sees(past + t, k)) mask[t * width + k - first] = 0;
  }
  return { first, end, mask: tensor("f32", [count, width], mask) };
}
