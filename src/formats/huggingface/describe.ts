// config.json to a ModelDescription: the shape, and how each layer knows positions. A missing shape, a wrong type and an
// unknown setting are errors; what the file leaves out is assumed as transformers 5.24.0 assumes it, with a note.

import { show } from "../../encodings/errors.ts";
import type { LogitTemperature } from "../../encodings/logit-temperature.ts";
import type { RopeConfig } from "../../encodings/rope/scaling/parameters.ts";
import { yarnMagnitude } from "../../encodings/rope/scaling/scaling.ts";
import { FormatError } from "../bytes/format-error.ts";
import { expectComputable } from "../computable.ts";
import type { Finding } from "../finding.ts";
import type { ModelDescription, PositionGroup, PositionSettings } from "../model-description.ts";
import { nearest } from "../nearest.ts";
import { headDimStaysNullWhenAbsent, headDimStaysNullWhenNull } from "./class-defaults.ts";
import {
  type AlibiFamily,
  type Family,
  families,
  familyAliases,
  genericRotary,
  type LearnedFamily,
  type NopeFamily,
  type RotaryFamily,
  type SinusoidalFamily,
} from "./families.ts";
import { type LayerPlan, recurrentTypes } from "./layers.ts";
import { longhandGroups, readTemperature } from "./longhand.ts";
import { findMisspellings } from "./misspellings.ts";
import { type ParsedRope, rotatedWidth } from "./rope-parameters.ts";
import { readRope } from "./rope-settings.ts";
import { findTextModel, type TextModel } from "./text-model.ts";
import {
  anyString,
  count,
  demand,
  flag,
  has,
  index,
  isObject,
  type JsonObject,
  join,
  positive,
  read,
  readOrAssume,
  type Source,
  unexpected,
} from "./values.ts";

export interface DescribeOptions {
  /** What to call the model; the file's _name_or_path, else its model_type. */
  readonly name?: string;
  /** The weights' count, where they were read too. */
  readonly numParameters?: number | null;
}

/** The spellings of one fact, transformers' own first. */
const spellings = {
  hiddenSize: ["hidden_size", "n_embd", "d_model", "n_embed", "dim"],
  numLayers: ["num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers"],
  numHeads: ["num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads"],
  numKeyValueHeads: ["num_key_value_heads", "num_kv_heads", "n_kv_heads", "n_head_kv", "multi_query_group_num"],
  maxPositionEmbeddings: [
    "max_position_embeddings",
    "n_positions",
    "n_ctx",
    "max_seq_len",
    "seq_length",
    "max_sequence_length",
    "seq_len",
  ],
  headDim: ["head_dim", "attention_head_dim", "d_kv", "kv_channels"],
} as const;

/** Far above any model, far below what a list of layers or a table of pairs could hurt with. */
const limits = { layers: 16384, heads: 65536, headDim: 65536 };

interface Shape {
  readonly numLayers: number;
  readonly hiddenSize: number;
  readonly numHeads: number;
  readonly numKeyValueHeads: number;
  readonly headDim: number;
  readonly maxPositionEmbeddings: number | null;
}

/**
 * Reads a parsed config.json of either schema version, of a text model or of a multimodal one's text part.
 *
 * @param config what JSON.parse gave
 * @returns the model's shape, one group of layers per distinct setting, and the findings: an error for a setting that
 *   is lost, a warning with both readings where transformers 5.24.0 computes otherwise than the file means, a note for
 *   each thing assumed
 * @throws FormatError for a missing shape, an unknown model_type without the ordinary keys of a rotary model, and
 *   whatever parseRopeParameters refuses
 * @example
 * ```ts
 * import { describeHuggingFace } from "longhand/formats";
 * const config = {
 *   model_type: "llama", hidden_size: 4096, num_hidden_layers: 32, num_attention_heads: 32, num_key_value_heads: 8,
 *   max_position_embeddings: 131072, rope_theta: 500000,
 *   rope_scaling: {
 *     rope_type: "llama3", factor: 8, low_freq_factor: 1, high_freq_factor: 4, original_max_position_embeddings: 8192,
 *   },
 * };
 * describeHuggingFace(config).trainedLength; // => 8192
 * ```
 */
