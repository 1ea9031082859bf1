// longhand/training: small decoders with any position encoding, trained as one program a step.
//
//   spec (model.ts) + encodings (encodings.ts) ──► program.ts: forward, backward, update as one graph
//   data.ts ──► Trainer (trainer.ts) ──► weights, losses, checkpoint.ts

export { type BlockSizes, bloomBlocks, gpt2Blocks, type LlamaBlockSizes, llamaBlocks, mptBlocks } from "./blocks.ts";
export { decodeTrainingCheckpoint, encodeSafetensors, encodeTrainingCheckpoint } from "./checkpoint.ts";
export {
  type Batch,
  type BatchSource,
  type TokenBatchOptions,
  tokenBatches,
  type ValidationOptions,
  validationBatches,
} from "./data.ts";
export {
  isLearned,
  type LearnedEncoding,
  learnedEncoding,
  positionFeeds,
  type TrainingEncoding,
} from "./encodings.ts";
export { type ExportDtype, type ExportForm, type ExportOptions, exportForm, exportModel } from "./export/index.ts";
export { exportOptionsOf } from "./export/of-run.ts";
export { type PartedText, partText, textDocument } from "./held-out.ts";
export { type ModelRecipe, readTrainable, recipeFrom, type TrainableModel } from "./import.ts";
export { type LiveCheckpoint, LiveRun, type LiveRunOptions } from "./live-run.ts";
export { type SmallDecoderOptions, smallDecoder, type TrainableSpec } from "./model.ts";
export {
  type AdamWOptions,
  adamW,
  chain,
  clipByGlobalNorm,
  type Optimizer,
  type OptimizerState,
  type UpdateContext,
} from "./optimizer.ts";
export {
  type Initial,
  initialWeights,
  layoutParameters,
  type ParameterLayout,
  type ParameterSpec,
  type PlacedParameter,
  packWeights,
  unpackWeights,
} from "./parameters.ts";
export { lossProgram, modelLayout, type ProgramOptions, type StepOptions, stepProgram } from "./program.ts";
export {
  bytesWithBos,
  canDrop,
  encodingsAt,
  type RecipeBlocks,
  type RecipeEncoding,
  type RecipeOptions,
  type RecipeSize,
  recipeEncodings,
  recipeSizes,
  type TrainingPlan,
  type TrainingRecipe,
  trainingPlan,
  trainingRecipe,
} from "./recipe.ts";
export {
  decodeRunCheckpoint,
  encodeRunCheckpoint,
  type RunCheckpoint,
  type RunOptions,
  type RunResult,
  runRecipe,
  type TrainingRow,
  type Validation,
} from "./run.ts";
export { constantRate, type Schedule, type ScheduleOptions, warmupCosine, warmupStableDecay } from "./schedule.ts";
export {
  type AdditionOptions,
  type AssociativeRecallOptions,
  addition,
  associativeRecall,
  copy,
  createTask,
  type Example,
  evaluateTask,
  exampleBatch,
  exampleStream,
  exampleText,
  expectSize,
  type PasskeyOptions,
  passkey,
  reverse,
  type Scorer,
  type SortingOptions,
  sorting,
  type Task,
  type TaskBatchOptions,
  type TaskEvaluationOptions,
  type TaskName,
  type TaskOptions,
  type TaskResult,
  type Turn,
  taskBatches,
  taskLength,
  taskNames,
  tasks,
  wilsonInterval,
} from "./tasks/index.ts";
export { type Scores, type StepResult, Trainer, type TrainerOptions, type TrainingCheckpoint } from "./trainer.ts";
export { widthScaledWeights } from "./width-scaled.ts";
