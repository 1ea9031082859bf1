import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { longhand } from "../support/cli.ts";

let folder: string;
let config: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "longhand-"));
  config = join(folder, "config.json");
  writeFileSync(
    config,
    JSON.stringify({
      model_type: "llama",
      hidden_size: 4096,
      num_hidden_layers: 32,
      num_attention_heads: 32,
      max_position_embeddings: 4096,
      rope_theta: 10000,
    }),
  );
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("longhand inspect", () => {
  test("--json prints exactly one document with the contract's names, and nothing on stderr", () => {
    const { status, stdout, stderr } = longhand(["inspect", config, "--target", "8192", "--json"]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const document = JSON.parse(stdout);
    expect(document.trainedLength).toBe(4096);
    const [group] = document.groups;
    expect(group.layers).toEqual(Array.from({ length: 32 }, (_, i) => i));
    expect(group).toMatchObject({
      site: "query-key",
      ropeType: "default",
      headDim: 128,
      rotaryDim: 128,
      theta: 10000,
      attentionFactor: 1,
    });
    expect(group.inverseFrequencies).toHaveLength(64);
    expect(group.hands[63]).toMatchObject({ pair: 63, seen: false });
    expect(group.hands[0].turnsInTraining).toBeCloseTo(4096 / (2 * Math.PI), 9);
    expect(group.hands[0].turnsAtTarget).toBeCloseTo(8192 / (2 * Math.PI), 9);
    expect(Array.isArray(document.findings)).toBe(true);
  });

  test("a folder, its config.json and a target of 2x say the same", () => {
    const a = longhand(["inspect", folder, "--target", "2x", "--json"]).stdout;
    const b = longhand(["inspect", config, "--target", "8k", "--json"]).stdout;
    expect(JSON.parse(a)).toEqual(JSON.parse(b));
  });

  test("--svg writes a chart that stands alone", () => {
    const file = join(folder, "hands.svg");
    expect(longhand(["inspect", config, "--svg", file]).status).toBe(0);
    expect(readFileSync(file, "utf8")).toMatch(/^<svg xmlns=/);
  });

  test("without colour the text holds no escape code", () => {
    const { stdout } = longhand(["inspect", config, "--scaling", "yarn:2", "--target", "2x"]);
    expect(stdout).not.toContain("\u001b");
    expect(stdout.replace(/\s+/g, " ")).toContain("18 hands reach unseen angles without scaling");
  });

  test.each([
    [["inspect"], /missing required argument 'model'/],
    [["inspekt", "x"], /unknown command 'inspekt'/],
    [["inspect", "no-such-model"], /expected a folder .* got a path that does not exist/],
    [["inspect", "CONFIG", "--target", "0"], /at least 1/],
    [["inspect", "CONFIG", "--target", "many"], /number of tokens/],
    [["inspect", "CONFIG", "--scaling", "yarm:4"], /nearest: yarn/],
    [["inspect", "CONFIG", "--scaling", '{"rope_type":"yarn","factor":"4"}'], /factor: expected .* got "4"/],
    [["inspect", "CONFIG", "--sclaing", "yarn:4"], /unknown option/],
  ])("%j ends with 2, says why on stderr, and prints nothing on stdout", (args, message) => {
    const result = longhand(args.map((arg) => (arg === "CONFIG" ? config : arg)));
    expect(result.status).toBe(2);
    expect(result.stderr).toMatch(message);
    expect(result.stdout).toBe("");
  });

  test("a broken file ends with 2 and one line, even with --json", () => {
    const broken = join(folder, "broken.gguf");
    writeFileSync(broken, "GGUF\u0003\u0000");
    const { status, stdout, stderr } = longhand(["inspect", broken, "--json"]);
    expect(status).toBe(2);
    expect(stdout).toBe("");
    expect(stderr.trim().split("\n")).toHaveLength(1);
  });

  test("--help shows examples, and ends with 0", () => {
    const { status, stdout } = longhand(["inspect", "--help"]);
    expect(status).toBe(0);
    expect(stdout).toContain("Examples:");
  });

  test("--version is the package's", () => {
    const version = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")).version;
    expect(longhand(["--version"]).stdout.trim()).toBe(version);
  });
});

describe("longhand inspect on a real checkpoint", () => {
  const gguf = new URL("../../../shared/models/stories260K/tinyllamas-stories-260k-f32.gguf", import.meta.url);
  test.skipIf(!existsSync(gguf))("reads GGUF version 1 (skipped where ../shared has no stories260K)", () => {
    const document = JSON.parse(longhand(["inspect", gguf.pathname, "--json"]).stdout);
    expect(document.trainedLength).toBe(512);
    expect(document.groups).toHaveLength(1);
    expect(document.groups[0]).toMatchObject({ headDim: 8, rotaryDim: 8, theta: 10000, ropeType: "default" });
    expect(document.groups[0].inverseFrequencies).toEqual([1, 0.1, 0.01, 0.001]);
  });
});