export function describeHuggingFace(config: unknown, options: DescribeOptions = {}): ModelDescription {
  if (!isObject(config)) throw new FormatError("config.json", `expected an object, got ${show(config)}`);
  const findings: Finding[] = [];
  const written = config.model_type;
  if (written !== undefined && typeof written !== "string") throw unexpected("model_type", "a string", written, "");
  const modelType = written ?? "";
  const text = findTextModel(config, modelType, findings);
  const family = chooseFamily(text);
  findings.push(...findMisspellings(text.source.record, text.source.path));

  const shape = readShape(text, family);
  const groups = readGroups(text.source, family, shape);
  expectComputable("config.json", groups.list, shape.maxPositionEmbeddings);
  const named = options.name ?? (typeof config._name_or_path === "string" ? config._name_or_path : "");
  return {
    name: named === "" ? modelType : named,
    format: "huggingface",
    modelType,
    numLayers: shape.numLayers,
    hiddenSize: shape.hiddenSize,
    numHeads: shape.numHeads,
    numKeyValueHeads: shape.numKeyValueHeads,
    headDim: shape.headDim,
    vocabSize: read(text.source, "vocab_size", count) ?? read(text.source, "padded_vocab_size", count),
    numParameters: options.numParameters ?? null,
    maxPositionEmbeddings: shape.maxPositionEmbeddings,
    trainedLength:
      family.kind === "longhand"
        ? shape.maxPositionEmbeddings
        : trainedLengthOf(text.source, groups.rope, groups.list, shape),
    groups: groups.list,
    findings: dedupe(findings),
  };
}

type ReadFamily = Exclude<Family, { kind: "choice" }>;

function chooseFamily({ source, familyName }: TextModel): ReadFamily {
  const { record } = source;
  if (Object.hasOwn(families, familyName)) {
    const family = families[familyName]!;
    return family.kind === "choice" ? family.choose(record) : family;
  }
  const where = join(source.path, "model_type");
  const rotaryKey = ["rope_theta", "rope_scaling", "rope_parameters", "rotary_emb_base"].find(
    (key) => record[key] !== undefined,
  );
  const shaped = spellings.hiddenSize.some((k) => has(source, k)) && spellings.numHeads.some((k) => has(source, k));
  const known = [...Object.keys(families), ...Object.keys(familyAliases)];
  const near = nearest(familyName, known);
  if (rotaryKey === undefined || !shaped) {
    const name = record.model_type ?? (familyName === "" ? undefined : familyName);
    throw unexpected(
      where,
      "a known model_type, or the keys of a rotary model (hidden_size, num_attention_heads, rope_theta)",
      name,
      near.length === 0 ? "" : `nearest: ${near.join(", ")}`,
    );
  }
  const isLatent = record.qk_rope_head_dim !== undefined;
  source.findings.push({
    code: "unknown-model-type",
    severity: "warning",
    where,
    got: record.model_type ?? null,
    expected: near.length === 0 ? "a known model_type" : `a known model_type; nearest: ${near.join(", ")}`,
    why:
      `Read by its ordinary keys (${rotaryKey}, heads, hidden_size): every layer rotates, ` +
      (isLatent
        ? "qk_rope_head_dim channels of each head in interleaved pairs, as DeepSeek does."
        : "pairs are (i, i + d/2), as in Llama. The model's own code may differ."),
    fix: "",
  });
  return isLatent ? { ...genericRotary, headDim: "latent", layout: "interleaved" } : genericRotary;
}

function readShape({ source, isPart }: TextModel, family: ReadFamily): Shape {
  // transformers writes a part of a multimodal file as differences from its class; a file of its own states its shape.
  const stated = isPart ? source : { ...source, defaults: {} };
  const layerKeys =
    family.kind === "learned" && family.stacks === "encoder-decoder" ? encoderFirst : spellings.numLayers;
  const numLayers = bounded(source, "num_hidden_layers", demand(stated, layerKeys, count), limits.layers);
  const hiddenSize = demand(stated, spellings.hiddenSize, count);
  const numHeads = bounded(source, "num_attention_heads", demand(source, spellings.numHeads, count), limits.heads);
  const groups = readKeyValueHeads(source, numHeads);
  const maxPositionEmbeddings =
    family.kind === "t5" || family.kind === "nope" || family.kind === "alibi" || family.kind === "longhand"
      ? readFirst(source, spellings.maxPositionEmbeddings)
      : readOrAssume(source, spellings.maxPositionEmbeddings, count);
  return {
    numLayers,
    hiddenSize,
    numHeads,
    numKeyValueHeads: groups,
    headDim: bounded(source, "head_dim", readHeadDim(source, family, hiddenSize, numHeads), limits.headDim),
    maxPositionEmbeddings,
  };
}

