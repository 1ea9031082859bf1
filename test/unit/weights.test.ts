// Tensor data: repacking loses nothing, pieces join up, every format opens by path, and files that lie are refused with
// the tensor's name.

import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import {
  blobSource,
  dequantizeRows,
  ggufWeights,
  llama2cWeights,
  memorySource,
  openWeights,
  type QuantizedMatrix,
  readGgufHeader,
  readLlama2cHeader,
  readSafetensorsHeader,
  safetensorsWeights,
  type Weights,
} from "../../src/formats/index.ts";
import { MissingWeightError } from "../../src/graph/index.ts";
import { smallLlama2c, writeLlama2c } from "../support/llama2c-writer.ts";
import { safetensorsFile, safetensorsJson } from "../support/safetensors-writer.ts";
import { blockElements, ggufFile, ggufInMemory, randomBlocks, weightsFixture } from "../support/weights-fixture.ts";

const folder = mkdtempSync(join(tmpdir(), "longhand-weights-"));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;
function onDisk(bytes: Uint8Array, extension: string): string {
  const path = join(folder, `${files++}.${extension}`);
  writeFileSync(path, bytes);
  return path;
}

/** Equal bit for bit. vitest's own comparison takes seconds a million. */
function expectSame(got: Float32Array | Uint8Array, expected: Float32Array | Uint8Array): void {
  const [a, b] = [got, expected].map((one) => Buffer.from(one.buffer, one.byteOffset, one.byteLength));
  expect(a!.length).toBe(b!.length);
  if (a!.equals(b!)) return;
  const at = a!.findIndex((byte, i) => byte !== b![i]);
  const index = Math.floor(at / got.BYTES_PER_ELEMENT);
  expect.fail(`expected ${expected[index]} at ${index}, got ${got[index]}`);
}
const kindOf = (kind: string) => weightsFixture.kinds.find((row) => row.kind === kind)!;
const bytesOf = (...values: number[]): Uint8Array => new Uint8Array(Float32Array.from(values).buffer);

/** Two float32 tensors, a [2, 3] and b [2]. */
function twoTensors(a: number[] = [1, 2, 3, 4, 5, 6], b: number[] = [7, 8]): Uint8Array {
  const file = safetensorsFile(
    safetensorsJson([
      { name: "a.weight", dtype: "F32", shape: [2, 3], bytes: 24 },
      { name: "b.weight", dtype: "F32", shape: [2], bytes: 8 },
    ]),
    32,
  );
  file.set(bytesOf(...a, ...b), file.length - 32);
  return file;
}

async function safetensorsInMemory(file: Uint8Array, options = {}): Promise<Weights> {
  const source = memorySource("a.safetensors", file);
  const header = await readSafetensorsHeader(source);
  return safetensorsWeights({ headers: [header], tensors: header.tensors }, { open: async () => source }, options);
}

