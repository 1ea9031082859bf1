// longhand/engine: backends that run graphs, and sessions that keep states between runs.

export {
  type Backend,
  type Capabilities,
  DisposedError,
  type Feeds,
  type FileWeight,
  type LoadOptions,
  type Session,
  type WeightSource,
  type Weights,
} from "./backend.ts";
export type { Progress, RunOptions } from "./decoder.ts";
export {
  createLanguageModel,
  type EncodingOptions,
  type GeneratedToken,
  type GenerateOptions,
  LanguageModel,
  type LogLikelihood,
  loadLanguageModel,
  type Reading,
  type RunFacts,
  type Score,
  type ScoreOptions,
} from "./language-model.ts";
export type { LoadModelOptions, Precision } from "./load-options.ts";
export { type OnnxRuntimeOptions, onnxRuntimeBackend } from "./onnxruntime/index.ts";
export type { Provider } from "./onnxruntime/runtime.ts";
export { referenceBackend } from "./reference/index.ts";
export { type SamplingOptions, sampler } from "./sampling.ts";
export {
  createSequenceToSequenceModel,
  loadSequenceToSequenceModel,
  type SequenceToSequenceGenerateOptions,
  SequenceToSequenceModel,
} from "./sequence-to-sequence-model.ts";
