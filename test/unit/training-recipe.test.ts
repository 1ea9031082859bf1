// Recipes: what they say, what they refuse, and that a run is a function of its recipe: interrupted, dropped, imported.

import { describe, expect, test } from "vitest";
import { onnxRuntimeBackend } from "../../src/engine/index.ts";
import { memorySource, modelFiles, openTokenizer } from "../../src/formats/index.ts";
import {
  type BatchSource,
  bytesWithBos,
  exportModel,
  exportOptionsOf,
  type RecipeOptions,
  type RunCheckpoint,
  readTrainable,
  recipeFrom,
  recipeSizes,
  runRecipe,
  type TrainingRow,
  tokenBatches,
  trainingPlan,
  trainingRecipe,
  validationBatches,
} from "../../src/training/index.ts";

const tiny = {
  hiddenSize: 32,
  numLayers: 2,
  numHeads: 2,
  intermediateSize: 64,
  length: 16,
  batchSize: 2,
  steps: 12,
  warmup: 2,
  decay: 2,
} as const;
const text = Uint8Array.from({ length: 4000 }, (_, i) => 97 + ((i * i + 3 * (i % 7)) % 26));
const backend = onnxRuntimeBackend({ provider: "node" });
const dataOf = (seed = 0): BatchSource => tokenBatches(text, { batchSize: 2, length: 16, seed });

async function trained(options: RecipeOptions, stopAfter?: number, checkpoint?: RunCheckpoint) {
  const rows: TrainingRow[] = [];
  const controller = new AbortController();
  const result = await runRecipe({
    recipe: trainingRecipe({ ...tiny, ...options }),
    backend,
    data: dataOf(),
    threads: 1,
    validation: validationBatches(text, { length: 16, tokens: 64, batchSize: 2 }),
    rowEvery: 5,
    signal: controller.signal,
    onRow: (row) => void rows.push(row),
    onStep: ({ step }) => (step === stopAfter ? controller.abort() : undefined),
    ...(checkpoint === undefined ? {} : { checkpoint }),
  });
  return { ...result, rows };
}

const bytesOf = ({ weights }: RunCheckpoint) =>
  [...weights].map(([name, { data }]) => [
    name,
    Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64"),
  ]);

describe("a recipe", () => {
  test.each(Object.keys(recipeSizes) as (keyof typeof recipeSizes)[])(
    "of size %s has the parameters that it says",
    (size) => {
      const { spec } = trainingPlan(trainingRecipe({ encoding: ["none"], size }));
      const { hiddenSize: c, intermediateSize: f, numLayers } = recipeSizes[size];
      // Embedding (tied), per layer q, k, v, o, gate, up, down and two norms, the last norm.
      const parameters = 256 * c + numLayers * (4 * c * c + 3 * c * f + 2 * c) + c;
      const said = { tiny: 0.2e6, small: 1.0e6, medium: 4.8e6 }[size];
      expect(Math.abs(parameters / said - 1)).toBeLessThan(0.1);
      expect(spec.layers.length).toBe(numLayers);
    },
  );

  test("repeats a pattern over the layers", () => {
    const { spec, encodings } = trainingPlan(
      trainingRecipe({ encoding: ["rope", "rope", "none"], ...tiny, numLayers: 5 }),
    );
    expect(spec.layers.map(({ group }) => encodings[group])).toMatchObject(
      ["query-key", "query-key", "none", "query-key", "query-key"].map((site) => ({ site })),
    );
  });

  test("of sines has embeddings as large as they are, and only then", () => {
    const scale = (encoding: RecipeOptions["encoding"]) =>
      trainingPlan(trainingRecipe({ encoding, ...tiny })).spec.embedding.scale;
    expect(scale(["sinusoidal"])).toBe(Math.sqrt(32));
    expect(scale(["rope"])).toBe(1);
  });

  test.each([
    [{ encoding: ["rope"], tokens: 5, steps: 5 }, "expected steps or tokens, got both"],
    [{ encoding: [] }, "expected 1 to 2 encodings, got 0"],
    [{ encoding: ["rope", "none", "rope"] }, "expected 1 to 2 encodings, got 3"],
    [{ encoding: ["rpoe"] }, "expected an encoding of none, "],
    [{ encoding: ["rope"], hidenSize: 4 }, "expected keys of a recipe, got hidenSize"],
    [{ encoding: ["rope"], size: "huge" }, "expected a size of tiny, small, medium, got huge"],
    [{ encoding: ["rope"], learningRate: Number.NaN }, "expected learningRate above 0, got NaN"],
    [{ encoding: ["rope"], warmup: 11, decay: 2 }, "expected warmup and decay within 12 steps, got 11 and 2"],
    [{ encoding: ["rope"], dropAt: 13 }, "expected dropAt to be a step of 0 .. 12, got 13"],
    [{ encoding: ["fire"], dropAt: 3 }, "expected a fixed encoding to drop, got fire"],
    [
      { encoding: ["rope"], initialization: "xavier" },
      "expected initialization to be width-scaled or gpt2, got xavier",
    ],
    [{ encoding: ["rope"], blocks: "gpt2", intermediateSize: 64 }, "an MLP of 128"],
    [{ encoding: ["none"], scaling: { ropeType: "linear", ropeTheta: 10000, factor: 2 } }, "expected RoPE in a recipe"],
  ])("%j is refused", (options, message) => {
    expect(() => trainingRecipe({ ...tiny, ...options } as never)).toThrow(message);
  });
});

