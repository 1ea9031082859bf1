// A patched copy of a GGUF: the metadata of rope.scaling, rope.freq_base and context_length, and for tables that no key
// can say the divisors in rope_freqs.weight. Which architectures read that tensor is in llama.cpp's src/models/*.cpp
// (tree of 12 September 2026); elsewhere a file that holds it does not load.

import { power } from "../../encodings/numerics/power.ts";
import { computeDialect, ropeDialects } from "../../encodings/rope/dialects/index.ts";
import type { RopeConfig } from "../../encodings/rope/scaling/parameters.ts";
import { rotaryDimOf, yarnMagnitude } from "../../encodings/rope/scaling/scaling.ts";
import { ggufArchitectures } from "../../formats/gguf/architectures.ts";
import type { GgufPatch, MetadataChange } from "../../formats/gguf/patch.ts";
import { chooseForm, type Expressed } from "./compare.ts";
import { type Form, formsOf } from "./forms.ts";
import { architectureOf, textClassOf } from "./hugging-face.ts";
import { type ExportNote, exportNote } from "./notes.ts";
import { fixedNote, nearestNote, unsupportedGroup } from "./through-config.ts";
import type { ExportContext, ExportedGroup } from "./types.ts";
import type { Wanted } from "./wanted.ts";
import { shellLine } from "./words.ts";
import type { EngineWords } from "./words-of-engine.ts";

/** Architectures that load rope_freqs.weight and rotate with it. */
const readsDivisors: ReadonlySet<string> = new Set(
  (
    "llama llama-embed deci mistral3 arcee apertus exaone exaone4 exaone-moe granite granitemoe granitehybrid nanbeige " +
    "gemma4 llama4"
  ).split(" "),
);

/** Architectures that rotate with rope_factors_long.weight and rope_factors_short.weight instead. */
const readsLists: ReadonlySet<string> = new Set(["phi3", "minicpm3"]);

/** For a pair that must not turn, as converters write it. */
const still = 1e30;

/** What a form is in metadata, without the architecture's prefix. */
interface Keys {
  /** Nothing of the rotation changes. */
  readonly asIs?: true;
  readonly type: "none" | "linear" | "yarn";
  readonly factor: number | null;
  readonly original: number | null;
  readonly base: number;
  /** rope.scaling.attn_factor, which multiplies the magnitude; 1: no key. */
  readonly attnFactor: number;
  readonly betas: readonly [fast: number, slow: number] | null;
  readonly divisors: readonly number[] | null;
}

export interface GgufWords extends EngineWords {
  /** The patched file's name. */
  readonly file: string;
}