function bounded(source: Source, key: string, value: number, most: number): number {
  if (value > most) throw unexpected(join(source.path, key), `at most ${most}`, value, "");
  return value;
}

const encoderFirst = ["encoder_layers", "num_hidden_layers"] as const;

function readFirst(source: Source, keys: readonly string[]): number | null {
  for (const key of keys) {
    const value = read(source, key, count);
    if (value !== null) return value;
  }
  return null;
}

function readKeyValueHeads(source: Source, numHeads: number): number {
  // Falcon 7B and GPT-BigCode: one key head for all; Falcon's newer architecture says num_kv_heads instead. Files of
  // Falcon 7B say num_kv_heads too (71, the heads), which its class does not read.
  const isFalcon = source.modelType === "falcon";
  const multi = source.record.multi_query ?? source.defaults.multi_query ?? isFalcon;
  const isOne = multi === true && source.record.new_decoder_architecture !== true;
  if (isFalcon && isOne) return 1;
  const written = readFirst(source, spellings.numKeyValueHeads);
  if (written !== null) return written;
  const nested = source.record.attn_config;
  if (isObject(nested) && nested.kv_n_heads !== undefined) {
    if (!count.holds(nested.kv_n_heads))
      throw unexpected("attn_config.kv_n_heads", count.expectation, nested.kv_n_heads);
    return nested.kv_n_heads;
  }
  if (isOne) return 1;
  if (spellings.numKeyValueHeads.some((key) => has(source, key))) return numHeads;
  const assumed = readOrAssume(source, ["num_key_value_heads"], count);
  return assumed !== null && numHeads % assumed === 0 ? assumed : numHeads;
}

function readHeadDim(source: Source, family: ReadFamily, hiddenSize: number, numHeads: number): number {
  if (family.kind === "rotary" && family.headDim === "latent") {
    const rotated = demand(source, ["qk_rope_head_dim"], count);
    const passed = readOrAssume(source, ["qk_nope_head_dim"], index) ?? 0;
    return rotated + passed;
  }
  const computed = family.kind === "rotary" && family.headDim === "computed";
  if (!computed) {
    const written = readOrAssume(source, spellings.headDim, count);
    if (written !== null) return written;
  }
  if (hiddenSize % numHeads !== 0) {
    throw unexpected(
      join(source.path, "head_dim"),
      `head_dim, since hidden_size ${hiddenSize} is not a multiple of ${numHeads} heads`,
      undefined,
      'write "head_dim"',
    );
  }
  const headDim = hiddenSize / numHeads;
  if (family.kind === "rotary" && source.record.head_dim !== headDim) {
    source.findings.push({
      code: "head-dim-computed",
      severity: "note",
      where: join(source.path, "head_dim"),
      got: source.record.head_dim ?? null,
      expected: `${headDim}, hidden_size ${hiddenSize} over ${numHeads} heads`,
      why: computed ? `The class of ${source.modelType} always computes it.` : "The file does not say it.",
      fix: computed ? "" : `write "head_dim": ${headDim}`,
    });
  }
  return headDim;
}

interface Groups {
  readonly list: readonly PositionGroup[];
  /** The rotary settings, full attention first; empty for other kinds. */
  readonly rope: readonly ParsedRope[];
}

function readGroups(source: Source, family: ReadFamily, shape: Shape): Groups {
  switch (family.kind) {
    case "rotary":
      return rotaryGroups(source, family, shape);
    case "nope":
      return { list: nopeGroups(source, family, shape), rope: [] };
    case "learned":
    case "sinusoidal":
      return { list: embeddingGroups(source, family, shape), rope: [] };
    case "alibi":
      return { list: alibiGroups(source, family, shape), rope: [] };
    case "t5":
      return { list: t5Groups(source, family.everyLayer, shape), rope: [] };
    case "longhand":
      return { list: longhandGroups(source, shape), rope: [] };
  }
}

