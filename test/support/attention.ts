// Attention of one head in plain loops and float64: the yardstick for what an encoding does to a score. Slow on
// purpose; nothing of src is used, so that it can judge it.

/** Row-major numbers of [rows, columns]. */
export interface Matrix {
  readonly rows: number;
  readonly columns: number;
  readonly data: Float64Array;
}

export function matrix(rows: number, columns: number, at: (row: number, column: number) => number): Matrix {
  const data = Float64Array.from({ length: rows * columns }, (_, i) => at(Math.floor(i / columns), i % columns));
  return { rows, columns, data };
}

/** Rows of m in this order. */
export function permuteRows(m: Matrix, order: readonly number[]): Matrix {
  return matrix(order.length, m.columns, (row, column) => m.data[order[row]! * m.columns + column]!);
}

export function dot(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}

export function softmax(scores: ArrayLike<number>): Float64Array {
  const largest = Math.max(...Array.from(scores));
  const powers = Float64Array.from(scores, (score) => Math.exp(score - largest));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}

export interface AttentionInput {
  /** [T, D] */
  readonly queries: Matrix;
  /** [S, D] */
  readonly keys: Matrix;
  /** [S, V] */
  readonly values: Matrix;
  /** A query t sees keys 0 .. S − T + t. */
  readonly causal: boolean;
  /** Added to the scaled scores, [T, S]. */
  readonly bias?: ArrayLike<number>;
  /** 1/√D when absent. */
  readonly scale?: number;
}

/** Weights [T, S] and outputs [T, V] of softmax(q·k·scale + bias)·v. */
export function attention(input: AttentionInput): { weights: Matrix; outputs: Matrix } {
  const { queries, keys, values, causal, bias } = input;
  const scale = input.scale ?? 1 / Math.sqrt(queries.columns);
  const weights = matrix(queries.rows, keys.rows, () => 0);
  const outputs = matrix(queries.rows, values.columns, () => 0);
  for (let t = 0; t < queries.rows; t++) {
    const visible = causal ? keys.rows - queries.rows + t + 1 : keys.rows;
    const scores = Float64Array.from({ length: visible }, (_, s) => {
      const score = dot(row(queries, t), row(keys, s)) * scale;
      return bias ? score + bias[t * keys.rows + s]! : score;
    });
    softmax(scores).forEach((weight, s) => {
      weights.data[t * keys.rows + s] = weight;
      for (let v = 0; v < values.columns; v++) {
        outputs.data[t * values.columns + v]! += weight * values.data[s * values.columns + v]!;
      }
    });
  }
  return { weights, outputs };
}

export function row(m: Matrix, at: number): Float64Array {
  return m.data.subarray(at * m.columns, (at + 1) * m.columns);
}

/** One head's vector rotated (and scaled) by the row `at` of [T, P] tables; the channels past 2P pass through. */
export function rotate(
  vector: ArrayLike<number>,
  tables: { readonly cos: ArrayLike<number>; readonly sin: ArrayLike<number> },
  at: number,
  numPairs: number,
  layout: "half" | "interleaved",
): Float64Array {
  const out = Float64Array.from(vector);
  for (let p = 0; p < numPairs; p++) {
    const [first, second] = layout === "half" ? [p, p + numPairs] : [2 * p, 2 * p + 1];
    const cos = tables.cos[at * numPairs + p]!;
    const sin = tables.sin[at * numPairs + p]!;
    out[first] = vector[first]! * cos - vector[second]! * sin;
    out[second] = vector[second]! * cos + vector[first]! * sin;
  }
  return out;
}

/** Numbers in [−1, 1) from a seed, the same everywhere (mulberry32). */
export function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * 2 - 1;
  };
}
