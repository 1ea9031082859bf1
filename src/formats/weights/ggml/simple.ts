// ggml's 32-element blocks: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0. Byte j of the nibbles holds elements j (low) and j + 16 (high);
// MatMulNBits wants neighbours in a byte, so repacking reorders. The arithmetic is float64 rounded once on storing, which
// equals float32 arithmetic here: d·q has at most 16 significant bits, d·q + m is exact in float64.

import { viewBytes } from "../../../tensor/index.ts";
import type { Codec } from "../codec.ts";
import { float16Table } from "../float16-table.ts";

/** 16 bytes of nibbles at `from` (low: 0..15, high: 16..31) as 32 neighbouring nibbles at `to`. */
export function reorderNibbles(bytes: Uint8Array, from: number, blocks: Uint8Array, to: number): void {
  for (let i = 0; i < 8; i++) {
    const a = bytes[from + 2 * i]!;
    const b = bytes[from + 2 * i + 1]!;
    blocks[to + i] = (a & 15) | (b << 4);
    blocks[to + i + 8] = (a >> 4) | (b & 0xf0);
  }
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
      for (let u = 0; u < units; u++) {
        const p = 18 * u;
        scales[u] = half[bytes[p]! | (bytes[p + 1]! << 8)]!;
        reorderNibbles(bytes, p + 2, blocks, 16 * u);
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
      for (let u = 0; u < units; u++) {
        const p = 20 * u;
        const d = half[bytes[p]! | (bytes[p + 1]! << 8)]!;
        scales[u] = d;
        minimum[u] = half[bytes[p + 2]! | (bytes[p + 3]! << 8)]! + 8 * d;
        reorderNibbles(bytes, p + 4, blocks, 16 * u);
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
    const words = viewBytes("f16", bytes.subarray(0, 34 * units));
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
      for (let u = 0; u < units; u++) {
        const p = 34 * u;
        const to = 32 * u;
        scales[u] = half[bytes[p]! | (bytes[p + 1]! << 8)]!;
        for (let j = 0; j < 32; j++) blocks[to + j] = bytes[p + 2 + j]! ^ 0x80;
      }
    },
  },
};

export const simpleCodecs: readonly Codec[] = [q4_0, q4_1, q5_0, q5_1, q8_0];