function rotaryGroups(source: Source, family: RotaryFamily, shape: Shape): Groups {
  const plans = family.layers(source, shape.numLayers);
  noteDualChunk(source);
  const rotating = plans.filter((plan) => plan.rotary);
  const types = [...new Set(rotating.map((plan) => plan.layerType))];
  const headDims = new Map(types.map((type) => [type, rotatedHeadDim(source, family, shape, type, plans)]));
  const byType = readRope(source, family, types, headDims, shape.maxPositionEmbeddings);
  const full = [...types].sort((a, b) => Number(b === "full_attention") - Number(a === "full_attention"));
  const rope = full.map((type) => byType.get(type) ?? null).filter((parsed) => parsed !== null);
  if (shape.maxPositionEmbeddings === null && rope.some((parsed) => needsLength(parsed.rope))) {
    throw unexpected(
      join(source.path, "max_position_embeddings"),
      `a length, which rope_type ${show(rope.find((parsed) => needsLength(parsed.rope))!.rope.ropeType)} reads`,
      undefined,
      "",
    );
  }
  warnOfNullHeadDim(source, rope, shape.headDim);
  const settings = new Map<string | null, PositionSettings>();
  for (const type of types) {
    const parsed = byType.get(type) ?? null;
    settings.set(type, parsed === null ? nope : rotarySettings(source, family, parsed, headDims.get(type)!));
  }
  const softmaxFactor = family.softmaxFactor ? readSoftmaxFactor(source, rope, shape.maxPositionEmbeddings) : 1;
  const temperature = readTemperatures(source, family, rope);
  const layout = family.headDim === "latent" || family.layout === "interleaved" ? readLayout(source, family) : "half";
  return {
    list: merge(
      plans.map((plan) => {
        const position = plan.rotary ? settings.get(plan.layerType)! : nope;
        return group(plan, position.site === "query-key" ? { ...position, layout } : position, {
          logitTemperature: temperature(plan),
          softmaxFactor: plan.rotary ? softmaxFactor : 1,
        });
      }),
    ),
    rope,
  };
}

/** Where transformers multiplies None: it fills in head_dim for some classes, and for some rope types only. */
function warnOfNullHeadDim(source: Source, rope: readonly ParsedRope[], headDim: number): void {
  const stays = has(source, "head_dim")
    ? source.record.head_dim === null && headDimStaysNullWhenNull.includes(source.modelType)
    : headDimStaysNullWhenAbsent.includes(source.modelType);
  const failing = rope.find(({ rope: { ropeType } }) => ["yarn", "dynamic", "longrope"].includes(ropeType));
  if (!stays || failing === undefined) return;
  source.findings.push({
    code: "head-dim-null",
    severity: "warning",
    where: join(source.path, "head_dim"),
    got: null,
    expected: `${headDim} to be written`,
    why: `The file means ${headDim}; the class of ${source.modelType} leaves head_dim null, and transformers 5.24.0 raises TypeError when it computes ${failing.rope.ropeType}.`,
    fix: `write "head_dim": ${headDim}`,
  });
}

const nope: PositionSettings = { site: "none", kind: "nope" };

/** The types whose frequencies or factors are computed from max_position_embeddings. */
function needsLength(rope: RopeConfig["rope"]): boolean {
  if (rope.ropeType === "dynamic") return rope.alpha === undefined;
  if (rope.ropeType === "yarn") return rope.factor === null;
  if (rope.ropeType !== "longrope") return false;
  const given = rope.factor ?? rope.attentionFactor ?? (rope.shortMscale && rope.longMscale ? 1 : null);
  return given === null;
}

function rotatedHeadDim(
  source: Source,
  family: RotaryFamily,
  shape: Shape,
  layerType: string | null,
  plans: readonly LayerPlan[],
): number {
  if (family.headDim === "latent") {
    return bounded(source, "qk_rope_head_dim", demand(source, ["qk_rope_head_dim"], count), limits.headDim);
  }
  const own = perLayerHeadDims(source);
  if (own !== null) {
    const widths = plans.flatMap((plan, i) => (plan.layerType === layerType ? [own.get(i) ?? shape.headDim] : []));
    if (new Set(widths).size > 1) {
      throw unexpected(join(source.path, "per_layer_config"), "one head_dim for all layers of a type", widths, "");
    }
    return widths[0]!;
  }
  if (layerType === "full_attention" && source.defaults.global_head_dim !== undefined) {
    return bounded(source, "global_head_dim", demand(source, ["global_head_dim"], count), limits.headDim);
  }
  return shape.headDim;
}

