// Every description against what transformers 5.24.0 computes from the same config.json (reference/hf_configs.py):
// inverse frequencies per layer type, attention factors, which layers rotate, pairing, windows, the softmax scale.

import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { computeRopeFrequencies } from "../../src/encodings/rope/scaling/index.ts";
import type { RopeParameters } from "../../src/encodings/rope/scaling/parameters.ts";
import { sinusoidalTable } from "../../src/encodings/sinusoidal.ts";
import { describeHuggingFace } from "../../src/formats/huggingface/index.ts";
import type { ModelDescription, PositionGroup } from "../../src/formats/model-description.ts";

interface Table {
  layerType: string | null;
  length: number;
  inverseFrequencies: number[];
  attentionFactor: number;
}
interface T5Stack {
  layers: number;
  withBias: number[];
  bidirectional: boolean;
  table: [number, number];
}
type Config = Record<string, unknown>;
interface Fixture {
  versions: { transformers: string };
  tables: { name: string; config?: Config; tables: Table[]; saved: Config }[];
  models: {
    name: string;
    config: Config;
    rotating: number[];
    layouts: string[];
    visible: number[];
    softmaxFactor?: number;
  }[];
  embeddings: {
    name: string;
    config: Config;
    rows: number;
    width: number;
    first: number;
    stacks: number;
    row5?: number[];
  }[];
  t5: { name: string; config: Config; encoder: T5Stack; decoder: T5Stack }[];
  misread: { name: string; config: Config; tables?: Table[]; raises?: string; forwardRaises?: string }[];
}

const folder = new URL("../fixtures/", import.meta.url);
const fixture = JSON.parse(readFileSync(new URL("hf-configs.json", folder), "utf8")) as Fixture;

function configOf(entry: { name: string; config?: Config }): Config {
  if (entry.config !== undefined) return entry.config;
  return JSON.parse(
    readFileSync(new URL(`../../examples/configs/${entry.name.replace("file:", "")}.json`, import.meta.url), "utf8"),
  );
}

type RotaryGroup = PositionGroup & { position: { kind: "rope" } };

/** The rotary groups that transformers' table of this layer type serves; without one, every rotary group. */
function groupsOf(model: ModelDescription, layerType: string | null): RotaryGroup[] {
  return model.groups.filter(
    (group): group is RotaryGroup =>
      group.position.kind === "rope" && (layerType === null || group.layerType === layerType),
  );
}

function frequenciesOf(model: ModelDescription, group: RotaryGroup, length: number) {
  const { headDim, rope } = group.position;
  // A file without a length still has frequencies, where none is read.
  return computeRopeFrequencies(
    { headDim, maxPositionEmbeddings: model.maxPositionEmbeddings ?? length, rope },
    length,
  );
}

function worstRelative(got: ArrayLike<number>, expected: readonly number[]): number {
  expect(got.length).toBe(expected.length);
  let worst = 0;
  expected.forEach((value, i) => {
    worst = Math.max(worst, value === 0 ? Math.abs(got[i]!) : Math.abs(got[i]! / value - 1));
  });
  return worst;
}

test("the fixture comes from transformers 5.24.0 and is not empty", () => {
  expect(fixture.versions.transformers).toBe("5.24.0");
  expect(fixture.tables.length).toBeGreaterThan(150);
  expect(fixture.models.length).toBeGreaterThan(40);
});

describe("frequencies equal those of the real rotary module", () => {
  test.each(fixture.tables)("$name", (entry) => {
    const model = describeHuggingFace(configOf(entry));
    expect(entry.tables.length).toBeGreaterThan(0);
    for (const table of entry.tables) {
      const groups = groupsOf(model, table.layerType);
      expect(groups.length, `groups of ${table.layerType}`).toBeGreaterThan(0);
      for (const group of groups) {
        const got = frequenciesOf(model, group, table.length);
        // float32 there, float64 here; llama3's blend rounds a few times more (observed: 3.3e-7).
        const tolerance = group.position.rope.ropeType === "llama3" ? 4e-7 : 3e-7;
        expect(worstRelative(got.inverseFrequencies, table.inverseFrequencies)).toBeLessThan(tolerance);
        expect(Math.abs(got.attentionFactor / table.attentionFactor - 1)).toBeLessThan(
          group.position.rope.ropeType === "longrope" ? 1e-7 : 1e-12,
        );
      }
    }
  });
});

