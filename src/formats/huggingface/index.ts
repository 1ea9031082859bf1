// Hugging Face's config.json, schema versions 4 and 5: read to a ModelDescription; rotary dicts to the canonical union
// and back.

export { type DescribeOptions, describeHuggingFace } from "./describe.ts";
export { type ParsedRope, parseRopeParameters, type RopeContext, toHuggingFace } from "./rope-parameters.ts";