/** transformers 5 saves what single layers have of their own under their index: {"05": {"head_dim": 512}}. */
function perLayerHeadDims(source: Source): ReadonlyMap<number, number> | null {
  const where = join(source.path, "per_layer_config");
  const config = source.record.per_layer_config;
  if (config === undefined || config === null) return null;
  if (!isObject(config)) throw unexpected(where, "an object, or null", config, "");
  const widths = new Map<number, number>();
  for (const [layer, settings] of Object.entries(config)) {
    if (!/^\d+$/.test(layer) || !isObject(settings)) throw unexpected(where, "an object by layer index", layer, "");
    const width = settings.head_dim;
    if (width === undefined || width === null) continue;
    if (!count.holds(width) || width > limits.headDim) {
      throw unexpected(`${where}.${layer}.head_dim`, `an integer from 1 to ${limits.headDim}`, width);
    }
    widths.set(Number(layer), width);
  }
  return widths;
}

function rotarySettings(source: Source, family: RotaryFamily, parsed: ParsedRope, headDim: number): PositionSettings {
  const { rope } = parsed;
  const base = { site: "query-key", kind: "rope", headDim, layout: family.layout, rope } as const;
  const pairs = rotatedWidth(rope, headDim) / 2;
  const own = family.mrope;
  if (parsed.mropeSection !== null) {
    const interleaved = own?.interleaved ?? parsed.mropeInterleaved ?? false;
    return { ...base, mropeSection: parsed.mropeSection, mropeInterleaved: interleaved };
  }
  if (own === undefined || own.section.reduce((sum, n) => sum + n, 0) !== pairs) return base;
  source.findings.push({
    code: "mrope-section-assumed",
    severity: "note",
    where: join(source.path, "rope_parameters.mrope_section"),
    got: null,
    expected: `${show(own.section)}, the default of the class of ${source.modelType}`,
    why: "The file does not say how pairs are shared among time, height and width; text does not depend on it.",
    fix: `write "mrope_section": ${show(own.section)}`,
  });
  return { ...base, mropeSection: own.section, mropeInterleaved: own.interleaved };
}

/** rope_interleave of the latent-attention classes turns their pairs. */
function readLayout(source: Source, family: RotaryFamily): "half" | "interleaved" {
  const written = read(source, "rope_interleave", flag) ?? read(source, "rope_interleaved", flag);
  if (written === null || family.headDim !== "latent") return family.layout;
  return written ? "interleaved" : "half";
}

/** DeepSeek's code multiplies the softmax scale by m(factor, mscale_all_dim)², m(s, k) = 0.1 · k · ln s + 1. */
function readSoftmaxFactor(source: Source, rope: readonly ParsedRope[], max: number | null): number {
  const first = rope[0]?.rope;
  if (first === undefined || first.ropeType !== "yarn" || !first.mscaleAllDim) return 1;
  const latent = source.record.qk_rope_head_dim !== undefined || source.defaults.qk_rope_head_dim !== undefined;
  if (!latent) return 1;
  const factor = first.factor ?? (max ?? first.originalMaxPositionEmbeddings) / first.originalMaxPositionEmbeddings;
  const value = yarnMagnitude(factor, first.mscaleAllDim) ** 2;
  source.findings.push({
    code: "softmax-factor",
    severity: "note",
    where: join(source.path, "rope_scaling.mscale_all_dim"),
    got: first.mscaleAllDim,
    expected: `the softmax scale times ${value}`,
    why: "DeepSeek's multi-head latent attention sharpens by m(factor, mscale_all_dim)² besides the tables. Engines that leave it out, as older transformers did for DeepSeek-V2 and Mistral 4, score otherwise from position 1 on.",
    fix: "",
  });
  return value;
}

