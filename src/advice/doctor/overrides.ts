// What a server's command line changes in config.json before the model is built, merged as the engine merges it.

import { isObject, type JsonObject } from "../../formats/huggingface/values.ts";
import { flagOf, type ParsedCommand } from "./command.ts";
import type { DoctorEngine } from "./types.ts";

export interface Overrides {
  /** The flag that holds them. */
  readonly flag: string;
  /** null where it holds no JSON object. */
  readonly value: JsonObject | null;
  readonly written: string;
}

/** The overrides of a command line; null without any. */
export function overridesOf(command: ParsedCommand): Overrides | null {
  if (command.engine === "sglang") return fromJson(command, "--json-model-override-args");
  if (command.engine !== "vllm") return null;
  const found = fromJson(command, "--hf-overrides");
  // --hf-overrides.rope_parameters.factor 4 is the same, key by key.
  const dotted = command.flags.filter(({ name }) => name.startsWith("--hf-overrides."));
  const legacy = legacyFlags(command);
  if (dotted.length === 0) return found ?? legacy;
  let value: JsonObject = found?.value ?? {};
  for (const flag of dotted) value = withKey(value, flag.name.split(".").slice(1), parsed(flag.value));
  return { flag: "--hf-overrides", value, written: JSON.stringify(value) };
}

/** vLLM up to 0.11.0: --rope-scaling and --rope-theta. */
function legacyFlags(command: ParsedCommand): Overrides | null {
  const scaling = flagOf(command, "--rope-scaling");
  const theta = flagOf(command, "--rope-theta");
  if (scaling === undefined && theta === undefined) return null;
  const dict = parsed(scaling?.value ?? null);
  const base = parsed(theta?.value ?? null);
  return {
    flag: scaling === undefined ? "--rope-theta" : "--rope-scaling",
    value: {
      ...(isObject(dict) ? { rope_scaling: dict } : {}),
      ...(typeof base === "number" ? { rope_theta: base } : {}),
    },
    written: scaling?.value ?? theta?.value ?? "",
  };
}

function fromJson(command: ParsedCommand, flag: string): Overrides | null {
  const found = flagOf(command, flag);
  if (found === undefined) return null;
  const value = parsed(found.value);
  return { flag, value: isObject(value) ? value : null, written: found.value ?? "" };
}

function parsed(text: string | null): unknown {
  if (text === null) return null;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function withKey(object: JsonObject, path: readonly string[], value: unknown): JsonObject {
  const [key = "", ...rest] = path;
  const inner = Object.hasOwn(object, key) ? object[key] : undefined;
  return { ...object, [key]: rest.length === 0 ? value : withKey(isObject(inner) ? inner : {}, rest, value) };
}

const dicts = ["rope_parameters", "rope_scaling"];

/**
 * The configuration that the engine computes with. A dict of rotary settings at the top level replaces the file's in vLLM
 * (`_apply_dict_overrides`), and is merged into it in SGLang (`get_config`); inside text_config it is the other way
 * round. Every other value is replaced.
 *
 * Source: vLLM 0.12.0 to 0.33.0 vllm/config/model.py; SGLang 0.5.23 srt/utils/hf_transformers/config.py.
 */
export function merged(config: JsonObject, overrides: JsonObject, engine: DoctorEngine): JsonObject {
  return merge(config, overrides, engine === "sglang", engine !== "sglang");
}

function merge(config: JsonObject, overrides: JsonObject, keeps: boolean, innerKeeps: boolean): JsonObject {
  const out: Record<string, unknown> = { ...config };
  for (const [key, value] of Object.entries(overrides)) {
    if (!isObject(value)) {
      out[key] = value;
    } else if (dicts.includes(key)) {
      // In transformers 5 both are one attribute, so either spelling replaces what stands under the other.
      const old = dicts.map((name) => config[name]).find(isObject) ?? {};
      for (const name of dicts) delete out[name];
      out[key] = keeps ? { ...withoutOtherType(old, value), ...value } : value;
    } else {
      const old = config[key];
      out[key] = isObject(old) ? merge(old, value, innerKeeps, innerKeeps) : value;
    }
  }
  return out;
}

/** The older spelling of the type must not outlive a new one. */
function withoutOtherType(old: JsonObject, value: JsonObject): JsonObject {
  if (value.rope_type === undefined && value.type === undefined) return old;
  const { type: _type, rope_type: _ropeType, ...rest } = old;
  return rest;
}
