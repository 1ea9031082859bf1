// Which layers look how far, and which of them rotate. One rule a family: from `layer_types` when the file has it, else
// from the pattern of the class. A sliding window counts the keys that a query sees, itself included.

import { nearest } from "../nearest.ts";
import {
  count,
  flag,
  has,
  index,
  isObject,
  join,
  names,
  read,
  readOrAssume,
  type Source,
  unexpected,
} from "./values.ts";

export interface LayerPlan {
  /** As in the configuration; null for classes that know no layer types. */
  readonly layerType: string | null;
  /** False: the layer attends without positions, or does not attend at all. */
  readonly rotary: boolean;
  readonly slidingWindow: number | null;
  readonly attentionChunkSize: number | null;
}

export type LayerRule = (source: Source, numLayers: number) => LayerPlan[];

/** Layer types without attention: order comes from recurrence or convolution. */
export const recurrentTypes: readonly string[] = ["linear_attention", "conv"];

const attentionTypes = ["full_attention", "sliding_attention", "chunked_attention", "indexed_attention"];
const knownTypes = [...attentionTypes, ...recurrentTypes];
/** Names that older files use. */
const olderNames: Readonly<Record<string, string>> = {
  attention: "full_attention",
  mamba: "linear_attention",
  deepseek_sparse_attention: "indexed_attention",
};

/** Keys of a nested rope_parameters dict are layer types. */
export function isLayerType(name: string): boolean {
  return knownTypes.includes(name);
}

/** Every layer alike, no window. */
export const uniform: LayerRule = (_, numLayers) => repeat(numLayers, plan(null));

/** Every layer alike, under `sliding_window` when there is one (and, where a class asks for it, `use_sliding_window`). */
export function windowed(options: { readonly gate?: boolean } = {}): LayerRule {
  return (source, numLayers) => {
    const open = options.gate !== true || (readOrAssume(source, ["use_sliding_window"], flag) ?? false);
    const window = open ? readWindow(source) : null;
    return repeat(numLayers, { ...plan(null), slidingWindow: window });
  };
}

type Pattern = (source: Source, numLayers: number) => string[];

interface Typed {
  readonly pattern: Pattern;
  /** Which layers rotate; all that attend when absent. */
  readonly rotates?: (source: Source, layerType: string) => boolean;
  /** Whether `use_sliding_window` must be true for a window. */
  readonly gate?: boolean;
  /** The window of the sliding layers; `sliding_window` when absent. */
  readonly window?: (source: Source) => number | null;
  /** Gemma 4: the last layer is forced to full attention. */
  readonly lastIsFull?: boolean;
}

/** Layers by `layer_types`, else by the pattern of the class. */
export function typed(options: Typed): LayerRule {
  return (source, numLayers) => {
    const types = readLayerTypes(source, numLayers, options.pattern);
    if (options.lastIsFull && types.length > 0 && types.at(-1) !== "full_attention") {
      source.findings.push({
        code: "last-layer-forced",
        severity: "warning",
        where: join(source.path, `layer_types[${numLayers - 1}]`),
        got: types.at(-1),
        expected: "full_attention",
        why: "The class forces its last layer to full attention; so does this reading.",
        fix: 'write "full_attention" last',
      });
      types[types.length - 1] = "full_attention";
    }
    const sliding = types.includes("sliding_attention");
    const open = options.gate !== true || (readOrAssume(source, ["use_sliding_window"], flag) ?? false);
    const window = sliding && open ? (options.window ?? readWindow)(source) : null;
    if (sliding && window === null) {
      source.findings.push({
        code: "window-missing",
        severity: "warning",
        where: join(source.path, open ? "sliding_window" : "use_sliding_window"),
        got: open ? null : false,
        expected: "a window, since layers are of type sliding_attention",
        why: "These layers see every key here; transformers 5.24.0 raises an error when it builds their mask.",
        fix: open ? 'write "sliding_window"' : 'write "use_sliding_window": true',
      });
    }
    return types.map((layerType) => ({
      layerType,
      rotary: !recurrentTypes.includes(layerType) && (options.rotates?.(source, layerType) ?? true),
      slidingWindow: layerType === "sliding_attention" ? window : null,
      attentionChunkSize: null,
    }));
  };
}

/** Full attention everywhere. */
export const allFull: Pattern = (_, numLayers) => repeat(numLayers, "full_attention");

/** Full attention on layer i when (i + 1) is a multiple of n (or i itself, `from: 0`); n from a key when one is named. */
export function everyNth(n: number, options: { key?: string; from?: 0 | 1; other?: string } = {}): Pattern {
  const { key, from = 1, other = "sliding_attention" } = options;
  return (source, numLayers) => {
    const period = (key === undefined ? null : (read(source, key, count) ?? read(source, `_${key}`, count))) ?? n;
    return Array.from({ length: numLayers }, (_, i) => ((i + from) % period === 0 ? "full_attention" : other));
  };
}

