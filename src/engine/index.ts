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
export { type OnnxRuntimeOptions, onnxRuntimeBackend } from "./onnxruntime/index.ts";
export type { Provider } from "./onnxruntime/runtime.ts";
export { referenceBackend } from "./reference/index.ts";
