// Synthetic tasks: what they ask is answered right, judged by parsers of the texts that share nothing with the generators;
// batches are a function of seed and step; scores are what a greedy decoder would get.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { alibi, nope, rope } from "../../src/encodings/index.ts";
import { type Backend, onnxRuntimeBackend, referenceBackend } from "../../src/engine/index.ts";
import { byteTokenizer } from "../../src/formats/index.ts";
import { tensor } from "../../src/tensor/index.ts";
import {
  adamW,
  addition,
  associativeRecall,
  type Batch,
  chain,
  clipByGlobalNorm,
  createTask,
  type Example,
  evaluateTask,
  exampleBatch,
  exampleStream,
  exampleText,
  modelLayout,
  passkey,
  type Scorer,
  type Scores,
  smallDecoder,
  type Task,
  type TaskName,
  Trainer,
  type TrainingEncoding,
  taskBatches,
  taskLength,
  taskNames,
  tasks,
  warmupStableDecay,
  widthScaledWeights,
  wilsonInterval,
} from "../../src/training/index.ts";

const draw = (task: Task, size: number, seed = 0, index = 0): Example =>
  task.example(size, exampleStream("evaluation", seed, size, index));

const number = (text: string): bigint => BigInt(text);

/** Reads a text as a person would: the size that it has, and whether its answers are right. */
const readers: Record<TaskName, (text: string) => { size: number; right: boolean }> = {
  copy(text) {
    const [, said, again] = /^copy:([a-z]+)=([a-z]+);$/.exec(text)!;
    return { size: said!.length, right: said === again };
  },
  reverse(text) {
    const [, said, backwards] = /^reverse:([a-z]+)=([a-z]+);$/.exec(text)!;
    const right = said!.length === backwards!.length;
    return { size: said!.length, right: right && [...said!].every((x, i) => backwards!.at(-1 - i) === x) };
  },
  addition(text) {
    const [, a, b, sum] = /^add:(\d+)\+(\d+)=(\d+);$/.exec(text)!;
    const plain = [a, b, sum].every((x) => x === "0" || !x!.startsWith("0"));
    return { size: a!.length, right: plain && a!.length === b!.length && number(a!) + number(b!) === number(sum!) };
  },
  sorting(text) {
    const [, asked, sorted] = /^sort:([\d ]+)=([\d ]+);$/.exec(text)!;
    const left = asked!.split(" ");
    let right = true;
    let last = -1;
    const answer = sorted!.split(" ");
    for (const one of answer) {
      right &&= Number(one) >= last && left.includes(one);
      last = Number(one);
      left.splice(left.indexOf(one), 1);
    }
    return { size: answer.length, right: right && left.length === 0 };
  },
  recall(text) {
    const [, pairs, asked] = /^recall:((?:[a-zA-Z]+\d)+)\?((?:[a-zA-Z]+\d)+);$/.exec(text)!;
    const split = (run: string) =>
      [...run.matchAll(/([a-zA-Z]+)(\d)/g)].map(([, key, value]) => [key!, value!] as const);
    const memory = new Map(split(pairs!));
    const queries = split(asked!);
    const distinct =
      memory.size === split(pairs!).length && new Set(queries.map(([key]) => key)).size === queries.length;
    return { size: memory.size, right: distinct && queries.every(([key, value]) => memory.get(key) === value) };
  },
  passkey(text) {
    const [, before, key, after, answer] = /^passkey:([a-z ]*)<(\d+)>([a-z ]*)\?(\d+);$/.exec(text)!;
    return { size: before!.length + after!.length, right: key === answer };
  },
};

const variants: readonly (readonly [TaskName, object])[] = [
  ...taskNames.map((name) => [name, {}] as const),
  ["recall", { keyLetters: 2, numQueries: 9 }],
  ["sorting", { digits: 3 }],
  ["passkey", { digits: 9, depth: 0.3 }],
];

