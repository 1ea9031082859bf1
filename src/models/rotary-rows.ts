// A rotary table that is filled as far as a run has come, so that a table for any length is there at once.

/** Blocks of rows: this many at a time. */
const blockRows = 512;

/** cos and sin of rows from … to − 1, [to − from, P]. */
export type FillRows = (
  from: number,
  to: number,
) => { readonly cos: ArrayLike<number>; readonly sin: ArrayLike<number> };

/** cos and sin [R, P] filled up to what was asked for. */
export class RotaryRows {
  readonly pairs: number;
  cos: Float32Array = new Float32Array(0);
  sin: Float32Array = new Float32Array(0);
  #filled = 0;
  readonly #fill: FillRows;

  constructor(pairs: number, length: number, fill: FillRows) {
    this.pairs = pairs;
    this.#fill = fill;
    this.#allocate(length);
  }

  #allocate(rows: number): void {
    for (const name of ["cos", "sin"] as const) {
      const grown = new Float32Array(rows * this.pairs);
      grown.set(this[name].subarray(0, this.#filled * this.pairs));
      this[name] = grown;
    }
  }

  ensure(rows: number): void {
    const capacity = this.cos.length / this.pairs;
    if (rows > capacity) this.#allocate(Math.max(rows, 2 * capacity));
    while (this.#filled < rows) {
      const to = Math.min(this.#filled + blockRows, this.cos.length / this.pairs);
      const block = this.#fill(this.#filled, to);
      this.cos.set(block.cos, this.#filled * this.pairs);
      this.sin.set(block.sin, this.#filled * this.pairs);
      this.#filled = to;
    }
  }
}
