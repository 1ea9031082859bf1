// Self-Extend as a model runs it, against transformers with attention by relative positions, pair by pair
// (reference/self_extend.py; the authors' own code agrees with it to 5e-7), and its laws.

import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import {
  type Backend,
  type LanguageModel,
  loadLanguageModel,
  onnxRuntimeBackend,
  referenceBackend,
} from "../../src/engine/index.ts";
import { checkpoint, ggufCheckpoints } from "../support/checkpoints.ts";

interface Case {
  readonly groupSize: number;
  readonly neighborWindow: number;
  readonly losses: readonly number[];
}
const golden: { readonly tokens: readonly number[]; readonly families: Readonly<Record<string, readonly Case[]>> } =
  JSON.parse(readFileSync(new URL("../fixtures/self-extend.json", import.meta.url), "utf8"));
const { tokens } = golden;
const families = Object.keys(golden.families);
const scalingOf = ({ groupSize, neighborWindow }: Case): string => `self-extend:${groupSize}:${neighborWindow}`;

function furthest(a: ArrayLike<number>, b: ArrayLike<number>): number {
  expect(a.length).toBe(b.length);
  return Math.max(...Array.from(a, (x, i) => Math.abs(x - b[i]!)));
}

async function losses(model: LanguageModel, ids: readonly number[], scaling: string, chunkSize?: number) {
  const options = { scaling, ...(chunkSize === undefined ? {} : { chunkSize }) };
  return (await model.score(ids, options)).negativeLogLikelihood;
}

describe("every token's loss is that of attention by relative positions, below and beyond the trained length", () => {
  test("of seven families", () => {
    expect(families).toEqual(["llama", "qwen3", "gpt_neox", "cohere", "smollm3", "gemma2", "gemma3"]);
  });

  test.each(families)("%s", async (family) => {
    await using model = await loadLanguageModel(checkpoint(family).folder);
    for (const one of golden.families[family]!) {
      expect(furthest(await losses(model, tokens, scalingOf(one)), one.losses)).toBeLessThan(2e-4);
    }
  });

  test("llama on the reference backend", async () => {
    await using model = await loadLanguageModel(checkpoint("llama").folder, { backend: referenceBackend });
    const one = golden.families.llama![0]!;
    expect(furthest(await losses(model, tokens, scalingOf(one)), one.losses)).toBeLessThan(2e-4);
  });

  test("of quantised blocks, whose products are otherwise one for query, key and value: as of their floats", async () => {
    const { path } = ggufCheckpoints("llama").find(({ kind }) => kind === "q8_0")!;
    await using blocks = await loadLanguageModel(path);
    await using floats = await loadLanguageModel(path, { precision: "float32" });
    expect(blocks.precision).toBe("quantized");
    const scaling = "self-extend:4:16";
    const [a, b] = [await losses(blocks, tokens, scaling), await losses(floats, tokens, scaling)];
    expect(furthest(a, b)).toBeLessThan(2e-4);
  });
});

describe("laws", () => {
  test("the size of chunks and what the cache holds change nothing", async () => {
    await using model = await loadLanguageModel(checkpoint("llama").folder);
    const whole = await losses(model, tokens, "self-extend:4:16");
    for (const chunkSize of [1, 7, 64]) {
      // Another map in between: the cache's key is another.
      await losses(model, tokens.slice(0, 50), "self-extend:2:16");
      expect(furthest(await losses(model, tokens, "self-extend:4:16", chunkSize), whole)).toBeLessThan(5e-5);
    }
  });

  test("decoding over the cache gives the text of full passes", async () => {
    await using model = await loadLanguageModel(checkpoint("llama").folder);
    const scaling = "self-extend:4:16";
    const text: number[] = [];
    for await (const { token } of model.generate(tokens.slice(0, 80), { scaling, maxTokens: 12 })) text.push(token);
    const full: number[] = [];
    await using fresh = await loadLanguageModel(checkpoint("llama").folder);
    while (full.length < text.length) {
      // Nothing of the pass before begins alike: the whole text runs anew.
      await losses(fresh, [9, 8, 7], scaling);
      const ids = [...tokens.slice(0, 80), ...full];
      for await (const { token } of fresh.generate(ids, { scaling, maxTokens: 1 })) full.push(token);
    }
    expect(text).toEqual(full);
    expect(text.length).toBe(12);
  });

  test.each(["llama", "gemma3"])(
    "%s: groups of one, and windows that hold the whole text, are no scaling",
    async (family) => {
      await using model = await loadLanguageModel(checkpoint(family).folder);
      const plain = await losses(model, tokens, "none");
      expect(furthest(await losses(model, tokens, "self-extend:1:16"), plain)).toBeLessThan(5e-5);
      const short = tokens.slice(0, 40);
      const [a, b] = [await losses(model, short, "self-extend:4:40"), await losses(model, short, "none")];
      expect(furthest(a, b)).toBeLessThan(5e-5);
      // A smaller one, and it is something else.
      expect(furthest(await losses(model, short, "self-extend:4:30"), b)).toBeGreaterThan(1e-4);
    },
  );

  test("the window is a quarter of the trained length where none is named, and a result says it", async () => {
    await using model = await loadLanguageModel(checkpoint("llama").folder);
    expect(await losses(model, tokens, "self-extend:4")).toEqual(await losses(model, tokens, "self-extend:4:16"));
    const { positions } = await model.score(tokens, { scaling: "self-extend:4" });
    expect(positions).toMatchObject([
      { encoding: "self-extend", rope: { ropeType: "default" }, map: { groupSize: 4, neighborWindow: 16 } },
    ]);
  });
});

