// Tensor data against other readers, bit for bit: every GGUF type against the gguf package, every dtype of safetensors
// against torch, llama2.c files against the same model as GGUF. Real checkpoints where the machine has them.

import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import {
  memorySource,
  openWeights,
  readableGgmlTypes,
  readSafetensorsHeader,
  safetensorsWeights,
} from "../../src/formats/index.ts";
import { cachedModel, sharedFile } from "../support/real-files.ts";
import { fromBase64, ggufInMemory, randomBlocks, weightsFixture } from "../support/weights-fixture.ts";

const { kinds, halves, dtypes, real } = weightsFixture;

const bits = (values: Float32Array): Uint32Array => new Uint32Array(values.buffer, values.byteOffset, values.length);
const sha256 = (values: Float32Array): string =>
  createHash("sha256")
    .update(new Uint8Array(values.buffer, values.byteOffset, values.byteLength))
    .digest("hex");

describe("GGUF types", () => {
  test("of the fixture are all that are read, plain numbers aside", () => {
    const plain = ["F32", "F64", "I8", "I16", "I32", "I64"];
    expect([...kinds.map(({ kind }) => kind), ...plain].sort()).toEqual([...readableGgmlTypes].sort());
  });

  test.for(kinds)("$kind equals the gguf package on 512 elements", async ({ kind, type, blocks, float32 }) => {
    const weights = await ggufInMemory([{ name: "w", type, shape: [2, 256], data: fromBase64(blocks) }], {
      checkFinite: false,
    });
    expect(weights.info("w")).toMatchObject({ dtype: kind, shape: [2, 256] });
    expect(bits(await weights.readFloat32("w"))).toEqual(new Uint32Array(fromBase64(float32).buffer));
  });

  test.for(kinds)("$kind equals the gguf package on 65,536 elements", async (row) => {
    const data = randomBlocks(row, row.seed, row.elements);
    const weights = await ggufInMemory([{ name: "w", type: row.type, shape: [16, row.elements / 16], data }], {
      checkFinite: false,
    });
    expect(sha256(await weights.readFloat32("w"))).toBe(row.sha256);
  });

  test.for(["F16", "BF16"] as const)("every %s number is numpy's", async (kind) => {
    const type = kind === "F16" ? 1 : 30;
    const data = new Uint8Array(Uint16Array.from({ length: 65_536 }, (_, i) => i).buffer);
    const weights = await ggufInMemory([{ name: "w", type, shape: [65_536], data }], { checkFinite: false });
    const values = await weights.readFloat32("w");
    const numbers = values.filter((value) => !Number.isNaN(value));
    expect(values.length - numbers.length).toBe(halves[kind].nan);
    expect(sha256(numbers)).toBe(halves[kind].sha256);
    // A NaN keeps its sign and payload, moved up.
    const nan = bits(values).filter((_, i) => Number.isNaN(values[i]));
    const shift = kind === "F16" ? 13 : 16;
    const mask = kind === "F16" ? 0x3ff : 0x7f;
    const given = Array.from({ length: 65_536 }, (_, i) => i).filter((i) => Number.isNaN(values[i]!));
    expect(nan).toEqual(
      Uint32Array.from(given, (i) => (((i & 0x8000) << 16) | 0x7f800000 | ((i & mask) << shift)) >>> 0),
    );
  });
});

describe("safetensors dtypes", async () => {
  const source = memorySource("dtypes.safetensors", fromBase64(dtypes.file));
  const header = await readSafetensorsHeader(source);
  const weights = safetensorsWeights(
    { headers: [header], tensors: header.tensors },
    { open: async () => source },
    {
      checkFinite: false,
    },
  );

  test("of the file are those of the fixture", () => {
    expect([...weights.names].sort()).toEqual(Object.keys(dtypes.values).sort());
  });

  test.for(Object.entries(dtypes.values))("%s equals torch's float32", async ([name, { shape, float32 }]) => {
    expect(weights.info(name).shape).toEqual(shape);
    const expected = new Float32Array(fromBase64(float32).buffer);
    const got = await weights.readFloat32(name);
    expect(got).toEqual(expected); // NaN equals NaN, whatever its bits
    const number = (_: number, i: number): boolean => !Number.isNaN(expected[i]);
    expect(bits(got).filter(number)).toEqual(bits(expected).filter(number));
  });
});

describe("real checkpoints", () => {
  test.for(real)("tensors of $file equal the gguf package's", async ({ file, tensors }, { skip }) => {
    const path = cachedModel(file);
    skip(path === null, "not on this machine");
    const weights = await openWeights(path!);
    for (const [name, { kind, shape, sha256: expected }] of Object.entries(tensors)) {
      expect(weights.info(name)).toMatchObject({ name, dtype: kind, shape });
      expect(sha256(await weights.readFloat32(name)), `${name} (${kind})`).toBe(expected);
    }
    await weights.close();
  });

  /** llama2.c's names in GGUF. */
  const inGguf = (name: string): string =>
    name
      .replace("tok_embeddings", "token_embd")
      .replace(/^norm/, "output_norm")
      .replace("layers.", "blk.")
      .replace("attention_norm", "attn_norm")
      .replace(/attention\.w([qkv])/, "attn_$1")
      .replace("attention.wo", "attn_output")
      .replace("feed_forward.w1", "ffn_gate")
      .replace("feed_forward.w2", "ffn_down")
      .replace("feed_forward.w3", "ffn_up");

  test("stories260K: llama2.c version 0 is its GGUF, and version 2 within half a step of an int8", async ({ skip }) => {
    const paths = ["stories260K.bin", "stories260K-q8.bin", "tinyllamas-stories-260k-f32.gguf"].map((file) =>
      sharedFile(`models/stories260K/${file}`),
    );
    skip(paths.includes(null), "not on this machine");
    const [exact, rounded, gguf] = await Promise.all(paths.map((path) => openWeights(path!)));
    expect(exact!.names.length).toBeGreaterThan(40);
    expect([...rounded!.names].sort()).toEqual([...exact!.names].sort());
    for (const name of exact!.names) {
      const { shape } = exact!.info(name);
      const values = await exact!.readFloat32(name);
      expect(gguf!.info(inGguf(name)).shape, name).toEqual(shape);
      expect(sha256(values), name).toBe(sha256(await gguf!.readFloat32(inGguf(name))));

      const near = await rounded!.readFloat32(name);
      const { dtype, byteLength } = rounded!.info(name);
      expect(dtype).toBe(shape.length === 2 ? "Q8" : "F32");
      const group = dtype === "F32" ? 1 : (4 * values.length) / (byteLength - values.length);
      for (let from = 0; from < values.length; from += group) {
        let most = 0;
        for (let i = from; i < from + group; i++) most = Math.max(most, Math.abs(values[i]!));
        // A step is most / 127; half of it, and float32's rounding.
        const allowed = dtype === "F32" ? 0 : (most / 127) * 0.5 * (1 + 1e-5);
        for (let i = from; i < from + group; i++) {
          if (!(Math.abs(near[i]! - values[i]!) <= allowed)) {
            expect.fail(`${name}[${i}]: ${near[i]} is more than ${allowed} from ${values[i]}`);
          }
        }
      }
    }
    await Promise.all([exact, rounded, gguf].map((weights) => weights!.close()));
  });
});
