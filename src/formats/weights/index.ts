// Tensor data of checkpoints: one interface over safetensors, GGUF and llama2.c.

import { ggmlCodecs } from "./ggml/index.ts";

export type { FileAccess } from "./files.ts";
export { ggufWeights } from "./gguf.ts";
export { llama2cWeights } from "./llama2c.ts";
export { dequantizeRows } from "./matrix.ts";
export { openWeights } from "./open.ts";
export { safetensorsWeights } from "./safetensors.ts";
export type { QuantizedLayout, QuantizedMatrix, WeightInfo, Weights, WeightsOptions } from "./weights.ts";

/** The tensor types of GGUF whose data are read. */
export const readableGgmlTypes: readonly string[] = [...ggmlCodecs.keys()];
