// What is written for each engine, what is said where an engine has no words, and patched GGUFs.

import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { advise, exportConfiguration, type exportTargets, exportText, parseStrategy } from "../../src/advice/index.ts";
import { computeRopeFrequencies } from "../../src/encodings/index.ts";
import { describeGguf, describeHuggingFace, memorySource, patchGguf, readGgufHeader } from "../../src/formats/index.ts";
import { float32Tensor, model as ggufKeys, writeGguf, zeroTensor } from "../support/gguf-writer.ts";

function example(name: string) {
  const configText = readFileSync(new URL(`../../examples/configs/${name}.json`, import.meta.url), "utf8");
  const config = JSON.parse(configText);
  return { model: describeHuggingFace(config, { name }), config, configText };
}

function exported(name: string, scaling: string, to: (typeof exportTargets)[number], more: object = {}) {
  const { model, config, configText } = example(name);
  return exportConfiguration(model, { to, scaling: parseStrategy(scaling), config, configText, model: "M", ...more });
}

describe("the command line of", () => {
  const dict = '"rope_type": "yarn", "rope_theta": 1000000.0, "factor": 4.0, "original_max_position_embeddings": 32768';
  test.each([
    [
      "vllm",
      undefined,
      `vllm serve M --hf-overrides '{"max_position_embeddings": 131072, "rope_parameters": {${dict}}}' --max-model-len 131072`,
    ],
    [
      "vllm",
      "0.10.2",
      `vllm serve M --rope-scaling '{"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}' --hf-overrides '{"max_position_embeddings": 131072}' --max-model-len 131072`,
    ],
    [
      "sglang",
      undefined,
      `python -m sglang.launch_server --model-path M --json-model-override-args '{"max_position_embeddings": 131072, "rope_parameters": {${dict}}}' --context-length 131072`,
    ],
    [
      "sglang",
      "0.5.1",
      `python -m sglang.launch_server --model-path M --json-model-override-args '{"max_position_embeddings": 131072, "rope_theta": 1000000.0, "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}}' --context-length 131072`,
    ],
    [
      "llama.cpp",
      undefined,
      "llama-server -m MODEL.gguf -c 131072 --rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 32768 --override-kv qwen2.context_length=int:131072",
    ],
    ["ollama", undefined, "ollama run m-131072"],
  ] as const)("%s %s", (to, engineVersion, command) => {
    const made = exported("qwen2.5-7b", "yarn:4", to, engineVersion === undefined ? {} : { engineVersion });
    expect(made.command).toBe(command);
    expect(made.exact).toBe(true);
  });

  test("transformers names the files that it writes", () => {
    const made = exported("qwen2.5-7b", "yarn:4", "transformers", { folder: "out" });
    expect(made.command).toContain('config=AutoConfig.from_pretrained("out/config.json")');
    const written = JSON.parse(made.files[0]!.content!);
    expect(written).toMatchObject({
      max_position_embeddings: 131072,
      rope_parameters: { rope_type: "yarn", factor: 4 },
    });
    expect("rope_theta" in written || "rope_scaling" in written).toBe(false);
  });
});

describe("version 4 of transformers", () => {
  const written = (name: string, scaling: string) =>
    JSON.parse(exported(name, scaling, "transformers", { engineVersion: "4.57.6" }).files[0]!.content!);

  test("gets rope_theta and rope_scaling at the top level", () => {
    const config = written("llama-2-7b", "yarn:4");
    expect(config.rope_scaling).toEqual({ rope_type: "yarn", factor: 4, original_max_position_embeddings: 4096 });
    expect(config.rope_theta).toBe(10000);
    expect(config.rope_parameters).toBeUndefined();
  });

  test("gets floats as floats, which it warns about otherwise", () => {
    const text = exported("llama-2-7b", "linear:4", "transformers", { engineVersion: "4.57.6" }).files[0]!.content!;
    expect(text).toContain('"factor": 4.0');
  });

  test("gets a base and no dict for NTK", () => {
    const config = written("llama-2-7b", "ntk:4");
    expect(config.rope_theta).toBeCloseTo(40889.9424, 3);
    expect(config.rope_scaling).toBeUndefined();
  });

  test("keeps Gemma 3's two bases apart", () => {
    const { text_config: config } = written("gemma-3-27b", "yarn:2");
    expect(config.rope_local_base_freq).toBe(10000);
    expect(config.rope_scaling.rope_type).toBe("yarn");
  });
});

