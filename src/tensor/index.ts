// longhand/tensor: dtypes, shapes, plain tensors, and random numbers that every engine draws alike.

export {
  allocate,
  byteLength,
  type Dtype,
  dtypeFacts,
  dtypes,
  type FloatDtype,
  type IntegerDtype,
  isFloat,
  isInteger,
  type Storage,
  storageLength,
  type TensorData,
  viewBytes,
} from "./dtype.ts";
export {
  bfloat16Bits,
  bfloat16Value,
  decodeBfloat16,
  decodeFloat16,
  encodeBfloat16,
  encodeFloat16,
  float16Bits,
  float16Value,
} from "./float16.ts";
export { type Random, type RandomState, random, randomFrom } from "./random.ts";
export {
  broadcastShapes,
  broadcastStrides,
  elementCount,
  expectShape,
  formatShape,
  normalizeAxis,
  type Shape,
  strides,
} from "./shape.ts";
export {
  encodeNumbers,
  fromNumbers,
  roundTo,
  scalar,
  type Tensor,
  tensor,
  tensorBytes,
  toNumbers,
  zeros,
} from "./tensor.ts";
