// Blocks of every GGUF type as reference/gguf_dequantize.py makes them, and checkpoints in memory around them.

import { readFileSync } from "node:fs";
import {
  ggufWeights,
  memorySource,
  readGgufHeader,
  type Weights,
  type WeightsOptions,
} from "../../src/formats/index.ts";
import { model, writeGguf } from "./gguf-writer.ts";

export interface KindFixture {
  readonly kind: string;
  /** ggml's number. */
  readonly type: number;
  /** Bytes of a block where a 16-bit float starts. */
  readonly halves: readonly number[];
  /** 512 elements, and what the gguf package makes of them. */
  readonly blocks: string;
  readonly float32: string;
  /** Of 65,536 more, by xorshift32 from the seed: the hash of the package's float32. */
  readonly seed: number;
  readonly elements: number;
  readonly sha256: string;
}

export interface WeightsFixture {
  readonly kinds: readonly KindFixture[];
  readonly halves: Readonly<Record<"F16" | "BF16", { readonly nan: number; readonly sha256: string }>>;
  readonly dtypes: {
    readonly file: string;
    readonly values: Readonly<Record<string, { readonly shape: readonly number[]; readonly float32: string }>>;
  };
  readonly real: readonly {
    readonly file: string;
    readonly tensors: Readonly<
      Record<string, { readonly kind: string; readonly shape: readonly number[]; readonly sha256: string }>
    >;
  }[];
}

export const weightsFixture: WeightsFixture = JSON.parse(
  readFileSync(new URL("../fixtures/gguf-dequantize.json", import.meta.url), "utf8"),
);

/** Bytes of base64, on a buffer of their own. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.from(text, "base64"));
}

/** Elements of a ggml block, by its number; from ggml.h, not from the code under test. */
export function blockElements(type: number): number {
  if (type === 1 || type === 30) return 1;
  if (type === 40) return 64;
  return type < 10 || type === 20 || type === 39 ? 32 : 256;
}

/** The generator's random blocks: the low byte of each state, the exponents of 16-bit floats kept below infinity's. */
export function randomBlocks({ type, halves, blocks }: KindFixture, seed: number, elements: number): Uint8Array {
  const blockBytes = fromBase64(blocks).length / (512 / blockElements(type));
  const bytes = new Uint8Array((elements / blockElements(type)) * blockBytes);
  let state = seed;
  for (let i = 0; i < bytes.length; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    bytes[i] = state & 255;
  }
  for (let block = 0, at = 0; at < bytes.length; block++, at += blockBytes) {
    for (const half of halves) bytes[at + half + 1]! &= block % 2 === 1 ? 0xdf : 0xbf;
  }
  return bytes;
}

export interface GgufPiece {
  readonly name: string;
  readonly type: number;
  /** Outermost first. */
  readonly shape: readonly number[];
  readonly data: Uint8Array;
}

/** A GGUF file with these tensors. */
export function ggufFile(tensors: readonly GgufPiece[]): Uint8Array<ArrayBuffer> {
  return writeGguf({
    metadata: model("llama"),
    tensors: tensors.map(({ name, type, shape, data }) => ({ name, type, dimensions: shape.toReversed(), data })),
  });
}

/** Its weights. */
export async function ggufInMemory(tensors: readonly GgufPiece[], options?: WeightsOptions): Promise<Weights> {
  const source = memorySource("test.gguf", ggufFile(tensors));
  return ggufWeights(await readGgufHeader(source), { open: async () => source }, options);
}
