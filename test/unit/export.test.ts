// Exported models: the form that is chosen, files that load, half precision, the own form's strictness, and what is
// refused. What transformers makes of the same folders: test/parity/training-exports.test.ts.

import { describe, expect, test } from "vitest";
import { inspectModel } from "../../src/advice/index.ts";
import { alibi, nope, rope, xpos } from "../../src/encodings/index.ts";
import { loadLanguageModel } from "../../src/engine/index.ts";
import { describeHuggingFace, openModel } from "../../src/formats/index.ts";
import { fromNumbers, type Tensor, toNumbers } from "../../src/tensor/index.ts";
import {
  type ExportOptions,
  exportForm,
  exportModel,
  gpt2Blocks,
  llamaBlocks,
  mptBlocks,
  smallDecoder,
  type TrainingEncoding,
} from "../../src/training/index.ts";
import {
  caseOptions,
  type ExportCase,
  exportCases,
  exportLength,
  exportSizes,
  exportTokens,
  exportWeights,
  folderOf,
  trainerLosses,
} from "../support/exports.ts";

const caseNamed = (name: string): ExportCase => exportCases.find((one) => one.name === name)!;
const exported = (one: ExportCase, more: Partial<ExportOptions> = {}): Map<string, Uint8Array> =>
  exportModel({ ...caseOptions(one), weights: exportWeights(one), ...more });
const configOf = (files: ReadonlyMap<string, Uint8Array>): Record<string, unknown> =>
  JSON.parse(new TextDecoder().decode(files.get("config.json"))) as Record<string, unknown>;
const farthest = (a: ArrayLike<number>, b: ArrayLike<number>): number =>
  Math.max(...Array.from(a, (x, i) => Math.abs(x - b[i]!)));
const rounded = (weights: ReadonlyMap<string, Tensor<"f32">>, dtype: "f16" | "bf16"): Map<string, Tensor<"f32">> =>
  new Map(
    [...weights].map(([name, { shape, data }]) => [
      name,
      fromNumbers("f32", shape, toNumbers(fromNumbers(dtype, shape, data) as Tensor)) as Tensor<"f32">,
    ]),
  );

describe("in half precision", () => {
  const tokens = exportTokens();
  // Scalings and variants change no weight's way.
  const distinct = exportCases.filter(({ name }) => !/^llama-[ldy]|every|logarithmic|interleaved/.test(name));

  test.each(distinct.map((one) => [one.name, one] as const))("%s has the rounded weights' losses", async (_, one) => {
    expect(exportForm(caseOptions(one))).toBe(one.form);
    const dtype = one.name === "llama-rope" ? "bf16" : "f16";
    const files = exported(one, { dtype });
    expect(configOf(files).dtype).toBe({ f16: "float16", bf16: "bfloat16" }[dtype]);
    await using model = await loadLanguageModel(folderOf(files));
    expect(model.findings.filter(({ severity }) => severity !== "note")).toEqual([]);
    // A temperature by length is not the trainer's.
    const asTrained = one.logitTemperature === undefined ? {} : { logitTemperature: null };
    const { negativeLogLikelihood } = await model.score(tokens, asTrained);
    const trained = await trainerLosses(one, tokens);
    expect(farthest(negativeLogLikelihood, await trained(rounded(exportWeights(one), dtype)))).toBeLessThan(2e-5);
  });
});

