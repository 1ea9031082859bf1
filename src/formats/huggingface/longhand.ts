// config.json of the project's own form, model_type "longhand" (docs/longhand-form.md): Llama's keys, and a list of
// position encodings by layers. It holds what no class of transformers can: learned biases, several encodings in one
// model, sinusoidal positions on Llama's blocks. Every key is known and typed; any other is an error.

import type { LogitTemperature } from "../../encodings/logit-temperature.ts";
import type { PositionGroup, PositionSettings } from "../model-description.ts";
import { didYouMean } from "../nearest.ts";
import { parseRopeParameters } from "./rope-parameters.ts";
import {
  anyString,
  count,
  flag,
  isObject,
  type JsonObject,
  join,
  positive,
  type Rule,
  type Source,
  unexpected,
} from "./values.ts";

/** Keys of the whole model. Values that only running needs are read by models/families/longhand.ts. */
const modelKeys: readonly string[] = [
  "architectures",
  "model_type",
  "dtype",
  "vocab_size",
  "hidden_size",
  "intermediate_size",
  "num_hidden_layers",
  "num_attention_heads",
  "num_key_value_heads",
  "head_dim",
  "hidden_act",
  "norm_type",
  "norm_eps",
  "mlp_type",
  "use_bias",
  "embedding_norm",
  "embedding_scale",
  "query_key_norm",
  "attention_scale",
  "tie_word_embeddings",
  "max_position_embeddings",
  "position_encoding",
  "bos_token_id",
  "eos_token_id",
  "pad_token_id",
  "transformers_version",
];

/** Keys that every entry of position_encoding may have. */
const commonKeys = ["type", "layers", "sliding_window", "logit_temperature"];

const integers: Rule<number[]> = {
  expectation: "an ascending list of layers, each an integer of at least 0",
  holds: (value): value is number[] =>
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((x, i) => Number.isInteger(x) && x >= 0 && (i === 0 || x > value[i - 1])),
};
const finite: Rule<number> = {
  expectation: "a finite number",
  holds: (value): value is number => typeof value === "number" && Number.isFinite(value),
};

function oneOf<T extends string>(...values: readonly T[]): Rule<T> {
  return {
    expectation: `one of ${values.map((value) => JSON.stringify(value)).join(", ")}`,
    holds: (value): value is T => (values as readonly unknown[]).includes(value),
  };
}

interface Sizes {
  readonly numLayers: number;
  readonly numHeads: number;
  readonly hiddenSize: number;
  readonly headDim: number;
  readonly maxPositionEmbeddings: number | null;
}

/** One entry: its values are read once each, and none is left over. */
class Entry {
  readonly #record: JsonObject;
  readonly #path: string;

  constructor(value: unknown, path: string) {
    if (!isObject(value)) throw unexpected(path, "an object", value, "");
    this.#record = value;
    this.#path = path;
  }

