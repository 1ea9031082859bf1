// What a search begins with: the rules of the field, as stretches of a model's trained hands.

import { computeRopeFrequencies } from "../../encodings/index.ts";
import type { LongRope, RopeConfig } from "../../encodings/rope/scaling/parameters.ts";
import type { ModelDescription, PositionGroup, PositionSettings } from "../../formats/model-description.ts";
import { applyStrategy, parseStrategy, strategyApplies, trainedConfig } from "../../models/index.ts";
import type { Candidate } from "./evolution.ts";

type Rope = Extract<PositionSettings, { site: "query-key" }>;

/** A rule of the field by its short form, and as a candidate. */
export interface Rule {
  readonly name: string;
  readonly candidate: Candidate;
}

/** The hands that a search may stretch, and what the rules make of them. */
export interface SearchSpace {
  readonly trained: RopeConfig;
  readonly trainedLength: number;
  readonly target: number;
  readonly rules: readonly Rule[];
  /** The greatest stretch of any rule and a quarter more, at least 1.25 times the extension (the paper's limit). */
  readonly mostStretch: number;
}

/**
 * The space of a model.
 *
 * @throws RangeError for a model without rotary hands, with groups that a scaling would change alike though they differ,
 *   with settings that are no stretch of RoPE's series, or for a target that is not past the trained length
 */
export function searchSpace(
  model: ModelDescription,
  { trainedLength, target }: { readonly trainedLength: number; readonly target: number },
): SearchSpace {
  if (target <= trainedLength) {
    throw new RangeError(
      `search: expected a target past the trained length of ${trainedLength}, got ${target}; nothing is to be stretched`,
    );
  }
  const groups = model.groups.filter(isRotary).filter((group) => strategyApplies(group, model));
  const first = groups[0];
  if (first === undefined)
    throw new RangeError(`search: expected a model with rotary positions, got ${model.modelType}`);
  const trained = trainedConfig(first.position, model);
  for (const other of groups) {
    if (JSON.stringify(trainedConfig(other.position, model)) === JSON.stringify(trained)) continue;
    throw new RangeError(
      "search: expected groups of one rotary setting, got several; one list of factors cannot say it",
    );
  }
  if (trained.rope.ropeType !== "default") {
    throw new RangeError(
      `search: expected frequencies that were trained as RoPE's own series, got ${trained.rope.ropeType}; ` +
        "the factors that a configuration can hold divide that series",
    );
  }
  const extension = target / trainedLength;
  // Rounded up to a whole factor as people write them.
  const factor = Math.ceil(extension);
  const base = computeRopeFrequencies(trained, 1).inverseFrequencies;
  const rules = ["none", `linear:${factor}`, `ntk:${factor}`, `dynamic:${factor}`, `yarn:${factor}`].map(
    (name): Rule => {
      const config = applyStrategy(parseStrategy(name), first, model, trainedLength);
      if (config === "drop") throw new Error("internal: a rule that drops");
      const { inverseFrequencies, attentionFactor } = computeRopeFrequencies(config, target);
      // Rounding may leave 0.9999… where a rule leaves a pair alone.
      const stretch = Array.from(inverseFrequencies, (w, i) => Math.max(1, base[i]! / w));
      return { name, candidate: { stretch, attentionFactor } };
    },
  );
  const most = Math.max(extension, ...rules.flatMap(({ candidate }) => candidate.stretch));
  return { trained, trainedLength, target, rules, mostStretch: 1.25 * most };
}

/** A candidate as settings: hands as trained up to the trained length, stretched beyond it (LongRoPE's two lists). */
export function longRopeOf(
  { stretch, attentionFactor }: Candidate,
  { trained: { rope }, trainedLength, target }: Pick<SearchSpace, "trained" | "trainedLength" | "target">,
): LongRope {
  const { ropeTheta, partialRotaryFactor } = rope;
  return {
    ropeType: "longrope",
    ropeTheta,
    ...(partialRotaryFactor === undefined ? {} : { partialRotaryFactor }),
    factor: target / trainedLength,
    originalMaxPositionEmbeddings: trainedLength,
    attentionFactor,
    shortFactor: stretch.map(() => 1),
    longFactor: stretch,
  };
}

function isRotary(group: PositionGroup): group is PositionGroup & { readonly position: Rope } {
  return group.position.site === "query-key";
}
