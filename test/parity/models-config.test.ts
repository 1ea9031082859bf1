// Settings of config.json that change what a block does, against transformers given the same change: the cases of the tiny
// checkpoints that name one. And what a checkpoint may be called: base models leave their prefix out.

import { copyFileSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { loadLanguageModel } from "../../src/engine/index.ts";
import { modelFamilies } from "../../src/models/index.ts";
import { checkpoint, checkpointFamilies, ggufCheckpoints } from "../support/checkpoints.ts";

/** Nats, on every token's loss. */
const tolerance = 2e-4;

async function inFolder<T>(body: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "longhand-config-"));
  try {
    return await body(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function largest(got: ArrayLike<number>, wanted: readonly number[]): number {
  expect(got.length).toBe(wanted.length);
  return Math.max(...wanted.map((loss, i) => Math.abs(loss - got[i]!)));
}

const changed = checkpointFamilies.flatMap((family) => {
  const { folder, cases } = checkpoint(family);
  const config = JSON.parse(readFileSync(join(folder, "config.json"), "utf8"));
  if (!modelFamilies.some(({ huggingFace }) => huggingFace.includes(config.model_type))) return [];
  return cases
    .filter((golden) => golden.config !== undefined && golden.decoderTokens === undefined)
    .map((golden) => ({ name: `${family}: ${golden.name}`, source: folder, config, golden }));
});

test.each(changed)("$name", async ({ source, config, golden }) => {
  await inFolder(async (folder) => {
    writeFileSync(join(folder, "config.json"), JSON.stringify({ ...config, ...golden.config }));
    symlinkSync(join(source, "model.safetensors"), join(folder, "model.safetensors"));
    await using model = await loadLanguageModel(folder);
    const { negativeLogLikelihood } = await model.score(golden.tokens);
    expect(largest(negativeLogLikelihood, golden.losses64)).toBeLessThan(tolerance);
    const text: number[] = [];
    for await (const { token } of model.generate(golden.tokens, { maxTokens: golden.greedy.length })) text.push(token);
    expect(text).toEqual(golden.greedy);
  });
});

test("MPT from GGUF past its claimed length: ALiBi has no end", async () => {
  for (const { path, cases } of ggufCheckpoints("mpt")) {
    await using model = await loadLanguageModel(path);
    for (const golden of cases) {
      const { negativeLogLikelihood } = await model.score(golden.tokens);
      expect(largest(negativeLogLikelihood, golden.losses64)).toBeLessThan(tolerance);
    }
  }
});

test.each([
  ["gpt2", "transformer."],
  ["bloom", "transformer."],
  ["mpt", "transformer."],
  ["gpt_neox", "gpt_neox."],
])("%s saved as a base model, without %s before its names, is the same", async (family, prefix) => {
  const { folder: source, cases } = checkpoint(family);
  const golden = cases[0]!;
  await inFolder(async (folder) => {
    copyFileSync(join(source, "config.json"), join(folder, "config.json"));
    const file = readFileSync(join(source, "model.safetensors"));
    const length = Number(file.readBigUInt64LE(0));
    const header = JSON.parse(file.toString("utf8", 8, 8 + length)) as Record<string, unknown>;
    const renamed = Object.fromEntries(
      Object.entries(header).map(([name, entry]) => [name.replace(prefix, ""), entry]),
    );
    expect(Object.keys(renamed)).not.toEqual(Object.keys(header));
    const json = Buffer.from(JSON.stringify(renamed));
    const size = Buffer.alloc(8);
    size.writeBigUInt64LE(BigInt(json.length));
    writeFileSync(join(folder, "model.safetensors"), Buffer.concat([size, json, file.subarray(8 + length)]));
    await using model = await loadLanguageModel(folder);
    expect(model.findings.filter(({ code }) => code === "unused-tensors")).toEqual([]);
    const { negativeLogLikelihood } = await model.score(golden.tokens);
    expect(largest(negativeLogLikelihood, golden.losses64)).toBeLessThan(tolerance);
  });
});
