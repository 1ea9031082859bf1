// What a graph's position inputs are fed with: the encodings of a description, changed by a strategy, as tensors. The
// engine asks for the tables of a length and feeds them; it never learns which encoding they are. Angles are formed in
// float64 and cast once. Tables are filled as far as a run has come, so a new strategy starts at once at any length.

import { alibi } from "../encodings/alibi.ts";
import { show } from "../encodings/errors.ts";
import { learnedAbsolute } from "../encodings/learned-absolute.ts";
import { type LogitTemperature, logitTemperature } from "../encodings/logit-temperature.ts";
import type {
  AttentionBiasEncoding,
  EmbeddingEncoding,
  PositionEncoding,
  QueryKeyEncoding,
} from "../encodings/position-encoding.ts";
import { computeRopeFrequencies, ropeDependsOnLength } from "../encodings/rope/scaling/index.ts";
import type { RopeConfig, RopeFrequencies, RopeParameters } from "../encodings/rope/scaling/parameters.ts";
import { rotaryTablesFloat32 } from "../encodings/rope/tables.ts";
import { sinusoidal } from "../encodings/sinusoidal.ts";
import type { ModelDescription, PositionGroup, PositionSettings } from "../formats/model-description.ts";
import { type Tensor, tensor } from "../tensor/index.ts";
import { type BiasForm, biasColumns, biasForm, keyColumns, queryColumns } from "./bias-columns.ts";
import type { LearnedPositions } from "./learned-positions.ts";
import { type SelfExtendSizes, selfExtendOf, viewedGroups, viewTables } from "./position-views.ts";
import { RotaryRows } from "./rotary-rows.ts";
import { applyStrategy, type Strategy, strategyApplies, strategyOf, trainedConfig } from "./strategy.ts";

type Rope = Extract<PositionSettings, { site: "query-key" }>;

/** What is changed about a model's positions. Everything absent: the model as its file says. */
export interface PositionChoice {
  /** Replaces the scaling of the rotary groups that see the whole context; "drop" removes positions at any site. */
  readonly scaling?: Strategy;
  /** A factor on each query, on the groups that a strategy speaks of; null: none, even where the file has one. */
  readonly logitTemperature?: LogitTemperature | null;
  /** An encoding of the same site in place of a group's own, by index of the group. In place of ALiBi as columns, one
   *  that is linear in the distance (it has slopes). */
  readonly encodings?: Readonly<Record<number, PositionEncoding>>;
}

/** How one group of layers knows positions in a run, for a report. */
export interface GroupPositions {
  readonly layers: readonly number[];
  readonly layerType?: string;
  readonly site: PositionEncoding["site"];
  /** The encoding's name; of a rotary group its ropeType, or "drop". */
  readonly encoding: string;
  readonly rope?: RopeParameters;
  /** Of Self-Extend: tokens that share a far position, and the distance from which keys are far. */
  readonly map?: SelfExtendSizes;
  readonly logitTemperature: LogitTemperature | null;
}

/** Tables of one length. Two with equal keys hold equal numbers. */
export interface PositionTables {
  readonly key: string;
  /**
   * Feeds of a chunk of `count` tokens after `past` ones.
   *
   * @param first of a rotary group's tables, by index of the group, the position of their first row; 0 when absent
   */
  feeds(past: number, count: number, first?: ReadonlyMap<number, number>): Record<string, Tensor>;
}

/** The positions of a model under a choice. */
export interface Positions {
  readonly groups: readonly GroupPositions[];
  /** Sequences longer than this have no positions; Infinity where the encoding has no end. */
  readonly maxLength: number;
  /** Whether the feeds are for a graph built with `keyViews`: its cache keeps keys that are not turned. */
  readonly views: boolean;
  /** Whether tables change with the length of the sequence (dynamic, longrope, a temperature by length). */
  readonly dependsOnLength: boolean;
  /** Those types by name, for a message. */
  readonly lengthDependent: readonly string[];
  /** What tells tables of this length from those of another. */
  key(length: number): string;
  /** Tables for a sequence of `length` tokens in all. Cheap: rows are computed when a chunk needs them. */
  tables(length: number): PositionTables;
}

/** P of a rotary group: its graph's tables are [positions, P]. */
export function rotaryPairs(position: Rope): number {
  return computeRopeFrequencies({ headDim: position.headDim, maxPositionEmbeddings: 1, rope: position.rope }, 1)
    .inverseFrequencies.length;
}

