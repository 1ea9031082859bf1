// A map from two non-negative 32-bit integers to a third, in typed arrays: pairs of symbols to merges, and a trie as
// (node, unit) to node. Open addressing, at most half full; 12 bytes a slot instead of the hundred of a Map of strings.

export class PairTable {
  #keys: Int32Array;
  #values: Int32Array;
  #mask: number;
  size = 0;

  constructor(expected = 16) {
    let slots = 32;
    while (slots < 2 * expected) slots *= 2;
    this.#keys = new Int32Array(2 * slots).fill(-1);
    this.#values = new Int32Array(slots);
    this.#mask = slots - 1;
  }

  #slot(a: number, b: number): number {
    let hash = Math.imul(a, 0x9e3779b1) ^ Math.imul(b, 0x85ebca77);
    hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
    let slot = (hash ^ (hash >>> 13)) & this.#mask;
    while (this.#keys[2 * slot] !== -1 && (this.#keys[2 * slot] !== a || this.#keys[2 * slot + 1] !== b)) {
      slot = (slot + 1) & this.#mask;
    }
    return slot;
  }

  /** The value, or undefined. */
  get(a: number, b: number): number | undefined {
    const slot = this.#slot(a, b);
    return this.#keys[2 * slot] === -1 ? undefined : this.#values[slot];
  }

  set(a: number, b: number, value: number): void {
    let slot = this.#slot(a, b);
    if (this.#keys[2 * slot] === -1) {
      if (2 * (this.size + 1) > this.#mask + 1) {
        this.#grow();
        slot = this.#slot(a, b);
      }
      this.size++;
      this.#keys[2 * slot] = a;
      this.#keys[2 * slot + 1] = b;
    }
    this.#values[slot] = value;
  }

  clear(): void {
    this.#keys.fill(-1);
    this.size = 0;
  }

  #grow(): void {
    const keys = this.#keys;
    const values = this.#values;
    this.#keys = new Int32Array(2 * keys.length).fill(-1);
    this.#values = new Int32Array(2 * values.length);
    this.#mask = 2 * this.#mask + 1;
    for (let slot = 0; slot < values.length; slot++) {
      if (keys[2 * slot] === -1) continue;
      const to = this.#slot(keys[2 * slot]!, keys[2 * slot + 1]!);
      this.#keys[2 * to] = keys[2 * slot]!;
      this.#keys[2 * to + 1] = keys[2 * slot + 1]!;
      this.#values[to] = values[slot]!;
    }
  }
}

/** A trie over bytes: values at the ends of keys. Node 0 is the root. */
export class ByteTrie {
  readonly #edges: PairTable = new PairTable(1024);
  #values: Int32Array = new Int32Array(256).fill(-1);
  #nodes = 1;

  /** Adds a key; a key given twice keeps its first value. */
  add(key: Uint8Array, value: number): void {
    let node = 0;
    for (const byte of key) {
      let next = this.#edges.get(node, byte);
      if (next === undefined) {
        next = this.#nodes++;
        if (next >= this.#values.length) {
          const bigger = new Int32Array(2 * this.#values.length).fill(-1);
          bigger.set(this.#values);
          this.#values = bigger;
        }
        this.#edges.set(node, byte, next);
      }
      node = next;
    }
    if (this.#values[node] === -1) this.#values[node] = value;
  }

  /** The node behind `node` along `byte`, or undefined. */
  next(node: number, byte: number): number | undefined {
    return this.#edges.get(node, byte);
  }

  /** The value of the key that ends at a node, or −1. */
  valueAt(node: number): number {
    return this.#values[node]!;
  }

  /** Bytes of the longest key that starts at `at`, or 0. */
  longestMatch(bytes: Uint8Array, at: number, end: number): number {
    let node = 0;
    let longest = 0;
    for (let i = at; i < end; i++) {
      const next = this.#edges.get(node, bytes[i]!);
      if (next === undefined) break;
      node = next;
      if (this.#values[node] !== -1) longest = i + 1 - at;
    }
    return longest;
  }
}
