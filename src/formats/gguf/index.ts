// GGUF: headers of one file or of a split checkpoint, and what they say of the model.

export { type GgufArchitecture, ggufArchitectures, type SlidingRules } from "./architectures.ts";
export { describeGguf } from "./description.ts";
export { type RopeFromDivisors, ropeFromDivisors } from "./divisors.ts";
export {
  decodeGgufArray,
  type GgufArray,
  type GgufHeader,
  type GgufPart,
  type GgufRotaryTensors,
  type GgufScalar,
  type GgufTensor,
  type GgufValue,
  readGgufHeader,
} from "./header.ts";
export { type GgufPatch, type MetadataChange, type PatchedGguf, patchGguf } from "./patch.ts";
export { openGguf, readGguf } from "./split.ts";
export {
  type GgmlType,
  type GgufScalarType,
  type GgufValueType,
  ggmlTypeOf,
  ggmlTypes,
  ggufScalarBytes,
  ggufValueTypes,
} from "./types.ts";
