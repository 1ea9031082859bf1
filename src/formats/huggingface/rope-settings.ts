// From a config.json to one rotary setting per layer type: where the dict stands (rope_scaling, rope_parameters, flat or
// nested), where theta, the rotated share and the original length come from, and where transformers 5.24.0 reads the
// file otherwise than it evidently means. The file's intent is followed; each difference is a warning with both readings.

import { show } from "../../encodings/errors.ts";
import type { RopeParameters } from "../../encodings/rope/scaling/parameters.ts";
import { nearest } from "../nearest.ts";
import type { RotaryFamily } from "./families.ts";
import { isLayerType, isNested } from "./layers.ts";
import { type ParsedRope, parseRopeParameters } from "./rope-parameters.ts";
import {
  count,
  has,
  isObject,
  type JsonObject,
  join,
  positive,
  read,
  type Source,
  share,
  unexpected,
} from "./values.ts";

/** Layers of one type: their settings; null: the file says that they have no rotary encoding. */
export type RopeByLayerType = ReadonlyMap<string | null, ParsedRope | null>;

/** One dict, the path it was read from, and the layer types it speaks for. */
interface Statement {
  readonly dict: JsonObject;
  readonly where: string;
}

const loader = "transformers 5.24.0";

/** Every key that stands beside the layer types of a nested dict and means something for all of them. */
const outerKeys = ["rope_theta", "partial_rotary_factor", "truncate", "rope_type", "type"];

/**
 * The rotary settings of each of these layer types.
 *
 * @param headDims the width that is rotated, by layer type
 */
export function readRope(
  source: Source,
  family: RotaryFamily,
  layerTypes: readonly (string | null)[],
  headDims: ReadonlyMap<string | null, number>,
  maxPositionEmbeddings: number | null,
): RopeByLayerType {
  const statements = readStatements(source, family, layerTypes);
  const out = new Map<string | null, ParsedRope | null>();
  for (const layerType of layerTypes) {
    const statement = statements.get(layerType);
    if (statement === null || statement === undefined) {
      out.set(layerType, null);
      continue;
    }
    out.set(layerType, parse(source, family, layerType, statement, headDims.get(layerType)!, maxPositionEmbeddings));
  }
  return out;
}

/** Which dict speaks for which layer type. */
function readStatements(
  source: Source,
  family: RotaryFamily,
  layerTypes: readonly (string | null)[],
): ReadonlyMap<string | null, Statement | null> {
  const legacy = readDict(source, "rope_scaling");
  const current = readDict(source, "rope_parameters");
  const legacyPath = join(source.path, "rope_scaling");
  const currentPath = join(source.path, "rope_parameters");

  if (legacy === null && current === null) return preset(source, family, layerTypes);
  if (legacy !== null && current !== null) {
    return bothDicts(source, family, layerTypes, legacy, current);
  }
  const dict = (legacy ?? current)!;
  const where = legacy === null ? currentPath : legacyPath;
  if (isNested(dict)) return nested(source, family, layerTypes, dict, where);
  if (family.sliding === undefined) return everywhere(layerTypes, { dict, where });
  return flatForTwoTypes(source, family, layerTypes, dict, where, legacy !== null);
}

function everywhere(layerTypes: readonly (string | null)[], statement: Statement): Map<string | null, Statement> {
  return new Map(layerTypes.map((layerType) => [layerType, statement]));
}

/** null, {} and an absent key are the same: no dict. */
function readDict(source: Source, key: string): JsonObject | null {
  const value = source.record[key];
  if (value === undefined || value === null) return null;
  if (!isObject(value)) throw unexpected(join(source.path, key), "an object, or null", value, "");
  return Object.keys(value).length === 0 ? null : value;
}