describe("the form", () => {
  const sizes = { ...exportSizes, trainedLength: 64 };
  const form = (spec: ExportOptions["spec"], ...encodings: TrainingEncoding[]): string =>
    exportForm({ spec, encodings, trainedLength: 64 });
  const turning = (parameters = {}): TrainingEncoding =>
    rope({ headDim: 8, maxPositionEmbeddings: 64, rope: { ropeType: "default", ropeTheta: 10000, ...parameters } });

  test("is the own one where blocks and encodings are of different classes", () => {
    expect(form(smallDecoder(mptBlocks(sizes)), nope())).toBe("longhand");
    expect(form(smallDecoder(gpt2Blocks(sizes)), turning())).toBe("longhand");
    expect(form(smallDecoder(mptBlocks(sizes)), alibi({ numHeads: 4, maxBias: 16 }))).toBe("longhand");
    expect(form(smallDecoder({ ...llamaBlocks(sizes), windows: [null, 8, null] }), turning())).toBe("longhand");
    expect(form(smallDecoder({ ...llamaBlocks(sizes), scale: 1 }), turning())).toBe("longhand");
    expect(form(smallDecoder(llamaBlocks(sizes)), turning({ partialRotaryFactor: 0.5 }))).toBe("longhand");
    const ntk = rope({ headDim: 8, maxPositionEmbeddings: 64, rope: { ropeType: "ntk", ropeTheta: 10000, factor: 4 } });
    expect(form(smallDecoder(llamaBlocks(sizes)), ntk)).toBe("longhand");
    const two = smallDecoder({ ...llamaBlocks(sizes), groups: [0, 1, 0] });
    expect(form(two, turning(), turning({ ropeTheta: 500000 }))).toBe("longhand");
    expect(form(two, turning(), turning())).toBe("llama");
  });

  test("is the own one where it is asked for", async () => {
    const one = caseNamed("llama-rope");
    const files = exported(one, { form: "longhand" });
    expect(configOf(files).model_type).toBe("longhand");
    await using own = await loadLanguageModel(folderOf(files));
    await using llama = await loadLanguageModel(folderOf(exported(one)));
    const [a, b] = [await own.score(exportTokens()), await llama.score(exportTokens())];
    expect(farthest(a.negativeLogLikelihood, b.negativeLogLikelihood)).toBeLessThan(1e-6);
  });

  test("is refused for what no form can say, naming what can", () => {
    const spec = smallDecoder(llamaBlocks(sizes));
    expect(() => form(spec, xpos({ headDim: 8 }))).toThrow(/expected nope, rope .*got xpos, which no form can say/);
    const layers = spec.layers.map((layer, i) => ({
      ...layer,
      parallel: i === 1 ? ("one-norm" as const) : layer.parallel,
    }));
    expect(() => form({ ...spec, layers }, nope())).toThrow(/llamaBlocks, gpt2Blocks, mptBlocks, bloomBlocks/);
    expect(() => form(spec, nope(), nope())).toThrow(/expected layers of every encoding, got none of 1/);
    expect(() => exportForm({ spec, encodings: [nope()], trainedLength: 0 })).toThrow(/trainedLength of at least 1/);
    const temperature = { kind: "drope", coefficient: 0.1, trainedLength: 64 } as const;
    expect(() =>
      exportForm({ spec, encodings: [turning()], trainedLength: 64, logitTemperature: temperature }),
    ).toThrow(/expected layers without positions for a logit temperature, got rope/);
    const other = { kind: "logn", trainedLength: 64 } as const;
    expect(() => exportForm({ spec, encodings: [nope()], trainedLength: 64, logitTemperature: other })).toThrow(
      /expected DroPE's temperature .*got logn/,
    );
  });

  test("needs weights that are whole, known and small enough", () => {
    const one = caseNamed("gpt2-learned");
    const weights = exportWeights(one);
    const without = new Map(weights);
    without.delete("layers.1.key.weight");
    expect(() => exported(one, { weights: without })).toThrow(
      /expected all parts of transformer.h.1.attn.c_attn.weight, got layers.1.query.weight, layers.1.value.weight/,
    );
    const stranger = new Map([...weights, ["layers.0.gate.weight", fromNumbers("f32", [1, 1], [1]) as Tensor]]);
    expect(() => exported(one, { weights: stranger })).toThrow(
      /expected weights of this form, got layers.0.gate.weight/,
    );
    const large = new Map([...weights, ["finalNorm.bias", fromNumbers("f32", [32], Array(32).fill(1e5)) as Tensor]]);
    expect(() => exported(one, { weights: large, dtype: "f16" })).toThrow(
      /within 65504 for f16 in transformer.ln_f.bias, got 100000; export as bf16 or f32/,
    );
    expect(() => exported(one, { tokenizer: {} })).toThrow(/vocabulary of at least 259 for the tokenizer, got 64/);
    const fire = caseNamed("longhand-fire");
    const bare = new Map([...exportWeights(fire)].filter(([name]) => name !== "layers.2.fire.c"));
    expect(() => exported(fire, { weights: bare })).toThrow(/expected a weight layers.2.fire.c, got none/);
  });
});

