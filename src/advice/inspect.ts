// What a checkpoint's clock looks like, and what happens to it at a target length: plain data, the JSON of
// `longhand inspect`. Charts draw from this record and add nothing.

import { alibiSlopes } from "../encodings/alibi.ts";
import { expectInteger } from "../encodings/errors.ts";
import type { LogitTemperature } from "../encodings/logit-temperature.ts";
import type { Site } from "../encodings/position-encoding.ts";
import { clockHands, type Hand } from "../encodings/rope/hands.ts";
import { computeRopeFrequencies, ropeDependsOnLength } from "../encodings/rope/scaling/index.ts";
import type { RopeParameters } from "../encodings/rope/scaling/parameters.ts";
import { sinusoidalHands } from "../encodings/sinusoidal.ts";
import { t5Bucket } from "../encodings/t5-relative-bias.ts";
import type { Finding } from "../formats/finding.ts";
import type { ModelDescription, PositionGroup } from "../formats/model-description.ts";
import { applyStrategy, type Strategy, strategyApplies, trainedConfig, trainedLengthOf } from "../models/strategy.ts";

export interface InspectOptions {
  /** The sequence length that length-dependent scalings see, and T5's N; the target when absent. */
  readonly length?: number;
  /** Where angles are asked for; the length that the file claims when absent. */
  readonly target?: number;
  /** Overrides the length that the file's frequencies were trained at. */
  readonly trainedLength?: number;
  /** Replaces the file's scaling, on the layers that its rope_parameters speaks of. */
  readonly strategy?: Strategy;
}

export interface InspectedGroup {
  readonly layers: readonly number[];
  readonly layerType?: string;
  readonly site: Site;
  /** rope, alibi, t5, kerple, fire, learned, sinusoidal, nope. */
  readonly kind: string;
  readonly ropeType: string | null;
  readonly headDim: number;
  readonly rotaryDim: number | null;
  readonly layout: string | null;
  readonly theta: number | null;
  /** The whole rotary settings in use; null for other encodings and where the rotation is dropped. */
  readonly rope: RopeParameters | null;
  readonly inverseFrequencies: readonly number[];
  readonly attentionFactor: number;
  readonly hands: readonly Hand[];
  /** True when the frequencies change with the sequence's length. */
  readonly dependsOnLength: boolean;
  readonly slidingWindow: number | null;
  readonly attentionChunkSize: number | null;
  readonly logitTemperature: LogitTemperature | null;
  readonly softmaxFactor: number;
  /** Counts over `hands`. */
  readonly summary: {
    /** Hands that turn (ω above 0 in training). */
    readonly turning: number;
    /** Turning hands that never finish a turn within the trained length. */
    readonly unfinishedInTraining: number;
    /** Hands that reach unseen angles at the target, at the trained frequencies. */
    readonly unseenUnscaled: number;
    /** The same at the frequencies in use. */
    readonly unseen: number;
  } | null;
  /** ALiBi: by head. */
  readonly slopes?: readonly number[];
  /** T5: bucket of key minus query from firstDistance up. */
  readonly buckets?: {
    readonly firstDistance: number;
    readonly values: readonly number[];
    readonly numBuckets: number;
    /** From this distance on all share the last bucket; the last bucket starts nearer. */
    readonly maxDistance: number;
    readonly bidirectional: boolean;
  };
  /** Learned and sinusoidal: positions that exist; null without a limit. */
  readonly maxPositions?: number | null;
}

export interface Inspection {
  readonly model: Omit<ModelDescription, "trainedLength" | "groups" | "findings">;
  readonly trainedLength: number | null;
  readonly targetLength: number | null;
  readonly sequenceLength: number | null;
  readonly groups: readonly InspectedGroup[];
  readonly findings: readonly Finding[];
}

const defaultBucketRange = 256;

/**
 * Inspects a model's position encoding.
 *
 * @param model a description, as `openModel` gives
 * @param options lengths in tokens, and a strategy in place of the file's scaling
 * @throws RangeError for lengths that are not integers of at least 1, or a strategy that does not fit
 * @example
 * ```ts
 * import { inspectModel } from "longhand/advice";
 * import { describeHuggingFace } from "longhand/formats";
 * const model = describeHuggingFace({
 *   model_type: "llama", hidden_size: 4096, num_hidden_layers: 32, num_attention_heads: 32,
 *   max_position_embeddings: 4096, rope_theta: 10000,
 * });
 * const [group] = inspectModel(model, { target: 8192 }).groups;
 * group.summary; // => { turning: 64, unfinishedInTraining: 18, unseenUnscaled: 18, unseen: 18 }
 * ```
 */
