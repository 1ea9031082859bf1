// longhand score: the loss of every token of a text, under any position encoding.

import type { Command } from "commander";
import { loadLanguageModel } from "../engine/index.ts";
import { openTokenizer } from "../formats/tokenizers/index.ts";
import {
  addEncodingOptions,
  checkEncodingFlags,
  type EncodingFlags,
  encodingHelp,
  encodingOptions,
  loadOptions,
  readText,
  readTokens,
} from "./encoding-options.ts";
import { interruptible } from "./interrupt.ts";
import { tokenCount } from "./options.ts";
import { progressLine } from "./progress.ts";
import { palette } from "./terminal.ts";

interface Flags extends EncodingFlags {
  readonly text?: string;
  readonly tokens?: string;
  readonly bos: boolean;
  readonly json?: boolean;
}

const help = `
A MODEL is a folder with config.json and safetensors, a .gguf, or a llama2.c .bin with its tokenizer beside it.
The loss of a token is -ln p given all before it, in nats. BOS goes before the text if the model was trained so.

Examples:
  longhand score ./SmolLM2-135M --text book.txt --length 4096
  longhand score model.gguf --text book.txt --scaling yarn:2 --length 12288 --json
  longhand score model.gguf --tokens tokens.json --drop
${encodingHelp}`;

export function addScore(program: Command): void {
  const command = program
    .command("score")
    .summary("the loss of every token of a text")
    .description("Score a text: the loss of every token, under the model's own positions or others.")
    .argument("<model>", "a folder, .gguf or llama2.c .bin")
    .option("--text <file>", "a text; - reads standard input")
    .option("--tokens <file>", "token ids instead: a JSON list, or an object with a list tokens")
    .option("--no-bos", "no special tokens around the text")
    .option(
      "--length <tokens>",
      "score the first so many tokens; also the length that dynamic and longrope see",
      tokenCount,
    );
  addEncodingOptions(command)
    .option("--json", "print one JSON document")
    .addHelpText("after", help)
    .action((path: string, flags: Flags) => interruptible((signal) => score(path, flags, signal)));
}

async function score(path: string, flags: Flags, signal: AbortSignal): Promise<void> {
  if ((flags.text === undefined) === (flags.tokens === undefined)) {
    throw new RangeError(`expected one of --text and --tokens, got ${flags.text === undefined ? "neither" : "both"}`);
  }
  checkEncodingFlags(flags);
  const options = await encodingOptions(path, flags);
  const { tokens: all, bos } = await tokensOf(path, flags);
  const tokens = flags.length === undefined ? all : all.slice(0, flags.length);
  if (tokens.length < 2) throw new RangeError(`expected at least 2 tokens to score, got ${tokens.length}`);
  const line = progressLine();
  const loadBegin = performance.now();
  await using model = await loadLanguageModel(path, {
    ...loadOptions(flags),
    signal,
    onProgress: ({ done, total }) => line.show("reading weights", done, total),
  });
  const loadSeconds = (performance.now() - loadBegin) / 1000;
  let result: Awaited<ReturnType<typeof model.score>>;
  try {
    result = await model.score(tokens, {
      ...options,
      signal,
      onProgress: ({ done, total }) => line.show("scoring tokens", done, total),
    });
  } finally {
    line.end();
  }
  const { negativeLogLikelihood: losses, seconds, ...facts } = result;
  const mean = losses.reduce((sum, x) => sum + x, 0) / losses.length;
  const peakMemoryBytes = process.resourceUsage().maxRSS * 1024;
  const trained = model.description.trainedLength;
  if (flags.json) {
    const document = {
      model: model.description.name,
      tokens,
      bos,
      trainedLength: trained,
      length: flags.length ?? tokens.length,
      negativeLogLikelihood: Array.from(losses),
      meanNegativeLogLikelihood: mean,
      perplexity: Math.exp(mean),
      ...facts,
      seconds,
      tokensPerSecond: losses.length / seconds,
      loadSeconds,
      peakMemoryBytes,
      findings: model.findings,
    };
    process.stdout.write(`${JSON.stringify(document)}\n`);
    return;
  }
  const { bold, dim, warn } = palette;
  const lines = [
    `${bold(model.description.name)}  ${losses.length.toLocaleString("en")} tokens predicted`,
    `mean loss ${bold(mean.toFixed(5))} nats, perplexity ${bold(Math.exp(mean).toFixed(4))}`,
    ...facts.positions.map(
      ({ encoding, logitTemperature }) =>
        `positions ${encoding}${logitTemperature === null ? "" : `, temperature ${logitTemperature.kind}`}`,
    ),
    ...(facts.reading === null ? [] : [`table of ${facts.reading === "whole" ? "the whole length" : "each prefix"}`]),
    dim(
      `${(losses.length / seconds).toFixed(0)} tokens a second, weights ${facts.precision}, ` +
        `peak memory ${(peakMemoryBytes / 2 ** 20).toFixed(0)} MiB, loaded in ${loadSeconds.toFixed(1)} s`,
    ),
    ...(trained !== null && tokens.length > trained
      ? [warn(`the text is longer than the ${trained.toLocaleString("en")} tokens that the model was trained on`)]
      : []),
  ];
  process.stdout.write(`${[...new Set(lines)].join("\n")}\n`);
}

async function tokensOf(path: string, flags: Flags): Promise<{ tokens: number[]; bos: boolean | null }> {
  if (flags.tokens !== undefined) return { tokens: await readTokens(flags.tokens), bos: null };
  const text = await readText(flags.text!);
  const tokenizer = await openTokenizer(path);
  // A stranger's text holds no special tokens.
  const tokens = tokenizer.encode(text, { addSpecial: flags.bos, parseSpecial: false });
  // EOS behind a text that goes on would be scored as if the text ended there.
  if (flags.bos && tokenizer.addsEos && tokens.at(-1) === tokenizer.eosToken) tokens.pop();
  return { tokens, bos: flags.bos && tokenizer.addsBos };
}
