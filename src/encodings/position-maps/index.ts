// Position maps, one file each.

export * from "./dual-chunk.ts";
export type { PositionMap, PositionView } from "./position-map.ts";
export * from "./rerope.ts";
export * from "./self-extend.ts";
export * from "./string.ts";
