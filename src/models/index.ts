// longhand/models: from a checkpoint to a graph.
//
//   config.json, GGUF or llama2.c header ── settings.ts ──► family record (families/) ──► ModelSpec (spec.ts)
//   ModelSpec ── decoder.ts ──► one graph of its weights (matrices.ts); positions are inputs of it (positions.ts)
//   ModelSpec with an encoder ── encoder-decoder.ts ──► a graph a layer of the encoder, and one decoder (t5-bias.ts)
//   checkpoint.ts: a path → description, spec, and weights under our names (names.ts)
//
// A family is a record, never a class: which files it reads, how its settings differ from Llama's (DecoderFeatures), and
// what its weights are called. To add one, follow "Add a model family" in CONTRIBUTING.md: one file in families/, one
// line in families/index.ts, one tiny checkpoint from transformers to agree with.

export {
  type Checkpoint,
  type CheckpointParts,
  createCheckpoint,
  openCheckpoint,
  type WeightFile,
} from "./checkpoint.ts";
export {
  buildDecoder,
  type DecoderOptions,
  type DecoderProgram,
  type WindowCache,
} from "./decoder.ts";
export {
  biasInputs,
  buildEncoderDecoder,
  buildEncoderDecoderDecoder,
  type EncoderDecoderPrograms,
  isEncoderDecoder,
} from "./encoder-decoder.ts";
export { familyOf, modelFamilies } from "./families/index.ts";
export { type DecoderFeatures, decoderSpec, type ModelFamily } from "./family.ts";
export { type LearnedPositions, readLearnedPositions } from "./learned-positions.ts";
export { type ParameterSource, readFrom, type WeightForm } from "./matrices.ts";
export type { LayerWeight, ModelWeight, NameMap, WeightRule } from "./names.ts";
export { neighborWindowOf, type SelfExtendSizes, viewCount, viewedGroups } from "./position-views.ts";
export {
  createPositions,
  type GroupPositions,
  type PositionChoice,
  type Positions,
  type PositionTables,
} from "./positions.ts";
export { ggufSettings, huggingFaceSettings, llama2cSettings, type SettingKey, type Settings } from "./settings.ts";
export type { Activation, AttentionSpec, EncoderSpec, LayerSpec, MlpSpec, ModelSpec, NormSpec } from "./spec.ts";
export { applyStrategy, parseStrategy, type Strategy, shortForm, strategyApplies, trainedConfig } from "./strategy.ts";
export {
  type BiasChoice,
  type BiasPositions,
  BiasRows,
  type BiasTable,
  createBiasPositions,
  type LearnedBiases,
} from "./t5-bias.ts";
export { readTables } from "./tables.ts";
