// Initial weights for narrow models. 0.02 is the deviation of GPT-2's matrices, about 1/√inputs at its width of 768; at a
// width of 64 it makes every score of attention almost zero, and a model needs thousands of steps to find out where to
// look. With 1/√inputs a product keeps the size of what goes in, at any width (LeCun et al. 1998, "Efficient BackProp").

import type { Tensor } from "../tensor/index.ts";
import { initialWeights, type ParameterLayout, unpackWeights } from "./parameters.ts";

/** What GPT-2's scheme gives matrices of its own. */
const GPT2_DEVIATION = 0.02;

/**
 * The initial weights of a seed, with matrices and embeddings (token and position) of standard deviation 1/√inputs in
 * place of 0.02; an embedding's inputs are its width. What writes to the residual stream stays smaller by √(2L), and what
 * begins otherwise (norms, biases of attention) as it is.
 *
 * @returns weights by name, for TrainerOptions.weights
 * @example
 * ```ts
 * import { modelLayout, smallDecoder, widthScaledWeights } from "longhand/training";
 * import { nope } from "longhand/encodings";
 * const spec = smallDecoder({ vocabSize: 256, hiddenSize: 64, numLayers: 2, numHeads: 4, intermediateSize: 176 });
 * const weights = widthScaledWeights(modelLayout({ spec, encodings: [nope()], length: 8 }), 1);
 * const { data } = weights.get("embedding.weight");
 * const deviation = Math.sqrt(data.reduce((sum, x) => sum + x * x, 0) / data.length);
 * Math.abs(deviation - 1 / 8) < 0.002; // => true
 * ```
 */
export function widthScaledWeights(layout: ParameterLayout, seed: number): Map<string, Tensor<"f32">> {
  const weights = unpackWeights(layout, initialWeights(layout, seed));
  for (const { name, shape, initial } of layout.parameters) {
    const isMatrix = initial.kind === "normal" && shape.length === 2;
    if (!isMatrix || /\.(relativeBias|fire)\./.test(name)) continue;
    const factor = 1 / (GPT2_DEVIATION * Math.sqrt(shape[1]!));
    const { data } = weights.get(name)!;
    for (let i = 0; i < data.length; i++) data[i] = data[i]! * factor;
  }
  return weights;
}