describe("repacking", () => {
  const formats: Record<string, [bits: 4 | 8, blockSize: number, minimum: boolean]> = {
    Q4_0: [4, 32, false],
    Q4_1: [4, 32, true],
    Q5_0: [8, 32, false],
    Q5_1: [8, 32, true],
    Q8_0: [8, 32, false],
    Q2_K: [4, 16, true],
    Q3_K: [4, 16, false],
    Q4_K: [4, 32, true],
    Q5_K: [8, 32, true],
    Q6_K: [8, 16, false],
    IQ4_NL: [8, 32, false],
    IQ4_XS: [8, 32, false],
    MXFP4: [8, 32, false],
    NVFP4: [8, 16, false],
    TQ1_0: [4, 32, false],
    TQ2_0: [4, 32, false],
  };

  test("is known for every block type", () => {
    const blockTypes = weightsFixture.kinds.map(({ kind }) => kind).filter((kind) => !/^B?F16$/.test(kind));
    expect(Object.keys(formats).sort()).toEqual(blockTypes.sort());
  });

  test.for(Object.entries(formats))("%s keeps every number", async ([kind, [width, blockSize, minimum]]) => {
    const row = kindOf(kind);
    const shape = [16, 4096];
    const data = randomBlocks(row, 3, 16 * 4096);
    const weights = await ggufInMemory([{ name: "w", type: row.type, shape, data }], { checkFinite: false });
    const matrix = (await weights.readQuantized("w"))!;
    expect(matrix).toMatchObject({ bits: width, blockSize, rows: 16, columns: 4096, zeroPoints: null, exact: true });
    expect(weights.quantizedLayout("w")).toEqual({ bits: width, blockSize, hasZeroPoints: false, hasMinimum: minimum });
    expect(matrix.blocks.length).toBe((16 * 4096 * width) / 8);
    expect(matrix.scales.length).toBe((16 * 4096) / blockSize);
    expect(matrix.blockMinimum?.length).toBe(minimum ? matrix.scales.length : undefined);

    const expected = await weights.readFloat32("w");
    const got = dequantizeRows(matrix);
    if (kind !== "Q4_1" && kind !== "Q4_K") {
      expectSame(got, expected);
      return;
    }
    // m + 8d is rounded to float32 once, then either result is: |difference| ≤ 2⁻²⁴ (|m + 8d| + 2 |w|).
    for (let i = 0; i < expected.length; i++) {
      const least = Math.abs(matrix.blockMinimum![Math.floor(i / blockSize)]!);
      const allowed = 2 ** -24 * (least + 2 * Math.abs(expected[i]!)) * (1 + 2 ** -20);
      if (!(Math.abs(got[i]! - expected[i]!) <= allowed)) expect.fail(`[${i}]: ${got[i]} for ${expected[i]}`);
    }
  });

  test("Q4_1 of scales as close as real ones loses no bit", async () => {
    const row = kindOf("Q4_1");
    const data = randomBlocks(row, 9, 65_536);
    // d and m within 2^12 of one another: m + 8d fits float32.
    for (let at = 0; at < data.length; at += 20) {
      for (const half of [0, 2]) data[at + half + 1] = (data[at + half + 1]! & 0x83) | 0x28;
    }
    const weights = await ggufInMemory([{ name: "w", type: row.type, shape: [16, 4096], data }]);
    expectSame(dequantizeRows((await weights.readQuantized("w"))!), await weights.readFloat32("w"));
  });

  test("of plain numbers is null", async () => {
    const weights = await safetensorsInMemory(twoTensors());
    expect(await weights.readQuantized("a.weight")).toBeNull();
    expect(weights.quantizedLayout("a.weight")).toBeNull();
  });

  test("rows are picked in the order asked for, explicit zero points packed by row", () => {
    // Three blocks of 16 a row, so that the fourth nibble of zero points is padding.
    const matrix: QuantizedMatrix = {
      bits: 4,
      blockSize: 16,
      rows: 2,
      columns: 48,
      blocks: Uint8Array.from({ length: 48 }, (_, i) => (i % 16) * 17),
      scales: Float32Array.of(1, 2, 3, 4, 5, 6),
      zeroPoints: Uint8Array.of(0x21, 0x03, 0x54, 0x06),
      blockMinimum: null,
      exact: true,
    };
    const rows = dequantizeRows(matrix, [1, 0]);
    const zero = [1, 2, 3, 4, 5, 6];
    const expected = [3, 4, 5, 0, 1, 2].flatMap((block) =>
      Array.from({ length: 16 }, (_, i) => matrix.scales[block]! * (((block * 8 + (i >> 1)) % 16) - zero[block]!)),
    );
    expect(Array.from(rows)).toEqual(expected);
    expect(() => dequantizeRows(matrix, [2])).toThrow(/rows of 0 to 1, got 2/);
  });
});

