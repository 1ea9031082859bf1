// ggml's 32-element blocks: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0. Byte j of the nibbles holds elements j (low) and j + 16 (high);
// MatMulNBits wants neighbours in a byte, so repacking reorders. The arithmetic is float64 rounded once on storing, which
// equals float32 arithmetic here: d·q has at most 16 significant bits, d·q + m is exact in float64.

import { viewBytes } from "../../../tensor/index.ts";
import type { Codec } from "../codec.ts";
import { float16Table } from "../float16-table.ts";

/**
 * Nibbles of `count` words of two bytes, which pair element j (low) with j + 2 · count (high), as `2 · count` bytes of
 * neighbours at `to`.
 */
export function reorderNibbles(words: Uint16Array, from: number, count: number, blocks: Uint8Array, to: number): void {
  for (let i = 0; i < count; i++) {
    const word = words[from + i]!;
    blocks[to + i] = (word & 15) | ((word >> 4) & 0xf0);
    blocks[to + i + count] = ((word >> 4) & 15) | ((word >> 8) & 0xf0);
  }
}

/** Blocks of even length as words of two bytes; a copy only where they start at an odd address. */
export function wordsOf(bytes: Uint8Array, byteLength: number): Uint16Array {
  return viewBytes("f16", bytes.subarray(0, byteLength));
}

const q4_0: Codec = {
  name: "Q4_0",
  unitElements: 32,
  unitBytes: 18,
  finiteStride: 32,
  // d f16, nibbles [16]: d · (q − 8).
  decode(bytes, units, out) {
    const half = float16Table();
    let p = 0;
    let o = 0;
    for (let u = 0; u < units; u++) {
      const d = half[bytes[p]! | (bytes[p + 1]! << 8)]!;
      p += 2;
      for (let j = 0; j < 16; j++) {
        const byte = bytes[p + j]!;
        out[o + j] = d * ((byte & 15) - 8);
        out[o + j + 16] = d * ((byte >> 4) - 8);
      }
      p += 16;
      o += 32;
    }
  },
  repack: {
    bits: 4,
    blockSize: 32,
    minimum: false,
    run(bytes, units, blocks, scales) {
      const half = float16Table();
      const words = wordsOf(bytes, 18 * units);
      for (let u = 0; u < units; u++) {
        scales[u] = half[words[9 * u]!]!;
        reorderNibbles(words, 9 * u + 1, 8, blocks, 16 * u);
      }
    },
  },
};

const q4_1: Codec = {
  name: "Q4_1",
  unitElements: 32,
  unitBytes: 20,
  finiteStride: 32,
  // d f16, m f16, nibbles [16]: d · q + m.
  decode(bytes, units, out) {
    const half = float16Table();
    let p = 0;
    let o = 0;
    for (let u = 0; u < units; u++) {
      const d = half[bytes[p]! | (bytes[p + 1]! << 8)]!;
      const m = half[bytes[p + 2]! | (bytes[p + 3]! << 8)]!;
      p += 4;
      for (let j = 0; j < 16; j++) {
        const byte = bytes[p + j]!;
        out[o + j] = d * (byte & 15) + m;
        out[o + j + 16] = d * (byte >> 4) + m;
      }
      p += 16;
      o += 32;
    }
  },
  repack: {
    bits: 4,
    blockSize: 32,
    minimum: true,
    // d · q + m = d · (q − 8) + (m + 8d): the one number that float32 may have to round.
    run(bytes, units, blocks, scales, minimum) {
      const half = float16Table();
      const words = wordsOf(bytes, 20 * units);
      for (let u = 0; u < units; u++) {
        const d = half[words[10 * u]!]!;
        scales[u] = d;
        minimum[u] = half[words[10 * u + 1]!]! + 8 * d;
        reorderNibbles(words, 10 * u + 2, 8, blocks, 16 * u);
      }
    },
  },
};

/** The fifth bits of 32 elements, as an integer; bit j belongs to element j. */
function fifthBits(bytes: Uint8Array, p: number): number {
  return bytes[p]! | (bytes[p + 1]! << 8) | (bytes[p + 2]! << 16) | (bytes[p + 3]! << 24);
}

