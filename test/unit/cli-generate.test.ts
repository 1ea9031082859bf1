import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { longhand } from "../support/cli.ts";
import { sharedFile } from "../support/real-files.ts";
import { writeTinyModel } from "../support/tiny-model.ts";

let folder: string;
let model: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "longhand-generate-"));
  model = writeTinyModel(join(folder, "tiny"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const json = (...args: string[]) => {
  const { status, stdout, stderr } = longhand(["generate", model, "--json", ...args]);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return JSON.parse(stdout);
};

describe("longhand generate", () => {
  test("--json prints exactly one document: the text, and the tokens that it is made of", () => {
    const document = json("--prompt", "clock", "--max-tokens", "12");
    expect(document.tokens).toHaveLength(12);
    expect(document.promptTokens).toEqual([256, 99, 108, 111, 99, 107]);
    expect(typeof document.text).toBe("string");
    expect(json("--prompt", "clock", "--max-tokens", "12").tokens).toEqual(document.tokens);
  });

  test("a scaling changes the text, a seed fixes it, greedy has none", () => {
    const at = (...more: string[]): number[] => json("--prompt", "clock hands", "--max-tokens", "16", ...more).tokens;
    expect(at("--scaling", "drop")).not.toEqual(at());
    const sampled = at("--temperature", "2", "--seed", "3");
    expect(at("--temperature", "2", "--seed", "3")).toEqual(sampled);
    expect(at("--temperature", "2", "--seed", "4")).not.toEqual(sampled);
  });

  test("text streams after its prompt", () => {
    const { status, stdout } = longhand(["generate", model, "--prompt", "clock", "--max-tokens", "5"]);
    expect(status).toBe(0);
    expect(stdout.startsWith("clock")).toBe(true);
    expect(stdout.endsWith("\n")).toBe(true);
  });

  test.each([
    ["no prompt", [], /--prompt/],
    ["an empty prompt without BOS", ["--prompt", "", "--no-bos"], /at least one token/],
    ["a negative temperature", ["--prompt", "a", "--temperature", "-1"], /of at least 0/],
    ["a share above 1", ["--prompt", "a", "--top-p", "1.5"], /at most 1/],
  ])("%s is a usage error, exit 2, nothing on stdout", (_, args, message) => {
    const { status, stdout, stderr } = longhand(["generate", model, ...args]);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toMatch(message);
  });

  test("Ctrl-C ends it with exit 130", async () => {
    const bin = resolve(import.meta.dirname, "../../dist/cli.js");
    const child = spawn(process.execPath, [
      bin,
      "generate",
      model,
      "--prompt",
      "a",
      "--max-tokens",
      "1000000",
      "--ignore-end",
    ]);
    let stderr = "";
    child.stderr.on("data", (data) => {
      stderr += data;
    });
    // Interrupt it while text comes.
    await new Promise<void>((done) => child.stdout.once("data", () => setTimeout(done, 500)));
    child.kill("SIGINT");
    const code = await new Promise((done) => child.on("exit", done));
    expect(code).toBe(130);
    expect(stderr).toContain("interrupted");
  });
});

const stories = sharedFile("models/stories260K/tinyllamas-stories-260k-f32.gguf");
test.skipIf(stories === null)("stories260K tells of Lily, as llama2.c prints it", () => {
  const { status, stdout } = longhand(["generate", stories!, "--prompt", "", "--max-tokens", "70"]);
  expect(status).toBe(0);
  expect(stdout).toContain(
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the park. " +
      "One day, she saw a big, red ball. She wanted to play with it, but it was too high.",
  );
});
