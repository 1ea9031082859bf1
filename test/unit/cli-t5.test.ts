// longhand score and generate on models with an encoder and a decoder.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadSequenceToSequenceModel } from "../../src/engine/index.ts";
import { openTokenizer } from "../../src/formats/tokenizers/index.ts";
import { random } from "../../src/tensor/index.ts";
import { checkpoint, ggufCheckpoints } from "../support/checkpoints.ts";
import { longhand } from "../support/cli.ts";
import { type TinyTensor, writeTinyModel } from "../support/tiny-model.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "longhand-score-t5-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const file = (name: string, value: unknown): string => {
  const path = join(folder, name);
  writeFileSync(path, JSON.stringify(value));
  return path;
};

describe("longhand score with --decoder-tokens", () => {
  const { folder: t5, cases } = checkpoint("t5");
  const gated = ggufCheckpoints("t5-gated").find(({ kind }) => kind === "bf16")!;

  test.each([
    ["a folder", t5, cases.find(({ name }) => name === "long")!, []],
    ["a folder, without its bias", t5, cases.find(({ name }) => name === "drop")!, ["--drop"]],
    ["a GGUF file", gated.path, gated.cases.find(({ name }) => name === "long decoder")!, []],
  ] as const)("%s: one document with the losses that transformers gives", (_, model, golden, more) => {
    const [tokens, targets] = [file("encoder.json", golden.tokens), file("decoder.json", golden.decoderTokens)];
    const args = ["score", model, "--tokens", tokens, "--decoder-tokens", targets, "--json", ...more];
    const { status, stdout, stderr } = longhand(args);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const document = JSON.parse(stdout);
    expect(document.tokens).toEqual(golden.tokens);
    expect(document.decoderTokens).toEqual(golden.decoderTokens);
    const losses: number[] = document.negativeLogLikelihood;
    expect(losses.length).toBe(golden.losses64.length);
    losses.forEach((x, i) => void expect(Math.abs(x - golden.losses64[i]!)).toBeLessThan(2e-4));
    expect(document.positions.map(({ layerType }: { layerType: string }) => layerType)).toEqual(["encoder", "decoder"]);
    expect(document.tokensPerSecond).toBeGreaterThan(0);
  });

  test("--length takes the first of the tokens that are scored", () => {
    const golden = cases[0]!;
    const [tokens, targets] = [file("encoder.json", golden.tokens), file("decoder.json", golden.decoderTokens)];
    const args = ["score", t5, "--tokens", tokens, "--decoder-tokens", targets, "--length", "8", "--json"];
    const document = JSON.parse(longhand(args).stdout);
    expect(document.tokens).toEqual(golden.tokens);
    expect(document.decoderTokens).toEqual(golden.decoderTokens!.slice(0, 8));
    expect(document.negativeLogLikelihood.length).toBe(7);
  });

  test("without them, for a decoder alone, or with a rotary scaling: what is wrong, and exit 2", () => {
    const golden = cases[0]!;
    const [tokens, targets] = [file("encoder.json", golden.tokens), file("decoder.json", golden.decoderTokens)];
    const refused = (args: string[], message: RegExp): void => {
      const { status, stdout, stderr } = longhand(["score", ...args, "--json"]);
      expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
      expect(stderr).toMatch(message);
    };
    refused([t5, "--tokens", tokens], /expected --decoder-tokens, the tokens that are scored, for t5/);
    const llama = checkpoint("llama").folder;
    refused([llama, "--tokens", tokens, "--decoder-tokens", targets], /expected a model with an encoder, got llama/);
    refused(
      [t5, "--tokens", tokens, "--decoder-tokens", targets, "--scaling", "yarn:4"],
      /expected a model with rotary positions, got one with t5; use drop or none/,
    );
  });
});

/** A tiny T5 with random weights and a tokenizer of bytes. */
function writeTinyT5(path: string): string {
  const [e, width, f, v, buckets, heads] = [32, 32, 48, 259, 8, 4];
  const stream = random(5);
  const weights = new Map<string, TinyTensor>();
  const matrix = (name: string, rows: number, columns: number, scale = 0.3): void => {
    weights.set(`${name}.weight`, { shape: [rows, columns], data: stream.normals(rows * columns, scale) });
  };
  const ones = (name: string): void => {
    weights.set(`${name}.weight`, { shape: [e], data: new Float32Array(e).fill(1) });
  };
  const attention = (name: string): void => {
    for (const which of ["q", "k", "v"]) matrix(`${name}.${which}`, width, e);
    matrix(`${name}.o`, e, width);
  };
  matrix("shared", v, e, 1);
  for (const stack of ["encoder", "decoder"]) {
    for (let i = 0; i < 2; i++) {
      const block = `${stack}.block.${i}.layer`;
      attention(`${block}.0.SelfAttention`);
      if (i === 0) matrix(`${block}.0.SelfAttention.relative_attention_bias`, buckets, heads, 1);
      if (stack === "decoder") attention(`${block}.1.EncDecAttention`);
      const mlp = stack === "decoder" ? 2 : 1;
      matrix(`${block}.${mlp}.DenseReluDense.wi`, f, e);
      matrix(`${block}.${mlp}.DenseReluDense.wo`, e, f);
      for (let norm = 0; norm <= mlp; norm++) ones(`${block}.${norm}.layer_norm`);
    }
    ones(`${stack}.final_layer_norm`);
  }
  return writeTinyModel(path, weights, {
    model_type: "t5",
    d_model: e,
    d_kv: width / heads,
    head_dim: undefined,
    d_ff: f,
    num_heads: heads,
    num_layers: 2,
    vocab_size: v,
    relative_attention_num_buckets: buckets,
    relative_attention_max_distance: 20,
    feed_forward_proj: "relu",
    decoder_start_token_id: 0,
  });
}

test("longhand generate: the prompt is the encoder's, and the text is the decoder's alone", async () => {
  const path = writeTinyT5(join(folder, "tiny"));
  const prompt = "translate English to German: How far?";
  const args = ["generate", path, "--prompt", prompt, "--max-tokens", "6", "--ignore-end"];
  const { status, stdout, stderr } = longhand([...args, "--json"]);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  const document = JSON.parse(stdout);
  const tokenizer = await openTokenizer(path);
  expect(document.promptTokens).toEqual(tokenizer.encode(prompt));
  await using model = await loadSequenceToSequenceModel(path);
  const tokens: number[] = [];
  for await (const { token } of model.generate(document.promptTokens, { maxTokens: 6 })) tokens.push(token);
  expect(document.tokens).toEqual(tokens);
  expect(longhand(args).stdout).toBe(`${document.text}\n`);
  // Another prompt, another text.
  const other = JSON.parse(longhand(["generate", path, "--prompt", "Why?", "--max-tokens", "6", "--json"]).stdout);
  expect(other.tokens).not.toEqual(tokens);
});
