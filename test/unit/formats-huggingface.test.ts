// What config.json may say, what is assumed where it is silent, and what is refused. What transformers computes from the
// same files: formats-huggingface-transformers.test.ts.

import { readdirSync, readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { computeRopeFrequencies } from "../../src/encodings/rope/scaling/index.ts";
import type { RopeParameters } from "../../src/encodings/rope/scaling/parameters.ts";
import { FormatError } from "../../src/formats/bytes/format-error.ts";
import { describeHuggingFace, parseRopeParameters, toHuggingFace } from "../../src/formats/huggingface/index.ts";
import type { ModelDescription, PositionGroup } from "../../src/formats/model-description.ts";
import { nearest } from "../../src/formats/nearest.ts";

const folder = new URL("../../examples/configs/", import.meta.url);
const files = readdirSync(folder).map((file) => file.replace(".json", ""));
const configOf = (name: string): Record<string, unknown> =>
  JSON.parse(readFileSync(new URL(`${name}.json`, folder), "utf8"));
const read = (name: string): ModelDescription => describeHuggingFace(configOf(name));

const llama = {
  model_type: "llama",
  hidden_size: 64,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  num_hidden_layers: 4,
  max_position_embeddings: 256,
  rope_theta: 10000,
};
const yarn = { rope_type: "yarn", factor: 4, original_max_position_embeddings: 64 };

function ropeOf(model: ModelDescription, layerType?: string): RopeParameters {
  const group = model.groups.find((g) => layerType === undefined || g.layerType === layerType)!;
  if (group.position.kind !== "rope") throw new Error(`expected RoPE, got ${group.position.kind}`);
  return group.position.rope;
}
const summary = (group: PositionGroup) => [group.layers.length, group.layerType, group.position.kind];
const codes = (model: ModelDescription, severity: string) =>
  model.findings.filter((f) => f.severity === severity).map((f) => f.code);

describe("shipped models", () => {
  test("trained length is the scaling's original length, else the claimed one", () => {
    const lengths = Object.fromEntries(files.map((file) => [file, read(file).trainedLength]));
    expect(lengths).toEqual({
      bloom: 2048,
      "command-a": 131072,
      "deepseek-v2-lite": 4096,
      "deepseek-v3": 4096,
      "gemma-3-1b": 32768,
      "gemma-3-27b": 131072,
      "gemma-4-like": 262144,
      "glm-4-9b": 32768,
      "gpt-neox-20b": 2048,
      "gpt-oss-20b": 4096,
      gpt2: 1024,
      "internlm3-8b": 32768,
      "kimi-k2": 4096,
      "llama-2-7b": 4096,
      "llama-3.1-8b": 8192,
      "llama-3.2-1b": 8192,
      "llama-4-scout": 8192,
      "ministral-3-8b": 16384,
      "mistral-7b": 32768,
      "mpt-7b": 2048,
      "phi-3.5-mini": 4096,
      "pythia-160m": 2048,
      "qwen2.5-7b": 32768,
      "qwen2.5-vl-7b": 128000,
      "qwen3-8b-yarn": 32768,
      "smollm2-135m": 8192,
      "smollm3-3b": 65536,
      "t5-small": 512,
      "together-llama-2-7b-32k": 32768,
    });
  });

  test("only one of them deserves a warning, and none is in error", () => {
    const warned = files.flatMap((file) => codes(read(file), "warning").map((code) => [file, code]));
    expect(warned).toEqual([["qwen3-8b-yarn", "yarn-factor-mismatch"]]);
    expect(files.flatMap((file) => codes(read(file), "error"))).toEqual([]);
  });

  test("every layer is in exactly one group of its stack", () => {
    for (const file of files) {
      const model = read(file);
      for (const stack of [["encoder"], ["decoder"], undefined]) {
        const groups = model.groups.filter((g) =>
          stack === undefined ? !["encoder", "decoder"].includes(g.layerType ?? "") : stack[0] === g.layerType,
        );
        const layers = groups.flatMap((g) => g.layers).sort((a, b) => a - b);
        expect(layers).toEqual(layers.map((_, i) => i));
        if (layers.length > 0) expect(layers).toHaveLength(model.numLayers);
      }
    }
  });

  test("Gemma 3 27B: a layer in six is global, alone in its scaling; the others keep theta 10000 and a window", () => {
    const model = read("gemma-3-27b");
    expect(model.groups.map(summary)).toEqual([
      [52, "sliding_attention", "rope"],
      [10, "full_attention", "rope"],
    ]);
    expect(ropeOf(model, "sliding_attention")).toEqual({ ropeType: "default", ropeTheta: 10000 });
    expect(ropeOf(model, "full_attention")).toEqual({ ropeType: "linear", ropeTheta: 1000000, factor: 8 });
    expect(model.groups.map((g) => g.slidingWindow)).toEqual([1024, null]);
    expect(model.groups[1]!.layers.slice(0, 3)).toEqual([5, 11, 17]);
    expect([model.modelType, model.numLayers, model.numKeyValueHeads]).toEqual(["gemma3", 62, 16]);
  });

  test("Gemma 4: global layers have their own head, of which a quarter of the angles turns", () => {
    const { position } = read("gemma-4-like").groups.find((g) => g.layerType === "full_attention")!;
    if (position.kind !== "rope") throw new Error("expected RoPE");
    expect(position.headDim).toBe(512);
    const { inverseFrequencies } = computeRopeFrequencies(
      { headDim: 512, maxPositionEmbeddings: 262144, rope: position.rope },
      1,
    );
    expect([inverseFrequencies.length, inverseFrequencies.filter((w) => w > 0).length]).toEqual([256, 64]);
  });

  test("Llama 4: three chunked rotating layers, then a NoPE layer with a temperature", () => {
    const model = read("llama-4-scout");
    expect(model.groups.map(summary)).toEqual([
      [36, "chunked_attention", "rope"],
      [12, "full_attention", "nope"],
    ]);
    expect(model.groups.map((g) => g.attentionChunkSize)).toEqual([8192, null]);
    expect(model.groups.map((g) => g.logitTemperature)).toEqual([
      null,
      { kind: "llama4", scale: 0.1, floorScale: 8192 },
    ]);
  });

  test("SmolLM3: 1 in no_rope_layers means that the layer rotates", () => {
    const model = read("smollm3-3b");
    expect(model.groups.map(summary)).toEqual([
      [27, "full_attention", "rope"],
      [9, "full_attention", "nope"],
    ]);
    expect(model.groups[1]!.layers).toEqual([3, 7, 11, 15, 19, 23, 27, 31, 35]);
  });

  test("Command A rotates on its sliding layers only", () => {
    expect(read("command-a").groups.map(summary)).toEqual([
      [48, "sliding_attention", "rope"],
      [16, "full_attention", "nope"],
    ]);
  });

  test("DeepSeek: 64 of 192 channels rotate, and the softmax scale grows by m²", () => {
    for (const [name, factor] of [
      ["deepseek-v2-lite", 1.5896],
      ["deepseek-v3", 1.8739],
      ["kimi-k2", 1.8133],
    ] as const) {
      const model = read(name);
      const [group] = model.groups;
      expect(group!.softmaxFactor).toBeCloseTo(factor, 4);
      if (group!.position.kind !== "rope") throw new Error("expected RoPE");
      expect([model.headDim, group!.position.headDim, group!.position.layout]).toEqual([192, 64, "interleaved"]);
    }
  });

  test("Ministral 3 sharpens every layer, and has no softmax factor though it has mscale_all_dim", () => {
    const [group] = read("ministral-3-8b").groups;
    expect(group!.logitTemperature).toEqual({
      kind: "ministral3",
      beta: 0.1,
      originalMaxPositionEmbeddings: 16384,
    });
    expect(group!.softmaxFactor).toBe(1);
    expect(group!.layers).toHaveLength(34);
  });

  test("Qwen2.5-VL: mrope is default rotation with sections, and a flat file is its own text model", () => {
    const [group] = read("qwen2.5-vl-7b").groups;
    expect(group!.position).toEqual({
      site: "query-key",
      kind: "rope",
      headDim: 128,
      layout: "half",
      rope: { ropeType: "default", ropeTheta: 1000000 },
      mropeSection: [16, 24, 24],
      mropeInterleaved: false,
    });
  });

  test("T5 has a bidirectional stack and a causal one; BLOOM and MPT have slopes; GPT-2 has rows", () => {
    expect(read("t5-small").groups.map((g) => [g.layerType, g.position])).toEqual([
      [
        "encoder",
        { site: "attention-bias", kind: "t5", numHeads: 8, numBuckets: 32, maxDistance: 128, bidirectional: true },
      ],
      [
        "decoder",
        { site: "attention-bias", kind: "t5", numHeads: 8, numBuckets: 32, maxDistance: 128, bidirectional: false },
      ],
    ]);
    expect(read("bloom").groups[0]!.position).toMatchObject({ kind: "alibi", numHeads: 112, maxBias: 8 });
    expect(read("mpt-7b").groups[0]!.position).toMatchObject({ kind: "alibi", numHeads: 32, maxBias: 8 });
    expect(read("gpt2").groups[0]!.position).toMatchObject({ kind: "learned", numPositions: 1024, offset: 0 });
  });

  test("each thing that a file leaves out is a note that says what was taken", () => {
    const model = read("gemma-3-27b");
    expect(model.findings.map((f) => [f.severity, f.code, f.where])).toEqual([
      ["note", "class-default", "text_config.max_position_embeddings"],
      ["note", "layer-pattern-assumed", "text_config.layer_types"],
      ["note", "theta-assumed", "text_config.rope_local_base_freq"],
      ["note", "theta-assumed", "text_config.rope_theta"],
      ["note", "trained-length-assumed", "text_config.max_position_embeddings"],
    ]);
    for (const finding of model.findings) expect(finding.expected).not.toBe("");
  });
});

describe("spellings of one setting", () => {
  const scaled = (more: object) => ropeOf(describeHuggingFace({ ...llama, ...more }));

  test("version 4, version 5, `type` and `rope_type` say the same", () => {
    const expected = { ropeType: "linear", ropeTheta: 10000, factor: 4 };
    for (const more of [
      { rope_scaling: { type: "linear", factor: 4 } },
      { rope_scaling: { rope_type: "linear", factor: 4 } },
      { rope_parameters: { rope_type: "linear", factor: 4 } },
      { rope_theta: undefined, rope_parameters: { rope_type: "linear", factor: 4, rope_theta: 10000 } },
    ]) {
      expect(scaled(more)).toEqual(expected);
    }
  });

  test("null, {} and an absent dict are default rotation", () => {
    for (const more of [{}, { rope_scaling: null }, { rope_scaling: {} }, { rope_parameters: null }]) {
      expect(scaled(more)).toEqual({ ropeType: "default", ropeTheta: 10000 });
    }
  });

  test("the rotated share of a head: partial_rotary_factor, rotary_pct, rotary_dim", () => {
    const share = (config: object) =>
      ropeOf(describeHuggingFace({ ...llama, ...config, num_key_value_heads: 4 })).partialRotaryFactor;
    expect(share({ model_type: "phi" })).toBe(0.5);
    expect(share({ model_type: "phi", partial_rotary_factor: 0.75 })).toBe(0.75);
    expect(share({ model_type: "phi", rope_parameters: { partial_rotary_factor: 0.25, rope_theta: 10000 } })).toBe(
      0.25,
    );
    expect(share({ model_type: "gpt_neox", rotary_pct: 1 })).toBeUndefined();
    expect(share({ model_type: "gptj", rotary_dim: 8 })).toBe(0.5);
    expect(share({ model_type: "glm", head_dim: 128 })).toBe(0.5);
  });

  test("a share is exact for every even width of every head", () => {
    for (let headDim = 2; headDim <= 256; headDim += 2) {
      for (let width = 2; width <= headDim; width += 2) {
        const model = describeHuggingFace({
          ...llama,
          model_type: "gptj",
          hidden_size: headDim * 4,
          rotary_dim: width,
        });
        const share = ropeOf(model).partialRotaryFactor ?? 1;
        expect(Math.trunc(headDim * share)).toBe(width);
      }
    }
  });

  test("a null entry of a nested dict is a layer without rotation", () => {
    const model = describeHuggingFace({
      ...llama,
      model_type: "gemma4_text",
      num_hidden_layers: 6,
      head_dim: 16,
      global_head_dim: 32,
      rope_parameters: { full_attention: null, sliding_attention: { rope_type: "default", rope_theta: 10000 } },
    });
    expect(model.groups.map((g) => [g.layerType, g.position.kind])).toEqual([
      ["sliding_attention", "rope"],
      ["full_attention", "nope"],
    ]);
    expect(codes(model, "warning")).toEqual([]);
  });

  test("heads of their own in single layers, as transformers 5 saves them", () => {
    const gemma4 = { ...llama, num_hidden_layers: 6, model_type: "gemma4_text", head_dim: 16 };
    const headDims = (more: object) =>
      describeHuggingFace({ ...gemma4, ...more }).groups.map((g) => g.position.kind === "rope" && g.position.headDim);
    expect(headDims({})).toEqual([16, 512]);
    expect(headDims({ global_head_dim: 64 })).toEqual([16, 64]);
    expect(headDims({ per_layer_config: { "05": { head_dim: 32 } } })).toEqual([16, 32]);
    expect(() => headDims({ per_layer_config: { "0": { head_dim: 32 } } })).toThrow(
      "one head_dim for all layers of a type",
    );
  });

  test("text models of multimodal files are found where their authors put them", () => {
    for (const wrapped of [
      { text_config: llama },
      { language_config: llama },
      { llm_config: llama },
      { thinker_config: { text_config: llama } },
    ]) {
      const model = describeHuggingFace({ model_type: "some_vlm", ...wrapped });
      expect([model.modelType, model.numLayers]).toEqual(["some_vlm", 4]);
    }
  });

  test("vLLM's and DeepSeek's names: deepseek_yarn, mrope, xdrope with alpha, su", () => {
    const parse = (dict: object) => parseRopeParameters(dict, { ropeTheta: 10000, maxPositionEmbeddings: 256 }).rope;
    expect(parse({ rope_type: "deepseek_yarn", factor: 4, original_max_position_embeddings: 64 }).ropeType).toBe(
      "yarn",
    );
    expect(parse({ type: "mrope", mrope_section: [2, 3, 3] }).ropeType).toBe("default");
    expect(parse({ type: "xdrope", alpha: 1000, xdrope_section: [2, 3, 3] })).toEqual({
      ropeType: "dynamic",
      ropeTheta: 10000,
      factor: 1,
      alpha: 1000,
    });
    expect(
      parse({ type: "su", short_factor: [1], long_factor: [2], original_max_position_embeddings: 64 }).ropeType,
    ).toBe("longrope");
  });

  test("deepseek_yarn with mscale alone follows DeepSeek's code, yarn follows transformers", () => {
    const factor = (rope_type: string) => {
      const rope = parseRopeParameters(
        { rope_type, factor: 4, original_max_position_embeddings: 64, mscale: 0.707 },
        { ropeTheta: 10000, maxPositionEmbeddings: 256 },
      ).rope;
      return computeRopeFrequencies({ headDim: 16, maxPositionEmbeddings: 256, rope }, 1).attentionFactor;
    };
    expect(factor("deepseek_yarn")).toBeCloseTo(0.1 * 0.707 * Math.log(4) + 1, 15);
    expect(factor("yarn")).toBeCloseTo(0.1 * Math.log(4) + 1, 15);
  });

  test("custom code with ordinary keys is read as a plain rotary model, with a warning", () => {
    const model = describeHuggingFace({
      ...llama,
      model_type: "baichuan_m9",
      rope_scaling: { type: "dynamic", factor: 2 },
    });
    expect(codes(model, "warning")).toEqual(["unknown-model-type"]);
    expect(ropeOf(model)).toEqual({ ropeType: "dynamic", ropeTheta: 10000, factor: 2 });
  });
});

describe("what is refused", () => {
  const refused = (config: unknown): string => {
    try {
      describeHuggingFace(config);
    } catch (error) {
      expect(error).toBeInstanceOf(FormatError);
      return (error as Error).message;
    }
    throw new Error(`expected a refusal of ${JSON.stringify(config)}`);
  };
  const scaling = (rope_scaling: unknown) => refused({ ...llama, rope_scaling });

  test("values of the wrong type or range, with the place and the repair", () => {
    expect(scaling({ type: "linear", factor: "8" })).toBe(
      'config.json rope_scaling.factor: expected a finite number above 0, got "8"; write 8',
    );
    expect(scaling({ type: "linear", factor: -4 })).toContain(
      "rope_scaling.factor: expected a finite number above 0, got -4",
    );
    expect(scaling({ type: "linear", factor: Number.NaN })).toContain("got NaN");
    expect(scaling({ type: "linear", factor: null })).toContain("got null");
    expect(scaling({ ...yarn, truncate: null })).toContain("rope_scaling.truncate: expected true or false");
    expect(scaling({ ...yarn, original_max_position_embeddings: 64.5 })).toContain("an integer of at least 1");
    expect(scaling({ rope_type: "default", rope_theta: null })).toContain("rope_scaling.rope_theta");
    expect(scaling("yarn")).toContain('rope_scaling: expected an object, or null, got "yarn"');
    expect(refused({ ...llama, rope_theta: "10000" })).toContain(
      'rope_theta: expected a finite number above 0, got "10000"; write 10000',
    );
    expect(refused({ ...llama, partial_rotary_factor: 1.5 })).toContain(
      "partial_rotary_factor: expected a number in (0, 1]",
    );
    expect(refused([])).toBe("config.json: expected an object, got []");
  });

  test("missing keys, unknown types and unknown keys, with the nearest known name", () => {
    expect(scaling({ type: "linear" })).toBe(
      'config.json rope_scaling.factor: expected a finite number above 0, which rope_type "linear" requires, got nothing',
    );
    expect(scaling({ rope_type: "llama3", factor: 8, low_freq_factor: 1 })).toContain("rope_scaling.high_freq_factor");
    expect(scaling({ rope_type: "yarm", factor: 4 })).toContain('got "yarm"; nearest: yarn');
    expect(scaling({ rope_type: "constructor", factor: 4 })).toContain('got "constructor"');
    expect(scaling({ ...yarn, beta_fst: 32 })).toContain('got "beta_fst"; nearest: beta_fast');
    expect(scaling({ ...yarn, mixed_b: 2 })).toContain('got "mixed_b"');
    expect(scaling({ ...yarn, rope_theta: 1, ropeTheta: 2 })).toContain("one spelling of the key, not also rope_theta");
    expect(
      refused({
        ...llama,
        model_type: "gemma3_text",
        head_dim: 16,
        rope_parameters: { full_atention: {}, sliding_attention: {} },
      }),
    ).toContain('got "full_atention"; nearest: full_attention');
  });

  test("odd rotated widths and lists that do not hold one number a pair", () => {
    expect(refused({ ...llama, head_dim: 15 })).toContain("an even number of rotated channels, at least 2 (head of 15");
    expect(refused({ ...llama, partial_rotary_factor: 0.2 })).toContain("got 3");
    const longrope = {
      type: "longrope",
      short_factor: [1, 1],
      long_factor: [1, 1],
      original_max_position_embeddings: 64,
    };
    expect(scaling(longrope)).toContain(
      "rope_scaling.short_factor: expected a list of 8 numbers, half of the 16 rotated channels, got 2",
    );
    expect(scaling({ type: "mrope", mrope_section: [2, 3, 4] })).toContain("sections that sum to 8");
    expect(scaling({ type: "mrope" })).toContain('which rope_type "mrope" requires');
    expect(refused({ ...llama, model_type: "gptj", rotary_dim: 32 })).toContain(
      "rotary_dim: expected at most the 16 channels of a head",
    );
  });

  test("a shape that is missing or impossible", () => {
    const { hidden_size: _, ...headless } = llama;
    expect(refused(headless)).toContain(
      "hidden_size (or n_embd, d_model, n_embed, dim): expected an integer of at least 1, got nothing",
    );
    expect(refused({ ...llama, hidden_size: 65 })).toContain("hidden_size 65 is not a multiple of 4 heads");
    expect(refused({ ...llama, num_hidden_layers: 1e9 })).toContain("num_hidden_layers: expected at most 16384");
    expect(refused({ ...llama, model_type: "smollm3", no_rope_layers: [1, 0] })).toContain(
      "one entry for each of 4 layers, got 2",
    );
    expect(refused({ ...llama, model_type: "qwen3", layer_types: ["full_attention"] })).toContain(
      "layer_types: expected one entry for each of 4 layers, got 1",
    );
    expect(refused({ ...llama, model_type: "qwen3", layer_types: Array(4).fill("full_atention") })).toContain(
      "nearest: full_attention",
    );
  });

  test("an unknown model_type without the keys of a rotary model, naming the nearest", () => {
    expect(refused({ model_type: "lama", hidden_size: 64 })).toMatch(
      /^config\.json model_type: expected a known model_type, .* got "lama"; nearest: llama/,
    );
    expect(refused({})).toContain("config.json model_type: expected a known model_type");
    expect(refused({ model_type: "toString" })).toContain('got "toString"');
  });

  test("position_embedding_type of old BERT variants, which nothing computes any more", () => {
    expect(refused({ ...llama, model_type: "bert", position_embedding_type: "relative_key" })).toContain('"absolute"');
  });
});

describe("what is warned of", () => {
  const warnings = (more: object) =>
    describeHuggingFace({ ...llama, ...more }).findings.filter((f) => f.severity !== "note");

  test("a misspelt key is an error: the setting is lost", () => {
    for (const [key, meant] of [
      ["rope_thetta", "rope_theta"],
      ["rope_scalling", "rope_scaling"],
      ["original_max_position_embedding", "original_max_position_embeddings"],
      ["partial_rotary_facter", "partial_rotary_factor"],
    ] as const) {
      const [finding] = warnings({ [key]: 5 });
      expect([finding!.code, finding!.severity, finding!.expected]).toEqual(["misspelt-key", "error", meant]);
    }
    expect(warnings({ rope_magic: 5 }).map((f) => f.code)).toEqual(["unread-key"]);
  });

  test("no key of a shipped model is taken for a misspelling", () => {
    for (const file of files) {
      const suspicious = read(file).findings.filter((f) => ["misspelt-key", "unread-key"].includes(f.code));
      expect(suspicious).toEqual([]);
    }
  });

  test("a key of another type changes nothing, and is named with its owner", () => {
    const [finding] = warnings({ max_position_embeddings: 256, rope_scaling: { ...yarn, high_freq_factor: 4 } });
    expect(finding).toMatchObject({ code: "unused-key", where: "rope_scaling.high_freq_factor", got: 4 });
    expect(finding!.expected).toContain("llama3");
  });

  test("YaRN's factor against the two lengths: the explicit factor wins, both are named", () => {
    const model = describeHuggingFace({ ...llama, max_position_embeddings: 512, rope_scaling: yarn });
    expect(ropeOf(model)).toMatchObject({ factor: 4 });
    const [finding] = model.findings.filter((f) => f.code === "yarn-factor-mismatch");
    expect(finding!.got).toBe(4);
    expect(finding!.expected).toContain("8");
    expect(warnings({ rope_scaling: yarn }).map((f) => f.code)).toEqual([]);
  });

  test("YaRN with equal lengths: a length not raised, or a factor applied twice", () => {
    expect(warnings({ max_position_embeddings: 64, rope_scaling: yarn }).map((f) => f.code)).toEqual([
      "yarn-original-equals-max",
    ]);
    expect(warnings({ rope_scaling: { type: "yarn", factor: 4 } }).map((f) => f.code)).toEqual([
      "original-length-assumed",
    ]);
  });

  test("factors below 1, reversed betas, an original length that is not below the claimed one", () => {
    expect(warnings({ rope_scaling: { type: "linear", factor: 0.25 } }).map((f) => f.code)).toEqual([
      "factor-below-one",
    ]);
    expect(warnings({ rope_scaling: { ...yarn, beta_fast: 1, beta_slow: 32 } }).map((f) => f.code)).toEqual([
      "betas-reversed",
    ]);
    const llama3 = {
      rope_type: "llama3",
      factor: 8,
      low_freq_factor: 1,
      high_freq_factor: 4,
      original_max_position_embeddings: 256,
    };
    expect(warnings({ rope_scaling: llama3 }).map((f) => f.code)).toEqual(["original-not-below-max"]);
  });

  test("llama3 bands: equal factors are a step and a note, as Llama 4 ships; reversed ones a warning", () => {
    const findings = (high: number) =>
      describeHuggingFace({
        ...llama,
        max_position_embeddings: 4096,
        rope_scaling: {
          rope_type: "llama3",
          factor: 8,
          low_freq_factor: 2,
          high_freq_factor: high,
          original_max_position_embeddings: 256,
        },
      }).findings.filter((f) => f.code.startsWith("llama3-"));
    expect(findings(4)).toEqual([]);
    expect(findings(2)).toMatchObject([{ code: "llama3-step", severity: "note", fix: "" }]);
    expect(findings(1)).toMatchObject([{ code: "llama3-bands", severity: "warning" }]);
  });

  test("both dicts: a note when they agree and nothing is lost, a warning when they do not", () => {
    const linear = { rope_type: "linear", factor: 4 };
    const severity = (more: object) =>
      describeHuggingFace({ ...llama, ...more }).findings.find((f) => f.code === "both-rope-dicts")!.severity;
    expect(severity({ rope_scaling: linear, rope_parameters: { ...linear, rope_theta: 10000 } })).toBe("note");
    expect(severity({ rope_scaling: linear, rope_parameters: { ...linear, rope_theta: 20000 } })).toBe("warning");
    expect(severity({ rope_scaling: linear, rope_parameters: { ...linear, factor: 8 } })).toBe("warning");
  });

  test("settings that are well typed but cannot be computed with are an error", () => {
    const yarn = { rope_type: "yarn", factor: 4, original_max_position_embeddings: 64 };
    const tiny = { ...llama, rope_scaling: { rope_type: "linear", factor: 1e-310 } };
    expect(() => describeHuggingFace(tiny)).toThrow(FormatError);
    expect(() => describeHuggingFace(tiny)).toThrow(/finite frequencies/);
    // Betas past float64's range are only the ends of the ramp.
    expect(() => describeHuggingFace({ ...llama, rope_scaling: { ...yarn, beta_fast: 1e308 } })).not.toThrow();
  });

  test("linear and dynamic do not say where they were trained", () => {
    const notes = (dict: object) =>
      describeHuggingFace({ ...llama, rope_scaling: dict })
        .findings.map((f) => f.code)
        .includes("trained-length-assumed");
    expect(notes({ type: "linear", factor: 4 })).toBe(true);
    expect(notes({ type: "linear", factor: 4, original_max_position_embeddings: 64 })).toBe(false);
    const told = describeHuggingFace({
      ...llama,
      rope_scaling: { type: "dynamic", factor: 4, original_max_position_embeddings: 64 },
    });
    expect(told.trainedLength).toBe(64);
  });

  test("Falcon's ALiBi, MPT's alibi_bias_max and dual chunk attention are spoken of", () => {
    const falcon = describeHuggingFace({ ...llama, model_type: "falcon", alibi: true });
    expect(codes(falcon, "warning")).toEqual(["alibi-scaled"]);
    expect(falcon.groups[0]!.position).toMatchObject({ kind: "alibi", slopeScale: 1 / Math.sqrt(falcon.headDim) });
    const mpt = { model_type: "mpt", d_model: 64, n_heads: 4, n_layers: 2, max_seq_len: 128 };
    const steep = describeHuggingFace({ ...mpt, attn_config: { alibi: true, alibi_bias_max: 16 } });
    expect(steep.groups[0]!.position).toMatchObject({ kind: "alibi", maxBias: 16 });
    expect(codes(steep, "warning")).toEqual(["alibi-bias-max-unread"]);
    expect(describeHuggingFace({ ...mpt, attn_config: { alibi: false } }).groups[0]!.position.kind).toBe("learned");
    const chunked = {
      dual_chunk_attention_config: { chunk_size: 128, local_size: 16, original_max_position_embeddings: 256 },
    };
    expect(describeHuggingFace({ ...llama, model_type: "qwen2", ...chunked }).findings.map((f) => f.code)).toContain(
      "dual-chunk-attention",
    );
  });
});

describe("toHuggingFace", () => {
  const positive = fc.double({ min: 1e-3, max: 1e6, noNaN: true });
  const count = fc.integer({ min: 1, max: 1 << 20 });
  const list = fc.array(positive, { minLength: 1, maxLength: 4 });
  const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
  const common = { ropeTheta: positive, partialRotaryFactor: maybe(fc.double({ min: 0.01, max: 1, noNaN: true })) };
  const rope = fc
    .oneof(
      fc.record({ ropeType: fc.constant("default"), ...common }),
      fc.record({ ropeType: fc.constantFrom("linear", "ntk"), ...common, factor: positive }),
      fc.record({ ropeType: fc.constant("dynamic"), ...common, factor: positive, alpha: maybe(positive) }),
      fc.record({
        ropeType: fc.constant("yarn"),
        ...common,
        factor: fc.option(positive),
        originalMaxPositionEmbeddings: count,
        betaFast: maybe(positive),
        betaSlow: maybe(fc.option(positive)),
        truncate: maybe(fc.boolean()),
        attentionFactor: maybe(positive),
        mscale: maybe(positive),
        mscaleAllDim: maybe(positive),
      }),
      fc.record({
        ropeType: fc.constant("llama3"),
        ...common,
        factor: positive,
        originalMaxPositionEmbeddings: count,
        lowFreqFactor: positive,
        highFreqFactor: positive,
      }),
      fc.record({
        ropeType: fc.constant("longrope"),
        ...common,
        originalMaxPositionEmbeddings: count,
        shortFactor: list,
        longFactor: list,
        shortMscale: maybe(positive),
      }),
      fc.record({ ropeType: fc.constant("proportional"), ...common, factor: maybe(fc.option(positive)) }),
      fc.record({
        ropeType: fc.constantFrom("gradient", "ntk-by-parts"),
        ...common,
        factor: positive,
        originalMaxPositionEmbeddings: count,
      }),
      fc.record({
        ropeType: fc.constantFrom("dynamic-linear", "dynamic-yarn"),
        ...common,
        originalMaxPositionEmbeddings: count,
      }),
      fc.record({ ropeType: fc.constant("table"), ...common, inverseFrequencies: list }),
    )
    .map(
      (value) =>
        Object.fromEntries(Object.entries(value).filter(([, v]) => v !== undefined)) as unknown as RopeParameters,
    );

  test("is undone by parseRopeParameters, whatever the context says, and survives JSON", () => {
    fc.assert(
      fc.property(rope, (value) => {
        // mscale alone with attentionFactor absent stays as it is: only deepseek_yarn folds it.
        const dict = JSON.parse(JSON.stringify(toHuggingFace(value)));
        const context = { ropeTheta: 12345, originalMaxPositionEmbeddings: 777, maxPositionEmbeddings: 999 };
        expect(parseRopeParameters(dict, context).rope).toEqual(value);
        // The library's own spelling is read too.
        expect(parseRopeParameters(value, context).rope).toEqual(value);
      }),
      { numRuns: 500 },
    );
  });

  test("writes every shipped model's settings as transformers 5 spells them", () => {
    expect(toHuggingFace(ropeOf(read("gpt-oss-20b")))).toEqual({
      rope_type: "yarn",
      rope_theta: 150000,
      factor: 32,
      original_max_position_embeddings: 4096,
      beta_fast: 32,
      beta_slow: 1,
      truncate: false,
    });
    for (const file of files) {
      for (const { position } of read(file).groups) {
        if (position.kind !== "rope") continue;
        const back = parseRopeParameters(toHuggingFace(position.rope), { headDim: position.headDim });
        expect(back.rope).toEqual(position.rope);
      }
    }
  });
});

describe("hostile files", () => {
  const strange = fc.oneof(
    fc.constantFrom<unknown>(
      null,
      "",
      "8",
      "yarn",
      true,
      -1,
      0,
      0.5,
      1e308,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      [],
      {},
      [null],
      {
        full_attention: null,
      },
    ),
    fc.integer(),
    fc.string(),
    fc.array(fc.oneof(fc.integer(), fc.string()), { maxLength: 3 }),
    fc.object({ maxDepth: 1 }),
  );

  function paths(value: unknown, path: readonly (string | number)[] = []): (readonly (string | number)[])[] {
    if (typeof value !== "object" || value === null) return [path];
    return [path, ...Object.entries(value).flatMap(([key, inner]) => paths(inner, [...path, key]))];
  }
  function replaced(value: unknown, path: readonly (string | number)[], by: unknown, remove: boolean): unknown {
    if (path.length === 0) return by;
    const [key, ...rest] = path as [string, ...string[]];
    const copy = Array.isArray(value) ? [...value] : { ...(value as object) };
    const record = copy as Record<string, unknown>;
    if (rest.length === 0 && remove) delete record[key];
    else record[key] = replaced(record[key], rest, by, remove);
    return copy;
  }

  test("a shipped file with one or two values exchanged is read or refused, never anything else", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...files),
        fc.array(fc.tuple(fc.nat(), strange, fc.boolean()), { minLength: 1, maxLength: 2 }),
        (file, edits) => {
          let config: unknown = configOf(file);
          for (const [at, value, remove] of edits) {
            const places = paths(config);
            config = replaced(config, places[at % places.length]!, value, remove);
          }
          let model: ModelDescription;
          try {
            model = describeHuggingFace(config);
          } catch (error) {
            expect(error, JSON.stringify(config)).toBeInstanceOf(FormatError);
            return;
          }
          // What is read can be computed with.
          for (const { position } of model.groups) {
            if (position.kind !== "rope") continue;
            const maxPositionEmbeddings = model.maxPositionEmbeddings ?? 4096;
            computeRopeFrequencies({ headDim: position.headDim, maxPositionEmbeddings, rope: position.rope }, 16);
          }
        },
      ),
      { numRuns: 2000 },
    );
  });
});

describe("nearest", () => {
  test("finds a name with a letter missing, doubled or swapped, and nothing for a stranger", () => {
    const known = ["rope_theta", "rope_type", "factor", "beta_fast"];
    expect(nearest("rope_thetta", known)[0]).toBe("rope_theta");
    expect(nearest("facotr", known)).toEqual(["factor"]);
    expect(nearest("zzzzzzzz", known)).toEqual([]);
    expect(nearest("rope_", known, 1)).toHaveLength(1);
  });
});