describe("a run", () => {
  test("that was stopped between two rows gives the same rows and weights as one that was not", async () => {
    const whole = await trained({ encoding: ["rope"] });
    const first = await trained({ encoding: ["rope"] }, 7);
    expect(first.finished).toBe(false);
    expect(first.checkpoint.step).toBe(7);
    expect(first.checkpoint.pendingLosses.length).toBe(2);
    const second = await trained({ encoding: ["rope"] }, undefined, first.checkpoint);
    expect([...first.rows, ...second.rows]).toEqual(whole.rows);
    expect(bytesOf(second.checkpoint)).toEqual(bytesOf(whole.checkpoint));
  });

  test("that drops its encoding is the one that does not up to that step, and goes on as one without", async () => {
    const plain = await trained({ encoding: ["rope"] }, 6);
    const dropped = await trained({ encoding: ["rope"], dropAt: 6 }, 6);
    expect(bytesOf(dropped.checkpoint)).toEqual(bytesOf(plain.checkpoint));
    const on = await trained({ encoding: ["rope"], dropAt: 6 }, undefined, plain.checkpoint);
    const none = await trained({ encoding: ["none"] }, undefined, plain.checkpoint);
    // Rotation by nothing rounds nothing: cos 1 and sin 0 give back the same numbers.
    expect(bytesOf(on.checkpoint)).toEqual(bytesOf(none.checkpoint));
    const kept = await trained({ encoding: ["rope"] }, undefined, plain.checkpoint);
    expect(bytesOf(on.checkpoint)).not.toEqual(bytesOf(kept.checkpoint));
  });
});

describe("a model that is trained on", () => {
  test.each([
    [["rope"], {}],
    [["rope", "none"], {}],
    [["rope"], { queryKeyNorm: true }],
    [["learned"], { blocks: "gpt2", intermediateSize: 128 }],
    [["alibi"], { blocks: "mpt", intermediateSize: 128 }],
    [["alibi"], { blocks: "bloom", intermediateSize: 128 }],
    [["sinusoidal"], {}],
    [["t5"], {}],
    [["fire"], {}],
    [["kerple-power"], {}],
  ] as const)("%j %j is read back as the recipe and the weights that it was made of", async (encoding, more) => {
    const recipe = trainingRecipe({ ...tiny, encoding, ...more, steps: 2, warmup: 0, decay: 0 });
    const { checkpoint } = await runRecipe({ recipe, backend, data: dataOf(), threads: 1 });
    const { spec, encodings } = trainingPlan(recipe);
    const files = exportModel({ spec, encodings, weights: checkpoint.weights, trainedLength: recipe.length });
    const sources = [...files].map(([name, bytes]) => memorySource(name, bytes));
    const read = await readTrainable(modelFiles(sources, "again"));
    const { steps, warmup, decay, batchSize } = recipe;
    expect(recipeFrom(read, { steps, warmup, decay, batchSize })).toEqual(recipe);
    expect(bytesOf({ ...checkpoint, weights: read.weights }).sort()).toEqual(bytesOf(checkpoint).sort());
  });
});

describe("a BOS in front of every sequence", () => {
  const batches = (bosTokenId: number | null) => tokenBatches(text, { batchSize: 2, length: 16, seed: 3, bosTokenId });
  const rowOf = ({ data }: { data: BigInt64Array }) => Array.from(data.subarray(16, 32), Number);

  test("is fed first, and the window's first token is the first target", () => {
    const plain = batches(null).batch(5);
    const marked = batches(256).batch(5);
    const window = rowOf(plain.tokens);
    expect(rowOf(marked.tokens)).toEqual([256, ...window.slice(0, 15)]);
    expect(rowOf(marked.targets)).toEqual(window);
    const [held] = validationBatches(text, { length: 16, tokens: 64, batchSize: 2, bosTokenId: 256 });
    expect(rowOf(held!.tokens)[0]).toBe(256);
    expect(rowOf(held!.targets).slice(0, 15)).toEqual(rowOf(held!.tokens).slice(1));
  });

  test("stands in the exported model, and a model that is read again has it", async () => {
    const { recipe, checkpoint } = await (async () => {
      const recipe = trainingRecipe({ ...tiny, ...bytesWithBos, encoding: ["none"], steps: 2, warmup: 0, decay: 0 });
      const data = tokenBatches(text, { batchSize: 2, length: 16, seed: 0, bosTokenId: recipe.bosTokenId });
      return { recipe, ...(await runRecipe({ recipe, backend, data, threads: 1 })) };
    })();
    const files = exportModel(exportOptionsOf(recipe, checkpoint));
    const json = (name: string) => JSON.parse(new TextDecoder().decode(files.get(name)));
    expect(json("config.json").bos_token_id).toBe(256);
    expect(json("tokenizer_config.json").bos_token).toBe("<bos>");
    const source = modelFiles(
      [...files].map(([file, bytes]) => memorySource(file, bytes)),
      "marked",
    );
    expect((await openTokenizer(source)).encode("a")).toEqual([256, 97]);
    const { model } = await readTrainable(source);
    expect([model.vocabSize, model.bosTokenId]).toEqual([257, 256]);
  });

  test("is refused where the vocabulary has no such id", () => {
    expect(() => trainingRecipe({ ...tiny, encoding: ["none"], bosTokenId: 256 })).toThrow(
      "expected bosTokenId to be an id below 256, got 256",
    );
  });
});