/** Qwen: layers from `max_window_layers` on slide, when windows are in use at all. */
export const fromMaxWindowLayers: Pattern = (source, numLayers) => {
  const used = read(source, "use_sliding_window", flag) ?? source.defaults.use_sliding_window ?? true;
  if (used !== true || readWindow(source, true) === null) return repeat(numLayers, "full_attention");
  const first = readOrAssume(source, ["max_window_layers"], index) ?? numLayers;
  return Array.from({ length: numLayers }, (_, i) => (i >= first ? "sliding_attention" : "full_attention"));
};

/** Qwen2-MoE: every other layer below `max_window_layers` slides, when windows are in use. */
export const alternateBelowMaxWindowLayers: Pattern = (source, numLayers) => {
  if ((read(source, "use_sliding_window", flag) ?? false) !== true) return repeat(numLayers, "full_attention");
  const end = readOrAssume(source, ["max_window_layers"], index) ?? numLayers;
  return Array.from({ length: numLayers }, (_, i) => (i % 2 === 0 && i < end ? "sliding_attention" : "full_attention"));
};

/** Ministral: every layer slides when there is a window. */
export const slidingWhenWindowed: Pattern = (source, numLayers) =>
  repeat(numLayers, readWindow(source, true) === null ? "full_attention" : "sliding_attention");

/** EXAONE 4: as everyNth(4), and full attention everywhere without a window. */
export const everyNthWhenWindowed: Pattern = (source, numLayers) => {
  if (readWindow(source, true) === null) return repeat(numLayers, "full_attention");
  const written = source.record.sliding_window_pattern;
  if (typeof written !== "string") return everyNth(4, { key: "sliding_window_pattern" })(source, numLayers);
  // "LLLG": L slides, G is global; repeated over the layers.
  if (!/^[LG]+$/.test(written)) {
    throw unexpected(join(source.path, "sliding_window_pattern"), "an integer, or letters L and G", written);
  }
  return Array.from({ length: numLayers }, (_, i) =>
    written[i % written.length] === "G" ? "full_attention" : "sliding_attention",
  );
};

/** LFM2: full attention on `full_attn_idxs`, a short convolution elsewhere. */
export const fullOnListed: Pattern = (source, numLayers) => {
  const listed = source.record.full_attn_idxs;
  if (listed === undefined || listed === null) return repeat(numLayers, "full_attention");
  if (!Array.isArray(listed) || !listed.every((i) => Number.isInteger(i))) {
    throw unexpected(join(source.path, "full_attn_idxs"), "a list of layer indices", listed);
  }
  return Array.from({ length: numLayers }, (_, i) => (listed.includes(i) ? "full_attention" : "conv"));
};

/** Jamba: attention on layers i with i mod attn_layer_period = attn_layer_offset, Mamba elsewhere. */
export const everyPeriod: Pattern = (source, numLayers) => {
  const period = readOrAssume(source, ["attn_layer_period"], count) ?? 1;
  const offset = readOrAssume(source, ["attn_layer_offset"], index) ?? 0;
  return Array.from({ length: numLayers }, (_, i) => (i % period === offset ? "full_attention" : "linear_attention"));
};

/** Granite 4: `layer_types`, which older files call `layers_block_type`; Mamba everywhere without either. */
export const layersBlockType: Pattern = (source, numLayers) =>
  has(source, "layers_block_type")
    ? checkTypes(source, "layers_block_type", read(source, "layers_block_type", names) ?? [], numLayers)
    : repeat(numLayers, "linear_attention");

/**
 * SmolLM3 and Llama 4: `no_rope_layers` says 1 for a layer that rotates and 0 for one that does not (the name says the
 * opposite); without it every `no_rope_layer_interval`-th layer does not.
 */
export function noRopeLayers(options: { readonly emptyMeansDefault: boolean; readonly chunked: boolean }): LayerRule {
  return (source, numLayers) => {
    const rotates = readNoRopeLayers(source, numLayers, options.emptyMeansDefault);
    const chunk = options.chunked ? readOrAssume(source, ["attention_chunk_size"], count) : null;
    const sliding = options.chunked ? false : (read(source, "use_sliding_window", flag) ?? false);
    const window = sliding ? readWindow(source) : null;
    const types = has(source, "layer_types")
      ? readLayerTypes(source, numLayers, allFull)
      : rotates.map((rotary) => {
          if (options.chunked) return rotary && chunk !== null ? "chunked_attention" : "full_attention";
          return window !== null && !rotary ? "sliding_attention" : "full_attention";
        });
    return types.map((layerType, i) => ({
      layerType,
      rotary: rotates[i]!,
      slidingWindow: layerType === "sliding_attention" ? window : null,
      attentionChunkSize: layerType === "chunked_attention" ? chunk : null,
    }));
  };
}