describe("a tensor of several pieces", () => {
  const row = kindOf("Q6_K");
  const shape = [3000, 512]; // 1.26 MB of blocks, 210 bytes each: a piece ends inside a row
  const data = randomBlocks(row, 21, 3000 * 512);
  const file = ggufFile([
    { name: "before", type: 0, shape: [3], data: bytesOf(1, 2, 3) },
    { name: "w", type: row.type, shape, data },
  ]);

  test("is the same from a file, from memory and from a Blob", async () => {
    const name = "long.gguf";
    const sources = [
      () => memorySource(name, file),
      // A Buffer, and at an odd address.
      () => memorySource(name, Buffer.concat([Buffer.from([0]), file]).subarray(1)),
      () => blobSource(new Blob([file]), name),
    ];
    const path = onDisk(file, "gguf");
    const whole = await openWeights(path);
    const values = await whole.readFloat32("w");
    const matrix = (await whole.readQuantized("w"))!;
    expectSame(dequantizeRows(matrix), values);
    expectSame(await whole.readRaw("w"), data);
    expect(whole.info("w").location.source).toBe(path);
    for (const source of sources) {
      const weights = ggufWeights(await readGgufHeader(source()), { open: async () => source() });
      expectSame(await weights.readFloat32("w"), values);
      expectSame((await weights.readQuantized("w"))!.blocks, matrix.blocks);
      expectSame(await weights.readRaw("w"), data);
      expect(Array.from(await weights.readFloat32("before"))).toEqual([1, 2, 3]);
    }
    // Each row alone is the same row.
    const one = (index: number) =>
      ggufInMemory([{ name: "w", type: row.type, shape: [512], data: data.subarray(index * 420, index * 420 + 420) }]);
    for (const index of [0, 1, 2496, 2497, 2999]) {
      const alone = await (await one(index)).readFloat32("w");
      expectSame(alone, values.slice(index * 512, index * 512 + 512));
    }
    await whole.close();
  });

  test("of 16-bit floats at an odd address and of odd length", async () => {
    const half = kindOf("F16");
    const numbers = randomBlocks(half, 5, 600_001);
    const given = ggufFile([{ name: "w", type: 1, shape: [600_001], data: numbers }]);
    const shifted = Buffer.concat([Buffer.from([0]), given]).subarray(1);
    const read = async (bytes: Uint8Array): Promise<Float32Array> => {
      const source = memorySource("half.gguf", bytes);
      return ggufWeights(await readGgufHeader(source), { open: async () => source }).readFloat32("w");
    };
    const values = await read(given);
    expectSame(await read(shifted), values);
    expect(Number.isFinite(values.at(-1))).toBe(true);
    const last = numbers.subarray(1_200_000);
    const alone = await read(ggufFile([{ name: "w", type: 1, shape: [1], data: last }]));
    expect(values.at(-1)).toBe(alone[0]);
  });

  test("reads overlap without mixing", async () => {
    const weights = await openWeights(onDisk(file, "gguf"));
    const [a, b, c] = await Promise.all([
      weights.readFloat32("w"),
      weights.readFloat32("w"),
      weights.readQuantized("w"),
    ]);
    expectSame(a!, b!);
    expectSame(dequantizeRows(c!), a!);
    await weights.close();
  });
});

