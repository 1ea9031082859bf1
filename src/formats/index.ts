// longhand/formats: checkpoints and configurations, read into one description. Hostile input: bounded before use.

export {
  type BuiltInModels,
  builtInModel,
  builtInModelsAt,
  builtInModelsIn,
  builtInNames,
  packagedModels,
} from "./built-in-models.ts";
export * from "./bytes/index.ts";
export type { Finding, Severity } from "./finding.ts";
export * from "./gguf/index.ts";
export * from "./huggingface/index.ts";
export * from "./llama2c/index.ts";
export type { ModelDescription, PositionGroup, PositionSettings } from "./model-description.ts";
export { type ModelFiles, type ModelSource, modelFiles } from "./model-files.ts";
export { nearest } from "./nearest.ts";
export { openModel } from "./open-model.ts";
export * from "./safetensors/index.ts";
export * from "./tokenizers/index.ts";
export * from "./weights/index.ts";
