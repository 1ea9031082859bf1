// Models with an encoder and a decoder against transformers: the loss of every decoder token of the tiny checkpoints,
// from safetensors and GGUF, with the learned bias and without it, and greedy text, which transformers computed by a full
// pass for every token. Texts are shorter and longer than the distance from which all share a bucket.

import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  type EncodingOptions,
  loadSequenceToSequenceModel,
  type SequenceToSequenceModel,
} from "../../src/engine/index.ts";
import { checkpoint, type GoldenCase, ggufCheckpoints } from "../support/checkpoints.ts";

/** Nats, on every token's loss. */
const tolerance = 2e-4;

async function faults(model: SequenceToSequenceModel, golden: GoldenCase): Promise<string[]> {
  const found: string[] = [];
  const decoderTokens = golden.decoderTokens!;
  const encoding: EncodingOptions = golden.scaling === "drop" ? { drop: true } : {};
  const { negativeLogLikelihood: got } = await model.score(golden.tokens, decoderTokens, encoding);
  const largest = Math.max(...golden.losses64.map((loss, i) => Math.abs(loss - got[i]!)));
  if (!(largest <= tolerance) || got.length !== golden.losses64.length) {
    found.push(`${golden.name}: losses are off by ${largest}`);
  }
  const text: number[] = [];
  const options = { ...encoding, decoderTokens, maxTokens: golden.greedy.length, exact: true };
  for await (const { token } of model.generate(golden.tokens, options)) text.push(token);
  if (text.join() !== golden.greedy.join()) found.push(`${golden.name}: ${text} instead of ${golden.greedy}`);
  return found;
}

describe.each(["t5", "t5-gated", "mt5", "umt5"])("%s", (family) => {
  const { folder, cases } = checkpoint(family);

  test("losses are transformers', and greedy text with the cache is that of full passes", async () => {
    await using model = await loadSequenceToSequenceModel(folder);
    const found: string[] = [];
    for (const golden of cases.filter(({ config }) => config === undefined)) {
      found.push(...(await faults(model, golden)));
    }
    expect(found).toEqual([]);
    expect(model.findings.filter(({ severity }) => severity !== "note")).toEqual([]);
  });

  const changed = cases.filter(({ config }) => config !== undefined);
  if (changed.length === 0) return;
  test.each(changed)("$name: keys of config.json that stand beside those that imply them", async (golden) => {
    const other = mkdtempSync(join(tmpdir(), "longhand-t5-"));
    try {
      const config = JSON.parse(readFileSync(join(folder, "config.json"), "utf8"));
      writeFileSync(join(other, "config.json"), JSON.stringify({ ...config, ...golden.config }));
      symlinkSync(join(folder, "model.safetensors"), join(other, "model.safetensors"));
      await using model = await loadSequenceToSequenceModel(other);
      expect(await faults(model, golden)).toEqual([]);
    } finally {
      rmSync(other, { recursive: true });
    }
  });
});

const files = ["t5", "t5-gated", "umt5"].flatMap(ggufCheckpoints);

describe.each(files)("$family $kind.gguf", ({ path, kind, cases }) => {
  test("losses and greedy text are those of the values in it", async () => {
    await using model = await loadSequenceToSequenceModel(path);
    expect(model.precision).toBe(kind.startsWith("q") ? "quantized" : "float32");
    const found: string[] = [];
    for (const golden of cases) found.push(...(await faults(model, golden)));
    expect(found).toEqual([]);
    expect(model.findings.map(({ code }) => code)).toContain("head-scale");
    expect(model.findings.map(({ code }) => code)).not.toContain("unused-tensors");
  });

  test("the session that rounds activations generates as many tokens, each with a finite probability", async () => {
    await using model = await loadSequenceToSequenceModel(path);
    const [golden] = cases;
    const options = { decoderTokens: golden!.decoderTokens!, maxTokens: 4, logProbabilities: true };
    const probabilities: (number | null)[] = [];
    for await (const { logProbability } of model.generate(golden!.tokens, options)) probabilities.push(logProbability);
    expect(probabilities).toHaveLength(4);
    for (const p of probabilities) expect(p).toBeLessThan(1e-5);
  });
});
