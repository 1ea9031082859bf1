// Laws of models with an encoder and a decoder, on both backends: how work is cut changes nothing, positions are data,
// texts do not leak into each other, and what cannot be done is refused before any work.

import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { t5RelativeBias } from "../../src/encodings/index.ts";
import {
  type Backend,
  DisposedError,
  loadLanguageModel,
  loadSequenceToSequenceModel,
  onnxRuntimeBackend,
  referenceBackend,
  type SequenceToSequenceModel,
} from "../../src/engine/index.ts";
import { openCheckpoint } from "../../src/models/index.ts";
import { random } from "../../src/tensor/index.ts";
import { checkpoint, ggufCheckpoints } from "../support/checkpoints.ts";

const stream = random(7);
const ids = (count: number): number[] => Array.from({ length: count }, () => Math.floor(stream.uniform() * 96));

function largest(a: ArrayLike<number>, b: ArrayLike<number>): number {
  expect(a.length).toBe(b.length);
  return Math.max(...Array.from(a, (x, i) => Math.abs(x - b[i]!)));
}

async function losses(model: SequenceToSequenceModel, ...rest: Parameters<SequenceToSequenceModel["score"]>) {
  return (await model.score(...rest)).negativeLogLikelihood;
}

const backends: readonly [string, Backend][] = [
  ["onnxruntime", onnxRuntimeBackend()],
  ["reference", referenceBackend],
];

describe.each(backends)("%s", (name, backend) => {
  const families = ["t5", "umt5"] as const;
  const models = new Map<string, SequenceToSequenceModel>();
  beforeAll(async () => {
    for (const family of families) {
      models.set(family, await loadSequenceToSequenceModel(checkpoint(family).folder, { backend }));
    }
  }, 120_000);
  afterAll(async () => {
    for (const model of models.values()) await model.dispose();
  });

  test.each(families)("%s: losses are transformers'", async (family) => {
    const [golden] = checkpoint(family).cases;
    expect(
      largest(await losses(models.get(family)!, golden!.tokens, golden!.decoderTokens!), golden!.losses64),
    ).toBeLessThan(2e-4);
  });

  test.each(families)("%s: the size of chunks changes nothing, in either stack", async (family) => {
    const model = models.get(family)!;
    const [source, target] = [ids(45), ids(31)];
    const whole = await losses(model, source, target, { chunkSize: 64 });
    for (const chunkSize of [1, 7, 31]) {
      // Another text between, so that the encoder runs anew.
      await losses(model, ids(3), ids(2));
      expect(largest(await losses(model, source, target, { chunkSize }), whole)).toBeLessThan(3e-5);
    }
  });

  test("the bias is data: the learned buckets given as an encoding of one's own are the model's, zeros are drop", async () => {
    const model = models.get("t5")!;
    const opened = await openCheckpoint(checkpoint("t5").folder);
    const shape = [32, 2];
    const learned = async (prefix: string, bidirectional: boolean) =>
      t5RelativeBias({
        numHeads: 2,
        bidirectional,
        weights: await opened.readFloat32(`${prefix}layers.0.relativeBias.weight`, shape),
      });
    const own = { 0: await learned("encoder.", true), 1: await learned("", false) };
    await opened.close();
    const zeros = (bidirectional: boolean) =>
      t5RelativeBias({ numHeads: 2, bidirectional, weights: new Float32Array(64) });
    const [source, target] = [ids(40), ids(20)];
    const usual = await losses(model, source, target);
    const dropped = await losses(model, source, target, { drop: true });
    expect(largest(usual, dropped)).toBeGreaterThan(0.1);
    expect(largest(await losses(model, source, target, { encodings: own }), usual)).toBe(0);
    const none = { 0: zeros(true), 1: zeros(false) };
    expect(largest(await losses(model, source, target, { encodings: none }), dropped)).toBe(0);
    // One stack alone is neither.
    const half = await losses(model, source, target, { encodings: { 0: zeros(true) } });
    expect(largest(half, usual)).toBeGreaterThan(0.01);
    expect(largest(half, dropped)).toBeGreaterThan(0.01);
    const { positions } = await model.score(source, target, { encodings: { 0: zeros(true) } });
    expect(positions.map(({ layerType, encoding }) => [layerType, encoding])).toEqual([
      ["encoder", "t5-relative-bias"],
      ["decoder", "t5-relative-bias"],
    ]);
    expect((await model.score(source, target, { scaling: "drop" })).positions.map(({ encoding }) => encoding)).toEqual([
      "drop",
      "drop",
    ]);
  });

  test("the encoder sees its text's order and its end; without positions it sees neither order", async () => {
    const model = models.get("t5")!;
    const [source, target] = [ids(12), ids(6)];
    const turned = [...source].reverse();
    expect(largest(await losses(model, source, target), await losses(model, turned, target))).toBeGreaterThan(0.05);
    const drop = { drop: true };
    expect(largest(await losses(model, source, target, drop), await losses(model, turned, target, drop))).toBeLessThan(
      2e-5,
    );
    const changed = [...source.slice(0, -1), (source.at(-1)! + 1) % 96];
    expect(largest(await losses(model, source, target), await losses(model, changed, target))).toBeGreaterThan(1e-3);
  });

  test("texts under way at once are each alone's", async () => {
    const model = models.get("t5")!;
    const sources = [ids(9), ids(14)];
    const alone: number[][] = [];
    for (const source of sources) alone.push(await text(model, source));
    const [a, b] = sources.map((source) => model.generate(source, { maxTokens: 6 }));
    const both: number[][] = [[], []];
    for (let i = 0; i < 6; i++) {
      for (const [j, steps] of [a!, b!].entries()) {
        const step = await steps.next();
        if (!step.done) both[j]!.push(step.value.token);
      }
    }
    expect(both).toEqual(alone);
    const together = await Promise.all(sources.map((source) => losses(model, source, [0, 5, 6])));
    for (const [i, source] of sources.entries()) {
      expect(largest(together[i]!, await losses(model, source, [0, 5, 6]))).toBeLessThan(1e-5);
    }
  });

  test("a continuation's log-likelihood is the sum of its losses after the start token", async () => {
    const model = models.get("umt5")!;
    const [source, continuation] = [ids(20), ids(70)];
    const sum = (await losses(model, source, [0, ...continuation])).reduce((total, loss) => total + loss, 0);
    const got = await model.loglikelihood(source, continuation);
    expect(Math.abs(got.logLikelihood + sum)).toBeLessThan(1e-3);
    expect(got.isGreedy).toBe(false);
    const greedy = await text(model, source);
    expect((await model.loglikelihood(source, greedy)).isGreedy).toBe(true);
  });

  test("a call that is aborted leaves the model as good as new; progress ends at its total", async () => {
    const model = models.get("t5")!;
    const [source, target] = [ids(40), ids(20)];
    const whole = await losses(model, source, target);
    await losses(model, ids(4), ids(4));
    const controller = new AbortController();
    const aborted = model.score(source, target, {
      chunkSize: 8,
      signal: controller.signal,
      onProgress: ({ done }) => {
        if (done > 20) controller.abort(new Error("enough"));
      },
    });
    await expect(aborted).rejects.toThrow("enough");
    const seen: { done: number; total: number }[] = [];
    const again = await losses(model, source, target, { onProgress: (progress) => seen.push(progress) });
    expect(largest(again, whole)).toBeLessThan(1e-5);
    expect(seen.at(-1)).toEqual({ done: 59, total: 59 });
    expect(seen.every(({ done, total }, i) => total === 59 && (i === 0 || done >= seen[i - 1]!.done))).toBe(true);
  });

  if (name !== "onnxruntime") return;
  test("longer than a chunk: the reference agrees", async () => {
    const model = models.get("t5")!;
    await using slow = await loadSequenceToSequenceModel(checkpoint("t5").folder, { backend: referenceBackend });
    const [source, target] = [ids(700), ids(40)];
    expect(largest(await losses(model, source, target), await losses(slow, source, target))).toBeLessThan(1e-4);
    // A short text for a long answer.
    const [short, long] = [ids(1), ids(300)];
    expect(largest(await losses(model, short, long), await losses(slow, short, long))).toBeLessThan(1e-4);
  });
});