/** The factor on the queries of each layer. */
function readTemperatures(
  source: Source,
  family: RotaryFamily,
  rope: readonly ParsedRope[],
): (plan: LayerPlan) => LogitTemperature | null {
  // Our own key: what a drop of the positions fitted, on the layers that have none (docs/longhand-form.md).
  const { longhand_logit_temperature: fitted } = source.record;
  if (fitted !== undefined) {
    const temperature = readTemperature(fitted, join(source.path, "longhand_logit_temperature"));
    return (plan) => (plan.rotary ? null : temperature);
  }
  if (family.temperature === "llama4") {
    // The first releases wrote an integer here.
    const tuned = source.record.attn_temperature_tuning ?? source.defaults.attn_temperature_tuning ?? true;
    if (typeof tuned !== "boolean" && typeof tuned !== "number") {
      throw unexpected(join(source.path, "attn_temperature_tuning"), "true or false", tuned);
    }
    if (typeof tuned === "number") {
      source.findings.push({
        code: "legacy-flag",
        severity: "warning",
        where: join(source.path, "attn_temperature_tuning"),
        got: tuned,
        expected: "true or false",
        why: `The first releases wrote a number for it; ${tuned} is read as ${Boolean(tuned)}. transformers 5.24.0 refuses the file.`,
        fix: `write ${Boolean(tuned)}`,
      });
    }
    if (!tuned) return () => null;
    const scale = demand(source, ["attn_scale"], positive);
    const floorScale = demand(source, ["floor_scale"], positive);
    return (plan) => (plan.rotary ? null : { kind: "llama4", scale, floorScale });
  }
  if (family.temperature !== "ministral3") return () => null;
  const first = rope[0];
  if (first === undefined) return () => null;
  const where = join(source.path, "rope_parameters.llama_4_scaling_beta");
  const original = first.originalMaxPositionEmbeddings;
  if (first.llama4ScalingBeta === null) {
    source.findings.push({
      code: "temperature-missing",
      severity: "warning",
      where,
      got: null,
      expected: "a number; Ministral 3 ships 0.1",
      why: "Read as no temperature; transformers 5.24.0 raises TypeError in the forward pass.",
      fix: 'write "llama_4_scaling_beta": 0.1',
    });
    return () => null;
  }
  if (original === null) {
    throw unexpected(
      join(source.path, "rope_parameters.original_max_position_embeddings"),
      "an integer of at least 1, the period of llama_4_scaling_beta",
      undefined,
      "",
    );
  }
  const temperature: LogitTemperature = {
    kind: "ministral3",
    beta: first.llama4ScalingBeta,
    originalMaxPositionEmbeddings: original,
  };
  return () => temperature;
}

function noteDualChunk(source: Source): void {
  const config = source.record.dual_chunk_attention_config;
  if (config === undefined || config === null) return;
  source.findings.push({
    code: "dual-chunk-attention",
    severity: "note",
    where: join(source.path, "dual_chunk_attention_config"),
    got: config,
    expected: "an engine that remaps positions by chunks (vLLM)",
    why: "Past the original length the frequencies stay, and positions are folded into chunks; transformers does not do so.",
    fix: "",
  });
}

function nopeGroups(source: Source, family: NopeFamily, shape: Shape): PositionGroup[] {
  return merge(family.layers(source, shape.numLayers).map((plan) => group(plan, nope)));
}

function embeddingGroups(source: Source, family: LearnedFamily | SinusoidalFamily, shape: Shape): PositionGroup[] {
  const rows = shape.maxPositionEmbeddings;
  if (rows === null) {
    throw unexpected(
      join(source.path, "max_position_embeddings"),
      "the number of rows of the position table",
      undefined,
      "",
    );
  }
  let position: PositionSettings;
  if (family.kind === "sinusoidal") {
    position = {
      site: "embedding",
      kind: "sinusoidal",
      hiddenSize: shape.hiddenSize,
      layout: family.layout,
      theta: 10000,
      numPositions: rows,
    };
  } else {
    const kind = read(source, "position_embedding_type", anyString);
    if (kind !== null && kind !== "absolute") {
      throw unexpected(
        join(source.path, "position_embedding_type"),
        '"absolute", the only one that transformers 5 still has',
        kind,
        "",
      );
    }
    const offset =
      family.offset === "pad_token_id + 1" ? (readOrAssume(source, ["pad_token_id"], index) ?? 1) + 1 : family.offset;
    const numPositions = family.offsetIsCounted ? rows - offset : rows;
    if (numPositions < 1) {
      throw unexpected(
        join(source.path, "max_position_embeddings"),
        `more than the ${offset} rows before the first position (pad_token_id + 1)`,
        rows,
        "",
      );
    }
    const width = readOrAssume(source, ["embedding_size"], count) ?? shape.hiddenSize;
    position = {
      site: "embedding",
      kind: "learned",
      hiddenSize: width,
      numPositions,
      offset,
    };
  }
  if (family.stacks === "encoder-decoder") {
    const decoder = bounded(source, "decoder_layers", demand(source, ["decoder_layers"], count), limits.layers);
    return [
      ...merge(stack(shape.numLayers, "encoder").map((plan) => group(plan, position))),
      ...merge(stack(decoder, "decoder").map((plan) => group(plan, position))),
    ];
  }
  const plans =
    family.kind === "learned" && family.localAttention
      ? gptNeoLayers(source, shape.numLayers)
      : stack(shape.numLayers, null);
  return merge(plans.map((plan) => group(plan, position)));
}