describe("openWeights", () => {
  test("a folder, its shards and a lone file give the same tensors", async () => {
    const single = mkdtempSync(join(folder, "single-"));
    writeFileSync(join(single, "model.safetensors"), twoTensors());
    const sharded = mkdtempSync(join(folder, "sharded-"));
    const shard = (name: string, shape: number[], values: number[]): Uint8Array => {
      const file = safetensorsFile(
        safetensorsJson([{ name, dtype: "F32", shape, bytes: 4 * values.length }]),
        4 * values.length,
      );
      file.set(bytesOf(...values), file.length - 4 * values.length);
      return file;
    };
    writeFileSync(join(sharded, "s1.safetensors"), shard("a.weight", [2, 3], [1, 2, 3, 4, 5, 6]));
    writeFileSync(join(sharded, "s2.safetensors"), shard("b.weight", [2], [7, 8]));
    writeFileSync(
      join(sharded, "model.safetensors.index.json"),
      JSON.stringify({ weight_map: { "a.weight": "s1.safetensors", "b.weight": "s2.safetensors" } }),
    );
    for (const path of [single, join(single, "model.safetensors"), sharded]) {
      const weights = await openWeights(path);
      expect(weights.format).toBe("safetensors");
      expect(weights.names).toEqual(["a.weight", "b.weight"]);
      expect(weights.info("a.weight").shape).toEqual([2, 3]);
      expect(Array.from(await weights.readFloat32("a.weight"))).toEqual([1, 2, 3, 4, 5, 6]);
      expect(Array.from(await weights.readFloat32("b.weight"))).toEqual([7, 8]);
      await weights.close();
    }
    const { location } = (await openWeights(sharded)).info("b.weight");
    expect(location.source).toBe(join(sharded, "s2.safetensors"));
    const lone = await openWeights(join(sharded, "s2.safetensors"));
    expect(lone.names).toEqual(["b.weight"]);
  });

  test("any part of a split GGUF gives all tensors", async () => {
    const fixtures = new URL("../fixtures/gguf/", import.meta.url).pathname;
    for (const part of [1, 3]) {
      const weights = await openWeights(join(fixtures, `split-0000${part}-of-00003.gguf`));
      expect(weights.names).toEqual(["t.0", "t.1", "t.2", "t.3", "t.4"]);
      for (let i = 0; i < 5; i++) expect(Array.from(await weights.readFloat32(`t.${i}`))).toEqual([i, i, i, i]);
      await weights.close();
    }
  });

  test("integers and float64 of a GGUF are numbers", async () => {
    const file = ggufFile([
      { name: "f64", type: 28, shape: [2], data: new Uint8Array(Float64Array.of(1 / 3, -2).buffer) },
      { name: "i64", type: 27, shape: [2], data: new Uint8Array(BigInt64Array.of(-3n, 2n ** 40n).buffer) },
      { name: "i32", type: 26, shape: [2], data: new Uint8Array(Int32Array.of(-3, 70_000).buffer) },
      { name: "i16", type: 25, shape: [3], data: new Uint8Array(Int16Array.of(-3, 7, -32768).buffer) },
      { name: "i8", type: 24, shape: [3], data: new Uint8Array(Int8Array.of(-3, 7, -128).buffer) },
    ]);
    const weights = await openWeights(onDisk(file, "gguf"));
    const read = async (name: string) => Array.from(await weights.readFloat32(name));
    expect(await read("f64")).toEqual([Math.fround(1 / 3), -2]);
    expect(await read("i64")).toEqual([-3, 2 ** 40]);
    expect(await read("i32")).toEqual([-3, 70_000]);
    expect(await read("i16")).toEqual([-3, 7, -32768]);
    expect(await read("i8")).toEqual([-3, 7, -128]);
    await weights.close();
  });

  test.for([
    ["nothing there", () => join(folder, "absent.gguf"), /absent\.gguf: expected .* got a path that does not exist/],
    ["an empty folder", () => mkdtempSync(join(folder, "empty-")), /got neither/],
    ["another kind of file", () => onDisk(bytesOf(1), "onnx"), /got another kind of file/],
    ["PyTorch's zip", () => onDisk(Uint8Array.of(0x50, 0x4b, 3, 4, 0, 0), "bin"), /safetensors instead/],
    ["an empty .bin", () => onDisk(new Uint8Array(0), "bin"), /expected the first number of the header/],
  ] as const)("%s is refused", async ([, path, message]) => {
    await expect(openWeights(path())).rejects.toThrow(message);
  });

  test("a folder of other models names them", async () => {
    const others = mkdtempSync(join(folder, "others-"));
    writeFileSync(join(others, "model-q4.gguf"), "");
    await expect(openWeights(others)).rejects.toThrow(/only model-q4\.gguf; name one of them/);
  });
});