/** No dict in the file: the class may have one of its own. */
function preset(
  source: Source,
  family: RotaryFamily,
  layerTypes: readonly (string | null)[],
): ReadonlyMap<string | null, Statement | null> {
  const where = join(source.path, "rope_parameters");
  const own = family.preset;
  if (own === undefined) return everywhere(layerTypes, { dict: {}, where });
  const silent = ["rope_scaling", "rope_parameters"].find((key) => has(source, key));
  const flat = !isNested(own);
  if (silent !== undefined && flat) {
    source.findings.push({
      code: "class-preset",
      severity: "warning",
      where: join(source.path, silent),
      got: null,
      expected: `the settings to be written; without them the class of ${source.modelType} takes ${JSON.stringify(own)}`,
      why: `The file says that there is no scaling, and is read so; ${loader} computes with the class's own settings.`,
      fix: `write "rope_parameters" in full, or leave out "${silent}"`,
    });
    return everywhere(layerTypes, { dict: {}, where });
  }
  source.findings.push({
    code: "class-preset",
    severity: "note",
    where,
    got: null,
    expected: JSON.stringify(own),
    why: `The file has no rotary settings; these are those of the class of ${source.modelType}.`,
    fix: 'write "rope_parameters" in full',
  });
  if (flat) {
    const theta = read(source, "rope_theta", positive);
    const dict: Record<string, unknown> = { ...own };
    if (theta !== null && own.rope_theta !== undefined && theta !== own.rope_theta) {
      dict.rope_theta = theta;
      source.findings.push({
        code: "theta-unread",
        severity: "warning",
        where: join(source.path, "rope_theta"),
        got: theta,
        expected: `${theta} inside rope_parameters`,
        why: `The file means ${theta}; ${loader} computes with ${own.rope_theta}, which the class's own settings hold.`,
        fix: 'write "rope_parameters" in full, with "rope_theta" inside',
      });
    }
    return everywhere(layerTypes, { dict, where });
  }
  return nested(source, family, layerTypes, own, where);
}

/** Version 4's dict and version 5's in one file: transformers lets the older one replace the newer one. */
function bothDicts(
  source: Source,
  family: RotaryFamily,
  layerTypes: readonly (string | null)[],
  legacy: JsonObject,
  current: JsonObject,
): ReadonlyMap<string | null, Statement | null> {
  const where = join(source.path, "rope_scaling");
  const currentPath = join(source.path, "rope_parameters");
  if (isNested(current) && family.sliding !== undefined && !isNested(legacy)) {
    // These classes merge the older dict into the newer one's full_attention.
    const full = isObject(current.full_attention) ? current.full_attention : {};
    source.findings.push({
      code: "both-rope-dicts",
      severity: "warning",
      where,
      got: legacy,
      expected: "rope_parameters alone",
      why: `${loader} merges rope_scaling into rope_parameters.full_attention; so does this reading. Other loaders take one of the two.`,
      fix: 'remove "rope_scaling"',
    });
    return nested(source, family, layerTypes, { ...current, full_attention: { ...full, ...legacy } }, currentPath);
  }
  const base = isNested(current) ? (isObject(current.full_attention) ? current.full_attention : {}) : current;
  const kept: Record<string, unknown> = {};
  for (const key of ["rope_theta", "partial_rotary_factor"]) {
    if (legacy[key] === undefined && base[key] !== undefined) kept[key] = base[key];
  }
  const fallback = thetaOutside(source, family.thetaKeys)?.value ?? family.theta;
  const lost = kept.rope_theta !== undefined && kept.rope_theta !== fallback;
  // Some files say the same twice, for loaders of either schema.
  const agree = Object.entries(legacy).every(([key, value]) => {
    const other = key === "type" ? (base.type ?? base.rope_type) : base[key];
    return JSON.stringify(value) === JSON.stringify(other);
  });
  source.findings.push({
    code: "both-rope-dicts",
    severity: agree && !lost ? "note" : "warning",
    where,
    got: legacy,
    expected: "one of rope_scaling and rope_parameters",
    why: lost
      ? `rope_scaling replaces rope_parameters whole: ${loader} computes with theta ${fallback}, and the file means ${show(kept.rope_theta)}.`
      : `rope_scaling replaces rope_parameters whole in ${loader}; so it does in this reading.`,
    fix: 'write all of it in "rope_parameters" and remove "rope_scaling"',
  });
  const merged = { ...kept, ...legacy };
  if (isNested(merged)) return nested(source, family, layerTypes, merged, where);
  if (family.sliding === undefined) return everywhere(layerTypes, { dict: merged, where });
  return flatForTwoTypes(source, family, layerTypes, merged, where, true);
}

