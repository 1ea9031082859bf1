// One engine's reading of a rotary configuration. Each file beside this one holds one engine, named with the version
// whose source was read; index.ts holds them as one total table. Conventions: frequencies are radians a token, the
// attention factor multiplies cos and sin (a score gets its square), the softmax factor multiplies 1/√D once.

import { bfloat16Bits, bfloat16Value, float16Bits, float16Value } from "../../../tensor/float16.ts";
import { expectInteger } from "../../errors.ts";
import { sinCosOfProducts } from "../../numerics/sincos.ts";
import type { RotaryTables } from "../../position-encoding.ts";
import type { RopeConfig, RopeFrequencies } from "../scaling/parameters.ts";

export const dialects = [
  "transformers-5",
  "transformers-4",
  "llama.cpp",
  "vllm",
  "vllm-0.11",
  "sglang",
  "mlx-lm",
  "exllamav2",
  "exllamav3",
  "papers",
  "yarn-repository",
] as const;

export type Dialect = (typeof dialects)[number];

/** llama.cpp's command line; an absent flag leaves what the GGUF file says. */
export interface LlamaCppFlags {
  /** --rope-scaling */
  readonly ropeScaling?: "none" | "linear" | "yarn";
  /** --rope-scale N (--rope-freq-scale is 1/N) */
  readonly ropeScale?: number;
  /** --rope-freq-base */
  readonly ropeFreqBase?: number;
  /** --yarn-orig-ctx */
  readonly yarnOrigCtx?: number;
  /** --yarn-ext-factor */
  readonly yarnExtFactor?: number;
  /** --yarn-attn-factor */
  readonly yarnAttnFactor?: number;
  /** --yarn-beta-fast */
  readonly yarnBetaFast?: number;
  /** --yarn-beta-slow */
  readonly yarnBetaSlow?: number;
}

export type TableDtype = "float32" | "bfloat16" | "float16";

/** What an engine's result depends on beside the configuration. */
export interface DialectContext {
  /** ℓ: tokens in the sequence. */
  readonly sequenceLength: number;
  /** The longest sequence that the engine was started for (vLLM --max-model-len, llama.cpp -c, exllama max_seq_len);
   *  maxPositionEmbeddings when absent. vLLM, llama.cpp and exllama choose frequencies by it. */
  readonly maxModelLen?: number;
  /** Hugging Face's model_type. Without it a class is assumed that honours every key. */
  readonly modelType?: string;
  /** The longest sequence seen since the tables were last reset: transformers' dynamic type keeps its table. */
  readonly previousLength?: number;
  /** The settings stand under a layer type (`full_attention`, …). */
  readonly nested?: boolean;
  /** original_max_position_embeddings stands at the top level of config.json (as Phi-3 has it). Default true for
   *  longrope, false for the rest. */
  readonly originalLengthAtTopLevel?: boolean;
  /** Round at every step as the engine does in float32; false (the default) gives its formula in float64. */
  readonly float32?: boolean;
  /** dtype of vLLM's table, which is the model's; bfloat16 when absent. */
  readonly modelDtype?: TableDtype;
  readonly llamaCpp?: LlamaCppFlags;
}

export type DialectNoteCode =
  /** A setting of the configuration that the engine does not read. */
  | "key-ignored"
  /** The type is not known, and the engine computes unscaled frequencies without an error. */
  | "type-ignored"
  /** The engine has another formula under this name. */
  | "formula-differs"
  /** Which list or table is used depends on how the engine was started, not on the sequence. */
  | "fixed-at-start"
  /** The result depends on sequences seen before. */
  | "history"
  /** cos and sin exist for fewer positions than are admitted. */
  | "table-too-short"
  /** What the configuration says reaches the engine only by this way. */
  | "reached-by"
  /** Something that the configuration does not say was assumed. */
  | "assumed";

/** One thing that an engine does differently with this configuration. */
export interface DialectNote {
  readonly code: DialectNoteCode;
  /** The key that it is about, in camelCase as in RopeParameters; null when it is about the type. */
  readonly key: string | null;
  readonly message: string;
  /** File and function of the engine, at the version that `engine` names. */
  readonly source: string;
}

export interface DialectFrequencies extends RopeFrequencies {
  readonly supported: true;
  /** Multiplies the softmax scale 1/√D (multi-head latent attention under YaRN); 1 elsewhere. */
  readonly softmaxFactor: number;
  /** Positions for which the engine holds cos and sin; null when it computes them as they come. */
  readonly tableLength: number | null;
  readonly notes: readonly DialectNote[];
  /** Angles [T, P] in radians, not reduced: with `float32`, as the engine forms them. */
  angles(positions: ArrayLike<number>): Float64Array;
  /** cos and sin [T, P], attention factor included: with `float32`, rounded as the engine holds them. */
  tables(positions: ArrayLike<number>): RotaryTables;
}

