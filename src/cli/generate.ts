// longhand generate: text after a prompt, greedy or sampled, under any position encoding.

import type { Command } from "commander";
import { loadLanguageModel, loadSequenceToSequenceModel, type Progress, type RunFacts } from "../engine/index.ts";
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
} from "./encoding-options.ts";
import { interruptible } from "./interrupt.ts";
import { numberAtLeast, seedNumber, tokenCount } from "./options.ts";
import { progressLine } from "./progress.ts";

interface Flags extends EncodingFlags {
  readonly prompt: string;
  readonly bos: boolean;
  readonly maxTokens: number;
  readonly temperature: number;
  readonly topK?: number;
  readonly topP?: number;
  readonly seed: number;
  readonly ignoreEnd?: true;
  readonly exact?: true;
  readonly json?: boolean;
}

const help = `
A MODEL is a folder with config.json and safetensors, a .gguf, or a llama2.c .bin with its tokenizer beside it.
A model with an encoder (T5) reads the prompt with it, and its decoder's text is what is printed.
Text is greedy unless --temperature is above 0; the same seed gives the same text. It ends at the model's end token.

Examples:
  longhand generate model.gguf --prompt "Once upon a time"
  longhand generate ./SmolLM2-135M --prompt "The sea" --temperature 0.8 --top-p 0.95 --seed 7
  longhand generate model.gguf --prompt "Once upon a time" --scaling yarn:4 --json
${encodingHelp}`;

export function addGenerate(program: Command): void {
  const command = program
    .command("generate")
    .summary("text after a prompt")
    .description("Generate text, token by token, under the model's own positions or others.")
    .argument("<model>", "a folder, .gguf or llama2.c .bin")
    .requiredOption("--prompt <text>", "what the text begins with; special tokens in it are read as such")
    .option("--no-bos", "no special tokens before the prompt")
    .option("--max-tokens <n>", "stop after so many", tokenCount, 128)
    .option("--temperature <t>", "0: the likeliest token", numberAtLeast(0), 0)
    .option("--top-k <k>", "only the k likeliest tokens", tokenCount)
    .option(
      "--top-p <p>",
      "only the likeliest tokens that reach p together",
      numberAtLeast(0, { exclusive: true, most: 1 }),
    )
    .option("--seed <n>", "of the random numbers", seedNumber, 0)
    .option("--ignore-end", "go on behind the model's end token")
    .option("--exact", "of quantised weights: no rounding of activations, slower")
    .option("--length <tokens>", "the length that dynamic and longrope see with --reading whole", tokenCount);
  addEncodingOptions(command)
    .option("--json", "print one JSON document when done, instead of text as it comes")
    .addHelpText("after", help)
    .action((path: string, flags: Flags) => interruptible((signal) => generate(path, flags, signal)));
}

async function generate(path: string, flags: Flags, signal: AbortSignal): Promise<void> {
  checkEncodingFlags(flags);
  const options = await encodingOptions(path, flags);
  const tokenizer = await openTokenizer(path);
  const prompt = tokenizer.encode(flags.prompt, { addSpecial: flags.bos });
  const hasEncoder = isEncoderDecoder(await openModel(path));
  if (!hasEncoder && flags.bos && tokenizer.addsEos && prompt.at(-1) === tokenizer.eosToken) prompt.pop();
  if (prompt.length === 0) {
    throw new RangeError("--prompt: expected at least one token, got an empty text for a model without BOS");
  }
  const line = progressLine();
  const loading = {
    ...loadOptions(flags),
    decoding: flags.exact !== true,
    signal,
    onProgress: ({ done, total }: Progress) => line.show("reading weights", done, total),
  };
  await using model = hasEncoder
    ? await loadSequenceToSequenceModel(path, loading)
    : await loadLanguageModel(path, loading);
  const stream = tokenizer.stream({ skipSpecial: true, ...(hasEncoder ? {} : { after: prompt }) });
  const tokens: number[] = [];
  let text = "";
  const write = (piece: string): void => {
    text += piece;
    if (!flags.json) process.stdout.write(piece);
  };
  const begin = performance.now();
  let firstSeconds = 0;
  const run = model.generate(prompt, {
    ...options,
    maxTokens: flags.maxTokens,
    temperature: flags.temperature,
    ...(flags.topK === undefined ? {} : { topK: flags.topK }),
    ...(flags.topP === undefined ? {} : { topP: flags.topP }),
    seed: flags.seed,
    stop: flags.ignoreEnd ? [] : tokenizer.endTokens,
    exact: flags.exact === true,
    signal,
    onProgress: ({ done, total }) => {
      if (total > 1) line.show("reading the prompt", done, total);
    },
  });
  if (!flags.json) {
    line.end();
    if (!hasEncoder) process.stdout.write(flags.prompt);
  }
  let facts: RunFacts;
  try {
    for (;;) {
      const step = await run.next();
      if (step.done) {
        facts = step.value;
        break;
      }
      if (tokens.length === 0) {
        firstSeconds = (performance.now() - begin) / 1000;
        line.end();
      }
      tokens.push(step.value.token);
      write(stream.push(step.value.token));
    }
  } finally {
    line.end();
  }
  write(stream.end());
  const seconds = (performance.now() - begin) / 1000;
  if (!flags.json) {
    process.stdout.write("\n");
    return;
  }
  const document = {
    model: model.description.name,
    text,
    tokens,
    prompt: flags.prompt,
    promptTokens: prompt,
    ended: tokens.length < flags.maxTokens,
    ...facts,
    promptSeconds: firstSeconds,
    tokensPerSecond: tokens.length > 1 ? (tokens.length - 1) / (seconds - firstSeconds) : null,
    peakMemoryBytes: process.resourceUsage().maxRSS * 1024,
  };
  process.stdout.write(`${JSON.stringify(document)}\n`);
}