/** A dict by layer type. */
function nested(
  source: Source,
  family: RotaryFamily,
  layerTypes: readonly (string | null)[],
  dict: JsonObject,
  where: string,
): ReadonlyMap<string | null, Statement | null> {
  const outer: Record<string, unknown> = {};
  const inner = new Map<string, JsonObject | null>();
  for (const [key, value] of Object.entries(dict)) {
    if (isLayerType(key)) {
      if (value !== null && !isObject(value)) throw unexpected(join(where, key), "an object, or null", value, "");
      inner.set(key, value as JsonObject | null);
    } else if (outerKeys.includes(key)) {
      // Version 5 saved these beside the entries for a while; they say nothing.
      if (value !== null && !(key.endsWith("type") && value === "default")) outer[key] = value;
    } else {
      const near = nearest(key, [...inner.keys(), "full_attention", "sliding_attention", "chunked_attention"]);
      throw unexpected(where, "one entry a layer type", key, near.length === 0 ? "" : `nearest: ${near.join(", ")}`);
    }
  }
  if (inner.size === 0) throw unexpected(where, "one entry a layer type", dict, "");
  const { truncate, ...ignored } = outer;
  for (const [key, value] of Object.entries(ignored)) {
    source.findings.push({
      code: "outer-key",
      severity: "warning",
      where: join(where, key),
      got: value,
      expected: "the key inside each entry",
      why: `Read as meant for every layer type that does not say otherwise; ${loader} reads only truncate beside the entries.`,
      fix: "move it into the entries",
    });
  }
  const statementOf = (layerType: string): Statement | null => {
    const entry = inner.get(layerType);
    if (entry === undefined || entry === null) return null;
    // Only YaRN has truncate; transformers reads it beside the entries alone.
    const type = entry.rope_type ?? entry.type;
    const shared = truncate !== undefined && type === "yarn" ? { ...ignored, truncate } : ignored;
    if (type === "yarn" && entry.truncate === false && truncate !== false) {
      source.findings.push({
        code: "nested-truncate",
        severity: "warning",
        where: join(where, `${layerType}.truncate`),
        got: false,
        expected: '"truncate": false beside the layer types',
        why: `The file means an unrounded ramp; ${loader} reads truncate beside the layer types only, and rounds it.`,
        fix: 'also write "truncate": false beside the layer types',
      });
    }
    return { dict: { ...shared, ...entry }, where: join(where, layerType) };
  };

  if (!family.knowsLayerTypes) {
    const chosen = inner.has("full_attention") ? "full_attention" : [...inner.keys()][0]!;
    if (inner.size > 1 && chosen !== "full_attention") {
      throw unexpected(where, `one entry, as every layer of ${source.modelType} is alike`, [...inner.keys()], "");
    }
    const theta = thetaOutside(source, family.thetaKeys)?.value ?? family.theta;
    source.findings.push({
      code: "nested-unread",
      severity: "warning",
      where,
      got: [...inner.keys()],
      expected: "the settings themselves: every layer of this class is alike",
      why: `Read as ${chosen} for every layer; ${loader} does not recognise the entries here and computes default RoPE with theta ${theta}.`,
      fix: `write the contents of ${chosen} directly into ${where}`,
    });
    return new Map(layerTypes.map((layerType) => [layerType, statementOf(chosen)]));
  }
  if (family.sliding === undefined) {
    source.findings.push({
      code: "nested-unread",
      severity: "warning",
      where,
      got: [...inner.keys()],
      expected: "the settings themselves: this class keeps one dict for all layer types",
      why: `Read by layer type; ${loader} raises KeyError 'rope_type' when the model of this class is built.`,
      fix: "write one dict, if the entries agree",
    });
  }
  const out = new Map<string | null, Statement | null>();
  for (const layerType of layerTypes) {
    const name = layerType ?? "full_attention";
    const entry = inner.get(name);
    if (entry === null && family.sliding?.flat === "ignored") {
      source.findings.push({
        code: "null-entry",
        severity: "warning",
        where: join(where, name),
        got: null,
        expected: "settings, or a class that leaves such layers unrotated",
        why: `null means no rotary encoding, and is read so; ${loader} fills in default RoPE with theta ${defaultTheta(source, family, layerType)} for this class.`,
        fix: "write the settings",
      });
    }
    if (entry !== undefined) {
      out.set(layerType, statementOf(name));
      continue;
    }
    const near = inner.size === 1 && family.sliding === undefined ? ` (it has ${[...inner.keys()].join(", ")})` : "";
    if (family.sliding === undefined)
      throw unexpected(join(where, name), `an entry for these layers${near}`, undefined, "");
    source.findings.push({
      code: "entry-missing",
      severity: family.sliding.flat === "ignored" ? "note" : "warning",
      where: join(where, name),
      got: null,
      expected: `default RoPE with theta ${defaultTheta(source, family, layerType)}`,
      why:
        family.sliding.flat === "ignored"
          ? "The file has no entry for these layers; this is what the class fills in."
          : `The file has no entry for these layers; ${loader} raises KeyError.`,
      fix: "write the entry",
    });
    out.set(layerType, { dict: {}, where: join(where, name) });
  }
  return out;
}

