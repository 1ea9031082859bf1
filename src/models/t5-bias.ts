// The positions of an encoder and a decoder whose layers add a bias learned by distance (T5): rows of it for a chunk of
// queries, [1, H, queries, keys]. They are data: the buckets' values are the checkpoint's, another encoding may stand in
// their place, and "drop" is a bias of 0. Buckets saturate, so there is no longest text. A row is a window of one vector
// by relative position, so a chunk costs a copy, and nothing quadratic in the length exists.

import { show } from "../encodings/errors.ts";
import type { AttentionBiasEncoding, PositionEncoding } from "../encodings/position-encoding.ts";
import { t5RelativeBias } from "../encodings/t5-relative-bias.ts";
import type { ModelDescription, PositionGroup } from "../formats/model-description.ts";
import { type Tensor, tensor } from "../tensor/index.ts";
import type { GroupPositions } from "./positions.ts";
import type { ModelSpec } from "./spec.ts";
import type { Strategy } from "./strategy.ts";

/** Values of buckets [numBuckets, H] by stack, one table a layer that has learned its own. */
export interface LearnedBiases {
  readonly encoder: readonly Float32Array[];
  readonly decoder: readonly Float32Array[];
}

export interface BiasChoice {
  /** As the file says when absent; "drop" and "none" (nothing else scales a bias): drop is 0 everywhere. */
  readonly scaling?: Strategy;
  /** Of the attention-bias site in place of the learned one, for all layers of a stack, by index of the description's
   *  group. */
  readonly encodings?: Readonly<Record<number, PositionEncoding>>;
}

/** An array for rows that callers share, and whose rows it holds. */
export class BiasRows {
  #data: Float32Array = new Float32Array(0);
  #holds: BiasTable | null = null;
  #range = "";

