// A GGUF header as a ModelDescription: the shape from `{arch}.*` keys, positions from the same keys, from the rotary
// tensors and from what the architecture leaves to its reader (architectures.ts). Each thing that the file does not say
// becomes a note "assumed-…".

import type { LogitTemperature } from "../../encodings/logit-temperature.ts";
import { FormatError } from "../bytes/format-error.ts";
import { expectComputable } from "../computable.ts";
import type { ModelDescription, PositionGroup, PositionSettings } from "../model-description.ts";
import { didYouMean } from "../nearest.ts";
import { type GgufArchitecture, ggufArchitectures, type SlidingRules } from "./architectures.ts";
import type { GgufHeader } from "./header.ts";
import { GgufKeys } from "./keys.ts";
import { Findings, type LayerKind, ropeOfLayers } from "./rope.ts";

/** llama.cpp stops at 512; a count bounds what a hostile file can make us allocate. */
const maxLayers = 4096;
const maxRotaryDim = 65_536;

/**
 * What a GGUF header says of the model and of how its layers know positions.
 *
 * @param header one file's header, or all parts joined (`readGguf`)
 * @throws FormatError for an architecture that is unknown (naming the nearest known ones) or has no attention, and for
 *   keys that are missing, of the wrong type or in contradiction
 */
export function describeGguf(header: GgufHeader): ModelDescription {
  const keys = new GgufKeys(header);
  const facts = architectureOf(keys);
  const findings = new Findings();
  const numBlocks = keys.required("block_count");
  if (numBlocks > maxLayers) throw keys.error("block_count", `at most ${maxLayers}`, numBlocks);
  // Layers that predict further tokens stand behind the model's own.
  const extra = keys.integer("nextn_predict_layers") ?? 0;
  if (extra >= numBlocks) throw keys.error("nextn_predict_layers", `fewer than the ${numBlocks} blocks`, extra);
  const numLayers = numBlocks - extra;
  const contextLength = keys.required("context_length");
  const hiddenSize = keys.required("embedding_length");
  const heads = headsOf(keys, numLayers, hiddenSize, findings);
  const common = { keys, facts, findings, numLayers, contextLength, hiddenSize, ...heads };
  const built = groupsOf(common);
  expectComputable(keys.header.file, built.groups, contextLength);
  return {
    name: nameOf(keys),
    format: "gguf",
    modelType: keys.architecture,
    numLayers,
    hiddenSize,
    numHeads: heads.numHeads,
    numKeyValueHeads: heads.numKeyValueHeads,
    headDim: heads.headDim,
    vocabSize: vocabSizeOf(keys),
    numParameters: header.numParameters,
    maxPositionEmbeddings: contextLength,
    trainedLength: built.originalLength ?? contextLength,
    groups: built.groups,
    findings: findings.list,
  };
}

function architectureOf(keys: GgufKeys): GgufArchitecture {
  const { architecture } = keys;
  const known = Object.hasOwn(ggufArchitectures, architecture) ? ggufArchitectures[architecture] : undefined;
  if (known !== undefined) return known;
  const { file } = keys.header;
  if (/^(mamba|a?rwkv)/.test(architecture)) {
    throw new FormatError(file, `expected a model with attention, got architecture ${JSON.stringify(architecture)}`);
  }
  throw new FormatError(
    file,
    `expected a known general.architecture, got ${JSON.stringify(architecture)}` +
      didYouMean(architecture, Object.keys(ggufArchitectures)),
  );
}

function nameOf(keys: GgufKeys): string {
  const entry = keys.header.metadata.get("general.name");
  return entry?.type === "string" && entry.value !== "" ? entry.value : keys.header.file;
}

function vocabSizeOf(keys: GgufKeys): number | null {
  const written = keys.integer("vocab_size", 1);
  if (written !== undefined) return written;
  const tokens = keys.header.metadata.get("tokenizer.ggml.tokens");
  if (tokens?.type === "array" && tokens.value.count > 0) return tokens.value.count;
  return keys.header.tensors.get("token_embd.weight")?.dimensions[1] ?? null;
}

