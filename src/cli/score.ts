// longhand score: the loss of every token of a text, under any position encoding.

import type { Command } from "commander";
import { loadLanguageModel, loadSequenceToSequenceModel, type Progress, type Score } from "../engine/index.ts";
import { openModel } from "../formats/open-model.ts";
import { openTokenizer } from "../formats/tokenizers/index.ts";
import { isEncoderDecoder } from "../models/index.ts";
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
import { addEndpointOptions, endpointHelp, serverGroups } from "./endpoint-options.ts";
import { interruptible } from "./interrupt.ts";
import { tokenCount } from "./options.ts";
import { progressLine } from "./progress.ts";
import { type ScoreEndpointFlags, scoreEndpoint } from "./score-endpoint.ts";
import { palette } from "./terminal.ts";

interface Flags extends EncodingFlags, ScoreEndpointFlags {
  readonly text?: string;
  readonly tokens?: string;
  readonly decoderTokens?: string;
  readonly bos: boolean;
  readonly json?: boolean;
}

const help = `
A MODEL is a folder with config.json and safetensors, a .gguf, or a llama2.c .bin with its tokenizer beside it.
The loss of a token is -ln p given all before it, in nats. BOS goes before the text if the model was trained so.
A model with an encoder (T5) reads the text with it, and the tokens of --decoder-tokens are scored: exactly these.

Examples:
  longhand score ./SmolLM2-135M --text book.txt --length 4096
  longhand score model.gguf --text book.txt --scaling yarn:2 --length 12288 --json
  longhand score model.gguf --tokens tokens.json --drop
  longhand score ./SmolLM2-135M --text book.txt --length 4096 --endpoint http://127.0.0.1:8000
  longhand score ./flan-t5-base --text article.txt --decoder-tokens summary.json
${encodingHelp}
${endpointHelp}`;

export function addScore(program: Command): void {
  const command = program
    .command("score")
    .summary("the loss of every token of a text")
    .description("Score a text: the loss of every token, under the model's own positions or others.")
    .argument("<model>", "a folder, .gguf or llama2.c .bin")
    .option("--text <file>", "a text; - reads standard input")
    .option("--tokens <file>", "token ids instead: a JSON list, or an object with a list tokens")
    .option("--decoder-tokens <file>", "of a model with an encoder: the decoder's tokens, which are scored")
    .option("--no-bos", "no special tokens around the text")
    .option(
      "--length <tokens>",
      "score the first so many tokens; also the length that dynamic and longrope see",
      tokenCount,
    );
  addEndpointOptions(addEncodingOptions(command))
    .option("--json", "print one JSON document")
    .addHelpText("after", help)
    .action((path: string, flags: Flags) => interruptible((signal) => score(path, flags, signal)));
}

async function score(path: string, flags: Flags, signal: AbortSignal): Promise<void> {
  if ((flags.text === undefined) === (flags.tokens === undefined)) {
    throw new RangeError(`expected one of --text and --tokens, got ${flags.text === undefined ? "neither" : "both"}`);
  }
  checkEncodingFlags(flags);
  if (flags.endpoint !== undefined) {
    const given = (["scaling", "drop", "table", "reading", "decoderTokens"] as const).find(
      (name) => flags[name] !== undefined,
    );
    if (given === undefined) return scoreEndpoint(path, flags, signal);
    throw new RangeError(
      `--${given === "decoderTokens" ? "decoder-tokens" : given}: expected none with --endpoint, since a server runs what ` +
        "it was started with; name that before the address: yarn:4=http://…",
    );
  }
  serverGroups(flags, { trainedLength: null, target: 2 }, "none");
  const options = await encodingOptions(path, flags);
  const targets = await decoderTokensOf(path, flags);
  const { tokens: all, bos } = await tokensOf(path, flags, targets === null);
  const cut = (list: number[]): number[] => (flags.length === undefined ? list : list.slice(0, flags.length));
  const tokens = targets === null ? cut(all) : all;
  const scored = targets === null ? tokens : cut(targets);
  if (scored.length < 2) throw new RangeError(`expected at least 2 tokens to score, got ${scored.length}`);
  const line = progressLine();
  const loading = {
    ...loadOptions(flags),
    signal,
    onProgress: ({ done, total }: Progress) => line.show("reading weights", done, total),
  };
  const scoring = {
    ...options,
    signal,
    onProgress: ({ done, total }: Progress) => line.show("scoring tokens", done, total),
  };
  const load = async () => {
    if (targets === null) {
      const model = await loadLanguageModel(path, loading);
      return { model, run: () => model.score(tokens, scoring) };
    }
    const model = await loadSequenceToSequenceModel(path, loading);
    return { model, run: () => model.score(tokens, scored, scoring) };
  };
  const loadBegin = performance.now();
  const { model: loaded, run } = await load();
  await using model = loaded;
  const loadSeconds = (performance.now() - loadBegin) / 1000;
  let result: Score;
  try {
    result = await run();
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
      ...(targets === null ? {} : { decoderTokens: scored }),
      bos,
      trainedLength: trained,
      length: flags.length ?? scored.length,
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

/** What a model with an encoder and a decoder is scored on; null for a decoder alone. */
async function decoderTokensOf(path: string, { decoderTokens }: Flags): Promise<number[] | null> {
  const description = await openModel(path);
  const hasEncoder = isEncoderDecoder(description);
  if (decoderTokens === undefined) {
    if (!hasEncoder) return null;
    throw new RangeError(
      `expected --decoder-tokens, the tokens that are scored, for ${description.modelType}, an encoder and a decoder; ` +
        "got none",
    );
  }
  if (hasEncoder) return readTokens(decoderTokens);
  throw new RangeError(
    `--decoder-tokens: expected a model with an encoder, got ${description.modelType}, a decoder alone; ` +
      "its tokens go to --tokens",
  );
}

async function tokensOf(
  path: string,
  flags: Flags,
  goesOn: boolean,
): Promise<{ tokens: number[]; bos: boolean | null }> {
  if (flags.tokens !== undefined) return { tokens: await readTokens(flags.tokens), bos: null };
  const text = await readText(flags.text!);
  const tokenizer = await openTokenizer(path);
  // A stranger's text holds no special tokens.
  const tokens = tokenizer.encode(text, { addSpecial: flags.bos, parseSpecial: false });
  // EOS behind a text that goes on would be scored as if the text ended there.
  if (goesOn && flags.bos && tokenizer.addsEos && tokens.at(-1) === tokenizer.eosToken) tokens.pop();
  return { tokens, bos: flags.bos && tokenizer.addsBos };
}
