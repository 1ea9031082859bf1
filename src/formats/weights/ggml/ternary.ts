// ggml's ternary super blocks of 256 (BitNet, TriLM): TQ2_0, two bits an element; TQ1_0, five elements a byte. One scale d
// for 256 elements of −1, 0, 1; repacked as 4-bit blocks of 32, so that activations rounded by block keep their precision.

import type { Codec, Decode } from "../codec.ts";
import { float16Table } from "../float16-table.ts";

/** Elements of the super block under way, 0, 1 or 2. */
const digits = new Uint8Array(256);

/**
 * Base-3 digits of TQ1_0: the byte is a fraction of 256, ⌈n · 256 / 243⌉, so that digit k is the whole part of
 * (byte · 3^k mod 256) · 3 / 256. Bytes 0..31 hold elements 32k + i, the next 16 elements 160 + 16k + i, the last 4 (of
 * four digits) elements 240 + 4k + i.
 */
function readTq1(bytes: Uint8Array, p: number): void {
  let from = p;
  let to = 0;
  for (let part = 0; part < 3; part++) {
    const width = part === 0 ? 32 : part === 1 ? 16 : 4;
    const count = part === 2 ? 4 : 5;
    let power = 1;
    for (let k = 0; k < count; k++) {
      for (let i = 0; i < width; i++) digits[to + i] = (((bytes[from + i]! * power) & 255) * 3) >> 8;
      to += width;
      power *= 3;
    }
    from += width;
  }
}

/** TQ2_0: byte i of a half of 32 holds elements i, i + 32, i + 64, i + 96 of 128. */
function readTq2(bytes: Uint8Array, p: number): void {
  for (let r = 0; r < 8; r++) {
    const from = p + ((r & 4) << 3);
    const shift = (r & 3) << 1;
    for (let i = 0; i < 32; i++) digits[32 * r + i] = (bytes[from + i]! >> shift) & 3;
  }
}

function ternary(name: string, unitBytes: number, read: (bytes: Uint8Array, p: number) => void): Codec {
  const decode: Decode = (bytes, units, out) => {
    const half = float16Table();
    let o = 0;
    for (let p = 0; p < unitBytes * units; p += unitBytes) {
      read(bytes, p);
      const d = half[bytes[p + unitBytes - 2]! | (bytes[p + unitBytes - 1]! << 8)]!;
      for (let i = 0; i < 256; i++) out[o + i] = d * (digits[i]! - 1);
      o += 256;
    }
  };
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
          const p = unitBytes * u;
          read(bytes, p);
          const d = half[bytes[p + unitBytes - 2]! | (bytes[p + unitBytes - 1]! << 8)]!;
          scales.fill(d, 8 * u, 8 * u + 8);
          const to = 16 * (8 * u);
          // q − 1 here, 8 is zero there.
          for (let i = 0; i < 128; i++) blocks[to + i] = (digits[2 * i]! | (digits[2 * i + 1]! << 4)) + 0x77;
        }
      },
    },
  };
}

export const ternaryCodecs: readonly Codec[] = [ternary("TQ1_0", 54, readTq1), ternary("TQ2_0", 66, readTq2)];
