import { beforeAll, describe, expect, test } from "vitest";
import {
  type Answer,
  commonWords,
  type EvaluationStrategy,
  effectiveLengthByLoss,
  effectiveLengthByScore,
  frequentWords,
  generatedHaystack,
  type MakeSample,
  parseEvaluationStrategy,
  passkey,
  pieceTokens,
  type RetrievalSample,
  retrievalTasks,
  rulerEffectiveLength,
  type ScoringModel,
  scoreRetrieval,
  sha256,
  textHaystack,
} from "../../src/evaluation/index.ts";
import {
  byteTokenizer,
  huggingFaceTokenizer,
  sentencePieceTokenizer,
  type Tokenizer,
} from "../../src/formats/index.ts";
import { fixtureBytes, fixtureJson } from "../support/tokenizer-fixtures.ts";

let tokenizers: Record<string, Tokenizer>;
beforeAll(async () => {
  tokenizers = {
    bytes: byteTokenizer(),
    "byte-level": await huggingFaceTokenizer(fixtureJson("byte-level.json")),
    llama: sentencePieceTokenizer(fixtureBytes("llama.model")),
    gemma: sentencePieceTokenizer(fixtureBytes("gemma.model")),
  };
});
const names = ["bytes", "byte-level", "llama", "gemma"];
const lengths = { trainedLength: 512, target: 2048 };
const none = parseEvaluationStrategy("none", lengths);

const tasks = Object.entries(retrievalTasks) as [string, MakeSample][];
const total = (sample: RetrievalSample) =>
  sample.prompt.length + sample.answers.reduce((n, { first, later }, i) => n + (i === 0 ? first : later).length, 0);

describe.each(names)("samples over the tokenizer %s", (name) => {
  test.each(tasks)("%s: have the length that was asked for, to the token, with everything in it", (task, make) => {
    const tokenizer = tokenizers[name]!;
    const bos = tokenizer.bosToken;
    const context = { tokenizer, bos };
    for (const [length, seed] of [
      [1024, 0],
      [1500, 1],
    ] as const) {
      const sample = make(context, generatedHaystack(tokenizer), { length, seed });
      expect(sample.task).toBe(task);
      expect(sample.fillRate).toBe(total(sample) / length);
      expect(sample.fillRate).toBeLessThanOrEqual(1);
      // A list ends with a whole word.
      if (/-words$|recall$/.test(task)) expect(total(sample)).toBeGreaterThan(length - 250);
      else expect(total(sample)).toBe(length);
      if (bos !== null) expect(sample.prompt[0]).toBe(bos);
      const body = sample.prompt.slice(bos === null ? 0 : 1);
      const text = tokenizer.decode(body);
      for (const needle of sample.needles) expect(text).toContain(needle);
      expect(text.endsWith(sample.question)).toBe(true);
      expect(sample.distractors.length).toBe(task === "variable-tracking" ? 5 : 9);
      // Of several queries the others' numbers are wrong answers to the first.
      const all = [sample.answers[0]!, ...sample.distractors].map((one) => one.text);
      expect(new Set(all).size).toBe(all.length);
      for (const depth of sample.depths) expect(depth >= 0 && depth <= 1).toBe(true);
      for (const one of sample.answers) {
        const after = tokenizer.decode([...body, ...one.first, ...one.later]);
        const said = task === "associative-recall" ? one.text + one.text : ` ${one.text}, ${one.text}`;
        expect(after.endsWith(sample.question + said)).toBe(true);
      }
    }
  });

  test("a piece reads as the text that it is, behind other pieces", () => {
    const tokenizer = tokenizers[name]!;
    for (const text of ["", " The pass key", " 48213", " a. b"]) {
      const around = (middle: readonly number[]) =>
        tokenizer.decode([...pieceTokens(tokenizer, " One."), ...middle, ...pieceTokens(tokenizer, " Two.")]);
      expect(around(pieceTokens(tokenizer, text)).trim()).toBe(`One.${text} Two.`);
    }
  });
});

