// One rotary dict of a config.json, `rope_scaling` (schema version 4) or one entry of `rope_parameters` (version 5),
// to the canonical union and back. Which keys a type has, and what they may hold, is the scalings' own table
// (encodings/rope/scaling); here are the spellings, the aliases, and the keys of model families and of other engines.
// Convention: the dict speaks first; `context` holds what the rest of the file, or the class, says.

import { show } from "../../encodings/errors.ts";
import { ropeScalings, ropeTypes, violatedExpectation } from "../../encodings/rope/scaling/index.ts";
import type { RopeParameters, RopeType } from "../../encodings/rope/scaling/parameters.ts";
import { type KeyRule, yarnMagnitude } from "../../encodings/rope/scaling/scaling.ts";
import type { Finding } from "../finding.ts";
import { nearest } from "../nearest.ts";
import { toCamelCase, toSnakeCase } from "./spelling.ts";
import { complaint, isObject, join } from "./values.ts";

/** What stands outside the dict, and where the dict stands. */
export interface RopeContext {
  /** The file, for messages; none when absent. */
  readonly file?: string;
  /** The dict's path, for messages and findings; "rope_parameters" when absent. */
  readonly where?: string;
  /** rope_theta where the dict has none. */
  readonly ropeTheta?: number;
  /** partial_rotary_factor where the dict has none. */
  readonly partialRotaryFactor?: number;
  /** original_max_position_embeddings where the dict has none. */
  readonly originalMaxPositionEmbeddings?: number;
  readonly maxPositionEmbeddings?: number | null;
  /** When given, list lengths and the parity of the rotated width are checked. */
  readonly headDim?: number;
  /** Names that mean another type here: Phi-3's "yarn" is longrope. */
  readonly aliases?: Readonly<Record<string, RopeType>>;
}

export interface ParsedRope {
  readonly rope: RopeParameters;
  /** The dict's own, whatever its type, or the context's; null when neither says. */
  readonly originalMaxPositionEmbeddings: number | null;
  /** Pairs per axis of a multimodal rotary encoding. */
  readonly mropeSection: readonly number[] | null;
  readonly mropeInterleaved: boolean | null;
  /** Ministral 3's beta. */
  readonly llama4ScalingBeta: number | null;
  readonly findings: readonly Finding[];
}

/** Names that older files and other engines use for a type of ours. */
const aliases: Readonly<Record<string, RopeType>> = {
  su: "longrope",
  mrope: "default",
  deepseek_yarn: "yarn",
  xdrope: "dynamic",
  ntk_by_parts: "ntk-by-parts",
};

/** Types that transformers 5.24.0 can build; "default" is each class's own. */
const transformersTypes: readonly string[] = [
  "default",
  "linear",
  "dynamic",
  "yarn",
  "longrope",
  "llama3",
  "proportional",
];

/** Keys that no scaling computes with but that belong here: of model families, of vLLM, of older files. */
const familyKeys = [
  "originalMaxPositionEmbeddings",
  "maxPositionEmbeddings",
  "mropeSection",
  "mropeInterleaved",
  "xdropeSection",
  "llama4ScalingBeta",
  "attnFactor",
  "extrapolationFactor",
  "applyYarnScaling",
  "finetuned",
] as const;

const typeKeys = ["type", "ropeType"];

function fail(context: RopeContext, path: string, expectation: string, value: unknown, fix?: string): Error {
  return complaint(context.file === undefined ? path : `${context.file} ${path}`, expectation, value, fix);
}

interface Entry {
  readonly key: string;
  readonly value: unknown;
}

/**
 * Reads one rope_parameters or rope_scaling dict in any spelling: `rope_type` or the older `type`, snake_case or
 * camelCase, `su` for longrope, `mrope` for default with sections, vLLM's `deepseek_yarn`, and every type and key of
 * this library's own union.
 *
 * @param parameters the dict, as JSON gave it
 * @param context what stands outside it: the base, the lengths, the head's width, its path for messages
 * @returns the canonical parameters, the family's extra keys, and what had to be assumed or will be read differently
 * @throws FormatError for an unknown type or key (naming the nearest known one), a missing key, a value of the wrong
 *   type or range, a list that does not hold one number a pair, and an odd number of rotated channels
 * @example
 * ```ts
 * import { parseRopeParameters } from "longhand/formats";
 * parseRopeParameters({ type: "linear", factor: 4 }, { ropeTheta: 10000 }).rope; // => {"ropeType": "linear", "ropeTheta": 10000, "factor": 4}
 * ```
 */
