// longhand score and generate on models with an encoder and a decoder.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { checkpoint, ggufCheckpoints } from "../support/checkpoints.ts";
import { longhand } from "../support/cli.ts";

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
