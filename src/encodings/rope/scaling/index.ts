// Every rotary scaling, as one total table by type: a new RopeType does not compile without its entry here.

import { expectPositive, show } from "../../errors.ts";
import { defaultScaling } from "./default.ts";
import { dynamicScaling } from "./dynamic.ts";
import { dynamicLinearScaling } from "./dynamic-linear.ts";
import { dynamicYarnScaling } from "./dynamic-yarn.ts";
import { gradientScaling } from "./gradient.ts";
import { linearScaling } from "./linear.ts";
import { llama3Scaling } from "./llama3.ts";
import { longRopeScaling } from "./longrope.ts";
import { ntkScaling } from "./ntk.ts";
import { ntkByPartsScaling } from "./ntk-by-parts.ts";
import type { ParametersOf, RopeConfig, RopeFrequencies, RopeParameters, RopeType } from "./parameters.ts";
import { proportionalScaling } from "./proportional.ts";
import type { KeyRule, RopeScaling } from "./scaling.ts";
import { tableScaling } from "./table.ts";
import { yarnScaling } from "./yarn.ts";

export const ropeScalings: { readonly [T in RopeType]: RopeScaling<T> } = {
  default: defaultScaling,
  linear: linearScaling,
  dynamic: dynamicScaling,
  yarn: yarnScaling,
  llama3: llama3Scaling,
  longrope: longRopeScaling,
  proportional: proportionalScaling,
  ntk: ntkScaling,
  "ntk-by-parts": ntkByPartsScaling,
  "dynamic-linear": dynamicLinearScaling,
  "dynamic-yarn": dynamicYarnScaling,
  gradient: gradientScaling,
  table: tableScaling,
};

export const ropeTypes: readonly RopeType[] = Object.keys(ropeScalings) as RopeType[];

function scalingOf<T extends RopeType>(ropeType: T): RopeScaling<T> {
  if (!Object.hasOwn(ropeScalings, ropeType)) {
    throw new RangeError(`rope: expected ropeType to be one of ${ropeTypes.join(", ")}, got ${show(ropeType)}`);
  }
  return ropeScalings[ropeType];
}

const expectations: { readonly [K in KeyRule["kind"]]: [string, (value: unknown) => boolean] } = {
  positive: ["a finite number above 0", (v) => Number.isFinite(v) && (v as number) > 0],
  nonNegative: ["a finite number of at least 0", (v) => Number.isFinite(v) && (v as number) >= 0],
  share: ["a number in (0, 1]", (v) => typeof v === "number" && v > 0 && v <= 1],
  length: ["an integer of at least 1", (v) => Number.isInteger(v) && (v as number) >= 1],
  boolean: ["true or false", (v) => typeof v === "boolean"],
  pairs: ["a list of finite numbers above 0", (v) => isList(v) && v.every((x) => Number.isFinite(x) && x > 0)],
  frequencies: [
    "a list of finite numbers of at least 0",
    (v) => isList(v) && v.every((x) => Number.isFinite(x) && x >= 0),
  ],
};

function isList(value: unknown): value is number[] {
  return Array.isArray(value) && value.length > 0;
}

/** What is wrong with a value under a rule, as "a finite number above 0"; null when nothing is. */
export function violatedExpectation(rule: KeyRule, value: unknown): string | null {
  if (value === undefined) return rule.required ? expectations[rule.kind][0] : null;
  if (value === null && rule.nullable) return null;
  const [expectation, holds] = expectations[rule.kind];
  if (holds(value)) return null;
  return rule.nullable ? `${expectation}, or null` : expectation;
}

/**
 * Checks rotary settings: every required key is there, every value has its kind, no key is unknown.
 *
 * @throws RangeError naming the key, what was expected and what stands there
 * @example
 * ```ts
 * import { checkRopeParameters } from "longhand/encodings";
 * checkRopeParameters({ ropeType: "linear", ropeTheta: 10000, factor: 4 }); // => undefined
 * ```
 * Source: the key rules follow transformers 5.24's RopeParameters, with errors where it warns.
 */
