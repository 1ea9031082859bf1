// What layers were trained with, as an export needs it: the encoding by its own settings, and the entries of
// position_encoding in the project's own form (docs/longhand-form.md).

import type { RopeEncoding } from "../../encodings/index.ts";
import type { LogitTemperature } from "../../encodings/logit-temperature.ts";
import type { RopeConfig } from "../../encodings/rope/scaling/parameters.ts";
import { toHuggingFace } from "../../formats/huggingface/index.ts";
import { isLearned, type LearnedEncoding, type TrainingEncoding } from "../encodings.ts";
import type { TrainableSpec } from "../model.ts";

/** An encoding by the settings that a file says. */
export type NamedEncoding =
  | { readonly type: "none" }
  | { readonly type: "rope"; readonly config: RopeConfig; readonly layout: "half" | "interleaved" }
  | { readonly type: "alibi"; readonly maxBias: number }
  | {
      readonly type: "sinusoidal";
      readonly theta: number;
      readonly layout: "interleaved" | "concatenated";
      readonly exponent: "vaswani" | "fairseq";
    }
  | { readonly type: "learned"; readonly numPositions: number }
  | {
      readonly type: "t5";
      readonly numBuckets: number;
      readonly maxDistance: number;
      readonly everyLayer: boolean;
    }
  | { readonly type: "kerple"; readonly variant: "logarithmic" | "power"; readonly everyLayer: boolean }
  | { readonly type: "fire"; readonly hiddenUnits: number; readonly everyLayer: boolean };

/** Settings that src/encodings leaves on what it makes. */
interface Described {
  readonly name: string;
  readonly config?: RopeConfig;
  readonly maxBias?: number;
  readonly bidirectional?: boolean;
  readonly slopes?: Float64Array;
  readonly theta?: number;
  readonly exponent?: "vaswani" | "fairseq";
  readonly layout?: "interleaved" | "concatenated" | "half";
}

/**
 * An encoding by its settings.
 *
 * @throws RangeError for one that no form can say (xPos, FoPE, tables of one's own), naming those that can be
 */
export function namedEncoding(encoding: TrainingEncoding): NamedEncoding {
  if (isLearned(encoding)) return namedLearned(encoding);
  const described = encoding as Described;
  switch (encoding.site) {
    case "none":
      return { type: "none" };
    case "query-key":
      if (described.config !== undefined) {
        return { type: "rope", config: described.config, layout: (encoding as RopeEncoding).layout };
      }
      // A rotation by nothing.
      if (isIdentity(encoding)) return { type: "none" };
      break;
    case "attention-bias":
      if (described.maxBias !== undefined && described.bidirectional === false && described.slopes?.every((s) => s > 0))
        return { type: "alibi", maxBias: described.maxBias };
      break;
    case "embedding": {
      const { theta, layout, exponent } = described;
      if (theta !== undefined && exponent !== undefined && (layout === "interleaved" || layout === "concatenated")) {
        return { type: "sinusoidal", theta, layout, exponent };
      }
    }
  }
  throw new RangeError(
    `exportModel: expected nope, rope (dropped too), alibi, sinusoidal, or a learned table, T5 bias, KERPLE or FIRE, ` +
      `got ${encoding.name}, which no form can say`,
  );
}

function isIdentity(encoding: Extract<TrainingEncoding, { site: "query-key"; name: string }>): boolean {
  const { cos, sin } = encoding.queryTables([0, 1, 1000], 1001);
  return cos.every((x) => x === 1) && sin.every((x) => x === 0);
}

function namedLearned(encoding: LearnedEncoding): NamedEncoding {
  switch (encoding.learned) {
    case "absolute":
      return { type: "learned", numPositions: encoding.numPositions };
    case "t5": {
      const { numBuckets = 32, maxDistance = 128, everyLayer = false } = encoding;
      return { type: "t5", numBuckets, maxDistance, everyLayer };
    }
    case "kerple":
      return { type: "kerple", variant: encoding.kind, everyLayer: encoding.everyLayer ?? true };
    case "fire": {
      const { hiddenUnits = 32, everyLayer = true } = encoding;
      return { type: "fire", hiddenUnits, everyLayer };
    }
  }
}

/** Layers of one entry, in the order of their first. */
export interface PositionEntry {
  readonly layers: readonly number[];
  readonly encoding: NamedEncoding;
  readonly window: number | null;
  /** The layer under which training keeps what its layers share. */
  readonly trainedLayer: number;
}

/** Layers by what they know of positions and how far they see. */
export function positionEntries(spec: TrainableSpec, encodings: readonly TrainingEncoding[]): PositionEntry[] {
  const named = encodings.map(namedEncoding);
  const entries = new Map<string, PositionEntry & { readonly layers: number[] }>();
  spec.layers.forEach(({ group, attention: { window } }, layer) => {
    const encoding = named[group];
    if (encoding === undefined) {
      throw new RangeError(`exportModel: expected an encoding for group ${group}, got ${encodings.length} encodings`);
    }
    const key = `${group} ${window}`;
    const found = entries.get(key);
    if (found !== undefined) found.layers.push(layer);
    else {
      const trainedLayer = spec.layers.findIndex((one) => one.group === group);
      entries.set(key, { layers: [layer], encoding, window, trainedLayer });
    }
  });
  const unused = named.findIndex((_, group) => !spec.layers.some((layer) => layer.group === group));
  if (unused >= 0) throw new RangeError(`exportModel: expected layers of every encoding, got none of ${unused}`);
  return [...entries.values()];
}

/** position_encoding of the own form. The temperature goes to layers without positions. */
export function positionEncodingJson(
  entries: readonly PositionEntry[],
  temperature: LogitTemperature | null,
): Record<string, unknown>[] {
  return entries.map(({ layers, encoding, window }) => ({
    layers: [...layers],
    ...encodingJson(encoding),
    ...(window === null ? {} : { sliding_window: window }),
    ...(temperature === null || encoding.type !== "none" ? {} : { logit_temperature: temperatureJson(temperature) }),
  }));
}

function encodingJson(encoding: NamedEncoding): Record<string, unknown> {
  const { type } = encoding;
  switch (encoding.type) {
    case "none":
      return { type };
    case "rope":
      return { type, rope_parameters: toHuggingFace(encoding.config.rope), layout: encoding.layout };
    case "alibi":
      return { type, max_bias: encoding.maxBias };
    case "sinusoidal":
      return { type, theta: encoding.theta, layout: encoding.layout, exponent: encoding.exponent };
    case "learned":
      return { type, num_positions: encoding.numPositions };
    case "t5":
      return {
        type,
        num_buckets: encoding.numBuckets,
        max_distance: encoding.maxDistance,
        every_layer: encoding.everyLayer,
      };
    case "kerple":
      return { type, variant: encoding.variant, every_layer: encoding.everyLayer };
    case "fire":
      return { type, hidden_units: encoding.hiddenUnits, every_layer: encoding.everyLayer };
  }
}

/** As formats/huggingface/longhand.ts reads it. */
export function temperatureJson(temperature: LogitTemperature): Record<string, unknown> {
  if (temperature.kind !== "drope") {
    throw new RangeError(`exportModel: expected DroPE's temperature (kind "drope"), got ${temperature.kind}`);
  }
  return { type: "drope", coefficient: temperature.coefficient, trained_length: temperature.trainedLength };
}
