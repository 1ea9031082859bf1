// What a loaded model promises beside right numbers: refusals before any work, one load for every strategy, a cache that
// is never wrong, clear errors for broken weights.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { alibi, rope } from "../../src/encodings/index.ts";
import {
  type Backend,
  DisposedError,
  type GenerateOptions,
  type LanguageModel,
  loadLanguageModel,
  onnxRuntimeBackend,
  type Session,
} from "../../src/engine/index.ts";
import { FormatError } from "../../src/formats/index.ts";
import { MissingWeightError } from "../../src/graph/index.ts";
import { readTables } from "../../src/models/index.ts";
import { random } from "../../src/tensor/index.ts";
import { checkpoint } from "../support/checkpoints.ts";
import { tinyWeights, writeTinyModel } from "../support/tiny-model.ts";

let folder: string;
let path: string;
let model: LanguageModel;
let loads = 0;
let runs = 0;
/** Outputs that left the graph. */
const fetched = new Set<string>();

/** ONNX Runtime, counted. */
const counted = (): Backend => {
  const backend = onnxRuntimeBackend();
  return {
    ...backend,
    async load(graph, weights, options) {
      loads++;
      const session = await backend.load(graph, weights, options);
      const run: Session["run"] = (feeds, fetches) => {
        runs++;
        for (const name of fetches ?? []) fetched.add(name);
        return session.run(feeds, fetches);
      };
      return new Proxy(session, {
        get(target, key) {
          if (key === "run") return run;
          const value = Reflect.get(target, key, target);
          return typeof value === "function" ? value.bind(target) : value;
        },
      });
    },
  };
};

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "longhand-model-"));
  path = writeTinyModel(join(folder, "tiny"));
  model = await loadLanguageModel(path, { backend: counted() });
});
afterAll(async () => {
  await model.dispose();
  rmSync(folder, { recursive: true, force: true });
});

const stream = random(5);
const text = (length: number): number[] => Array.from({ length }, () => stream.integer(259));
const ids = text(100);

async function collect(of: LanguageModel, prompt: number[], options: Parameters<LanguageModel["generate"]>[1]) {
  const out: number[] = [];
  for await (const { token } of of.generate(prompt, options)) out.push(token);
  return out;
}

describe("one loaded model", () => {
  test("runs every strategy: no other session is loaded, and other numbers come out", async () => {
    const before = loads;
    const strategies = ["none", "linear:2", "ntk:4", "yarn:4", "llama3:8", "dynamic:4", "dynamic-yarn", "drop"];
    const seen = new Set<string>();
    for (const scaling of strategies) {
      const { negativeLogLikelihood } = await model.score(ids, { scaling });
      seen.add(Array.from(negativeLogLikelihood, (x) => x.toFixed(4)).join());
    }
    expect(loads).toBe(before);
    expect(seen.size).toBe(strategies.length);
  });

  test("starts a strategy at once at any length: rows are computed when a chunk needs them", () => {
    const tables = model.positions({ scaling: "yarn:512" }).tables(32768);
    const feeds = tables.feeds(0, 512);
    expect(feeds["cos.0"]!.shape).toEqual([32768, 8]);
    const cos = feeds["cos.0"]!.data as Float32Array;
    expect(cos[512 * 8 - 1]).toBeGreaterThan(0);
    expect(cos.subarray(512 * 8).every((x) => x === 0)).toBe(true);
    expect((tables.feeds(512, 1)["cos.0"]!.data as Float32Array)[512 * 8 + 7]).toBeGreaterThan(0);
  });

  test("says which positions, reading, precision and backend a result has", async () => {
    const score = await model.score(ids, { scaling: "dynamic:4" });
    expect(score).toMatchObject({ reading: "whole", precision: "float32", accuracyLevel: null });
    expect(score.backend).toBe("onnxruntime-node");
    expect(score.positions).toMatchObject([{ site: "query-key", encoding: "dynamic", layers: [0, 1] }]);
    expect((await model.score(ids, { scaling: "dynamic:4", reading: "growing" })).reading).toBe("growing");
    expect((await model.score(ids, { scaling: "yarn:4" })).reading).toBeNull();
  });
});

