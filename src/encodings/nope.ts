// NoPE: no position encoding at all. Order is visible only through the causal mask: without a mask, attention is
// equivariant to any permutation of its input. DroPE (Gelberg et al. 2025, 2512.12167) arrives here by removing a
// rotary encoding after pre-training: its tables become cos = 1, sin = 0.

import type { NoPositionEncoding } from "./position-encoding.ts";

/**
 * No position encoding.
 *
 * Haviv et al. 2022 (2203.16634); Kazemnejad et al. 2023 (2305.19466), section 4.
 *
 * @example
 * ```ts
 * import { nope } from "longhand/encodings";
 * nope(); // => { site: "none", name: "nope" }
 * ```
 */
export function nope(): NoPositionEncoding {
  return { site: "none", name: "nope" };
}
