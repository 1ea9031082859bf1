// The rotary settings of a checkpoint: Hugging Face's `rope_parameters` (version 5) in camelCase, as a union by
// `ropeType`. The first group are the types that transformers knows; the second are rules of the field that no
// configuration file can name, under names of our own. Shape letters: D head dimension, P rotary pairs.

interface Common {
  /** The base b of the geometric series ω_i = b^(−2i/rotaryDim). */
  readonly ropeTheta: number;
  /** Share of the head that is rotated, in (0, 1]; 1 when absent. `proportional` reads it differently. */
  readonly partialRotaryFactor?: number;
}

/** ω_i = b^(−2i/d), unchanged (RoFormer, Su et al. 2021, section 3.2.2). */
export interface DefaultRope extends Common {
  readonly ropeType: "default";
}
/** Position Interpolation: ω_i / factor (Chen et al. 2023, section 3.2). */
export interface LinearRope extends Common {
  readonly ropeType: "linear";
  readonly factor: number;
}
/** Dynamic NTK: the base grows with the sequence past maxPositionEmbeddings (emozilla 2023, as in transformers). */
export interface DynamicRope extends Common {
  readonly ropeType: "dynamic";
  readonly factor: number;
  /** HunYuan's static form: b · alpha^(d/(d−2)) at every length; factor is then unused. */
  readonly alpha?: number;
}
/** YaRN as every engine implements it, ramping on the pair's index (Peng et al. 2023, and the authors' code). */
export interface YarnRope extends Common {
  readonly ropeType: "yarn";
  /** null: maxPositionEmbeddings / originalMaxPositionEmbeddings. */
  readonly factor: number | null;
  readonly originalMaxPositionEmbeddings: number;
  /** Turns in the original length from which a pair is left alone; 32 when absent, null or 0. */
  readonly betaFast?: number | null;
  /** Turns in the original length below which a pair is fully interpolated; 1 when absent, null or 0. */
  readonly betaSlow?: number | null;
  /** Round the ramp's ends to whole pairs; true when absent (gpt-oss ships false). */
  readonly truncate?: boolean;
  /** Multiplies cos and sin; computed from factor, mscale and mscaleAllDim when absent or null. */
  readonly attentionFactor?: number | null;
  readonly mscale?: number | null;
  readonly mscaleAllDim?: number | null;
}
/** Llama 3.1's three regions by wavelength (Llama 3 herd of models 2024, and Meta's code). */
export interface Llama3Rope extends Common {
  readonly ropeType: "llama3";
  readonly factor: number;
  readonly originalMaxPositionEmbeddings: number;
  readonly lowFreqFactor: number;
  readonly highFreqFactor: number;
}
/** LongRoPE as shipped ("su" in older files): a divisor a pair, one list below the original length, one above. */
export interface LongRope extends Common {
  readonly ropeType: "longrope";
  readonly originalMaxPositionEmbeddings: number;
  /** P divisors, for sequences of at most originalMaxPositionEmbeddings. */
  readonly shortFactor: readonly number[];
  /** P divisors, for longer sequences. */
  readonly longFactor: readonly number[];
  /** maxPositionEmbeddings / originalMaxPositionEmbeddings when absent or null. */
  readonly factor?: number | null;
  readonly attentionFactor?: number | null;
  /** Phi-3.5-MoE: the attention factors of short and of long sequences; they outrank attentionFactor. */
  readonly shortMscale?: number | null;
  readonly longMscale?: number | null;
}
/** p-RoPE (Barbero et al. 2024, appendix D; Gemma 4): the lowest frequencies are dropped, exponents run over D. */
export interface ProportionalRope extends Common {
  readonly ropeType: "proportional";
  /** Divides every frequency; 1 when absent. */
  readonly factor?: number | null;
}

/** NTK-aware (bloc97 2023): base b · factor^(d/(d−2)). */
export interface NtkRope extends Common {
  readonly ropeType: "ntk";
  readonly factor: number;
}
/** NTK-by-parts as the YaRN paper defines it (section 3.2, definition 2): the ramp runs on turns, not on index. */
export interface NtkByPartsRope extends Common {
  readonly ropeType: "ntk-by-parts";
  readonly factor: number;
  readonly originalMaxPositionEmbeddings: number;
  /** Turns below which a pair is fully interpolated; 1 when absent. */
  readonly alpha?: number;
  /** Turns above which a pair is left alone; 32 when absent. */
  readonly beta?: number;
}
/** Position Interpolation with factor max(1, length / original) (YaRN paper, section 3.3). */
export interface DynamicLinearRope extends Common {
  readonly ropeType: "dynamic-linear";
  readonly originalMaxPositionEmbeddings: number;
}
/** YaRN with factor max(1, length / original) (YaRN paper, section 3.3). */
export interface DynamicYarnRope extends Common {
  readonly ropeType: "dynamic-yarn";
  readonly originalMaxPositionEmbeddings: number;
  readonly betaFast?: number | null;
  readonly betaSlow?: number | null;
  readonly truncate?: boolean;
}
/** The base that gives length factor · original the critical dimension of the original length:
 *  b^(ln(L'/2π) / ln(L/2π)) (the "gradient" rule of KoboldCpp, after Gradient AI's Llama 3 at 1M tokens). */
export interface GradientRope extends Common {
  readonly ropeType: "gradient";
  readonly factor: number;
  readonly originalMaxPositionEmbeddings: number;
}
/** An arbitrary table: the inverse frequencies themselves. ropeTheta is kept for reference only. */
export interface TableRope extends Common {
  readonly ropeType: "table";
  /** P values in radians a token, each ≥ 0. */
  readonly inverseFrequencies: readonly number[];
  /** 1 when absent. */
  readonly attentionFactor?: number | null;
}

export type RopeParameters =
  | DefaultRope
  | LinearRope
  | DynamicRope
  | YarnRope
  | Llama3Rope
  | LongRope
  | ProportionalRope
  | NtkRope
  | NtkByPartsRope
  | DynamicLinearRope
  | DynamicYarnRope
  | GradientRope
  | TableRope;

export type RopeType = RopeParameters["ropeType"];
export type ParametersOf<T extends RopeType> = Extract<RopeParameters, { ropeType: T }>;

/** What a scaling needs to know of the model. */
export interface RopeConfig<R extends RopeParameters = RopeParameters> {
  /** D: the width that `partialRotaryFactor` is a share of (for multi-head latent attention: qk_rope_head_dim). */
  readonly headDim: number;
  /** The length the file claims; `dynamic` starts to change there, `yarn` and `longrope` derive factors from it. */
  readonly maxPositionEmbeddings: number;
  readonly rope: R;
}

/** What a scaling gives. Angle of pair i at position p: p · inverseFrequencies[i]. */
export interface RopeFrequencies {
  /** P values in radians a token. */
  readonly inverseFrequencies: Float64Array;
  /** Multiplies both cos and sin, so it enters a score squared. */
  readonly attentionFactor: number;
}