function stack(numLayers: number, layerType: string | null): LayerPlan[] {
  return Array.from({ length: numLayers }, () => ({
    layerType,
    rotary: false,
    slidingWindow: null,
    attentionChunkSize: null,
  }));
}

/** GPT-Neo: attention_types [[["global", "local"], 12]], each list so many times. */
function gptNeoLayers(source: Source, numLayers: number): LayerPlan[] {
  const where = join(source.path, "attention_types");
  const types = source.record.attention_types ?? [[["global", "local"], numLayers / 2]];
  const kinds: unknown[] = [];
  if (!Array.isArray(types)) throw unexpected(where, "a list of [names, times]", types);
  for (const entry of types) {
    if (!Array.isArray(entry) || !Array.isArray(entry[0]) || !count.holds(entry[1]) || entry[1] > numLayers) {
      throw unexpected(where, "a list of [names, times]", types);
    }
    for (let i = 0; i < entry[1]; i++) kinds.push(...entry[0]);
  }
  if (kinds.length !== numLayers || !kinds.every((kind) => kind === "global" || kind === "local")) {
    throw unexpected(where, `"global" or "local" for each of ${numLayers} layers`, types);
  }
  const window = kinds.includes("local") ? demand(source, ["window_size"], count) : null;
  return kinds.map((kind) => ({
    layerType: kind as string,
    rotary: false,
    slidingWindow: kind === "local" ? window : null,
    attentionChunkSize: null,
  }));
}

function alibiGroups(source: Source, family: AlibiFamily, shape: Shape): PositionGroup[] {
  const attention = source.record.attn_config;
  const nested: JsonObject = isObject(attention) ? attention : {};
  const written = nested.alibi_bias_max ?? 8;
  const where = join(source.path, "attn_config.alibi_bias_max");
  if (!positive.holds(written)) throw unexpected(where, positive.expectation, written);
  if (written !== 8) {
    source.findings.push({
      code: "alibi-bias-max-unread",
      severity: "warning",
      where,
      got: written,
      expected: "8, which transformers assumes",
      why: `The file means slopes down to 2^−${written}; transformers 5.24.0 ignores the key and computes slopes down to 2^−8.`,
      fix: "",
    });
  }
  if (family.scaledWithScores) {
    source.findings.push({
      code: "alibi-scaled",
      severity: "warning",
      where: join(source.path, "alibi"),
      got: true,
      expected: `slopes divided by √${shape.headDim}`,
      why: `Falcon adds the bias before the scores are scaled, so each slope acts as slope / √${shape.headDim}, and is given so here; its code also rounds the bias to bfloat16.`,
      fix: "",
    });
  }
  const position: PositionSettings = {
    site: "attention-bias",
    kind: "alibi",
    ...(family.scaledWithScores ? { slopeScale: 1 / Math.sqrt(shape.headDim) } : {}),
    numHeads: shape.numHeads,
    maxBias: written,
  };
  return merge(stack(shape.numLayers, null).map((plan) => group(plan, position)));
}