interface Heads {
  readonly numHeads: number;
  readonly numKeyValueHeads: number;
  /** Query and key width of full layers, the part that is not rotated included. */
  readonly headDim: number;
  readonly headDimSliding: number;
  /** Key/value heads by layer: 0 marks a layer without attention in hybrids. */
  readonly keyValueHeads: readonly number[];
}

function headsOf(keys: GgufKeys, numLayers: number, hiddenSize: number, findings: Findings): Heads {
  const heads = keys.perLayer("attention.head_count", numLayers);
  if (heads === undefined) keys.required("attention.head_count");
  const keyValueHeads = keys.perLayer("attention.head_count_kv", numLayers) ?? heads!;
  const numHeads = Math.max(...heads!);
  if (numHeads < 1) throw keys.error("attention.head_count", "at least 1 on some layer", numHeads);
  for (const [key, list] of [
    ["attention.head_count", heads!],
    ["attention.head_count_kv", keyValueHeads],
  ] as const) {
    const distinct = [...new Set(list.filter((one) => one > 0))];
    if (distinct.length > 1) {
      findings.add({
        code: "heads-vary-by-layer",
        severity: "note",
        where: keys.full(key),
        got: distinct,
        expected: "the same on every layer",
        why: "the largest is shown",
        fix: "",
      });
    }
  }
  // The key width of latent attention's cache is not a head's; key_length_mla is.
  const written = keys.integer("attention.key_length_mla", 1) ?? keys.integer("attention.key_length", 1);
  const first = heads![0]! > 0 ? heads![0]! : numHeads;
  if (written === undefined && hiddenSize % first !== 0) {
    throw keys.error(
      "embedding_length",
      `a multiple of the ${first} heads, as there is no attention.key_length`,
      hiddenSize,
    );
  }
  const headDim = written ?? hiddenSize / first;
  return {
    numHeads,
    numKeyValueHeads: Math.max(...keyValueHeads, 0),
    headDim,
    headDimSliding: keys.integer("attention.key_length_swa", 1) ?? headDim,
    keyValueHeads,
  };
}

interface Context extends Heads {
  readonly keys: GgufKeys;
  readonly facts: GgufArchitecture;
  readonly findings: Findings;
  readonly numLayers: number;
  readonly contextLength: number;
  readonly hiddenSize: number;
}

interface Built {
  readonly groups: readonly PositionGroup[];
  readonly originalLength: number | null;
}

const plainGroup = {
  slidingWindow: null,
  attentionChunkSize: null,
  logitTemperature: null,
  softmaxFactor: 1,
} as const;

