// longhand score --endpoint: the losses that a server gives.

import { type EvaluationStrategy, windowBos } from "../evaluation/index.ts";
import { openModel } from "../formats/open-model.ts";
import { openTokenizer, type Tokenizer } from "../formats/tokenizers/index.ts";
import { readText, readTokens } from "./encoding-options.ts";
import { type EndpointFlags, openServers, serverGroups, serversText, unnamedStrategy } from "./endpoint-options.ts";
import { palette } from "./terminal.ts";

export interface ScoreEndpointFlags extends EndpointFlags {
  readonly text?: string;
  readonly tokens?: string;
  readonly bos: boolean;
  readonly length?: number;
  readonly json?: boolean;
}

export async function scoreEndpoint(path: string, flags: ScoreEndpointFlags, signal: AbortSignal): Promise<void> {
  const model = await openModel(path);
  const { trainedLength } = model;
  const lengths = { trainedLength, target: flags.length ?? trainedLength ?? 2 };
  const groups = serverGroups(flags, lengths, unnamedStrategy(model, lengths))!;
  if (groups.length > 1) {
    throw new RangeError(
      `--endpoint: expected servers of one strategy, got those of ${groups.length}; longhand compare holds several ` +
        "against each other",
    );
  }
  const strategy: EvaluationStrategy = groups[0]!.strategy;
  const tokenizer = await tokenizerOf(flags.tokenizer ?? path, flags.tokenizer !== undefined);
  const bos = tokenizer === null ? null : windowBos(tokenizer, flags.bos);
  const open = (length: number) => openServers(groups, flags, { tokenizer, bos, length, signal });
  const all = await tokensOf();
  const tokens = flags.length === undefined ? all : all.slice(0, flags.length);
  if (tokens.length < 2) throw new RangeError(`expected at least 2 tokens to score, got ${tokens.length}`);
  const servers = await open(tokens.length);
  const began = performance.now();
  const { negativeLogLikelihood: losses } = await servers.score(tokens, { ...strategy.encoding, signal });
  const seconds = (performance.now() - began) / 1000;
  const mean = losses.reduce((sum, x) => sum + x, 0) / losses.length;
  const { facts } = servers.models[0]!;
  if (flags.json) {
    const document = {
      model: model.name,
      tokens,
      bos: bos !== null,
      trainedLength,
      strategy: strategy.name,
      negativeLogLikelihood: Array.from(losses),
      meanNegativeLogLikelihood: mean,
      perplexity: Math.exp(mean),
      endpoint: facts,
      seconds,
      tokensPerSecond: losses.length / seconds,
    };
    process.stdout.write(`${JSON.stringify(document)}\n`);
    return;
  }
  const { bold, dim } = palette;
  process.stdout.write(
    `${bold(model.name)}  ${losses.length.toLocaleString("en")} tokens predicted\n` +
      `mean loss ${bold(mean.toFixed(5))} nats, perplexity ${bold(Math.exp(mean).toFixed(4))}\n` +
      `${serversText(groups, servers)}\n${dim(`${(losses.length / seconds).toFixed(0)} tokens a second`)}\n`,
  );

  async function tokensOf(): Promise<number[]> {
    if (flags.tokens !== undefined) return readTokens(flags.tokens);
    const text = await readText(flags.text!);
    if (tokenizer !== null) {
      const own = tokenizer.encode(text, { addSpecial: false, parseSpecial: false });
      return bos === null ? own : [bos, ...own];
    }
    // Without a tokenizer at hand the server's own makes the tokens; it does not say which is BOS.
    const servers = await open(2);
    return [...(await servers.models[0]!.tokenize(text, signal))];
  }
}

/** null: the model's folder has none, and none was named. */
async function tokenizerOf(path: string, named: boolean): Promise<Tokenizer | null> {
  try {
    return await openTokenizer(path);
  } catch (error) {
    if (named) throw error;
    return null;
  }
}
