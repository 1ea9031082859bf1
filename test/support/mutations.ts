// Damaged files: real headers with bytes changed, cut, spliced with extreme lengths. Used by the property test and by
// the long run in bench/fuzz-headers.ts, so a case that one finds the other can replay.

import { expectRange } from "../../src/formats/bytes/byte-source.ts";
import { type ByteSource, FormatError, memorySource } from "../../src/formats/bytes/index.ts";
import { decodeGgufArray, describeGguf, readGguf } from "../../src/formats/gguf/index.ts";
import { describeLlama2c, readLlama2cHeader } from "../../src/formats/llama2c/index.ts";
import {
  readSafetensorsHeader,
  readSafetensorsIndex,
  readSafetensorsShards,
} from "../../src/formats/safetensors/index.ts";
import { utf8 } from "./byte-writer.ts";
import { type Entry, float32Tensor, model, writeGguf, zeroTensor } from "./gguf-writer.ts";
import { smallLlama2c, writeLlama2c } from "./llama2c-writer.ts";
import { writeSafetensors } from "./safetensors-writer.ts";

/** One damage. Places are shares of the file in [0, 1), so that they fit any file. */
export type Mutation =
  | { readonly kind: "set"; readonly place: number; readonly value: number }
  | { readonly kind: "flip"; readonly place: number; readonly bit: number }
  | { readonly kind: "length"; readonly place: number; readonly width: 4 | 8; readonly value: bigint }
  | { readonly kind: "text"; readonly place: number; readonly text: string }
  | { readonly kind: "cut"; readonly place: number }
  | { readonly kind: "remove"; readonly place: number; readonly count: number }
  | { readonly kind: "repeat"; readonly place: number; readonly count: number };

export const extremeLengths: readonly bigint[] = [
  0n,
  1n,
  0x7fn,
  0xffn,
  0xffffn,
  0x7fffffffn,
  0x80000000n,
  0xffffffffn,
  0x100000000n,
  2n ** 40n - 1n,
  2n ** 53n - 1n,
  2n ** 53n,
  2n ** 62n,
  2n ** 63n - 1n,
  2n ** 63n,
  2n ** 64n - 1n,
];

export const hostileTexts: readonly string[] = [
  "9007199254740993",
  "-1",
  "1e999",
  "1e-9",
  '"',
  "\\",
  "\\u0000",
  "\\ud800",
  "{",
  "}",
  "[",
  "]",
  ",",
  ":",
  "null",
  "true",
  '"__proto__":',
  "[[[[[[[[[[[[[[[[",
  "../",
  "\u0000",
  "\u00ff",
  "99999999999999999999999999",
];

export function mutate(bytes: Uint8Array, mutations: readonly Mutation[]): Uint8Array {
  let out: Uint8Array = bytes.slice();
  for (const one of mutations) {
    const at = Math.floor(one.place * out.length);
    const room = out.length - at;
    switch (one.kind) {
      case "set":
        if (room > 0) out[at] = one.value;
        break;
      case "flip":
        if (room > 0) out[at] = out[at]! ^ (1 << one.bit);
        break;
      case "length":
        for (let i = 0; i < Math.min(one.width, room); i++) out[at + i] = Number((one.value >> BigInt(8 * i)) & 255n);
        break;
      case "text":
        out.set(utf8(one.text).subarray(0, room), at);
        break;
      case "cut":
        out = out.slice(0, at);
        break;
      case "remove":
        out = concat(out.subarray(0, at), out.subarray(Math.min(out.length, at + one.count)));
        break;
      case "repeat":
        out = concat(out.subarray(0, Math.min(out.length, at + one.count)), out.subarray(at));
        break;
    }
  }
  return out;
}

function concat(a: Uint8Array, b: Uint8Array): Uint8Array {
  const out = new Uint8Array(a.length + b.length);
  out.set(a);
  out.set(b, a.length);
  return out;
}

/** Counts what a reader asks for, and can pretend that zeros follow up to `size`: a sparse file of a terabyte. */
export class CountingSource implements ByteSource {
  readonly name: string;
  readonly size: number;
  bytesRead = 0;
  largestRead = 0;
  readonly #bytes: Uint8Array;

