// DeepSeek's second magnitude: under YaRN its models multiply the softmax scale by m(factor, mscale_all_dim)², because
// only part of a head is rotated and the rotary attention factor cannot reach the rest.

import { expectFinite, expectPositive } from "./errors.ts";
import { yarnMagnitude } from "./rope/scaling/scaling.ts";

/**
 * m², m = 0.1 · mscaleAllDim · ln(factor) + 1 (1 for factor ≤ 1): multiplies 1/√D in DeepSeek V2, V3 and Kimi K2.
 *
 * It is computed from mscale_all_dim alone; the cos/sin factor is the ratio m(mscale)/m(mscale_all_dim), which is 1
 * for these models. Leaving it out costs nothing at position 0 and the more the longer the text. DeepSeek-AI 2024
 * (2405.04434), and the authors' modeling_deepseek.py (`softmax_scale * mscale * mscale`); YaRN, Peng et al. 2023.
 *
 * @param factor YaRN's factor
 * @param mscaleAllDim `mscale_all_dim`; 0 means that it is not used, and gives 1
 * @throws RangeError for a factor that is not positive, or an mscaleAllDim that is not finite
 * @example
 * ```ts
 * import { deepseekSoftmaxFactor } from "longhand/encodings";
 * deepseekSoftmaxFactor(40, 1); // => 1.8738542070926265
 * deepseekSoftmaxFactor(40, 0.707); // => 1.5896261651208736
 * ```
 */
export function deepseekSoftmaxFactor(factor: number, mscaleAllDim: number): number {
  expectPositive("deepseekSoftmaxFactor", "factor", factor);
  expectFinite("deepseekSoftmaxFactor", "mscaleAllDim", mscaleAllDim);
  const m = yarnMagnitude(factor, mscaleAllDim);
  return m * m;
}