/** One flat dict in a class that keeps one a layer type. */
function flatForTwoTypes(
  source: Source,
  family: RotaryFamily,
  layerTypes: readonly (string | null)[],
  dict: JsonObject,
  where: string,
  isLegacy: boolean,
): ReadonlyMap<string | null, Statement | null> {
  const sliding = family.sliding!;
  const type = dict.rope_type ?? dict.type ?? "default";
  const own = defaultTheta(source, family, "full_attention");
  if (sliding.flat === "KeyError") {
    source.findings.push({
      code: "flat-unread",
      severity: "warning",
      where,
      got: dict,
      expected: "one entry a layer type",
      why: `Read as meant for full_attention; ${loader} raises KeyError for a flat dict of this class.`,
      fix: `write {"full_attention": {...}, "sliding_attention": {...}}`,
    });
  } else if (!isLegacy) {
    source.findings.push({
      code: "flat-unread",
      severity: "warning",
      where,
      got: dict,
      expected: "one entry a layer type",
      why: `Read as ${show(type)} for ${sliding.scaled ? "every layer" : "full_attention"}; ${loader} ignores a flat dict of this class, theta included, and computes default RoPE with theta ${own} there.`,
      fix: `write {"full_attention": {...}, "sliding_attention": {...}}`,
    });
  } else if (dict.rope_type === undefined && type !== "default") {
    source.findings.push({
      code: "legacy-type-lost",
      severity: "warning",
      where: join(where, "type"),
      got: dict.type,
      expected: `"rope_type": ${show(type)}`,
      why: `The file means ${show(type)}; ${loader} presets rope_type "default" for this class, so the older key loses and the scaling is dropped.`,
      fix: `write "rope_type" instead of "type"`,
    });
  }
  return new Map(
    layerTypes.map((layerType) => {
      if (layerType !== "sliding_attention") return [layerType, { dict, where }];
      // The base of a flat dict is the global one; the sliding layers keep theirs.
      const { rope_theta: _, ...scaling } = dict;
      return [
        layerType,
        { dict: sliding.scaled ? scaling : {}, where: sliding.scaled ? where : join(where, layerType) },
      ];
    }),
  );
}

function thetaOutside(source: Source, keys: readonly string[]): { key: string; value: number } | null {
  for (const key of keys) {
    const value = read(source, key, positive);
    if (value !== null) return { key, value };
  }
  return null;
}

