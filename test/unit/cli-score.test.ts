import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { checkpoint } from "../support/checkpoints.ts";
import { longhand } from "../support/cli.ts";
import { writeTinyModel } from "../support/tiny-model.ts";

let folder: string;
let model: string;
let text: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "longhand-score-"));
  model = writeTinyModel(join(folder, "tiny"));
  text = join(folder, "text.txt");
  writeFileSync(text, "How far can a Transformer really read? ".repeat(4));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("longhand score", () => {
  test("--json prints exactly one document with the contract's names: the losses that transformers gives", () => {
    const { folder: llama, cases } = checkpoint("llama");
    for (const golden of cases.filter(({ name }) => ["long", "yarn, long", "dynamic, long, growing"].includes(name))) {
      const tokens = join(folder, "tokens.json");
      writeFileSync(tokens, JSON.stringify(golden.tokens));
      const { status, stdout, stderr } = longhand([
        "score",
        llama,
        "--tokens",
        tokens,
        ...(golden.scaling === null ? [] : ["--scaling", JSON.stringify(golden.scaling)]),
        ...(golden.reading === undefined ? [] : ["--reading", golden.reading]),
        "--json",
      ]);
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      const document = JSON.parse(stdout);
      expect(document.tokens).toEqual(golden.tokens);
      const losses: number[] = document.negativeLogLikelihood;
      expect(losses.length).toBe(golden.tokens.length - 1);
      losses.forEach((x, i) => void expect(Math.abs(x - golden.losses64[i]!)).toBeLessThan(2e-4));
      const mean = losses.reduce((sum, x) => sum + x, 0) / losses.length;
      expect(document.meanNegativeLogLikelihood).toBeCloseTo(mean, 12);
      expect(document.perplexity).toBeCloseTo(Math.exp(mean), 6);
      expect(document.tokensPerSecond).toBeGreaterThan(0);
      expect(document.peakMemoryBytes).toBeGreaterThan(10e6);
      expect(document.peakMemoryBytes).toBeLessThan(4e9);
      expect(document.reading).toBe(golden.reading ?? null);
    }
  });

  test("a text is tokenised with its BOS, --length takes its first tokens, --drop changes the losses", () => {
    const score = (...more: string[]) => {
      const { status, stdout, stderr } = longhand(["score", model, "--text", text, "--json", ...more]);
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      return JSON.parse(stdout);
    };
    const own = score("--length", "20");
    expect(own.tokens.length).toBe(20);
    expect(own.tokens.slice(0, 4)).toEqual([256, 72, 111, 119]);
    expect(own.bos).toBe(true);
    expect(score("--length", "20", "--no-bos").tokens.slice(0, 3)).toEqual([72, 111, 119]);
    const dropped = score("--length", "20", "--drop");
    expect(dropped.positions[0]).toMatchObject({
      encoding: "drop",
      logitTemperature: { kind: "drope", coefficient: 0.103 },
    });
    expect(dropped.meanNegativeLogLikelihood).not.toBeCloseTo(own.meanNegativeLogLikelihood, 3);
    expect(score("--length", "20", "--drop", "0.412").positions[0].logitTemperature.coefficient).toBe(0.412);
  });

  test("what inspect prints is a table that can be handed back", () => {
    const table = join(folder, "table.json");
    writeFileSync(table, longhand(["inspect", join(model, "config.json"), "--scaling", "linear:2", "--json"]).stdout);
    const losses = (...more: string[]): number[] =>
      JSON.parse(longhand(["score", model, "--text", text, "--length", "30", "--json", ...more]).stdout)
        .negativeLogLikelihood;
    const scaled = losses("--scaling", "linear:2");
    losses("--table", table).forEach((x, i) => void expect(Math.abs(x - scaled[i]!)).toBeLessThan(1e-5));
  });

  test("for people: loss, perplexity, positions, and a warning past the trained length", () => {
    const { status, stdout } = longhand(["score", model, "--text", text, "--scaling", "yarn:4"]);
    expect(status).toBe(0);
    expect(stdout).toMatch(/mean loss \d+\.\d+ nats, perplexity/);
    expect(stdout).toContain("positions yarn");
    expect(stdout).toContain("longer than the 64 tokens that the model was trained on");
  });

  test.each([
    ["neither text nor tokens", [], /expected one of --text and --tokens, got neither/],
    ["a missing text", ["--text", "nowhere.txt"], /nowhere\.txt: expected a readable file, got ENOENT/],
    ["an unknown scaling", ["--text", "TEXT", "--scaling", "yarm:2"], /nearest: yarn/],
    [
      "a scaling and drop",
      ["--text", "TEXT", "--scaling", "yarn:2", "--drop"],
      /expected one of --scaling, --drop and --table/,
    ],
    ["an unknown reading", ["--text", "TEXT", "--reading", "half"], /whole, growing/],
  ])("%s is a usage error, exit 2, nothing on stdout", (_, args, message) => {
    const { status, stdout, stderr } = longhand(["score", model, ...args.map((arg) => (arg === "TEXT" ? text : arg))]);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toMatch(message);
    expect(stderr).not.toContain("internal");
  });

  test("tokens outside the vocabulary and files that are no lists of tokens are exit 2", () => {
    const tokens = join(folder, "bad.json");
    for (const [content, message] of [
      ["[1, 259]", /tokens from 0 to 258, got 259/],
      ['{"ids": [1]}', /a list of token ids/],
      ["[1, 2", /bad\.json/],
    ] as const) {
      writeFileSync(tokens, content);
      const { status, stderr } = longhand(["score", model, "--tokens", tokens]);
      expect(status).toBe(2);
      expect(stderr).toMatch(message);
    }
  });
});
