import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cli, longhand } from "../support/cli.ts";
import { seededText } from "../support/words.ts";

let folder: string;
let text: string;
const shape = ["--layers", "2", "--width", "32", "--heads", "2", "--length", "32", "--batch", "4", "--threads", "1"];
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "longhand-train-"));
  text = join(folder, "text.txt");
  writeFileSync(text, seededText(20_000));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const rowsOf = (run: string) =>
  readFileSync(join(run, "rows.jsonl"), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const { measured: _, ...row } = JSON.parse(line);
      return row;
    });
const weightsOf = (run: string) => readFileSync(join(run, "model", "model.safetensors"));

describe("longhand train", () => {
  test("learns, says its losses, and leaves a model that score reads at four times its length", () => {
    const out = join(folder, "rope");
    const args = ["train", "--encoding", "rope", ...shape, "--steps", "60", "--text", text, "--out", out];
    const { status, stdout, stderr } = longhand([...args, "--json"]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const document = JSON.parse(stdout);
    expect(document.tokens).toBe(60 * 4 * 32);
    const losses = rowsOf(out).filter(({ kind }) => kind === "validation");
    expect(losses[0].step).toBe(0);
    expect(losses.at(-1).step).toBe(60);
    expect(losses.at(-1).loss).toBeLessThan(losses[0].loss - 1);
    expect(document.validationLoss).toBe(losses.at(-1).loss);
    expect(document.positions.map(({ position }: { position: number[] }) => position)).toEqual([
      [0, 32],
      [32, 64],
      [64, 128],
    ]);
    const config = JSON.parse(readFileSync(join(out, "model", "config.json"), "utf8"));
    expect(config.architectures).toEqual(["LlamaForCausalLM"]);
    expect(config.max_position_embeddings).toBe(32);
    const scored = JSON.parse(longhand(["score", document.model, "--text", text, "--length", "128", "--json"]).stdout);
    expect(scored.negativeLogLikelihood.length).toBe(127);
    expect(scored.meanNegativeLogLikelihood).toBeLessThan(losses[0].loss - 1);

    // The same command again has nothing to do, and says the same.
    const again = JSON.parse(longhand([...args, "--json"]).stdout);
    expect(again.validationLoss).toBe(document.validationLoss);
    expect(again.positions).toEqual(document.positions);
    // Another recipe is another run.
    const other = longhand([...args, "--seed", "1"]);
    expect(other.status).toBe(2);
    expect(other.stderr).toContain("recipe.seed: 0 there, 1 here");
  });

  test("stops at Ctrl-C with everything saved; the same command ends as an uninterrupted run does", async () => {
    const args = ["train", "--encoding", "alibi", ...shape, "--steps", "80", "--text", text];
    const whole = join(folder, "whole");
    expect(longhand([...args, "--out", whole, "--json"]).status).toBe(0);
    const parts = join(folder, "parts");
    const child = spawn(process.execPath, [cli, ...args, "--out", parts], { stdio: ["ignore", "pipe", "pipe"] });
    let [stdout, stderr] = ["", ""];
    child.stderr.on("data", (data) => {
      stderr += data;
    });
    child.stdout.on("data", (data) => {
      stdout += data;
      // A row of a step behind the first.
      if (/^ +8 /m.test(stdout)) child.kill("SIGINT");
    });
    const code = await new Promise((resolve) => child.on("close", resolve));
    expect(code).toBe(130);
    expect(stderr).toContain(`to go on: longhand train --encoding alibi`);
    expect(stderr).toContain(`--out ${parts}`);
    expect(existsSync(join(parts, "model"))).toBe(false);
    const before = rowsOf(parts).length;
    expect(before).toBeGreaterThan(2);
    const resumed = longhand([...args, "--out", parts]);
    expect(resumed.status).toBe(0);
    expect(resumed.stdout).toMatch(/goes on from step \d+/);
    expect(rowsOf(parts)).toEqual(rowsOf(whole));
    expect(weightsOf(parts).equals(weightsOf(whole))).toBe(true);
  });

  test("trains on a task, and says how much of it is right at sizes beyond training", () => {
    const out = join(folder, "copy");
    const task = ["--task", "copy", "--task-sizes", "1-3", "--layers", "1", "--width", "32", "--heads", "2"];
    const { status, stdout, stderr } = longhand(["train", ...task, "--steps", "10", "--out", out, "--json"]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const document = JSON.parse(stdout);
    expect(document.task.map(({ size }: { size: number }) => size)).toEqual([3, 4, 5, 6, 9]);
    for (const { accuracy, low, high, count } of document.task) {
      expect(count).toBe(100);
      expect(low <= accuracy && accuracy <= high).toBe(true);
    }
  });

  test("trains a model on at a longer length under a scaling, as Position Interpolation does", () => {
    const from = join(folder, "rope", "model");
    const out = join(folder, "longer");
    const args = ["train", "--from", from, "--scaling", "linear:4", "--length", "128", "--batch", "1", "--steps", "10"];
    const { status, stdout, stderr } = longhand([...args, "--threads", "1", "--text", text, "--out", out, "--json"]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const { recipe } = JSON.parse(stdout);
    expect(recipe).toMatchObject({
      hiddenSize: 32,
      numLayers: 2,
      length: 128,
      scaling: { ropeType: "linear", factor: 4 },
    });
    const config = JSON.parse(readFileSync(join(out, "model", "config.json"), "utf8"));
    expect(config.rope_parameters).toMatchObject({ rope_type: "linear", factor: 4 });
    const wider = longhand([...args, "--width", "64"]);
    expect(wider.status).toBe(2);
    expect(wider.stderr).toContain("--from: expected the model's own");
  });

  test.each([
    [["--encoding", "rpoe"], 'got "rpoe"'],
    [["--text", "a.txt", "--task", "copy"], "expected one of --text and --task, got both"],
    [["--task", "copi"], "did you mean copy?"],
    [["--tokens", "many"], "expected a number of tokens of at least 1"],
    [["--task-sizes", "1-4"], "--task-sizes: expected --task beside it"],
    [["--encoding", "learned", "--drop-at", "0.5"], "expected a fixed encoding to drop, got learned"],
    [["--blocks", "mpt", "--qk-norm"], "no norm of queries and keys"],
    [["--encoding", "none", "--scaling", "linear:2"], "expected RoPE in a recipe with a scaling"],
    [["--scaling", '{"rope_type":'], "--scaling: expected a JSON object"],
    [["--scaling", "yarm:2"], "nearest: yarn"],
    [["--scaling", "drop"], "expected a scaling to train under, got drop; --drop-at removes the encoding"],
    [["--text", "/nowhere/at-all.txt"], "no such file"],
  ])("refuses %j before it trains", (args, message) => {
    const { status, stderr } = longhand(["train", ...args, "--steps", "10", "--out", join(folder, "refused")]);
    expect(status).toBe(2);
    expect(stderr).toContain(message);
    expect(existsSync(join(folder, "refused"))).toBe(false);
  });
});

describe("longhand drop", () => {
  test("removes the positions of a run's model, recalibrates it, and compares before and after", () => {
    const out = join(folder, "dropped");
    const run = join(folder, "rope");
    const args = ["drop", run, "--tokens", "1280", "--batch", "4", "--threads", "1", "--text", text, "--qk-norm"];
    const { status, stdout, stderr } = longhand([...args, "--out", out, "--json"]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const document = JSON.parse(stdout);
    expect(document.recipe).toMatchObject({ encoding: ["none"], length: 32, steps: 10, queryKeyNorm: true });
    expect(document.lengths.map(({ length }: { length: number }) => length)).toEqual([32, 64, 128, 256]);
    for (const { dropped, tempered, length } of document.lengths) {
      if (length === 32) expect(tempered).toBe(dropped);
    }
    // The fit minimises the sum over the longer lengths; c = 0 is among what it tries.
    const sum = (key: "dropped" | "tempered") =>
      document.lengths.slice(1).reduce((total: number, row: Record<string, number>) => total + row[key]!, 0);
    expect(sum("tempered")).toBeLessThanOrEqual(sum("dropped"));
    const inspected = JSON.parse(longhand(["inspect", document.model, "--json"]).stdout);
    expect(inspected.groups.map(({ site }: { site: string }) => site)).toEqual(["none"]);
    const temperature = inspected.groups[0].logitTemperature;
    if (document.coefficient === 0) expect(temperature).toBeNull();
    else expect(temperature).toEqual({ kind: "drope", coefficient: document.coefficient, trainedLength: 32 });
  });

  test("refuses a model without positions, and one whose positions are trained", () => {
    const train = (encoding: string) => {
      const out = join(folder, `for-drop-${encoding}`);
      const args = ["train", "--encoding", encoding, ...shape, "--steps", "2", "--text", text, "--out", out];
      expect(longhand(args).status).toBe(0);
      return longhand(["drop", out, "--text", text, "--out", join(folder, "no")]);
    };
    expect(train("none")).toMatchObject({ status: 2, stderr: expect.stringContaining("which has none") });
    expect(train("t5")).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("got t5, whose numbers are trained"),
    });
  });
});