  constructor(name: string, bytes: Uint8Array, size: number = bytes.length) {
    this.name = name;
    this.size = Math.max(size, bytes.length);
    this.#bytes = bytes;
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    expectRange(this, offset, length);
    this.bytesRead += length;
    this.largestRead = Math.max(this.largestRead, length);
    if (offset + length <= this.#bytes.length) return this.#bytes.subarray(offset, offset + length);
    const out = new Uint8Array(length);
    if (offset < this.#bytes.length) out.set(this.#bytes.subarray(offset));
    return out;
  }

  async close(): Promise<void> {}
}

export interface Target {
  readonly name: string;
  readonly bytes: Uint8Array;
  /** Reads all that a header holds and describes it. */
  readonly use: (source: ByteSource) => Promise<unknown>;
}

async function useGguf(source: ByteSource): Promise<unknown> {
  const header = await readGguf(source, async (file) => {
    throw new FormatError(file, "expected no part of this test to be looked for");
  });
  for (const entry of header.metadata.values()) {
    // What a caller would decode; the arrays of a pretended terabyte are left.
    if (entry.type === "array" && entry.value.elementType !== "array" && entry.value.count < 1e5) {
      await decodeGgufArray(source, entry.value, header.version);
    }
  }
  return describeGguf(header);
}

const words = Array.from({ length: 1100 }, (_, i) => `w${i}`);
const rich: readonly Entry[] = [
  ["attention.head_count_kv", "array", { of: "u32", values: [2, 2, 2, 2] }],
  ["rope.dimension_count", "u32", 64],
  ["rope.freq_base", "f32", 1e6],
  ["rope.scaling.type", "string", "linear"],
  ["rope.scaling.factor", "f32", 8],
  ["attention.sliding_window", "u32", 512],
  ["general.alignment", "u32", 32],
  ["general.big", "u64", 2n ** 64n - 1n],
  ["general.real", "f64", 1.5],
  ["general.flag", "bool", true],
  ["tokenizer.ggml.tokens", "array", { of: "string", values: words }],
  ["tokenizer.ggml.scores", "array", { of: "f32", values: words.map((_, i) => i) }],
  [
    "tokenizer.nested",
    "array",
    {
      of: "array",
      values: [
        { of: "u8", values: [1, 2] },
        { of: "string", values: ["x"] },
      ],
    },
  ],
];
const few = rich.filter(([key]) => !key.startsWith("tokenizer.ggml"));
const gguf = (architecture: string, version: 1 | 2 | 3, own: readonly Entry[]): Uint8Array =>
  writeGguf({
    version,
    metadata: model(architecture, own),
    tensors: [
      zeroTensor("token_embd.weight", [8, 4]),
      float32Tensor("rope_freqs.weight", new Array(32).fill(1)),
      { name: "q", dimensions: [64, 2], type: 2, data: new Uint8Array(72) },
    ],
  });

const split: readonly Entry[] = [
  ["split.no", "u16", 0],
  ["split.count", "u16", 1],
  ["split.tensors.count", "i32", 3],
];

const shards = new Map([
  ["a.safetensors", writeSafetensors([{ name: "x", dtype: "F32", shape: [2], bytes: 8 }])],
  ["b.safetensors", writeSafetensors([{ name: "y", dtype: "U8", shape: [3], bytes: 3 }])],
]);

/** Every format, in every version. */
export const targets: readonly Target[] = [
  { name: "gguf-v1.gguf", bytes: gguf("gemma3", 1, few), use: useGguf },
  { name: "gguf-v2.gguf", bytes: gguf("llama", 2, few), use: useGguf },
  { name: "gguf-v3.gguf", bytes: gguf("gemma3", 3, few), use: useGguf },
  { name: "gguf-words.gguf", bytes: gguf("gemma3", 3, rich), use: useGguf },
  { name: "gguf-split-00001-of-00001.gguf", bytes: gguf("deepseek2", 3, [...few, ...split]), use: useGguf },
  {
    name: "m.safetensors",
    bytes: writeSafetensors(
      [
        { name: "model.embed_tokens.weight", dtype: "BF16", shape: [8, 4], bytes: 64 },
        { name: "model.norm.weight", dtype: "F32", shape: [4], bytes: 16 },
        { name: "scalar", dtype: "I64", shape: [], bytes: 8 },
        { name: "none", dtype: "F4", shape: [0, 3], bytes: 0 },
      ],
      { format: "pt" },
    ),
    use: readSafetensorsHeader,
  },
  {
    name: "model.safetensors.index.json",
    bytes: utf8(
      JSON.stringify({ metadata: { total_size: 11 }, weight_map: { x: "a.safetensors", y: "b.safetensors" } }),
    ),
    use: async (source) =>
      readSafetensorsShards(await readSafetensorsIndex(source), async (shard) => {
        const bytes = shards.get(shard);
        if (bytes === undefined) throw new FormatError(shard, "expected a shard of this test");
        return memorySource(shard, bytes);
      }),
  },
  ...([0, 1, 2] as const).map((version) => ({
    name: `llama2c-v${version}.bin`,
    bytes: writeLlama2c(version, smallLlama2c),
    use: async (source: ByteSource) => describeLlama2c(await readLlama2cHeader(source)),
  })),
];