async function text(model: SequenceToSequenceModel, source: number[]): Promise<number[]> {
  const out: number[] = [];
  for await (const { token } of model.generate(source, { maxTokens: 6 })) out.push(token);
  return out;
}

test("sampling follows its seed, ends before a stop token, and says what tokens cost", async () => {
  await using model = await loadSequenceToSequenceModel(checkpoint("t5-gated").folder);
  const source = ids(10);
  const run = async (options: object) => {
    const out: { token: number; logProbability: number | null }[] = [];
    for await (const one of model.generate(source, { maxTokens: 8, ...options })) out.push(one);
    return out;
  };
  const warm = { temperature: 1.5, seed: 3 };
  const first = await run(warm);
  expect(await run(warm)).toEqual(first);
  expect(await run({ ...warm, seed: 4 })).not.toEqual(first);
  const greedy = await run({ logProbabilities: true });
  const tokens = greedy.map(({ token }) => token);
  const costs = (await model.score(source, [0, ...tokens])).negativeLogLikelihood;
  expect(
    largest(
      greedy.map(({ logProbability }) => -logProbability!),
      costs,
    ),
  ).toBeLessThan(1e-4);
  const stopped = await run({ stop: [tokens[3]!] });
  expect(stopped.map(({ token }) => token)).toEqual(tokens.slice(0, tokens.indexOf(tokens[3]!)));
});

