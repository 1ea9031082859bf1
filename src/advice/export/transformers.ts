// Hugging Face transformers: config.json with rope_parameters (version 5) or rope_theta and rope_scaling (version 4).

import { ropeDialects } from "../../encodings/rope/dialects/index.ts";
import { mergePatch, placed, textClassOf, version4Patch, version5Patch } from "./hugging-face.ts";
import { exportNote } from "./notes.ts";
import { throughConfig, unsupportedGroup } from "./through-config.ts";
import type { ExportContext } from "./types.ts";
import { isBefore } from "./versions.ts";
import type { Wanted } from "./wanted.ts";
import { shellWord, wholeConfigJson } from "./words.ts";
import type { EngineWords } from "./words-of-engine.ts";

export function exportTransformers(context: ExportContext, wanted: readonly Wanted[]): EngineWords {
  const { options, version, called, folder } = context;
  const four = isBefore(version, "5");
  const dialect = four ? "transformers-4" : "transformers-5";
  const text = textClassOf(context.model, options.config);
  const through = throughConfig(context, text, wanted, {
    dialect,
    // Version 4 reads it at the top level alone, and there it is written.
    ...(four ? { context: { originalLengthAtTopLevel: true } } : {}),
  });
  const engine = { version: version ?? "5.24.0", readFrom: ropeDialects[dialect].engine };
  const { settings, maxPositionEmbeddings } = through;
  const patch =
    settings === null
      ? null
      : four
        ? version4Patch(text, settings, maxPositionEmbeddings)
        : version5Patch(text, settings, maxPositionEmbeddings);
  if (patch === null || typeof patch === "string") {
    const groups = patch === null ? through.groups : wanted.map((one) => unsupportedGroup(one, exportNote(patch)));
    return { engine, files: [], patch: null, commands: [], groups, nearest: null, notes: through.notes };
  }
  const whole = options.config !== undefined;
  const inPlace = placed(text.place, patch);
  const name = whole ? "config.json" : "config-changes.json";
  const content = wholeConfigJson(whole ? mergePatch(options.config!, inPlace) : inPlace, options.configText);
  const file = `${folder}/${name}`;
  const commands = whole
    ? [load(called, `config=AutoConfig.from_pretrained(${python(file)})`, true)]
    : [merge(called, file), load(called, "", false)];
  return {
    engine,
    files: [{ path: name, content }],
    patch: null,
    changes: inPlace,
    commands,
    groups: through.groups,
    nearest: through.nearest,
    notes: through.notes,
  };
}

function load(model: string, config: string, own: boolean): string {
  const imports = own ? "AutoConfig, AutoModelForCausalLM" : "AutoModelForCausalLM";
  const more = config === "" ? "" : `, ${config}`;
  return `python -c ${shellWord(`from transformers import ${imports}; model = AutoModelForCausalLM.from_pretrained(${python(model)}${more})`)}`;
}

/** Puts a merge patch into a folder's config.json, and keeps the old one. */
export function merge(model: string, file: string): string {
  const path = python(`${model}/config.json`);
  const code =
    `import json, shutil; shutil.copy(${path}, ${python(`${model}/config.json.before`)}); ` +
    `c = json.load(open(${path})); p = json.load(open(${python(file)})); c.update(p); ` +
    `json.dump({k: v for k, v in c.items() if k not in p or v is not None}, open(${path}, "w"), indent=2)`;
  return `python -c ${shellWord(code)}`;
}

function python(text: string): string {
  return JSON.stringify(text);
}
