// Layers with a window keep caches of their own, as long as the window needs: losses and text are those of one pass over
// everything, whatever the chunks, the tables, and the order of calls; the memory does not grow with the text.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type Backend,
  type LanguageModel,
  loadLanguageModel,
  onnxRuntimeBackend,
  referenceBackend,
  type Session,
} from "../../src/engine/index.ts";
import { checkpoint } from "../support/checkpoints.ts";
import { largestDifference } from "../support/largest-difference.ts";
import { seededRandom } from "../support/random-ids.ts";

const window = 24;
/** Longer than the caches by far; one pass over all of it fits a chunk of the default size. */
const length = 300;
const ids = seededRandom(3, length, 96);

/** A backend that keeps its sessions in sight. */
function watched(backend: Backend, sessions: Session[]): Backend {
  return {
    ...backend,
    async load(...given) {
      const session = await backend.load(...given);
      sessions.push(session);
      return session;
    },
  };
}

// Sliding and full layers with tables of their own; sliding layers alone; sliding rotary and full ones without positions.
const families = ["gemma3", "mistral", "cohere2"];

describe.each([
  ["reference", referenceBackend],
  ["onnxruntime-node", onnxRuntimeBackend()],
] as const)("%s", (name, backend) => {
  const isSlow = name === "reference";
  const models = new Map<string, LanguageModel>();
  const whole = new Map<string, Float64Array>();
  const tokens = isSlow ? ids.slice(0, 140) : ids;
  beforeAll(async () => {
    for (const family of families) {
      models.set(family, await loadLanguageModel(checkpoint(family).folder, { backend }));
      await using alone = await loadLanguageModel(checkpoint(family).folder, { backend });
      whole.set(family, (await alone.score(tokens)).negativeLogLikelihood);
    }
  }, 120_000);
  afterAll(async () => {
    for (const model of models.values()) await model.dispose();
  });

  test.each(families)("%s: chunks of any size give the losses of one pass", async (family) => {
    for (const chunkSize of isSlow ? [17] : [1, 17, 64, 100]) {
      const { negativeLogLikelihood } = await models.get(family)!.score(tokens, { chunkSize });
      expect(largestDifference(negativeLogLikelihood, whole.get(family)!)).toBeLessThan(2e-5);
      // Other tables in between.
      await models.get(family)!.score(tokens.slice(0, 50), { drop: true, chunkSize });
    }
  });

  test.each(families)("%s: text is taken up a little before its end, or from its start", async (family) => {
    const model = models.get(family)!;
    const losses = whole.get(family)!;
    await model.score(tokens, { chunkSize: 16 });
    for (const cut of [tokens.length - 4, tokens.length - 20, 60, 2 * window + 1, tokens.length - 2]) {
      const { logLikelihood } = await model.loglikelihood(tokens.slice(0, cut), tokens.slice(cut, cut + 2), {
        chunkSize: 16,
      });
      expect(logLikelihood + losses[cut - 1]! + losses[cut]!).toBeCloseTo(0, 4);
    }
  });

  test.skipIf(isSlow).each(families)("%s: decoding is that of full passes", async (family) => {
    const model = models.get(family)!;
    const text = [...tokens.slice(0, 70)];
    const logProbabilities: number[] = [];
    for await (const step of model.generate(text.slice(), { maxTokens: 100, logProbabilities: true })) {
      text.push(step.token);
      logProbabilities.push(step.logProbability!);
    }
    await using alone = await loadLanguageModel(checkpoint(family).folder, { backend });
    const { negativeLogLikelihood } = await alone.score(text);
    expect(
      largestDifference(
        logProbabilities,
        negativeLogLikelihood.slice(69).map((x) => -x),
      ),
    ).toBeLessThan(2e-5);
  });

  test.skipIf(isSlow)("a table of its own for each prefix changes nothing", async () => {
    const model = models.get("mistral")!;
    const options = { scaling: "dynamic:4", chunkSize: 16 } as const;
    const growing = await model.score(tokens.slice(0, 120), { ...options, reading: "growing" });
    await using alone = await loadLanguageModel(checkpoint("mistral").folder, { backend });
    for (const end of [80, 100, 120]) {
      const { negativeLogLikelihood } = await alone.score(tokens.slice(0, end), {
        ...options,
        length: end - 1,
        chunkSize: 512,
      });
      expect(growing.negativeLogLikelihood[end - 2]).toBeCloseTo(negativeLogLikelihood.at(-1)!, 4);
    }
  });
});

// All layers slide, and the table of a text of more than 64 tokens is another one (Phi-3 with a window).
test("longrope's boundary is crossed over caches of windows: each token sees the table of its whole text", async () => {
  const { folder } = checkpoint("phi3-window");
  await using model = await loadLanguageModel(folder);
  await using alone = await loadLanguageModel(folder);
  expect(model.spec.layers.map(({ attention }) => attention.window)).toEqual(model.spec.layers.map(() => window));
  const full = async (text: number[], end: number): Promise<number> =>
    (await alone.score(text.slice(0, end), { length: end - 1 })).negativeLogLikelihood.at(-1)!;
  const text = [...ids.slice(0, 40)];
  const logProbabilities: number[] = [];
  for await (const step of model.generate(text.slice(), { maxTokens: 60, chunkSize: 16, logProbabilities: true })) {
    text.push(step.token);
    logProbabilities.push(step.logProbability!);
  }
  const growing = await model.score(text, { reading: "growing", chunkSize: 16 });
  expect(growing.reading).toBe("growing");
  for (const end of [41, 58, 64, 65, 66, 67, 90, 100]) {
    const loss = await full(text, end);
    expect(-logProbabilities[end - 41]!, `decoding, ${end}`).toBeCloseTo(loss, 4);
    expect(growing.negativeLogLikelihood[end - 2], `scoring, ${end}`).toBeCloseTo(loss, 4);
  }
  // The two tables differ: the short one a token too long would show.
  const short = await alone.score(text.slice(0, 66), { length: 64 });
  expect(Math.abs(short.negativeLogLikelihood.at(-1)! - (await full(text, 66)))).toBeGreaterThan(0.01);
  // Back below the boundary, and over it again.
  await model.score(text.slice(0, 50), { chunkSize: 16 });
  const again = await model.score(text, { reading: "growing", chunkSize: 7 });
  expect(largestDifference(again.negativeLogLikelihood, growing.negativeLogLikelihood)).toBeLessThan(2e-5);
});

test("caches of layers with a window do not grow with the text", async () => {
  const sessions: Session[] = [];
  const backend = watched(onnxRuntimeBackend(), sessions);
  await using model = await loadLanguageModel(checkpoint("gemma3").folder, { backend });
  await model.score(ids, { chunkSize: 32 });
  const rows = async (name: string): Promise<number> => (await sessions[0]!.readState(name)).shape[2]!;
  const sliding = model.spec.layers.findIndex(({ attention }) => attention.window !== null);
  const full = model.spec.layers.findIndex(({ attention }) => attention.window === null);
  expect(await rows(`key.${full}`)).toBeGreaterThanOrEqual(length - 1);
  expect(await rows(`key.${sliding}`)).toBeLessThan(5 * window);
});
