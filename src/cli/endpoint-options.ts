// The options by which a command has its tokens scored by servers instead of by the weights at hand. A server runs one
// strategy, the one that it was started with; so a list of servers is a list of strategies.

import { type Command, Option } from "commander";
import { EndpointsByStrategy, type EngineName, encodingKey, engineNames, openEndpoint } from "../endpoints/index.ts";
import {
  defaultStrategies,
  type EvaluationStrategy,
  type JsonRecord,
  parseEvaluationStrategy,
  type StrategyLengths,
  splitStrategies,
} from "../evaluation/index.ts";
import type { ModelDescription } from "../formats/model-description.ts";
import type { Tokenizer } from "../formats/tokenizers/index.ts";
import { tokenCount } from "./options.ts";
import { palette } from "./terminal.ts";

export interface EndpointFlags {
  readonly endpoint?: string;
  readonly engine?: EngineName;
  readonly servedModel?: string;
  readonly tokenizer?: string;
  readonly concurrency?: number;
  readonly tokenByToken?: true;
}

/** The environment variable that holds the key: in no command line, and so in no run folder. */
export const keyVariable: "LONGHAND_API_KEY" = "LONGHAND_API_KEY";

export const endpointHelp: string = `
--endpoint has servers score: vLLM, SGLang, any with OpenAI's echo, llama-cpp-python's; llama-server answers needles. MODEL
then says what they serve (a folder with config.json and tokenizer is enough); its weights are not read. Each server runs
the strategy that it was started with: none=http://a:8000,yarn:4=http://b:8000; without a name, what MODEL's file says.
Several servers of one strategy share the work. A key is read from ${keyVariable}. Nothing else is asked over a network.`;

export function addEndpointOptions(command: Command): Command {
  return command
    .option("--endpoint <list>", "servers that score, as http://host:8000 or yarn:4=http://host:8000,… (below)")
    .addOption(new Option("--engine <name>", "what the servers are; found out when absent").choices(engineNames))
    .option("--served-model <name>", "the model's name on the servers, where they have several")
    .option("--tokenizer <model>", "whose tokenizer makes the tokens; MODEL's when absent")
    .option("--concurrency <n>", "requests at once to each server; 4 when absent", tokenCount)
    .option("--token-by-token", "of llama-server: losses at a request a token, as fast as it generates");
}

/** The servers of one strategy. */
export interface ServerGroup {
  readonly strategy: EvaluationStrategy;
  readonly addresses: readonly string[];
}

/**
 * The servers of an --endpoint list by strategy, in its order; null without one.
 *
 * @param unnamed the strategy of a server without a name
 */
export function serverGroups(
  { endpoint, engine, servedModel, concurrency, tokenByToken }: EndpointFlags,
  lengths: StrategyLengths,
  unnamed: string,
): ServerGroup[] | null {
  if (endpoint === undefined) {
    const given = Object.entries({ engine, servedModel, concurrency, tokenByToken }).find(
      ([, value]) => value !== undefined,
    );
    if (given === undefined) return null;
    const flag = given[0].replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    throw new RangeError(`--${flag}: expected --endpoint beside it, got none`);
  }
  const groups = new Map<string, { strategy: EvaluationStrategy; addresses: string[] }>();
  for (const part of splitStrategies(endpoint)) {
    const match = /^(?:(.+?)=)?(https?:\/\/.+)$/s.exec(part);
    // What does not look like an address is not repeated: it may hold a secret.
    if (match === null) {
      throw new RangeError("--endpoint: expected http://HOST:PORT or STRATEGY=http://HOST:PORT, got something else");
    }
    const strategy = parseEvaluationStrategy(match[1] ?? unnamed, lengths);
    if (strategy.reading.kind !== "whole") {
      throw new RangeError(
        `--endpoint: expected a strategy that a server can be started with, got ${strategy.name}, which is a way to read`,
      );
    }
    const key = encodingKey(strategy.encoding);
    const group = groups.get(key) ?? { strategy, addresses: [] };
    group.addresses.push(match[2]!);
    groups.set(key, group);
  }
  if (groups.size === 0) throw new RangeError("--endpoint: expected at least one address, got none");
  return [...groups.values()];
}