describe("examples", () => {
  test("are the same bytes for a seed for good", () => {
    expect(taskNames.map((name) => exampleText(draw(tasks[name](), 5, 7)))).toEqual([
      "copy:ezdjv=ezdjv;",
      "reverse:ezdjv=vjdze;",
      "add:33179+23962=57141;",
      "sort:83 17 99 39 62=17 39 62 83 99;",
      "recall:E3D7V9P9s2?D7P9V9E3;",
      "passkey:ri<31799>gra?31799;",
    ]);
  });

  test.each(variants)(
    "of %s %j are right, of the size asked for, and as long as the task says at most",
    (name, options) => {
      const task = createTask(name, options);
      const sizes = fc.integer({ min: Math.max(1, task.minSize), max: Math.min(60, task.maxSize) });
      fc.assert(
        fc.property(sizes, fc.nat(), fc.nat(1000), (size, seed, index) => {
          const text = exampleText(draw(task, size, seed, index));
          expect(readers[name](text)).toEqual({ size, right: true });
          expect(text.length).toBeLessThanOrEqual(task.length(size));
          expect(byteTokenizer({ specialTokens: [] }).encode(text)).toEqual([...text].map((x) => x.charCodeAt(0)));
        }),
        { numRuns: 150 },
      );
      const longest = Array.from({ length: 60 }, (_, i) => exampleText(draw(task, 3, 1, i)).length);
      expect(Math.max(...longest)).toBe(task.length(3));
    },
  );

  test("answer what the prompt leaves open, to the end of the text", () => {
    for (const name of taskNames) {
      const turns = draw(tasks[name](), 6, 3);
      expect(turns.at(-1)!.answer.endsWith(";")).toBe(true);
      expect(turns.length).toBe(name === "recall" ? 4 : 1);
      expect(turns[0]!.prompt).toMatch(/[=?][a-zA-Z]?$/);
    }
  });

  test("of addition backwards end with the first digit of the sum", () => {
    for (let i = 0; i < 50; i++) {
      const [, a, b, sum] = /^add:(\d+)\+(\d+)=(\d+);$/.exec(exampleText(draw(addition({ reversed: true }), 4, 0, i)))!;
      expect(Number([...sum!].reverse().join(""))).toBe(Number(a) + Number(b));
    }
  });

  test("of passkey hide the number where the depth says, anywhere when it says nothing", () => {
    const start = (task: Task, size: number, index: number): number =>
      exampleText(draw(task, size, 5, index)).indexOf("<") - "passkey:".length;
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1, noNaN: true }), fc.integer({ min: 0, max: 300 }), (depth, size) => {
        expect(start(passkey({ depth }), size, 0)).toBe(Math.round(depth * size));
      }),
    );
    const thirds = [0, 0, 0];
    for (let i = 0; i < 600; i++) thirds[Math.min(2, Math.floor(start(passkey(), 89, i) / 30))]!++;
    for (const count of thirds) expect(Math.abs(count - 200)).toBeLessThan(50); // 4.3 standard deviations
  });

  test("differ between seeds, between indices, and between training and evaluation", () => {
    const task = tasks.copy();
    const texts = [
      draw(task, 12, 0, 0),
      draw(task, 12, 1, 0),
      draw(task, 12, 0, 1),
      task.example(12, exampleStream("training", 0, 12, 0)),
    ].map(exampleText);
    expect(new Set(texts).size).toBe(4);
    const many = Array.from({ length: 3000 }, (_, i) => exampleText(draw(task, 8, i % 30, Math.floor(i / 30))));
    expect(new Set(many).size).toBe(3000);
  });
});