  /** Rows of queries past … past + count − 1 over keys 0 … keys − 1; valid until the next call. */
  of(table: BiasTable, past: number, count: number, keys: number): Tensor {
    const shape = [1, table.numHeads, count, keys];
    const length = table.numHeads * count * keys;
    if (this.#data.length < length) this.#data = new Float32Array(length);
    const rows = this.#data.subarray(0, length);
    const range = `${past} ${count} ${keys}`;
    if (this.#holds !== table || this.#range !== range) table.fill(rows, past, count, keys);
    this.#holds = table;
    this.#range = range;
    return tensor("f32", shape, rows);
  }
}

export interface BiasTable {
  readonly numHeads: number;
  /** Writes rows [H, count, keys]. */
  fill(into: Float32Array, past: number, count: number, keys: number): void;
}

/** The positions of both stacks under a choice. */
export interface BiasPositions {
  readonly groups: readonly GroupPositions[];
  /** Equal keys, equal numbers. */
  readonly key: string;
  /** One table a layer, the same object where layers share it. */
  readonly encoder: readonly BiasTable[];
  readonly decoder: readonly BiasTable[];
}

/**
 * @throws RangeError for a strategy that scales rotary positions, or encodings of another site or number of heads
 */
export function createBiasPositions(
  description: ModelDescription,
  spec: ModelSpec,
  learned: LearnedBiases,
  choice: BiasChoice = {},
): BiasPositions {
  const { encoder } = spec;
  if (encoder === undefined) throw new RangeError("positions: expected a model with an encoder, got a decoder alone");
  const kind = choice.scaling?.kind ?? "as-is";
  if (kind === "short" || kind === "parameters" || kind === "self-extend") {
    throw new RangeError("--scaling: expected a model with rotary positions, got one with t5; use drop or none");
  }
  const keys: string[] = [];
  const groups: GroupPositions[] = [];
  const stack = (group: PositionGroup, tables: readonly Float32Array[], numLayers: number): BiasTable[] => {
    const index = description.groups.indexOf(group);
    const own = choice.encodings?.[index];
    const { layers, layerType, position } = group;
    if (position.kind !== "t5") throw new RangeError(`positions: expected a T5 bias, got ${position.kind}`);
    const { numHeads, numBuckets, maxDistance, bidirectional } = position;
    let encoding: string;
    let list: BiasTable[];
    if (kind === "drop") {
      encoding = "drop";
      list = [{ numHeads, fill: (into) => void into.fill(0) }];
    } else if (own !== undefined) {
      expectBias(own, index, numHeads);
      encoding = own.name;
      list = [anyTable(own)];
    } else {
      encoding = "t5-relative-bias";
      list = tables.map((weights) =>
        relativeTable(t5RelativeBias({ numHeads, numBuckets, maxDistance, bidirectional, weights })),
      );
    }
    keys.push(own === undefined || kind === "drop" ? encoding : `${encoding}#${identity(own)}`);
    groups.push({
      layers,
      ...(layerType === undefined ? {} : { layerType }),
      site: "attention-bias",
      encoding,
      logitTemperature: null,
    });
    return Array.from({ length: numLayers }, (_, layer) => list[layer] ?? list[0]!);
  };
  const decoderGroup = spec.groups[0]!;
  for (const given of Object.keys(choice.encodings ?? {})) {
    if (description.groups[Number(given)] === undefined) {
      throw new RangeError(`encodings: expected a group from 0 to ${description.groups.length - 1}, got ${given}`);
    }
  }
  const ofEncoder = stack(encoder.group, learned.encoder, encoder.layers.length);
  const ofDecoder = stack(decoderGroup, learned.decoder, spec.layers.length);
  return { groups, key: keys.join("|"), encoder: ofEncoder, decoder: ofDecoder };
}

function expectBias(
  encoding: PositionEncoding,
  index: number,
  numHeads: number,
): asserts encoding is AttentionBiasEncoding {
  if (encoding.site !== "attention-bias" || encoding.numHeads !== numHeads) {
    const got = encoding.site === "attention-bias" ? `${encoding.numHeads} heads` : `site ${encoding.site}`;
    throw new RangeError(
      `encodings: expected an attention-bias encoding of ${numHeads} heads for group ${index}, got ${show(encoding.name)} with ${got}`,
    );
  }
}

const identities = new WeakMap<object, number>();
let nextIdentity = 1;
/** A caller's own encoding is told from another by being another object. */
function identity(encoding: object): number {
  const known = identities.get(encoding) ?? nextIdentity++;
  identities.set(encoding, known);
  return known;
}

/** A bias that only the difference of positions decides: bias[h, t, s] = vector[h, s − t]. */
function relativeTable(encoding: AttentionBiasEncoding): BiasTable {
  const { numHeads } = encoding;
  let reach = 0;
  // By relative position −reach + 1 … reach − 1.
  let vectors: Float32Array[] = [];
  const grow = (length: number): void => {
    reach = Math.max(length, 2 * reach);
    const width = 2 * reach - 1;
    const row = encoding.bias(
      [reach - 1],
      Float64Array.from({ length: width }, (_, s) => s),
    );
    vectors = Array.from({ length: numHeads }, (_, head) =>
      Float32Array.from(row.subarray(head * width, (head + 1) * width)),
    );
  };
  return {
    numHeads,
    fill(into, past, count, keys) {
      if (Math.max(past + count, keys) > reach) grow(Math.max(past + count, keys));
      for (let head = 0, at = 0; head < numHeads; head++) {
        for (let t = 0; t < count; t++, at += keys) {
          const from = reach - 1 - past - t;
          into.set(vectors[head]!.subarray(from, from + keys), at);
        }
      }
    },
  };
}

/** Whatever a caller's encoding says of these positions. */
function anyTable(encoding: AttentionBiasEncoding): BiasTable {
  const range = (from: number, count: number) => Float64Array.from({ length: count }, (_, i) => from + i);
  return {
    numHeads: encoding.numHeads,
    fill: (into, past, count, keys) => into.set(encoding.bias(range(past, count), range(0, keys))),
  };
}
