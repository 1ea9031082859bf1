// Engines that read Hugging Face's config.json: which form each group takes, and the length that the file then claims.

import { computeDialect, type Dialect, type DialectContext } from "../../encodings/rope/dialects/index.ts";
import type { RopeConfig } from "../../encodings/rope/scaling/parameters.ts";
import { chooseForm, type Expressed } from "./compare.ts";
import { type Form, formsOf } from "./forms.ts";
import { type GroupSettings, isNestedClass, ropeDict, type TextClass } from "./hugging-face.ts";
import { distinctNotes, type ExportNote, exportNote } from "./notes.ts";
import type { ExportContext, ExportedGroup } from "./types.ts";
import type { Wanted } from "./wanted.ts";

export interface ConfigReader {
  readonly dialect: Dialect;
  readonly context?: Partial<DialectContext>;
  /** max_position_embeddings for a form, where the engine multiplies it; the length when absent. */
  readonly claimed?: (config: RopeConfig, length: number) => number | null;
  /** A form in the engine's own keys; null where it has none. */
  readonly adapt?: (config: RopeConfig, wanted: Wanted, form: Form) => RopeConfig | null;
  /** On top of the dialect's attention factor. */
  readonly attentionMultiplier?: (config: RopeConfig, wanted: Wanted) => number;
  /** Keys in place of those that the union knows. */
  readonly settings?: (dict: Record<string, unknown>, wanted: Wanted) => Record<string, unknown>;
}

export interface ThroughConfig {
  /** null where the engine takes no form of some group. */
  readonly settings: readonly GroupSettings[] | null;
  readonly dicts: readonly Record<string, unknown>[];
  readonly groups: readonly ExportedGroup[];
  readonly maxPositionEmbeddings: number;
  readonly nearest: ExportNote | null;
  readonly notes: readonly ExportNote[];
}

export function throughConfig(
  { model, length }: ExportContext,
  text: TextClass,
  wanted: readonly Wanted[],
  reader: ConfigReader,
): ThroughConfig {
  const nested = isNestedClass(text);
  const settings: GroupSettings[] = [];
  const dicts: Record<string, unknown>[] = [];
  const groups: ExportedGroup[] = [];
  const notes: ExportNote[] = [];
  let nearest: ExportNote | null = null;
  let max = 0;
  for (const one of wanted) {
    const express = (form: Form): Expressed<{ config: RopeConfig; dict: Record<string, unknown> }> | null => {
      const claimed = claimedLength(form.config, one, length, reader);
      const filled = withMagnitude({ ...form.config, maxPositionEmbeddings: claimed }, one);
      const config = reader.adapt === undefined ? filled : reader.adapt(filled, one, form);
      if (config === null) return null;
      const result = computeDialect(reader.dialect, config, {
        sequenceLength: length,
        maxModelLen: length,
        ...(text.modelType === null ? {} : { modelType: text.modelType }),
        nested,
        originalLengthAtTopLevel: config.rope.ropeType === "longrope" && text.family?.originalIsField === true,
        ...reader.context,
      });
      const plain = ropeDict({ group: one.group, config });
      const dict = reader.settings === undefined ? plain : reader.settings(plain, one);
      return {
        written: { config, dict },
        result,
        attentionMultiplier: reader.attentionMultiplier?.(config, one) ?? 1,
        settings: dict,
      };
    };
    const { chosen, reason } = chooseForm(one, length, formsOf(one, length), express);
    if (chosen === null) {
      groups.push(unsupportedGroup(one, reason));
      continue;
    }
    settings.push({ group: one.group, config: chosen.written.config });
    dicts.push(chosen.written.dict);
    groups.push(chosen.group);
    // Layers that see everything say what the file claims.
    if (max === 0 || one.group.slidingWindow === null) max = chosen.written.config.maxPositionEmbeddings;
    if (!chosen.group.exact) nearest ??= nearestNote(chosen.form, chosen.group, length);
    else if (chosen.form.fixed) notes.push(fixedNote(one, length));
  }
  return {
    settings: settings.length === wanted.length ? settings : null,
    dicts,
    groups,
    maxPositionEmbeddings: max || Math.max(length, model.maxPositionEmbeddings ?? 0),
    nearest,
    notes: distinctNotes(notes),
  };
}

function claimedLength(config: RopeConfig, wanted: Wanted, length: number, reader: ConfigReader): number {
  const own = reader.claimed?.(config, length) ?? null;
  if (own !== null) return own;
  const file = wanted.own.maxPositionEmbeddings;
  // Dynamic scaling starts to change there.
  if (config.rope.ropeType === "dynamic" && config.rope.alpha === undefined) return config.maxPositionEmbeddings;
  // What a new factor reaches, so that no loader finds another ratio between the lengths.
  if (wanted.changed && config.rope.ropeType === "yarn" && config.rope.factor !== null) {
    return Math.max(length, Math.round(config.rope.factor * config.rope.originalMaxPositionEmbeddings));
  }
  return Math.max(length, file);
}

/** The magnitude that longrope would compute from the lengths, written down where one of the lengths changes. */
function withMagnitude(config: RopeConfig, { own, attentionFactor }: Wanted): RopeConfig {
  const { rope } = config;
  if (rope.ropeType !== "longrope" || (rope.attentionFactor ?? null) !== null) return config;
  if (config.maxPositionEmbeddings === own.maxPositionEmbeddings) return config;
  return { ...config, rope: { ...rope, attentionFactor } };
}

export function unsupportedGroup(wanted: Wanted, reason: ExportNote): ExportedGroup {
  const { group } = wanted;
  return {
    layers: group.layers,
    ...(group.layerType === undefined ? {} : { layerType: group.layerType }),
    written: null,
    unsupported: reason,
    exact: false,
    frequencyDifference: null,
    frequencyPair: null,
    angleDifference: null,
    anglePair: null,
    scoreFactor: null,
    askedScoreFactor: wanted.attentionFactor ** 2 * wanted.softmaxFactor,
    inverseFrequencies: [],
    attentionFactor: null,
    notes: [],
  };
}

/** @param deaf the architecture whose sliding layers no flag reaches, where that is why */
export function nearestNote(form: Pick<Form, "name">, group: ExportedGroup, length: number, deaf?: string): ExportNote {
  const { frequencyDifference, angleDifference, anglePair, askedScoreFactor } = group;
  const scoreFactor = group.scoreFactor ?? 1;
  return exportNote("nearest", {
    ...(deaf === undefined ? {} : { deaf }),
    form: form.name,
    ...((frequencyDifference ?? 0) > 1e-6
      ? { radians: short(angleDifference ?? 0), pair: anglePair ?? 0, position: length - 1 }
      : {}),
    ...(Math.abs(scoreFactor / askedScoreFactor - 1) > 1e-6
      ? { scores: short(scoreFactor), asked: short(askedScoreFactor) }
      : {}),
  });
}

export function fixedNote({ config }: Wanted, length: number): ExportNote {
  return exportNote("fixed-table", { ropeType: config.rope.ropeType, length });
}

function short(value: number): string {
  return String(Number(value.toPrecision(4)));
}
