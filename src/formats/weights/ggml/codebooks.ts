// ggml's types whose 4-bit codes name a value of a table: IQ4_NL and IQ4_XS (16 unevenly spaced int8), MXFP4 and NVFP4
// (E2M1 floats, doubled so that all are integers, with the scale halved). The integers fit 8 bits, so MatMulNBits holds
// them exactly with 8; no 4-bit grid could.

import type { Codec } from "../codec.ts";
import { float16Table } from "../float16-table.ts";

const unevenValues = Int8Array.of(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113);
const e2m1Values = Int8Array.of(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12);

/** The tables as MatMulNBits' bytes around 128. */
const offset128 = (values: Int8Array): Uint8Array => Uint8Array.from(values, (value) => value + 128);
const unevenBytes = offset128(unevenValues);
const e2m1Bytes = offset128(e2m1Values);

/** Half of 2^(e − 127), e an E8M0 byte; 0 and 1 give the subnormals that the exponents mean. */
const halfE8m0: Float32Array = Float32Array.from({ length: 256 }, (_, e) => 2 ** (e - 128));

/** Half of an unsigned E4M3 (bias 7; 0x7f is 0; the top bit does not count, save that 0xff is not 0x7f). */
const halfUe4m3: Float32Array = Float32Array.from({ length: 256 }, (_, x) => {
  if (x === 0x7f) return 0;
  const exponent = (x >> 3) & 15;
  const mantissa = x & 7;
  return (exponent === 0 ? mantissa * 2 ** -9 : (1 + mantissa / 8) * 2 ** (exponent - 7)) / 2;
});

const iq4_nl: Codec = {
  name: "IQ4_NL",
  unitElements: 32,
  unitBytes: 18,
  finiteStride: 32,
  // Q4_0's layout: d · values[q].
  decode(bytes, units, out) {
    const half = float16Table();
    let o = 0;
    for (let p = 0; p < 18 * units; p += 18) {
      const d = half[bytes[p]! | (bytes[p + 1]! << 8)]!;
      for (let j = 0; j < 16; j++) {
        const byte = bytes[p + 2 + j]!;
        out[o + j] = d * unevenValues[byte & 15]!;
        out[o + j + 16] = d * unevenValues[byte >> 4]!;
      }
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
        const p = 18 * u;
        const to = 32 * u;
        scales[u] = half[bytes[p]! | (bytes[p + 1]! << 8)]!;
        for (let j = 0; j < 16; j++) {
          const byte = bytes[p + 2 + j]!;
          blocks[to + j] = unevenBytes[byte & 15]!;
          blocks[to + j + 16] = unevenBytes[byte >> 4]!;
        }
      }
    },
  },
};

/** d · (6-bit scale − 32) of run r of a super block of IQ4_XS. */
function iq4XsScale(bytes: Uint8Array, p: number, d: number, r: number): number {
  const low = (bytes[p + 4 + (r >> 1)]! >> (4 * (r & 1))) & 15;
  const high = (bytes[p + 2 + (r >> 2)]! >> (2 * (r & 3))) & 3;
  return d * ((low | (high << 4)) - 32);
}

const iq4_xs: Codec = {
  name: "IQ4_XS",
  unitElements: 256,
  unitBytes: 136,
  finiteStride: 32,
  // d f16, upper scale bits u16, lower nibbles [4], codes [128]: 8 runs of 32 as IQ4_NL's.
  decode(bytes, units, out) {
    const half = float16Table();
    let o = 0;
    for (let p = 0; p < 136 * units; p += 136) {
      const d = half[bytes[p]! | (bytes[p + 1]! << 8)]!;
      for (let r = 0; r < 8; r++) {
        const dl = iq4XsScale(bytes, p, d, r);
        const from = p + 8 + 16 * r;
        for (let j = 0; j < 16; j++) {
          const byte = bytes[from + j]!;
          out[o + j] = dl * unevenValues[byte & 15]!;
          out[o + j + 16] = dl * unevenValues[byte >> 4]!;
        }
        o += 32;
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
        const p = 136 * u;
        const d = half[bytes[p]! | (bytes[p + 1]! << 8)]!;
        for (let r = 0; r < 8; r++) {
          const from = p + 8 + 16 * r;
          const to = 32 * (8 * u + r);
          scales[8 * u + r] = iq4XsScale(bytes, p, d, r);
          for (let j = 0; j < 16; j++) {
            const byte = bytes[from + j]!;
            blocks[to + j] = unevenBytes[byte & 15]!;
            blocks[to + j + 16] = unevenBytes[byte >> 4]!;
          }
        }
      }
    },
  },
};

const mxfp4: Codec = {
  name: "MXFP4",
  unitElements: 32,
  unitBytes: 17,
  // A scale of 2^126 is finite and times 4 is not.
  finiteStride: 1,
  // exponent E8M0, codes [16] in Q4_0's order.
  decode(bytes, units, out) {
    let o = 0;
    for (let p = 0; p < 17 * units; p += 17) {
      const d = halfE8m0[bytes[p]!]!;
      for (let j = 0; j < 16; j++) {
        const byte = bytes[p + 1 + j]!;
        out[o + j] = d * e2m1Values[byte & 15]!;
        out[o + j + 16] = d * e2m1Values[byte >> 4]!;
      }
      o += 32;
    }
  },
  repack: {
    bits: 8,
    blockSize: 32,
    minimum: false,
    run(bytes, units, blocks, scales) {
      for (let u = 0; u < units; u++) {
        const p = 17 * u;
        const to = 32 * u;
        scales[u] = halfE8m0[bytes[p]!]!;
        for (let j = 0; j < 16; j++) {
          const byte = bytes[p + 1 + j]!;
          blocks[to + j] = e2m1Bytes[byte & 15]!;
          blocks[to + j + 16] = e2m1Bytes[byte >> 4]!;
        }
      }
    },
  },
};

const nvfp4: Codec = {
  name: "NVFP4",
  unitElements: 64,
  unitBytes: 36,
  finiteStride: 16,
  // scales UE4M3 [4], codes [32]: run r of 16 has 8 bytes, low nibbles 0..7, high 8..15. A scale of the whole tensor, where
  // a model has one, is a tensor of its own (".scale") and not multiplied in here.
  decode(bytes, units, out) {
    let o = 0;
    for (let p = 0; p < 36 * units; p += 36) {
      for (let r = 0; r < 4; r++) {
        const d = halfUe4m3[bytes[p + r]!]!;
        const from = p + 4 + 8 * r;
        for (let j = 0; j < 8; j++) {
          const byte = bytes[from + j]!;
          out[o + j] = d * e2m1Values[byte & 15]!;
          out[o + j + 8] = d * e2m1Values[byte >> 4]!;
        }
        o += 16;
      }
    }
  },
  repack: {
    bits: 8,
    blockSize: 16,
    minimum: false,
    run(bytes, units, blocks, scales) {
      for (let u = 0; u < units; u++) {
        const p = 36 * u;
        for (let r = 0; r < 4; r++) {
          const from = p + 4 + 8 * r;
          const to = 16 * (4 * u + r);
          scales[4 * u + r] = halfUe4m3[bytes[p + r]!]!;
          for (let j = 0; j < 8; j++) {
            const byte = bytes[from + j]!;
            blocks[to + j] = e2m1Bytes[byte & 15]!;
            blocks[to + j + 8] = e2m1Bytes[byte >> 4]!;
          }
        }
      }
    },
  },
};

export const codebookCodecs: readonly Codec[] = [iq4_nl, iq4_xs, mxfp4, nvfp4];