function groupsOf(context: Context): Built {
  const { keys, facts, findings, numLayers, numHeads } = context;
  const all = Array.from({ length: numLayers }, (_, layer) => layer);
  const one = (position: PositionSettings): Built => ({
    groups: [{ layers: all, position, ...plainGroup }],
    originalLength: null,
  });
  if (facts.positions === "t5") return t5Groups(context, all);
  if (facts.positions === "learned") return one(learnedTable(context));
  const maxBias = facts.positions === "alibi" ? alibiMaxBias(context) : baichuanBias(context);
  if (maxBias !== null) return one({ site: "attention-bias", kind: "alibi", numHeads, maxBias });
  if (facts.positions === "alibi") return one(learnedTable(context));

  const types = layerTypesOf(context);
  const rotates = rotatingLayers(context, types);
  const rotary = new Map<LayerKind, ReturnType<typeof rotaryGroup>>();
  const ofKind = (kind: LayerKind): ReturnType<typeof rotaryGroup> => {
    const known = rotary.get(kind) ?? rotaryGroup(context, kind);
    rotary.set(kind, known);
    return known;
  };
  const window = types.window;
  const temperature = everyLayerTemperature(context);
  let originalLength: number | null = null;
  const groups = new Map<string, PositionGroup & { layers: number[] }>();
  for (const layer of all) {
    const type = types.list[layer]!;
    const rotated = type !== "linear_attention" && rotates[layer]!;
    const id = `${type} ${rotated}`;
    const known = groups.get(id);
    if (known !== undefined) {
      known.layers.push(layer);
      continue;
    }
    const built = rotated ? ofKind(type === "full_attention" ? "full" : "sliding") : null;
    originalLength ??= built?.originalLength ?? null;
    const local = type === "sliding_attention" || type === "chunked_attention";
    groups.set(id, {
      layers: [layer],
      ...(types.mixed ? { layerType: type } : {}),
      position: built?.position ?? { site: "none", kind: "nope" },
      slidingWindow: local && type === "sliding_attention" ? window : null,
      attentionChunkSize: type === "chunked_attention" ? window : null,
      logitTemperature:
        type === "linear_attention" ? null : (temperature ?? (rotated ? null : llama4Temperature(context, types))),
      softmaxFactor: built?.softmaxFactor ?? 1,
    });
  }
  if (rotary.size > 0) {
    findings.assume(
      "rotary-layout",
      keys.full("rope"),
      layoutOf(context),
      `GGUF does not say which channels pair up; llama.cpp hard-codes it for ${keys.architecture}`,
    );
  }
  return { groups: [...groups.values()], originalLength };
}

// Rotary layers

function rotaryGroup(
  context: Context,
  kind: LayerKind,
): { position: PositionSettings; softmaxFactor: number; originalLength: number | null } {
  const { keys, facts, findings, contextLength } = context;
  const width = kind === "sliding" ? context.headDimSliding : context.headDim;
  const key =
    kind === "sliding" && keys.has("rope.dimension_count_swa") ? "rope.dimension_count_swa" : "rope.dimension_count";
  const written = keys.integer(key, 2);
  if (written === undefined) {
    if (facts.latent) keys.required(key);
    findings.assume(
      "rotary-dim",
      keys.full(key),
      `${width}, the whole head`,
      "llama.cpp rotates the whole head when the key is absent",
    );
  }
  const rotaryDim = written ?? width;
  if (rotaryDim > maxRotaryDim) throw keys.error(key, `at most ${maxRotaryDim}`, rotaryDim);
  if (rotaryDim > width) throw keys.error(key, `at most the head's width, ${width}`, rotaryDim);
  // Latent attention rotates channels of their own: their number is the width.
  const headDim = facts.latent ? rotaryDim : width;
  const { rope, softmaxFactor, originalLength } = ropeOfLayers(
    { keys, facts, findings, contextLength, headDim, rotaryDim },
    kind,
  );
  const sections = mropeSections(context, rotaryDim);
  return {
    position: {
      site: "query-key",
      kind: "rope",
      headDim,
      layout: layoutOf(context),
      rope,
      ...(sections === null ? {} : { mropeSection: sections, mropeInterleaved: facts.mrope === "interleaved" }),
    },
    softmaxFactor,
    originalLength,
  };
}

/** GLM-4's multimodal files are permuted to the half layout, its text files are not. */
function layoutOf({ keys, facts }: Context): "half" | "interleaved" {
  return facts.mrope !== undefined && keys.has("rope.dimension_sections") ? "half" : facts.layout!;
}

/** Pairs an axis, without the zeros that pad them to four; null for a model with one axis. */
function mropeSections({ keys, facts }: Context, rotaryDim: number): readonly number[] | null {
  if (facts.mrope === undefined || !keys.has("rope.dimension_sections")) return null;
  const values = keys.array("rope.dimension_sections")!.map(Number);
  if (values.length > 4 || !values.every((value) => Number.isInteger(value) && value >= 0)) {
    throw keys.error("rope.dimension_sections", "at most four integers of at least 0", values);
  }
  while (values.at(-1) === 0) values.pop();
  if (values.length < 2) return null;
  const pairs = values.reduce((sum, value) => sum + value, 0);
  if (pairs !== rotaryDim / 2) {
    throw keys.error("rope.dimension_sections", `${rotaryDim / 2} pairs in all`, values);
  }
  return values;
}