describe("a file means the same after transformers has loaded it and saved it in the newer schema", () => {
  test.each(fixture.tables)("$name", (entry) => {
    const meaning = (config: Config) => {
      const { groups, trainedLength } = describeHuggingFace(config);
      return { groups, trainedLength };
    };
    const [before, after] = [meaning(configOf(entry)), meaning(entry.saved)];
    expect(after.groups).toEqual(before.groups);
    // Where the file names no original length, the saved one repeats max_position_embeddings.
    expect(after.trainedLength).toBe(before.trainedLength);
    expect(describeHuggingFace(entry.saved).findings.filter((finding) => finding.severity === "error")).toEqual([]);
  });
});

describe("layers, pairing, windows and the softmax scale equal those of a real forward pass", () => {
  test.each(fixture.models)("$name", (entry) => {
    const model = describeHuggingFace(entry.config);
    const byLayer = new Map<number, PositionGroup>();
    for (const group of model.groups) for (const layer of group.layers) byLayer.set(layer, group);
    const rotating = [...byLayer].filter(([, group]) => group.position.kind === "rope").map(([layer]) => layer);
    expect(rotating.sort((a, b) => a - b)).toEqual(entry.rotating);
    const layouts = [...byLayer.values()].flatMap((g) => (g.position.kind === "rope" ? [g.position.layout] : []));
    expect([...new Set(layouts)]).toEqual(entry.layouts);
    expect(entry.visible).toEqual(
      Array.from({ length: model.numLayers }, (_, layer) => {
        const { slidingWindow, attentionChunkSize } = byLayer.get(layer)!;
        if (attentionChunkSize !== null) return 1 + (6 % attentionChunkSize);
        return Math.min(slidingWindow ?? 7, 7);
      }),
    );
    if (entry.softmaxFactor !== undefined) {
      expect(model.groups[0]!.softmaxFactor).toBeCloseTo(entry.softmaxFactor, 12);
    }
  });
});

describe("position tables have the rows of the real module, and position 0 the row that it uses", () => {
  test.each(fixture.embeddings)("$name", (entry) => {
    const model = describeHuggingFace(entry.config);
    const { position } = model.groups[0]!;
    if (position.site !== "embedding") throw new Error(`expected an embedding, got ${position.site}`);
    const offset = position.kind === "learned" ? position.offset : 0;
    expect(position.kind).toBe(entry.row5 === undefined ? "learned" : "sinusoidal");
    expect({ rows: position.numPositions! + offset, width: position.hiddenSize, first: offset }).toEqual({
      rows: entry.rows,
      width: entry.width,
      first: entry.first,
    });
    expect(new Set(model.groups.map((group) => group.layerType ?? "")).has("decoder")).toBe(entry.stacks === 2);
    if (entry.row5 === undefined || position.kind !== "sinusoidal") return;
    const { hiddenSize, layout, theta } = position;
    const row = sinusoidalTable([5], { hiddenSize, layout, theta });
    entry.row5.forEach((value, i) => {
      expect(row[i]).toBeCloseTo(value, 6);
    });
  });
});

describe("T5's stacks, directions and tables are those of the real model", () => {
  test.each(fixture.t5)("$name", (entry) => {
    const model = describeHuggingFace(entry.config);
    for (const name of ["encoder", "decoder"] as const) {
      const { position, layers } = model.groups.find((group) => group.layerType === name)!;
      if (position.kind !== "t5") throw new Error(`expected a T5 bias, got ${position.kind}`);
      const stack = entry[name];
      expect(layers).toHaveLength(stack.layers);
      expect(position.bidirectional).toBe(stack.bidirectional);
      expect([position.numBuckets, position.numHeads]).toEqual(stack.table);
      const everyLayer = model.findings.some((finding) => finding.code === "t5-bias-every-layer");
      expect(everyLayer ? layers : layers.slice(0, 1)).toEqual(stack.withBias);
    }
  });
});