/** What the class takes for a layer type whose dict gives no base. */
function defaultTheta(source: Source, family: RotaryFamily, layerType: string | null): number {
  const local = layerType === "sliding_attention" ? family.sliding : undefined;
  if (local?.thetaIsLost && !isObject(source.record.rope_parameters)) return local.theta;
  return thetaOutside(source, (local ?? family).thetaKeys)?.value ?? (local ?? family).theta;
}

function parse(
  source: Source,
  family: RotaryFamily,
  layerType: string | null,
  statement: Statement,
  headDim: number,
  maxPositionEmbeddings: number | null,
): ParsedRope {
  const { where } = statement;
  const dict = undoFilledOriginal(source, statement, maxPositionEmbeddings);
  const theta = readTheta(source, family, layerType, dict, where);
  const partial = readShare(source, family, dict, headDim);
  const original = read(source, "original_max_position_embeddings", count);
  const written = dict.rope_type ?? dict.type;
  const parsed = parseRopeParameters(latentShare(family, source, dict), {
    file: "config.json",
    where,
    ropeTheta: theta,
    ...(partial === null ? {} : { partialRotaryFactor: partial }),
    ...(original === null ? {} : { originalMaxPositionEmbeddings: original }),
    maxPositionEmbeddings,
    headDim,
    ...(family.aliases === undefined ? {} : { aliases: family.aliases }),
  });
  source.findings.push(...parsed.findings);
  const { rope } = parsed;
  if (
    !family.partial.honoured &&
    family.headDim !== "latent" &&
    rope.ropeType !== "proportional" &&
    (rope.partialRotaryFactor ?? 1) < 1
  ) {
    const inside = dict.partial_rotary_factor !== undefined;
    source.findings.push({
      code: "partial-unread",
      severity: "warning",
      where: inside ? join(where, "partial_rotary_factor") : join(source.path, "partial_rotary_factor"),
      got: rope.partialRotaryFactor,
      expected: "1: this class rotates whole heads",
      why:
        rope.ropeType === "default"
          ? `The file means ${Math.trunc(headDim * rope.partialRotaryFactor!)} rotated channels; ${loader} rotates all ${headDim}.`
          : `The file means ${Math.trunc(headDim * rope.partialRotaryFactor!)} rotated channels; ${loader} makes a table that narrow for a head of ${headDim}, and its forward pass fails.`,
      fix: 'remove "partial_rotary_factor", or use a model class that rotates part of a head',
    });
  }
  if (written === "su" && !family.aliases) {
    source.findings.push({
      code: "legacy-type",
      severity: "warning",
      where: join(where, dict.rope_type === undefined ? "type" : "rope_type"),
      got: "su",
      expected: '"longrope"',
      why: `"su" is the older name of longrope; ${loader} knows it for Phi-3 only and raises KeyError here.`,
      fix: 'write "rope_type": "longrope"',
    });
  }
  if (rope.ropeType === "dynamic" && rope.alpha !== undefined && !family.readsAlpha) {
    source.findings.push({
      code: "alpha-unread",
      severity: "warning",
      where: join(where, "alpha"),
      got: rope.alpha,
      expected: "factor alone: only HunYuan's classes read alpha",
      why: `The file means a fixed base ${rope.ropeTheta} · ${rope.alpha}^(d/(d−2)); ${loader} ignores alpha here and scales by factor ${rope.factor} past max_position_embeddings.`,
      fix: 'remove "alpha", or write the base as "rope_theta"',
    });
  }
  checkOriginal(source, family, dict, where, parsed);
  // transformers 5 writes a share of 1 where the file had none; the two are one setting.
  const { partialRotaryFactor, ...whole } = rope;
  return partialRotaryFactor === 1 ? { ...parsed, rope: whole as RopeParameters } : parsed;
}

/**
 * transformers fills max_position_embeddings in for a missing original length before it has seen the one outside the
 * dict, and saves both; the one outside is then what the author wrote.
 */
