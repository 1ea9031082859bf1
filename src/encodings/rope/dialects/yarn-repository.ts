// The code of YaRN's authors, github.com/jquesnelle/yarn at 995db5b57: scaled_rope/*.py, one module a method. Its
// NTK-by-parts predates the paper's: three frequencies mixed by two ramps on the pair's index. Dynamic modules keep the
// table of the longest sequence seen and never shrink it.

import type { RopeConfig } from "../scaling/parameters.ts";
import { rotaryDimOf } from "../scaling/scaling.ts";
import {
  type Arithmetic,
  arithmeticOf,
  geometric,
  magnitude,
  stretchedBase,
  yarn,
  yarnEnds,
  yarnRamp,
} from "./arithmetic.ts";
import {
  type DialectContext,
  type DialectResult,
  frequenciesOf,
  Notes,
  type RopeDialect,
  unsupported,
} from "./dialect.ts";

const FOLDER = "scaled_rope";

/** Turns in the original length at the ends of the two ramps (LlamaPartNTKScaledRotaryEmbedding). */
const LINEAR_TO_NTK = { betaFast: 1.25, betaSlow: 0.75 } as const;
const SCALED_TO_PLAIN = { betaFast: 16, betaSlow: 2 } as const;

function partNtk(a: Arithmetic, base: number, rotaryDim: number, factor: number, original: number): Float64Array {
  const plain = geometric(a, base, rotaryDim);
  const ntk = geometric(a, stretchedBase(base, factor, rotaryDim), rotaryDim);
  const ends = (betas: typeof LINEAR_TO_NTK | typeof SCALED_TO_PLAIN) =>
    yarnEnds(base, rotaryDim, { originalLength: original, ...betas, truncate: true });
  const inner = ends(LINEAR_TO_NTK);
  const outer = ends(SCALED_TO_PLAIN);
  const mix = (slow: number, fast: number, ramp: number) => {
    const kept = a.round(1 - ramp);
    return a.round(a.round(slow * a.round(1 - kept)) + a.round(fast * kept));
  };
  return plain.map((w, i) => {
    const linear = a.round(1 / a.round(a.round(factor) * a.round(1 / w)));
    const scaled = mix(linear, ntk[i]!, yarnRamp(a, inner, i));
    return mix(scaled, w, yarnRamp(a, outer, i));
  });
}

function compute(config: RopeConfig, context: DialectContext): DialectResult {
  const { rope } = config;
  const notes = new Notes();
  const a = arithmeticOf(context.float32);
  const trained = config.maxPositionEmbeddings;
  const done = (inverseFrequencies: Float64Array, attentionFactor = 1, divisor = 1) =>
    frequenciesOf({
      inverseFrequencies: inverseFrequencies.map((w) => a.round(w / divisor)),
      attentionFactor,
      notes: notes.list,
      context,
      angle: (p, i) => a.round(a.round(p / a.round(divisor)) * inverseFrequencies[i]!),
    });
  const longest = Math.max(context.sequenceLength, context.previousLength ?? 0);
  const remember = (module: string) => {
    if (longest > context.sequenceLength) {
      notes.add(
        "history",
        null,
        `the table of an earlier sequence of ${longest} tokens is kept for good`,
        `${FOLDER}/${module}.py`,
      );
    }
  };
  if (rope.ropeType === "proportional") return unsupported(`${FOLDER} has no proportional`);
  const rotaryDim = rotaryDimOf(config.headDim, rope.partialRotaryFactor);
  const unscaled = (theta = rope.ropeTheta) => geometric(a, theta, rotaryDim);
  switch (rope.ropeType) {
    case "default":
      return done(unscaled());
    case "linear":
      return done(unscaled(), 1, rope.factor);
    case "ntk":
      return done(unscaled(stretchedBase(rope.ropeTheta, rope.factor, rotaryDim)));
    case "ntk-by-parts": {
      const source = `${FOLDER}/LlamaPartNTKScaledRotaryEmbedding.py`;
      notes.add(
        "formula-differs",
        null,
        "linear, NTK and unscaled frequencies mixed by two ramps on the pair's index",
        source,
      );
      notes.ignored(rope, ["alpha", "beta"], "the four ends are constants: 1.25, 0.75, 16 and 2 turns", source);
      return done(partNtk(a, rope.ropeTheta, rotaryDim, rope.factor, rope.originalMaxPositionEmbeddings));
    }
    case "dynamic": {
      const module = "LlamaDynamicScaledRotaryEmbedding";
      if (rope.alpha !== undefined) notes.add("key-ignored", "alpha", "not read", `${FOLDER}/${module}.py`);
      remember(module);
      const length = Math.max(longest, trained);
      const stretch = (rope.factor * length) / trained - (rope.factor - 1);
      return done(unscaled(length === trained ? rope.ropeTheta : stretchedBase(rope.ropeTheta, stretch, rotaryDim)));
    }
    case "dynamic-linear": {
      const module = "LlamaDynamicScaledRotaryEmbedding";
      remember(module);
      if (trained !== rope.originalMaxPositionEmbeddings) {
        const message = "positions are divided by ℓ / max_position_embeddings";
        notes.add("key-ignored", "originalMaxPositionEmbeddings", message, `${FOLDER}/${module}.py`);
      }
      return done(unscaled(), 1, Math.max(longest, trained) / trained);
    }
    case "yarn":
    case "dynamic-yarn": {
      const dynamic = rope.ropeType === "dynamic-yarn";
      const module = dynamic ? "LlamaDynamicYaRNScaledRotaryEmbedding" : "LlamaYaRNScaledRotaryEmbedding";
      const source = `${FOLDER}/${module}.py`;
      const original = rope.originalMaxPositionEmbeddings;
      if (rope.truncate === false) notes.add("key-ignored", "truncate", "the ramp's ends are always rounded", source);
      if (rope.ropeType === "yarn") {
        const message = "m(factor) is used, times the module's own attn_factor";
        notes.ignored(rope, ["attentionFactor", "mscale", "mscaleAllDim"], message, source);
      } else {
        remember(module);
        // Before max_position_embeddings tokens were seen, the module of a model that was not tuned is unscaled.
        if (longest <= trained) return done(unscaled());
      }
      const factor = rope.ropeType === "yarn" ? (rope.factor ?? trained / original) : longest / original;
      const ends = yarnEnds(rope.ropeTheta, rotaryDim, {
        originalLength: original,
        betaFast: rope.betaFast || 32,
        betaSlow: rope.betaSlow || 1,
        truncate: true,
      });
      return done(yarn(a, rope.ropeTheta, rotaryDim, factor, ends), magnitude(factor));
    }
    default:
      return unsupported(`${FOLDER} has no ${rope.ropeType}`);
  }
}

export const yarnRepository: RopeDialect = {
  dialect: "yarn-repository",
  engine: "jquesnelle/yarn 995db5b57",
  compute,
};
