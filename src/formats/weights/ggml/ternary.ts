// ggml's ternary super blocks of 256 (BitNet, TriLM): TQ1_0, five elements a byte; TQ2_0, two bits each. One scale d for 256
// elements of −1, 0, 1; repacked as 4-bit blocks of 32, so that activations rounded by block keep their precision.

import type { Codec, Decode } from "../codec.ts";
import { float16Table } from "../float16-table.ts";

/**
 * Elements of TQ1_0 in `width` bytes times d, element k of byte i at k · width + i. A byte is a fraction of 256,
 * ⌈n · 256 / 243⌉ for five base-3 digits n, so that each digit is the whole part of three times what is left; the last 4
 * bytes of a super block hold four digits.
 */
function digits(bytes: Uint8Array, from: number, width: 32 | 16 | 4, d: number, out: Float32Array, to: number): void {
  for (let i = 0; i < width; i++) {
    const a = bytes[from + i]! * 3;
    const b = (a & 255) * 3;
    const c = (b & 255) * 3;
    const e = (c & 255) * 3;
    const o = to + i;
    out[o] = d * ((a >> 8) - 1);
    out[o + width] = d * ((b >> 8) - 1);
    out[o + 2 * width] = d * ((c >> 8) - 1);
    out[o + 3 * width] = d * ((e >> 8) - 1);
    if (width !== 4) out[o + 4 * width] = d * ((((e & 255) * 3) >> 8) - 1);
  }
}

// bytes of five elements [32], [16], of four [4]; d f16.
const decodeTq1: Decode = (bytes, units, out) => {
  const half = float16Table();
  let o = 0;
  for (let p = 0; p < 54 * units; p += 54) {
    const d = half[bytes[p + 52]! | (bytes[p + 53]! << 8)]!;
    digits(bytes, p, 32, d, out, o);
    digits(bytes, p + 32, 16, d, out, o + 160);
    digits(bytes, p + 48, 4, d, out, o + 240);
    o += 256;
  }
};

// two bits an element [64]; d f16. Byte l of a half of 32 holds elements l, l + 32, l + 64, l + 96 of 128.
const decodeTq2: Decode = (bytes, units, out) => {
  const half = float16Table();
  let o = 0;
  for (let p = 0; p < 66 * units; p += 66) {
    const d = half[bytes[p + 64]! | (bytes[p + 65]! << 8)]!;
    for (let from = p; from < p + 64; from += 32) {
      for (let l = 0; l < 32; l++) {
        const byte = bytes[from + l]!;
        out[o + l] = d * ((byte & 3) - 1);
        out[o + l + 32] = d * (((byte >> 2) & 3) - 1);
        out[o + l + 64] = d * (((byte >> 4) & 3) - 1);
        out[o + l + 96] = d * ((byte >> 6) - 1);
      }
      o += 128;
    }
  }
};

/** A super block with scale 1, for repacking. */
const one = new Uint8Array(66);
const elements = new Float32Array(256);

function ternary(name: string, unitBytes: number, decode: Decode): Codec {
  return {
    name,
    unitElements: 256,
    unitBytes,
    finiteStride: 256,
    decode,
    repack: {
      bits: 4,
      blockSize: 32,
      minimum: false,
      run(bytes, units, blocks, scales) {
        const half = float16Table();
        for (let u = 0; u < units; u++) {
          const at = unitBytes * u + unitBytes - 2;
          scales.fill(half[bytes[at]! | (bytes[at + 1]! << 8)]!, 8 * u, 8 * u + 8);
          for (let i = 0; i < unitBytes - 2; i++) one[i] = bytes[unitBytes * u + i]!;
          one[unitBytes - 2] = 0;
          one[unitBytes - 1] = 0x3c;
          decode(one, 1, elements);
          for (let i = 0; i < 128; i++)
            blocks[128 * u + i] = (elements[2 * i]! + 8) | ((elements[2 * i + 1]! + 8) << 4);
        }
      },
    },
  };
}

export const ternaryCodecs: readonly Codec[] = [ternary("TQ1_0", 54, decodeTq1), ternary("TQ2_0", 66, decodeTq2)];