export function parseRopeParameters(parameters: unknown, context: RopeContext = {}): ParsedRope {
  const where = context.where ?? "rope_parameters";
  if (!isObject(parameters)) throw fail(context, where, "an object", parameters);
  const findings: Finding[] = [];
  const entries = new Map<string, Entry>();
  for (const [key, value] of Object.entries(parameters)) {
    const name = toCamelCase(key);
    const twin = entries.get(name);
    if (twin !== undefined)
      throw fail(context, join(where, key), `one spelling of the key, not also ${twin.key}`, value, "");
    entries.set(name, { key, value });
  }
  const pathOf = (name: string): string => join(where, entries.get(name)?.key ?? toSnakeCase(name));

  const { written, ropeType } = readType(entries, where, context, findings);
  const rules = ropeScalings[ropeType].keys as Readonly<Record<string, KeyRule>>;

  const values: Record<string, unknown> = {};
  const extras: Record<string, unknown> = {};
  for (const [name, { key, value }] of entries) {
    if (typeKeys.includes(name)) continue;
    if (Object.hasOwn(rules, name)) {
      // A null share is how transformers saves "none given".
      if (name === "partialRotaryFactor" && value === null) continue;
      const expectation = violatedExpectation(rules[name]!, value);
      if (expectation !== null) throw fail(context, join(where, key), expectation, value);
      values[name] = value;
    } else if ((familyKeys as readonly string[]).includes(name)) {
      extras[name] = value;
    } else if (ropeTypes.some((type) => Object.hasOwn(ropeScalings[type].keys, name))) {
      const owners = ropeTypes.filter((type) => Object.hasOwn(ropeScalings[type].keys, name));
      findings.push({
        code: "unused-key",
        severity: "warning",
        where: join(where, key),
        got: value,
        expected: `a key of ${ropeType}; ${toSnakeCase(name)} belongs to ${owners.join(" and ")}`,
        why: `rope_type ${show(written)} does not read it, so it changes nothing.`,
        fix: `remove "${key}", or set "rope_type" to the type that was meant`,
      });
    } else {
      throw unknownKey(context, where, key, ropeType, rules);
    }
  }

  const original = readOriginal(extras, values, pathOf("originalMaxPositionEmbeddings"), context);
  if (values.ropeTheta === undefined && context.ropeTheta !== undefined) values.ropeTheta = context.ropeTheta;
  if (values.partialRotaryFactor === undefined && context.partialRotaryFactor !== undefined) {
    values.partialRotaryFactor = context.partialRotaryFactor;
  }
  // "mrope" and Hunyuan's alpha form name no factor; nothing computes with one there.
  if (ropeType === "dynamic" && values.alpha !== undefined && values.factor === undefined) values.factor = 1;
  if (Object.hasOwn(rules, "originalMaxPositionEmbeddings") && values.originalMaxPositionEmbeddings === undefined) {
    assumeOriginal(values, original, ropeType, where, context, findings);
  }
  for (const [name, rule] of Object.entries(rules)) {
    if (rule.required && values[name] === undefined) {
      throw fail(
        context,
        pathOf(name),
        `${violatedExpectation(rule, undefined)}, which rope_type ${show(ropeType)} requires`,
        undefined,
        "",
      );
    }
  }

  readEngineKeys(written, ropeType, values, extras, pathOf, context, findings);
  // Keys in one order, whatever the file's: the type, the base, then as the scaling lists them.
  const rope = { ropeType } as Record<string, unknown>;
  for (const name of Object.keys(rules)) if (values[name] !== undefined) rope[name] = values[name];
  const parsed = rope as unknown as RopeParameters;

  checkWidth(parsed, where, pathOf, context);
  checkPlausibility(parsed, pathOf, context, findings);
  const sections = readSections(extras, where, pathOf, context);
  if (written === "mrope" && sections === null) {
    throw fail(
      context,
      pathOf("mropeSection"),
      'a list of pairs per axis, which rope_type "mrope" requires',
      undefined,
      "",
    );
  }
  if (sections !== null) checkSections(sections, parsed, pathOf("mropeSection"), context);
  const interleaved = extras.mropeInterleaved;
  if (interleaved !== undefined && typeof interleaved !== "boolean") {
    throw fail(context, pathOf("mropeInterleaved"), "true or false", interleaved);
  }
  const beta = extras.llama4ScalingBeta ?? null;
  if (beta !== null && !(Number.isFinite(beta) && (beta as number) >= 0)) {
    throw fail(context, pathOf("llama4ScalingBeta"), "a finite number of at least 0", beta);
  }
  const claimed = extras.maxPositionEmbeddings ?? null;
  if (
    claimed !== null &&
    typeof context.maxPositionEmbeddings === "number" &&
    claimed !== context.maxPositionEmbeddings
  ) {
    findings.push({
      code: "length-conflict",
      severity: "warning",
      where: pathOf("maxPositionEmbeddings"),
      got: claimed,
      expected: `${context.maxPositionEmbeddings}, the file's own max_position_embeddings`,
      why: "transformers computes with the file's; an engine that reads this dict alone computes with the other.",
      fix: "write the same number in both places",
    });
  }
  return {
    rope: parsed,
    originalMaxPositionEmbeddings: original,
    mropeSection: sections,
    mropeInterleaved: (interleaved as boolean | undefined) ?? null,
    llama4ScalingBeta: beta as number | null,
    findings,
  };
}

