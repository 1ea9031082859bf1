// The position encodings, grouped by where they act. Models and engine ask for the site, never for the name.
// Shape letters (ARCHITECTURE.md): T query positions, S key positions, C width, D head dimension, H query heads,
// P rotary pairs. Every array is row-major float64; whoever feeds an engine casts once, at the end.

/** Where an encoding acts. */
export type Site = PositionEncoding["site"];

/** Nothing is added: order is visible through the causal mask alone (NoPE). */
export interface NoPositionEncoding {
  readonly site: "none";
  readonly name: string;
}

/** Rows added to the token embeddings, one a position. */
export interface EmbeddingEncoding {
  readonly site: "embedding";
  readonly name: string;
  /** C */
  readonly hiddenSize: number;
  /** Positions that exist, 0 .. maxPositions − 1; Infinity when the formula has no limit. */
  readonly maxPositions: number;
  /** The rows of these positions, [T, C]. Throws RangeError for a position past the table. */
  rows(positions: ArrayLike<number>): Float64Array;
}

/** The rotation of each (position, pair): what multiplies a query or a key. Both arrays are [T, P]. */
export interface RotaryTables {
  readonly cos: Float64Array;
  readonly sin: Float64Array;
}

/** Pair p of a head holds its channels (p, p + P) in "half" and (2p, 2p + 1) in "interleaved". */
export type RotaryLayout = "half" | "interleaved";

/** Queries and keys are rotated (and perhaps scaled) by their own position before they meet. */
export interface QueryKeyEncoding {
  readonly site: "query-key";
  readonly name: string;
  /** D */
  readonly headDim: number;
  /** The first rotaryDim = 2P channels of a head are rotated, the rest pass through. */
  readonly rotaryDim: number;
  readonly layout: RotaryLayout;
  /** True when the tables of the same positions change with sequenceLength (dynamic, longrope, xPos): a cache of
   *  rotated keys is then invalid once the length changes. */
  readonly dependsOnLength: boolean;
  /** Tables for queries, attention factor included. sequenceLength is the length of the whole sequence. */
  queryTables(positions: ArrayLike<number>, sequenceLength: number): RotaryTables;
  /** Tables for keys; the same as the queries' for every rotary encoding except xPos. */
  keyTables(positions: ArrayLike<number>, sequenceLength: number): RotaryTables;
}

/** A number added to each score, after the softmax scale (1/√D) and before the mask and the softmax. */
export interface AttentionBiasEncoding {
  readonly site: "attention-bias";
  readonly name: string;
  /** H */
  readonly numHeads: number;
  /** s_h, where the bias of every key at or before its query is −s_h · (i − j): an engine may then need no [H, T, S]. */
  readonly slopes?: Float64Array;
  /** The bias of query positions against key positions, [H, T, S]. */
  bias(queryPositions: ArrayLike<number>, keyPositions: ArrayLike<number>): Float64Array;
}

/** A position encoding: a union by where it acts. */
export type PositionEncoding = NoPositionEncoding | EmbeddingEncoding | QueryKeyEncoding | AttentionBiasEncoding;
