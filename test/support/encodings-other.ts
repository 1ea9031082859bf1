// The fixture of reference/encodings_other.py, typed as far as the tests read it.

import { readFileSync } from "node:fs";

export interface OtherEncodings {
  readonly generator: string;
  readonly versions: Readonly<Record<string, string>>;
  readonly t5: {
    readonly limit: number;
    readonly cases: readonly {
      readonly numBuckets: number;
      readonly maxDistance: number;
      readonly bidirectional: boolean;
      /** [bucket, first distance], into the past. */
      readonly firstDistances: readonly (readonly [number, number])[];
      /** [distance, float32's bucket, exact bucket] */
      readonly differFromExact: readonly (readonly [number, number, number])[];
    }[];
    readonly modules: readonly {
      readonly bidirectional: boolean;
      readonly numBuckets: number;
      readonly maxDistance: number;
      readonly numHeads: number;
      readonly weights: readonly number[];
      readonly queryPositions: readonly number[];
      readonly numKeys: number;
      readonly rows: readonly number[];
      readonly bias: readonly number[];
    }[];
  };
  readonly alibi: {
    readonly bloom: Readonly<Record<string, readonly number[]>>;
    readonly mpt: readonly {
      readonly maxBias: number;
      readonly numHeads: number;
      readonly slopes: readonly number[];
    }[];
    readonly exact: Readonly<Record<string, readonly number[]>>;
  };
  readonly sinusoidal: {
    readonly modules: readonly {
      readonly source: string;
      readonly rows: readonly number[];
      readonly table: readonly number[];
      readonly hiddenSize: number;
      readonly layout: "interleaved" | "concatenated";
      readonly exponent: "vaswani" | "fairseq";
    }[];
    readonly exact: readonly {
      readonly hiddenSize: number;
      readonly theta: number;
      readonly exponent: "vaswani" | "fairseq";
      readonly points: readonly (readonly [number, number, number, number])[];
      readonly wavelengths: readonly number[];
    }[];
  };
  readonly kerple: readonly {
    readonly kind: "logarithmic" | "power";
    readonly r1: number;
    readonly r2: number;
    readonly distance: number;
    readonly bias: number;
  }[];
  readonly fire: {
    readonly layers: readonly { readonly weight: readonly number[]; readonly bias: readonly number[] }[];
    readonly c: number;
    readonly threshold: number;
    readonly epsilon: number;
    readonly queryPositions: readonly number[];
    readonly keyPositions: readonly number[];
    readonly bias: readonly number[];
  };
  readonly cope: readonly {
    readonly numHeads: number;
    readonly numQueries: number;
    readonly numKeys: number;
    readonly maxPositions: number;
    readonly logits: readonly number[];
    readonly positionLogits: readonly number[];
    readonly positions: readonly number[];
    readonly bias: readonly number[];
  }[];
  readonly xpos: readonly {
    readonly headDim: number;
    readonly length: number;
    readonly centre?: number;
    /** [position, pair, query cos, query sin, key cos, key sin] */
    readonly rows: readonly (readonly [number, number, number, number, number, number])[];
  }[];
  readonly fope: readonly {
    readonly headDim: number;
    readonly trainedLength: number;
    readonly padding: "ones" | "zero-frequency";
    readonly kept: readonly number[];
    readonly cosCoefficients: readonly number[];
    readonly sinCoefficients: readonly number[];
    readonly positions: readonly number[];
    readonly cos: readonly number[];
    readonly sin: readonly number[];
  }[];
  readonly positionMaps: readonly {
    readonly map: "self-extend" | "rerope" | "string" | "dual-chunk";
    readonly options: Readonly<Record<string, number>>;
    readonly matrix: readonly (readonly number[])[];
  }[];
  readonly layers: {
    readonly gemma2: readonly string[];
    readonly gemma3: readonly string[];
    readonly cohere2: readonly string[];
    readonly smollm3: readonly number[];
    readonly smollm3Interval2: readonly number[];
    readonly llama4: readonly number[];
    readonly llama4Types: readonly string[];
  };
  readonly factors: {
    readonly deepseek: readonly (readonly [number, number, number])[];
    readonly temperaturePositions: readonly number[];
    readonly ministral3: readonly number[];
    readonly llama4: readonly number[];
    readonly logn4096: readonly number[];
    readonly drope: readonly (readonly [number, number, number])[];
  };
}

export const otherEncodings: OtherEncodings = JSON.parse(
  readFileSync(new URL("../fixtures/encodings-other.json", import.meta.url), "utf8"),
);

/** The largest |got − expected| / max(1, |expected|); Infinity when the lengths differ or something is not a number. */
export function largestError(got: ArrayLike<number>, expected: ArrayLike<number>): number {
  if (got.length !== expected.length) return Number.POSITIVE_INFINITY;
  let largest = 0;
  for (let i = 0; i < got.length; i++) {
    const error = Math.abs(got[i]! - expected[i]!) / Math.max(1, Math.abs(expected[i]!));
    if (!(error <= largest)) largest = Number.isNaN(error) ? Number.POSITIVE_INFINITY : error;
  }
  return largest;
}

/** As largestError, relative to |expected| however small; both zero counts as equal. */
export function largestRelativeError(got: ArrayLike<number>, expected: ArrayLike<number>): number {
  if (got.length !== expected.length) return Number.POSITIVE_INFINITY;
  let largest = 0;
  for (let i = 0; i < got.length; i++) {
    const error = got[i] === expected[i] ? 0 : Math.abs(got[i]! - expected[i]!) / Math.abs(expected[i]!);
    if (!(error <= largest)) largest = Number.isNaN(error) ? Number.POSITIVE_INFINITY : error;
  }
  return largest;
}