/**
 * The canonical `rope_parameters` dict of transformers 5, keys in snake_case. The types that no configuration file
 * can name (ntk, gradient, table, …) keep their own name, so that parseRopeParameters reads every result back.
 *
 * @example
 * ```ts
 * import { toHuggingFace } from "longhand/formats";
 * toHuggingFace({ ropeType: "linear", ropeTheta: 10000, factor: 4 }); // => {"rope_type": "linear", "rope_theta": 10000, "factor": 4}
 * ```
 */
export function toHuggingFace(rope: RopeParameters): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(rope)) {
    if (value !== undefined) out[toSnakeCase(name)] = Array.isArray(value) ? [...value] : value;
  }
  return out;
}

function readType(
  entries: ReadonlyMap<string, Entry>,
  where: string,
  context: RopeContext,
  findings: Finding[],
): { written: string; ropeType: RopeType } {
  const current = entries.get("ropeType");
  const legacy = entries.get("type");
  for (const entry of [current, legacy]) {
    if (entry !== undefined && typeof entry.value !== "string") {
      throw fail(context, join(where, entry.key), "the name of a rope type", entry.value, "");
    }
  }
  const written = (current?.value ?? legacy?.value ?? "default") as string;
  // "mrope" and "su" stay beside the name that transformers turned them into when it saves.
  const meant = (name: unknown): unknown =>
    typeof name === "string" && Object.hasOwn(aliases, name) ? aliases[name] : name;
  if (current !== undefined && legacy !== undefined && meant(current.value) !== meant(legacy.value)) {
    findings.push({
      code: "type-conflict",
      severity: "warning",
      where: join(where, legacy.key),
      got: legacy.value,
      expected: `${show(current.value)}, as rope_type says`,
      why: "transformers 5 reads rope_type; a loader of the older schema reads type, and computes another encoding.",
      fix: 'remove "type"',
    });
  }
  const own = [context.aliases ?? {}, aliases].find((table) => Object.hasOwn(table, written));
  const aliased = own?.[written];
  const ropeType = aliased ?? written;
  if (!Object.hasOwn(ropeScalings, ropeType)) {
    const near = nearest(written, [...ropeTypes, ...Object.keys(aliases)]);
    throw fail(
      context,
      join(where, current?.key ?? legacy?.key ?? "rope_type"),
      `one of ${ropeTypes.join(", ")}`,
      written,
      near.length === 0 ? "" : `nearest: ${near.join(", ")}`,
    );
  }
  const known = ropeType as RopeType;
  if (aliased === undefined && !transformersTypes.includes(written)) {
    findings.push({
      code: "foreign-rope-type",
      severity: "warning",
      where: join(where, current?.key ?? legacy?.key ?? "rope_type"),
      got: written,
      expected: `a type that transformers knows: ${transformersTypes.join(", ")}`,
      why:
        written === "ntk"
          ? 'Read as NTK-aware (bloc97: base · factor^(d/(d−2)), the fastest pair unchanged). vLLM\'s "ntk" also divides ' +
            "every frequency by factor^(2/d); transformers 5.24.0 raises KeyError when the model is built."
          : "transformers 5.24.0 raises KeyError when the model is built.",
      fix: "",
    });
  }
  return { written, ropeType: known };
}