describe("what an engine cannot say", () => {
  test("dynamic NTK becomes one base in vLLM, exact at the length and fixed at every other", () => {
    const made = exported("llama-2-7b", "dynamic:4", "vllm");
    expect(made.exact).toBe(true);
    expect(made.notes.map(({ message }) => message).join(" ")).toContain("dynamic changes its table with the length");
  });

  test("flags of llama.cpp do not undo divisors of the file: the nearest, with its error in radians", () => {
    const made = exported("llama-3.1-8b", "yarn:4", "llama.cpp");
    expect(made.exact).toBe(false);
    const group = made.groups[0]!;
    const { inverseFrequencies: asked } = computeRopeFrequencies(
      {
        headDim: 128,
        maxPositionEmbeddings: 131072,
        rope: { ropeType: "yarn", ropeTheta: 500000, factor: 4, originalMaxPositionEmbeddings: 8192 },
      },
      32768,
    );
    const worst = Math.max(...asked.map((w, i) => Math.abs(w - group.inverseFrequencies[i]!) * 32767));
    expect(group.angleDifference).toBeCloseTo(worst, 6);
    expect(made.nearest!.message).toContain("rad");
    expect(exported("llama-3.1-8b", "yarn:4", "gguf").exact).toBe(true);
  });

  test("a table is no GGUF of an architecture that does not read one", () => {
    const made = exported("qwen2.5-7b", "drop", "gguf");
    expect(made.command).toBe("");
    expect(made.patch).toBeNull();
    expect(exportText(made)).toContain("There is no command");
  });

  test("YaRN reaches Phi-3 as lists, since its class takes longrope alone", () => {
    const made = exported("phi-3.5-mini", "yarn:8", "transformers");
    expect(made.exact).toBe(true);
    expect(JSON.parse(made.files[0]!.content!).rope_parameters.rope_type).toBe("longrope");
  });

  test("sliding layers of Gemma 3 keep their window in the cache", () => {
    const { memory } = exported("gemma-3-27b", "as-is", "vllm", { length: 131072 });
    const [sliding, full] = [...memory.groups].sort((a, b) => a.tokens - b.tokens);
    expect(sliding!.tokens).toBe(1024);
    expect(full!.tokens).toBe(131072);
    expect(full!.bytes).toBe(full!.layers.length * 131072 * 2 * 16 * 128 * 2);
  });

  test.each([
    [{ to: "llama-cpp" }, /nearest: llama.cpp/],
    [{ to: "vllm", engineVersion: "new" }, /expected a version/],
    [{ to: "vllm", length: 0 }, /at least 1/],
    [{ to: "vllm", scaling: parseStrategy("dynamic-yarn") }, /expected --length/],
  ])("%j is refused", (options, message) => {
    expect(() => exportConfiguration(example("llama-2-7b").model, options as never)).toThrow(message);
  });

  test("a model without rotation is refused", () => {
    expect(() => exportConfiguration(example("bloom").model, { to: "vllm" })).toThrow(/rotary layers/);
  });
});