describe("llama2.c", () => {
  const spec = { ...smallLlama2c, tied: false };
  const { dim, hidden, vocab, heads, kvHeads } = spec;
  const narrow = (dim / heads) * kvHeads;
  const shapes = (tied: boolean): Record<string, number[]> => ({
    "tok_embeddings.weight": [vocab, dim],
    "norm.weight": [dim],
    ...(tied ? {} : { "output.weight": [vocab, dim] }),
    ...Object.fromEntries(
      [0, 1].flatMap((layer) =>
        Object.entries({
          attention_norm: [dim],
          "attention.wq": [dim, dim],
          "attention.wk": [narrow, dim],
          "attention.wv": [narrow, dim],
          "attention.wo": [dim, dim],
          ffn_norm: [dim],
          "feed_forward.w1": [hidden, dim],
          "feed_forward.w2": [dim, hidden],
          "feed_forward.w3": [hidden, dim],
        }).map(([name, shape]) => [`layers.${layer}.${name}.weight`, shape]),
      ),
    ),
  });

  const cases = ([0, 1, 2] as const).flatMap((version) => [true, false].map((tied) => ({ version, tied })));
  test.for(cases)("version $version, tied $tied: tensors cover the file in order", async ({ version, tied }) => {
    const file = writeLlama2c(version, { ...spec, tied });
    const weights = await openWeights(onDisk(file, "bin"));
    expect(Object.fromEntries(weights.names.map((name) => [name, [...weights.info(name).shape]]))).toEqual(
      shapes(tied),
    );
    expect(weights.has("output.weight")).toBe(!tied);
    let end = version === 0 ? 28 : 256;
    for (const name of weights.names) {
      const { byteLength, location } = weights.info(name);
      // Two rotary tables of version 0 stand before the head.
      if (version === 0 && name === "output.weight") end += 2 * 4 * spec.seqLen * (dim / heads / 2);
      expect(location.offset, name).toBe(end);
      end += byteLength;
    }
    if (version === 0 && tied) end += 2 * 4 * spec.seqLen * (dim / heads / 2);
    expect(end).toBe(file.length);
    await weights.close();
  });

  test("int8 groups are value times scale, and blocks where rows are whole groups", async () => {
    const wide = { ...spec, dim: 64, hidden: 128, heads: 4, kvHeads: 4 };
    for (const groupSize of [64, 32, 48, 8]) {
      const given = groupSize === 48 ? { ...wide, dim: 96, hidden: 192 } : wide;
      const file = writeLlama2c(2, given, groupSize);
      const source = memorySource("q8.bin", file);
      const weights = llama2cWeights(await readLlama2cHeader(source), { open: async () => source });
      const { shape, location, byteLength } = weights.info("layers.1.feed_forward.w2.weight");
      const count = shape[0]! * shape[1]!;
      const view = new DataView(file.buffer);
      for (let i = 0; i < count; i++) view.setInt8(location.offset + i, ((i * 37) % 255) - 127);
      for (let group = 0; group < count / groupSize; group++) {
        view.setFloat32(location.offset + count + 4 * group, 0.1 + group / 7, true);
      }
      expect(byteLength).toBe(count + (4 * count) / groupSize);
      const values = await weights.readFloat32("layers.1.feed_forward.w2.weight");
      const expected = Float32Array.from(
        { length: count },
        (_, i) => (((i * 37) % 255) - 127) * Math.fround(0.1 + Math.floor(i / groupSize) / 7),
      );
      expect(values).toEqual(expected);
      const matrix = await weights.readQuantized("layers.1.feed_forward.w2.weight");
      expect(weights.quantizedLayout("layers.1.feed_forward.w2.weight")).toEqual(
        matrix && { bits: 8, blockSize: matrix.blockSize, hasZeroPoints: false, hasMinimum: false },
      );
      if (groupSize === 8) expect(matrix).toBeNull();
      else {
        expect(matrix).toMatchObject({
          bits: 8,
          blockSize: groupSize === 48 ? 16 : groupSize,
          rows: shape[0],
          columns: shape[1],
        });
        expect(dequantizeRows(matrix!)).toEqual(values);
      }
    }
  });
});

