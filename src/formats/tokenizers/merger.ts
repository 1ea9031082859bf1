// Byte-pair merging of one word: again and again the pair of neighbours with the lowest rank, the leftmost of equals,
// becomes one symbol (Sennrich et al. 2016; ranks as in GPT-2, or SentencePiece's scores in falling order). A heap of
// candidates and a linked list of symbols: n symbols cost n log n, whatever they are.

export interface MergeRules {
  /** The number of the rule for two neighbours, or −1. */
  find(left: number, right: number): number;
  /** Lower goes first; below 2^26. */
  rank(rule: number): number;
  /** The symbol that the pair becomes. */
  result(rule: number): number;
}

/** A key of the heap is rank · 2^26 + position, exact in a double. */
const positions = 2 ** 26;

export class Merger {
  #next: Int32Array = new Int32Array(0);
  #previous: Int32Array = new Int32Array(0);
  #keys: Float64Array = new Float64Array(0);
  #rules: Int32Array = new Int32Array(0);
  #heapSize = 0;

  /** Merges the first `count` symbols in place and returns how many are left. */
  merge(symbols: Int32Array, count: number, rules: MergeRules): number {
    if (count < 2) return count;
    if (count >= positions) {
      throw new RangeError(`tokenizer: expected fewer than ${positions} characters without a break, got ${count}`);
    }
    if (count > this.#next.length) {
      const room = Math.max(64, 2 * count);
      this.#next = new Int32Array(room);
      this.#previous = new Int32Array(room);
      // Every symbol starts one candidate, and every merge adds at most two.
      this.#keys = new Float64Array(3 * room);
      this.#rules = new Int32Array(3 * room);
    }
    const next = this.#next;
    const previous = this.#previous;
    this.#heapSize = 0;
    for (let i = 0; i < count; i++) {
      next[i] = i + 1 < count ? i + 1 : -1;
      previous[i] = i - 1;
    }
    for (let i = 0; i + 1 < count; i++) this.#offer(symbols, i, i + 1, rules);
    while (this.#heapSize > 0) {
      const left = this.#keys[0]! % positions;
      const rule = this.#rules[0]!;
      this.#pop();
      const right = next[left]!;
      // Stale: one of the two has been merged since.
      if (symbols[left] === -1 || right === -1 || rules.find(symbols[left]!, symbols[right]!) !== rule) continue;
      symbols[left] = rules.result(rule);
      symbols[right] = -1;
      const after = next[right]!;
      next[left] = after;
      if (after !== -1) previous[after] = left;
      if (previous[left] !== -1) this.#offer(symbols, previous[left]!, left, rules);
      if (after !== -1) this.#offer(symbols, left, after, rules);
    }
    let kept = 0;
    for (let i = 0; i !== -1; i = next[i]!) symbols[kept++] = symbols[i]!;
    // A long word must not keep its buffers for ever.
    if (this.#next.length > 1 << 20) this.#next = this.#previous = this.#rules = new Int32Array(0);
    return kept;
  }

  #offer(symbols: Int32Array, left: number, right: number, rules: MergeRules): void {
    const rule = rules.find(symbols[left]!, symbols[right]!);
    if (rule < 0) return;
    const key = rules.rank(rule) * positions + left;
    let at = this.#heapSize++;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.#keys[parent]! <= key) break;
      this.#keys[at] = this.#keys[parent]!;
      this.#rules[at] = this.#rules[parent]!;
      at = parent;
    }
    this.#keys[at] = key;
    this.#rules[at] = rule;
  }

  #pop(): void {
    const size = --this.#heapSize;
    if (size === 0) return;
    const key = this.#keys[size]!;
    const rule = this.#rules[size]!;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= size) break;
      if (child + 1 < size && this.#keys[child + 1]! < this.#keys[child]!) child++;
      if (this.#keys[child]! >= key) break;
      this.#keys[at] = this.#keys[child]!;
      this.#rules[at] = this.#rules[child]!;
      at = child;
    }
    this.#keys[at] = key;
    this.#rules[at] = rule;
  }
}

/** Ids of words seen before. Emptied when full, so that its memory is bounded whatever the text. */
export class WordCache {
  readonly #words = new Map<string, readonly number[]>();

  get(word: string): readonly number[] | undefined {
    return this.#words.get(word);
  }

  set(word: string, ids: readonly number[]): void {
    if (word.length > 48) return;
    if (this.#words.size >= 65_536) this.#words.clear();
    // A slice of 13 characters or more would keep the whole text alive (V8 copies shorter ones).
    this.#words.set(word.length < 13 ? word : word.split("").join(""), ids);
  }
}
