// What a family's record reads that the tiny checkpoints do not have: sizes of released models, keys that are absent or
// null, and a text model inside a multimodal file. Expected numbers are those of the released configurations.

import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { loadLanguageModel } from "../../src/engine/index.ts";
import { memorySource } from "../../src/formats/bytes/index.ts";
import { describeGguf, describeHuggingFace, FormatError, readGgufHeader } from "../../src/formats/index.ts";
import { familyOf, ggufSettings, huggingFaceSettings, type ModelSpec } from "../../src/models/index.ts";
import { ByteWriter, utf8 } from "../support/byte-writer.ts";
import { checkpoint } from "../support/checkpoints.ts";
import { type Entry, model, writeGguf } from "../support/gguf-writer.ts";

function specOf(config: Readonly<Record<string, unknown>>): ModelSpec {
  const description = describeHuggingFace(config);
  const modelType = config.model_type as string;
  return familyOf(description, modelType).spec(huggingFaceSettings(config, modelType), description);
}

async function ggufSpecOf(
  architecture: string,
  shape: NonNullable<Parameters<typeof model>[2]>,
  entries: readonly Entry[],
): Promise<ModelSpec> {
  const shared: readonly Entry[] = [
    ["vocab_size", "u32", 256],
    ["feed_forward_length", "u32", 1024],
    ["attention.layer_norm_rms_epsilon", "f32", 1e-6],
    ["attention.sliding_window", "u32", 1024],
  ];
  const header = await readGgufHeader(
    memorySource("m.gguf", writeGguf({ metadata: model(architecture, [...shared, ...entries], shape) })),
  );
  const description = describeGguf(header);
  return familyOf(description, architecture).spec(
    ggufSettings(header, () => false),
    description,
  );
}

describe("Gemma", () => {
  // query_pre_attn_scalar of the released configurations, for which GGUF has no key.
  test.each([
    ["gemma2", 26, 2304, 8, 4, 256, 256],
    ["gemma2", 42, 3584, 16, 8, 256, 256],
    ["gemma2", 46, 4608, 32, 16, 128, 144],
    ["gemma3", 26, 1152, 4, 1, 256, 256],
    ["gemma3", 48, 3840, 16, 8, 256, 256],
    ["gemma3", 62, 5376, 32, 16, 128, 168],
  ])("%s of %d layers scales scores as its config.json says", async (name, layers, hidden, heads, kv, dim, scalar) => {
    const spec = await ggufSpecOf(name, { layers, hidden, heads }, [
      ["attention.head_count_kv", "u32", kv],
      ["attention.key_length", "u32", dim],
      ["attention.value_length", "u32", dim],
    ]);
    expect(spec.layers[0]!.attention.scale).toBeCloseTo(1 / Math.sqrt(scalar), 12);
    expect(spec.embedding.scale).toBe(Math.fround(Math.sqrt(hidden)));
  });

  const gemma2 = {
    model_type: "gemma2",
    hidden_size: 64,
    num_hidden_layers: 2,
    num_attention_heads: 2,
    num_key_value_heads: 1,
    head_dim: 32,
    intermediate_size: 128,
    vocab_size: 100,
  };

  test("2 has the class's caps where config.json leaves them out, and none where it says null", () => {
    const { layers, head } = specOf(gemma2);
    expect([layers[0]!.attention.softcap, head.softcap]).toEqual([50, 30]);
    const without = specOf({ ...gemma2, attn_logit_softcapping: null, final_logit_softcapping: null });
    expect([without.layers[0]!.attention.softcap, without.head.softcap]).toEqual([null, null]);
  });

  test("2 in GGUF has llama.cpp's caps where the file leaves them out, 3 has none", async () => {
    const two = await ggufSpecOf("gemma2", {}, []);
    expect([two.layers[0]!.attention.softcap, two.head.softcap]).toEqual([50, 30]);
    const three = await ggufSpecOf("gemma3", {}, []);
    expect([three.layers[0]!.attention.softcap, three.head.softcap]).toEqual([null, null]);
  });

  test("gelu is its tanh form, whatever hidden_act of a first file says", () => {
    const gemma = { ...gemma2, model_type: "gemma", hidden_act: "gelu" };
    expect(specOf(gemma).layers[0]!.mlp.activation).toBe("gelu-tanh");
    expect(specOf({ ...gemma2, hidden_act: "gelu" }).layers[0]!.mlp.activation).toBe("gelu-tanh");
  });

  test("a model that looks ahead is refused", () => {
    const config = { ...gemma2, model_type: "gemma3_text", use_bidirectional_attention: true };
    expect(() => specOf(config)).toThrow(FormatError);
    expect(() => specOf(config)).toThrow(/use_bidirectional_attention to be false, got true/);
  });
});

/** A safetensors file with other names, and one tensor more. */
async function renamed(path: string, rename: (name: string) => string, extra: string): Promise<Uint8Array> {
  const bytes = await readFile(path);
  const length = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.subarray(8, 8 + length).toString());
  const data = bytes.subarray(8 + length);
  const { __metadata__: metadata, ...tensors } = header;
  const moved = Object.fromEntries(Object.entries(tensors).map(([name, info]) => [rename(name), info]));
  moved[extra] = { dtype: "U8", shape: [1], data_offsets: [data.length, data.length + 1] };
  const json = utf8(JSON.stringify({ __metadata__: metadata, ...moved }));
  return new ByteWriter().u64(json.length).bytes(json).bytes(data).u8(0).done();
}

describe("a text model inside a multimodal file gives the losses that it gives alone", () => {
  test.each([
    ["transformers 5", (name: string) => name.replace(/^model\./, "model.language_model.")],
    ["transformers 4", (name: string) => `language_model.${name}`],
    ["a base model without a head", (name: string) => name.replace(/^model\./, "")],
  ])("as %s names it", async (_, rename) => {
    const { folder, cases } = checkpoint("gemma3");
    const own = await mkdtemp(join(tmpdir(), "longhand-"));
    try {
      const text = JSON.parse(await readFile(join(folder, "config.json"), "utf8"));
      const config = { architectures: ["Gemma3ForConditionalGeneration"], model_type: "gemma3", text_config: text };
      await writeFile(join(own, "config.json"), JSON.stringify(config));
      const vision = "vision_tower.vision_model.embeddings.patch_embedding.bias";
      await writeFile(join(own, "model.safetensors"), await renamed(join(folder, "model.safetensors"), rename, vision));
      await using model = await loadLanguageModel(own);
      const golden = cases.find(({ name }) => name === "long")!;
      const { negativeLogLikelihood: got } = await model.score(golden.tokens);
      const off = golden.losses64.map((loss, i) => Math.abs(loss - got[i]!));
      expect(Math.max(...off)).toBeLessThanOrEqual(2e-4);
      expect(model.findings.filter(({ code }) => code === "unused-tensors")).toEqual([]);
    } finally {
      await rm(own, { recursive: true });
    }
  });
});
