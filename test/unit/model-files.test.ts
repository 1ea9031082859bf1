// One model from a path, from bytes in memory and from File objects: the same description, tensors, tokens and losses.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { loadLanguageModel } from "../../src/engine/index.ts";
import {
  FormatError,
  type ModelSource,
  memorySource,
  modelFiles,
  openFile,
  openModel,
  openTokenizer,
  openWeights,
} from "../../src/formats/index.ts";

const fixtures: string = new URL("../fixtures/", import.meta.url).pathname;
const llama = join(fixtures, "checkpoints/llama");
const gguf = join(fixtures, "checkpoints/gguf/llama/q4_0.gguf");
const splitFolder = join(fixtures, "gguf");
const split = readdirSync(splitFolder).filter((name) => name.startsWith("split-"));

const sources = (folder: string, names: readonly string[]) =>
  names.map((name) => memorySource(name, new Uint8Array(readFileSync(join(folder, name)))));
const files = (folder: string, names: readonly string[]) =>
  names.map((name) => new File([new Uint8Array(readFileSync(join(folder, name)))], name));
const text = (name: string, value: unknown) =>
  memorySource(name, new TextEncoder().encode(typeof value === "string" ? value : JSON.stringify(value)));

const folderNames = ["config.json", "model.safetensors"];
const tokens = JSON.parse(readFileSync(join(llama, "golden.json"), "utf8")).cases[0].tokens as number[];

const models: [string, string, () => Exclude<ModelSource, string>][] = [
  ["a folder in memory", llama, () => modelFiles(sources(llama, folderNames), "llama")],
  ["a folder of File objects", llama, () => modelFiles(files(llama, folderNames), "llama")],
  ["a GGUF in memory", gguf, () => sources(join(gguf, ".."), ["q4_0.gguf"])],
  ["a GGUF as a File", gguf, () => files(join(gguf, ".."), ["q4_0.gguf"])],
];

describe.each(models)("%s", (_, path, given) => {
  test("is described, and gives tensors, as by its path", async () => {
    expect(await openModel(given())).toEqual(await openModel(path));
    const [here, there] = [await openWeights(given()), await openWeights(path)];
    expect(here.names).toEqual(there.names);
    for (const name of here.names) expect(await here.readRaw(name)).toEqual(await there.readRaw(name));
    await here.close();
    await there.close();
  });

  test("is scored as by its path", async () => {
    await using here = await loadLanguageModel(given());
    await using there = await loadLanguageModel(path);
    const got = (await here.score(tokens)).negativeLogLikelihood;
    expect(got.length).toBe(tokens.length - 1);
    expect(got).toEqual((await there.score(tokens)).negativeLogLikelihood);
  });
});

test("the parts of a split GGUF are one model, in whatever order they come", async () => {
  const expected = await openWeights(join(splitFolder, split[0]!));
  const got = await openWeights(sources(splitFolder, split.toReversed()));
  expect([...got.names].sort()).toEqual([...expected.names].sort());
  for (const name of got.names) expect(await got.readRaw(name)).toEqual(await expected.readRaw(name));
  await Promise.all([expected.close(), got.close()]);
  await expect(openWeights(sources(splitFolder, split.slice(0, 2)))).rejects.toThrow(
    /expected the part "split-00003-of-00003.gguf" beside it, got none: .*expected "split-00003-of-00003.gguf" among the/,
  );
});

test("a tokenizer is found among the files, or is the only one", async () => {
  const folder = join(fixtures, "tokenizers");
  const ids = (await openTokenizer(join(folder, "llama.model"))).encode("Hello world");
  expect(ids.length).toBeGreaterThan(2);
  expect((await openTokenizer(sources(folder, ["llama.model"]))).encode("Hello world")).toEqual(ids);
  const renamed = memorySource("tokenizer.model", new Uint8Array(readFileSync(join(folder, "llama.model"))));
  const among = [...sources(llama, folderNames), renamed];
  expect((await openTokenizer(among)).encode("Hello world")).toEqual(ids);
  await expect(openTokenizer(sources(llama, folderNames))).rejects.toThrow(
    /expected tokenizer.json, .* got no tokenizer/,
  );
});

test("the caller's sources stay open", async () => {
  let closed = 0;
  const given = await Promise.all(folderNames.map((name) => openFile(join(llama, name))));
  const counted = given.map((source) => ({
    ...source,
    close: async () => {
      closed++;
      await source.close();
    },
  }));
  const weights = await openWeights(counted);
  await weights.readFloat32(weights.names[0]!);
  await weights.close();
  expect(closed).toBe(0);
  for (const source of counted) await source.close();
});

describe("files that are no model", () => {
  test.each<[string, () => Exclude<ModelSource, string>, RegExp]>([
    [
      "two of one name",
      () => [text("config.json", {}), text("config.json", {})],
      /different names, got two called "config.json"/,
    ],
    [
      "two models",
      () => [text("a.gguf", ""), text("b.gguf", "")],
      /expected the files of one model, got a.gguf, b.gguf/,
    ],
    ["none", () => [], /model: expected config.json in the folder, got no model file/],
    ["weights alone", () => sources(llama, ["model.safetensors"]), /expected config.json in the folder/],
  ])("%s", async (_, given, message) => {
    const error = await (async () => openModel(given()))().catch((error: unknown) => error);
    expect(error).toBeInstanceOf(FormatError);
    expect((error as Error).message).toMatch(message);
  });

  test("a configuration alone is described, and cannot be loaded", async () => {
    const given = sources(llama, ["config.json"]);
    expect((await openModel(given)).modelType).toBe("llama");
    await expect(loadLanguageModel(given)).rejects.toThrow(
      /expected model.safetensors or model.safetensors.index.json/,
    );
  });
});