describe("a patched GGUF", () => {
  const read = async (bytes: Uint8Array) => readGgufHeader(memorySource("model.gguf", bytes));
  const patched = async (bytes: Uint8Array, patch: Parameters<typeof patchGguf>[1]) => {
    const made = await patchGguf(memorySource("model.gguf", bytes), patch);
    const parts: number[] = [];
    for await (const chunk of made.chunks()) for (const byte of chunk) parts.push(byte);
    expect(parts.length).toBe(made.size);
    return Uint8Array.from(parts);
  };
  const weights = {
    name: "w",
    dimensions: [3],
    type: 0,
    data: Uint8Array.from([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
  };
  const file = (version: 1 | 2 | 3) =>
    writeGguf({
      version,
      metadata: ggufKeys("llama", [
        ["rope.freq_base", "f32", 10000],
        ["rope.scale_linear", "f32", 2],
        ["tokenizer.ggml.tokens", "array", { of: "string", values: ["a", "é", ""] }],
        ["tokenizer.ggml.scores", "array", { of: "f32", values: [0, -1, 2.5] }],
      ]),
      tensors: [float32Tensor("rope_freqs.weight", Array(32).fill(2)), weights, zeroTensor("z", [2, 2])],
    });

  test.each([1, 2, 3] as const)(
    "of version %i says what was asked, and keeps the rest byte for byte",
    async (version) => {
      const bytes = file(version);
      const source = describeGguf(await read(file(3)));
      const plain = { ...source, trainedLength: 4096 };
      const made = exportConfiguration(plain, {
        to: "gguf",
        scaling: parseStrategy("yarn:2"),
        length: 8192,
        model: "a/m.gguf",
      });
      expect(made.files[0]!.path).toBe("m-8192.gguf");
      const header = await read(await patched(bytes, made.patch!));
      expect(header.version).toBe(3);
      expect(header.tensors.has("rope_freqs.weight")).toBe(false);
      expect(header.metadata.has("llama.rope.scale_linear")).toBe(false);
      const tokens = header.metadata.get("tokenizer.ggml.tokens");
      expect(tokens?.type === "array" && tokens.value.values).toEqual(["a", "é", ""]);
      const scores = header.metadata.get("tokenizer.ggml.scores");
      expect(scores?.type === "array" && scores.value.values).toEqual([0, -1, 2.5]);
      const [group] = describeGguf(header).groups;
      expect(group!.position).toMatchObject({
        rope: { ropeType: "yarn", factor: 2, originalMaxPositionEmbeddings: 4096 },
      });
      const w = header.tensors.get("w")!;
      const whole = await patched(bytes, made.patch!);
      expect(whole.slice(w.offset, w.offset + w.byteLength)).toEqual(weights.data);
    },
  );

  test("holds a table of one's own with its magnitude, as our reader gives it back", async () => {
    const bytes = writeGguf({ metadata: ggufKeys("llama", [["rope.freq_base", "f32", 10000]]), tensors: [weights] });
    const asked = Array.from({ length: 32 }, (_, i) => 0.9 ** i / (i + 1));
    const table = JSON.stringify({ rope_type: "table", inverse_frequencies: asked, attention_factor: 1.25 });
    const model = describeGguf(await read(bytes));
    const made = exportConfiguration(model, { to: "gguf", scaling: parseStrategy(table), length: 8192 });
    expect(made.exact).toBe(true);
    const [group] = describeGguf(await read(await patched(bytes, made.patch!))).groups;
    expect(group!.position).toMatchObject({ rope: { ropeType: "table", attentionFactor: 1.25 } });
    const { rope } = group!.position as unknown as { rope: { inverseFrequencies: number[] } };
    rope.inverseFrequencies.forEach((w, i) => {
      expect(Math.abs(w / asked[i]! - 1)).toBeLessThan(1e-6);
    });
  });

  test.each([
    [{ key: "a", type: "u32", value: -1 }, /an integer that u32 holds/],
    [{ key: "a", type: "u32", value: "x" }, /a number/],
    [{ key: "a", type: "f32", value: 1e300 }, /finite f32/],
    [{ key: "a", type: "bool", value: 1 }, /true or false/],
  ] as const)("refuses %j", async (change, message) => {
    await expect(patched(file(3), { metadata: [change], tensors: [] })).rejects.toThrow(message);
  });

  test("refuses a part of a split checkpoint", async () => {
    const bytes = writeGguf({ metadata: ggufKeys("llama", [["split.count", "u16", 2]]) });
    await expect(patched(bytes, { metadata: [], tensors: [] })).rejects.toThrow(/llama-gguf-split --merge/);
  });
});

describe("advice", () => {
  const { model } = example("qwen2.5-7b");

  test("within the trained length: nothing changes", () => {
    expect(advise(model, { target: 32768 })).toMatchObject({ recommended: "as-is", basis: "configuration" });
  });

  test("beyond it: the makers' rule, with a factor that reaches the target", () => {
    const advice = advise(model, { target: 100_000 });
    expect(advice.recommended).toBe("yarn:3.06");
    expect(advice.why.join(" ")).toContain("Qwen2.5");
    expect(advice.hands).toEqual({ turning: 64, unfinishedInTraining: 24, unseen: 24 });
    expect(advice.options.map(({ scaling }) => scaling)).toEqual([
      "yarn:3.06",
      "dynamic:3.06",
      "ntk:3.06",
      "linear:3.06",
      null,
    ]);
    expect(advice.unknown.length).toBeGreaterThan(1);
  });

  test("a scaling of the file's own is kept as far as it reaches", () => {
    expect(advise(example("llama-3.1-8b").model, { target: 100_000 }).recommended).toBe("as-is");
    expect(advise(example("phi-3.5-mini").model, { target: 100_000 }).recommended).toBe("as-is");
  });

  test("encodings without angles have nothing to scale, and a learned table ends", () => {
    expect(advise(example("bloom").model, { target: 100_000 }).recommended).toBe("as-is");
    expect(advise(example("gpt2").model, { target: 2048 })).toMatchObject({ recommended: null });
  });
});