type LayerType = "full_attention" | "sliding_attention" | "chunked_attention" | "linear_attention";

interface LayerTypes {
  readonly list: readonly LayerType[];
  /** More kinds than full attention. */
  readonly mixed: boolean;
  readonly window: number | null;
}

function layerTypesOf(context: Context): LayerTypes {
  const { keys, facts, numLayers } = context;
  const recurrent = recurrentLayers(context);
  const { window, sliding, chunked } = slidingLayers(context);
  const list = Array.from({ length: numLayers }, (_, layer): LayerType => {
    if (recurrent[layer]) return "linear_attention";
    if (!sliding[layer]) return "full_attention";
    return chunked ? "chunked_attention" : "sliding_attention";
  });
  if (list.every((type) => type === "linear_attention")) {
    throw new FormatError(keys.header.file, "expected at least one layer with attention, got none");
  }
  return { list, mixed: facts.sliding !== undefined || list.some((type) => type !== "full_attention"), window };
}

function recurrentLayers({ keys, facts, findings, numLayers, keyValueHeads }: Context): readonly boolean[] {
  const { recurrent } = facts;
  if (recurrent === undefined) return new Array<boolean>(numLayers).fill(false);
  if (recurrent === "zero-heads") return keyValueHeads.map((heads) => heads === 0);
  const listed = keys.isArray("attention.recurrent_layers")
    ? keys.array("attention.recurrent_layers")!.slice(0, numLayers).map(Boolean)
    : undefined;
  if (listed?.length === numLayers) return listed;
  let interval = keys.integer("full_attention_interval", 1);
  if (interval === undefined) {
    interval = recurrent.interval;
    findings.assume(
      "full-attention-interval",
      keys.full("full_attention_interval"),
      String(interval),
      "llama.cpp gives attention to every so many-th layer when the key is absent; the rest is recurrent",
    );
  }
  return Array.from({ length: numLayers }, (_, layer) => (layer + 1) % interval !== 0);
}

interface Sliding {
  readonly sliding: readonly boolean[];
  readonly window: number | null;
  readonly chunked: boolean;
}

function slidingLayers(context: Context): Sliding {
  const { keys, facts, findings, numLayers } = context;
  const none: Sliding = { sliding: new Array<boolean>(numLayers).fill(false), window: null, chunked: false };
  const written = keys.integer("attention.sliding_window");
  if (written === 0) return none;
  const rules = facts.sliding;
  if (rules === undefined) {
    if (written === undefined) return none;
    // The file says that the model slides, although llama.cpp builds full attention for this architecture.
    findings.add({
      code: "sliding-window-ignored-by-llama.cpp",
      severity: "warning",
      where: keys.full("attention.sliding_window"),
      got: written,
      expected: `an architecture whose window llama.cpp applies, unlike ${keys.architecture}`,
      why: "the model was made to see a window only; llama.cpp lets it see everything",
      fix: "",
    });
    const listed = slidingPattern(context, { period: 0, theta: "same", scaling: "same" });
    return { sliding: listed, window: written, chunked: false };
  }
  const window = windowOf(context, rules, written);
  if (window === null) return none;
  return { sliding: slidingPattern(context, rules), window, chunked: rules.chunked === true };
}

