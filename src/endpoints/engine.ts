// What an engine's HTTP interface is to us: how the losses of given tokens, a likely continuation, and facts about the
// server are asked for. One record an engine, in its own file; nothing else knows engines by name.

import type { JsonValue } from "../formats/bytes/index.ts";
import type { TokenScores } from "./answer.ts";
import type { WireRequest } from "./wire.ts";

export const engineNames = ["vllm", "sglang", "openai", "llama-cpp-python", "llama-server"] as const;
export type EngineName = (typeof engineNames)[number];

/** Sends a request to a server of the engine. */
export type Ask = (request: WireRequest) => Promise<JsonValue>;

export interface ScoreRequest {
  readonly tokens: readonly number[];
  /** Losses of tokens from this index on are wanted; at least 1. */
  readonly from: number;
  /** As the server calls its model. */
  readonly model: string;
}

export interface GenerateRequest {
  readonly prompt: readonly number[];
  readonly maxTokens: number;
  readonly stop: readonly number[];
  readonly model: string;
}

/** @param memory what the server has said once and for all, kept as long as the model that uses the scorer */
export type Scorer = (ask: Ask, request: ScoreRequest, memory: Map<string, JsonValue>) => Promise<TokenScores>;

/** What a server says of itself. */
export interface ServerFacts {
  readonly version: string | null;
  /** Tokens of a prompt with what is generated; null where the server does not say. */
  readonly contextLength: number | null;
}

export interface Engine {
  readonly name: EngineName;
  readonly title: string;
  /** What a prompt is sent as. Not every list of ids is some text's. */
  readonly prompts: "ids" | "text";
  /** The losses of a whole prompt in one pass; a string: why the engine has none. */
  readonly score: Scorer | string;
  /** The losses of a few tokens after a prompt, one request each, where that is the only way to any. */
  readonly scoreEach?: Scorer;
  /** Greedy tokens after a prompt; null: the engine gives text alone. */
  readonly generate: ((ask: Ask, request: GenerateRequest) => Promise<readonly number[]>) | null;
  /** Ids of a text, without special tokens; null: the engine has no such route. */
  readonly tokenize: ((ask: Ask, text: string, model: string) => Promise<readonly number[]>) | null;
  /** Tokens to try it with, where any ids at all will not do. */
  readonly probeTokens?: (ask: Ask) => Promise<readonly number[]>;
  readonly facts: (ask: Ask, model: string) => Promise<ServerFacts>;
  /** How its context is made as long as `length`. */
  readonly lengthFlag: (length: number) => string;
}

/** An engine whose whole contract is one request and how its answer is read. */
export function oneRequest(
  request: (asked: ScoreRequest) => WireRequest,
  read: (answer: JsonValue, asked: ScoreRequest) => TokenScores,
): Scorer {
  return async (ask, asked) => read(await ask(request(asked)), asked);
}
