// What `--scaling` may say, read against a model: a Hugging Face rope_parameters object, or a short form such as
// "yarn:4". A strategy replaces the frequencies that a model uses; what it was *trained* with stays as it was.

import { show } from "../encodings/errors.ts";
import { ropeTypes } from "../encodings/rope/scaling/index.ts";
import type { RopeConfig, RopeParameters } from "../encodings/rope/scaling/parameters.ts";
import { ggufArchitectures } from "../formats/gguf/index.ts";
import { families, familyAliases } from "../formats/huggingface/families.ts";
import { parseRopeParameters } from "../formats/huggingface/index.ts";
import type { ModelDescription, PositionGroup, PositionSettings } from "../formats/model-description.ts";
import { nearest } from "../formats/nearest.ts";

export type Strategy =
  /** The model as its file says. */
  | { readonly kind: "as-is" }
  /** The trained, unscaled frequencies. */
  | { readonly kind: "none" }
  /** No rotation at all: cos 1, sin 0. */
  | { readonly kind: "drop" }
  | { readonly kind: "short"; readonly name: ShortName; readonly factor: number }
  /** The trained frequencies at other positions: a map (encodings/position-maps). */
  | {
      readonly kind: "self-extend";
      readonly groupSize: number;
      /** A quarter of the trained length when absent. */
      readonly neighborWindow?: number;
    }
  | { readonly kind: "parameters"; readonly value: Readonly<Record<string, unknown>> };

/** Short forms take one number, the factor; the original length is the model's trained length. */
const shortNames = ["linear", "ntk", "ntk-by-parts", "dynamic", "yarn", "llama3", "gradient"] as const;
/** These read their factor off the sequence's length. */
const bareNames = ["dynamic-linear", "dynamic-yarn"] as const;
type ShortName = (typeof shortNames)[number] | (typeof bareNames)[number];

const who = "--scaling";

/**
 * Reads a `--scaling` argument.
 *
 * @param text a JSON object, or `none`, `drop`, `linear:4`, `ntk:4`, `ntk-by-parts:4`, `dynamic:4`, `yarn:4`,
 *   `llama3:8`, `gradient:4`, `dynamic-linear`, `dynamic-yarn`, `self-extend:GROUP` or `self-extend:GROUP:WINDOW`
 * @throws RangeError naming what was expected, and the nearest known name
 * @example
 * ```ts
 * import { parseStrategy } from "longhand/advice";
 * parseStrategy("yarn:4"); // => { kind: "short", name: "yarn", factor: 4 }
 * ```
 */
export function parseStrategy(text: string): Strategy {
  const trimmed = text.trim();
  if (trimmed.startsWith("{")) {
    let value: unknown;
    try {
      value = JSON.parse(trimmed);
    } catch (error) {
      throw new RangeError(`${who}: expected a JSON object, got ${show(trimmed)} (${(error as Error).message})`);
    }
    return { kind: "parameters", value: value as Record<string, unknown> };
  }
  const [name = "", factorText, ...rest] = trimmed.split(":");
  if (name === "none" || name === "drop" || name === "as-is") {
    if (factorText !== undefined) throw new RangeError(`${who}: expected ${name} without a number, got ${show(text)}`);
    return { kind: name };
  }
  if ((bareNames as readonly string[]).includes(name)) {
    if (factorText !== undefined) {
      throw new RangeError(`${who}: expected ${name} without a number (the length gives it), got ${show(text)}`);
    }
    return { kind: "short", name: name as ShortName, factor: 1 };
  }
  if (name === "self-extend") return parseSelfExtend(text, trimmed);
  if (!(shortNames as readonly string[]).includes(name)) {
    const known = ["none", "drop", ...shortNames, ...bareNames, "self-extend"];
    if ((ropeTypes as readonly string[]).includes(name)) {
      throw new RangeError(
        `${who}: expected a JSON object for ${name}, which needs more than a factor, got ${show(text)}`,
      );
    }
    const near = nearest(name, known)[0];
    throw new RangeError(
      `${who}: expected one of ${known.join(", ")} or a JSON object, got ${show(text)}` +
        (near === undefined ? "" : `; nearest: ${near}`),
    );
  }
  const factor = Number(factorText);
  if (factorText === undefined || factorText === "" || rest.length > 0 || !(factor > 0) || !Number.isFinite(factor)) {
    throw new RangeError(`${who}: expected ${name}:FACTOR with a factor above 0, as ${name}:4, got ${show(text)}`);
  }
  return { kind: "short", name: name as ShortName, factor };
}