/** Llama 3.2 Vision: the layers of `cross_attention_layers` attend to the picture, without positions. */
export const withCrossAttention: LayerRule = (source, numLayers) => {
  const listed = source.record.cross_attention_layers ?? [3, 8, 13, 18, 23, 28, 33, 38];
  if (!Array.isArray(listed) || !listed.every((i) => Number.isInteger(i))) {
    throw unexpected(join(source.path, "cross_attention_layers"), "a list of layer indices", listed);
  }
  return Array.from({ length: numLayers }, (_, i) => {
    const crosses = listed.includes(i);
    return { ...plan(crosses ? "cross_attention" : "full_attention"), rotary: !crosses };
  });
};

/** ModernBERT looks local_attention / 2 tokens to each side. */
export function bothSides(source: Source): number | null {
  const reach = readOrAssume(source, ["local_attention"], count);
  return reach === null ? null : 2 * Math.floor(reach / 2) + 1;
}

/** ModernBERT's decoder keeps half of local_attention, itself included. */
export function halfOfLocalAttention(source: Source): number | null {
  const reach = readOrAssume(source, ["local_attention"], count);
  return reach === null ? null : Math.floor(reach / 2);
}

/** Gemma 3: the causal window, or, for its bidirectional encoders, half of it to each side. */
export function gemmaWindow(source: Source): number | null {
  const window = readWindow(source);
  const both = source.record.use_bidirectional_attention;
  if (window === null || both === undefined || both === null || both === false || both === "vision") return window;
  return 2 * (Math.floor(window / 2) + 1) + 1;
}

function readNoRopeLayers(source: Source, numLayers: number, emptyMeansDefault: boolean): boolean[] {
  const key = "no_rope_layers";
  const where = join(source.path, key);
  const listed = source.record[key];
  if (listed === undefined || listed === null || (emptyMeansDefault && Array.isArray(listed) && listed.length === 0)) {
    const interval = readOrAssume(source, ["no_rope_layer_interval"], count) ?? 4;
    source.findings.push({
      code: "layer-pattern-assumed",
      severity: "note",
      where,
      got: listed ?? null,
      expected: `no rotation on every ${interval}th layer, as the class does`,
      why: "The file does not list them.",
      fix: "",
    });
    return Array.from({ length: numLayers }, (_, i) => (i + 1) % interval !== 0);
  }
  if (!Array.isArray(listed) || !listed.every((v) => v === 0 || v === 1 || typeof v === "boolean")) {
    throw unexpected(where, "a list of 0 (no rotation) and 1 (rotation)", listed);
  }
  if (listed.length !== numLayers) throw unexpected(where, `one entry for each of ${numLayers} layers`, listed.length);
  return listed.map(Boolean);
}

function readLayerTypes(source: Source, numLayers: number, pattern: Pattern): string[] {
  const listed = read(source, "layer_types", names);
  if (listed !== null) return checkTypes(source, "layer_types", listed, numLayers);
  const assumed = pattern(source, numLayers);
  const kinds = [...new Set(assumed)];
  if (kinds.length > 1) {
    const full = assumed.flatMap((type, i) => (type === kinds[0] ? [] : [i]));
    source.findings.push({
      code: "layer-pattern-assumed",
      severity: "note",
      where: join(source.path, "layer_types"),
      got: null,
      expected: `${kinds[0]}, and ${kinds.slice(1).join(", ")} on layers ${full.slice(0, 4).join(", ")}${full.length > 4 ? ", …" : ""}, as the class does`,
      why: "The file does not list them.",
      fix: "",
    });
  }
  return assumed;
}

function checkTypes(source: Source, key: string, listed: readonly string[], numLayers: number): string[] {
  const where = join(source.path, key);
  if (listed.length !== numLayers) throw unexpected(where, `one entry for each of ${numLayers} layers`, listed.length);
  return listed.map((written, i) => {
    const type = Object.hasOwn(olderNames, written) ? olderNames[written]! : written;
    if (!knownTypes.includes(type)) {
      const near = nearest(type, knownTypes);
      throw unexpected(
        `${where}[${i}]`,
        `one of ${knownTypes.join(", ")}`,
        written,
        near.length === 0 ? "" : `nearest: ${near.join(", ")}`,
      );
    }
    return type;
  });
}

function readWindow(source: Source, quiet = false): number | null {
  // 0 is how Qwen2-MoE files say none.
  if (source.record.sliding_window === 0) return null;
  if (!quiet) return readOrAssume(source, ["sliding_window"], count);
  if (has(source, "sliding_window")) return read(source, "sliding_window", count);
  return (source.defaults.sliding_window as number | undefined) ?? null;
}

function plan(layerType: string | null): LayerPlan {
  return { layerType, rotary: true, slidingWindow: null, attentionChunkSize: null };
}

function repeat<T>(times: number, value: T): T[] {
  return Array.from({ length: times }, () => value);
}

/** Whether a rotary dict holds one dict a layer type rather than the settings themselves. */
export function isNested(dict: Readonly<Record<string, unknown>>): boolean {
  return Object.entries(dict).some(([key, value]) => isObject(value) || (value === null && isLayerType(key)));
}