function unknownKey(
  context: RopeContext,
  where: string,
  key: string,
  ropeType: RopeType,
  rules: Readonly<Record<string, KeyRule>>,
): Error {
  const known = ["rope_type", ...Object.keys(rules).map(toSnakeCase)];
  const others = [...new Set(ropeTypes.flatMap((type) => Object.keys(ropeScalings[type].keys)))].map(toSnakeCase);
  const near = nearest(key, [...new Set([...known, ...familyKeys.map(toSnakeCase), ...others])]);
  return fail(
    context,
    where,
    `the keys of ${ropeType} (${known.join(", ")})`,
    key,
    near.length === 0 ? "remove it" : `nearest: ${near.join(", ")}`,
  );
}

/** The original length of the dict or of its surroundings; the dict's own outranks, as it stands beside the factor. */
function readOriginal(
  extras: Record<string, unknown>,
  values: Record<string, unknown>,
  path: string,
  context: RopeContext,
): number | null {
  // transformers fills the key in for types that do not read it, so null and a number are both seen there.
  const own = values.originalMaxPositionEmbeddings ?? extras.originalMaxPositionEmbeddings ?? null;
  if (own !== null && !(Number.isInteger(own) && (own as number) >= 1)) {
    throw fail(context, path, "an integer of at least 1", own);
  }
  return (own as number | null) ?? context.originalMaxPositionEmbeddings ?? null;
}

function assumeOriginal(
  values: Record<string, unknown>,
  outside: number | null,
  ropeType: RopeType,
  where: string,
  context: RopeContext,
  findings: Finding[],
): void {
  if (outside !== null) {
    values.originalMaxPositionEmbeddings = outside;
    return;
  }
  const max = context.maxPositionEmbeddings ?? null;
  if (max === null) return;
  values.originalMaxPositionEmbeddings = max;
  findings.push({
    code: "original-length-assumed",
    severity: "warning",
    where: join(where, "original_max_position_embeddings"),
    got: null,
    expected: `${max}, from max_position_embeddings, as transformers assumes`,
    why: `${ropeType} scales away from the length of the original training. If max_position_embeddings is already the extended length, every frequency is wrong.`,
    fix: 'write "original_max_position_embeddings"',
  });
}

