// Rotary position encoding: scalings give frequencies, tables give angles, the rotation applies them.

export * from "./dialects/index.ts";
export * from "./hands.ts";
export * from "./layouts.ts";
export * from "./mrope.ts";
export * from "./rope.ts";
export * from "./rotation.ts";
export { gradientBase } from "./scaling/gradient.ts";
export {
  checkRopeParameters,
  computeRopeFrequencies,
  ropeDependsOnLength,
  ropeScalings,
  ropeTypes,
} from "./scaling/index.ts";
export { ntkBase } from "./scaling/ntk.ts";
export type * from "./scaling/parameters.ts";
export { type KeyRule, type RopeScaling, rotaryDimOf, yarnMagnitude } from "./scaling/scaling.ts";
export { yarnRange } from "./scaling/yarn.ts";
export * from "./tables.ts";