/** A part of the feeds: one group's tables. */
interface GroupSource {
  readonly description: GroupPositions;
  readonly maxLength: number;
  readonly dependsOnLength: boolean;
  key(length: number): string;
  open(
    length: number,
  ): (past: number, count: number, into: Record<string, Tensor>, first: ReadonlyMap<number, number>) => void;
}

/**
 * The positions of a model under a choice.
 *
 * @param description how each group of layers knows positions
 * @param learned what the checkpoint has learned about positions, for a model that has
 * @param attentionBias as the graph was built (DecoderOptions)
 * @throws RangeError for a strategy that the model has no place for, and whatever the strategy's parameters break
 * @example
 * ```ts
 * import { describeHuggingFace } from "longhand/formats";
 * import { createPositions } from "longhand/models";
 * const description = describeHuggingFace({
 *   model_type: "llama", hidden_size: 8, num_hidden_layers: 2, num_attention_heads: 2, max_position_embeddings: 64,
 * });
 * const positions = createPositions(description, { scaling: { kind: "short", name: "linear", factor: 2 } });
 * positions.groups[0].encoding; // => "linear"
 * const feeds = positions.tables(3).feeds(0, 3); // what a chunk of 3 tokens after none is fed with
 * feeds["cos.0"].shape; // => [3, 2]
 * feeds["cos.0"].data[4]; // => 0.5403022766113281
 * ```
 */