export function exportGguf(context: ExportContext, wanted: readonly Wanted[]): GgufWords {
  const { model, version, folder, length } = context;
  const text = textClassOf(model, context.options.config);
  const architecture = architectureOf(model, text);
  const facts = architecture === null ? undefined : ggufArchitectures[architecture];
  const groups: ExportedGroup[] = [];
  const notes: ExportNote[] = [];
  let nearest: ExportNote | null = null;
  let keys: Keys | null = null;
  const tables = tablesOf(architecture);
  const modelType = text.modelType === null ? {} : { modelType: text.modelType };
  const ordered = [...wanted].sort(
    (a, b) => Number(a.group.slidingWindow !== null) - Number(b.group.slidingWindow !== null),
  );
  for (const one of ordered) {
    const apart = one.group.slidingWindow !== null && facts?.sliding?.scaling === "none";
    const express = (form: Form): Expressed<Keys> | null => {
      const unchanged = apart || !one.changed;
      const made = unchanged
        ? form.config.rope === one.own.rope
          ? asIs(one)
          : null
        : keysOf(form, one, facts?.readsBetas === true, tables !== null);
      if (made === null) return null;
      // Keys of a file are one set: later groups get the first one's.
      const used: Keys = keys === null || apart ? made : keys;
      return {
        written: used,
        result: computeDialect("llama.cpp", used.asIs ? one.own : configOf(used, one, length), {
          sequenceLength: length,
          maxModelLen: length,
          ...modelType,
          // On the command line, or in keys that the architecture reads.
          ...(used.betas === null ? {} : { llamaCpp: { yarnBetaFast: used.betas[0], yarnBetaSlow: used.betas[1] } }),
        }),
        attentionMultiplier: used.divisors === null ? used.attnFactor : 1,
        settings: null,
      };
    };
    const { chosen, reason } = chooseForm(one, length, formsOf(one, length), express);
    if (chosen === null) {
      groups.push(unsupportedGroup(one, reason));
      continue;
    }
    groups.push(chosen.group);
    if (!apart) keys ??= chosen.written;
    if (!chosen.group.exact) nearest ??= nearestNote(chosen.form, chosen.group, length);
    else if (chosen.form.fixed) notes.push(fixedNote(one, length));
  }
  if (groups.some(({ exact }) => !exact) && architecture !== null && tables === null) {
    notes.push(exportNote("no-own-table", { architecture }));
  }
  if (keys !== null && keys.divisors === null && keys.betas !== null && facts?.readsBetas !== true) {
    notes.push(exportNote("betas-by-flags"));
  }
  const file = `${baseName(context.called)}-${length}.gguf`;
  const arch = architecture ?? "ARCH";
  const failed = groups.some(({ unsupported }) => unsupported !== null);
  const patch: GgufPatch | null =
    keys === null || failed
      ? null
      : patchOf(arch, keys, tables, model.maxPositionEmbeddings ?? 0, length, ordered[0]!.own.rope.ropeTheta);
  const betas =
    keys?.betas !== null && keys?.betas !== undefined && facts?.readsBetas !== true
      ? ["--yarn-beta-fast", String(keys.betas[0]), "--yarn-beta-slow", String(keys.betas[1])]
      : [];
  return {
    engine: { version: version ?? "of 12 September 2026", readFrom: ropeDialects["llama.cpp"].engine },
    file,
    files: patch === null ? [] : [{ path: file, content: null }],
    patch,
    commands:
      patch === null ? [] : [shellLine(["llama-server", "-m", `${folder}/${file}`, "-c", String(length), ...betas])],
    groups,
    nearest,
    notes,
  };
}

/** The file's name without folder and ending. */
function baseName(path: string): string {
  return path.replace(/^.*[/\\]/, "").replace(/\.gguf$/i, "");
}

/** Where llama.cpp reads a table of an architecture. */
function tablesOf(architecture: string | null): "freqs" | "lists" | null {
  if (architecture === null) return null;
  return readsDivisors.has(architecture) ? "freqs" : readsLists.has(architecture) ? "lists" : null;
}

function asIs({ own }: Wanted): Keys {
  const keys = { type: "none", factor: null, original: null, attnFactor: 1, betas: null, divisors: null } as const;
  return { ...keys, asIs: true, base: own.rope.ropeTheta };
}

function keysOf(form: Form, wanted: Wanted, readsBetas: boolean, tables: boolean): Keys | null {
  const { rope, headDim } = form.config;
  const plain: Keys = {
    type: "none",
    factor: null,
    original: null,
    base: rope.ropeTheta,
    attnFactor: 1,
    betas: null,
    divisors: null,
  };
  switch (rope.ropeType) {
    case "default":
      return plain;
    case "linear":
      return { ...plain, type: "linear", factor: rope.factor };
    case "yarn": {
      const { factor } = rope;
      if (factor === null || rope.truncate === false) return tables ? tableKeys(plain, wanted, headDim) : null;
      const betas = [rope.betaFast || 32, rope.betaSlow || 1] as const;
      const usual = betas[0] === 32 && betas[1] === 1;
      if (!usual && tables && !readsBetas) return tableKeys(plain, wanted, headDim);
      // Of latent attention: its own log multiplier stays in the file.
      const computed = rope.mscaleAllDim ? wanted.attentionFactor : yarnMagnitude(factor);
      return {
        ...plain,
        type: "yarn",
        factor,
        original: rope.originalMaxPositionEmbeddings,
        attnFactor: wanted.attentionFactor / computed,
        betas: usual ? null : betas,
      };
    }
    default:
      return tables ? tableKeys(plain, wanted, headDim) : null;
  }
}

