// config.json with other rotary settings, as transformers 5 reads it (rope_parameters, nested by layer type where a class
// keeps settings a type) and as transformers 4 does (rope_theta and rope_scaling at the top level). As a JSON merge
// patch: keys to set, null for those to remove. Engines that read Hugging Face's files take their words from here.

import type { RopeConfig, RopeParameters } from "../../encodings/rope/scaling/parameters.ts";
import { type Family, families, familyAliases, type RotaryFamily } from "../../formats/huggingface/families.ts";
import { toHuggingFace } from "../../formats/huggingface/index.ts";
import { findTextModel } from "../../formats/huggingface/text-model.ts";
import type { ModelDescription } from "../../formats/model-description.ts";
import { modelFamilies } from "../../models/families/index.ts";
import type { RotaryGroup } from "./wanted.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

/** The class that reads the model's configuration, and where in the file its keys stand. */
export interface TextClass {
  /** model_type of the text model; null where none is known. */
  readonly modelType: string | null;
  readonly family: RotaryFamily | null;
  /** "" or the path of the part: "text_config". */
  readonly place: string;
  /** The text model's own keys; null without a config.json. */
  readonly record: JsonObject | null;
}

/** Architectures of GGUF whose model_type has another name, beside those of the families that can be run. */
const modelTypeOfArchitecture: Readonly<Record<string, string>> = {
  mistral3: "ministral3",
  "gpt-oss": "gpt_oss",
  gptoss: "gpt_oss",
  gemma4: "gemma4_text",
  gemma3n: "gemma3n_text",
  llama4: "llama4_text",
  deepseek2: "deepseek_v3",
  glm4: "glm4",
  glm4moe: "glm4_moe",
  qwen2moe: "qwen2_moe",
  qwen3moe: "qwen3_moe",
  qwen3next: "qwen3_next",
  exaone4: "exaone4",
  granite: "granite",
  nemotron: "nemotron",
  apertus: "apertus",
  seed_oss: "seed_oss",
  internlm2: "internlm2",
};

export function textClassOf(model: ModelDescription, config?: JsonObject): TextClass {
  if (config !== undefined) {
    const modelType = typeof config.model_type === "string" ? config.model_type : "";
    const { source, familyName } = findTextModel(config, modelType, []);
    return {
      modelType: source.modelType,
      family: rotaryFamily(familyName, source.record),
      place: source.path,
      record: source.record,
    };
  }
  const modelType = modelTypeOf(model);
  const name = modelType === null ? "" : (familyAliases[modelType] ?? modelType);
  return { modelType, family: rotaryFamily(name, {}), place: "", record: null };
}

function modelTypeOf({ format, modelType }: ModelDescription): string | null {
  if (format === "huggingface") return modelType;
  if (format === "llama2.c") return "llama";
  const own = modelFamilies.find((family) => family.gguf.includes(modelType))?.huggingFace[0];
  return own ?? (Object.hasOwn(modelTypeOfArchitecture, modelType) ? modelTypeOfArchitecture[modelType]! : null);
}

function rotaryFamily(name: string, record: JsonObject): RotaryFamily | null {
  const found: Family | undefined = Object.hasOwn(families, name) ? families[name] : undefined;
  const family = found?.kind === "choice" ? found.choose(record) : found;
  return family?.kind === "rotary" ? family : null;
}

/** GGUF's architecture of a model; null where none is known. */
export function architectureOf(model: ModelDescription, { modelType }: TextClass): string | null {
  if (model.format === "gguf") return model.modelType;
  if (model.format === "llama2.c") return "llama";
  if (modelType === null) return null;
  const own = modelFamilies.find((family) => family.huggingFace.includes(modelType))?.gguf[0];
  return own ?? Object.entries(modelTypeOfArchitecture).find(([, name]) => name === modelType)?.[0] ?? null;
}

/** The settings of one group as they are to be written. */
export interface GroupSettings {
  readonly group: RotaryGroup;
  readonly config: RopeConfig;
}

/** rope_parameters of a group, with what its family keeps there beside the scaling. */
export function ropeDict(
  { group, config }: GroupSettings,
  rope: RopeParameters = config.rope,
): Record<string, unknown> {
  const { mropeSection, mropeInterleaved } = group.position;
  const temperature = group.logitTemperature;
  return {
    ...toHuggingFace(rope),
    ...(mropeSection === undefined ? {} : { mrope_section: [...mropeSection] }),
    ...(mropeInterleaved === true ? { mrope_interleaved: true } : {}),
    ...(temperature?.kind === "ministral3" ? { llama_4_scaling_beta: temperature.beta } : {}),
  };
}

