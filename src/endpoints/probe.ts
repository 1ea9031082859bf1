// What a server can, found by asking before anything is measured: who it is, whether it reads our tokens as we mean them,
// whether its numbers are there and stay the same, and how long a prompt it takes.

import type { JsonValue } from "../formats/bytes/index.ts";
import { EndpointError } from "./endpoint-error.ts";
import type { Ask, Engine, EngineName, Scorer } from "./engine.ts";
import { engines, identifyEngine } from "./engines.ts";
import { echoAnswer } from "./llama-server.ts";
import { chooseModel, servedModels } from "./models-route.ts";
import { openai } from "./openai.ts";

export interface ProbeOptions {
  /** Found by asking when absent. */
  readonly engine?: EngineName;
  /** The model's name on the server; needed where it serves several. */
  readonly model?: string;
  /** A short text and its ids, without special tokens, by the tokenizer that windows are made with. */
  readonly sample?: { readonly text: string; readonly tokens: readonly number[]; readonly bos: number | null };
  /** Tokens of the longest prompt to come. */
  readonly length?: number;
  /** Scores by one request a token where an engine has no other way. */
  readonly tokenByToken?: boolean;
}

export interface EndpointFacts {
  readonly engine: EngineName;
  readonly version: string | null;
  readonly model: string;
  readonly contextLength: number | null;
  /** Whether the server's tokenizer was seen to give our ids. */
  readonly tokenizer: "the same" | "not asked";
  readonly prompts: Engine["prompts"];
  /** How losses come: of a prompt in one pass, token by token, or not at all. */
  readonly losses: "prompt" | "token by token" | "none";
  /** Greatest difference of a loss between two equal requests, nats; null where none was scored. */
  readonly repeatDifference: number | null;
}

export interface Probed {
  readonly facts: EndpointFacts;
  readonly engine: Engine;
  /** Of whole texts; a string: why not. */
  readonly score: Scorer | string;
  /** Of a few tokens after a prompt. */
  readonly scoreContinuation: Scorer | string;
  /** Losses of the sample, to hold servers against each other; null where none was scored. */
  readonly sampleLosses: Float64Array | null;
}

/** Ids that every vocabulary has, where no tokenizer is at hand. */
const anyTokens = [5, 6, 7, 8, 9, 10];

/**
 * Asks a server what it can.
 *
 * @throws EndpointError for what cannot be used, with the reason; RangeError for a model that is not served, other token
 *   ids, or a context that is too short
 */
export async function probeEndpoint(ask: Ask, options: ProbeOptions = {}): Promise<Probed> {
  const { sample, length, tokenByToken = false } = options;
  const models = await servedModels(ask);
  const name = options.engine ?? (await identifyEngine(models, ask));
  const engine = engines[name];
  const model = chooseModel(models, options.model);
  const { version, contextLength } = await engine.facts(ask, model);
  // One token more than the prompt: every engine generates at least one.
  if (length !== undefined && contextLength !== null && length + 1 > contextLength) {
    throw new RangeError(
      `endpoint: expected a context of at least ${length + 1} tokens, for ${length} and the one that is generated, got ` +
        `${contextLength}; start it with ${engine.lengthFlag(length + 1)}`,
    );
  }
  const tokenizer = await expectTokenizer(engine, ask, model, sample);

  let score = engine.score;
  if (name === "llama-server" && (await echoAnswer(ask, model).catch(() => "none")) === "prompt") score = openai.score;
  const each = engine.scoreEach;
  const scoreContinuation = typeof score === "string" && each !== undefined ? each : score;
  if (typeof score === "string" && tokenByToken && each !== undefined) score = each;

  const tokens =
    sample === undefined
      ? await (engine.probeTokens?.(ask) ?? anyTokens)
      : [...(sample.bos === null ? [] : [sample.bos]), ...sample.tokens];
  const scorer = typeof score === "string" ? scoreContinuation : score;
  let sampleLosses: Float64Array | null = null;
  let repeatDifference: number | null = null;
  if (typeof scorer !== "string") {
    const memory = new Map<string, JsonValue>();
    const from = typeof score === "string" ? tokens.length - 1 : 1;
    const request = { tokens, from, model };
    sampleLosses = (await scorer(ask, request, memory)).losses;
    const again = (await scorer(ask, request, memory)).losses;
    repeatDifference = sampleLosses.reduce((most, loss, i) => Math.max(most, Math.abs(loss - again[i]!)), 0);
  }
  const losses = typeof score === "string" ? "none" : score === each ? "token by token" : "prompt";
  return {
    engine,
    score,
    scoreContinuation,
    sampleLosses,
    facts: {
      engine: name,
      version,
      model,
      contextLength,
      tokenizer,
      prompts: engine.prompts,
      losses,
      repeatDifference,
    },
  };
}

async function expectTokenizer(
  engine: Engine,
  ask: Ask,
  model: string,
  sample: ProbeOptions["sample"],
): Promise<EndpointFacts["tokenizer"]> {
  if (engine.tokenize === null || sample === undefined) return "not asked";
  let ids: readonly number[];
  try {
    ids = await engine.tokenize(ask, sample.text, model);
  } catch (error) {
    // A gateway in front of a server may let its scoring route through alone.
    if (error instanceof EndpointError && (error.status === 404 || error.status === 405)) return "not asked";
    throw error;
  }
  const { tokens } = sample;
  if (ids.length !== tokens.length || ids.some((id, i) => id !== tokens[i])) {
    throw new RangeError(
      `endpoint: expected the tokenizer of MODEL, which makes ${JSON.stringify(sample.text.slice(0, 30))} into ` +
        `[${tokens.slice(0, 8).join(", ")}, …], got one that makes it into [${ids.slice(0, 8).join(", ")}, …]; ` +
        "MODEL or --tokenizer must be what the server serves",
    );
  }
  return "the same";
}