describe("samples", () => {
  const tokenizer = byteTokenizer();
  const context = { tokenizer, bos: null };
  const hay = generatedHaystack(tokenizer);

  // Any change of these makes results of two releases incomparable.
  test("are the same bytes for a seed, for ever", () => {
    const digest = tasks.map(([task, make]) => {
      const { prompt, answers, distractors } = make(context, hay, { length: 2000, seed: 7 });
      const text = (list: readonly Answer[]) => list.map((one) => one.text).join();
      return [task, sha256(`${tokenizer.decode(prompt)}|${text(answers)}|${text(distractors)}`).slice(0, 8)];
    });
    expect(digest).toMatchInlineSnapshot(`
      [
        [
          "passkey",
          "817e90e6",
        ],
        [
          "single",
          "ea3096d3",
        ],
        [
          "multi-key",
          "226bfeb4",
        ],
        [
          "multi-value",
          "5856081a",
        ],
        [
          "multi-query",
          "07a0c0f0",
        ],
        [
          "variable-tracking",
          "c4163b89",
        ],
        [
          "common-words",
          "03bf026f",
        ],
        [
          "frequent-words",
          "0f967ea7",
        ],
        [
          "associative-recall",
          "f90ecc71",
        ],
      ]
    `);
    expect(tokenizer.decode(hay.tokens(70, 7))).toMatchInlineSnapshot(
      `" On Sunday the farmer painted the early candle beside the river. Late "`,
    );
  });

  test("differ between seeds and between tasks", () => {
    const keys = [0, 1, 2].map((seed) => passkey(context, hay, { length: 500, seed, depth: 0.5 }).answers[0]!.text);
    expect(new Set(keys).size).toBe(3);
    expect(retrievalTasks.single(context, hay, { length: 500, seed: 0 }).answers[0]!.text).not.toContain(keys[0]!);
  });

  test("put the needle where it should be, at the end of a sentence", () => {
    for (const depth of [0, 0.1, 0.5, 0.9, 1]) {
      const sample = passkey(context, hay, { length: 4000, seed: 3, depth });
      expect(Math.abs(sample.depths[0]! - depth)).toBeLessThan(0.05);
      const text = tokenizer.decode(sample.prompt);
      const at = text.indexOf(sample.needles[0]!);
      if (depth > 0 && depth < 1) expect(text.slice(0, at)).toMatch(/\. $/);
      expect(text.slice(at + sample.needles[0]!.length)).toMatch(depth < 1 ? /^ [A-Z]/ : /^ What is/);
    }
    expect(() => passkey(context, hay, { length: 4000, seed: 3, depth: 1.5 })).toThrow(/depth from 0 to 1/);
    expect(() => passkey(context, hay, { length: 100, seed: 3, depth: 0 })).toThrow(/length of at least \d+ tokens/);
  });

  test("take their hay from a text, another stretch for another seed, and say how much there was", () => {
    const text = Array.from({ length: 300 }, (_, i) => `Line ${i} of the book. `).join("");
    const book = textHaystack(tokenizer, tokenizer.encode(text, { addSpecial: false }));
    const [a, b] = [0, 1].map((seed) => passkey(context, book, { length: 1000, seed, depth: 0 }));
    expect(a!.fillRate).toBe(1);
    expect(tokenizer.decode(a!.prompt)).toMatch(/of the book\. Line/);
    expect(a!.prompt.slice(300, 400)).not.toEqual(b!.prompt.slice(300, 400));
    const short = passkey(context, book, { length: 20_000, seed: 0, depth: 0.5 });
    expect(short.fillRate).toBe(total(short) / 20_000);
    expect(short.fillRate).toBeLessThan(0.5);
  });

  test("of word lists ask for the words that come most often", () => {
    for (const make of [commonWords, frequentWords]) {
      for (const length of [1500, 6000]) {
        const sample = make(context, { length, seed: 5 });
        const counts = new Map<string, number>();
        const list = tokenizer.decode(sample.prompt).split(": ")[1]!.split(" Which ")[0]!;
        for (const word of list.trim().split(" ")) counts.set(word, (counts.get(word) ?? 0) + 1);
        const ranked = [...counts].sort((a, b) => b[1] - a[1]);
        const top = ranked.slice(0, sample.answers.length);
        expect(new Set(top.map(([word]) => word))).toEqual(new Set(sample.answers.map(({ text }) => text)));
        // No tie between the last that counts and the next.
        expect(top.at(-1)![1]).toBeGreaterThan(ranked[sample.answers.length]![1]);
        for (const { text } of sample.distractors) expect(counts.get(text) ?? 0).toBeLessThan(top.at(-1)![1]);
      }
    }
    expect(() => commonWords(context, { length: 100, seed: 0 })).toThrow(/length of at least/);
  });

  test("of associative recall ask for one of the pairs, in the words of the training task", () => {
    for (const [length, pair] of [
      [60, /([A-Za-z])(\d)/g],
      [114, /([A-Za-z])(\d)/g],
      [900, /([A-Za-z]{2})(\d)/g],
    ] as const) {
      const sample = retrievalTasks["associative-recall"](context, hay, { length, seed: 3 });
      const [, pairs, key] = /^recall:(.*)\?([A-Za-z]+)$/.exec(tokenizer.decode(sample.prompt))!;
      const held = new Map(Array.from(pairs!.matchAll(pair), ([, name, value]) => [name, value]));
      expect([...held].flat().join("")).toBe(pairs);
      expect(sample.answers.map(({ text }) => text)).toEqual([held.get(key)]);
      expect(total(sample)).toBeGreaterThan(length - 3);
      expect([...held.keys()].indexOf(key) / (held.size - 1)).toBe(sample.depths[0]);
    }
    const most = retrievalTasks["associative-recall"](context, hay, { length: 20_000, seed: 3 });
    expect(most.fillRate).toBe((7 + 2704 * 3 + 4) / 20_000);
    expect(() => retrievalTasks["associative-recall"](context, hay, { length: 10, seed: 3 })).toThrow(
      /associative-recall: expected a length of at least \d+ tokens, got 10/,
    );
  });

  test("of variable tracking hand one value on, each from the one before", () => {
    const sample = retrievalTasks["variable-tracking"](context, hay, { length: 3000, seed: 1 });
    const held = new Map<string, string>();
    const text = tokenizer.decode(sample.prompt);
    for (const [, name, number, from] of text.matchAll(/VAR ([A-Z]{5}) = (?:(\d+)|VAR ([A-Z]{5}))\./g)) {
      held.set(name!, number ?? held.get(from!)!);
    }
    const value = /have the value (\d+)\?/.exec(text)![1]!;
    const right = [...held].filter(([, one]) => one === value).map(([name]) => name);
    expect(new Set(right)).toEqual(new Set(sample.answers.map((one) => one.text)));
    expect(held.size).toBe(10);
  });
});

