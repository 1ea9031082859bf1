// longhand export as a newcomer types it: what each engine gets, what is refused, and a patched GGUF read back.

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { describeGguf, memorySource, readGgufHeader } from "../../src/formats/index.ts";
import { longhand } from "../support/cli.ts";
import { float32Tensor, model as ggufKeys, writeGguf } from "../support/gguf-writer.ts";

const example = (name: string) => fileURLToPath(new URL(`../../examples/configs/${name}.json`, import.meta.url));

let folder: string;
let gguf: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "longhand-"));
  gguf = join(folder, "tiny.gguf");
  writeFileSync(
    gguf,
    writeGguf({
      metadata: ggufKeys("llama", [["rope.freq_base", "f32", 10000]], { context: 2048 }),
      tensors: [float32Tensor("token_embd.weight", [1, 2, 3])],
    }),
  );
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const described = async (file: string) =>
  describeGguf(await readGgufHeader(memorySource("model.gguf", Uint8Array.from(readFileSync(file)))));

describe("longhand export", () => {
  test.each([
    ["transformers", /^\s+rope_parameters = \{"rope_type": "yarn", .*AutoModelForCausalLM/ms],
    ["vllm", /^vllm serve MODEL --hf-overrides '\{.*"rope_type": "yarn".*' --max-model-len 4096$/m],
    ["sglang", /^python -m sglang\.launch_server --model-path MODEL .* --context-length 4096$/m],
    ["llama.cpp", /^llama-server -m \S+tiny\.gguf -c 4096 --rope-scaling yarn --rope-scale 2 --yarn-orig-ctx 2048 /m],
    ["gguf", /^ {2}llama\.rope\.scaling\.type = "yarn"$.*^llama-server -m \.\/tiny-4096\.gguf -c 4096$/ms],
    ["mlx", /^\s+rope_scaling = \{"rope_type": "yarn".*^mlx_lm\.generate --model MODEL /ms],
    ["ollama", /^ollama create tiny-4096 -f \.\/Modelfile\nollama run tiny-4096$/m],
  ])("yarn:2 to %s: the command, the cache, and nothing written", (to, expected) => {
    const before = readdirSync(folder);
    const { status, stdout, stderr } = longhand(["export", gguf, "--scaling", "yarn:2", "--to", to]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toMatch(expected);
    expect(stdout).toMatch(/exactly the frequencies of yarn:2, attention scores × 1\.143434/);
    expect(stdout).toMatch(/^Key\/value cache: .* a sequence of 4,096 tokens/m);
    // A command that needs a file says so, others are complete.
    expect(stdout.includes("Not written yet")).toBe(!["vllm", "sglang", "llama.cpp"].includes(to));
    expect(readdirSync(folder)).toEqual(before);
  });

  test("--json prints one document with the contract's names", () => {
    const { status, stdout, stderr } = longhand(["export", gguf, "--scaling", "yarn:2", "--to", "vllm", "--json"]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const made = JSON.parse(stdout);
    expect(made).toMatchObject({
      to: "vllm",
      scaling: "yarn:2",
      length: 4096,
      trainedLength: 2048,
      exact: true,
      nearest: null,
      written: false,
      verified: null,
    });
    expect(made.commands.at(-1)).toBe(made.command);
    expect(made.memory.bytes).toBe(
      made.memory.groups.reduce((sum: number, group: { bytes: number }) => sum + group.bytes, 0),
    );
  });

  test("what is not computed is a code with its sentence, which --lang says in Chinese", () => {
    const reasons = (given: string[]) =>
      JSON.parse(longhand([...given, "--json"]).stdout).groups.map(
        (group: { unsupported: unknown }) => group.unsupported,
      );
    const dropped = ["export", example("qwen2.5-7b"), "--scaling", "drop", "--to", "gguf"];
    expect(reasons(dropped)).toEqual([{ code: "no-words", values: {}, message: "the engine has no words for it" }]);
    expect(longhand(dropped).stdout).toContain("gguf does not compute this: the engine has no words for it.");
    expect(longhand([...dropped, "--lang", "zh-TW"]).stdout).toContain("gguf 算不出來。這個引擎沒有辦法表達它。");

    // An engine's own error stays in its words, in the values too.
    const scaling = '{"rope_type":"proportional","rope_theta":10000,"partial_rotary_factor":0.25}';
    const refused = [
      "export",
      example("llama-4-scout"),
      "--scaling",
      scaling,
      "--to",
      "vllm",
      "--engine-version",
      "0.10.2",
    ];
    const error = expect.stringMatching(/^ValueError: Unknown RoPE scaling type proportional \(vllm/);
    expect(reasons(refused)).toEqual([{ code: "engine-refuses", values: { detail: error }, message: error }]);
    expect(longhand([...refused, "--lang", "zh-TW"]).stdout).toMatch(/引擎自己不收這組設定。\s*ValueError: Unknown/);
  });

  test("a configuration of another name is called MODEL, one in its folder by the folder", () => {
    const lone = longhand(["export", example("qwen2.5-7b"), "--scaling", "yarn:4", "--to", "vllm"]).stdout;
    expect(lone).toMatch(/^vllm serve MODEL --hf-overrides/m);
    expect(lone).toContain("MODEL stands for the folder that the configuration belongs to.");
    const own = join(folder, "own");
    const out = join(folder, "out");
    const config = join(own, "config.json");
    rmSync(own, { recursive: true, force: true });
    longhand(["export", example("qwen2.5-7b"), "--scaling", "none", "--to", "transformers", "--out", own]);
    const { stdout } = longhand(["export", config, "--scaling", "yarn:4", "--to", "transformers", "--out", out]);
    expect(stdout).toContain(
      `AutoModelForCausalLM.from_pretrained("${own}", config=AutoConfig.from_pretrained("${out}/config.json"))`,
    );
    const written = JSON.parse(readFileSync(join(out, "config.json"), "utf8"));
    expect(written.rope_parameters).toMatchObject({ rope_type: "yarn", factor: 4 });
    // The model's own file is none to write over, forced or not.
    const before = readFileSync(config, "utf8");
    for (const force of [[], ["--force"]]) {
      const args = ["export", config, "--scaling", "yarn:2", "--to", "transformers", "--out", own, ...force];
      const { status, stderr } = longhand(args);
      expect(status).toBe(2);
      expect(stderr).toMatch(
        /--out: expected a place beside the model's own files, got .*config\.json, which was read/,
      );
    }
    expect(readFileSync(config, "utf8")).toBe(before);
  });

  test("what an engine has no words for: the nearest, and its error in radians", () => {
    const { status, stdout } = longhand([
      "export",
      example("llama-3.1-8b"),
      "--scaling",
      "yarn:4",
      "--to",
      "llama.cpp",
    ]);
    expect(status).toBe(0);
    const sentence = stdout.replaceAll(/\s+/g, " ");
    expect(sentence).toMatch(
      /llama\.cpp has no words for this\. Nearest: yarn: angles are off by up to 12\.29 rad \(pair 31\) at position 32767/,
    );
    expect(sentence).toContain("--to gguf writes one into a copy of the file");
    const { exact, nearest } = JSON.parse(
      longhand(["export", example("llama-3.1-8b"), "--scaling", "yarn:4", "--to", "llama.cpp", "--json"]).stdout,
    );
    expect(exact).toBe(false);
    expect(nearest.message).toContain("12.29 rad");
  });

  test.each([
    [["--to", "llamacpp"], /Allowed choices are transformers, vllm, sglang, llama\.cpp, gguf, mlx, ollama/],
    [[], /required option '--to <engine>'/],
    [["--to", "vllm", "--scaling", "yarm:2"], /yarn/],
    [
      ["--to", "vllm", "--engine-version", "new"],
      /--engine-version: expected a version, as 4\.57\.6 or b9842, got "new"/,
    ],
    [["--to", "vllm", "--text", "a.txt"], /--text: expected --verify/],
    [["--to", "vllm", "--verify"], /--verify: expected gguf, llama\.cpp or ollama.*longhand verify --endpoint/],
  ])("%j is refused in a sentence, with exit code 2", (more, message) => {
    const { status, stdout, stderr } = longhand(["export", gguf, ...more]);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/internal|^\s+at /m);
  });

  test("--verify and a patch want a GGUF, and say how to get one", () => {
    const config = example("llama-2-7b");
    expect(longhand(["export", config, "--scaling", "yarn:2", "--to", "gguf", "--verify"]).stderr).toMatch(
      /--verify: expected a \.gguf, .*convert it first/,
    );
    expect(
      longhand(["export", config, "--scaling", "yarn:2", "--to", "gguf", "--out", join(folder, "no")]).stderr,
    ).toMatch(/expected a \.gguf to patch, .*convert_hf_to_gguf\.py/);
    expect(existsSync(join(folder, "no"))).toBe(false);
  });

  test("a patched GGUF has the keys, as our reader gives them back, and the source keeps its bytes", async () => {
    const source = readFileSync(gguf);
    const out = join(folder, "patched");
    const args = ["export", gguf, "--scaling", "yarn:2", "--to", "gguf", "--out", out];
    const { status, stdout } = longhand(args);
    const file = join(out, "tiny-4096.gguf");
    expect(status).toBe(0);
    expect(stdout).toContain(`Written: ${file}`);
    expect(stdout).toContain(`llama-server -m ${file} -c 4096`);
    expect(readdirSync(out)).toEqual(["tiny-4096.gguf"]);
    const model = await described(file);
    expect(model.maxPositionEmbeddings).toBe(4096);
    expect(model.groups[0]!.position).toMatchObject({
      rope: { ropeType: "yarn", ropeTheta: 10000, factor: 2, originalMaxPositionEmbeddings: 2048 },
    });
    expect(readFileSync(gguf).equals(source)).toBe(true);
    // A second time: what stands there is not written over unless it is asked for.
    const again = longhand(args);
    expect(again.status).toBe(2);
    expect(again.stderr).toContain(`--out: expected no file at ${file}, got one; --force writes over it`);
    expect(longhand([...args, "--force"]).status).toBe(0);
    // A file that is patched again at its own length would be its own copy.
    const own = longhand(["export", file, "--scaling", "linear:2", "--length", "4096", "--to", "gguf", "--out", out]);
    expect(own.status).toBe(0);
    expect(readdirSync(out).sort()).toEqual(["tiny-4096-4096.gguf", "tiny-4096.gguf"]);
  });

  test("a table of one's own is written as divisors", async () => {
    const asked = Array.from({ length: 32 }, (_, i) => 0.9 ** i / (i + 1));
    const table = JSON.stringify({ rope_type: "table", inverse_frequencies: asked, attention_factor: 1.25 });
    const out = join(folder, "table");
    const { status, stdout } = longhand([
      ...["export", gguf, "--scaling", table, "--length", "4096"],
      ...["--to", "ollama", "--out", out],
    ]);
    expect(status).toBe(0);
    expect(stdout).toMatch(/tensor rope_freqs\.weight = 32 divisors from /);
    expect(readFileSync(join(out, "Modelfile"), "utf8")).toBe("FROM ./tiny-4096.gguf\nPARAMETER num_ctx 4096\n");
    const { position } = (await described(join(out, "tiny-4096.gguf"))).groups[0]!;
    expect(position).toMatchObject({ rope: { ropeType: "table", attentionFactor: 1.25 } });
    const { rope } = position as unknown as { rope: { inverseFrequencies: number[] } };
    rope.inverseFrequencies.forEach((w, i) => {
      expect(Math.abs(w / asked[i]! - 1)).toBeLessThan(1e-6);
    });
  });

  test("--help shows every engine and an example", () => {
    const { status, stdout } = longhand(["export", "--help"]);
    expect(status).toBe(0);
    for (const engine of ["transformers", "vllm", "sglang", "llama.cpp", "gguf", "mlx", "ollama"]) {
      expect(stdout).toContain(`"${engine}"`);
    }
    expect(stdout).toContain("longhand export model.gguf --scaling yarn:2 --to llama.cpp");
  });
});