/** Keys by which vLLM and DeepSeek's code change the magnitude: folded into attentionFactor, where canonical. */
function readEngineKeys(
  written: string,
  ropeType: RopeType,
  values: Record<string, unknown>,
  extras: Record<string, unknown>,
  pathOf: (name: string) => string,
  context: RopeContext,
  findings: Finding[],
): void {
  const extrapolation = extras.extrapolationFactor ?? 1;
  if (extrapolation !== 1) {
    throw fail(context, pathOf("extrapolationFactor"), "1 (no canonical form says anything else)", extrapolation, "");
  }
  const attn = extras.attnFactor ?? 1;
  if (!(Number.isFinite(attn) && (attn as number) > 0)) {
    throw fail(context, pathOf("attnFactor"), "a finite number above 0", attn);
  }
  const apply = extras.applyYarnScaling ?? true;
  if (typeof apply !== "boolean") throw fail(context, pathOf("applyYarnScaling"), "true or false", apply);
  if (ropeType !== "yarn") return;
  const factor = typeof values.factor === "number" ? values.factor : null;
  const given = values.attentionFactor ?? null;
  const one = Boolean(values.mscale) !== Boolean(values.mscaleAllDim);
  if (one && given === null && factor !== null) {
    const mscale = (values.mscale as number | null | undefined) ?? 1;
    const deepseek = yarnMagnitude(factor, mscale) / yarnMagnitude(factor, (values.mscaleAllDim as number) || 0);
    const transformers = yarnMagnitude(factor);
    if (deepseek !== transformers) {
      // deepseek_yarn is vLLM's name for DeepSeek's code, so there its reading is what the file means.
      if (written === "deepseek_yarn") values.attentionFactor = deepseek;
      findings.push({
        code: "mscale-alone",
        severity: "warning",
        where: pathOf(values.mscale ? "mscale" : "mscaleAllDim"),
        got: values.mscale || values.mscaleAllDim,
        expected: "mscale and mscale_all_dim together",
        why: `With one alone transformers 5.24.0 ignores it (attention factor ${transformers}); DeepSeek's code and vLLM take mscale 1 and mscale_all_dim 0 for the other (${deepseek}).`,
        fix: 'write both, or "attention_factor"',
      });
    }
  }
  if (attn !== 1 || !apply) {
    const natural =
      given !== null
        ? (given as number)
        : values.mscale && values.mscaleAllDim
          ? yarnMagnitude(factor ?? 1, values.mscale as number) /
            yarnMagnitude(factor ?? 1, values.mscaleAllDim as number)
          : yarnMagnitude(factor ?? 1);
    const meant = (apply ? natural : 1) * (attn as number);
    findings.push({
      code: "attention-factor-unread",
      severity: "warning",
      where: pathOf(attn !== 1 ? "attnFactor" : "applyYarnScaling"),
      got: attn !== 1 ? attn : apply,
      expected: `"attention_factor": ${meant}`,
      why: `vLLM multiplies cos and sin by ${meant}; transformers 5.24.0 does not know the key and multiplies by ${natural}.`,
      fix: `write "attention_factor": ${meant}`,
    });
    values.attentionFactor = meant;
  }
}

/** Channels that are rotated, and the lists that must hold one number a pair. */
function checkWidth(rope: RopeParameters, where: string, pathOf: (name: string) => string, context: RopeContext): void {
  const { headDim } = context;
  if (headDim === undefined) return;
  const width = rotatedWidth(rope, headDim);
  if (width < 2 || width % 2 !== 0) {
    throw fail(
      context,
      rope.partialRotaryFactor === undefined ? where : pathOf("partialRotaryFactor"),
      `an even number of rotated channels, at least 2 (head of ${headDim}, partial_rotary_factor ${rope.partialRotaryFactor ?? 1})`,
      width,
      "",
    );
  }
  for (const name of ["shortFactor", "longFactor", "inverseFrequencies"] as const) {
    const list = (rope as unknown as Record<string, unknown>)[name];
    if (Array.isArray(list) && list.length !== width / 2) {
      throw fail(
        context,
        pathOf(name),
        `a list of ${width / 2} numbers, half of the ${width} rotated channels`,
        list.length,
        "",
      );
    }
  }
}

/** The width that is rotated: all of the head under `proportional`, whose share only silences pairs. */
export function rotatedWidth(rope: RopeParameters, headDim: number): number {
  return rope.ropeType === "proportional" ? headDim : Math.trunc(headDim * (rope.partialRotaryFactor ?? 1));
}

function readSections(
  extras: Record<string, unknown>,
  where: string,
  pathOf: (name: string) => string,
  context: RopeContext,
): readonly number[] | null {
  const [section, legacy] = [extras.mropeSection ?? null, extras.xdropeSection ?? null].map((value, i) => {
    if (value === null) return null;
    const ok = Array.isArray(value) && value.length > 0 && value.every((n) => Number.isInteger(n) && n >= 0);
    if (!ok)
      throw fail(
        context,
        pathOf(i === 0 ? "mropeSection" : "xdropeSection"),
        "a list of integers of at least 0",
        value,
      );
    return value as number[];
  });
  if (section && legacy && section.join() !== legacy.join()) {
    throw fail(
      context,
      join(where, "xdrope_section"),
      `the same list as mrope_section, ${show(section)}`,
      legacy,
      "remove one",
    );
  }
  return section ?? legacy ?? null;
}