export function createPositions(
  description: ModelDescription,
  choice: PositionChoice = {},
  learned: LearnedPositions | null = null,
  attentionBias: BiasForm = "columns",
): Positions {
  const strategy = choice.scaling ?? { kind: "as-is" };
  const { groups } = description;
  const rotary = groups.filter((group) => group.position.site === "query-key");
  const views = strategy.kind === "self-extend";
  const viewed = views ? viewedGroups(description) : [];
  const needsRotary = views || strategy.kind === "short" || strategy.kind === "parameters";
  if (needsRotary && rotary.length === 0) {
    const kinds = [...new Set(groups.map((group) => group.position.kind))].join(", ");
    throw new RangeError(`--scaling: expected a model with rotary positions, got one with ${kinds}; use drop or none`);
  }
  if (views && viewed.length === 0) {
    throw new RangeError(
      "--scaling: expected a model with layers that see the whole context for self-extend, got one whose every rotary " +
        "layer sees a window; use none",
    );
  }
  for (const index of Object.keys(choice.encodings ?? {})) {
    if (groups[Number(index)] === undefined) {
      throw new RangeError(`encodings: expected a group from 0 to ${groups.length - 1}, got ${index}`);
    }
  }
  const sources = groups.map((group, index) => groupSource(group, index));
  const embeddings = groups.map((group) => group.position).filter((position) => position.site === "embedding");
  const embedding = embeddings[0] === undefined ? null : embeddingSource(embeddings[0]);
  const all = embedding === null ? sources : [...sources, embedding];
  const key = (length: number): string => all.map((source) => source.key(length)).join("|");
  return {
    groups: sources.map((source) => source.description),
    maxLength: Math.min(...all.map((source) => source.maxLength)),
    views,
    dependsOnLength: all.some((source) => source.dependsOnLength),
    lengthDependent: [
      ...new Set(all.filter((source) => source.dependsOnLength).map((source) => source.description.encoding)),
    ],
    key,
    tables(length) {
      const open = all.map((source) => source.open(length));
      return {
        key: key(length),
        feeds(past, count, first = new Map()) {
          const into: Record<string, Tensor> = {};
          for (const one of open) one(past, count, into, first);
          return into;
        },
      };
    },
  };

  function groupSource(group: PositionGroup, index: number): GroupSource {
    const applies = strategyApplies(group, description, strategy);
    const temperature = temperatureOf(group, applies);
    const own = choice.encodings?.[index];
    const site = group.position.site;
    if (own !== undefined && own.site !== site) {
      throw new RangeError(`encodings: expected an encoding of site ${site} for group ${index}, got ${own.site}`);
    }
    const source = siteSource(group, index, applies, own);
    const byLength = temperature?.kind === "drope";
    const { layers, layerType } = group;
    return {
      description: {
        layers,
        ...(layerType === undefined ? {} : { layerType }),
        ...source.description,
        logitTemperature: temperature,
      },
      maxLength: source.maxLength,
      dependsOnLength: source.dependsOnLength || byLength,
      key: (length) =>
        temperature === null
          ? source.key(length)
          : `${source.key(length)}*${JSON.stringify(temperature)}${byLength ? Math.max(length, temperature.trainedLength) : ""}`,
      open(length) {
        const rest = source.open(length);
        return (past, count, into, first) => {
          rest(past, count, into, first);
          const factors =
            temperature === null
              ? new Float32Array(count).fill(1)
              : Float32Array.from(logitTemperature(temperature, range(past, count), length));
          into[`queryFactors.${index}`] = tensor("f32", [count], factors);
        };
      },
    };
  }

  function temperatureOf(group: PositionGroup, applies: boolean): LogitTemperature | null {
    if (choice.logitTemperature !== undefined && applies) return choice.logitTemperature;
    const own = group.logitTemperature;
    const said = applies ? strategyOf(strategy, group, description) : strategy;
    if (own?.kind !== "ministral3" || said.kind !== "parameters") return own;
    // Ministral 3 keeps its temperature inside rope_parameters.
    const { llama_4_scaling_beta: beta, original_max_position_embeddings: original } = said.value;
    return {
      ...own,
      ...(typeof beta === "number" ? { beta } : {}),
      ...(typeof original === "number" ? { originalMaxPositionEmbeddings: original } : {}),
    };
  }

  function siteSource(
    group: PositionGroup,
    index: number,
    applies: boolean,
    own: PositionEncoding | undefined,
  ): Omit<GroupSource, "description"> & {
    readonly description: Pick<GroupPositions, "site" | "encoding" | "rope" | "map">;
  } {
    const { position } = group;
    const dropped = applies && strategy.kind === "drop";
    switch (position.site) {
      case "query-key": {
        if (own !== undefined && views) {
          throw new RangeError(
            `encodings: expected the model's own rotary positions with self-extend, got ${show(own.name)} for group ${index}`,
          );
        }
        if (own !== undefined) return encodingTables(own as QueryKeyEncoding, position, index);
        if (strategy.kind === "self-extend" && viewed.includes(index)) {
          const config = trainedConfig(position, description);
          return viewTables(config, selfExtendOf(strategy, position, description), index);
        }
        const asIs: RopeConfig = {
          headDim: position.headDim,
          maxPositionEmbeddings: description.maxPositionEmbeddings ?? description.trainedLength ?? 1,
          rope: position.rope,
        };
        // What sees a window only has no far keys.
        const scaling = views ? ({ kind: "none" } as const) : strategy;
        const config = applies ? applyStrategy(scaling, { ...group, position }, description) : asIs;
        return config === "drop" ? droppedTables(position, index) : ropeTables(config, index);
      }
      case "attention-bias": {
        const encoding = (own as AttentionBiasEncoding | undefined) ?? learned?.biases[index] ?? biasEncoding(position);
        if (encoding.numHeads !== position.numHeads) {
          throw new RangeError(
            `encodings: expected a bias of ${position.numHeads} heads for group ${index}, got ${encoding.numHeads}`,
          );
        }
        const key = dropped ? "none" : own === undefined ? JSON.stringify(position) : identity(own);
        const form = biasForm(position, attentionBias);
        if (form === "rows") return biasRows(encoding, index, dropped, `bias:${key}`);
        return form === "columns"
          ? columnTables(encoding, index, dropped, `bias:${key}`)
          : biasTables(encoding, index, dropped, `bias:${key}`);
      }
      case "embedding":
        return {
          description: { site: "embedding", encoding: dropped ? "drop" : position.kind },
          maxLength: Number.POSITIVE_INFINITY,
          dependsOnLength: false,
          key: () => "",
          open: () => () => undefined,
        };
      case "none":
        return {
          description: { site: "none", encoding: "nope" },
          maxLength: Number.POSITIVE_INFINITY,
          dependsOnLength: false,
          key: () => "",
          open: () => () => undefined,
        };
    }
  }

  /** Rows that are added to the token embeddings: one input, whichever groups of layers name them. */
  function embeddingSource(position: Extract<PositionSettings, { site: "embedding" }>): GroupSource {
    const index = groups.findIndex((group) => group.position === position);
    const own = choice.encodings?.[index] as EmbeddingEncoding | undefined;
    const encoding = own ?? embeddingEncoding(position, learned?.rows ?? null);
    const dropped = strategy.kind === "drop";
    const { hiddenSize } = position;
    return {
      description: { layers: [], site: "embedding", encoding: encoding.name, logitTemperature: null },
      maxLength: dropped ? Number.POSITIVE_INFINITY : encoding.maxPositions,
      dependsOnLength: false,
      key: () => (dropped ? "rows:none" : `rows:${encoding.name}${own === undefined ? "" : identity(own)}`),
      open: () => (past, count, into) => {
        const rows = dropped
          ? new Float32Array(count * hiddenSize)
          : Float32Array.from(encoding.rows(range(past, count)));
        into.positionRows = tensor("f32", [count, hiddenSize], rows);
      },
    };
  }
}