function parseSelfExtend(text: string, trimmed: string): Strategy {
  const [, group, window] = /^self-extend:(\d+)(?::(\d+))?$/.exec(trimmed) ?? [];
  if (group === undefined || Number(group) < 1 || (window !== undefined && Number(window) < 1)) {
    throw new RangeError(
      `${who}: expected self-extend:GROUP or self-extend:GROUP:WINDOW, integers of at least 1, as self-extend:8 or ` +
        `self-extend:8:1024, got ${show(text)}`,
    );
  }
  const neighborWindow = window === undefined ? {} : { neighborWindow: Number(window) };
  return { kind: "self-extend", groupSize: Number(group), ...neighborWindow };
}

type Rope = Extract<PositionSettings, { site: "query-key" }>;

/** The rotary configuration that a group's frequencies were trained with at `trainedLength`: the file's own settings,
 *  less a scaling that says at which shorter length the model was first trained. A longer trainedLength means that the
 *  model was trained again under the scaling: then the file's settings as they are. */
export function trainedConfig(
  position: Rope,
  model: ModelDescription,
  trainedLength: number | null = null,
): RopeConfig {
  const { headDim, rope } = position;
  const original = trainedLengthOf(position, model);
  const again = trainedLength !== null && original !== null && trainedLength > original;
  return { headDim, maxPositionEmbeddings: lengthOf(model), rope: again ? rope : unscaledRope(rope) };
}

function unscaledRope(rope: RopeParameters): RopeParameters {
  switch (rope.ropeType) {
    case "default":
    case "proportional":
    case "table":
    // These name no shorter length: the file's frequencies are the trained ones.
    case "linear":
    case "ntk":
      return rope;
    case "longrope":
      // The short list at every length.
      return { ...rope, longFactor: rope.shortFactor };
    case "dynamic":
      return rope.alpha === undefined ? unscaledDefault(rope) : rope;
    case "yarn":
    case "llama3":
    case "ntk-by-parts":
    case "gradient":
    case "dynamic-linear":
    case "dynamic-yarn":
      return unscaledDefault(rope);
  }
}

function unscaledDefault({ ropeTheta, partialRotaryFactor }: RopeParameters): RopeParameters {
  return { ropeType: "default", ropeTheta, ...(partialRotaryFactor === undefined ? {} : { partialRotaryFactor }) };
}

function lengthOf(model: ModelDescription): number {
  return model.maxPositionEmbeddings ?? model.trainedLength ?? 1;
}

/** The length that a group's unscaled frequencies were trained at. */
export function trainedLengthOf(position: Rope, model: ModelDescription): number | null {
  const { rope } = position;
  return "originalMaxPositionEmbeddings" in rope ? rope.originalMaxPositionEmbeddings : model.trainedLength;
}

/** Whether a strategy speaks of this group, as the model's own code would read it: one rope_parameters speaks of every
 *  rotary layer, except where sliding layers keep settings of their own (Gemma 3, OLMo 3, ModernBERT); a dict by layer
 *  type speaks of the types in it; drop removes positions everywhere. */
export function strategyApplies(group: PositionGroup, model: ModelDescription, strategy?: Strategy): boolean {
  if (strategy?.kind === "drop") return true;
  const byType = strategy === undefined ? null : byLayerType(strategy, model);
  if (byType !== null) return group.layerType !== undefined && Object.hasOwn(byType, group.layerType);
  const local = (g: PositionGroup) => g.slidingWindow !== null || g.attentionChunkSize !== null;
  const rotary = model.groups.filter((g) => g.position.site === "query-key");
  return !local(group) || rotary.every(local) || !slidingLayersStandApart(model);
}

/** Whether sliding layers have rotary settings of their own, which a flat rope_parameters does not touch. */
function slidingLayersStandApart({ format, modelType }: ModelDescription): boolean {
  if (format === "gguf") {
    return Object.hasOwn(ggufArchitectures, modelType) && ggufArchitectures[modelType]!.sliding?.scaling === "none";
  }
  const name = Object.hasOwn(familyAliases, modelType) ? familyAliases[modelType]! : modelType;
  const family = Object.hasOwn(families, name) ? families[name]! : undefined;
  return family?.kind === "rotary" && family.sliding !== undefined;
}

/** A rope_parameters object by layer type, as transformers 5 nests it; null for a flat one. */
function byLayerType(strategy: Strategy, model: ModelDescription): Readonly<Record<string, unknown>> | null {
  if (strategy.kind !== "parameters") return null;
  const types = model.groups.flatMap(({ layerType }) => (layerType === undefined ? [] : [layerType]));
  const nested = Object.entries(strategy.value).filter(([, value]) => typeof value === "object" && !isList(value));
  if (nested.length === 0) return null;
  for (const key of Object.keys(strategy.value)) {
    if (types.includes(key)) continue;
    const known = [...new Set(types)];
    throw new RangeError(
      `${who}: expected rope_parameters for layer types of the model (${known.join(", ") || "it has none"}), ` +
        `got ${show(key)}`,
    );
  }
  return strategy.value;
}

