// What the papers define, where their authors' code and the engines compute something else: YaRN's definition 2 ramps on
// the turns of a pair, every implementation on its index; dynamic NTK's factor is ℓ/L itself. DroPE is here as what it
// is to attention: no rotation, and a temperature on the logits.

import { expectInteger } from "../../errors.ts";
import { logitTemperature } from "../../logit-temperature.ts";
import { ropeScalings } from "../scaling/index.ts";
import { ntkByPartsScaling } from "../scaling/ntk-by-parts.ts";
import type { RopeConfig } from "../scaling/parameters.ts";
import { rotaryDimOf } from "../scaling/scaling.ts";
import { arithmeticOf, divided, geometric, magnitude, stretchedBase } from "./arithmetic.ts";
import {
  type DialectContext,
  type DialectResult,
  frequenciesOf,
  Notes,
  type RopeDialect,
  unsupported,
} from "./dialect.ts";

function byParts(config: RopeConfig, original: number, factor: number, alpha: number, beta: number): Float64Array {
  const { ropeTheta, partialRotaryFactor = 1 } = config.rope;
  const rope = {
    ropeType: "ntk-by-parts",
    ropeTheta,
    partialRotaryFactor,
    factor,
    originalMaxPositionEmbeddings: original,
    alpha,
    beta,
  } as const;
  return ntkByPartsScaling.compute({ ...config, rope }, 1).inverseFrequencies;
}

function compute(config: RopeConfig, context: DialectContext): DialectResult {
  const { rope } = config;
  const notes = new Notes();
  // Papers do not round.
  const a = arithmeticOf(false);
  const done = (inverseFrequencies: Float64Array, attentionFactor = 1) =>
    frequenciesOf({ inverseFrequencies, attentionFactor, notes: notes.list, context: { ...context, float32: false } });
  const yarn = (original: number, factor: number, fast?: number | null, slow?: number | null) => {
    const source = "YaRN (2309.00071), section 3.2, definition 2, and equation 22";
    notes.add(
      "formula-differs",
      null,
      "the ramp runs on the turns of a pair in the original length, not on its index",
      source,
    );
    return done(byParts(config, original, factor, slow || 1, fast || 32), magnitude(factor));
  };
  switch (rope.ropeType) {
    case "default":
    case "linear":
    case "ntk":
    case "ntk-by-parts":
    case "dynamic-linear":
    case "proportional": {
      if (rope.ropeType === "proportional" && (rope.factor ?? 1) !== 1) {
        notes.add("key-ignored", "factor", "p-RoPE has none", "Barbero et al. 2024 (2410.06205), appendix D");
        return done(
          ropeScalings.proportional.compute({ ...config, rope: { ...rope, factor: 1 } }, 1).inverseFrequencies,
        );
      }
      const scaling = ropeScalings[rope.ropeType] as {
        compute(c: RopeConfig, length: number): { inverseFrequencies: Float64Array };
      };
      return done(scaling.compute(config, context.sequenceLength).inverseFrequencies);
    }
    case "dynamic": {
      const source = "YaRN (2309.00071), section 3.3";
      const rotaryDim = rotaryDimOf(config.headDim, rope.partialRotaryFactor);
      notes.add(
        "formula-differs",
        "factor",
        "the factor is max(1, ℓ/L), of NTK-aware scaling; none is configured",
        source,
      );
      const stretch = Math.max(1, context.sequenceLength / config.maxPositionEmbeddings);
      return done(geometric(a, stretchedBase(rope.ropeTheta, stretch, rotaryDim), rotaryDim));
    }
    case "yarn": {
      const message = "the paper has √(1/t) = 0.1 ln s + 1 alone";
      notes.ignored(rope, ["attentionFactor", "mscale", "mscaleAllDim"], message, "YaRN (2309.00071), equation 22");
      const original = rope.originalMaxPositionEmbeddings;
      return yarn(original, rope.factor ?? config.maxPositionEmbeddings / original, rope.betaFast, rope.betaSlow);
    }
    case "dynamic-yarn": {
      const original = rope.originalMaxPositionEmbeddings;
      return yarn(original, Math.max(1, context.sequenceLength / original), rope.betaFast, rope.betaSlow);
    }
    case "longrope": {
      const source = "LongRoPE (Ding et al. 2024, 2402.13753), sections 3.2 and 3.4";
      const original = rope.originalMaxPositionEmbeddings;
      const long = context.sequenceLength > original;
      notes.add(
        "formula-differs",
        null,
        "the first n̂ tokens keep their angles; no shipped configuration says n̂",
        source,
      );
      const message = "the paper has no magnitude: it is that of Phi-3's code";
      notes.ignored(rope, ["attentionFactor", "factor", "shortMscale", "longMscale"], message, source);
      const rotaryDim = rotaryDimOf(config.headDim, rope.partialRotaryFactor);
      return done(divided(a, rope.ropeTheta, rotaryDim, long ? rope.longFactor : rope.shortFactor));
    }
    default:
      return unsupported(`no paper defines ${rope.ropeType}`);
  }
}

export const papers: RopeDialect = { dialect: "papers", engine: "the papers' definitions", compute };

/**
 * DroPE as attention sees it at a test length: a rotation by nothing, and logits times β = 1 + c·ln(length / trained)
 * for lengths above the trained one. As a `softmaxFactor` it enters a logit once, where a rotary attention factor enters
 * twice (on the query and on the key).
 *
 * @param options headDim D; trainedLength and length in tokens; coefficient c, 0.412 for models trained from scratch and
 * 0.103 for SmolLM
 * @returns inverseFrequencies [D/2], all 0; attentionFactor 1; softmaxFactor β
 * @throws RangeError for a headDim that is not even, or lengths and coefficients out of range
 * @example
 * ```ts
 * import { dropeFrequencies } from "longhand/encodings";
 * const dropped = dropeFrequencies({ headDim: 4, trainedLength: 2048, length: 8192, coefficient: 0.412 });
 * dropped.inverseFrequencies; // => [0, 0]
 * dropped.softmaxFactor; // => 1.571153276781395
 * ```
 * Source: DroPE (2512.12167), section 4.
 */
export function dropeFrequencies(options: {
  readonly headDim: number;
  readonly trainedLength: number;
  readonly length: number;
  readonly coefficient: number;
}): { inverseFrequencies: Float64Array; attentionFactor: number; softmaxFactor: number } {
  const pairs = rotaryDimOf(expectInteger("dropeFrequencies", "headDim", options.headDim, 2)) / 2;
  const { trainedLength, coefficient, length } = options;
  const [softmaxFactor] = logitTemperature({ kind: "drope", coefficient, trainedLength }, [0], length);
  return { inverseFrequencies: new Float64Array(pairs), attentionFactor: 1, softmaxFactor: softmaxFactor! };
}