describe("what it costs", () => {
  /** ONNX Runtime, with how many programs it loaded and the weights that came as numbers. */
  function counted(): { readonly backend: Backend; readonly loads: number[] } {
    const loads: number[] = [];
    const own = onnxRuntimeBackend();
    const load: Backend["load"] = (graph, weights, options) => {
      const sources = weights instanceof Map ? [...weights.values()] : Object.values(weights ?? {});
      loads.push(sources.filter((source) => !("file" in source)).length);
      return own.load(graph, weights, options);
    };
    return { backend: { ...own, load }, loads };
  }

  test("nothing until it is asked for; then one more program for every size, over weights that stay in their file", async () => {
    const { backend, loads } = counted();
    await using model = await loadLanguageModel(checkpoint("llama").folder, { backend });
    await losses(model, tokens, "yarn:4");
    expect(loads).toEqual([0]);
    await Promise.all([losses(model, tokens, "self-extend:4:16"), losses(model, tokens, "self-extend:8:32")]);
    await losses(model, tokens, "self-extend:2");
    expect(loads).toEqual([0, 0]);
  });

  test("a program that cannot be loaded is an error of that call, and of no later one", async () => {
    const { backend } = counted();
    let fails = false;
    const load: Backend["load"] = (...parts) =>
      fails ? Promise.reject(new RangeError("no room")) : backend.load(...parts);
    await using model = await loadLanguageModel(checkpoint("llama").folder, { backend: { ...backend, load } });
    fails = true;
    await expect(losses(model, tokens, "self-extend:4")).rejects.toThrow(/no room/);
    fails = false;
    expect((await losses(model, tokens, "self-extend:4")).length).toBe(tokens.length - 1);
  });
});

describe("what it does not fit is refused before any work", () => {
  test.each([
    ["bloom", "self-extend:4", /rotary positions, got one with alibi/],
    ["gpt2", "self-extend:4", /rotary positions, got one with learned/],
    ["mistral", "self-extend:4", /see the whole context.*window/],
    ["llama", "self-extend:4:64", /neighborWindow below trainedLength 64, got 64/],
    ["llama", "self-extend", /self-extend:GROUP or self-extend:GROUP:WINDOW.*got "self-extend"/],
    ["llama", "self-extend:0", /integers of at least 1/],
    ["llama", "self-extend:2.5", /integers of at least 1/],
    ["llama", "self-extend:4:16:2", /self-extend:GROUP:WINDOW/],
  ])("%s, %s", async (family, scaling, message) => {
    const { backend, loads } = (() => {
      const own = onnxRuntimeBackend();
      const loads: string[] = [];
      const load: Backend["load"] = (graph, ...rest) => {
        loads.push(graph.name);
        return own.load(graph, ...rest);
      };
      return { backend: { ...own, load }, loads };
    })();
    await using model = await loadLanguageModel(checkpoint(family).folder, { backend });
    await expect(losses(model, tokens.slice(0, 20), scaling)).rejects.toThrow(message);
    expect(loads.length).toBe(1);
  });
});