test("quantised weights decode with rounded activations unless exactness is asked for, over the same states", async () => {
  const file = ggufCheckpoints("t5").find(({ kind }) => kind === "q8_0")!;
  await using model = await loadSequenceToSequenceModel(file.path, { decoding: true });
  const { tokens, decoderTokens } = file.cases[0]!;
  const run = async (exact: boolean) => {
    const steps = model.generate(tokens, {
      decoderTokens: decoderTokens!,
      maxTokens: 1,
      exact,
      logProbabilities: true,
    });
    const [step, end] = [await steps.next(), await steps.next()];
    if (step.done || !end.done) throw new Error("expected one token");
    return { logProbability: step.value.logProbability!, level: end.value.accuracyLevel };
  };
  const [exact, fast] = [await run(true), await run(false)];
  expect([exact.level, fast.level]).toEqual([0, 4]);
  expect(Math.abs(exact.logProbability - fast.logProbability)).toBeLessThan(0.5);
  expect(exact.logProbability).not.toBe(fast.logProbability);
  expect((await model.score(tokens, decoderTokens!)).accuracyLevel).toBe(0);
});

describe("refused before any work", () => {
  let model: SequenceToSequenceModel;
  beforeAll(async () => {
    model = await loadSequenceToSequenceModel(checkpoint("t5").folder, { capacity: 16 });
  });
  afterAll(() => model.dispose());

  test.each([
    ["no encoder tokens", [], [0, 1], {}, "encoder: expected at least one token, got none"],
    ["one decoder token", [1], [0], {}, "score: expected at least 2 decoder tokens, got 1"],
    ["a token outside", [96], [0, 1], {}, "encoder: expected tokens from 0 to 95, got 96 at index 0"],
    ["a decoder token outside", [1], [0, -1], {}, "decoder: expected tokens from 0 to 95, got -1 at index 1"],
    ["a long encoder text", ids(17), [0, 1], {}, "expected at most 16 tokens"],
    ["a long decoder text", [1], ids(17), {}, "expected at most 16 tokens"],
    ["a rotary scaling", [1], [0, 1], { scaling: "yarn:4" }, "expected a model with rotary positions, got one with t5"],
    ["two choices", [1], [0, 1], { scaling: "none", drop: true }, "expected drop or a scaling, got both"],
    ["a temperature", [1], [0, 1], { drop: { coefficient: 0.1 } }, "expected no temperature"],
    ["an unknown group", [1], [0, 1], { encodings: { 2: zeroBias(2) } }, "expected a group from 0 to 1, got 2"],
    ["other heads", [1], [0, 1], { encodings: { 0: zeroBias(3) } }, "an attention-bias encoding of 2 heads"],
  ] as const)("%s", async (_, source, target, options, message) => {
    await expect(model.score(source, target, options)).rejects.toThrow(message);
  });

  test("each kind of model by the other's loader", async () => {
    await expect(loadLanguageModel(checkpoint("t5").folder)).rejects.toThrow("use loadSequenceToSequenceModel");
    await expect(loadSequenceToSequenceModel(checkpoint("llama").folder)).rejects.toThrow(
      "expected a model with an encoder and a decoder, got a decoder alone",
    );
  });

  test("a model that is disposed of", async () => {
    const gone = await loadSequenceToSequenceModel(checkpoint("t5").folder);
    await gone.dispose();
    await gone.dispose();
    await expect(gone.score([1], [0, 1])).rejects.toThrow(DisposedError);
  });

  test.each([
    [{ num_layers: 4 }, /encoder\.block\.3\.layer\.0\.layer_norm\.weight|encoder\.block\.3/],
    [{ d_ff: 48 }, /DenseReluDense\.wi.* to give \[48, 32\], got \[64, 32\]/],
    [{ relative_attention_num_buckets: 16 }, /relative_attention_bias.* to give \[16, 2\], got \[32, 2\]/],
    [{ feed_forward_proj: "gated-relu-x" }, /feed_forward_proj/],
    [{ dense_act_fn: "reluu" }, /expected an activation that is known .*"reluu"/],
    [{ is_encoder_decoder: false }, /without decoder/],
  ])("a configuration of other weights: %j", async (change, message) => {
    const { folder } = checkpoint("t5");
    const other = mkdtempSync(join(tmpdir(), "longhand-t5-"));
    try {
      const config = JSON.parse(readFileSync(join(folder, "config.json"), "utf8"));
      writeFileSync(join(other, "config.json"), JSON.stringify({ ...config, ...change }));
      copyFileSync(join(folder, "model.safetensors"), join(other, "model.safetensors"));
      await expect(loadSequenceToSequenceModel(other)).rejects.toThrow(message);
    } finally {
      rmSync(other, { recursive: true });
    }
  });
});

function zeroBias(numHeads: number) {
  return t5RelativeBias({ numHeads, bidirectional: true, weights: new Float32Array(32 * numHeads) });
}
