// longhand/encodings: positions to what attention needs. Pure functions in float64, no dependency.

export * from "./alibi.ts";
export * from "./cope.ts";
export * from "./fire.ts";
export * from "./fope.ts";
export * from "./kerple.ts";
export * from "./layer-patterns.ts";
export * from "./learned-absolute.ts";
export * from "./logit-temperature.ts";
export * from "./nope.ts";
export { naturalLogarithm, power, powers } from "./numerics/power.ts";
export { sinCos, sinCosOfProducts } from "./numerics/sincos.ts";
export * from "./position-encoding.ts";
export * from "./position-maps/index.ts";
export * from "./rope/index.ts";
export * from "./row-similarity.ts";
export * from "./score-by-distance.ts";
export * from "./sinusoidal.ts";
export * from "./softmax-factor.ts";
export * from "./t5-relative-bias.ts";
export * from "./vector-scores.ts";
export * from "./xpos.ts";