  where(key: string): string {
    return join(this.#path, key);
  }

  has(key: string): boolean {
    return this.#record[key] !== undefined;
  }

  read<T>(key: string, rule: Rule<T>, fallback?: T): T {
    const value = this.#record[key];
    if (value === undefined && fallback !== undefined) return fallback;
    if (!rule.holds(value)) throw unexpected(this.where(key), rule.expectation, value);
    return value;
  }

  raw(key: string): unknown {
    return this.#record[key];
  }

  only(known: readonly string[]): void {
    expectKnown(this.#record, known, this.#path);
  }
}

function expectKnown(record: JsonObject, known: readonly string[], path: string): void {
  for (const key of Object.keys(record)) {
    if (known.includes(key)) continue;
    throw unexpected(
      join(path, key),
      `one of ${known.join(", ")}`,
      record[key],
      `no such key${didYouMean(key, known)}`,
    );
  }
}

/** How each type's own keys are read. `everyLayer`: each layer has learned numbers of its own. */
const types: Readonly<
  Record<string, { readonly keys: readonly string[]; read(entry: Entry, sizes: Sizes): PositionSettings }>
> = {
  none: { keys: [], read: () => ({ site: "none", kind: "nope" }) },
  rope: {
    keys: ["rope_parameters", "layout"],
    read: (entry, { headDim, maxPositionEmbeddings }) => ({
      site: "query-key",
      kind: "rope",
      headDim,
      layout: entry.read("layout", oneOf("half", "interleaved"), "half"),
      rope: parseRopeParameters(entry.raw("rope_parameters"), {
        file: "config.json",
        where: entry.where("rope_parameters"),
        headDim,
        maxPositionEmbeddings,
      }).rope,
    }),
  },
  alibi: {
    keys: ["max_bias"],
    read: (entry, { numHeads }) => ({
      site: "attention-bias",
      kind: "alibi",
      numHeads,
      maxBias: entry.read("max_bias", positive, 8),
    }),
  },
  sinusoidal: {
    keys: ["theta", "layout", "exponent"],
    read: (entry, { hiddenSize }) => ({
      site: "embedding",
      kind: "sinusoidal",
      hiddenSize,
      theta: entry.read("theta", positive, 10000),
      layout: entry.read("layout", oneOf("interleaved", "concatenated"), "interleaved"),
      exponent: entry.read("exponent", oneOf("vaswani", "fairseq"), "vaswani"),
      numPositions: null,
    }),
  },
  learned: {
    keys: ["num_positions"],
    read: (entry, { hiddenSize }) => ({
      site: "embedding",
      kind: "learned",
      hiddenSize,
      numPositions: entry.read("num_positions", count),
      offset: 0,
    }),
  },
  t5: {
    keys: ["num_buckets", "max_distance", "every_layer"],
    read(entry, { numHeads }) {
      const numBuckets = entry.read("num_buckets", count);
      const maxDistance = entry.read("max_distance", count);
      if (numBuckets % 2 !== 0) throw unexpected(entry.where("num_buckets"), "an even number", numBuckets);
      if (maxDistance <= numBuckets / 2) {
        const expectation = `more than ${numBuckets / 2}, the distances that have a bucket each`;
        throw unexpected(entry.where("max_distance"), expectation, maxDistance, "");
      }
      return { site: "attention-bias", kind: "t5", numHeads, numBuckets, maxDistance, bidirectional: false };
    },
  },
  kerple: {
    keys: ["variant", "every_layer"],
    read: (entry, { numHeads }) => ({
      site: "attention-bias",
      kind: "kerple",
      numHeads,
      variant: entry.read("variant", oneOf("logarithmic", "power")),
    }),
  },
  fire: {
    keys: ["hidden_units", "every_layer"],
    read: (entry, { numHeads }) => ({
      site: "attention-bias",
      kind: "fire",
      numHeads,
      hiddenUnits: entry.read("hidden_units", count),
    }),
  },
};

/**
 * The groups of a config.json in the project's own form. Layers that have learned a bias of their own are a group each:
 * a group's learned numbers stand in its first layer.
 *
 * @throws FormatError for an unknown key or type, a wrong value, a layer named twice or never, and for two encodings that
 *   both add rows to the embeddings
 */
export function longhandGroups(source: Source, sizes: Sizes): PositionGroup[] {
  expectKnown(source.record, modelKeys, source.path);
  const where = join(source.path, "position_encoding");
  const list = source.record.position_encoding;
  if (!Array.isArray(list) || list.length === 0) {
    throw unexpected(where, "a list of encodings, each with its layers", list);
  }
  const owner = new Map<number, number>();
  const groups = list.flatMap((value: unknown, index): PositionGroup[] => {
    const entry = new Entry(value, `${where}[${index}]`);
    const name = entry.read("type", anyString);
    const type = Object.hasOwn(types, name) ? types[name] : undefined;
    if (type === undefined) {
      const known = Object.keys(types);
      throw unexpected(entry.where("type"), `one of ${known.join(", ")}`, name, didYouMean(name, known).slice(2));
    }
    entry.only([...commonKeys, ...type.keys]);
    const layers = entry.read("layers", integers);
    for (const layer of layers) {
      if (layer >= sizes.numLayers || owner.has(layer)) {
        const got = layer >= sizes.numLayers ? layer : `${layer} in entries ${owner.get(layer)} and ${index}`;
        throw unexpected(entry.where("layers"), `each of the ${sizes.numLayers} layers once`, got, "");
      }
      owner.set(layer, index);
    }
    const settings = {
      position: type.read(entry, sizes),
      slidingWindow: entry.has("sliding_window") ? entry.read("sliding_window", count) : null,
      attentionChunkSize: null,
      logitTemperature: entry.has("logit_temperature")
        ? readTemperature(entry.raw("logit_temperature"), entry.where("logit_temperature"))
        : null,
      softmaxFactor: 1,
    };
    const apart = type.keys.includes("every_layer") && entry.read("every_layer", flag);
    return apart ? layers.map((layer) => ({ layers: [layer], ...settings })) : [{ layers, ...settings }];
  });
  if (owner.size !== sizes.numLayers) {
    const missing = Array.from({ length: sizes.numLayers }, (_, layer) => layer).filter((layer) => !owner.has(layer));
    throw unexpected(where, `each of the ${sizes.numLayers} layers once`, `none for layers ${missing.join(", ")}`, "");
  }
  const embedding = groups.filter(({ position }) => position.site === "embedding");
  if (embedding.length > 1) {
    throw unexpected(where, "at most one encoding that adds rows to the embeddings", `${embedding.length}`, "");
  }
  return groups;
}

/** A factor on queries that grows with the length: DroPE's, the one that the form has. */
export function readTemperature(value: unknown, where: string): LogitTemperature {
  const entry = new Entry(value, where);
  entry.only(["type", "coefficient", "trained_length"]);
  entry.read("type", oneOf("drope"));
  return {
    kind: "drope",
    coefficient: entry.read("coefficient", finite),
    trainedLength: entry.read("trained_length", count),
  };
}