/** Any table: divisors b^(−2i/d) / ω. */
function tableKeys(plain: Keys, wanted: Wanted, headDim: number): Keys {
  const { config, inverseFrequencies, attentionFactor } = wanted;
  const proportional = config.rope.ropeType === "proportional";
  const rotaryDim = proportional ? headDim : rotaryDimOf(headDim, config.rope.partialRotaryFactor);
  const { ropeTheta } = config.rope;
  const divisors = Array.from(inverseFrequencies, (w, i) =>
    Math.fround(w === 0 ? still : power(ropeTheta, (-2 * i) / rotaryDim) / w),
  );
  return { ...plain, base: ropeTheta, divisors, attnFactor: attentionFactor };
}

/** Keys as the configuration that llama.cpp's dialect reads. */
function configOf(keys: Keys, { group, own }: Wanted, length: number): RopeConfig {
  const { partialRotaryFactor } = group.position.rope;
  const share =
    partialRotaryFactor === undefined || group.position.rope.ropeType === "proportional" ? {} : { partialRotaryFactor };
  const common = { ropeTheta: keys.base, ...share };
  const config = { headDim: own.headDim, maxPositionEmbeddings: Math.max(length, own.maxPositionEmbeddings) };
  if (keys.divisors !== null) {
    const rotaryDim = 2 * keys.divisors.length;
    const inverseFrequencies = keys.divisors.map((divisor, i) =>
      divisor >= still / 2 ? 0 : power(keys.base, (-2 * i) / rotaryDim) / divisor,
    );
    return { ...config, rope: { ropeType: "table", ...common, inverseFrequencies, attentionFactor: keys.attnFactor } };
  }
  switch (keys.type) {
    case "none":
      return { ...config, rope: { ropeType: "default", ...common } };
    case "linear":
      return { ...config, rope: { ropeType: "linear", ...common, factor: keys.factor! } };
    case "yarn": {
      const { rope } = own;
      const latent =
        rope.ropeType === "yarn" && rope.mscaleAllDim
          ? { mscale: rope.mscale ?? 1, mscaleAllDim: rope.mscaleAllDim }
          : {};
      return {
        ...config,
        rope: {
          ropeType: "yarn",
          ...common,
          factor: keys.factor!,
          originalMaxPositionEmbeddings: keys.original!,
          ...latent,
        },
      };
    }
  }
}

function patchOf(
  architecture: string,
  keys: Keys,
  tables: "freqs" | "lists" | null,
  claimed: number,
  length: number,
  ownBase: number,
): GgufPatch {
  const set = (key: string, type: MetadataChange["type"], value: MetadataChange["value"]): MetadataChange => ({
    key: `${architecture}.${key}`,
    type,
    value,
  });
  const reach = length > claimed ? [set("context_length", "u32", length)] : [];
  if (keys.asIs) return { metadata: reach, tensors: [] };
  const lists = keys.divisors !== null && tables === "lists";
  const metadata: MetadataChange[] = [
    ...reach,
    // What the file says already, or leaves to the same default.
    ...(keys.base === ownBase ? [] : [set("rope.freq_base", "f32", keys.base)]),
    set("rope.scaling.type", "string", lists ? "longrope" : keys.type),
    set("rope.scaling.factor", "f32", keys.factor),
    set("rope.scaling.original_context_length", "u32", lists ? Math.max(1, claimed) : keys.original),
    set("rope.scaling.attn_factor", "f32", Math.abs(keys.attnFactor - 1) < 1e-9 && !lists ? null : keys.attnFactor),
    set("rope.scaling.yarn_beta_fast", "f32", keys.betas?.[0] ?? null),
    set("rope.scaling.yarn_beta_slow", "f32", keys.betas?.[1] ?? null),
    // Older spellings, which would say something else.
    set("rope.scale_linear", "f32", null),
    set("rope.scaling.yarn_attn_factor", "f32", null),
    set("rope.scaling.yarn_ext_factor", "f32", null),
  ];
  return {
    metadata,
    tensors: [
      { name: "rope_freqs.weight", values: lists ? null : keys.divisors },
      { name: "rope_factors_long.weight", values: lists ? keys.divisors : null },
      { name: "rope_factors_short.weight", values: lists ? keys.divisors : null },
    ],
  };
}