interface Misread {
  code: string;
  /** What the file means, for the layer type at hand. */
  meant: Partial<Record<string, RopeParameters | null>>;
  /** The layer type whose reading differs. */
  layerType: string | null;
  /** A number of transformers' reading that the finding must name, and how to read it off the fixture. */
  names?: string;
}

const linear = (ropeTheta: number, factor: number): RopeParameters => ({ ropeType: "linear", ropeTheta, factor });
const plain = (ropeTheta: number): RopeParameters => ({ ropeType: "default", ropeTheta });
const yarn = (ropeTheta: number, more: object = {}): RopeParameters =>
  ({ ropeType: "yarn", ropeTheta, factor: 4, originalMaxPositionEmbeddings: 64, ...more }) as RopeParameters;
const full = "full_attention";
const sliding = "sliding_attention";
const long = {
  ropeType: "longrope",
  ropeTheta: 10000,
  originalMaxPositionEmbeddings: 64,
  shortFactor: Array.from({ length: 8 }, (_, i) => 1 + i / 8),
  longFactor: Array.from({ length: 8 }, (_, i) => 2 + i),
} as const satisfies RopeParameters;

const misread: Record<string, Misread> = {
  "gemma3 legacy type": {
    code: "legacy-type-lost",
    layerType: full,
    meant: { [full]: linear(1e6, 8), [sliding]: plain(1e4) },
  },
  "gemma3 flat": {
    code: "flat-unread",
    layerType: full,
    meant: { [full]: linear(2e6, 8), [sliding]: plain(1e4) },
    names: "1000000",
  },
  "gemma3 null entry": {
    code: "null-entry",
    layerType: full,
    meant: { [full]: null, [sliding]: plain(1e4) },
    names: "1000000",
  },
  "gemma4 flat": {
    code: "flat-unread",
    layerType: full,
    meant: { [full]: plain(2e6), [sliding]: plain(1e4) },
    names: "KeyError",
  },
  "gemma4 legacy": { code: "flat-unread", layerType: full, meant: { [full]: linear(1e6, 8), [sliding]: plain(1e4) } },
  "olmo3 sliding theta": {
    code: "theta-unread",
    layerType: sliding,
    meant: { [full]: plain(1e4), [sliding]: plain(1e4) },
    names: "500000",
  },
  "olmo3 legacy type": {
    code: "legacy-type-lost",
    layerType: full,
    meant: { [full]: linear(5e5, 8), [sliding]: plain(5e5) },
  },
  "phi3 inner original": { code: "original-length-conflict", layerType: null, meant: { "": long }, names: "4096" },
  "llama top-level original wins": {
    code: "original-length-conflict",
    layerType: null,
    meant: { "": yarn(1e4) },
    names: "32",
  },
  "nested truncate": {
    code: "nested-truncate",
    layerType: full,
    meant: { [full]: yarn(5e5, { truncate: false }), [sliding]: plain(5e5) },
  },
  "both dicts": { code: "both-rope-dicts", layerType: null, meant: { "": linear(3e6, 4) }, names: "10000" },
  "gpt_neox rope_theta": {
    code: "theta-unread",
    layerType: null,
    meant: { "": { ...plain(25000), partialRotaryFactor: 0.25 } },
    names: "10000",
  },
  "gpt_neox partial_rotary_factor": {
    code: "partial-unread",
    layerType: null,
    meant: { "": { ...plain(1e4), partialRotaryFactor: 0.5 } },
    names: "0.25",
  },
  "llama partial": {
    code: "partial-unread",
    layerType: null,
    meant: { "": { ...plain(1e4), partialRotaryFactor: 0.5 } },
    names: "16",
  },
  "llama partial yarn": {
    code: "partial-unread",
    layerType: null,
    meant: { "": yarn(1e4, { partialRotaryFactor: 0.5 }) },
    names: "fails",
  },
  "llama nested": { code: "nested-unread", layerType: null, meant: { "": linear(3e6, 4) }, names: "10000" },
  "qwen3 nested": { code: "nested-unread", layerType: null, meant: { [full]: linear(3e6, 4) }, names: "KeyError" },
  "llama attn_factor": {
    code: "attention-factor-unread",
    layerType: null,
    meant: { "": yarn(1e4, { attentionFactor: 0.5 * (0.1 * Math.log(4) + 1) }) },
    names: "1.138629436",
  },
  "llama su": { code: "legacy-type", layerType: null, meant: { "": long }, names: "KeyError" },
  "llama ntk": {
    code: "foreign-rope-type",
    layerType: null,
    meant: { "": { ropeType: "ntk", ropeTheta: 1e4, factor: 4 } },
    names: "KeyError",
  },
  "llama alpha": {
    code: "alpha-unread",
    layerType: null,
    meant: { "": { ropeType: "dynamic", ropeTheta: 1e4, factor: 2, alpha: 100 } },
  },
  "gpt_oss null scaling": {
    code: "class-preset",
    layerType: null,
    meant: { [full]: plain(150000), [sliding]: plain(150000) },
    names: "32",
  },
  "apertus theta": {
    code: "theta-unread",
    layerType: null,
    meant: {
      "": {
        ropeType: "llama3",
        ropeTheta: 5e5,
        factor: 8,
        originalMaxPositionEmbeddings: 8192,
        lowFreqFactor: 1,
        highFreqFactor: 4,
      },
    },
    names: "12000000",
  },
  "type conflict": { code: "type-conflict", layerType: null, meant: { "": linear(1e4, 4) } },
  "theta conflict": { code: "theta-conflict", layerType: null, meant: { "": plain(1e6) } },
  "outside text_config": { code: "outside-text-config", layerType: null, meant: { "": plain(5e5) } },
  "nested original outside": {
    code: "original-length-unread",
    layerType: full,
    meant: { [full]: yarn(1e6), [sliding]: plain(1e4) },
  },
  "qwen2 head_dim null yarn": {
    code: "head-dim-null",
    layerType: null,
    meant: { [full]: yarn(1e4) },
    names: "TypeError",
  },
};

