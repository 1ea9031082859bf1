import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { longhand } from "../support/cli.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const example = (file: string) => join(root, "examples", file);

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "longhand-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("longhand doctor", () => {
  test("a sound configuration ends with 0", () => {
    const { status, stdout, stderr } = longhand(["doctor", example("configs/llama-3.1-8b.json")]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toContain("No error and no warning; 1 note.");
    expect(stdout).not.toContain("\u001b");
  });

  test("an error ends with 1, and --json is one document with the contract's names", () => {
    const { status, stdout, stderr } = longhand(["doctor", example("broken/02-llama-3.1-base-lost.json"), "--json"]);
    expect({ status, stderr }).toEqual({ status: 1, stderr: "" });
    const { findings } = JSON.parse(stdout);
    expect(Object.keys(findings[0])).toEqual(
      expect.arrayContaining(["code", "severity", "where", "got", "expected", "why", "fix"]),
    );
    expect(findings[0]).toMatchObject({ code: "llama3-theta", severity: "error", where: "/rope_theta", got: 10000 });
  });

  test("--lang zh-TW says it in Chinese", () => {
    const { stdout } = longhand(["doctor", example("broken/02-llama-3.1-base-lost.json"), "--lang", "zh-TW"]);
    expect(stdout).toContain("錯誤");
    expect(stdout).toContain("寫出訓");
  });

  test("--engine and --target reach the checks", () => {
    const gptOss = example("configs/gpt-oss-20b.json");
    expect(longhand(["doctor", gptOss]).status).toBe(0);
    const { status, stdout } = longhand(["doctor", gptOss, "--engine", "vllm", "--engine-version", "0.11.0"]);
    expect(status).toBe(1);
    expect(stdout).toContain("engine-frequencies-differ");
    expect(longhand(["doctor", example("configs/qwen2.5-7b.json"), "--target", "4x"]).stdout).toContain(
      "target-not-reached",
    );
  });

  test("--fix writes the file, keeps the old one under a free name, and leaves nothing to repair", () => {
    const config = join(folder, "config.json");
    copyFileSync(example("broken/07-gemma-3-sliding-layers-scaled.json"), config);
    const before = readFileSync(config, "utf8");
    writeFileSync(`${config}.bak`, "mine");
    const { status, stdout } = longhand(["doctor", config, "--fix"]);
    expect(status).toBe(0);
    expect(stdout).toContain("Repaired: sliding-layers-scaled.");
    expect(readFileSync(`${config}.bak`, "utf8")).toBe("mine");
    expect(readFileSync(`${config}.bak1`, "utf8")).toBe(before);
    const after = JSON.parse(readFileSync(config, "utf8"));
    expect(after.rope_parameters.sliding_attention).toEqual({ rope_type: "default", rope_theta: 10000 });
    // Nothing to do: nothing is written.
    expect(longhand(["doctor", config, "--fix"]).stdout).toContain("Nothing that could be repaired.");
    expect(readdirSync(folder).sort()).toEqual(["config.json", "config.json.bak", "config.json.bak1"]);
  });

  test("a command line reads the model that it names, and is repaired on the screen", () => {
    const config = example("broken/04-vllm-flag-removed.json");
    const command = `vllm serve ${config} --rope-scaling '{"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":32768}' --max-model-len 131072`;
    expect(longhand(["doctor", command]).stdout).toContain("vllm-flag-removed");
    const before = readFileSync(config, "utf8");
    const { status, stdout } = longhand(["doctor", command, "--fix"]);
    expect(status).toBe(0);
    expect(stdout).toContain(`--hf-overrides '{"rope_parameters":{"rope_type":"yarn","rope_theta":1000000`);
    expect(readFileSync(config, "utf8")).toBe(before);
    expect(existsSync(`${config}.bak`)).toBe(false);
    // The same with the model beside the command.
    const other = longhand(["doctor", config, "--command", "llama-server -m q.gguf -c 131072"]);
    expect(other.stdout).toContain("llama-context-clamped");
  });

  test("a Modelfile is repaired in place, with a backup", () => {
    const modelfile = join(folder, "Modelfile");
    writeFileSync(modelfile, "FROM ./none.gguf\nPARAMETER rope_frequency_base 1e6\n");
    const { stdout } = longhand(["doctor", modelfile, "--fix", "--target", "32k"]);
    expect(stdout).toContain("ollama-rope-parameter");
    expect(readFileSync(modelfile, "utf8")).toBe("FROM ./none.gguf\nPARAMETER num_ctx 32768\n");
    expect(readFileSync(`${modelfile}.bak`, "utf8")).toContain("rope_frequency_base");
  });

  test.each([
    [["doctor"], /missing required argument 'model'/],
    [["doctor", "no-such-model"], /expected a folder .* got a path that does not exist/],
    [["doctor", "make me a sandwich"], /expected vllm serve.*got "make me a sandwich"/],
    [["doctor", "x", "--engine", "vlm"], /Allowed choices are/],
    [["doctor", "x", "--target", "0"], /at least 1/],
  ])("%j ends with 2, and says why on stderr", (args, message) => {
    const { status, stdout, stderr } = longhand(args);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toMatch(message);
  });

  test("examples/01-doctor.mjs finds all ten, and repairs what can be", () => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [example("01-doctor.mjs")], {
      encoding: "utf8",
      env: { ...process.env, NO_COLOR: "1" },
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const found = [
      "legacy-type-lost",
      "llama3-theta",
      "original-length-assumed",
      "vllm-flag-removed",
      "override-loses-theta",
      "no-rope-layers-inverted",
      "sliding-layers-scaled",
      "truncate-missing",
      "llama-context-clamped",
      "original-length-conflict",
    ];
    for (const code of found) expect(stdout).toContain(code);
    expect(stdout.match(/then nothing is left/g)).toHaveLength(9);
    const chinese = spawnSync(process.execPath, [example("01-doctor.mjs"), "zh-TW"], { encoding: "utf8" });
    expect(chinese.status).toBe(0);
    expect(chinese.stdout.match(/之後沒有錯誤或警告/g)).toHaveLength(9);
    expect(chinese.stdout).not.toMatch(/nothing|then /);
  });
});

describe("longhand diff", () => {
  const gptOss = example("configs/gpt-oss-20b.json");

  test("says who computes alike and from where the others part", () => {
    const { status, stdout } = longhand(["diff", gptOss, "--between", "transformers-5,llama.cpp"]);
    expect(status).toBe(0);
    expect(stdout).toContain("A and B: 9 pairs differ");
  });

  test("--json is one document", () => {
    const { stdout, stderr } = longhand(["diff", gptOss, "--target", "8k", "--json"]);
    expect(stderr).toBe("");
    const { groups } = JSON.parse(stdout);
    expect(groups[0].length).toBe(8192);
    expect(groups[0].alike[0]).toContain("transformers-5");
  });

  test.each([
    [["diff", "CONFIG", "--between", "vllm"], /two engines or more/],
    [["diff", "CONFIG", "--between", "vllm,trasformers-5"], /nearest: transformers-5/],
  ])("%j ends with 2", (args, message) => {
    const { status, stderr } = longhand(args.map((arg) => (arg === "CONFIG" ? gptOss : arg)));
    expect(status).toBe(2);
    expect(stderr).toMatch(message);
  });
});