function t5Groups(source: Source, everyLayer: boolean, shape: Shape): PositionGroup[] {
  const numBuckets = demand(source, ["relative_attention_num_buckets"], count);
  const maxDistance = readOrAssume(source, ["relative_attention_max_distance"], count) ?? 128;
  if (numBuckets % 4 !== 0 || numBuckets < 4) {
    throw unexpected(
      join(source.path, "relative_attention_num_buckets"),
      "a multiple of 4 (two sides, half of each exact)",
      numBuckets,
      "",
    );
  }
  if (maxDistance <= numBuckets / 2) {
    throw unexpected(
      join(source.path, "relative_attention_max_distance"),
      `more than ${numBuckets / 2}, the distances that have a bucket each`,
      maxDistance,
      "",
    );
  }
  source.findings.push({
    code: everyLayer ? "t5-bias-every-layer" : "t5-bias-shared",
    severity: "note",
    where: join(source.path, "relative_attention_num_buckets"),
    got: numBuckets,
    expected: everyLayer ? "one learned table a layer" : "one learned table a stack, in its first layer",
    why: everyLayer
      ? `${source.modelType} learns a bias in every layer; cross-attention has none.`
      : `${source.modelType} learns the bias in the first layer and uses it in all; cross-attention has none, and scores are not divided by √d.`,
    fix: "",
  });
  const bias = (bidirectional: boolean): PositionSettings => ({
    site: "attention-bias",
    kind: "t5",
    numHeads: shape.numHeads,
    numBuckets,
    maxDistance,
    bidirectional,
  });
  const decoder = bounded(
    source,
    "num_decoder_layers",
    read(source, "num_decoder_layers", count) ?? shape.numLayers,
    limits.layers,
  );
  const encoderOnly = read(source, "is_encoder_decoder", flag) === false && read(source, "is_decoder", flag) !== true;
  return [
    ...merge(stack(shape.numLayers, "encoder").map((plan) => group(plan, bias(true)))),
    ...(encoderOnly ? [] : merge(stack(decoder, "decoder").map((plan) => group(plan, bias(false))))),
  ];
}

type GroupOfOne = Omit<PositionGroup, "layers">;

function group(
  plan: LayerPlan,
  position: PositionSettings,
  extra: Pick<PositionGroup, "logitTemperature" | "softmaxFactor"> = { logitTemperature: null, softmaxFactor: 1 },
): GroupOfOne {
  return {
    ...(plan.layerType === null ? {} : { layerType: plan.layerType }),
    position: plan.layerType !== null && recurrentTypes.includes(plan.layerType) ? nope : position,
    slidingWindow: plan.slidingWindow,
    attentionChunkSize: plan.attentionChunkSize,
    ...extra,
  };
}

/** Layers with equal settings become one group, in the order in which each first appears. */
function merge(layers: readonly GroupOfOne[]): PositionGroup[] {
  const groups = new Map<string, { settings: GroupOfOne; layers: number[] }>();
  layers.forEach((settings, i) => {
    const key = JSON.stringify(settings);
    const found = groups.get(key);
    if (found === undefined) groups.set(key, { settings, layers: [i] });
    else found.layers.push(i);
  });
  return [...groups.values()].map(({ settings, layers }) => ({ layers, ...settings }));
}

/** The scaling's original length when it has one, else the length that the file claims. */
function trainedLengthOf(
  source: Source,
  rope: readonly ParsedRope[],
  groups: readonly PositionGroup[],
  shape: Shape,
): number | null {
  const embedding = groups.find((g) => g.position.site === "embedding")?.position;
  if (embedding?.site === "embedding") return embedding.numPositions;
  const scaled = rope.find((parsed) => parsed.rope.ropeType !== "default");
  if (scaled === undefined) return shape.maxPositionEmbeddings;
  if ("originalMaxPositionEmbeddings" in scaled.rope) return scaled.rope.originalMaxPositionEmbeddings;
  if (scaled.originalMaxPositionEmbeddings !== null) return scaled.originalMaxPositionEmbeddings;
  const isStretched = ["linear", "dynamic", "ntk"].includes(scaled.rope.ropeType);
  if (isStretched && shape.maxPositionEmbeddings !== null) {
    source.findings.push({
      code: "trained-length-assumed",
      severity: "note",
      where: join(source.path, "max_position_embeddings"),
      got: shape.maxPositionEmbeddings,
      expected: "the length of the training with unscaled frequencies",
      why: `The file does not say at which length the frequencies were trained before ${scaled.rope.ropeType} scaled them; max_position_embeddings is taken for it.`,
      fix: 'write "original_max_position_embeddings" beside the scaling',
    });
  }
  return shape.maxPositionEmbeddings;
}

/** Keys that several layer types read give one finding. */
function dedupe(findings: readonly Finding[]): Finding[] {
  const seen = new Set<string>();
  return findings.filter((finding) => {
    const key = JSON.stringify(finding);
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}
