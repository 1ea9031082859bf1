// The ways to say one scaling: as it was asked for, as another base, as one fixed table for the export's length, as a
// list of divisors (which can say any table), and last the plain scalings that come near. An engine takes the first that
// it computes exactly, else the nearest.

import { power } from "../../encodings/numerics/power.ts";
import { gradientBase } from "../../encodings/rope/scaling/gradient.ts";
import { computeRopeFrequencies } from "../../encodings/rope/scaling/index.ts";
import { ntkBase } from "../../encodings/rope/scaling/ntk.ts";
import type { RopeConfig, RopeParameters, RopeType } from "../../encodings/rope/scaling/parameters.ts";
import { rotaryDimOf } from "../../encodings/rope/scaling/scaling.ts";
import type { Wanted } from "./wanted.ts";

export interface Form {
  /** What a configuration calls it, as yarn:4, or one of the names that notes.ts says in a sentence. */
  readonly name: string;
  readonly config: RopeConfig;
  /** One table for every length, where what was asked for changes with it. */
  readonly fixed: boolean;
}

/** Types that Hugging Face's files can name. */
const named: readonly RopeType[] = ["default", "linear", "dynamic", "yarn", "longrope", "llama3", "proportional"];

/** Stands for ω = 0 among divisors: no angle above 1e-13 rad within a million tokens. */
const stillDivisor = 1e20;

/** Every form, the most faithful first. */
export function formsOf(wanted: Wanted, length: number): Form[] {
  const { config, trainedLength } = wanted;
  const { rope, headDim } = config;
  const forms: Form[] = [];
  const { ropeTheta, partialRotaryFactor } = rope;
  const share = partialRotaryFactor === undefined ? {} : { partialRotaryFactor };
  const add = (name: string, parameters: RopeParameters, fixed = false, max = config.maxPositionEmbeddings) =>
    forms.push({ name, config: { headDim, maxPositionEmbeddings: max, rope: parameters }, fixed });
  const based = (base: number, fixed = false) =>
    add(`rope_theta ${base}`, { ropeType: "default", ropeTheta: base, ...share }, fixed);

  if (named.includes(rope.ropeType)) add(rope.ropeType, rope);
  const rotaryDim = rope.ropeType === "proportional" ? headDim : rotaryDimOf(headDim, partialRotaryFactor);
  switch (rope.ropeType) {
    case "ntk":
      based(ntkBase(ropeTheta, rope.factor, rotaryDim));
      break;
    case "gradient": {
      const original = rope.originalMaxPositionEmbeddings;
      based(gradientBase(ropeTheta, original, rope.factor * original));
      break;
    }
    case "dynamic": {
      const stretch =
        rope.alpha ??
        (rope.factor * Math.max(length, config.maxPositionEmbeddings)) / config.maxPositionEmbeddings -
          (rope.factor - 1);
      based(ropeTheta * power(stretch, rotaryDim / (rotaryDim - 2)), rope.alpha === undefined);
      break;
    }
    case "dynamic-linear":
      add(
        "linear",
        { ropeType: "linear", ropeTheta, ...share, factor: ratio(length, rope.originalMaxPositionEmbeddings) },
        true,
      );
      break;
    case "dynamic-yarn": {
      const { ropeType: _, ...rest } = rope;
      const factor = ratio(length, rope.originalMaxPositionEmbeddings);
      add("yarn", { ...rest, ropeType: "yarn", factor }, true);
      break;
    }
  }
  const divisors = asDivisors(wanted, length, trainedLength ?? config.maxPositionEmbeddings);
  if (divisors !== null) add("as-lists", divisors, wanted.dependsOnLength);

  // What comes near. YaRN before Position Interpolation: ties go to the first.
  if (!wanted.dropped && rope.ropeType !== "proportional") {
    const original = trainedLength ?? config.maxPositionEmbeddings;
    const factor = ratio(length, original);
    if (factor > 1) {
      add(
        `yarn:${factor}`,
        { ropeType: "yarn", ropeTheta, ...share, factor, originalMaxPositionEmbeddings: original },
        true,
      );
      add(`linear:${factor}`, { ropeType: "linear", ropeTheta, ...share, factor }, true);
    }
    add("none", { ropeType: "default", ropeTheta, ...share }, true);
  }
  return forms;
}

function ratio(length: number, original: number): number {
  return Math.max(1, length / original);
}

/** Any table as longrope with both lists alike: divisor b^(−2i/d) / ω. null for tables that a list cannot reach. */
function asDivisors(wanted: Wanted, length: number, original: number): RopeParameters | null {
  const { config, attentionFactor, inverseFrequencies } = wanted;
  const { ropeTheta, partialRotaryFactor } = config.rope;
  if (config.rope.ropeType === "default") return null;
  const share =
    partialRotaryFactor === undefined || config.rope.ropeType === "proportional" ? {} : { partialRotaryFactor };
  const plain = computeRopeFrequencies({ ...config, rope: { ropeType: "default", ropeTheta, ...share } }, length);
  const list = Array.from(inverseFrequencies, (w, i) => (w === 0 ? stillDivisor : plain.inverseFrequencies[i]! / w));
  return {
    ropeType: "longrope",
    ropeTheta,
    ...share,
    originalMaxPositionEmbeddings: original,
    shortFactor: list,
    longFactor: list,
    factor: ratio(length, original),
    attentionFactor,
  };
}