const q5_0: Codec = {
  name: "Q5_0",
  unitElements: 32,
  unitBytes: 22,
  finiteStride: 32,
  // d f16, fifth bits u32, nibbles [16]: d · (q − 16).
  decode(bytes, units, out) {
    const half = float16Table();
    let p = 0;
    let o = 0;
    for (let u = 0; u < units; u++) {
      const d = half[bytes[p]! | (bytes[p + 1]! << 8)]!;
      const high = fifthBits(bytes, p + 2);
      p += 6;
      for (let j = 0; j < 16; j++) {
        const byte = bytes[p + j]!;
        out[o + j] = d * (((byte & 15) | (((high >>> j) & 1) << 4)) - 16);
        out[o + j + 16] = d * (((byte >> 4) | (((high >>> (j + 16)) & 1) << 4)) - 16);
      }
      p += 16;
      o += 32;
    }
  },
  repack: {
    bits: 8,
    blockSize: 32,
    minimum: false,
    run(bytes, units, blocks, scales) {
      const half = float16Table();
      for (let u = 0; u < units; u++) {
        const p = 22 * u;
        const to = 32 * u;
        scales[u] = half[bytes[p]! | (bytes[p + 1]! << 8)]!;
        const high = fifthBits(bytes, p + 2);
        for (let j = 0; j < 16; j++) {
          const byte = bytes[p + 6 + j]!;
          blocks[to + j] = ((byte & 15) | (((high >>> j) & 1) << 4)) + 112;
          blocks[to + j + 16] = ((byte >> 4) | (((high >>> (j + 16)) & 1) << 4)) + 112;
        }
      }
    },
  },
};

const q5_1: Codec = {
  name: "Q5_1",
  unitElements: 32,
  unitBytes: 24,
  finiteStride: 32,
  // d f16, m f16, fifth bits u32, nibbles [16]: d · q + m.
  decode(bytes, units, out) {
    const half = float16Table();
    let p = 0;
    let o = 0;
    for (let u = 0; u < units; u++) {
      const d = half[bytes[p]! | (bytes[p + 1]! << 8)]!;
      const m = half[bytes[p + 2]! | (bytes[p + 3]! << 8)]!;
      const high = fifthBits(bytes, p + 4);
      p += 8;
      for (let j = 0; j < 16; j++) {
        const byte = bytes[p + j]!;
        out[o + j] = d * ((byte & 15) | (((high >>> j) & 1) << 4)) + m;
        out[o + j + 16] = d * ((byte >> 4) | (((high >>> (j + 16)) & 1) << 4)) + m;
      }
      p += 16;
      o += 32;
    }
  },
  repack: {
    bits: 8,
    blockSize: 32,
    minimum: true,
    // Stored as q + 128, so that the minimum is m itself.
    run(bytes, units, blocks, scales, minimum) {
      const half = float16Table();
      for (let u = 0; u < units; u++) {
        const p = 24 * u;
        const to = 32 * u;
        scales[u] = half[bytes[p]! | (bytes[p + 1]! << 8)]!;
        minimum[u] = half[bytes[p + 2]! | (bytes[p + 3]! << 8)]!;
        const high = fifthBits(bytes, p + 4);
        for (let j = 0; j < 16; j++) {
          const byte = bytes[p + 8 + j]!;
          blocks[to + j] = ((byte & 15) | (((high >>> j) & 1) << 4)) + 128;
          blocks[to + j + 16] = ((byte >> 4) | (((high >>> (j + 16)) & 1) << 4)) + 128;
        }
      }
    },
  },
};

const q8_0: Codec = {
  name: "Q8_0",
  unitElements: 32,
  unitBytes: 34,
  finiteStride: 32,
  // d f16, int8 [32]: d · q. A block is 17 words of two bytes.
  decode(bytes, units, out) {
    const half = float16Table();
    const words = wordsOf(bytes, 34 * units);
    let o = 0;
    for (let p = 0; p < words.length; p += 17) {
      const d = half[words[p]!]!;
      for (let j = p + 1; j < p + 17; j++) {
        const word = words[j]!;
        out[o] = d * ((word << 24) >> 24);
        out[o + 1] = d * ((word << 16) >> 24);
        o += 2;
      }
    }
  },
  repack: {
    bits: 8,
    blockSize: 32,
    minimum: false,
    run(bytes, units, blocks, scales) {
      const half = float16Table();
      const words = wordsOf(bytes, 34 * units);
      const target = new Uint16Array(blocks.buffer, blocks.byteOffset, 16 * units);
      for (let u = 0; u < units; u++) {
        scales[u] = half[words[17 * u]!]!;
        // int8 to uint8 around 128: the top bit turned over.
        for (let j = 0; j < 16; j++) target[16 * u + j] = words[17 * u + 1 + j]! ^ 0x8080;
      }
    },
  },
};

export const simpleCodecs: readonly Codec[] = [q4_0, q4_1, q5_0, q5_1, q8_0];