describe("task batches", () => {
  const rows = (task: Task, sizes: readonly [number, number], steps: number, seed = 4): string[] => {
    const source = taskBatches(task, { batchSize: 16, seed, sizes });
    return Array.from({ length: steps }, (_, step) => {
      const { tokens, targets } = source.batch(step);
      return Array.from({ length: 16 }, (_, b) => {
        const row = <T>(data: ArrayLike<T>) =>
          Array.from({ length: source.length }, (_, t) => data[b * source.length + t]!);
        const [ids, next] = [row(tokens.data).map(Number), row(targets.data).map(Number)];
        const last = next.findLastIndex((x) => x >= 0);
        // What counts is the token that follows, in a row as well as behind its end.
        next.forEach((x, t) => void (x >= 0 && t < last && expect(ids[t + 1]).toBe(x)));
        expect(ids.slice(last + 1).every((x) => x === 0)).toBe(true);
        return String.fromCharCode(...ids.slice(0, last + 1), next[last]!);
      });
    }).flat();
  };

  test.each(taskNames)(
    "of %s are whole examples from position 0, sizes uniform over the range and none outside",
    (name) => {
      const counts = new Map<number, number>();
      for (const text of rows(tasks[name](), [3, 10], 60)) {
        const { size, right } = readers[name](text);
        expect(right).toBe(true);
        counts.set(size, (counts.get(size) ?? 0) + 1);
      }
      expect([...counts.keys()].sort((a, b) => a - b)).toEqual([3, 4, 5, 6, 7, 8, 9, 10]);
      const squares = [...counts.values()].map((count) => (count - 120) ** 2 / 120);
      expect(squares.reduce((a, x) => a + x)).toBeLessThan(24.3); // χ² of 7 degrees: 1 in 1,000
    },
  );

  test("count answers alone", () => {
    const [first, second] = [
      [
        { prompt: "a?", answer: "xy" },
        { prompt: "b", answer: ";" },
      ],
      [],
    ] as const;
    const { tokens, targets } = exampleBatch([first, second], 6);
    const show = (data: BigInt64Array): string =>
      Array.from(data, (x) => (x > 0n ? String.fromCharCode(Number(x)) : ".")).join("");
    expect(show(tokens.data)).toBe("a?xyb." + "......");
    expect(show(targets.data)).toBe(".xy.;." + "......");
    expect(targets.data.at(-1)).toBe(-1n);
    expect(exampleBatch([first], 5).tokens.data.at(-1)).toBe(98n);
    expect(() => exampleBatch([first], 4)).toThrow(/expected examples of at most 5 tokens, got one of 6/);
  });

  test("depend on seed and step alone", () => {
    const make = (seed: number) => taskBatches(tasks.reverse(), { batchSize: 3, seed, sizes: [1, 9] });
    const [one, other] = [make(2), make(2)];
    other.batch(5);
    expect(one.batch(77)).toEqual(other.batch(77));
    expect(make(3).batch(77)).not.toEqual(one.batch(77));
    expect(one.batch(78)).not.toEqual(one.batch(77));
  });

  test("take a longer length than they need, and no shorter", () => {
    const options = { batchSize: 2, seed: 0, sizes: [1, 5] as const };
    expect(taskBatches(tasks.copy(), { ...options, length: 40 }).batch(0).tokens.shape).toEqual([2, 40]);
    expect(taskLength(tasks.copy(), 5)).toBe(16);
    expect(() => taskBatches(tasks.copy(), { ...options, length: 15 })).toThrow(
      /expected a length of at least 16 for copy of 5 letters, got 15/,
    );
  });

  test("refuse what cannot be", () => {
    const options = { batchSize: 2, seed: 0 };
    expect(() => taskBatches(tasks.copy(), { ...options, sizes: [0, 5] })).toThrow(
      /expected a size of copy \(letters\) of at least 1, got 0/,
    );
    expect(() => taskBatches(tasks.copy(), { ...options, sizes: [6, 5] })).toThrow(/expected sizes in ascending order/);
    expect(() => taskBatches(tasks.recall(), { ...options, sizes: [1, 53] })).toThrow(/in 1 \.\. 52, got 53/);
    expect(() => taskBatches(tasks.copy(), { ...options, sizes: [1, 5], batchSize: 0 })).toThrow(/batchSize/);
    expect(() => createTask("reversed")).toThrow(/expected a task of copy, .*, got reversed; did you mean reverse\?/);
    expect(() => createTask("passkey", { deth: 1 })).toThrow(/expected depth, digits, got deth; did you mean depth\?/);
    expect(() => createTask("copy", { depth: 1 })).toThrow(/copy: expected no options, got depth/);
    expect(() => passkey({ depth: 1.1 })).toThrow(/expected a depth of 0 \.\. 1, got 1\.1/);
    expect(() => associativeRecall({ keyLetters: 3 })).toThrow(
      /expected keyLetters to be a whole number of 1 \.\. 2, got 3/,
    );
  });
});

describe("scores", () => {
  const spec = smallDecoder({ vocabSize: 128, hiddenSize: 16, numLayers: 1, numHeads: 2, intermediateSize: 32 });
  const make = (backend: Backend): Promise<Trainer> =>
    Trainer.create({
      backend,
      threads: 1,
      spec,
      encodings: [alibi({ numHeads: 2 })],
      batchSize: 2,
      length: 8,
      seed: 1,
      optimizer: adamW({ learningRate: 1e-3 }),
    });

  test.each([
    ["ONNX Runtime", onnxRuntimeBackend({ provider: "node" })],
    ["the reference backend", referenceBackend],
  ])("say which targets have the smallest loss of all tokens, on %s", async (_, backend) => {
    await using trainer = await make(backend);
    const batch = exampleBatch([draw(tasks.copy(), 1), []], 8);
    // Every token in turn as the target of every position: the first choice is the one with the smallest loss.
    const all: number[][] = [];
    for (let token = 0; token < 128; token++) {
      const targets = { ...batch.targets, data: batch.targets.data.map(() => BigInt(token)) };
      const { losses, correct } = await trainer.scores({ tokens: batch.tokens, targets });
      all.push(Array.from(losses.data, (loss, at) => (correct.data[at] ? -loss : loss)));
    }
    for (let at = 0; at < 16; at++) {
      const column = all.map((losses) => losses[at]!);
      const chosen = column.flatMap((x, token) => (x < 0 ? [token] : []));
      const sizes = column.map(Math.abs);
      expect(chosen).toEqual([sizes.indexOf(Math.min(...sizes))]);
    }
    const { correct, losses } = await trainer.scores({
      tokens: batch.tokens,
      targets: { ...batch.targets, data: batch.targets.data.map(() => -1n) },
    });
    expect(correct.data.every((x) => x === 0)).toBe(true);
    expect(losses.data.every((x) => x === 0)).toBe(true);
  });
});