export function inspectModel(model: ModelDescription, options: InspectOptions = {}): Inspection {
  for (const key of ["length", "target", "trainedLength"] as const) {
    if (options[key] !== undefined) expectInteger("inspect", key, options[key], 1);
  }
  const trainedLength = options.trainedLength ?? model.trainedLength;
  const target = options.target ?? options.length ?? Math.max(claimedLength(model), trainedLength ?? 0);
  const targetLength = target === 0 ? null : target;
  const sequenceLength = options.length ?? targetLength;
  const findings: Finding[] = [...model.findings];
  const strategy = options.strategy ?? { kind: "as-is" };
  const lengths = { trainedLength: options.trainedLength, targetLength, sequenceLength, bucketRange: options.length };
  const groups = model.groups.map((group) => inspectGroup(model, group, strategy, lengths, findings));
  if (strategy.kind !== "as-is" && !groups.some((g) => g.site === "query-key")) {
    throw new RangeError(
      `--scaling: expected a model with rotary layers, got ${model.name} without any; leave --scaling out`,
    );
  }
  const { trainedLength: _trained, groups: _groups, findings: _findings, ...shape } = model;
  return {
    model: shape,
    trainedLength,
    targetLength,
    sequenceLength,
    groups,
    findings,
  };
}

/** The longest length that the file speaks of: its maximum, or what a scaling's factor reaches. */
function claimedLength(model: ModelDescription): number {
  const reaches = model.groups.map(({ position }) => {
    if (position.kind !== "rope" || !("originalMaxPositionEmbeddings" in position.rope)) return 0;
    const factor = "factor" in position.rope ? (position.rope.factor ?? 1) : 1;
    // llama3's factor divides slow hands; it is no ratio of lengths.
    return position.rope.ropeType === "llama3" ? 0 : Math.round(factor * position.rope.originalMaxPositionEmbeddings);
  });
  return Math.max(model.maxPositionEmbeddings ?? 0, ...reaches);
}

interface Lengths {
  readonly trainedLength: number | undefined;
  readonly targetLength: number | null;
  readonly sequenceLength: number | null;
  readonly bucketRange: number | undefined;
}

