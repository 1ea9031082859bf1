// SHA-256 (FIPS 180-4) over bytes that come in pieces, in plain TypeScript: run folders and shards need the same digest
// in Node and in a browser, at once and without a promise. Files of gigabytes have `sha256File` (node-run-files.ts).

const K = roundConstants();

/** The first 32 bits of the fractional parts of the cube roots of the first 64 primes, by integer arithmetic. */
function roundConstants(): Int32Array {
  const out = new Int32Array(64);
  let prime = 1n;
  for (let i = 0; i < 64; i++) {
    do prime++;
    while (!isPrime(prime));
    // ⌊∛prime · 2^32⌋ = ⌊∛(prime · 2^96)⌋, by bisection.
    let low = 0n;
    let high = 8n << 32n;
    while (high - low > 1n) {
      const middle = (low + high) / 2n;
      if (middle ** 3n <= prime << 96n) low = middle;
      else high = middle;
    }
    out[i] = Number(BigInt.asIntN(32, low));
  }
  return out;
}

function isPrime(n: bigint): boolean {
  for (let d = 2n; d * d <= n; d++) if (n % d === 0n) return false;
  return true;
}

/** The same for the square roots of the first 8 primes. */
const initial = [
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
] as const;

/** A digest that grows. */
export class Sha256 {
  readonly #state: Int32Array = Int32Array.from(initial, (x) => x | 0);
  readonly #block: Uint8Array = new Uint8Array(64);
  readonly #schedule: Int32Array = new Int32Array(64);
  #filled = 0;
  #bytes = 0;

  update(bytes: Uint8Array): this {
    this.#bytes += bytes.length;
    let at = 0;
    while (at < bytes.length) {
      const count = Math.min(64 - this.#filled, bytes.length - at);
      this.#block.set(bytes.subarray(at, at + count), this.#filled);
      this.#filled += count;
      at += count;
      if (this.#filled === 64) this.#compress();
    }
    return this;
  }

  /** 64 hexadecimal digits. The digest takes nothing more afterwards. */
  hex(): string {
    const bits = BigInt(this.#bytes) * 8n;
    const padding = new Uint8Array((this.#filled < 56 ? 56 : 120) - this.#filled + 8);
    padding[0] = 0x80;
    new DataView(padding.buffer).setBigUint64(padding.length - 8, bits);
    this.update(padding);
    return Array.from(this.#state, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
  }

  #compress(): void {
    const w = this.#schedule;
    const block = new DataView(this.#block.buffer);
    for (let i = 0; i < 16; i++) w[i] = block.getInt32(4 * i);
    for (let i = 16; i < 64; i++) {
      const [a, b] = [w[i - 15]!, w[i - 2]!];
      const s0 = rotate(a, 7) ^ rotate(a, 18) ^ (a >>> 3);
      const s1 = rotate(b, 17) ^ rotate(b, 19) ^ (b >>> 10);
      w[i] = (w[i - 16]! + s0 + w[i - 7]! + s1) | 0;
    }
    let [a, b, c, d, e, f, g, h] = this.#state as unknown as [
      number,
      number,
      number,
      number,
      number,
      number,
      number,
      number,
    ];
    for (let i = 0; i < 64; i++) {
      const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + K[i]! + w[i]!) | 0;
      const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + t1) | 0;
      d = c;
      c = b;
      b = a;
      a = (t1 + t2) | 0;
    }
    for (const [i, x] of [a, b, c, d, e, f, g, h].entries()) this.#state[i] = (this.#state[i]! + x) | 0;
    this.#filled = 0;
  }
}

function rotate(x: number, bits: number): number {
  return (x >>> bits) | (x << (32 - bits));
}

/**
 * SHA-256 of bytes, or of a text's UTF-8, as 64 hexadecimal digits.
 *
 * @example
 * ```ts
 * import { sha256 } from "longhand/evaluation";
 * sha256("abc").slice(0, 16); // => "ba7816bf8f01cfea"
 * ```
 */
export function sha256(data: Uint8Array | string): string {
  return new Sha256().update(typeof data === "string" ? new TextEncoder().encode(data) : data).hex();
}