describe("scoring", () => {
  const tokenizer = byteTokenizer();
  const hay = generatedHaystack(tokenizer);
  const make = (task: keyof typeof retrievalTasks, bos: number | null = null) =>
    retrievalTasks[task]({ tokenizer, bos }, hay, { length: 3000, seed: 4 });

  /** A model that says of each continuation what a function says of its text, and keeps what it was asked. */
  function fake(of: (continuation: string, context: string) => [logLikelihood: number, isGreedy: boolean]) {
    const asked: { context: readonly number[]; options: Record<string, unknown> }[] = [];
    const model: ScoringModel = {
      score: async () => ({ negativeLogLikelihood: [] }),
      async loglikelihood(context, continuation, options) {
        asked.push({ context: Array.from(context), options: { ...options } });
        const [logLikelihood, isGreedy] = of(tokenizer.decode(continuation), tokenizer.decode(context));
        return { logLikelihood, isGreedy };
      },
    };
    return { model, asked };
  }
  const score = (model: ScoringModel, sample: RetrievalSample, strategy: EvaluationStrategy = none) =>
    scoreRetrieval(model, sample, strategy, { bos: null });

  test.each([
    "single",
    "multi-key",
    "multi-value",
    "multi-query",
    "variable-tracking",
    "common-words",
    "associative-recall",
  ] as const)("%s: a model that knows scores 1, one that prefers what is wrong 0", async (task) => {
    const sample = make(task);
    const right = sample.answers.map((one) => one.text);
    const knows = (text: string) => right.some((one) => text.endsWith(one));
    expect(await score(fake((text) => (knows(text) ? [-1, true] : [-5, false])).model, sample)).toEqual({
      exact: 1,
      logLikelihood: -1,
      rank: 1,
      candidates: sample.distractors.length + 1,
    });
    expect(await score(fake((text) => (knows(text) ? [-5, false] : [-1, true])).model, sample)).toMatchObject({
      exact: 0,
      rank: 1 + sample.distractors.filter((one) => !knows(one.text)).length,
    });
  });

  test("answers in free order count in any order, and once; in a fixed order only in it", async () => {
    const backwards = (sample: RetrievalSample) =>
      fake((text, context) => {
        const wanted = [...sample.answers].reverse().find((one) => !context.slice(-200).includes(one.text));
        return text.endsWith(wanted!.text) ? [-1, true] : [-2, false];
      }).model;
    expect((await score(backwards(make("multi-value")), make("multi-value"))).exact).toBe(1);
    expect((await score(backwards(make("multi-query")), make("multi-query"))).exact).toBeLessThan(1);
  });

  test("part of the answers is part of the score", async () => {
    const sample = make("multi-query");
    const two = sample.answers.slice(0, 2).map((one) => one.text);
    const { model } = fake((text) => [-1, two.some((one) => text.endsWith(one))]);
    expect((await score(model, sample)).exact).toBe(0.5);
  });

  test("later answers follow a comma, and every answer of a sample sees one table", async () => {
    const sample = make("multi-query");
    const { model, asked } = fake((text) => [-1, /^(, | )\d{7}$/.test(text)]);
    expect((await score(model, sample)).exact).toBe(1);
    expect(new Set(asked.map(({ options }) => options.length))).toEqual(new Set([3000]));
    expect(tokenizer.decode(asked.at(-1)!.context).slice(-20)).toMatch(/\d{7}, \d{7}$/);
  });

  test("under the windowed baseline the model sees the last tokens only, BOS first", async () => {
    const sample = make("single", 256);
    const { model, asked } = fake(() => [-1, true]);
    await scoreRetrieval(model, sample, parseEvaluationStrategy("window:512", lengths), { bos: 256 });
    for (const { context, options } of asked) {
      expect(context.length).toBe(512 - sample.answers[0]!.first.length);
      expect(context[0]).toBe(256);
      expect(context.slice(-50)).toEqual(sample.prompt.slice(-50));
      expect(options).not.toHaveProperty("length");
    }
  });

  test("greedy text counts the answers that it contains; of a model that only scores it cannot be asked", async () => {
    const sample = make("multi-value");
    const { model } = fake(() => [-1, false]);
    const decode = (tokens: readonly number[]) => tokenizer.decode(tokens);
    await expect(scoreRetrieval(model, sample, none, { bos: null, greedy: { decode } })).rejects.toThrow(/generates/);
    const text = ` ${sample.answers[2]!.text} and ${sample.answers[0]!.text}.`;
    const talks: ScoringModel = {
      ...model,
      async *generate() {
        for (const token of tokenizer.encode(text, { addSpecial: false })) yield { token };
      },
    };
    const { greedy, exact } = await scoreRetrieval(talks, sample, none, { bos: null, greedy: { decode } });
    expect({ contained: greedy!.contained, text: greedy!.text, exact }).toEqual({ contained: 0.5, text, exact: 0 });
  });
});

describe("effective length", () => {
  test("is the longest with all shorter ones, by each definition", () => {
    const bins = (["tie", "lower", "higher", "tie"] as const).map((verdict, i) => ({ length: 512 * 2 ** i, verdict }));
    expect(effectiveLengthByLoss(bins)).toEqual({ definition: "loss", length: 1024, atLeast: false });
    expect(effectiveLengthByLoss(bins.slice(0, 2))).toEqual({ definition: "loss", length: 1024, atLeast: true });
    expect(effectiveLengthByLoss([{ length: 512, verdict: "unknown" }]).length).toBeNull();
    const scores = [0.9, 0.8, 0.76, 0.3].map((score, i) => ({ length: 4096 * 2 ** i, score }));
    expect(effectiveLengthByScore(scores, 0.9)).toEqual({ definition: "relative-score", length: 8192, atLeast: false });
    expect(rulerEffectiveLength(scores)).toEqual({ definition: "ruler", length: 4096, atLeast: false });
    expect(effectiveLengthByScore([{ length: 100, score: 0 }], 0)).toEqual({
      definition: "relative-score",
      length: null,
      atLeast: false,
    });
  });
});
