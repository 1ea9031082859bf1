// exllamav2 0.3.2: exllamav2/config.py (what is read) and exllamav2/rope.py (one function a type). Everything is decided
// when the model is loaded, by max_seq_len; cos and sin are tables of that many rows in float16. Only version 4's keys
// are read, rope_theta and rope_scaling at the top level.

import { naturalLogarithm } from "../../numerics/power.ts";
import type { RopeConfig, YarnRope } from "../scaling/parameters.ts";
import { rotaryDimOf } from "../scaling/scaling.ts";
import {
  type Arithmetic,
  arithmeticOf,
  divided,
  geometric,
  llama3,
  longRopeMagnitude,
  stretchedBase,
  yarn,
  yarnEnds,
} from "./arithmetic.ts";
import {
  admittedLength,
  type DialectContext,
  type DialectResult,
  frequenciesOf,
  Notes,
  type RopeDialect,
  unsupported,
} from "./dialect.ts";

const ROPE = "exllamav2/rope.py";
const CONFIG = "exllamav2/config.py ExLlamaV2Config.prepare";

function yarnOf(
  a: Arithmetic,
  { rope }: RopeConfig<YarnRope>,
  rotaryDim: number,
  admitted: number,
  notes: Notes,
): { inverseFrequencies: Float64Array; attentionFactor: number } {
  const source = `${ROPE} get_rope_params_yarn`;
  if (admitted <= rope.originalMaxPositionEmbeddings) {
    notes.add(
      "fixed-at-start",
      null,
      `unscaled, because max_seq_len is ${admitted}, not above the original length`,
      source,
    );
    return { inverseFrequencies: geometric(a, rope.ropeTheta, rotaryDim), attentionFactor: 1 };
  }
  notes.add(
    "formula-differs",
    "originalMaxPositionEmbeddings",
    `the ramp's ends are computed from max_seq_len ${admitted} instead of the original length`,
    source,
  );
  notes.ignored(rope, ["betaFast", "betaSlow"], "32 and 1 are used", source);
  notes.ignored(rope, ["attentionFactor", "mscale", "mscaleAllDim"], "0.1 ln(factor) + 1 is used", source);
  if (rope.truncate === false) notes.add("key-ignored", "truncate", "the ramp's ends are always rounded", source);
  const ends = yarnEnds(rope.ropeTheta, rotaryDim, {
    originalLength: admitted,
    betaFast: 32,
    betaSlow: 1,
    truncate: true,
  });
  return {
    inverseFrequencies: yarn(a, rope.ropeTheta, rotaryDim, rope.factor!, ends),
    attentionFactor: 0.1 * naturalLogarithm(rope.factor!) + 1,
  };
}

function compute(config: RopeConfig, context: DialectContext): DialectResult {
  const { rope } = config;
  const notes = new Notes();
  const a = arithmeticOf(context.float32);
  const admitted = admittedLength(config, context);
  const channels = Math.trunc(config.headDim * (rope.partialRotaryFactor ?? 1));
  if (rope.ropeType === "proportional" && channels % 2 !== 0) {
    return unsupported(
      `partial rotary over an odd number of channels, ${channels}: proportional is not known (${CONFIG})`,
    );
  }
  const rotaryDim = rotaryDimOf(config.headDim, rope.partialRotaryFactor);
  const unscaled = (theta = rope.ropeTheta) => geometric(a, theta, rotaryDim);
  const done = (inverseFrequencies: Float64Array, attentionFactor = 1, divisor = 1) => {
    if (context.sequenceLength > admitted) {
      notes.add(
        "table-too-short",
        null,
        `cos and sin exist for max_seq_len ${admitted} positions, ${context.sequenceLength} are asked for`,
        "exllamav2/device.py ExLlamaV2DeviceContext.prepare_sincos",
      );
    }
    return frequenciesOf({
      inverseFrequencies: inverseFrequencies.map((w) => a.round(w / divisor)),
      attentionFactor,
      tableLength: admitted,
      tableDtype: "float16",
      notes: notes.list,
      context,
      angle: (p, i) => a.round(a.round(p / a.round(divisor)) * inverseFrequencies[i]!),
    });
  };
  notes.add("reached-by", null, "version 4's keys alone: rope_theta and rope_scaling at the top level", CONFIG);
  switch (rope.ropeType) {
    case "default":
      return done(unscaled());
    case "linear":
      return done(unscaled(), 1, rope.factor);
    case "ntk":
      notes.add("reached-by", "factor", `scale_alpha_value ${rope.factor} (rope_alpha in its front ends)`, ROPE);
      return done(unscaled(stretchedBase(rope.ropeTheta, rope.factor, rotaryDim)));
    case "yarn": {
      if (rope.factor === null && admitted > rope.originalMaxPositionEmbeddings)
        return unsupported(`TypeError: factor is null (${ROPE} get_rope_params_yarn)`, notes.list);
      const made = yarnOf(a, { ...config, rope }, rotaryDim, admitted, notes);
      return done(made.inverseFrequencies, made.attentionFactor);
    }
    case "llama3":
      return done(
        llama3(a, unscaled(), {
          factor: rope.factor,
          originalLength: rope.originalMaxPositionEmbeddings,
          low: rope.lowFreqFactor,
          high: rope.highFreqFactor,
        }),
      );
    case "longrope": {
      const source = `${ROPE} get_rope_params_su`;
      if (context.originalLengthAtTopLevel === false) {
        return unsupported(
          `AssertionError: original_max_position_embeddings is looked for at the top level (${CONFIG})`,
          notes.list,
        );
      }
      const original = rope.originalMaxPositionEmbeddings;
      const long = admitted > original;
      notes.add(
        "fixed-at-start",
        null,
        `the ${long ? "long" : "short"} list is used at every length, because max_seq_len ${admitted} is ` +
          `${long ? "above" : "at most"} ${original}`,
        source,
      );
      notes.ignored(
        rope,
        ["attentionFactor", "factor", "shortMscale", "longMscale"],
        long ? "computed from max_seq_len over the original length" : "1 is used with the short list",
        source,
      );
      return done(
        divided(a, rope.ropeTheta, rotaryDim, long ? rope.longFactor : rope.shortFactor),
        long ? longRopeMagnitude(admitted / original, original) : 1,
      );
    }
    case "dynamic":
      notes.add("type-ignored", null, "an unknown type is skipped without an error: unscaled at every length", CONFIG);
      return done(unscaled());
    case "proportional":
      notes.add(
        "type-ignored",
        null,
        "an unknown type is skipped without an error: partial_rotary_factor then means partial rotary",
        CONFIG,
      );
      return done(unscaled());
    default:
      return unsupported(`no configuration of exllamav2 reaches ${rope.ropeType}`, notes.list);
  }
}

export const exllamav2: RopeDialect = { dialect: "exllamav2", engine: "exllamav2 0.3.2", compute };