function checkSections(sections: readonly number[], rope: RopeParameters, path: string, context: RopeContext): void {
  if (context.headDim === undefined) return;
  const pairs = rotatedWidth(rope, context.headDim) / 2;
  const sum = sections.reduce((total, n) => total + n, 0);
  if (sum !== pairs)
    throw fail(context, path, `sections that sum to ${pairs}, the number of rotated pairs`, sections, "");
}

/** Settings that compute, but hardly mean what they say. */
function checkPlausibility(
  rope: RopeParameters,
  pathOf: (name: string) => string,
  context: RopeContext,
  findings: Finding[],
): void {
  const warn = (code: string, name: string, expected: string, why: string, fix: string): void => {
    const got = (rope as unknown as Record<string, unknown>)[name] ?? null;
    findings.push({ code, severity: "warning", where: pathOf(name), got, expected, why, fix });
  };
  if ("factor" in rope && typeof rope.factor === "number" && rope.factor < 1) {
    warn(
      "factor-below-one",
      "factor",
      "a factor of at least 1",
      "A factor below 1 shortens the context.",
      "write its inverse",
    );
  }
  const max = context.maxPositionEmbeddings ?? null;
  if (rope.ropeType === "yarn") {
    const original = rope.originalMaxPositionEmbeddings;
    if ((rope.betaFast || 32) < (rope.betaSlow || 1)) {
      warn("betas-reversed", "betaFast", "beta_fast of at least beta_slow", "The ramp runs backwards.", "swap the two");
    }
    if (max !== null && typeof rope.factor === "number" && rope.factor !== 1) {
      const implied = max / original;
      if (implied === 1) {
        if (findings.every((f) => f.code !== "original-length-assumed")) {
          warn(
            "yarn-original-equals-max",
            "originalMaxPositionEmbeddings",
            `max_position_embeddings ${rope.factor} times the original length`,
            `Both lengths are ${max}: either max_position_embeddings was not raised to ${max * rope.factor}, or the factor ${rope.factor} is applied to a length that is already extended.`,
            `write "max_position_embeddings": ${original * rope.factor} if ${original} is the length of the original training`,
          );
        }
      } else if (Math.abs(implied - rope.factor) > 1e-9 * implied) {
        warn(
          "yarn-factor-mismatch",
          "factor",
          `${implied}, max_position_embeddings ${max} over original_max_position_embeddings ${original}`,
          `The factor written, ${rope.factor}, is what is computed with; it reaches ${original * rope.factor} tokens, and the file claims ${max}.`,
          `write "max_position_embeddings": ${original * rope.factor}, or "factor": ${implied}`,
        );
      }
    }
  }
  if (rope.ropeType === "llama3") {
    if (rope.highFreqFactor < rope.lowFreqFactor) {
      warn(
        "llama3-bands",
        "highFreqFactor",
        `more than low_freq_factor ${rope.lowFreqFactor}`,
        "The two bands are the wrong way round, so the blend runs backwards.",
        "write 1 and 4, as Llama 3.1 does",
      );
    } else if (rope.highFreqFactor === rope.lowFreqFactor) {
      findings.push({
        code: "llama3-step",
        severity: "note",
        where: pathOf("highFreqFactor"),
        got: rope.highFreqFactor,
        expected: `a step at ${rope.originalMaxPositionEmbeddings / rope.lowFreqFactor} tokens a turn, without a blend`,
        why: "low_freq_factor is the same, so no pair lies between the two bands. Llama 4 Scout ships so.",
        fix: "",
      });
    }
    if (
      max !== null &&
      rope.originalMaxPositionEmbeddings >= max &&
      findings.every((f) => f.code !== "original-length-assumed")
    ) {
      warn(
        "original-not-below-max",
        "originalMaxPositionEmbeddings",
        `less than max_position_embeddings ${max}`,
        "The scaling stretches a length that is not extended.",
        "write the length of the original training",
      );
    }
  }
}