describe("refused", () => {
  test("a name that the checkpoint lacks, with the nearest", async () => {
    const weights = await safetensorsInMemory(twoTensors());
    const message = /a\.safetensors: expected tensor "a\.weigth", got 2 others; did you mean "a\.weight"/;
    expect(() => weights.info("a.weigth")).toThrow(MissingWeightError);
    expect(() => weights.info("a.weigth")).toThrow(message);
    await expect(weights.readFloat32("a.weigth")).rejects.toThrow(message);
    await expect(weights.readQuantized("constructor")).rejects.toThrow(MissingWeightError);
    expect(weights.has("a.weigth")).toBe(false);
  });

  test("a kind that is not read, naming the tensor and those that are", async () => {
    const data = new Uint8Array(66);
    const weights = await ggufInMemory([{ name: "blk.0.w", type: 16, shape: [256], data }]);
    expect(weights.info("blk.0.w").dtype).toBe("IQ2_XXS");
    for (const read of [weights.readFloat32("blk.0.w"), weights.readQuantized("blk.0.w")]) {
      await expect(read).rejects.toThrow(/"blk\.0\.w" in a kind that is read \(F32, .*Q4_K.*\), got IQ2_XXS/);
    }
    expect(await weights.readRaw("blk.0.w")).toEqual(data);
  });

  test.for([Number.NaN, Infinity, -Infinity])("%d in a weight, naming tensor and index", async (value) => {
    const file = twoTensors([1, 2, 3, 4, value, 6]);
    const weights = await safetensorsInMemory(file);
    await expect(weights.readFloat32("a.weight")).rejects.toThrow(
      new RegExp(`finite numbers in tensor "a\\.weight", got ${value} at \\[1, 1\\] \\(element 4\\)`),
    );
    expect(Array.from(await weights.readFloat32("b.weight"))).toEqual([7, 8]);
    const trusting = await safetensorsInMemory(file, { checkFinite: false });
    expect((await trusting.readFloat32("a.weight"))[4]).toBe(value);
  });

  const blockKinds = weightsFixture.kinds.filter(({ halves, kind }) => halves.length > 0 && !/^B?F16$/.test(kind));
  test.for(blockKinds.flatMap((row) => row.halves.map((half) => ({ row, half, kind: row.kind }))))(
    "a scale of $kind at byte $half that is infinite or NaN",
    async ({ row, half }) => {
      for (const high of [0x7c, 0xfc, 0x7e]) {
        const data = randomBlocks(row, 13, 1024);
        const unit = data.length / (1024 / blockElements(row.type));
        data[data.length - unit + half] = 0;
        data[data.length - unit + half + 1] = high;
        const weights = await ggufInMemory([{ name: "w", type: row.type, shape: [4, 256], data }]);
        await expect(weights.readFloat32("w")).rejects.toThrow(/finite numbers in tensor "w", got .* at \[3, /);
        await expect(weights.readQuantized("w")).rejects.toThrow(/finite numbers in tensor "w", got .* at \[3, /);
      }
    },
  );

  test("an MXFP4 block whose scale is finite and whose product is not", async () => {
    const data = new Uint8Array(17).fill(0x11);
    data[0] = 254;
    const row = [{ name: "w", type: 39, shape: [32], data }];
    // 2^126 · 1 is a number,
    expect((await (await ggufInMemory(row)).readFloat32("w"))[0]).toBe(2 ** 126);
    expect((await (await ggufInMemory(row)).readQuantized("w"))!.scales[0]).toBe(2 ** 126);
    // times 4 it is not.
    data[3] = 0x61;
    const weights = await ggufInMemory(row);
    await expect(weights.readFloat32("w")).rejects.toThrow(/got Infinity at \[18\]/);
    await expect(weights.readQuantized("w")).rejects.toThrow(/got Infinity at \[18\]/);
  });

  test("bytes that are not those of the shape", async () => {
    const source = memorySource("a.gguf", ggufFile([{ name: "w", type: 2, shape: [2, 32], data: new Uint8Array(36) }]));
    const header = await readGgufHeader(source);
    const open = async () => source;
    const tensor = header.tensors.get("w")!;
    const changed = (change: object) => ({ ...header, tensors: new Map([["w", { ...tensor, ...change }]]) });
    expect(() => ggufWeights(changed({ byteLength: 18 }), { open })).toThrow(
      /a\.gguf: expected 36 bytes for tensor "w" \(Q4_0, shape \[2, 32\]\), got 18/,
    );
    expect(() => ggufWeights(changed({ dimensions: [16, 4] }), { open })).toThrow(/rows in whole blocks of 32/);
  });

  test("a file that changed since its header was read", async () => {
    const path = onDisk(twoTensors(), "safetensors");
    const weights = await openWeights(path);
    truncateSync(path, 150);
    await expect(weights.readFloat32("b.weight")).rejects.toThrow(/got 150: the file changed/);
    // The error is not remembered: the file put back is read.
    writeFileSync(path, twoTensors());
    expect(Array.from(await weights.readFloat32("b.weight"))).toEqual([7, 8]);
    truncateSync(path, 150);
    await expect(weights.readFloat32("b.weight")).rejects.toThrow(/the file was cut short/);
    await weights.close();
  });

  test("reads after close; close waits for those under way, and twice is once", async () => {
    const weights = await openWeights(onDisk(twoTensors(), "safetensors"));
    const reading = weights.readFloat32("a.weight");
    await Promise.all([weights.close(), weights.close()]);
    expect(Array.from(await reading)).toEqual([1, 2, 3, 4, 5, 6]);
    for (const read of ["readFloat32", "readRaw", "readQuantized"] as const) {
      await expect(weights[read]("a.weight")).rejects.toThrow(
        /expected weights that are open to read "a\.weight", got closed ones/,
      );
    }
    await weights.close();
  });
});