function windowOf(
  { keys, findings, numLayers }: Context,
  rules: SlidingRules,
  written: number | undefined,
): number | null {
  // EXAONE 4: the 32B slides, the 1.2B does not, and only its number of layers tells where the key is missing.
  const standard = rules.window ?? (keys.architecture === "exaone4" && numLayers === 64 ? 4096 : undefined);
  if (rules.fixedWindow !== undefined && (written !== undefined || standard !== undefined)) {
    if (written !== rules.fixedWindow) {
      findings.assume(
        rules.chunked ? "chunk-size" : "sliding-window",
        keys.full("attention.sliding_window"),
        String(rules.fixedWindow),
        `llama.cpp hard-codes it for ${keys.architecture}`,
      );
    }
    return rules.fixedWindow;
  }
  if (written !== undefined) return written;
  if (standard === undefined) return null;
  findings.assume(
    "sliding-window",
    keys.full("attention.sliding_window"),
    String(standard),
    `llama.cpp takes it for ${keys.architecture} when the key is absent`,
  );
  return standard;
}

function slidingPattern({ keys, findings, numLayers }: Context, rules: SlidingRules): readonly boolean[] {
  const key = "attention.sliding_window_pattern";
  if (keys.isArray(key)) {
    const listed = keys.array(key)!;
    if (listed.length < numLayers) throw keys.error(key, `one value a layer, ${numLayers}`, `${listed.length} values`);
    return listed.slice(0, numLayers).map(Boolean);
  }
  let period = keys.integer(key);
  if (period === undefined) {
    if (rules.period === null)
      throw new FormatError(keys.header.file, `expected the array ${keys.full(key)}, got none`);
    period = rules.period;
    if (period !== 0) {
      const full = rules.fullFirst ? "the first" : "the last";
      findings.assume(
        "sliding-pattern",
        keys.full(key),
        `${full} of every ${period} layers is full`,
        `llama.cpp hard-codes the pattern of ${keys.architecture} when the key is absent`,
      );
    }
  }
  // 0: every layer slides.
  const p = period;
  return Array.from({ length: numLayers }, (_, layer) =>
    p === 0 ? true : rules.fullFirst ? layer % p !== 0 : layer % p < p - 1,
  );
}

function rotatingLayers(context: Context, types: LayerTypes): readonly boolean[] {
  const { keys, facts, findings, numLayers } = context;
  const every = (value: boolean): boolean[] => new Array<boolean>(numLayers).fill(value);
  if (facts.positions === "none") return every(false);
  if (facts.ropeSwitch && keys.boolean("rope.scaling.finetuned") === false) return every(false);
  const { nope } = facts;
  if (nope === undefined) return every(true);
  const { architecture } = keys;
  if (nope === "full-layers") {
    // Without sliding layers there is no full layer that stands out: all rotate.
    if (!types.list.includes("sliding_attention")) return every(true);
    findings.assume(
      "nope-layers",
      keys.full("rope"),
      "no rotation on full layers",
      `llama.cpp hard-codes that only the sliding layers of ${architecture} rotate`,
    );
    return types.list.map((type) => type === "sliding_attention");
  }
  // Llama 4's and SmallThinker's kin without windows rotate everywhere.
  if (facts.sliding !== undefined && types.window === null && architecture !== "afmoe") return every(true);
  findings.assume(
    "nope-layers",
    keys.full("rope"),
    `no rotation on ${nope.which === "first" ? "the first" : "the last"} of every ${nope.every} layers`,
    `llama.cpp hard-codes it for ${architecture}; GGUF has no key for it`,
  );
  const offset = nope.which === "last" ? 1 : 0;
  return Array.from({ length: numLayers }, (_, layer) => (layer + offset) % nope.every !== 0);
}

// Temperatures

/** Ministral 3, Mistral 4, Mistral Large 3: on every layer. */
function everyLayerTemperature({ keys, contextLength }: Context): LogitTemperature | null {
  const beta = keys.number("attention.temperature_scale");
  if (beta === undefined || beta === 0) return null;
  if (beta < 0) throw keys.error("attention.temperature_scale", "a number of at least 0", beta);
  const length =
    keys.integer("attention.temperature_length", 1) ?? keys.integer("rope.scaling.original_context_length", 1);
  return { kind: "ministral3", beta, originalMaxPositionEmbeddings: length ?? contextLength };
}

