// Which layers rotate, and which see only a window: rules by layer index i, counted from 0. Models mix layers so that
// a few see everything (often without rotation) and the rest stay local (Gemma 2 and 3, Llama 4, SmolLM3, Command A).

import { expectInteger, show } from "./errors.ts";

/** As in a configuration's layer_types. */
export type AttentionLayerType = "full_attention" | "sliding_attention" | "chunked_attention";

/**
 * True for layers n − 1, 2n − 1, …: (i + 1) mod n = 0. The rule behind "every n-th layer is NoPE" and "every n-th layer
 * is global".
 *
 * Source: transformers' Gemma 3 (2503.19786, section 2), SmolLM3 and Llama 4 configurations.
 *
 * @throws RangeError for a count or an interval that is not an integer of at least 1
 * @example
 * ```ts
 * import { everyNthLayer } from "longhand/encodings";
 * everyNthLayer(6, 3); // => [false, false, true, false, false, true]
 * ```
 */
export function everyNthLayer(numLayers: number, interval: number): boolean[] {
  expectInteger("everyNthLayer", "numLayers", numLayers, 1);
  expectInteger("everyNthLayer", "interval", interval, 1);
  return Array.from({ length: numLayers }, (_, i) => (i + 1) % interval === 0);
}

/**
 * Which layers rotate, in SmolLM3 and Llama 4. An explicit `noRopeLayers` wins. The name is a trap: in that list
 * **1 means that the layer has RoPE**, 0 that it has none.
 *
 * Source: RNoPE, Yang et al. 2025 (2501.18795); transformers' SmolLM3Config and Llama4TextConfig.
 *
 * @param options.noRopeLayers one 1 (RoPE) or 0 (NoPE) a layer
 * @param options.noRopeLayerInterval every this many-th layer is NoPE; 4 when absent
 * @returns true for each layer that rotates
 * @throws RangeError when the list does not hold one 0 or 1 a layer
 * @example
 * ```ts
 * import { ropeLayers } from "longhand/encodings";
 * ropeLayers({ numLayers: 4 }); // => [true, true, true, false]
 * ropeLayers({ numLayers: 3, noRopeLayers: [0, 1, 1] }); // => [false, true, true]
 * ```
 */
export function ropeLayers(options: {
  readonly numLayers: number;
  readonly noRopeLayers?: readonly number[] | null;
  readonly noRopeLayerInterval?: number | null;
}): boolean[] {
  const who = "ropeLayers";
  const numLayers = expectInteger(who, "numLayers", options.numLayers, 1);
  const list = options.noRopeLayers ?? null;
  if (list === null) return everyNthLayer(numLayers, options.noRopeLayerInterval ?? 4).map((nope) => !nope);
  if (list.length !== numLayers) {
    throw new RangeError(
      `${who}: expected noRopeLayers to hold one number a layer, ${numLayers}, got ${list.length}` +
        (list.length === 0 ? "; leave it out for every 4th layer without RoPE" : ""),
    );
  }
  return list.map((value, layer) => {
    if (value !== 0 && value !== 1) {
      throw new RangeError(`${who}: expected noRopeLayers[${layer}] to be 1 (RoPE) or 0 (NoPE), got ${show(value)}`);
    }
    return value === 1;
  });
}

/**
 * The type of each layer under a sliding pattern n: layer i sees everything iff (i + 1) mod n = 0, else a window. 2 for
 * Gemma 2, 6 for Gemma 3, 4 for Cohere2.
 *
 * Source: Gemma 3 technical report (2503.19786), section 2; transformers' `sliding_window_pattern`.
 *
 * @throws RangeError for a count or a pattern that is not an integer of at least 1
 * @example
 * ```ts
 * import { slidingPattern } from "longhand/encodings";
 * slidingPattern(4, 2); // => ["sliding_attention", "full_attention", "sliding_attention", "full_attention"]
 * ```
 */
export function slidingPattern(numLayers: number, pattern: number): AttentionLayerType[] {
  return everyNthLayer(numLayers, pattern).map((full) => (full ? "full_attention" : "sliding_attention"));
}

/**
 * Which layers rotate when only local ones do: sliding and chunked layers rotate, full layers are NoPE (Cohere2 of
 * Command A and R7B; Llama 4 says the same with its own list).
 *
 * Source: Yang et al. 2025 (2501.18795), section 4; transformers' Cohere2Attention.
 *
 * @returns true for each layer that rotates
 * @throws RangeError for an unknown layer type
 * @example
 * ```ts
 * import { ropeOnLocalLayers, slidingPattern } from "longhand/encodings";
 * ropeOnLocalLayers(slidingPattern(4, 4)); // => [true, true, true, false]
 * ```
 */
export function ropeOnLocalLayers(layerTypes: readonly AttentionLayerType[]): boolean[] {
  return layerTypes.map((type, layer) => {
    if (type === "full_attention") return false;
    if (type === "sliding_attention" || type === "chunked_attention") return true;
    throw new RangeError(
      `ropeOnLocalLayers: expected layerTypes[${layer}] to be "full_attention", "sliding_attention" or ` +
        `"chunked_attention", got ${show(type)}`,
    );
  });
}