function undoFilledOriginal(source: Source, { dict, where }: Statement, max: number | null): JsonObject {
  const outside = read(source, "original_max_position_embeddings", count);
  const { original_max_position_embeddings: inside, ...rest } = dict;
  if (outside === null || inside !== max || inside === outside || isLayerType(where.split(".").at(-1)!)) return dict;
  source.findings.push({
    code: "original-length-conflict",
    severity: "warning",
    where: join(where, "original_max_position_embeddings"),
    got: inside,
    expected: `${outside}, as ${join(source.path, "original_max_position_embeddings")} says`,
    why: `The dict repeats max_position_embeddings, as transformers fills it in when it saves; read as ${outside}, which ${loader} computes with too. Other loaders take ${show(inside)}.`,
    fix: `write "original_max_position_embeddings": ${outside} in ${where}`,
  });
  return rest;
}

/** Base of one layer type: its dict, then the keys outside, then the class. */
function readTheta(
  source: Source,
  family: RotaryFamily,
  layerType: string | null,
  dict: JsonObject,
  where: string,
): number {
  const local = layerType === "sliding_attention" ? family.sliding : undefined;
  const keys = (local ?? family).thetaKeys;
  const own = (local ?? family).theta;
  const inside = dict.rope_theta ?? dict.ropeTheta;
  const outside = thetaOutside(source, keys);
  if (inside !== undefined) {
    if (outside !== null && typeof inside === "number" && outside.value !== inside) {
      source.findings.push({
        code: "theta-conflict",
        severity: "warning",
        where: join(source.path, outside.key),
        got: outside.value,
        expected: `${inside}, as ${join(where, "rope_theta")} says`,
        why: `transformers 5 computes with ${inside}; a loader of the older schema reads ${outside.value}.`,
        fix: "write the same number in both places",
      });
    }
    // The parser checks and takes the dict's own.
    return own;
  }
  if (outside !== null) {
    if (local?.thetaIsLost && outside.value !== own) {
      source.findings.push({
        code: "theta-unread",
        severity: "warning",
        where: join(source.path, outside.key),
        got: outside.value,
        expected: `${outside.value} inside rope_parameters.sliding_attention`,
        why: `The file means ${outside.value} for every layer; ${loader} gives it to full_attention alone and computes the sliding layers with ${own}.`,
        fix: 'write "rope_parameters" with one entry a layer type',
      });
    }
    return outside.value;
  }
  // rope_theta where the class has another key for it.
  const foreign = keys.includes("rope_theta") || local !== undefined ? null : read(source, "rope_theta", positive);
  if (foreign !== null && foreign !== own) {
    source.findings.push({
      code: "theta-unread",
      severity: "warning",
      where: join(source.path, "rope_theta"),
      got: foreign,
      expected: keys.length === 0 ? "rope_theta inside rope_parameters" : `"${keys[0]}": ${foreign}`,
      why: `The file means ${foreign}; the class of ${source.modelType} does not read rope_theta there, and ${loader} computes with ${own}.`,
      fix: keys.length === 0 ? 'write it inside "rope_parameters"' : `write "${keys[0]}": ${foreign}`,
    });
    return foreign;
  }
  if (foreign === null) {
    source.findings.push({
      code: "theta-assumed",
      severity: "note",
      where: keys.length === 0 ? join(where, "rope_theta") : join(source.path, keys[0]!),
      got: null,
      expected: `${own}, the default of the class of ${source.modelType}${layerType === null ? "" : ` for ${layerType}`}`,
      why: "The file does not say the base.",
      fix: `write "${keys[0] ?? "rope_theta"}": ${own}`,
    });
  }
  return own;
}