function inspectGroup(
  model: ModelDescription,
  group: PositionGroup,
  strategy: Strategy,
  lengths: Lengths,
  findings: Finding[],
): InspectedGroup {
  const { position } = group;
  const common = {
    layers: group.layers,
    ...(group.layerType === undefined ? {} : { layerType: group.layerType }),
    site: position.site,
    kind: position.kind,
    ropeType: null,
    headDim: model.headDim,
    rotaryDim: null,
    layout: null,
    theta: null,
    rope: null,
    inverseFrequencies: [] as readonly number[],
    attentionFactor: 1,
    hands: [] as readonly Hand[],
    dependsOnLength: false,
    slidingWindow: group.slidingWindow,
    attentionChunkSize: group.attentionChunkSize,
    logitTemperature: group.logitTemperature,
    softmaxFactor: group.softmaxFactor,
    summary: null,
  };
  switch (position.kind) {
    case "nope":
    case "kerple":
    case "fire":
      return common;
    case "alibi":
      return { ...common, slopes: Array.from(alibiSlopes(position), (slope) => slope * (position.slopeScale ?? 1)) };
    case "t5": {
      const range = lengths.bucketRange ?? defaultBucketRange;
      const values = Array.from({ length: 2 * range + 1 }, (_, i) => t5Bucket(i - range, position));
      const { numBuckets, maxDistance, bidirectional } = position;
      return { ...common, buckets: { firstDistance: -range, values, numBuckets, maxDistance, bidirectional } };
    }
    case "learned": {
      const { targetLength } = lengths;
      if (targetLength !== null && targetLength > position.numPositions) {
        findings.push({
          code: "past-learned-table",
          severity: "error",
          where: "target length",
          got: targetLength,
          expected: `at most ${position.numPositions} tokens, the rows of the learned position table`,
          why: "A learned table has no row for later positions: an engine crashes, or reads the wrong row.",
          fix: `Use at most ${position.numPositions} tokens, or another model.`,
        });
      }
      return { ...common, maxPositions: position.numPositions };
    }
    case "sinusoidal": {
      const frequencies = Float64Array.from(
        sinusoidalHands(position.hiddenSize, position.theta, position.exponent),
        (hand) => hand.inverseFrequency,
      );
      const hands = handsOf(frequencies, frequencies, lengths.trainedLength ?? model.trainedLength, lengths, null);
      return {
        ...common,
        theta: position.theta,
        inverseFrequencies: Array.from(frequencies),
        hands,
        summary: summarise(hands),
        maxPositions: position.numPositions,
      };
    }
    case "rope": {
      const trainedLength = lengths.trainedLength ?? trainedLengthOf(position, model);
      const applied = strategyApplies(group, model, strategy) ? strategy : ({ kind: "as-is" } as const);
      if (applied !== strategy && strategy.kind !== "as-is") {
        findings.push({
          code: "scaling-left-out",
          severity: "note",
          where: `layers ${group.layers.join(", ")}`,
          got: group.layerType ?? "local attention",
          expected: "a scaling of the layers that see the whole context",
          why: "The model keeps settings of their own for these layers; they never look further back than their window.",
          fix: "",
        });
      }
      const ownScaling = position.rope.ropeType === "linear" || position.rope.ropeType === "ntk";
      if (ownScaling && (applied.kind === "short" || applied.kind === "parameters")) {
        findings.push({
          code: "scaling-replaces-trained",
          severity: "warning",
          where: "--scaling",
          got: null,
          expected: `the file's own ${position.rope.ropeType} scaling is part of what was trained, and is replaced`,
          why: "the new scaling starts from the unscaled frequencies, which this model never used.",
          fix:
            position.rope.ropeType === "linear"
              ? `to go on from it, multiply: linear:${4 * position.rope.factor} is the file's factor ${position.rope.factor} times 4`
              : "to go on from it, multiply the factors",
        });
      }
      const used = applyStrategy(applied, { ...group, position }, model, trainedLength);
      const trained = computeRopeFrequencies(trainedConfig(position, model, trainedLength), trainedLength ?? 1);
      const length = lengths.sequenceLength ?? trainedLength ?? 1;
      const frequencies =
        used === "drop"
          ? { inverseFrequencies: trained.inverseFrequencies.map(() => 0), attentionFactor: 1 }
          : computeRopeFrequencies(used, length);
      const window = group.slidingWindow ?? group.attentionChunkSize;
      const hands = handsOf(trained.inverseFrequencies, frequencies.inverseFrequencies, trainedLength, lengths, window);
      return {
        ...common,
        ropeType: used === "drop" ? "drop" : used.rope.ropeType,
        headDim: position.headDim,
        rotaryDim: 2 * frequencies.inverseFrequencies.length,
        layout: position.layout,
        theta: position.rope.ropeTheta,
        rope: used === "drop" ? null : used.rope,
        inverseFrequencies: Array.from(frequencies.inverseFrequencies),
        attentionFactor: frequencies.attentionFactor,
        hands,
        dependsOnLength: used !== "drop" && ropeDependsOnLength(used.rope),
        summary: summarise(hands),
      };
    }
  }
}

function handsOf(
  trained: Float64Array,
  used: Float64Array,
  trainedLength: number | null,
  { targetLength }: Lengths,
  window: number | null,
): Hand[] {
  if (trainedLength === null) return [];
  return clockHands(trained, used, { trainedLength, targetLength: targetLength ?? trainedLength, window });
}

function summarise(hands: readonly Hand[]): InspectedGroup["summary"] {
  if (hands.length === 0) return null;
  const turning = hands.filter((hand) => hand.trainedWavelength !== null);
  return {
    turning: turning.length,
    unfinishedInTraining: turning.filter((hand) => hand.turnsInTraining < 1).length,
    unseenUnscaled: hands.filter((hand) => !hand.seenUnscaled).length,
    unseen: hands.filter((hand) => !hand.seen).length,
  };
}
