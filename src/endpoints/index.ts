// longhand/endpoints: models behind HTTP. Other engines score the prompts, Longhand makes the windows and the statistics.
//
//   wire: one request ──► pool: several servers, retries ──► engine records (vllm, sglang, openai, …) ──► EndpointModel
//   Nothing is sent but to addresses that the caller names.

export type { TokenScores } from "./answer.ts";
export { EndpointsByStrategy } from "./by-strategy.ts";
export { EndpointError } from "./endpoint-error.ts";
export { EndpointModel, type EndpointOptions, encodingKey, openEndpoint } from "./endpoint-model.ts";
export { type EngineName, engineNames } from "./engine.ts";
export { type InForce, type InForceCandidate, type InForceVerdict, inForce } from "./in-force.ts";
export { EndpointPool, type PoolOptions } from "./pool.ts";
export type { EndpointFacts, ProbeOptions } from "./probe.ts";
export { endpointAddress } from "./wire.ts";
