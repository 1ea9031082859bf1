import { describe, expect, test } from "vitest";
import { memorySource, withFile } from "../../src/formats/bytes/index.ts";
import { describeLlama2c, readLlama2cHeader } from "../../src/formats/llama2c/index.ts";
import { smallLlama2c, writeLlama2c } from "../support/llama2c-writer.ts";
import { sharedFile } from "../support/real-files.ts";

const read = (bytes: Uint8Array) => readLlama2cHeader(memorySource("m.bin", bytes));

describe("a llama2.c header", () => {
  test.each([0, 1, 2] as const)("of version %d gives its sizes, tied or not", async (version) => {
    for (const tied of [true, false]) {
      const header = await read(writeLlama2c(version, { ...smallLlama2c, tied }));
      expect(header).toMatchObject({
        version,
        hiddenSize: 16,
        intermediateSize: 24,
        numLayers: 2,
        numHeads: 4,
        numKeyValueHeads: 2,
        vocabSize: 32,
        maxPositionEmbeddings: 8,
        tiedEmbeddings: tied,
        groupSize: version === 2 ? 8 : null,
        dataOffset: version === 0 ? 28 : 256,
        // 5 norms, the embedding (twice untied), 2 layers of q, o (16·16), k, v (16·8), three of 16·24.
        numParameters: 5 * 16 + 32 * 16 * (tied ? 1 : 2) + 2 * (2 * 256 + 2 * 128 + 3 * 384),
      });
    }
  });

  test.each([0, 1, 2] as const)("of version %d must fit its file to the byte", async (version) => {
    const bytes = writeLlama2c(version, smallLlama2c);
    const longer = new Uint8Array(bytes.length + 4);
    longer.set(bytes);
    await expect(read(longer)).rejects.toThrow(`expected a file of ${bytes.length} bytes`);
    await expect(read(bytes.subarray(0, bytes.length - 1))).rejects.toThrow(/expected a file of/);
  });

  test.each<[string, Partial<typeof smallLlama2c>, RegExp]>([
    ["no layers", { layers: 0 }, /expected n_layers from 1/],
    ["heads that do not divide dim", { heads: 3 }, /dim to be n_heads times an even number, got 16 and 3/],
    ["an odd head", { dim: 12 }, /dim to be n_heads times an even number/],
    ["key heads that do not divide heads", { kvHeads: 3 }, /n_heads to be a multiple of n_kv_heads/],
    ["a huge size", { hidden: 2 ** 25 }, /expected hidden_dim from 1 to/],
    ["a vocabulary of 0", { vocab: 0 }, /expected vocab_size/],
  ])("refuses %s", async (_, change, message) => {
    const bytes = writeLlama2c(0, smallLlama2c);
    const view = new DataView(bytes.buffer);
    const spec = { ...smallLlama2c, ...change };
    [spec.dim, spec.hidden, spec.layers, spec.heads, spec.kvHeads, spec.vocab, spec.seqLen].forEach((value, i) => {
      view.setInt32(4 * i, value, true);
    });
    await expect(read(bytes)).rejects.toThrow(message);
  });

  test("refuses an unknown version and groups that do not divide a matrix", async () => {
    const unknown = writeLlama2c(1, smallLlama2c);
    unknown[4] = 3;
    await expect(read(unknown)).rejects.toThrow("m.bin: expected llama2.c version 1 or 2, got 3 (byte 4)");
    const groups = writeLlama2c(2, smallLlama2c, 8);
    new DataView(groups.buffer).setInt32(37, 48, true);
    await expect(read(groups)).rejects.toThrow(/whole groups of 48/);
  });

  test("a text file is no llama2.c file", async () => {
    await expect(read(new TextEncoder().encode("# Hello, this is a README of some length"))).rejects.toThrow(
      /is it a llama2.c file\?/,
    );
  });

  test("its description says that theta and layout are assumed", async () => {
    const model = describeLlama2c(await read(writeLlama2c(0, smallLlama2c)));
    expect(model.groups).toEqual([
      {
        layers: [0, 1],
        position: {
          site: "query-key",
          kind: "rope",
          headDim: 4,
          layout: "interleaved",
          rope: { ropeType: "default", ropeTheta: 10000 },
        },
        slidingWindow: null,
        attentionChunkSize: null,
        logitTemperature: null,
        softmaxFactor: 1,
      },
    ]);
    expect(model.findings.map(({ code }) => code)).toEqual(["assumed-rope-theta", "assumed-rotary-layout"]);
  });
});

// Sizes from the models' cards (karpathy/tinyllamas: 260K parameters, dim 64, 5 layers, 8 heads of which 4 for keys).
describe("real llama2.c files", () => {
  const float32 = sharedFile("models/stories260K/stories260K.bin");
  test.skipIf(float32 === null)("stories260K is a tied Llama of 260,032 parameters, context 512", async () => {
    const header = await withFile(float32!, readLlama2cHeader);
    expect(header).toMatchObject({ version: 0, hiddenSize: 64, numLayers: 5, numHeads: 8, numKeyValueHeads: 4 });
    expect(header).toMatchObject({ vocabSize: 512, maxPositionEmbeddings: 512, numParameters: 260_032 });
  });

  const int8 = sharedFile("models/stories260K/stories260K-q8.bin");
  test.skipIf(int8 === null)("its int8 form has the same sizes and parameters", async () => {
    expect(await withFile(int8!, readLlama2cHeader)).toMatchObject({ version: 2, numParameters: 260_032 });
  });

  const second = sharedFile("models/aidreams260K/aidreams260K.bin");
  test.skipIf(second === null)("aidreams260K has 4 layers of 4 heads, context 128", async () => {
    expect(await withFile(second!, readLlama2cHeader)).toMatchObject({
      numLayers: 4,
      numHeads: 4,
      numKeyValueHeads: 4,
      maxPositionEmbeddings: 128,
    });
  });
});
