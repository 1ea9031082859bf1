// Training's own promises: data, schedules, layout, checkpoints, resuming, dropping, learning. What it computes is held
// to torch in test/conformance/training.test.ts.

import { execFileSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { alibi, nope, type PositionEncoding, rope, sinusoidal, xpos } from "../../src/encodings/index.ts";
import { onnxRuntimeBackend } from "../../src/engine/index.ts";
import { memorySource, type PositionGroup, readSafetensorsHeader } from "../../src/formats/index.ts";
import { buildDecoder } from "../../src/models/index.ts";
import { fromNumbers, type Tensor, toNumbers } from "../../src/tensor/index.ts";
import {
  adamW,
  type Batch,
  chain,
  clipByGlobalNorm,
  decodeTrainingCheckpoint,
  encodeSafetensors,
  encodeTrainingCheckpoint,
  initialWeights,
  layoutParameters,
  modelLayout,
  packWeights,
  positionFeeds,
  smallDecoder,
  Trainer,
  type TrainerOptions,
  type TrainingEncoding,
  tokenBatches,
  unpackWeights,
  warmupCosine,
  warmupStableDecay,
} from "../../src/training/index.ts";
import { seededText } from "../support/words.ts";

const text = seededText(20_000);
const spec = smallDecoder({ vocabSize: 256, hiddenSize: 32, numLayers: 2, numHeads: 2, intermediateSize: 64 });
const ropeOf = (length: number, ropeTheta = 10000): PositionEncoding =>
  rope({ headDim: 16, maxPositionEmbeddings: length, rope: { ropeType: "default", ropeTheta } });
const batchSize = 4;
const length = 32;
const data = tokenBatches(text, { batchSize, length, seed: 5 });

function options(encoding: TrainingEncoding, steps = 60): TrainerOptions {
  const schedule = warmupStableDecay({ peak: 0.01, steps, warmup: 5 });
  return {
    backend: onnxRuntimeBackend({ provider: "node" }),
    threads: 2,
    spec,
    encodings: [encoding],
    batchSize,
    length,
    seed: 3,
    optimizer: chain(clipByGlobalNorm(1), adamW({ learningRate: schedule })),
  };
}

describe("data", () => {
  const numbers = Uint16Array.from({ length: 1000 }, (_, i) => i);
  const source = tokenBatches(numbers, { batchSize: 3, length: 10, seed: 9 });
  const starts = (step: number): number[] => {
    const { tokens } = source.batch(step);
    return [0, 1, 2].map((b) => Number(tokens.data[b * 10]));
  };

  test("windows are runs of the text, targets one token on", () => {
    const { tokens, targets } = source.batch(17);
    for (let b = 0; b < 3; b++) {
      for (let t = 0; t < 10; t++) {
        expect(Number(tokens.data[b * 10 + t])).toBe(Number(tokens.data[b * 10]) + t);
        expect(Number(targets.data[b * 10 + t])).toBe(Number(tokens.data[b * 10 + t]) + 1);
      }
    }
  });

  test("a batch depends on the seed and the step alone", () => {
    const again = tokenBatches(numbers, { batchSize: 3, length: 10, seed: 9 });
    again.batch(200);
    expect(again.batch(40)).toEqual(source.batch(40));
    const other = tokenBatches(numbers, { batchSize: 3, length: 10, seed: 10 });
    expect(other.batch(40)).not.toEqual(source.batch(40));
  });

  test("an epoch has every window once, another epoch another order and offset", () => {
    // 99 windows: 33 batches an epoch.
    const epoch = (e: number): number[] => Array.from({ length: 33 }, (_, i) => starts(e * 33 + i)).flat();
    const [first, second] = [epoch(0), epoch(1)];
    expect(new Set(first).size).toBe(99);
    expect(new Set(first.map((start) => start % 10)).size).toBe(1);
    expect(second).not.toEqual(first);
    expect(new Set(second.map((start) => start % 10)).size).toBe(1);
  });

  test("a text that is too short for a batch is refused", () => {
    expect(() => tokenBatches(numbers.slice(0, 31), { batchSize: 3, length: 10, seed: 1 })).toThrow(
      /expected more than 31 tokens for a batch of 3 × 10, got 31/,
    );
    expect(tokenBatches(numbers.slice(0, 32), { batchSize: 3, length: 10, seed: 1 }).batch(5).tokens.shape).toEqual([
      3, 10,
    ]);
  });
});

describe("schedules", () => {
  test("warm up, stay, decay to the final share", () => {
    const rate = warmupStableDecay({ peak: 2, steps: 100, warmup: 10, decay: 20, final: 0.1 });
    expect(rate(0)).toBeCloseTo(0.2, 15);
    expect([rate(9), rate(50), rate(80)]).toEqual([2, 2, 2]);
    expect(rate(90)).toBeCloseTo(2 * 0.55, 12);
    expect(rate(100)).toBeCloseTo(0.2, 12);
    const root = warmupStableDecay({ peak: 1, steps: 100, decay: 100, shape: "sqrt" });
    expect(root(25)).toBeCloseTo(0.5, 12);
  });

  test("never rise after the warm-up", () => {
    for (const rate of [
      warmupCosine({ peak: 1, steps: 50, warmup: 5 }),
      warmupStableDecay({ peak: 1, steps: 50, warmup: 5 }),
    ]) {
      for (let step = 5; step < 60; step++) expect(rate(step + 1)).toBeLessThanOrEqual(rate(step));
    }
  });

  test("refuse what cannot be", () => {
    expect(() => warmupCosine({ peak: 1, steps: 10, warmup: 11 })).toThrow(
      /expected a warm-up of 0 \.\. 10 steps, got 11/,
    );
    expect(() => warmupStableDecay({ peak: 1, steps: 10, warmup: 4, decay: 7 })).toThrow(
      /expected a decay of 0 \.\. 6/,
    );
    expect(() => warmupStableDecay({ peak: -1, steps: 10 })).toThrow(/expected a peak above 0/);
  });
});

describe("weights", () => {
  const layout = modelLayout({ spec, encodings: [ropeOf(length)], length });

  test("matrices come first, and decay; the vector and the names are each other's inverse", () => {
    const { parameters, decayed, size } = layout;
    for (const { offset, shape, decays } of parameters) {
      expect(decays).toBe(shape.length >= 2);
      expect(offset < decayed).toBe(decays);
    }
    const vector = initialWeights(layout, 1);
    expect(vector.length).toBe(size);
    expect(packWeights(layout, unpackWeights(layout, vector))).toEqual(vector);
  });

  test("begin alike in models that differ in their encoding alone", () => {
    const learned = modelLayout({ spec, encodings: [{ site: "attention-bias", learned: "t5" }], length });
    expect(learned.size).toBe(layout.size + 64);
    const [a, b] = [layout, learned].map((one) => unpackWeights(one, initialWeights(one, 8)));
    for (const [name, value] of a!) expect(b!.get(name)).toEqual(value);
    expect(unpackWeights(layout, initialWeights(layout, 9)).get("embedding.weight")).not.toEqual(
      a!.get("embedding.weight"),
    );
  });

  test("of another model are refused by name", () => {
    const weights = unpackWeights(layout, initialWeights(layout, 1));
    weights.delete("layers.1.up.weight");
    expect(() => packWeights(layout, weights)).toThrow(/expected layers\.1\.up\.weight to be f32\[64, 32\], got none/);
    expect(() => packWeights(layoutParameters([]), weights)).toThrow(/expected weights of this model, got/);
  });
});

describe("a trainer", () => {
  test("learns more of a text than how often each byte comes", async () => {
    const counts = new Array<number>(256).fill(0);
    for (const byte of text) counts[byte]!++;
    const entropy = counts.reduce((sum, n) => (n === 0 ? sum : sum - (n / text.length) * Math.log(n / text.length)), 0);
    await using trainer = await Trainer.create(options(ropeOf(length), 400));
    const losses: number[] = [];
    for (let step = 0; step < 400; step++) losses.push((await trainer.update(data.batch(step))).loss);
    expect(losses[0]!).toBeGreaterThan(5.4); // ln 256 is 5.55
    expect(losses[0]!).toBeLessThan(5.7);
    const last = losses.slice(-10).reduce((a, x) => a + x, 0) / 10;
    expect(last).toBeLessThan(entropy - 0.6); // 0.98 below seen
  });

  test.each<[string, TrainingEncoding]>([
    ["rope", ropeOf(length)],
    ["t5", { site: "attention-bias", learned: "t5" }],
  ])("that was stopped and resumed from a file ends bit for bit where another does (%s)", async (_, encoding) => {
    await using whole = await Trainer.create(options(encoding));
    for (let step = 0; step < 12; step++) await whole.update(data.batch(step));
    let bytes: Uint8Array;
    {
      await using first = await Trainer.create(options(encoding));
      for (let step = 0; step < 5; step++) await first.update(data.batch(step));
      bytes = encodeTrainingCheckpoint(await first.checkpoint(), { seed: 3 });
    }
    const checkpoint = await decodeTrainingCheckpoint(bytes);
    expect(checkpoint.record).toEqual({ seed: 3 });
    await using second = await Trainer.create({ ...options(encoding), checkpoint });
    expect(second.step).toBe(5);
    while (second.step < 12) await second.update(data.batch(second.step));
    const [a, b] = [await whole.checkpoint(), await second.checkpoint()];
    expect(b.step).toBe(a.step);
    for (const kind of ["weights", "optimizer"] as const) {
      expect([...b[kind].keys()]).toEqual([...a[kind].keys()]);
      for (const [name, { data: expected }] of a[kind]) {
        expect(Buffer.compare(asBytes(b[kind].get(name)!.data), asBytes(expected)), name).toBe(0);
      }
    }
  });

  test("gives the loss of every token, at any length; the mean of what counts is the step's loss", async () => {
    await using trainer = await Trainer.create(options(ropeOf(length)));
    const { tokens, targets } = data.batch(0);
    const some: Batch = {
      tokens,
      targets: { ...targets, data: targets.data.map((t, i) => (i % 3 === 0 ? -1n : t)) },
    };
    const losses = toNumbers(await trainer.losses(some));
    const counted = Array.from(losses).filter((_, i) => i % 3 !== 0);
    losses.forEach((x, i) => void expect(x === 0).toBe(i % 3 === 0));
    const { loss } = await trainer.update(some);
    expect(loss).toBeCloseTo(counted.reduce((a, x) => a + x, 0) / counted.length, 5);
    const long = tokenBatches(text, { batchSize: 2, length: 100, seed: 1 }).batch(0);
    expect((await trainer.losses(long)).shape).toEqual([2, 100]);
  });

  test("a drop feeds the rotation by nothing to the same program: what a model without encoding computes", async () => {
    await using trainer = await Trainer.create(options(ropeOf(length)));
    await using without = await Trainer.create(options(nope()));
    const batch = data.batch(1);
    const rotated = await trainer.losses(batch);
    trainer.setEncodings([nope()]);
    const dropped = toNumbers(await trainer.losses(batch));
    const expected = toNumbers(await without.losses(batch));
    dropped.forEach((x, i) => void expect(Math.abs(x - expected[i]!)).toBeLessThan(1e-5));
    expect(toNumbers(rotated)).not.toEqual(dropped);
    const [a, b] = [await trainer.update(batch), await without.update(batch)];
    expect(a.loss).toBeCloseTo(b.loss, 5);
    expect(a.reports.gradientNorm).toBeCloseTo(b.reports.gradientNorm!, 4);
  });

  test.each([
    ["Llama's blocks", {}],
    ["GPT-2's blocks", { norm: "layer", mlp: "plain", bias: true }],
    ["norms of queries and keys, groups, an untied head", { queryKeyNorm: true, numKeyValueHeads: 1, tied: false }],
  ] as const)(
    "gives weights that the decoder for inference takes by name, with the same losses: %s",
    async (_, blocks) => {
      const sizes = { vocabSize: 256, hiddenSize: 32, numLayers: 2, numHeads: 2, intermediateSize: 64 };
      const trained = smallDecoder({ ...sizes, ...blocks });
      const encoding = ropeOf(length);
      await using trainer = await Trainer.create({ ...options(encoding), spec: trained });
      for (let step = 0; step < 3; step++) await trainer.update(data.batch(step));
      const one = tokenBatches(text, { batchSize: 1, length, seed: 2 }).batch(0);
      const expected = toNumbers(await trainer.losses(one));

      const group: PositionGroup = {
        layers: [0, 1],
        position: {
          site: "query-key",
          kind: "rope",
          headDim: 16,
          layout: "half",
          rope: { ropeType: "default", ropeTheta: 10000 },
        },
        slidingWindow: null,
        attentionChunkSize: null,
        logitTemperature: null,
        softmaxFactor: 1,
      };
      const { graph } = buildDecoder({ ...trained, family: "llama", groups: [group] });
      await using session = await onnxRuntimeBackend().load(graph, await trainer.weights(), {
        sizes: { capacity: length },
      });
      const ids = (values: ArrayLike<number>): Tensor => fromNumbers("i64", [values.length], values);
      const { losses } = await session.run(
        {
          tokens: { ...one.tokens, shape: [length] },
          targets: { ...one.targets, shape: [length] },
          rows: ids(Array.from({ length }, (_v, t) => t)),
          logitRows: ids([]),
          pastLength: fromNumbers("i64", [], [0]),
          ...positionFeeds(encoding, encoding, 0, { length, hiddenSize: 32, numHeads: 2 }),
        },
        ["losses"],
      );
      const got = toNumbers(losses!);
      got.forEach((x, i) => void expect(Math.abs(x - expected[i]!)).toBeLessThan(2e-5));
    },
  );

  test("trains layers with encodings of their own: every second one without", async () => {
    const mixed = smallDecoder({
      vocabSize: 256,
      hiddenSize: 32,
      numLayers: 4,
      numHeads: 2,
      intermediateSize: 64,
      groups: [0, 0, 0, 1],
      windows: [8, 8, 8, null],
    });
    await using trainer = await Trainer.create({
      ...options(ropeOf(length)),
      spec: mixed,
      encodings: [ropeOf(length), nope()],
    });
    const first = await trainer.update(data.batch(0));
    const again = await trainer.update(data.batch(0));
    expect(again.loss).toBeLessThan(first.loss);
  });

  test("refuses encodings that do not fit, and losses that are not numbers", async () => {
    await expect(Trainer.create(options(alibi({ numHeads: 4 })))).rejects.toThrow(/got alibi of other sizes/);
    await expect(Trainer.create(options(sinusoidal({ hiddenSize: 64 })))).rejects.toThrow(
      /got sinusoidal of other sizes/,
    );
    const short: TrainingEncoding = { site: "embedding", learned: "absolute", numPositions: 31 };
    await expect(Trainer.create(options(short))).rejects.toThrow(/within the 31 learned positions, got 32/);
    await expect(Trainer.create({ ...options(nope()), microBatches: 3 })).rejects.toThrow(/microBatches to divide/);
    await expect(Trainer.create(options(xpos({ headDim: 16 })))).rejects.toThrow(/queries and keys to turn alike/);
    await using trainer = await Trainer.create({
      ...options(ropeOf(length)),
      optimizer: adamW({ learningRate: 1e30 }),
    });
    expect(() => trainer.setEncodings([alibi({ numHeads: 2 })])).toThrow(/expected an encoding at query-key or none/);
    await trainer.update(data.batch(0));
    await expect(trainer.update(data.batch(1))).rejects.toThrow(/expected a finite loss, got NaN at step 1/);
  });
});

function asBytes(data: ArrayBufferView): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}

