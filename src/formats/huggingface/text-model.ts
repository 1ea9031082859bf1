// Which part of a config.json describes the text model: the file itself, or text_config of a multimodal one.

import type { Finding } from "../finding.ts";
import { classDefaults } from "./class-defaults.ts";
import { families, familyAliases } from "./families.ts";
import { isObject, type JsonObject, join, type Source, unexpected } from "./values.ts";

/** Where the text model's part may stand, in the order in which it is looked for. */
const places = ["text_config", "language_config", "llm_config", "thinker_config.text_config"];

/** Keys whose place is beside the text model's shape; outside it no reader looks at them. */
const rotaryKeys = ["rope_scaling", "rope_parameters", "rope_theta"];

export interface TextModel {
  readonly source: Source;
  /** The class that reads it: its own model_type, or what the wrapper implies. */
  readonly familyName: string;
  /** True for a part that transformers wrote as differences from its class, so that any key may be left out. */
  readonly isPart: boolean;
}

export function findTextModel(config: JsonObject, modelType: string, findings: Finding[]): TextModel {
  for (const place of places) {
    const record = place.split(".").reduce<unknown>((at, key) => (isObject(at) ? at[key] : undefined), config);
    if (record === undefined || record === null) continue;
    if (!isObject(record)) throw unexpected(place, "an object", record, "");
    const own = record.model_type;
    if (own !== undefined && typeof own !== "string") {
      throw unexpected(join(place, "model_type"), "a string", own, "");
    }
    const familyName = nameOf(own ?? modelType);
    for (const key of rotaryKeys) {
      const outside = config[key];
      if (outside === undefined || outside === null || JSON.stringify(outside) === JSON.stringify(record[key]))
        continue;
      findings.push({
        code: "outside-text-config",
        severity: "warning",
        where: key,
        got: outside,
        expected: `${place}.${key}`,
        why: `The text model is read from ${place}; ${key} outside it changes nothing, here and in transformers 5.24.0.`,
        fix: `move it to "${place}"`,
      });
    }
    const source = sourceOf(record, place, own ?? familyName, familyName, findings);
    return { source, familyName, isPart: true };
  }
  const familyName = nameOf(modelType);
  return { source: sourceOf(config, "", modelType, familyName, findings), familyName, isPart: false };
}

function nameOf(modelType: string): string {
  if (Object.hasOwn(families, modelType)) return modelType;
  return Object.hasOwn(familyAliases, modelType) ? familyAliases[modelType]! : modelType;
}

function sourceOf(
  record: JsonObject,
  path: string,
  modelType: string,
  familyName: string,
  findings: Finding[],
): Source {
  const defaults = Object.hasOwn(classDefaults, familyName) ? classDefaults[familyName]! : {};
  return { record, path, modelType, defaults, findings };
}