describe("positions", () => {
  test("drop up to the trained length is the identity rotation; beyond it queries grow by DroPE's temperature", async () => {
    const short = ids.slice(0, 64);
    const scored = async (tokens: number[], options: Parameters<LanguageModel["score"]>[1]) =>
      Array.from((await model.score(tokens, options)).negativeLogLikelihood);
    expect(await scored(short, { drop: true })).toEqual(await scored(short, { scaling: "drop" }));
    const long = await scored(ids, { drop: true });
    expect(long).not.toEqual(await scored(ids, { scaling: "drop" }));
    const temperature = { kind: "drope", coefficient: 0.103, trainedLength: 64 } as const;
    expect(long).toEqual(await scored(ids, { scaling: "drop", logitTemperature: temperature }));
    expect(await scored(ids, { drop: { coefficient: 0 } })).toEqual(await scored(ids, { scaling: "drop" }));
  });

  test("a table of one's own gives what its strategy gives", async () => {
    const expected = (await model.score(ids, { scaling: "linear:3" })).negativeLogLikelihood;
    const inverseFrequencies = Array.from({ length: 8 }, (_, i) => 10000 ** (-i / 8) / 3);
    const groups = [{ layers: [0, 1], inverseFrequencies, attentionFactor: 1 }];
    for (const table of [{ inverseFrequencies }, { groups }]) {
      const encodings = readTables(table, model.description);
      const { negativeLogLikelihood: got } = await model.score(ids, { encodings });
      got.forEach((x, i) => void expect(Math.abs(x - expected[i]!)).toBeLessThan(1e-5));
    }
  });

  test.each([
    ["a scaling and drop", { scaling: "yarn:4", drop: true }, /expected drop or a scaling, got both/],
    ["an unknown short form", { scaling: "yarm:4" }, /nearest: yarn/],
    [
      "an encoding of another site",
      { encodings: { 0: alibi({ numHeads: 4 }) } },
      /site query-key for group 0, got attention-bias/,
    ],
    [
      "an encoding of another width",
      {
        encodings: {
          0: rope({ headDim: 8, maxPositionEmbeddings: 64, rope: { ropeType: "default", ropeTheta: 1e4 } }),
        },
      },
      /expected 16 rotated channels in layout half, got 8/,
    ],
    ["a group that is not there", { encodings: { 3: alibi({ numHeads: 4 }) } }, /a group from 0 to 0, got 3/],
    [
      "layer types that are not there",
      { scaling: { full_attention: { rope_type: "linear", factor: 2 } } },
      /it has none/,
    ],
  ])("refuse %s before any run", async (_, options, message) => {
    const before = runs;
    await expect(model.score(ids, options)).rejects.toThrow(message);
    expect(runs).toBe(before);
  });

  test("a table file is checked", () => {
    const read = (value: unknown) => () => readTables(value, model.description);
    expect(read({ inverseFrequencies: [1, 2] })).toThrow(/to hold 8 numbers/);
    expect(read({ groups: [{ layers: [0], inverseFrequencies: [] }] })).toThrow(
      /the layers of a group \(\[0, 1\]\), got \[0\]/,
    );
    expect(read([])).toThrow(/expected an object/);
  });
});

describe("lengths and tokens", () => {
  test("past the capacity is an error before any work", async () => {
    await using small = await loadLanguageModel(path, { capacity: 50, backend: counted() });
    const before = runs;
    await expect(small.score(ids.slice(0, 51))).rejects.toThrow(/at most 50 tokens, the capacity/);
    await expect(small.generate(ids.slice(0, 51)).next()).rejects.toThrow(/at most 50 tokens/);
    expect(runs).toBe(before);
    expect((await small.score(ids.slice(0, 50))).negativeLogLikelihood.length).toBe(49);
    // The last token chosen needs no room.
    expect(await collect(small, ids.slice(0, 48), { maxTokens: 20 })).toHaveLength(3);
  });

  test("a learned table ends where it ends", async () => {
    await using gpt2 = await loadLanguageModel(checkpoint("gpt2").folder);
    const limit = gpt2.description.maxPositionEmbeddings!;
    const tokens = Array.from({ length: limit + 1 }, (_, i) => i % 90);
    await expect(gpt2.score(tokens)).rejects.toThrow(new RegExp(`at most ${limit} tokens`));
    expect((await gpt2.score(tokens.slice(0, limit))).negativeLogLikelihood.length).toBe(limit - 1);
    await expect(gpt2.score(tokens.slice(0, 9), { scaling: "yarn:2" })).rejects.toThrow(
      /rotary positions, got one with learned/,
    );
    // Dropped, there is no table to end.
    expect((await gpt2.score(tokens, { scaling: "drop" })).negativeLogLikelihood.length).toBe(limit);
  });

  test.each([
    ["a token past the vocabulary", [1, 259], /from 0 to 258, got 259 at index 1/],
    ["a negative token", [-1, 3], /got -1 at index 0/],
    ["one token", [1], /at least 2 tokens, got 1/],
  ])("%s is refused before any run", async (_, tokens, message) => {
    const before = runs;
    await expect(model.score(tokens)).rejects.toThrow(message);
    expect(runs).toBe(before);
  });
});

