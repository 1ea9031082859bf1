// ggml's super blocks of 256: Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, elements in runs of 16 or 32. A super block has one or two float16 scales (d, and dmin for
// minima), multiplied by small integers for each run of 16 or 32 elements. Every such product fits float32 exactly, and so
// does it times q; the minimum is subtracted in float64 and rounded once, as float32 would.

import type { Codec } from "../codec.ts";
import { float16Table } from "../float16-table.ts";
import { reorderNibbles, wordsOf } from "./simple.ts";

/** Scales and minima of the super block under way; loops run one at a time and to their end, so one of each will do. */
const scale = new Float64Array(16);
const least = new Float64Array(16);

/** Q2_K's d · (low nibble) and dmin · (high nibble) for runs of 16. */
function readQ2Scales(bytes: Uint8Array, p: number, half: Float32Array): void {
  const d = half[bytes[p + 80]! | (bytes[p + 81]! << 8)]!;
  const dmin = half[bytes[p + 82]! | (bytes[p + 83]! << 8)]!;
  for (let r = 0; r < 16; r++) {
    const byte = bytes[p + r]!;
    scale[r] = d * (byte & 15);
    least[r] = dmin * (byte >> 4);
  }
}

const q2_k: Codec = {
  name: "Q2_K",
  unitElements: 256,
  unitBytes: 84,
  finiteStride: 16,
  // scales and minima, 4 bits each [16]; q, 2 bits each [64]; d f16; dmin f16. Byte l of a half of 32 bytes holds elements
  // l, l + 32, l + 64, l + 96 of 128: those of runs r, r + 2, r + 4, r + 6 for r in 0, 1 and 8, 9.
  decode(bytes, units, out) {
    const half = float16Table();
    let o = 0;
    for (let p = 0; p < 84 * units; p += 84) {
      readQ2Scales(bytes, p, half);
      for (let r = 0; r < 16; r += r & 1 ? 7 : 1) {
        const d0 = scale[r]!;
        const d1 = scale[r + 2]!;
        const d2 = scale[r + 4]!;
        const d3 = scale[r + 6]!;
        const m0 = least[r]!;
        const m1 = least[r + 2]!;
        const m2 = least[r + 4]!;
        const m3 = least[r + 6]!;
        const from = p + 16 + 4 * (r & 8) + 16 * (r & 1);
        const to = o + 16 * r;
        for (let l = 0; l < 16; l++) {
          const byte = bytes[from + l]!;
          out[to + l] = d0 * (byte & 3) - m0;
          out[to + l + 32] = d1 * ((byte >> 2) & 3) - m1;
          out[to + l + 64] = d2 * ((byte >> 4) & 3) - m2;
          out[to + l + 96] = d3 * (byte >> 6) - m3;
        }
      }
      o += 256;
    }
  },
  repack: {
    bits: 4,
    blockSize: 16,
    minimum: true,
    // Stored as q + 8, so that the minimum is −dmin · m itself.
    run(bytes, units, blocks, scales, minimum) {
      const half = float16Table();
      let to = 0;
      for (let u = 0; u < units; u++) {
        const p = 84 * u;
        readQ2Scales(bytes, p, half);
        for (let r = 0; r < 16; r++) {
          scales[16 * u + r] = scale[r]!;
          minimum[16 * u + r] = -least[r]!;
          const from = p + 16 + ((r & 8) << 2) + ((r & 1) << 4);
          const shift = r & 6;
          for (let l = 0; l < 16; l += 2) {
            blocks[to++] = (((bytes[from + l]! >> shift) & 3) | (((bytes[from + l + 1]! >> shift) & 3) << 4)) + 0x88;
          }
        }
      }
    },
  },
};

/** Q3_K's d · (6-bit scale − 32) for runs of 16: low nibbles in 8 bytes, the upper two bits in 4. */
function readQ3Scales(bytes: Uint8Array, p: number, half: Float32Array): void {
  const d = half[bytes[p + 108]! | (bytes[p + 109]! << 8)]!;
  for (let r = 0; r < 16; r++) {
    const low = r < 8 ? bytes[p + 96 + r]! & 15 : bytes[p + 88 + r]! >> 4;
    const high = (bytes[p + 104 + (r & 3)]! >> (2 * (r >> 2))) & 3;
    scale[r] = d * ((low | (high << 4)) - 32);
  }
}