describe("an evaluation", () => {
  /** Answers right but for tokens that `wrong` names by example (in order of asking) and place in the answer. */
  const scorer = (wrong: (example: number, place: number) => boolean): Scorer & { readonly batches: Batch[] } => {
    const batches: Batch[] = [];
    let example = -1;
    return {
      batches,
      scores: async (batch) => {
        batches.push(batch);
        const [rows, length] = batch.targets.shape as [number, number];
        const losses = new Float32Array(rows * length);
        const correct = new Uint8Array(rows * length);
        for (let b = 0; b < rows; b++) {
          const counted = Array.from({ length }, (_, t) => b * length + t).filter(
            (at) => batch.targets.data[at]! >= 0n,
          );
          if (counted.length > 0) example++;
          counted.forEach((at, place) => {
            correct[at] = wrong(example, place) ? 0 : 1;
            losses[at] = wrong(example, place) ? 3 : 1;
          });
        }
        const { shape } = batch.targets;
        return { losses: tensor("f32", shape, losses), correct: tensor("bool", shape, correct) } as Scores;
      },
    };
  };

  test("counts whole answers, answer tokens and their loss, whatever the batch", async () => {
    for (const batchSize of [1, 4, 10, 16]) {
      const model = scorer((example, place) => example % 5 === 0 && place === 2);
      const [result] = await evaluateTask(model, tasks.copy(), { sizes: [9], count: 10, seed: 3, batchSize });
      expect(result).toMatchObject({ size: 9, count: 10, accuracy: 0.8, tokenAccuracy: 0.98 });
      expect(result!.meanLoss).toBeCloseTo(1.04, 12);
      expect([result!.low, result!.high]).toEqual(wilsonInterval(8, 10));
      expect(new Set(model.batches.map(({ tokens }) => tokens.shape.join())).size).toBe(1);
    }
  });

  test("asks every size anew, and the same of every model", async () => {
    const [one, other] = [scorer(() => false), scorer(() => true)];
    const options = { sizes: [2, 7], count: 5, seed: 3 };
    const [results, none] = [
      await evaluateTask(one, tasks.recall(), options),
      await evaluateTask(other, tasks.recall(), options),
    ];
    expect(results.map(({ size, accuracy }) => [size, accuracy])).toEqual([
      [2, 1],
      [7, 1],
    ]);
    expect(none.map(({ accuracy, tokenAccuracy, meanLoss }) => [accuracy, tokenAccuracy, meanLoss])).toEqual([
      [0, 0, 3],
      [0, 0, 3],
    ]);
    expect(other.batches).toEqual(one.batches);
    const third = scorer(() => false);
    await evaluateTask(third, tasks.recall(), { ...options, seed: 4 });
    expect(third.batches).not.toEqual(one.batches);
  });

  test("refuses what cannot be", async () => {
    const options = { sizes: [3], count: 5, seed: 0 };
    await expect(
      evaluateTask(
        scorer(() => false),
        tasks.copy(),
        { ...options, sizes: [0] },
      ),
    ).rejects.toThrow(/of at least 1/);
    await expect(
      evaluateTask(
        scorer(() => false),
        tasks.copy(),
        { ...options, count: 0 },
      ),
    ).rejects.toThrow(/count/);
    const broken: Scorer = {
      scores: async ({ targets: { shape } }) =>
        ({
          losses: tensor("f32", shape, new Float32Array(shape[0]! * shape[1]!).fill(Number.NaN)),
          correct: tensor("bool", shape, new Uint8Array(shape[0]! * shape[1]!)),
        }) as Scores,
    };
    await expect(evaluateTask(broken, tasks.copy(), options)).rejects.toThrow(
      /expected finite losses, got NaN at size 3/,
    );
  });
});