describe("flushDenormals", () => {
  test("makes a process compute without tiny numbers, and is off by default", () => {
    const program = (flush: boolean): string => `
      import { onnxRuntimeBackend } from "./src/engine/index.ts";
      import { graphBuilder } from "./src/graph/index.ts";
      import { fromNumbers } from "./src/tensor/index.ts";
      const g = graphBuilder("tiny");
      g.output("y", g.multiply(g.input("x", "f32", [2]), 0.001));
      const session = await onnxRuntimeBackend({ flushDenormals: ${flush} }).load(g.build());
      const { y } = await session.run({ x: fromNumbers("f32", [2], [1e-37, 1]) });
      console.log(y.data[0] > 0, y.data[1] > 0);`;
    const run = (flush: boolean): string => {
      const flags = ["--import", "./scripts/ts-hook.mjs", "--input-type=module", "--eval", program(flush)];
      return execFileSync(process.execPath, flags, { encoding: "utf8", cwd: new URL("../..", import.meta.url) }).trim();
    };
    expect(run(false)).toBe("true true");
    expect(run(true)).toBe("false true");
  });
});

describe("safetensors", () => {
  test("what is written is what the strict reader reads, aligned", async () => {
    const tensors = new Map<string, Tensor>([
      ["half", fromNumbers("f16", [3], [1, 2, 3])],
      ["scalar", fromNumbers("f32", [], [7])],
      ["é", fromNumbers("i64", [2, 1], [1, -2])],
      ["flags", fromNumbers("bool", [3], [1, 0, 1])],
    ]);
    const bytes = encodeSafetensors(tensors, { note: "ü" });
    const header = await readSafetensorsHeader(memorySource("x.safetensors", bytes));
    expect(header.metadata.get("note")).toBe("ü");
    expect(new Set(header.tensors.keys())).toEqual(new Set(tensors.keys()));
    for (const [name, { shape, offset, byteLength }] of header.tensors) {
      const value = tensors.get(name)!;
      expect(shape).toEqual(value.shape);
      expect(offset % value.data.BYTES_PER_ELEMENT).toBe(0);
      expect(bytes.slice(offset, offset + byteLength)).toEqual(asBytes(value.data));
    }
  });

  test("a file of something else is no checkpoint", async () => {
    const bytes = encodeSafetensors(new Map([["a", fromNumbers("f32", [1], [1])]]));
    await expect(decodeTrainingCheckpoint(bytes)).rejects.toThrow(
      /expected the format longhand-training-1 with a step, got none/,
    );
  });
});
