// Models by name: from a folder, from an address, from beside the package; what a path and an unknown name give.

import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { loadLanguageModel } from "../../src/engine/index.ts";
import {
  builtInModel,
  builtInModelsAt,
  builtInModelsIn,
  builtInNames,
  openModel,
  openTokenizer,
  packagedModels,
} from "../../src/formats/index.ts";
import { exportModel } from "../../src/training/index.ts";
import { caseOptions, exportCases, exportWeights } from "../support/exports.ts";

const root = mkdtempSync(join(tmpdir(), "longhand-models-"));
const made = { "longhand-rope": "llama-rope", "longhand-alibi": "mpt-alibi", mine: "longhand-fire" } as const;

beforeAll(() => {
  for (const [name, from] of Object.entries(made)) {
    const one = exportCases.find((each) => each.name === from)!;
    const wide = { ...one, spec: { ...one.spec, vocabSize: 256 } };
    const files = exportModel({
      ...caseOptions(wide),
      weights: exportWeights(wide),
      tokenizer: { specialTokens: [] },
    });
    mkdirSync(join(root, name));
    for (const [file, bytes] of files) writeFileSync(join(root, name, file), bytes);
  }
  mkdirSync(join(root, "no-model"));
  vi.stubEnv("LONGHAND_MODELS", root);
});
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(root, { recursive: true });
});

describe("a built-in model", () => {
  test("is a folder with a config.json, the project's own first", async () => {
    expect(await builtInModelsIn(root).names()).toEqual(["longhand-rope", "longhand-alibi", "mine"]);
    expect(await builtInModelsIn(join(root, "absent")).names()).toEqual([]);
    expect(await builtInModelsIn(root).open("no-model")).toBeNull();
    expect(await builtInModelsIn(root).open("../mine")).toBeNull();
  });

  test("is what its name means wherever a model is asked for", async () => {
    const description = await openModel("longhand-rope");
    expect([description.name, description.modelType]).toEqual(["longhand-rope", "llama"]);
    const tokenizer = await openTokenizer("longhand-rope");
    await using model = await loadLanguageModel("longhand-rope");
    const { negativeLogLikelihood } = await model.score(tokenizer.encode("Call me"));
    await using folder = await loadLanguageModel(join(root, "longhand-rope"));
    const expected = await folder.score(tokenizer.encode("Call me"));
    expect(Array.from(negativeLogLikelihood)).toEqual(Array.from(expected.negativeLogLikelihood));
  });

  test("stands back behind a file of its name, and is none of a path's", async () => {
    // A built-in of the name of a folder that is here.
    mkdirSync(join(root, "docs"));
    cpSync(join(root, "mine"), join(root, "docs"), { recursive: true });
    await expect(openModel("docs")).rejects.toThrow(/docs: expected config.json in the folder/);
    rmSync(join(root, "docs"), { recursive: true });
    await expect(openModel("./longhand-rope")).rejects.toThrow(/got a path that does not exist/);
  });

  test("is named by whoever meant another", async () => {
    await expect(openModel("longhand-rop")).rejects.toThrow(
      /longhand-rop: expected a folder with config.json, .* got a path that does not exist; nearest: longhand-rope \(built in\)/,
    );
    await expect(loadLanguageModel("longhand-alibbi")).rejects.toThrow(/nearest: longhand-alibi \(built in\)/);
    await expect(builtInModel("longhand-ropes")).rejects.toThrow(
      /a built-in model, got another; nearest: longhand-rope/,
    );
    await expect(builtInModel("quite-another")).rejects.toThrow(/there are longhand-rope, longhand-alibi, mine/);
    await expect(builtInModel("x", builtInModelsIn("/absent"))).rejects.toThrow(/none in \/absent/);
  });

  test("lies beside the package where nothing else is said", async () => {
    vi.stubEnv("LONGHAND_MODELS", "");
    const { place } = await packagedModels();
    vi.stubEnv("LONGHAND_MODELS", root);
    expect(place).toBe(join(import.meta.dirname, "../../models"));
  });
});

describe("at an address", () => {
  const asked: string[] = [];
  const get = (async (address: string) => {
    asked.push(address);
    const [, name, file] = /^https:\/\/example\.org\/m\/([^/]+)\/(.+)$/.exec(address)!;
    const source = await (await builtInModelsIn(root).open(name!))?.open(file!).catch(() => null);
    if (source == null) return new Response(null, { status: 404 });
    const bytes = await source.read(0, source.size);
    await source.close();
    return new Response(new Uint8Array(bytes));
  }) as typeof fetch;

  test("a model is fetched, each file once", async () => {
    const models = builtInModelsAt("https://example.org/m", undefined, get);
    expect(await models.names()).toEqual(builtInNames);
    const files = await builtInModel("longhand-alibi", models);
    const tokenizer = await openTokenizer(files);
    await using model = await loadLanguageModel(files);
    await using local = await loadLanguageModel("longhand-alibi");
    const tokens = tokenizer.encode("Ishmael");
    const [a, b] = [await model.score(tokens), await local.score(tokens)];
    expect(Array.from(a.negativeLogLikelihood)).toEqual(Array.from(b.negativeLogLikelihood));
    expect(new Set(asked).size).toBe(asked.length);
    expect(asked).toContain("https://example.org/m/longhand-alibi/model.safetensors");
  });

  test("a name that is not there, and a file that is not, are errors", async () => {
    const models = builtInModelsAt(new URL("https://example.org/m/"), ["longhand-t5"], get);
    await expect(builtInModel("longhand-t", models)).rejects.toThrow(/nearest: longhand-t5/);
    const files = await builtInModel("longhand-t5", models);
    await expect(openModel(files)).rejects.toThrow(/longhand-t5\/\S+: expected a file, got HTTP 404/);
  });
});
