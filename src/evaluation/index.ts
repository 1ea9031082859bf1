// longhand/evaluation: how far a model reads, measured, and kept in run folders.

export * from "./run-folder/index.ts";
export * from "./statistics/index.ts";