/** The rotated share that stands outside the dict, or the class's; null: all of the head, nothing said. */
function readShare(source: Source, family: RotaryFamily, dict: JsonObject, headDim: number): number | null {
  if (dict.partial_rotary_factor !== undefined && dict.partial_rotary_factor !== null) return null;
  const { keys, default: own } = family.partial;
  for (const key of keys) {
    if (key === "rotary_dim") {
      const width = read(source, key, count) ?? (source.defaults.rotary_dim as number | undefined) ?? null;
      if (width === null) continue;
      if (width > headDim) {
        throw unexpected(join(source.path, key), `at most the ${headDim} channels of a head`, width, "");
      }
      return width === headDim ? null : shareOf(width, headDim);
    }
    const value = read(source, key, share);
    if (value !== null) return value === 1 ? null : value;
  }
  const foreign = keys.includes("partial_rotary_factor") ? null : read(source, "partial_rotary_factor", share);
  if (foreign !== null && foreign !== own) {
    source.findings.push({
      code: "partial-unread",
      severity: "warning",
      where: join(source.path, "partial_rotary_factor"),
      got: foreign,
      expected: `"${keys[0]}": ${foreign}`,
      why: `The file means ${foreign}; the class of ${source.modelType} reads ${keys[0]} only, and ${loader} computes with ${own}.`,
      fix: `write "${keys[0]}": ${foreign}`,
    });
    return foreign;
  }
  if (own === 1) return null;
  source.findings.push({
    code: "partial-assumed",
    severity: "note",
    where: join(source.path, keys[0]!),
    got: null,
    expected: `${own}, the default of the class of ${source.modelType}`,
    why: "The file does not say which share of a head is rotated.",
    fix: `write "${keys[0]}": ${own}`,
  });
  return own;
}

/** The share that gives exactly this many channels when it is rounded down again. */
function shareOf(width: number, headDim: number): number {
  const exact = width / headDim;
  return Math.trunc(headDim * exact) === width ? exact : (width + 0.25) / headDim;
}

/**
 * Mistral 4 writes the share of the whole query head that is rotated; here headDim is the rotated part itself, so the
 * share is 1 and the key says nothing.
 */
function latentShare(family: RotaryFamily, source: Source, dict: JsonObject): JsonObject {
  if (family.headDim !== "latent" || dict.partial_rotary_factor === undefined) return dict;
  const { partial_rotary_factor: written, ...rest } = dict;
  const rotated = read(source, "qk_rope_head_dim", count) ?? source.defaults.qk_rope_head_dim;
  const passed = read(source, "qk_nope_head_dim", count) ?? source.defaults.qk_nope_head_dim;
  if (written === null || written === 1) return rest;
  if (typeof rotated === "number" && typeof passed === "number" && written === rotated / (rotated + passed))
    return rest;
  return dict;
}

/** Inner and outer original_max_position_embeddings: the inner one is meant, transformers lets the outer one win. */
function checkOriginal(
  source: Source,
  family: RotaryFamily,
  dict: JsonObject,
  where: string,
  parsed: ParsedRope,
): void {
  if (!("originalMaxPositionEmbeddings" in parsed.rope)) return;
  const meant = parsed.rope.originalMaxPositionEmbeddings;
  const inside = dict.original_max_position_embeddings ?? null;
  const outside = read(source, "original_max_position_embeddings", count);
  const path = join(source.path, "original_max_position_embeddings");
  const isEntry = isLayerType(where.split(".").at(-1)!);
  if (isEntry) {
    // Entries of a nested dict never look outside.
    if (inside === null && outside !== null) {
      source.findings.push({
        code: "original-length-unread",
        severity: "warning",
        where: path,
        got: outside,
        expected: `${outside} inside ${where}`,
        why: `The file means ${outside}; ${loader} does not look outside the entries of rope_parameters, and takes max_position_embeddings.`,
        fix: `write it inside ${where}`,
      });
    }
    return;
  }
  const wins =
    outside ?? (family.originalIsField ? ((source.defaults.original_max_position_embeddings as number) ?? null) : null);
  if (inside === null || wins === null || wins === inside) return;
  source.findings.push({
    code: "original-length-conflict",
    severity: "warning",
    where: join(where, "original_max_position_embeddings"),
    got: inside,
    expected: outside === null ? `${path} to be written too` : `${outside}, as ${path} says`,
    why: `Read as ${meant}, which stands beside the scaling; ${loader} computes with ${wins}, ${outside === null ? "the default of a field of the class, which overwrites it" : "the one outside, which overwrites it"}.`,
    fix: `write "original_max_position_embeddings": ${meant} outside ${where} too`,
  });
}
