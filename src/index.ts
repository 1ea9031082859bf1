// longhand: the parts most programs start from. Everything else has a sub-path of its own.

export { inspectModel } from "./advice/inspect.ts";
export { computeRopeFrequencies } from "./encodings/rope/scaling/index.ts";
export { rotaryTables } from "./encodings/rope/tables.ts";
export { describeHuggingFace } from "./formats/huggingface/index.ts";
export { openModel } from "./formats/open-model.ts";
