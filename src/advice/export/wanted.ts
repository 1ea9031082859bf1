// What is asked for: the rotary settings of each group of layers under a strategy, and the table that they give at the
// export's length. Engines are compared with this.

import { computeRopeFrequencies, ropeDependsOnLength } from "../../encodings/rope/scaling/index.ts";
import type { RopeConfig } from "../../encodings/rope/scaling/parameters.ts";
import type { ModelDescription, PositionGroup, PositionSettings } from "../../formats/model-description.ts";
import {
  applyStrategy,
  type Strategy,
  strategyApplies,
  trainedConfig,
  trainedLengthOf,
} from "../../models/strategy.ts";

type Rope = Extract<PositionSettings, { site: "query-key" }>;
export type RotaryGroup = PositionGroup & { readonly position: Rope };

export interface Wanted {
  readonly group: RotaryGroup;
  /** What the file says, as it is. */
  readonly own: RopeConfig;
  /** What is asked for; a table of zeros where the rotation is dropped. */
  readonly config: RopeConfig;
  readonly dropped: boolean;
  /** Whether the strategy speaks of this group. */
  readonly changed: boolean;
  readonly trainedLength: number | null;
  /** At the export's length. */
  readonly inverseFrequencies: Float64Array;
  readonly attentionFactor: number;
  /** Of the model, kept by every strategy but a new YaRN's. */
  readonly softmaxFactor: number;
  readonly dependsOnLength: boolean;
}

export function isRotary(group: PositionGroup): group is RotaryGroup {
  return group.position.site === "query-key";
}

/** Every rotary group under a strategy. Throws RangeError as `applyStrategy` does. */
export function wantedGroups(model: ModelDescription, strategy: Strategy, length: number): Wanted[] {
  return model.groups.filter(isRotary).map((group) => {
    const changed = strategy.kind !== "as-is" && strategyApplies(group, model, strategy);
    const own = applyStrategy({ kind: "as-is" }, group, model) as RopeConfig;
    const trainedLength = trainedLengthOf(group.position, model);
    const applied = changed ? applyStrategy(strategy, group, model) : own;
    const dropped = applied === "drop";
    const config = dropped ? still(trainedConfig(group.position, model)) : applied;
    const { inverseFrequencies, attentionFactor } = computeRopeFrequencies(config, length);
    return {
      group,
      own,
      config,
      dropped,
      changed,
      trainedLength,
      inverseFrequencies,
      attentionFactor,
      softmaxFactor: group.softmaxFactor,
      dependsOnLength: ropeDependsOnLength(config.rope),
    };
  });
}

/** cos 1 and sin 0 for every pair: dropped positions. */
function still(config: RopeConfig): RopeConfig {
  const { ropeTheta, partialRotaryFactor } = config.rope;
  const pairs = computeRopeFrequencies(config, 1).inverseFrequencies.length;
  return {
    ...config,
    rope: {
      ropeType: "table",
      ropeTheta,
      ...(partialRotaryFactor === undefined || config.rope.ropeType === "proportional" ? {} : { partialRotaryFactor }),
      inverseFrequencies: new Array<number>(pairs).fill(0),
    },
  };
}

/** The length that a strategy is for: what its factor reaches; the file's claim where it names no length. */
export function lengthOfStrategy(model: ModelDescription, strategy: Strategy): number {
  const claimed = Math.max(model.maxPositionEmbeddings ?? 0, ...model.groups.filter(isRotary).map(reach));
  const trained = Math.max(0, ...model.groups.filter(isRotary).map((g) => trainedLengthOf(g.position, model) ?? 0));
  const found = ((): number => {
    switch (strategy.kind) {
      case "as-is":
        return claimed;
      case "none":
      case "drop":
        return trained || claimed;
      case "self-extend":
        // No engine's settings say it: the error of applyStrategy.
        for (const group of model.groups.filter(isRotary)) applyStrategy(strategy, group, model);
        break;
      case "short":
        if (strategy.name === "dynamic-linear" || strategy.name === "dynamic-yarn") break;
        return Math.round(strategy.factor * (trained || claimed));
      case "parameters": {
        const { factor, original_max_position_embeddings: original } = strategy.value;
        const from = typeof original === "number" ? original : trained || claimed;
        return typeof factor === "number" ? Math.max(1, Math.round(factor * from)) : claimed;
      }
    }
    throw new RangeError(
      `export: expected --length, since ${strategy.kind === "short" ? strategy.name : "the scaling"} names none, got none`,
    );
  })();
  if (found === 0) throw new RangeError("export: expected --length, since the file names no length, got none");
  return found;
}

function reach(group: RotaryGroup): number {
  const { rope } = group.position;
  if (!("originalMaxPositionEmbeddings" in rope) || rope.ropeType === "llama3") return 0;
  return Math.round(("factor" in rope ? (rope.factor ?? 1) : 1) * rope.originalMaxPositionEmbeddings);
}