/** Read the same by transformers; the warning is about other readers. */
const agreed = new Set(["type conflict", "theta conflict", "outside text_config"]);

describe("files that transformers reads otherwise than they mean: intent followed, both readings known", () => {
  test("each case of the fixture has its meaning here", () => {
    expect(Object.keys(misread).sort()).toEqual(fixture.misread.map((entry) => entry.name).sort());
  });

  test.each(fixture.misread)("$name", (entry) => {
    const { code, meant, layerType, names } = misread[entry.name]!;
    const model = describeHuggingFace(entry.config);
    const warnings = model.findings.filter((finding) => finding.severity === "warning");
    const finding = warnings.find((warning) => warning.code === code);
    expect(finding, `a warning ${code} among ${warnings.map((w) => w.code)}`).toBeDefined();
    if (names !== undefined) expect(`${finding!.why} ${finding!.expected}`).toContain(names);
    for (const [type, rope] of Object.entries(meant)) {
      const group = model.groups.find((g) => (g.layerType ?? "") === type)!;
      expect(group.position.kind === "rope" ? group.position.rope : null).toEqual(rope);
    }
    // The other reading is really another one.
    if (entry.raises !== undefined || entry.forwardRaises !== undefined) return;
    const table = entry.tables!.find((t) => t.layerType === layerType)!;
    const group = groupsOf(model, layerType)[0];
    if (group === undefined) return;
    const got = frequenciesOf(model, group, table.length);
    const equal =
      got.inverseFrequencies.length === table.inverseFrequencies.length &&
      worstRelative(got.inverseFrequencies, table.inverseFrequencies) < 1e-6 &&
      Math.abs(got.attentionFactor - table.attentionFactor) < 1e-9;
    expect(equal).toBe(agreed.has(entry.name));
  });

  test("where transformers raises, the finding says so", () => {
    const raising = fixture.misread.filter((entry) => entry.raises !== undefined);
    expect(raising.map((entry) => [entry.name, entry.raises])).toEqual([
      ["gemma4 flat", "KeyError"],
      ["gemma4 legacy", "KeyError"],
      ["qwen3 nested", "KeyError"],
      ["llama su", "KeyError"],
      ["llama ntk", "KeyError"],
      ["qwen2 head_dim null yarn", "TypeError"],
    ]);
    const failing = fixture.misread.filter((entry) => entry.forwardRaises !== undefined);
    expect(failing.map((entry) => [entry.name, entry.forwardRaises])).toEqual([["llama partial yarn", "RuntimeError"]]);
  });
});