const q3_k: Codec = {
  name: "Q3_K",
  unitElements: 256,
  unitBytes: 110,
  finiteStride: 16,
  // high bits [32]; low two bits [64], laid out as Q2_K's; scales, 6 bits each [12]; d f16. The element is negative by 4
  // where its high bit is 0.
  decode(bytes, units, out) {
    const half = float16Table();
    let o = 0;
    for (let p = 0; p < 110 * units; p += 110) {
      readQ3Scales(bytes, p, half);
      for (let r = 0; r < 16; r += r & 1 ? 7 : 1) {
        const d0 = scale[r]!;
        const d1 = scale[r + 2]!;
        const d2 = scale[r + 4]!;
        const d3 = scale[r + 6]!;
        const mask = p + 16 * (r & 1);
        const from = p + 32 + 4 * (r & 8) + 16 * (r & 1);
        const bit = r >> 1;
        const to = o + 16 * r;
        for (let l = 0; l < 16; l++) {
          const byte = bytes[from + l]!;
          const high = (bytes[mask + l]! >> bit) << 2;
          out[to + l] = d0 * ((byte & 3) + (high & 4) - 4);
          out[to + l + 32] = d1 * (((byte >> 2) & 3) + ((high >> 1) & 4) - 4);
          out[to + l + 64] = d2 * (((byte >> 4) & 3) + ((high >> 2) & 4) - 4);
          out[to + l + 96] = d3 * ((byte >> 6) + ((high >> 3) & 4) - 4);
        }
      }
      o += 256;
    }
  },
  repack: {
    bits: 4,
    blockSize: 16,
    minimum: false,
    run(bytes, units, blocks, scales) {
      const half = float16Table();
      let to = 0;
      for (let u = 0; u < units; u++) {
        const p = 110 * u;
        readQ3Scales(bytes, p, half);
        for (let r = 0; r < 16; r++) {
          scales[16 * u + r] = scale[r]!;
          const mask = p + ((r & 1) << 4);
          const from = p + 32 + ((r & 8) << 2) + ((r & 1) << 4);
          const shift = r & 6;
          const bit = r >> 1;
          for (let l = 0; l < 16; l += 2) {
            const a = ((bytes[from + l]! >> shift) & 3) + (((bytes[mask + l]! >> bit) & 1) << 2);
            const b = ((bytes[from + l + 1]! >> shift) & 3) + (((bytes[mask + l + 1]! >> bit) & 1) << 2);
            // q + 4 here, q + 8 stored.
            blocks[to++] = (a | (b << 4)) + 0x44;
          }
        }
      }
    },
  },
};

/** The 6-bit scales and minima of Q4_K and Q5_K, in 12 bytes, times d and dmin, for runs of 32. */
function readQ4Scales(bytes: Uint8Array, p: number, half: Float32Array): void {
  const d = half[bytes[p]! | (bytes[p + 1]! << 8)]!;
  const dmin = half[bytes[p + 2]! | (bytes[p + 3]! << 8)]!;
  for (let r = 0; r < 4; r++) {
    const a = bytes[p + 4 + r]!;
    const b = bytes[p + 8 + r]!;
    const c = bytes[p + 12 + r]!;
    scale[r] = d * (a & 63);
    least[r] = dmin * (b & 63);
    scale[r + 4] = d * ((c & 15) | ((a >> 6) << 4));
    least[r + 4] = dmin * ((c >> 4) | ((b >> 6) << 4));
  }
}

const q4_k: Codec = {
  name: "Q4_K",
  unitElements: 256,
  unitBytes: 144,
  finiteStride: 32,
  // d f16, dmin f16, scales and minima [12], nibbles [128]: 32 bytes hold two runs, low and high.
  decode(bytes, units, out) {
    const half = float16Table();
    let o = 0;
    for (let p = 0; p < 144 * units; p += 144) {
      readQ4Scales(bytes, p, half);
      for (let g = 0; g < 4; g++) {
        const d0 = scale[2 * g]!;
        const m0 = least[2 * g]!;
        const d1 = scale[2 * g + 1]!;
        const m1 = least[2 * g + 1]!;
        const from = p + 16 + 32 * g;
        for (let l = 0; l < 32; l++) {
          const byte = bytes[from + l]!;
          out[o + l] = d0 * (byte & 15) - m0;
          out[o + l + 32] = d1 * (byte >> 4) - m1;
        }
        o += 64;
      }
    }
  },
  repack: {
    bits: 4,
    blockSize: 32,
    minimum: true,
    // d · q − m = d · (q − 8) + (8d − m): the one number that float32 may have to round.
    run(bytes, units, blocks, scales, minimum) {
      const half = float16Table();
      const words = wordsOf(bytes, 144 * units);
      for (let u = 0; u < units; u++) {
        const p = 144 * u;
        readQ4Scales(bytes, p, half);
        const first = 8 * u;
        for (let r = 0; r < 8; r++) {
          scales[first + r] = scale[r]!;
          minimum[first + r] = 8 * scale[r]! - least[r]!;
        }
        for (let g = 0; g < 4; g++) reorderNibbles(words, 72 * u + 8 + 16 * g, 16, blocks, 16 * (first + 2 * g));
      }
    },
  },
};