function isList(value: unknown): boolean {
  return Array.isArray(value);
}

/** What a strategy says of one group: of a dict by layer type, its own. */
export function strategyOf(strategy: Strategy, group: PositionGroup, model: ModelDescription): Strategy {
  const byType = byLayerType(strategy, model);
  if (byType === null || group.layerType === undefined) return strategy;
  const own = byType[group.layerType];
  // transformers reads null as a layer type without rotation.
  if (own === null) return { kind: "drop" };
  if (typeof own !== "object" || isList(own)) {
    throw new RangeError(`${who}: expected rope_parameters of ${group.layerType} to be an object, got ${show(own)}`);
  }
  return { kind: "parameters", value: own as Readonly<Record<string, unknown>> };
}

/**
 * The rotary configuration of a group under a strategy; "drop" where the rotation is removed.
 *
 * @throws RangeError when the parameters are unknown or out of range, or the model's trained length is needed and
 *   unknown
 */
export function applyStrategy(
  asked: Strategy,
  group: PositionGroup & { readonly position: Rope },
  model: ModelDescription,
  trainedLength: number | null = trainedLengthOf(group.position, model),
): RopeConfig | "drop" {
  const { position } = group;
  const strategy = strategyOf(asked, group, model);
  const { headDim } = position;
  const asIs: RopeConfig = { headDim, maxPositionEmbeddings: lengthOf(model), rope: position.rope };
  if (strategy.kind === "as-is") return asIs;
  if (strategy.kind === "drop") return "drop";
  const trained = trainedConfig(position, model);
  if (strategy.kind === "none") return trained;
  if (strategy.kind === "self-extend") {
    throw new RangeError(
      `${who}: expected a scaling, which changes frequencies, got self-extend, which moves positions and keeps them; ` +
        "score, generate, perplexity, needle and compare run it",
    );
  }
  if (trainedLength === null) {
    throw new RangeError(`${who}: expected a model with a trained length, got none in the file; give --trained-length`);
  }
  if (position.rope.ropeType === "proportional") {
    if (strategy.kind === "short" && strategy.name === "linear") {
      const factor = (position.rope.factor ?? 1) * strategy.factor;
      return { ...asIs, rope: { ...position.rope, factor } };
    }
    const other = strategy.kind === "short" || strategy.value.rope_type !== "proportional";
    if (other) {
      throw new RangeError(
        `${who}: expected linear:F, none, drop, or a JSON object of rope_type "proportional" for a proportional ` +
          `encoding, got ${strategy.kind === "short" ? strategy.name : show(strategy.value)}; other rules would turn ` +
          "channels that stood still in training",
      );
    }
  }
  const { ropeTheta, partialRotaryFactor } = position.rope;
  const common = { ropeTheta, ...(partialRotaryFactor === undefined ? {} : { partialRotaryFactor }) };
  if (strategy.kind === "parameters") {
    const { rope } = parseRopeParameters(strategy.value, {
      where: who,
      ...common,
      originalMaxPositionEmbeddings: trainedLength,
      maxPositionEmbeddings: model.maxPositionEmbeddings,
      headDim,
    });
    // As transformers would read the file with this dict in it: `dynamic` starts to change at the length that the file
    // claims, where the short form starts at the trained one.
    return { headDim, maxPositionEmbeddings: lengthOf(model), rope };
  }
  const rope = shortForm(strategy, { ...common, originalMaxPositionEmbeddings: trainedLength });
  return { headDim, maxPositionEmbeddings: trainedLength, rope };
}

/** The settings that a short form stands for: its factor, and the class's defaults. */
export function shortForm(
  { name, factor }: Extract<Strategy, { kind: "short" }>,
  trained: Pick<RopeParameters, "ropeTheta" | "partialRotaryFactor"> & {
    readonly originalMaxPositionEmbeddings: number;
  },
): RopeParameters {
  const { originalMaxPositionEmbeddings, ...common } = trained;
  const original = { originalMaxPositionEmbeddings };
  switch (name) {
    case "linear":
    case "ntk":
    case "dynamic":
      return { ropeType: name, ...common, factor };
    case "yarn":
    case "ntk-by-parts":
    case "gradient":
      return { ropeType: name, ...common, factor, ...original };
    case "llama3":
      return { ropeType: name, ...common, factor, ...original, lowFreqFactor: 1, highFreqFactor: 4 };
    case "dynamic-linear":
    case "dynamic-yarn":
      return { ropeType: name, ...common, ...original };
  }
}