describe("long calls", () => {
  test("report progress and stop between chunks", async () => {
    const seen: number[] = [];
    const controller = new AbortController();
    const call = model.score(ids, {
      chunkSize: 16,
      signal: controller.signal,
      onProgress: ({ done, total }) => {
        seen.push(done);
        expect(total).toBe(99);
        if (done >= 48) controller.abort(new Error("enough"));
      },
    });
    await expect(call).rejects.toThrow("enough");
    expect(seen).toEqual([16, 32, 48]);
    // What an interrupted call left behind does not show.
    const [again, whole] = [await model.score(ids, { chunkSize: 7 }), await model.score(ids)];
    again.negativeLogLikelihood.forEach((x, i) => {
      expect(Math.abs(x - whole.negativeLogLikelihood[i]!)).toBeLessThan(1e-4);
    });
    await expect(model.score(ids, { signal: AbortSignal.abort(new Error("before")) })).rejects.toThrow("before");
  });

  test("calls at the same time do not disturb each other", async () => {
    const options = { maxTokens: 8 };
    const [a, b] = [ids.slice(0, 20), ids.slice(30, 60)];
    const alone = [await collect(model, a, options), await collect(model, b, options)];
    const score = (await model.score(ids)).negativeLogLikelihood;
    const [first, second, middle] = await Promise.all([
      collect(model, a, options),
      collect(model, b, options),
      model.score(ids),
    ]);
    expect([first, second]).toEqual(alone);
    middle.negativeLogLikelihood.forEach((x, i) => void expect(Math.abs(x - score[i]!)).toBeLessThan(1e-4));
  });

  test("after dispose every call says so", async () => {
    const gone = await loadLanguageModel(path);
    await gone.dispose();
    await gone.dispose();
    await expect(gone.score(ids)).rejects.toThrow(DisposedError);
    await expect(gone.generate(ids).next()).rejects.toThrow(DisposedError);
  });
});

describe("loglikelihood", () => {
  test("is the sum of the continuation's losses; choices after one context share it", async () => {
    const context = ids.slice(0, 40);
    const losses = (tokens: number[]) => model.score([...context, ...tokens]);
    let before = 0;
    for (const choice of [ids.slice(40, 45), ids.slice(50, 58)]) {
      before = runs;
      const { logLikelihood } = await model.loglikelihood(context, choice);
      expect(runs - before).toBe(1);
      const expected = -(await losses(choice)).negativeLogLikelihood.slice(39).reduce((sum, x) => sum + x, 0);
      expect(Math.abs(logLikelihood - expected)).toBeLessThan(1e-3);
    }
  });

  test("says whether the continuation is the greedy one", async () => {
    const context = ids.slice(0, 30);
    const greedy = await collect(model, context, { maxTokens: 5 });
    expect((await model.loglikelihood(context, greedy)).isGreedy).toBe(true);
    const other = [...greedy];
    other[3] = (other[3]! + 1) % 259;
    expect((await model.loglikelihood(context, other)).isGreedy).toBe(false);
    await expect(model.loglikelihood([], [1])).rejects.toThrow(/at least one token/);
  });
});