function range(from: number, count: number): Float64Array {
  return Float64Array.from({ length: count }, (_, i) => from + i);
}

const identities = new WeakMap<object, number>();
let nextIdentity = 1;
/** A caller's own encoding is told from another by being another object. */
function identity(encoding: object): string {
  let known = identities.get(encoding);
  if (known === undefined) {
    known = nextIdentity++;
    identities.set(encoding, known);
  }
  return `#${known}`;
}

type OpenSource = ReturnType<GroupSource["open"]>;

function feedRows(rows: RotaryRows, index: number): OpenSource {
  return (past, count, into, first) => {
    const { cos, sin } = rows.from(first.get(index) ?? 0, past + count);
    const shape = [cos.length / rows.pairs, rows.pairs];
    into[`cos.${index}`] = tensor("f32", shape, cos);
    into[`sin.${index}`] = tensor("f32", shape, sin);
  };
}

export type SiteSource = Omit<GroupSource, "description"> & {
  readonly description: Pick<GroupPositions, "site" | "encoding" | "rope" | "map">;
};

function ropeTables(config: RopeConfig, index: number): SiteSource {
  const dependsOnLength = ropeDependsOnLength(config.rope);
  const at = (length: number): RopeFrequencies => computeRopeFrequencies(config, length);
  // Also checks the settings now, before any work.
  const fixed = at(1);
  const keyOf = ({ inverseFrequencies, attentionFactor }: RopeFrequencies): string =>
    `rope:${attentionFactor};${inverseFrequencies.join()}`;
  const fixedKey = keyOf(fixed);
  return {
    description: { site: "query-key", encoding: config.rope.ropeType, rope: config.rope },
    maxLength: Number.POSITIVE_INFINITY,
    dependsOnLength,
    key: (length) => (dependsOnLength ? keyOf(at(length)) : fixedKey),
    open(length) {
      const frequencies = dependsOnLength ? at(length) : fixed;
      const rows = new RotaryRows(frequencies.inverseFrequencies.length, length, (from, to) =>
        rotaryTablesFloat32(frequencies, range(from, to - from)),
      );
      return feedRows(rows, index);
    },
  };
}

function droppedTables(position: Rope, index: number): SiteSource {
  const pairs = rotaryPairs(position);
  return {
    description: { site: "query-key", encoding: "drop" },
    maxLength: Number.POSITIVE_INFINITY,
    dependsOnLength: false,
    key: () => "drop",
    open(length) {
      const rows = new RotaryRows(pairs, length, (from, to) => ({
        cos: new Float32Array((to - from) * pairs).fill(1),
        sin: new Float32Array((to - from) * pairs),
      }));
      return feedRows(rows, index);
    },
  };
}

function encodingTables(encoding: QueryKeyEncoding, position: Rope, index: number): SiteSource {
  const pairs = rotaryPairs(position);
  const who = `encodings: group ${index}`;
  if (encoding.rotaryDim !== 2 * pairs || encoding.layout !== position.layout) {
    throw new RangeError(
      `${who}: expected ${2 * pairs} rotated channels in layout ${position.layout}, ` +
        `got ${encoding.rotaryDim} in ${encoding.layout}`,
    );
  }
  // One pair of tables turns queries and keys in the graph.
  const [q, k] = [encoding.queryTables([3], 8), encoding.keyTables([3], 8)];
  if (q.cos.some((x, i) => x !== k.cos[i]) || q.sin.some((x, i) => x !== k.sin[i])) {
    throw new RangeError(
      `${who}: expected queries and keys to share their tables, got ${show(encoding.name)}, which differ`,
    );
  }
  const name = identity(encoding);
  return {
    description: { site: "query-key", encoding: encoding.name },
    maxLength: Number.POSITIVE_INFINITY,
    dependsOnLength: encoding.dependsOnLength,
    key: (length) => `${name}${encoding.dependsOnLength ? `@${length}` : ""}`,
    open(length) {
      const rows = new RotaryRows(pairs, length, (from, to) => encoding.queryTables(range(from, to - from), length));
      return feedRows(rows, index);
    },
  };
}

