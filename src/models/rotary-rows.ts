// A rotary table that is filled as far as a run has come, so that a table for any length is there at once.

/** Blocks of rows: this many at a time. */
const blockRows = 512;

/** cos and sin of rows from … to − 1, [to − from, P]. */
export type FillRows = (
  from: number,
  to: number,
) => { readonly cos: ArrayLike<number>; readonly sin: ArrayLike<number> };

/** Rows of cos and sin, P wide, filled up to what was asked for; those in front of what is still wanted are let go. */
export class RotaryRows {
  readonly pairs: number;
  #cos: Float32Array = new Float32Array(0);
  #sin: Float32Array = new Float32Array(0);
  /** The position of the arrays' first row, and where filled rows end. */
  #base = 0;
  #filled = 0;
  readonly #fill: FillRows;

  /** @param length rows that will be wanted at most, as far as is known: memory for them is set aside, not filled */
  constructor(pairs: number, length: number, fill: FillRows) {
    this.pairs = pairs;
    this.#fill = fill;
    this.#allocate(length);
  }

  /** Rows from `first` on, [·, P], of which those up to `end` are filled. Valid until the next call. */
  from(first: number, end: number): { readonly cos: Float32Array; readonly sin: Float32Array } {
    if (first < this.#base || first > this.#filled) [this.#base, this.#filled] = [first, first];
    // Only now and then, so that a step of one token moves nothing.
    if (first - this.#base >= blockRows) this.#letGo(first);
    if (end - this.#base > this.#rows) this.#allocate(Math.max(end - this.#base, 2 * this.#rows));
    while (this.#filled < end) {
      const to = Math.min(this.#filled + blockRows, this.#base + this.#rows);
      const block = this.#fill(this.#filled, to);
      const at = (this.#filled - this.#base) * this.pairs;
      this.#cos.set(block.cos, at);
      this.#sin.set(block.sin, at);
      this.#filled = to;
    }
    const skipped = (first - this.#base) * this.pairs;
    return { cos: this.#cos.subarray(skipped), sin: this.#sin.subarray(skipped) };
  }

  get #rows(): number {
    return this.#cos.length / this.pairs;
  }

  #allocate(rows: number): void {
    const kept = (this.#filled - this.#base) * this.pairs;
    const grown = (table: Float32Array): Float32Array => {
      const out = new Float32Array(rows * this.pairs);
      out.set(table.subarray(0, kept));
      return out;
    };
    [this.#cos, this.#sin] = [grown(this.#cos), grown(this.#sin)];
  }

  #letGo(first: number): void {
    const [from, to] = [(first - this.#base) * this.pairs, (this.#filled - this.#base) * this.pairs];
    for (const table of [this.#cos, this.#sin]) table.copyWithin(0, from, to);
    this.#base = first;
  }
}
