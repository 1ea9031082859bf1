// Every family that can be run, against transformers: the loss of every token of the tiny checkpoints, under the file's
// own positions and under each scaling; and greedy text, which transformers computed by a full pass for every token.

import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { loadLanguageModel } from "../../src/engine/index.ts";
import { FormatError } from "../../src/formats/index.ts";
import { modelFamilies } from "../../src/models/index.ts";
import { checkpoint, checkpointFamilies } from "../support/checkpoints.ts";

/** Folders are named after model_type, a variant after a dash. */
const supported = (folder: string): boolean => {
  const name = folder.split("-")[0]!;
  return modelFamilies.some((family) => family.huggingFace.some((type) => type === name || type === `${name}_text`));
};

/** Nats, on every token's loss. */
const tolerance = 2e-4;

/** Those with an encoder have tests of their own (models-t5.test.ts). */
const decoders = checkpointFamilies.filter(
  (folder) => supported(folder) && checkpoint(folder).cases.every(({ decoderTokens }) => decoderTokens === undefined),
);

describe.each(decoders)("%s", (family) => {
  test("losses are transformers', and greedy text with the cache is that of full passes", async () => {
    const { folder, cases } = checkpoint(family);
    await using model = await loadLanguageModel(folder);
    const failures: string[] = [];
    for (const golden of cases.filter(({ config }) => config === undefined)) {
      const options = {
        ...(golden.scaling === null ? {} : { scaling: golden.scaling }),
        ...(golden.reading === undefined ? {} : { reading: golden.reading }),
      };
      const { negativeLogLikelihood: got } = await model.score(golden.tokens, options);
      const largest = Math.max(...golden.losses64.map((loss, i) => Math.abs(loss - got[i]!)));
      if (!(largest <= tolerance) || got.length !== golden.losses64.length) {
        failures.push(`${golden.name}: losses are off by ${largest}`);
      }
      const text: number[] = [];
      for await (const { token } of model.generate(golden.tokens, { ...options, maxTokens: golden.greedy.length })) {
        text.push(token);
      }
      if (text.join() !== golden.greedy.join()) failures.push(`${golden.name}: ${text} instead of ${golden.greedy}`);
    }
    expect(failures).toEqual([]);
  });
});

test("a family that cannot be run is named, with the nearest that can", async () => {
  const { folder } = checkpoint("t5");
  const other = mkdtempSync(join(tmpdir(), "longhand-family-"));
  try {
    const config = JSON.parse(readFileSync(join(folder, "config.json"), "utf8"));
    writeFileSync(join(other, "config.json"), JSON.stringify({ ...config, model_type: "longt5" }));
    copyFileSync(join(folder, "model.safetensors"), join(other, "model.safetensors"));
    const error = await loadLanguageModel(other).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(FormatError);
    expect((error as Error).message).toMatch(/expected model_type to be a family that can be run .* nearest: t5;/);
  } finally {
    rmSync(other, { recursive: true });
  }
});