function llama4Temperature({ keys, facts, findings }: Context, types: LayerTypes): LogitTemperature | null {
  if (facts.llama4Temperature === undefined || types.window === null) return null;
  const { scale, floorScale } = facts.llama4Temperature;
  findings.assume(
    "logit-temperature",
    keys.full("attention.temperature_scale"),
    `1 + ${scale} ln(1 + floor((position + 1) / ${floorScale})) on layers without rotation`,
    `llama.cpp hard-codes it for ${keys.architecture}`,
  );
  return { kind: "llama4", scale, floorScale };
}

// Tables and biases

function learnedTable({ keys, hiddenSize, contextLength }: Context): PositionSettings {
  const table = keys.header.tensors.get("position_embd.weight");
  if (table !== undefined && (table.dimensions[0] !== hiddenSize || (table.dimensions[1] ?? 0) < contextLength)) {
    throw new FormatError(
      keys.header.file,
      `expected position_embd.weight to hold ${contextLength} rows of ${hiddenSize}, got [${table.dimensions}]`,
      table.offset,
    );
  }
  return {
    site: "embedding",
    kind: "learned",
    hiddenSize,
    numPositions: table?.dimensions[1] ?? contextLength,
    offset: 0,
  };
}

/** null: no bias but a learned table. */
function alibiMaxBias({ keys, facts, findings }: Context): number | null {
  if (facts.maxBias === "key") {
    const written = keys.number("attention.max_alibi_bias") ?? 0;
    if (written < 0) throw keys.error("attention.max_alibi_bias", "a number of at least 0", written);
    return written === 0 ? null : written;
  }
  const assumed = facts.maxBias!;
  const written = keys.positive("attention.max_alibi_bias");
  if (written !== undefined && written !== assumed) {
    findings.add({
      code: "ignored-by-llama.cpp",
      severity: "warning",
      where: keys.full("attention.max_alibi_bias"),
      got: written,
      expected: String(assumed),
      why: `llama.cpp hard-codes ${assumed} for ${keys.architecture}`,
      fix: "",
    });
    return written;
  }
  if (written === undefined) assumeBias(keys, findings, assumed);
  return assumed;
}

/** Baichuan 13B is told from the 7B by its 40 layers alone. */
function baichuanBias({ keys, findings, numLayers }: Context): number | null {
  if (keys.architecture !== "baichuan" || numLayers !== 40) return null;
  assumeBias(keys, findings, 8);
  return 8;
}

function assumeBias(keys: GgufKeys, findings: Findings, maxBias: number): void {
  findings.assume(
    "alibi-bias",
    keys.full("attention.max_alibi_bias"),
    String(maxBias),
    `llama.cpp hard-codes ALiBi with this constant for ${keys.architecture}`,
  );
}

function t5Groups({ keys, findings, numHeads, numLayers }: Context, encoderLayers: readonly number[]): Built {
  const numBuckets = keys.required("attention.relative_buckets_count", 2);
  findings.assume(
    "max-distance",
    keys.full("attention.relative_max_distance"),
    "128",
    "GGUF has no key for T5's largest distance; llama.cpp hard-codes 128",
  );
  const side = (layers: readonly number[], layerType: string, bidirectional: boolean): PositionGroup => ({
    layers,
    layerType,
    position: { site: "attention-bias", kind: "t5", numHeads, numBuckets, maxDistance: 128, bidirectional },
    ...plainGroup,
  });
  const groups = [side(encoderLayers, "encoder", true)];
  if (keys.architecture === "t5") {
    const count = keys.integer("decoder_block_count", 1) ?? numLayers;
    if (count > maxLayers) throw keys.error("decoder_block_count", `at most ${maxLayers}`, count);
    groups.push(
      side(
        Array.from({ length: count }, (_, layer) => layer),
        "decoder",
        false,
      ),
    );
  }
  return { groups, originalLength: null };
}