describe("generate", () => {
  test("the same seed gives the same text, another seed another", async () => {
    const options = { maxTokens: 24, temperature: 3 };
    const [a, b, c] = [
      await collect(model, [1], { ...options, seed: 1 }),
      await collect(model, [1], { ...options, seed: 1 }),
      await collect(model, [1], { ...options, seed: 2 }),
    ];
    expect(b).toEqual(a);
    expect(c).not.toEqual(a);
  });

  test("one likeliest token, or a tiny share of probability, is greedy whatever the temperature", async () => {
    const greedy = await collect(model, [1], { maxTokens: 12 });
    expect(await collect(model, [1], { maxTokens: 12, temperature: 5, topK: 1 })).toEqual(greedy);
    expect(await collect(model, [1], { maxTokens: 12, temperature: 5, topP: 1e-9 })).toEqual(greedy);
  });

  test("greedy, one id leaves the graph in place of logits, and the text is that of logits", async () => {
    const text = async (options: GenerateOptions): Promise<number[]> => {
      const out: number[] = [];
      fetched.clear();
      for await (const { token } of model.generate(ids, { ...options, maxTokens: 12 })) out.push(token);
      return out;
    };
    const greedy = await text({});
    expect([...fetched].sort()).toEqual(["likeliest", "logitSums"]);
    expect(await text({ logProbabilities: true })).toEqual(greedy);
    expect([...fetched]).toEqual(["logits"]);
    expect(await text({ temperature: 1, topK: 1 })).toEqual(greedy);
  });

  test("ends before a stop token, and gives log-probabilities when asked", async () => {
    const greedy = await collect(model, [1], { maxTokens: 12 });
    const end = greedy[6]!;
    expect(await collect(model, [1], { maxTokens: 12, stop: [end] })).toEqual(greedy.slice(0, greedy.indexOf(end)));
    const losses = (await model.score([1, ...greedy])).negativeLogLikelihood;
    let i = 0;
    for await (const { logProbability } of model.generate([1], { maxTokens: 12, logProbabilities: true })) {
      expect(Math.abs(logProbability! + losses[i++]!)).toBeLessThan(1e-4);
    }
    expect(i).toBe(12);
  });
});

describe("broken weights", () => {
  const broken = async (change: (weights: ReturnType<typeof tinyWeights>) => void, config = {}): Promise<unknown> => {
    const weights = tinyWeights();
    change(weights);
    const where = writeTinyModel(join(folder, `broken-${stream.bits()}`), weights, config);
    return loadLanguageModel(where).then(
      async (loaded) => {
        await loaded.dispose();
        return "loaded";
      },
      (error: unknown) => error,
    );
  };
  const name = "model.layers.1.mlp.up_proj.weight";

  test("a missing tensor is named", async () => {
    const error = await broken((weights) => void weights.delete(name));
    expect(error).toBeInstanceOf(MissingWeightError);
    expect((error as Error).message).toContain(JSON.stringify(name));
  });

  test("a tensor of another shape is named, with both shapes", async () => {
    const error = await broken((weights) => {
      weights.get(name)!.shape = [24, 64];
    });
    expect(error).toBeInstanceOf(RangeError);
    expect((error as Error).message).toMatch(/up_proj\.weight .* to give \[48, 32\], got \[24, 64\]/);
  });

  test("NaN is named with its place", async () => {
    const error = await broken((weights) => {
      weights.get(name)!.data[33] = Number.NaN;
    });
    expect(error).toBeInstanceOf(FormatError);
    expect((error as Error).message).toMatch(/up_proj\.weight", got NaN at \[1, 1\]/);
  });

  test("a head that the configuration says is there, and is not, is named", async () => {
    const error = await broken(() => undefined, { tie_word_embeddings: false });
    expect(error).toBeInstanceOf(MissingWeightError);
    expect((error as Error).message).toContain("lm_head.weight");
  });

  test("an activation that is unknown is named, with the nearest", async () => {
    const error = await broken(() => undefined, { hidden_act: "sillu" });
    expect(error).toBeInstanceOf(FormatError);
    expect((error as Error).message).toMatch(/"sillu"; did you mean "silu"/);
  });

  test("weights so large that a loss overflows are an error, not a number", async () => {
    const weights = tinyWeights();
    for (const value of weights.get("model.norm.weight")!.data.keys())
      weights.get("model.norm.weight")!.data[value] = 3e38;
    await using large = await loadLanguageModel(writeTinyModel(join(folder, "large"), weights));
    await expect(large.score(ids)).rejects.toThrow(/expected every loss to be finite/);
    await expect(large.generate(ids).next()).rejects.toThrow(/expected every sum of logits to be finite/);
    const withLogits = large.generate(ids, { logProbabilities: true });
    await expect(withLogits.next()).rejects.toThrow(/expected every logit to be finite/);
  });

  test("tensors that nothing reads are a finding", async () => {
    const weights = tinyWeights();
    weights.set("model.layers.0.self_attn.q_proj.bias", { shape: [64], data: new Float32Array(64) });
    weights.set("model.extra", { shape: [1], data: new Float32Array(1) });
    await using loaded = await loadLanguageModel(writeTinyModel(join(folder, "extra"), weights));
    expect(loaded.findings.find(({ code }) => code === "unused-tensors")).toMatchObject({
      got: "model.layers.0.self_attn.q_proj.bias, model.extra",
    });
  });
});