describe("the own form", () => {
  const config = configOf(exported(caseNamed("longhand-mixed")));
  const [t5, turning, none] = config.position_encoding as Record<string, unknown>[];
  const read = (changes: Record<string, unknown>): ReturnType<typeof describeHuggingFace> =>
    describeHuggingFace({ ...config, ...changes });

  test("is described layer by layer", () => {
    const { groups, trainedLength, findings } = read({});
    expect(findings).toEqual([]);
    expect(trainedLength).toBe(exportLength);
    expect(groups.map(({ layers, position }) => [layers, position.kind])).toEqual([
      [[0], "t5"],
      [[1], "rope"],
      [[2], "nope"],
    ]);
    // Layers with learned numbers of their own are groups of their own.
    const apart = describeHuggingFace(configOf(exported(caseNamed("longhand-fire"))));
    expect(apart.groups.map(({ layers }) => layers)).toEqual([[0], [1], [2]]);
  });

  test("knows every key and value", () => {
    const entries = (...list: unknown[]) => ({ position_encoding: list });
    const cases: [Record<string, unknown>, RegExp][] = [
      [{ rope_theta: 10000 }, /config.json rope_theta: expected one of architectures/],
      [{ norm_typo: "rms" }, /did you mean "norm_type"/],
      [{ position_encoding: undefined }, /expected a list of encodings, each with its layers, got nothing/],
      [entries(t5, turning), /each of the 3 layers once, got "none for layers 2"/],
      [
        entries(t5, turning, none, { type: "none", layers: [1] }),
        /each of the 3 layers once, got "1 in entries 1 and 3"/,
      ],
      [entries(t5, turning, { type: "none", layers: [2, 3] }), /each of the 3 layers once, got 3/],
      [entries(t5, turning, { type: "nope", layers: [2] }), /position_encoding\[2\].type: expected one of none, rope/],
      [entries(t5, turning, { ...none, theta: 1 }), /position_encoding\[2\].theta: expected one of type, layers/],
      [entries({ ...t5, num_buckets: "8" }, turning, none), /num_buckets: expected an integer of at least 1, got "8"/],
      [entries({ ...t5, max_distance: 4 }, turning, none), /max_distance: expected more than 4/],
      [entries({ ...t5, every_layer: 1 }, turning, none), /every_layer: expected true or false, got 1/],
      [entries(t5, { ...turning, layout: "halves" }, none), /layout: expected one of "half", "interleaved"/],
      [entries(t5, { ...turning, rope_parameters: { rope_type: "yarn" } }, none), /rope_parameters/],
      [entries(t5, turning, { ...none, sliding_window: 0 }), /sliding_window: expected an integer of at least 1/],
      [
        entries(t5, turning, { ...none, logit_temperature: { type: "drope" } }),
        /coefficient: expected a finite number/,
      ],
      [
        entries({ type: "sinusoidal", layers: [0, 1] }, { type: "learned", num_positions: 9, layers: [2] }),
        /at most one encoding that adds rows to the embeddings/,
      ],
    ];
    for (const [changes, message] of cases) expect(() => read(changes)).toThrow(message);
  });

  test("is inspected", async () => {
    const kinds = async (name: string): Promise<string[]> => {
      const { groups } = inspectModel(await openModel(folderOf(exported(caseNamed(name)))));
      return groups.map((group) => group.kind);
    };
    expect(await kinds("longhand-kerple-power")).toEqual(["kerple", "kerple", "kerple"]);
    expect(await kinds("longhand-mixed")).toEqual(["t5", "rope", "nope"]);
  });

  test.each(["longhand-fire", "longhand-kerple-logarithmic", "longhand-t5", "longhand-learned"])(
    "%s: chunks and the cache change nothing, a drop changes losses",
    async (name) => {
      await using model = await loadLanguageModel(folderOf(exported(caseNamed(name))));
      const tokens = exportTokens();
      const whole = await model.score(tokens);
      await using fresh = await loadLanguageModel(folderOf(exported(caseNamed(name))));
      const parts = await fresh.score(tokens, { chunkSize: 5 });
      expect(farthest(whole.negativeLogLikelihood, parts.negativeLogLikelihood)).toBeLessThan(1e-5);
      const dropped = await fresh.score(tokens, { drop: { coefficient: 0 } });
      expect(farthest(whole.negativeLogLikelihood, dropped.negativeLogLikelihood)).toBeGreaterThan(0.01);
      const generated: number[] = [];
      for await (const { token } of model.generate(tokens.slice(0, 8), { maxTokens: 8 })) generated.push(token);
      const again = await fresh.score([...tokens.slice(0, 8), ...generated]);
      expect(again.negativeLogLikelihood).toHaveLength(15);
      expect(generated).toHaveLength(8);
    },
  );

  test("an encoding in place of FIRE's may be any bias", async () => {
    await using model = await loadLanguageModel(folderOf(exported(caseNamed("longhand-fire"))));
    const encodings = { 0: alibi({ numHeads: 4 }), 1: alibi({ numHeads: 4 }), 2: alibi({ numHeads: 4 }) };
    const { positions, negativeLogLikelihood } = await model.score(exportTokens(), { encodings });
    expect(positions.map(({ encoding }) => encoding)).toEqual(["alibi", "alibi", "alibi"]);
    await using plain = await loadLanguageModel(folderOf(exported(caseNamed("longhand-alibi"))));
    const expected = await plain.score(exportTokens());
    expect(farthest(negativeLogLikelihood, expected.negativeLogLikelihood)).toBeLessThan(1e-5);
  });
});
