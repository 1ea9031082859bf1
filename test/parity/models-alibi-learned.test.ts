// Models whose positions are a bias or a table of rows: what a user may ask of them, and what is refused.

import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type AttentionBiasEncoding, alibi } from "../../src/encodings/index.ts";
import { loadLanguageModel } from "../../src/engine/index.ts";
import { checkpoint } from "../support/checkpoints.ts";

function furthest(a: ArrayLike<number>, b: ArrayLike<number>): number {
  expect(a.length).toBe(b.length);
  return Math.max(...Array.from(a, (x, i) => Math.abs(x - b[i]!)));
}

function textOf(family: string, name: string): readonly number[] {
  return checkpoint(family).cases.find((golden) => golden.name === name)!.tokens;
}

describe("a table of rows", () => {
  test("a text longer than the table is refused before any work, naming both lengths", async () => {
    await using model = await loadLanguageModel(checkpoint("gpt2").folder);
    const tokens = Array.from({ length: 65 }, (_, i) => i);
    let worked = false;
    const onProgress = (): void => {
      worked = true;
    };
    await expect(model.score(tokens, { onProgress })).rejects.toThrow(/at most 64 tokens.*got 65/);
    await expect(model.generate(tokens, { onProgress }).next()).rejects.toThrow(/at most 64 tokens.*got 65/);
    await expect(model.score(tokens, { scaling: "yarn:4" })).rejects.toThrow(/rotary positions, got one with learned/);
    expect(worked).toBe(false);
  });

  test("generation ends with the last row", async () => {
    await using model = await loadLanguageModel(checkpoint("gpt2").folder);
    const text: number[] = [];
    for await (const { token } of model.generate(Array.from({ length: 60 }, (_, i) => i))) text.push(token);
    // Rows 60 … 63 are read; the fifth token is chosen after the last of them.
    expect(text.length).toBe(5);
  });

  test("without its rows any length runs", async () => {
    await using model = await loadLanguageModel(checkpoint("gpt2").folder);
    const { negativeLogLikelihood } = await model.score(
      Array.from({ length: 100 }, (_, i) => (7 * i) % 96),
      { scaling: "drop" },
    );
    expect(negativeLogLikelihood.length).toBe(99);
  });
});

describe.each(["bloom", "mpt"])("ALiBi of %s", (family) => {
  const { folder, cases } = checkpoint(family);
  const tokens = textOf(family, "long");
  const numHeads = family === "mpt" ? 3 : 2;

  test("as channels it is the bias as numbers; by itself, under drop, and under other slopes", async () => {
    await using columns = await loadLanguageModel(folder);
    await using dense = await loadLanguageModel(folder, { attentionBias: "dense" });
    const steeper = { encodings: { 0: alibi({ numHeads, maxBias: 3 }) } };
    for (const options of [{}, { scaling: "drop" }, steeper]) {
      const [a, b] = [await columns.score(tokens, options), await dense.score(tokens, options)];
      expect(furthest(a.negativeLogLikelihood, b.negativeLogLikelihood)).toBeLessThan(3e-5);
    }
    const [own, changed] = [await columns.score(tokens), await columns.score(tokens, steeper)];
    expect(furthest(own.negativeLogLikelihood, changed.negativeLogLikelihood)).toBeGreaterThan(0.05);
  });

  test("another bias by distance runs where it is asked for when loading, and is refused by name elsewhere", async () => {
    // −ln(1 + distance), as Kerple's logarithmic form.
    const logarithmic: AttentionBiasEncoding = {
      site: "attention-bias",
      name: "logarithmic",
      numHeads,
      bias: (queries, keys) => {
        const list = Array.from(queries).flatMap((i) => Array.from(keys, (j) => -Math.log1p(Math.max(0, i - j))));
        return Float64Array.from({ length: numHeads * list.length }, (_, at) => list[at % list.length]!);
      },
    };
    await using dense = await loadLanguageModel(folder, { attentionBias: "dense" });
    const { negativeLogLikelihood } = await dense.score(tokens, { encodings: { 0: logarithmic } });
    const own = await dense.score(tokens);
    expect(furthest(negativeLogLikelihood, own.negativeLogLikelihood)).toBeGreaterThan(0.05);
    await using columns = await loadLanguageModel(folder);
    await expect(columns.score(tokens, { encodings: { 0: logarithmic } })).rejects.toThrow(
      /linear in the distance .*got "logarithmic"; load the model with attentionBias "dense"/,
    );
  });

  test("neither chunks nor a shared prefix change a loss", async () => {
    await using model = await loadLanguageModel(folder);
    const whole = (await model.score(tokens)).negativeLogLikelihood;
    for (const chunkSize of [1, 7, 64]) {
      await using fresh = await loadLanguageModel(folder);
      const { negativeLogLikelihood } = await fresh.score(tokens, { chunkSize });
      expect(furthest(negativeLogLikelihood, whole)).toBeLessThan(3e-5);
    }
    const { negativeLogLikelihood: head } = await model.score(tokens.slice(0, 50));
    const { logLikelihood } = await model.loglikelihood(tokens.slice(0, 50), tokens.slice(50));
    const tail = whole.subarray(49).reduce((sum, loss) => sum + loss, 0);
    expect(Math.abs(logLikelihood + tail)).toBeLessThan(2e-3);
    expect(furthest(head, whole.subarray(0, 49))).toBeLessThan(3e-5);
  });

  test("a capacity that the text just fits is enough", async () => {
    const golden = cases[0]!;
    await using model = await loadLanguageModel(folder, { capacity: golden.tokens.length });
    const { negativeLogLikelihood } = await model.score(golden.tokens);
    expect(furthest(negativeLogLikelihood, golden.losses64)).toBeLessThan(2e-4);
    await expect(model.score([...golden.tokens, 1])).rejects.toThrow(/at most 40 tokens.*got 41/);
  });
});

test("alibi_bias_max of MPT means what the file says, and a finding says that transformers reads 8", async () => {
  const { folder: source } = checkpoint("mpt");
  const tokens = textOf("mpt", "short");
  const folder = mkdtempSync(join(tmpdir(), "longhand-mpt-"));
  try {
    const config = JSON.parse(readFileSync(join(source, "config.json"), "utf8"));
    config.attn_config.alibi_bias_max = 3;
    writeFileSync(join(folder, "config.json"), JSON.stringify(config));
    copyFileSync(join(source, "model.safetensors"), join(folder, "model.safetensors"));
    await using changed = await loadLanguageModel(folder);
    await using plain = await loadLanguageModel(source);
    expect(changed.findings.map(({ code }) => code)).toContain("alibi-bias-max-unread");
    const got = (await changed.score(tokens)).negativeLogLikelihood;
    const meant = await plain.score(tokens, { encodings: { 0: alibi({ numHeads: 3, maxBias: 3 }) } });
    expect(furthest(got, meant.negativeLogLikelihood)).toBe(0);
    expect(furthest(got, (await plain.score(tokens)).negativeLogLikelihood)).toBeGreaterThan(0.05);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