export function checkRopeParameters(rope: RopeParameters): void {
  const { keys } = scalingOf(rope.ropeType);
  const rules = keys as Readonly<Record<string, KeyRule>>;
  for (const [key, rule] of Object.entries(rules)) {
    const value = (rope as unknown as Record<string, unknown>)[key];
    const expectation = violatedExpectation(rule, value);
    if (expectation !== null) {
      throw new RangeError(`${rope.ropeType}: expected ${key} to be ${expectation}, got ${show(value)}`);
    }
  }
  for (const key of Object.keys(rope)) {
    if (key !== "ropeType" && !Object.hasOwn(rules, key)) {
      throw new RangeError(
        `${rope.ropeType}: expected the keys ropeType, ${Object.keys(rules).join(", ")}, got ${show(key)}`,
      );
    }
  }
}

/**
 * The inverse frequencies and the attention factor of a configuration, for a whole sequence of `sequenceLength` tokens.
 * Pure: equal arguments give equal results, whatever was asked before (transformers' dynamic type does not).
 *
 * @param config headDim, maxPositionEmbeddings and the rotary settings
 * @param sequenceLength tokens in the sequence; only `dynamic`, `dynamic-linear`, `dynamic-yarn` and `longrope` use it
 * @returns inverseFrequencies [P] in radians a token; attentionFactor, which multiplies both cos and sin
 * @throws RangeError for settings that are missing, unknown or out of range, or a rotary width that is odd
 * @example
 * ```ts
 * import { computeRopeFrequencies } from "longhand/encodings";
 * const rope = { ropeType: "yarn", ropeTheta: 10000, factor: 2, originalMaxPositionEmbeddings: 4096 };
 * const { inverseFrequencies, attentionFactor } = computeRopeFrequencies(
 *   { headDim: 128, maxPositionEmbeddings: 8192, rope },
 *   8192,
 * );
 * inverseFrequencies[32]; // => 0.007692307692307693
 * attentionFactor; // => 1.0693147180559945
 * ```
 * Source: one file a scaling in rope/scaling, each naming its paper; equal to transformers 5.24 within float32.
 */
export function computeRopeFrequencies(config: RopeConfig, sequenceLength: number): RopeFrequencies {
  checkRopeParameters(config.rope);
  expectPositive("rope", "maxPositionEmbeddings", config.maxPositionEmbeddings);
  const frequencies = computeAs(config.rope.ropeType, config, sequenceLength);
  // Extreme but well-typed settings (a base of 1 under yarn, a factor of 1e308) leave the numbers: an error, not a NaN.
  if (!Number.isFinite(frequencies.attentionFactor) || !frequencies.inverseFrequencies.every(Number.isFinite)) {
    throw new RangeError(
      `${config.rope.ropeType}: expected settings that give finite frequencies, got ${show(config.rope)} ` +
        `at ${sequenceLength} tokens`,
    );
  }
  return frequencies;
}

function computeAs<T extends RopeType>(ropeType: T, config: RopeConfig, sequenceLength: number): RopeFrequencies {
  return scalingOf(ropeType).compute(config as RopeConfig<ParametersOf<T>>, sequenceLength);
}

/**
 * Whether the frequencies of these settings change with the length of the sequence. If so, a cache of rotated keys is
 * invalid once the length changes.
 *
 * @example
 * ```ts
 * import { ropeDependsOnLength } from "longhand/encodings";
 * ropeDependsOnLength({ ropeType: "dynamic", ropeTheta: 10000, factor: 2 }); // => true
 * ```
 * Source: transformers' dynamic_rope_update decorator.
 */
export function ropeDependsOnLength(rope: RopeParameters): boolean {
  return dependsAs(rope.ropeType, rope);
}

function dependsAs<T extends RopeType>(ropeType: T, rope: RopeParameters): boolean {
  return scalingOf(ropeType).dependsOnLength(rope as ParametersOf<T>);
}
