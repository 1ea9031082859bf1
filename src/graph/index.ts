// longhand/graph: programs over tensors as plain data. One list of ops, a builder, a printer, and ONNX as a target.

export { blockAttention, blockAttentionGradient, isBlockAttention } from "./attention-blocks.ts";
export { GraphBuilder, graphBuilder, type Operand } from "./builder.ts";
export { decomposeAttention, decomposeRotary } from "./decompose.ts";
export {
  addDims,
  canonicalDim,
  type Dim,
  dimNames,
  divideDims,
  evaluateDim,
  evaluateShape,
  isDimName,
  multiplyDims,
  productOfDims,
  subtractDims,
} from "./dims.ts";
export { MissingWeightError, nearestName, UnsupportedOpError } from "./errors.ts";
export {
  type GradientContext,
  type GradientOptions,
  type GradientRule,
  gradientRule,
  gradientRules,
  gradients,
} from "./gradients.ts";
export { hasFusedAttention } from "./onnx/attention.ts";
export { lowerToOnnx, type OnnxOptions, type OnnxProgram, type OnnxUpdate, printOnnx, toOnnx } from "./onnx/compile.ts";
export type { OnnxTarget } from "./onnx/emitter.ts";
export { onnxLowering } from "./onnx/lowering.ts";
export { type ExternalBytes, encodeOnnx, type OnnxModel, onnxTypes } from "./onnx/protobuf.ts";
export {
  type AttentionAttributes,
  type Attributes,
  type BlockFormat,
  type Graph,
  type Inputs,
  inputEntries,
  mapInputs,
  type Node,
  type NodeOf,
  nodeInputs,
  type OpName,
  opNames,
  ops,
  type StateUpdate,
  type Value,
  type ValueType,
} from "./ops.ts";
export { printGraph, printNode } from "./print.ts";
export { formatType, type ShapeRule, shapeRules } from "./shapes.ts";