/** What a server without a name runs: the unscaled model, where the file has no scaling. */
export function unnamedStrategy(model: ModelDescription, lengths: StrategyLengths): string {
  return defaultStrategies(model, lengths).strategies.some(({ name }) => name === "as-is") ? "as-is" : "none";
}

/** Names for a list of strategies, when the command was given none. */
export function groupNames(groups: readonly ServerGroup[]): string {
  return groups.map(({ strategy }) => strategy.name).join(",");
}

/**
 * Those strategies that some server runs.
 *
 * @param asked whether a person listed them, so that one without a server is an error
 */
export function servedStrategies(
  strategies: readonly EvaluationStrategy[],
  groups: readonly ServerGroup[],
  asked: string | undefined,
): EvaluationStrategy[] {
  const keys = new Set(groups.map(({ strategy }) => encodingKey(strategy.encoding)));
  const listed = new Set(asked === undefined ? [] : splitStrategies(asked));
  return strategies.filter(({ name, encoding }) => {
    if (keys.has(encodingKey(encoding))) return true;
    if (!listed.has(name)) return false;
    throw new RangeError(
      `--strategies: expected ones that a server of --endpoint runs (${groupNames(groups)}), got ${name}; add ` +
        `${name}=http://… or leave it out`,
    );
  });
}

/** Probes and opens the servers. `length`: tokens of the longest prompt. */
export async function openServers(
  groups: readonly ServerGroup[],
  flags: EndpointFlags,
  {
    tokenizer,
    bos,
    length,
    signal,
  }: {
    readonly tokenizer: Tokenizer | null;
    readonly bos: number | null;
    readonly length: number;
    readonly signal: AbortSignal;
  },
): Promise<EndpointsByStrategy> {
  const text = "The old man read the letter twice.";
  const key = process.env[keyVariable];
  const models = await Promise.all(
    groups.map(({ strategy, addresses }) =>
      openEndpoint(addresses, {
        encoding: strategy.encoding,
        length,
        signal,
        ...(flags.engine === undefined ? {} : { engine: flags.engine }),
        ...(flags.servedModel === undefined ? {} : { model: flags.servedModel }),
        ...(flags.concurrency === undefined ? {} : { concurrency: flags.concurrency }),
        ...(flags.tokenByToken === undefined ? {} : { tokenByToken: true }),
        ...(key === undefined || key === "" ? {} : { key }),
        ...(tokenizer === null
          ? {}
          : {
              sample: {
                text,
                tokens: tokenizer.encode(text, { addSpecial: false, parseSpecial: false }),
                bos,
              },
            }),
      }),
    ),
  );
  for (const address of models.flatMap(({ unreachable }) => unreachable)) {
    process.stderr.write(palette.warn(`${address} does not answer; the others do its work\n`));
  }
  return new EndpointsByStrategy(models);
}

/** What a run's rows depend on of its servers: who they are, and not where. */
export function serversIdentity(groups: readonly ServerGroup[], servers: EndpointsByStrategy): JsonRecord[] {
  return servers.models.map(({ facts }, i) => ({
    strategy: groups[i]!.strategy.name,
    engine: facts.engine,
    version: facts.version,
    model: facts.model,
    losses: facts.losses,
  }));
}

/** A line for a person. */
export function serversText(groups: readonly ServerGroup[], servers: EndpointsByStrategy): string {
  return servers.models
    .map(({ facts, addresses }, i) => {
      const { engine, version, contextLength, tokenizer, repeatDifference } = facts;
      const parts = [
        `${groups[i]!.strategy.name}: ${engine}${version === null ? "" : ` ${version}`}`,
        `${addresses.length} server${addresses.length === 1 ? "" : "s"}`,
        ...(contextLength === null ? [] : [`context ${contextLength.toLocaleString("en")}`]),
        ...(tokenizer === "the same" ? [] : ["its tokenizer was not asked"]),
        ...(repeatDifference === null || repeatDifference < 1e-6
          ? []
          : [`losses of equal requests differ by ${repeatDifference.toPrecision(1)}`]),
      ];
      return parts.join(" · ");
    })
    .join("\n");
}