const q5_k: Codec = {
  name: "Q5_K",
  unitElements: 256,
  unitBytes: 176,
  finiteStride: 32,
  // As Q4_K with fifth bits [32] before the nibbles: bit r of byte l belongs to element l of run r.
  decode(bytes, units, out) {
    const half = float16Table();
    let o = 0;
    for (let p = 0; p < 176 * units; p += 176) {
      readQ4Scales(bytes, p, half);
      for (let g = 0; g < 4; g++) {
        const d0 = scale[2 * g]!;
        const m0 = least[2 * g]!;
        const d1 = scale[2 * g + 1]!;
        const m1 = least[2 * g + 1]!;
        const from = p + 48 + 32 * g;
        const shift = 2 * g;
        for (let l = 0; l < 32; l++) {
          const byte = bytes[from + l]!;
          const high = bytes[p + 16 + l]! >> shift;
          out[o + l] = d0 * ((byte & 15) | ((high & 1) << 4)) - m0;
          out[o + l + 32] = d1 * ((byte >> 4) | ((high & 2) << 3)) - m1;
        }
        o += 64;
      }
    }
  },
  repack: {
    bits: 8,
    blockSize: 32,
    minimum: true,
    // Stored as q + 128, so that the minimum is −dmin · m itself.
    run(bytes, units, blocks, scales, minimum) {
      const half = float16Table();
      for (let u = 0; u < units; u++) {
        const p = 176 * u;
        readQ4Scales(bytes, p, half);
        const first = 8 * u;
        for (let r = 0; r < 8; r++) {
          scales[first + r] = scale[r]!;
          minimum[first + r] = -least[r]!;
        }
        for (let g = 0; g < 4; g++) {
          const from = p + 48 + 32 * g;
          const to = 32 * (first + 2 * g);
          const shift = 2 * g;
          for (let l = 0; l < 32; l++) {
            const byte = bytes[from + l]!;
            const high = bytes[p + 16 + l]! >> shift;
            blocks[to + l] = ((byte & 15) | ((high & 1) << 4)) + 128;
            blocks[to + l + 32] = ((byte >> 4) | ((high & 2) << 3)) + 128;
          }
        }
      }
    },
  },
};

/** Q6_K's d · (int8 scale) for runs of 16. */
function readQ6Scales(bytes: Uint8Array, p: number, half: Float32Array): void {
  const d = half[bytes[p + 208]! | (bytes[p + 209]! << 8)]!;
  for (let r = 0; r < 16; r++) scale[r] = d * ((bytes[p + 192 + r]! << 24) >> 24);
}

const q6_k: Codec = {
  name: "Q6_K",
  unitElements: 256,
  unitBytes: 210,
  finiteStride: 16,
  // low nibbles [128]; upper two bits [64]; scales int8 [16]; d f16. A half of 128 elements has 64 bytes of nibbles (run
  // pairs 0 and 1 low, 2 and 3 high) and 32 of upper bits, laid out as Q2_K's: d · (q − 32).
  decode(bytes, units, out) {
    const half = float16Table();
    let o = 0;
    for (let p = 0; p < 210 * units; p += 210) {
      readQ6Scales(bytes, p, half);
      for (let r = 0; r < 16; r += r & 1 ? 7 : 1) {
        const d0 = scale[r]!;
        const d1 = scale[r + 2]!;
        const d2 = scale[r + 4]!;
        const d3 = scale[r + 6]!;
        const low = p + 8 * (r & 8) + 16 * (r & 1);
        const high = p + 128 + 4 * (r & 8) + 16 * (r & 1);
        const to = o + 16 * r;
        for (let l = 0; l < 16; l++) {
          const a = bytes[low + l]!;
          const b = bytes[low + l + 32]!;
          const c = bytes[high + l]!;
          out[to + l] = d0 * (((a & 15) | ((c & 3) << 4)) - 32);
          out[to + l + 32] = d1 * (((b & 15) | ((c & 12) << 2)) - 32);
          out[to + l + 64] = d2 * (((a >> 4) | (c & 48)) - 32);
          out[to + l + 96] = d3 * (((b >> 4) | ((c & 192) >> 2)) - 32);
        }
      }
      o += 256;
    }
  },
  repack: {
    bits: 8,
    blockSize: 16,
    minimum: false,
    run(bytes, units, blocks, scales) {
      const half = float16Table();
      let to = 0;
      for (let u = 0; u < units; u++) {
        const p = 210 * u;
        readQ6Scales(bytes, p, half);
        for (let r = 0; r < 16; r++) {
          scales[16 * u + r] = scale[r]!;
          const low = p + ((r & 8) << 3) + ((r & 3) << 4);
          const high = p + 128 + ((r & 8) << 2) + ((r & 1) << 4);
          const nibble = r & 4;
          const shift = r & 6;
          for (let l = 0; l < 16; l++) {
            blocks[to++] = (((bytes[low + l]! >> nibble) & 15) | (((bytes[high + l]! >> shift) & 3) << 4)) + 96;
          }
        }
      }
    },
  },
};

export const superBlockCodecs: readonly Codec[] = [q2_k, q3_k, q4_k, q5_k, q6_k];