test("Wilson's interval has its known values, and encloses the share", () => {
  // mpmath, 30 digits; 8 of 10 is the textbook's 0.4902 .. 0.9433.
  const known: [number, number, number, number][] = [
    [0, 20, 0, 0.161125158052819],
    [8, 10, 0.490162471536642, 0.943317848545625],
    [20, 20, 0.838874841947181, 1],
    [1, 3, 0.0614919447203962, 0.792340399197952],
    [937, 1000, 0.920205076295354, 0.950450336788271],
  ];
  for (const [hits, count, low, high] of known) {
    const got = wilsonInterval(hits, count);
    expect(got[0]).toBeCloseTo(low, 12);
    expect(got[1]).toBeCloseTo(high, 12);
  }
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5000 }), fc.double({ min: 0, max: 1, noNaN: true }), (count, share) => {
      const hits = Math.floor(share * count);
      const [low, high] = wilsonInterval(hits, count);
      expect(low >= 0 && low <= hits / count && hits / count <= high && high <= 1 && low < high).toBe(true);
    }),
  );
  expect(() => wilsonInterval(3, 2)).toThrow(/expected hits of 0 \.\. count/);
  expect(() => wilsonInterval(0, 0)).toThrow(/a count of at least 1, got 0 of 0/);
});

const bytes = ({ buffer, byteOffset, byteLength }: Float32Array): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);

test("initial weights by width: products keep their size; models that differ in their encoding alone begin alike", () => {
  const spec = smallDecoder({ vocabSize: 256, hiddenSize: 64, numLayers: 2, numHeads: 4, intermediateSize: 176 });
  const layoutOf = (encoding: TrainingEncoding) => modelLayout({ spec, encodings: [encoding], length: 32 });
  const [own, t5] = [nope(), { site: "attention-bias", learned: "t5" } as const].map(layoutOf);
  const [weights, withBias] = [widthScaledWeights(own!, 3), widthScaledWeights(t5!, 3)];
  const deviation = (name: string): number => {
    const { data } = withBias.get(name)!;
    return Math.sqrt(data.reduce((sum, x) => sum + x * x, 0) / data.length);
  };
  expect(deviation("embedding.weight")).toBeCloseTo(1 / 8, 2);
  expect(deviation("layers.0.query.weight")).toBeCloseTo(1 / 8, 2);
  expect(deviation("layers.1.down.weight")).toBeCloseTo(1 / Math.sqrt(176) / 2, 2);
  expect(deviation("layers.0.relativeBias.weight")).toBeLessThan(0.03);
  expect(deviation("finalNorm.weight")).toBe(1);
  for (const [name, { data }] of weights) expect(Buffer.compare(bytes(withBias.get(name)!.data), bytes(data))).toBe(0);
});

test("a small model learns to copy; beyond its training sizes it is measured", async () => {
  const steps = 220;
  const spec = smallDecoder({ vocabSize: 256, hiddenSize: 64, numLayers: 2, numHeads: 4, intermediateSize: 128 });
  const data = taskBatches(tasks.copy(), { batchSize: 32, seed: 1, sizes: [1, 4] });
  const encodings = [
    rope({ headDim: 16, maxPositionEmbeddings: data.length, rope: { ropeType: "default", ropeTheta: 10000 } }),
  ];
  await using trainer = await Trainer.create({
    backend: onnxRuntimeBackend({ provider: "node" }),
    threads: 1,
    spec,
    encodings,
    batchSize: 32,
    length: data.length,
    weights: widthScaledWeights(modelLayout({ spec, encodings, length: data.length }), 1),
    optimizer: chain(
      clipByGlobalNorm(1),
      adamW({ learningRate: warmupStableDecay({ peak: 6e-3, steps, warmup: 30 }), beta2: 0.99 }),
    ),
  });
  const options = { sizes: [4, 8, 16], count: 64, seed: 1 };
  const [before] = await evaluateTask(trainer, tasks.copy(), options);
  expect(before!.accuracy).toBe(0);
  while (trainer.step < steps) await trainer.update(data.batch(trainer.step));
  const [trained, ...beyond] = await evaluateTask(trainer, tasks.copy(), options);
  expect(trained!.accuracy).toBeGreaterThan(0.9); // 1 seen
  for (const { size, accuracy, low, high, meanLoss } of beyond) {
    expect(low <= accuracy && accuracy <= high, `size ${size}`).toBe(true);
    expect(meanLoss).toBeGreaterThan(trained!.meanLoss);
  }
}, 240_000); // 3 s of one core; a busy machine takes its time