/** What the three forms of a bias say of themselves: they end nowhere, and no sequence's length changes them. */
function biasSource(encoding: AttentionBiasEncoding, dropped: boolean, key: string): Omit<SiteSource, "open"> {
  return {
    description: { site: "attention-bias", encoding: dropped ? "drop" : encoding.name },
    maxLength: Number.POSITIVE_INFINITY,
    dependsOnLength: false,
    key: () => key,
  };
}

/** bias.G [H, R]: what is added at distance d = 0 … R − 1, and the keys' positions. */
function biasTables(encoding: AttentionBiasEncoding, index: number, dropped: boolean, key: string): SiteSource {
  const { numHeads } = encoding;
  return {
    ...biasSource(encoding, dropped, key),
    open(length) {
      let table = new Float32Array(0);
      let distances = 0;
      const keys = { positions: new BigInt64Array(0) };
      return (past, count, into) => {
        const total = past + count;
        if (total > distances) {
          distances = Math.max(total, Math.min(length, 2 * distances));
          table = new Float32Array(numHeads * distances);
          if (!dropped) {
            // The row of the last query, read backwards, is the bias by distance.
            const row = encoding.bias([distances - 1], range(0, distances));
            for (let head = 0; head < numHeads; head++) {
              for (let d = 0; d < distances; d++) {
                table[head * distances + d] = row[head * distances + distances - 1 - d]!;
              }
            }
          }
          keys.positions = BigInt64Array.from({ length: distances }, (_, i) => BigInt(i));
        }
        into[`bias.${index}`] = tensor("f32", [numHeads, distances], table);
        into.keys ??= tensor("i64", [total], keys.positions.subarray(0, total));
      };
    },
  };
}

/** bias.G [1, H, T, S]: what is added at each query of a chunk and each key. */
function biasRows(encoding: AttentionBiasEncoding, index: number, dropped: boolean, key: string): SiteSource {
  const { numHeads } = encoding;
  return {
    ...biasSource(encoding, dropped, key),
    open: () => (past, count, into) => {
      const keys = past + count;
      const rows = dropped
        ? new Float32Array(numHeads * count * keys)
        : Float32Array.from(encoding.bias(range(past, count), range(0, keys)));
      into[`bias.${index}`] = tensor("f32", [1, numHeads, count, keys], rows);
    },
  };
}

/** The channels of queries and keys of a chunk: nothing is kept. */
function columnTables(encoding: AttentionBiasEncoding, index: number, dropped: boolean, key: string): SiteSource {
  if (encoding.slopes === undefined) {
    throw new RangeError(
      `encodings: expected a bias that is linear in the distance (with slopes) for group ${index}, got ` +
        `${show(encoding.name)}; load the model with attentionBias "dense"`,
    );
  }
  const slopes = dropped ? new Float64Array(encoding.numHeads) : encoding.slopes;
  return {
    ...biasSource(encoding, dropped, key),
    open: () => (past, count, into) => {
      into[`queryColumns.${index}`] = tensor(
        "f32",
        [count, encoding.numHeads, biasColumns],
        queryColumns(slopes, past, count),
      );
      into[`keyColumns.${index}`] = tensor("f32", [count, biasColumns], keyColumns(past, count));
    },
  };
}

function biasEncoding(position: Extract<PositionSettings, { site: "attention-bias" }>): AttentionBiasEncoding {
  if (position.kind === "alibi") {
    const encoding = alibi({ numHeads: position.numHeads, maxBias: position.maxBias });
    const { slopeScale = 1 } = position;
    if (slopeScale === 1) return encoding;
    return {
      ...encoding,
      slopes: encoding.slopes.map((x) => x * slopeScale),
      bias: (queries, keys) => encoding.bias(queries, keys).map((x) => x * slopeScale),
    };
  }
  throw new RangeError(`positions: expected the learned numbers of ${position.kind}, got none; give \`encodings\``);
}

function embeddingEncoding(
  position: Extract<PositionSettings, { site: "embedding" }>,
  learned: Float32Array | null,
): EmbeddingEncoding {
  if (position.kind === "sinusoidal") {
    const { hiddenSize, theta, layout, exponent } = position;
    return sinusoidal({ hiddenSize, theta, layout, ...(exponent === undefined ? {} : { exponent }) });
  }
  if (learned === null) throw new RangeError("positions: expected the rows of the learned table, got none");
  return learnedAbsolute({ table: learned, hiddenSize: position.hiddenSize, offset: position.offset });
}