export interface DialectUnsupported {
  readonly supported: false;
  /** What happens instead: the error, and where it comes from. */
  readonly reason: string;
  readonly notes: readonly DialectNote[];
}

export type DialectResult = DialectFrequencies | DialectUnsupported;

export interface RopeDialect {
  readonly dialect: Dialect;
  /** Name and version whose source was read. */
  readonly engine: string;
  /** What the engine computes. The configuration must be valid (computeDialect checks it). */
  compute(config: RopeConfig, context: DialectContext): DialectResult;
}

/** The longest admitted sequence: maxModelLen, or maxPositionEmbeddings. */
export function admittedLength(config: RopeConfig, context: DialectContext): number {
  return context.maxModelLen ?? config.maxPositionEmbeddings;
}

export function unsupported(reason: string, notes: readonly DialectNote[] = []): DialectUnsupported {
  return { supported: false, reason, notes };
}

/** Collects notes whose source is one engine's. */
export class Notes {
  readonly list: DialectNote[] = [];

  add(code: DialectNoteCode, key: string | null, message: string, source: string): void {
    this.list.push({ code, key, message, source });
  }

  /** Notes each key that is given and not null. */
  ignored(rope: object, keys: readonly string[], message: string, source: string): void {
    for (const key of keys) {
      const value = (rope as Record<string, unknown>)[key];
      if (value !== undefined && value !== null) this.add("key-ignored", key, message, source);
    }
  }
}

const roundTo: { readonly [D in TableDtype]: (x: number) => number } = {
  float32: Math.fround,
  bfloat16: (x) => bfloat16Value(bfloat16Bits(x)),
  float16: (x) => float16Value(float16Bits(x)),
};

interface Parts {
  readonly inverseFrequencies: Float64Array;
  readonly attentionFactor: number;
  readonly softmaxFactor?: number;
  readonly tableLength?: number | null;
  readonly notes: readonly DialectNote[];
  readonly context: DialectContext;
  /** dtype in which the engine keeps cos and sin; float32 when absent. */
  readonly tableDtype?: TableDtype;
  /** The engine's float32 angle of a pair at a position; fround(p · ω) when absent. */
  readonly angle?: (position: number, pair: number) => number;
  /** The same for all pairs of a position at once, where each follows from the one before. */
  readonly anglesAt?: (position: number) => ArrayLike<number>;
}

/** A supported result, with the engine's angles and tables. */
export function frequenciesOf(parts: Parts): DialectFrequencies {
  const { inverseFrequencies, attentionFactor, softmaxFactor = 1, tableLength = null, notes } = parts;
  const pairs = inverseFrequencies.length;
  const angle =
    parts.context.float32 === true
      ? (parts.angle ?? ((p: number, i: number) => Math.fround(p * inverseFrequencies[i]!)))
      : (p: number, i: number) => p * inverseFrequencies[i]!;
  const angles = (positions: ArrayLike<number>): Float64Array => {
    const out = new Float64Array(positions.length * pairs);
    for (let t = 0; t < positions.length; t++) {
      const p = expectInteger("rope dialect", "positions", positions[t]!);
      if (parts.context.float32 === true && parts.anglesAt !== undefined) {
        out.set(parts.anglesAt(p), t * pairs);
        continue;
      }
      for (let i = 0; i < pairs; i++) out[t * pairs + i] = angle(p, i);
    }
    return out;
  };
  return {
    supported: true,
    inverseFrequencies,
    attentionFactor,
    softmaxFactor,
    tableLength,
    notes,
    angles,
    tables(positions) {
      const turned = angles(positions);
      const cos = new Float64Array(turned.length);
      const sin = new Float64Array(turned.length);
      if (parts.context.float32 !== true) {
        sinCosOfProducts(turned, [1], attentionFactor, sin, cos);
        return { cos, sin };
      }
      sinCosOfProducts(turned, [1], 1, sin, cos);
      const round = roundTo[parts.tableDtype ?? "float32"];
      const factor = Math.fround(attentionFactor);
      const hold = (x: number) => round(Math.fround(Math.fround(x) * factor));
      return { cos: cos.map(hold), sin: sin.map(hold) };
    },
  };
}