/** Whether the class wants one dict a layer type. */
export function isNestedClass({ family }: TextClass): boolean {
  return family?.sliding !== undefined;
}

/** The value of `rope_parameters`: flat, or by layer type. */
export function ropeParametersOf(text: TextClass, groups: readonly GroupSettings[]): Record<string, unknown> {
  if (!isNestedClass(text)) return ropeDict(groups[0]!);
  return Object.fromEntries(groups.map((one) => [one.group.layerType ?? "full_attention", ropeDict(one)]));
}

/**
 * The merge patch of version 5.
 *
 * @param max max_position_embeddings to write
 */
export function version5Patch(text: TextClass, groups: readonly GroupSettings[], max: number): Record<string, unknown> {
  const { family, record } = text;
  const first = groups[0]!.config.rope;
  const outside = [
    ...new Set([...(family?.thetaKeys ?? ["rope_theta"]), ...(family?.sliding?.thetaKeys ?? []), "rope_theta"]),
  ];
  const inside = "partialRotaryFactor" in first && first.partialRotaryFactor !== undefined;
  const removed = [
    // A rope_scaling beside rope_parameters replaces it, the base included.
    "rope_scaling",
    ...outside,
    ...(inside ? ["partial_rotary_factor"] : []),
    // At the top level it overwrites the one inside.
    ...(family?.originalIsField ? [] : ["original_max_position_embeddings"]),
  ].filter((key) => (record === null ? key === "rope_scaling" || key === "rope_theta" : record[key] !== undefined));
  return {
    ...Object.fromEntries(removed.map((key) => [key, null])),
    ...(family?.originalIsField && "originalMaxPositionEmbeddings" in first
      ? { original_max_position_embeddings: first.originalMaxPositionEmbeddings }
      : {}),
    max_position_embeddings: max,
    rope_parameters: ropeParametersOf(text, groups),
  };
}

/** Why version 4's schema has no words for something. */
export type NoSettings = "class-of-version-5" | "no-local-scaling";

/** The merge patch of version 4; the reason where its schema has no words. */
export function version4Patch(
  text: TextClass,
  groups: readonly GroupSettings[],
  max: number,
): Record<string, unknown> | NoSettings {
  const { family, record } = text;
  const full = groups.find(({ group }) => group.layerType !== "sliding_attention") ?? groups[0]!;
  const { rope } = full.config;
  const thetaKey = family === null ? "rope_theta" : family.thetaKeys[0];
  if (thetaKey === undefined) return "class-of-version-5";
  const { rope_theta, partial_rotary_factor, ...scaling } = ropeDict(full);
  const out: Record<string, unknown> = {
    ...(record === null || record.rope_parameters !== undefined ? { rope_parameters: null } : {}),
    max_position_embeddings: max,
    [thetaKey]: rope_theta,
  };
  const local = groups.find(({ group }) => group.layerType === "sliding_attention");
  const localKey = family?.sliding?.thetaKeys[0];
  if (local !== undefined && localKey !== undefined && localKey !== thetaKey) {
    if (local.config.rope.ropeType !== "default") return "no-local-scaling";
    out[localKey] = local.config.rope.ropeTheta;
  }
  const plain = rope.ropeType === "default" && Object.keys(scaling).length === 1;
  if (!plain && rope.ropeType === "longrope") {
    // The top level alone is read.
    out.original_max_position_embeddings = rope.originalMaxPositionEmbeddings;
  } else if (record?.original_max_position_embeddings !== undefined) {
    out.original_max_position_embeddings = null;
  }
  out.rope_scaling = plain ? null : scaling;
  if (
    partial_rotary_factor !== undefined &&
    (family?.partial.keys ?? ["partial_rotary_factor"]).includes("partial_rotary_factor")
  ) {
    out.partial_rotary_factor = partial_rotary_factor;
  }
  return out;
}

/** A merge patch in its place: { text_config: { … } } for the text part of a multimodal file. */
export function placed(place: string, patch: JsonObject): JsonObject {
  return place === "" ? patch : place.split(".").reduceRight<JsonObject>((inner, key) => ({ [key]: inner }), patch);
}

/** RFC 7386: null removes a key, objects merge; a rotary dict is replaced whole. */
export function mergePatch(target: JsonObject, patch: JsonObject): Record<string, unknown> {
  const out: Record<string, unknown> = { ...target };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete out[key];
    else if (isObject(value) && key !== "rope_parameters" && key !== "rope_scaling") {
      out[key] = mergePatch(isObject(out[key]) ? out[key] : {}, value);
    } else out[key] = value;
  }
  return out;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
