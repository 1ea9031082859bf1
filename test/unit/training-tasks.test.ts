// Synthetic tasks: what they ask is answered right, judged by parsers of the texts that share nothing with the generators;
// batches are a function of seed and step; scores are what a greedy decoder would get.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { byteTokenizer } from "../../src/formats/index.ts";
import {
  addition,
  associativeRecall,
  createTask,
  type Example,
  exampleBatch,
  exampleStream,
  exampleText,
  passkey,
  type Task,
  type TaskName,
  taskBatches,
  taskLength,
  taskNames,
  tasks,
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
